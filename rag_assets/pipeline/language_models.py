"""The language model of a knowledge base, opened with its ledger, its budget and the answers that were paid for; and
whether its provider takes what indexing asks.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pydantic import SecretStr

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.generation import Completion, Outcome, Request
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.options import StepOptions

if TYPE_CHECKING:
    from rag_assets.contracts.ports import LanguageModel
    from rag_assets.models.dialogue import Dialogue

_FITTING: "WeakSet[Home]" = WeakSet()  # whose provider takes the schemas of all answers
_LANGUAGES = {"en": "The Order Service stores orders.", "ja": "受注管理サービスは注文を登録する。"}
_CONTEXT_TOKENS = 131_072  # ample: whether a prompt fits is told when there is one


def language_model(
    home: Home, run_id: str | None = None, patience_seconds: float = math.inf, *, repeats: bool = False
) -> "LanguageModel":
    """The language model that the settings name.

    Args:
        home: The knowledge base.
        run_id: Dagster run that asks; None outside a run.
        patience_seconds: How long a provider that cannot answer is tried, at most.
        repeats: Whether what is refused, empty or broken is asked again outside a run, too.

    Raises:
        SettingsError: The settings do not fit, or the provider does not take what a step of a run asks.
    """
    if run_id is not None:
        _check_schemas(home)
    from rag_assets.models.accounts.budget import Budget
    from rag_assets.models.language_models import load_language_model
    from rag_assets.models.structured import NO_REPEATS

    settings, ledger = home.settings.language_model, home.ledger(run_id)
    budget = Budget(ledger, settings.budget_usd, settings.run_budget_usd)
    choice = replace(home.options.language_model, patience_seconds=patience_seconds)
    if run_id is None and not repeats:  # a person waits for the answer to a query
        choice = replace(choice, repeats=NO_REPEATS)
    return load_language_model(choice, ledger, budget)


def query_model(home: Home) -> "LanguageModel":
    """The language model that the settings name (`query_home`), with the patience of a query."""
    return language_model(home, patience_seconds=home.settings.search.model_patience_seconds)


def query_home(home: Home, name: str = "") -> Home | None:
    """The knowledge base with the language model that queries ask, without batches; None where none writes.

    Args:
        home: The knowledge base.
        name: Another model at the same provider, with `@` and an address at a server of its own, to which no key is
            sent; empty for the model that the settings name.
    """
    if home.language_model_name == "extractive":
        return None
    own = home.settings.language_model
    model, at, rest = name.partition("@http")
    changes: dict[str, object] = {"batch": "never", "model": model or own.model}
    if at and f"http{rest}" != own.base_url:
        changes |= {"base_url": f"http{rest}", "api_key": SecretStr("none")}
    return home.having("language_model", **changes)


def judge_home(home: Home) -> Home:
    """The same knowledge base with the judge of answers for its language model.

    Raises:
        SettingsError: There is neither a judge nor a language model.
    """
    own, judge_settings = home.settings.language_model, home.settings.evaluation.judge
    changes: dict[str, object] = {}
    if judge_settings.model:
        is_other = judge_settings.provider not in {"", own.provider} or judge_settings.base_url not in {
            "",
            own.base_url,
        }
        changes = {name: getattr(judge_settings, name) for name in ("model", "context_tokens")}
        if is_other:
            provider = judge_settings.provider or own.provider
            changes |= {"provider": provider, "base_url": judge_settings.base_url, "api_key": judge_settings.api_key}
        elif judge_settings.api_key is not None:
            changes["api_key"] = judge_settings.api_key
    if judge_settings.temperature is not None:
        changes["temperature"] = judge_settings.temperature
    judge = home.having("language_model", **changes)
    if judge.settings.language_model.provider == "extractive":
        raise SettingsError(
            "answers are judged by a language model, and there is none: set evaluation.judge.provider and "
            "evaluation.judge.model, or language_model.provider"
        )
    return judge


def check_language_model(home: Home) -> None:
    """Find out before work begins whether the settings fit, and there is a server where they say so.

    Raises:
        SettingsError: A budget is set, but no price is known, or the provider does not take what a step asks.
        ModelError: Nobody listens at the address of the server.
        StoreError: The server of the state database cannot be used.
    """
    from rag_assets.models.language_models import check_price, check_reachable

    settings = home.settings.language_model
    _check_schemas(home)
    if settings.budget_usd is not None or settings.run_budget_usd is not None:
        check_price(home.options.language_model)
    check_reachable(home.options.language_model)
    if home.state_file is None:
        home.state.check()


def forget_unusable_answers(home: Home, documents: Sequence[str]) -> None:
    """Remove stored answers on some documents that were of no use, so that the next run asks for them again.

    Raises:
        StoreError: The ledger cannot be read.
    """
    if home.language_model_name != "extractive" and (keys := home.ledger().unusable_keys(documents)):
        home.answers.drop(keys)


def _check_schemas(home: Home) -> None:
    """Find out, once, whether the provider takes the schemas of all answers."""
    if home in _FITTING or home.language_model_name == "extractive":
        return
    from rag_assets.models.language_models import check_schemas

    requests = rehearsed_requests(home.options, graph=home.graph_model_name != "extractive")
    check_schemas(home.options.language_model, requests)
    _FITTING.add(home)


def rehearsed_requests(options: StepOptions, *, graph: bool) -> Iterator[Request]:
    """One request of each kind that indexing makes, of sample material with the settings in force, in both languages.

    What a provider cannot take is known so before the first call. Each dialogue is held to its end with made-up
    answers. What queries ask stays out, as no setting changes it.

    Args:
        options: How steps ask.
        graph: Whether the language model is asked for the entity graph.
    """
    for language, text in _LANGUAGES.items():
        for dialogue in _enrichment(options, language, text):
            yield from _requests(dialogue)
        if graph:
            for dialogue in _graph(options, language, text):
                yield from _requests(dialogue)


def _requests(dialogue: "Dialogue[Any]") -> Iterator[Request]:
    answers: list[Completion] | None = None
    while True:
        try:
            requests = next(dialogue) if answers is None else dialogue.send(answers)
        except StopIteration:
            return
        yield from requests
        answers = [_answer(request) for request in requests]


def _answer(request: Request) -> Completion:
    from rag_assets.models.planning import made_up

    value = None if request.schema is None else made_up(json.loads(request.schema))
    return Completion(request, Outcome.COMPLETED, json.dumps(value, ensure_ascii=False), value=value)


def _enrichment(options: StepOptions, language: str, text: str) -> "Iterator[Dialogue[Any]]":
    from rag_assets.contracts.causes import BlockKind, PageKind
    from rag_assets.contracts.content import Block, Page
    from rag_assets.enrich.documents import Subject
    from rag_assets.enrich.facets.tables import facet_dialogue
    from rag_assets.enrich.knowledge.extraction import QuestionAnswer, Selection
    from rag_assets.enrich.knowledge.tables import knowledge_dialogue
    from rag_assets.enrich.questions.extraction import Passage
    from rag_assets.enrich.questions.tables import question_dialogue
    from rag_assets.enrich.summaries.tables import file_dialogue, page_dialogue

    subject, read_tokens = Subject("", "", language, "", ()), options.summaries.read_tokens
    page = Page(1, PageKind.BODY, (Block(BlockKind.PARAGRAPH, text),))
    passage = Passage("", "", 1, (0,), text, language)
    summaries, knowledge = options.summaries, options.knowledge
    yield page_dialogue(subject, page, (), summaries)
    yield file_dialogue(subject, text, summaries)
    yield facet_dialogue(subject, (page,), options.taxonomy, read_tokens, _CONTEXT_TOKENS)
    yield question_dialogue(subject, (passage,), (), 1, read_tokens, _CONTEXT_TOKENS)
    selection = Selection(("kind=order",), (QuestionAnswer("", "", text, text, language),))
    yield knowledge_dialogue(selection, "", knowledge.summary_chars, read_tokens, _CONTEXT_TOKENS)


def _graph(options: StepOptions, language: str, text: str) -> "Iterator[Dialogue[Any]]":
    from rag_assets.enrich.documents import Subject
    from rag_assets.graph.entities.descriptions import Notes, description_dialogue
    from rag_assets.graph.entities.resolution import NameFacts, same_dialogue
    from rag_assets.graph.mentions.dialogues import window_dialogue
    from rag_assets.graph.reports.context import Entity, ReportContext
    from rag_assets.graph.reports.extraction import ReportSubject
    from rag_assets.graph.reports.tables import report_dialogue

    window = Subject("", "", language, "", ())
    yield window_dialogue(window, text, options.entity_types, options.mentions, _CONTEXT_TOKENS)
    name = NameFacts(text, text, "term", 1, text)
    yield same_dialogue(name, name)
    yield description_dialogue(Notes("", text, "term", (text,), "entities"), options.entities.description_chars)
    entity = Entity("", 1, text, "term", text)
    context = ReportContext((entity,), (), (), ())
    yield report_dialogue(context, ReportSubject((entity,), 1, 0, language), options.reports)
