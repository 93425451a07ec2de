"""One request of each kind that indexing makes of a language model, made of sample material with the settings in force,
so that what a provider cannot take is known before the first call.

What stays out: what a provider takes (`rag_assets.models.language_models`), and what queries ask, which no setting
changes.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.generation import Completion, Outcome, Request
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.planning import made_up
from rag_assets.pipeline.options import StepOptions

if TYPE_CHECKING:
    from rag_assets.enrich.facets.taxonomy import Taxonomy
    from rag_assets.graph.entity_types import EntityTypes

_LANGUAGES = {"en": "The Order Service stores orders.", "ja": "受注管理サービスは注文を登録する。"}
_CONTEXT_TOKENS = ModelFacts().context_tokens * 16  # ample: whether a prompt fits is told when there is one


def rehearsed_requests(
    options: StepOptions, taxonomy: "Taxonomy", entity_types: "EntityTypes | None"
) -> Iterator[Request]:
    """What the steps of indexing ask, in both languages; each dialogue is held to its end with made-up answers."""
    for language, text in _LANGUAGES.items():
        for dialogue in _enrichment(options, taxonomy, language, text):
            yield from _requests(dialogue)
        if entity_types is not None:
            for dialogue in _graph(options, entity_types, language, text):
                yield from _requests(dialogue)


def _requests(dialogue: Dialogue[Any]) -> Iterator[Request]:
    answers: list[Completion] | None = None
    while True:
        try:
            requests = next(dialogue) if answers is None else dialogue.send(answers)
        except StopIteration:
            return
        yield from requests
        answers = [_answer(request) for request in requests]


def _answer(request: Request) -> Completion:
    value = None if request.schema is None else made_up(json.loads(request.schema))
    return Completion(request, Outcome.COMPLETED, json.dumps(value, ensure_ascii=False), value=value)


def _enrichment(options: StepOptions, taxonomy: "Taxonomy", language: str, text: str) -> Iterator[Dialogue[Any]]:
    from rag_assets.contracts.content import Block, Page
    from rag_assets.enrich.documents import Subject
    from rag_assets.enrich.facets.dialogues import facet_dialogue
    from rag_assets.enrich.knowledge.dialogues import knowledge_dialogue
    from rag_assets.enrich.knowledge.extraction import QuestionAnswer, Selection
    from rag_assets.enrich.questions.dialogues import question_dialogue
    from rag_assets.enrich.questions.extraction import Passage
    from rag_assets.enrich.summaries.dialogues import file_dialogue, page_dialogue

    subject, read_tokens = Subject("", "", language, "", ()), options.summaries.read_tokens
    page = Page(1, PageKind.BODY, (Block(BlockKind.PARAGRAPH, text),))
    passage = Passage("", "", 1, (0,), text, language)
    summaries, knowledge = options.summaries, options.knowledge
    yield page_dialogue(subject, page, (), summaries)
    yield file_dialogue(subject, text, summaries)
    yield facet_dialogue(subject, (page,), taxonomy, read_tokens, _CONTEXT_TOKENS)
    yield question_dialogue(subject, (passage,), (), 1, read_tokens, _CONTEXT_TOKENS)
    selection = Selection(("kind=order",), (QuestionAnswer("", "", text, text, language),))
    yield knowledge_dialogue(selection, "", knowledge.summary_chars, read_tokens, _CONTEXT_TOKENS)


def _graph(options: StepOptions, entity_types: "EntityTypes", language: str, text: str) -> Iterator[Dialogue[Any]]:
    from rag_assets.enrich.documents import Subject
    from rag_assets.graph.entities.descriptions import Notes, description_dialogue
    from rag_assets.graph.entities.resolution import NameFacts, same_dialogue
    from rag_assets.graph.mentions.dialogues import window_dialogue
    from rag_assets.graph.reports.context import Entity, ReportContext
    from rag_assets.graph.reports.dialogues import report_dialogue
    from rag_assets.graph.reports.extraction import ReportSubject

    window = Subject("", "", language, "", ())
    yield window_dialogue(window, text, entity_types, options.mentions, _CONTEXT_TOKENS)
    name = NameFacts(text, text, "term", 1, text)
    yield same_dialogue(name, name)
    yield description_dialogue(Notes("", text, "term", (text,), "entities"), options.entities.description_chars)
    entity = Entity("", 1, text, "term", text)
    context = ReportContext((entity,), (), (), ())
    yield report_dialogue(context, ReportSubject((entity,), 1, 0, language), options.reports)
