"""The schema of every answer that indexing and queries ask for is one that every provider takes, by the provider's own
transformation, and one that does not fit ends the run with the name of its step.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import openai
import pytest
from anthropic import transform_schema
from jsonschema import Draft202012Validator
from llama import LlamaServer
from scripted_model import ScriptedModel

import rag_assets
from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page
from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag
from rag_assets.enrich.documents import Subject
from rag_assets.enrich.facets import taxonomy_suggestion
from rag_assets.enrich.facets.tables import facet_dialogue
from rag_assets.enrich.knowledge.extraction import QuestionAnswer
from rag_assets.enrich.knowledge.extraction import Selection as QuestionSelection
from rag_assets.enrich.knowledge.tables import knowledge_dialogue
from rag_assets.enrich.questions.extraction import Passage
from rag_assets.enrich.questions.tables import question_dialogue
from rag_assets.enrich.summaries.tables import file_dialogue, page_dialogue
from rag_assets.evaluation import drafts
from rag_assets.evaluation.judges.judgements import (
    AnswerPair,
    CitedSentence,
    JudgedAnswer,
    claims_request,
    faithfulness_request,
    grades_request,
    preference_request,
)
from rag_assets.graph.entities import type_suggestions
from rag_assets.graph.entities.descriptions import Notes, description_dialogue
from rag_assets.graph.entities.resolution import NameFacts, same_dialogue
from rag_assets.graph.mentions.dialogues import window_dialogue
from rag_assets.graph.reports.context import Entity, ReportContext
from rag_assets.graph.reports.extraction import ReportSubject
from rag_assets.graph.reports.tables import report_dialogue
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.openai.model import response_format
from rag_assets.models.planning import made_up
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import language_model
from rag_assets.pipeline.options import StepOptions
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.ask.written import graph_global, reader, text_map_reduce
from rag_assets.query.ask.written.reader import AskedQuestion
from rag_assets.query.search import rewriting, sub_queries
from rag_assets.query.search.knowledge import Selection

PROMPTS = Path(rag_assets.__file__).parent / "prompts"
WITHOUT_SCHEMA = {"hypothetical_passage", "reduce_answers"}
PARTS_OF_OTHERS = {"extract_claims"}
GRAPHS = [
    {"enabled": True, "language_model": True, "claims": claims, "gleanings": rounds}
    for claims in (True, False)
    for rounds in (0, 2)
]
TEXTS = {"en": "The Order Service stores orders.", "ja": "受注管理サービスは注文を登録する。"}
CONTEXT_TOKENS = 131_072  # ample


@cache
def all_requests() -> tuple[Request, ...]:
    return (*indexing(), *queries(), *suggestions(), *judgements())


def indexing() -> Iterator[Request]:
    for taxonomy in ("office", "papers"):
        for graph in GRAPHS:
            enrichment: dict[str, Any] = {"taxonomy": taxonomy}
            home = Home(load_settings(graph=graph, enrichment=enrichment))
            for language, text in TEXTS.items():
                for dialogue in (
                    *enrichment_dialogues(home.options, language, text),
                    *graph_dialogues(home.options, language, text),
                ):
                    yield from asked_by(dialogue)


def asked_by(dialogue: Dialogue[Any]) -> Iterator[Request]:
    """What a dialogue asks that is held to its end with made-up answers."""
    answers: list[Completion] | None = None
    while True:
        try:
            requests = next(dialogue) if answers is None else dialogue.send(answers)
        except StopIteration:
            return
        yield from requests
        answers = [made_up_answer(request) for request in requests]


def made_up_answer(request: Request) -> Completion:
    value = None if request.schema is None else made_up(json.loads(request.schema))
    return Completion(request, Outcome.COMPLETED, json.dumps(value, ensure_ascii=False), value=value)


def enrichment_dialogues(options: StepOptions, language: str, text: str) -> Iterator[Dialogue[Any]]:
    subject, read_tokens = Subject("", "", language, "", ()), options.summaries.read_tokens
    page = Page(1, PageKind.BODY, (Block(BlockKind.PARAGRAPH, text),))
    passage = Passage("", "", 1, (0,), text, language)
    summaries, knowledge = options.summaries, options.knowledge
    yield page_dialogue(subject, page, (), summaries)
    yield file_dialogue(subject, text, summaries)
    yield facet_dialogue(subject, (page,), options.taxonomy, read_tokens, CONTEXT_TOKENS)
    yield question_dialogue(subject, (passage,), (), 1, read_tokens, CONTEXT_TOKENS)
    selection = QuestionSelection(("kind=order",), (QuestionAnswer("", "", text, text, language),))
    yield knowledge_dialogue(selection, "", knowledge.summary_chars, read_tokens, CONTEXT_TOKENS)


def graph_dialogues(options: StepOptions, language: str, text: str) -> Iterator[Dialogue[Any]]:
    window = Subject("", "", language, "", ())
    yield window_dialogue(window, text, options.entity_types, options.mentions, CONTEXT_TOKENS)
    name = NameFacts(text, text, "term", 1, text)
    yield same_dialogue(name, name)
    yield description_dialogue(Notes("", text, "term", (text,), "entities"), options.entities.description_chars)
    entity = Entity("", 1, text, "term", text)
    context = ReportContext((entity,), (), (), ())
    yield report_dialogue(context, ReportSubject((entity,), 1, 0, language), options.reports)


def queries() -> Iterator[Request]:
    for language, question in (("en", "Who orders?"), ("ja", "注文するのは誰ですか")):
        asked, selection = (
            AskedQuestion(question, language),
            Selection("kind=order", ("kind=order",), ("order",), "", 1),
        )
        yield reader.passages_request(question, (), (), "", 100, language)
        yield reader.questions_request(question, (), (), (), 100, language)
        yield text_map_reduce._map_request(asked, (), 100)
        yield reader.sentences_request(text_map_reduce.REDUCE_STEP, language, {**asked.fenced(), "findings": ""}, 100)
        yield graph_global._map_request(asked, (), 100)
        yield sub_queries._choice_request(question, (selection,), 8192)
        yield sub_queries._plan_request(question, (selection,), 8192)
        yield sub_queries._augment_request(question)
        call = rewriting._call(question, ())
        yield Request(call.prefix, call.messages, call.max_tokens, call.tag, schema=call.schema)


def suggestions() -> Iterator[Request]:
    model = ScriptedModel(lambda _: {"types": []})
    with pytest.raises(ModelError):  # it names none
        type_suggestions._ask([["Order Service"]], model, Home(load_settings()).options.entity_types, 3)
    yield from model.asked
    yield taxonomy_suggestion._request((), (), (), "en")
    yield drafts._personas_request("1 document", "en", 2, 2)
    yield drafts._questions_request("1 document", "A clerk\nTo order", "en", 2)


def judgements() -> Iterator[Request]:
    model = ScriptedModel(lambda _: None)
    for question in ("Who orders?", "注文するのは誰ですか"):
        cited = CitedSentence(question, (0,))
        for passages in ((), (question,)):
            answer = JudgedAnswer(question, question, passages=passages)
            yield grades_request(model, answer)
        yield claims_request(model, answer)
        yield faithfulness_request(model, answer, [cited])
        yield preference_request(model, AnswerPair(answer, answer), "directness", 0, swapped=True)


def schemas() -> dict[str, str]:
    """Schemas with the steps that ask for them."""
    return {each.schema: each.tag.step for each in all_requests() if each.schema is not None}


def test_every_prompt_is_asked_here() -> None:
    """A new prompt must be added here."""
    names = {path.name.partition(".")[0] for path in PROMPTS.glob("*.md")}
    assert {each.tag.step for each in all_requests()} == names - WITHOUT_SCHEMA - PARTS_OF_OTHERS


def test_every_provider_takes_every_schema() -> None:
    assert len(schemas()) > 15
    for schema, step in schemas().items():
        whole = json.loads(schema)
        Draft202012Validator.check_schema(whole)
        sent = transform_schema(whole)
        assert set(_keywords(sent)) <= {"anyOf", "const", "enum", "items", "minItems", "properties", "type"}, step
        strict = cast("Any", response_format(schema))["json_schema"]["strict"]
        assert strict, f"{step}: OpenAI would not hold its answers to the schema"


def _keywords(schema: dict[str, Any]) -> Iterator[str]:
    """Keywords of a schema and those within it, but for what objects require and what is said to people."""
    yield from schema.keys() - {"additionalProperties", "description", "required"}
    inner: Iterable[Any] = (*schema.get("properties", {}).values(), *schema.get("anyOf", ()))
    for each in (*inner, *([schema["items"]] if "items" in schema else [])):
        yield from _keywords(each)


def test_vllm_takes_every_schema() -> None:
    sampling: Any = pytest.importorskip("vllm.sampling_params", reason="the extra vllm is not installed")
    xgrammar: Any = pytest.importorskip("xgrammar", reason="xgrammar is not installed")
    for schema in schemas():
        sampling.StructuredOutputsParams(json=schema)
        xgrammar.Grammar.from_json_schema(schema)


def test_a_llama_cpp_server_takes_every_schema(small_llama_server: LlamaServer) -> None:
    with openai.OpenAI(base_url=small_llama_server.openai_url, api_key="none", max_retries=0) as client:
        for schema in schemas():
            client.chat.completions.create(
                model=small_llama_server.model,
                messages=[{"role": "user", "content": "JSON:"}],
                response_format=response_format(schema),
                max_completion_tokens=1,
            )


@pytest.mark.parametrize("batch", ["never", "always"])
def test_a_schema_that_the_provider_has_not_ends_the_run_and_is_named_with_its_step(batch: str, tmp_path: Path) -> None:
    chosen = {"provider": "anthropic", "model": "claude-haiku-4-5", "api_key": "sk-none", "batch": batch}
    model = language_model(Home(load_settings(home=tmp_path, language_model=chosen)), "run")
    asked = Request(
        "", (Message("user", "?"),), 10, Tag("claims", "extract_graph"), schema='{"type": ["string", "null"]}'
    )
    with pytest.raises(ModelError, match=r"anthropic:claude-haiku-4-5 .* answers of step extract_graph: .*'null'"):
        list(model.generate([asked]))
