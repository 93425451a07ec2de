"""Which selections a query is about, and the sub-queries that their meta knowledge leads to.

The query itself is always the first of them. Where the facets were not given but guessed, it is searched in all
questions, so that a wrong guess adds to what is found and hides nothing.

Source: Meta Knowledge Summaries and query augmentation of L. Mombaerts et al., "Meta Knowledge for Retrieval Augmented
Large Language Models", KDD workshop 2024. Deviations: selections are chosen by the system where none are given; without
a language model the summary speaks through its key terms.
"""

import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.generation import JsonValue, Request, Tag
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel
from rag_assets.models.prompts import fenced
from rag_assets.query.filters import Filters
from rag_assets.query.prompting import QUERY_TOKENS, answered_value, fenced_query, prompted
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.knowledge import Knowledge, Selection
from rag_assets.query.search.request import clean_text
from rag_assets.text.language import prompt_language
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

AUGMENT_STEP = "augment_query"
CHOOSE_STEP = "choose_knowledge"
PLAN_STEP = "plan_queries"
MOST_SELECTIONS = 2
MOST_SUB_QUERIES = 5
TERMS = 3  # key terms of a selection, each of which makes a sub-query

_LISTED_TERMS = 10
_LISTED_TOKENS = 6000
_SUMMARY_TOKENS = 1500
_PROMPT_TOKENS = 900
_LEAST_TOKENS = 256
_CHOICE_TOKENS = 300
_PLAN_CHARS = 300
_SUB_QUERY_CHARS = 200
_PLAN_TOKENS = 2 * int((_PLAN_CHARS + MOST_SUB_QUERIES * _SUB_QUERY_CHARS) * 1.5)
_QUERIES: JsonValue = {
    "type": "array",
    "maxItems": MOST_SUB_QUERIES,
    "items": {"type": "string", "minLength": 1, "maxLength": 2 * _SUB_QUERY_CHARS},
}


@dataclass(frozen=True)
class SubQuery:
    """Something to search for."""

    text: str  # what is searched for
    vector: NDArray[np.float32]  # its embedding
    # facet values, each as `facet=value`, of the selections to search in; all questions where empty
    selections: tuple[tuple[str, ...], ...] = ()


class Planner:
    """Makes sub-queries from the meta knowledge of a published version.

    Args:
        embedder: The embedder of the questions.
        knowledge: The meta knowledge.
        model: Chooses and plans; None, or one that does not write, leaves it to similarity and key terms.
        vectors: Embeddings of key terms and descriptions that are at hand; further ones are put there.
    """

    def __init__(
        self,
        embedder: Embedder,
        knowledge: Knowledge,
        model: LanguageModel | None,
        vectors: dict[str, NDArray[np.float32]] | None = None,
    ) -> None:
        self._embedder = embedder
        self._knowledge = knowledge
        self._model = model if model is not None and model.generative else None
        self._vectors = {} if vectors is None else vectors

    def with_model(self, model: LanguageModel | None) -> "Planner":
        """The same planner with another model, or one that is watched."""
        return Planner(self._embedder, self._knowledge, model, self._vectors)

    def plan(
        self, query: str, vector: NDArray[np.float32], filters: Filters, trace: TraceRecorder
    ) -> tuple[SubQuery, ...]:
        """The query, then the sub-queries made from it and from the facet values that filters ask for.

        Raises:
            ModelError: The embedder failed.
            BudgetError: A call may cost more than the budget allows.
            StoreError: A published file is gone.
        """
        selections = self._knowledge.selections
        if filters.facet:
            began = time.perf_counter()
            choices = _within_filters(selections, filters)
            trace.add("select", began, len(choices), texts=tuple(selection.name for selection in choices))
        else:
            choices = self._detect(query, vector, selections, trace) if selections else []
        if not choices:
            return (SubQuery(query, vector),)
        # given facets are part of the filters already
        places = () if filters.facet else tuple(selection.facets for selection in choices)
        texts = None
        if self._model is not None:
            texts = self._write(query, _plan_request(query, choices, self._model.context_tokens), trace)
        if texts is None:
            texts, place_lists = self._with_terms(query, vector, choices, places, trace)
        else:
            place_lists = [places] * len(texts)
        return (SubQuery(query, vector), *self._sub_queries(texts, place_lists))

    def augmented(
        self, query: str, vector: NDArray[np.float32], filters: Filters, trace: TraceRecorder
    ) -> tuple[SubQuery, ...]:
        """The query, then what a language model widens it to that knows nothing of the documents; see `plan`."""
        del filters
        texts = self._write(query, _augment_request(query), trace) if self._model is not None else None
        return (SubQuery(query, vector), *self._sub_queries(texts or [], [()] * len(texts or [])))

    def _detect(
        self, query: str, vector: NDArray[np.float32], selections: Sequence[Selection], trace: TraceRecorder
    ) -> list[Selection]:
        """The selections that a query is about."""
        began = time.perf_counter()
        if self._model is not None:
            value, problem = self._answer(_choice_request(query, selections, self._model.context_tokens))
            if value is not None:
                numbers = value.get("groups")
                listed_numbers = numbers if isinstance(numbers, list) else []
                choices = [
                    selections[number - 1] for number in dict.fromkeys(listed_numbers) if isinstance(number, int)
                ]
                trace.add("choose", began, len(choices), texts=tuple(selection.name for selection in choices))
                return choices[:MOST_SELECTIONS]
            trace.add("choose", began, 0, texts=(f"failed: {problem}",))
            began = time.perf_counter()
        scores = self._embed([_description(selection) for selection in selections]) @ vector
        choices = [selections[index] for index in above_chance(scores, [selection.facets for selection in selections])]
        trace.add("detect", began, len(choices), texts=tuple(selection.name for selection in choices))
        return choices

    def _write(self, query: str, request: Request, trace: TraceRecorder) -> list[str] | None:
        """Sub-queries that the language model answers a request with; None where it gave none."""
        began = time.perf_counter()
        value, problem = self._answer(request)
        queries = value.get("queries") if value is not None else None
        if not isinstance(queries, list):
            trace.add("plan", began, 0, texts=(f"failed: {problem}",))
            return None
        lines = [one_line(str(sub_query).replace("\0", " ")) for sub_query in queries]
        texts = [text for text in dict.fromkeys(lines) if text and text != query][:MOST_SUB_QUERIES]
        trace.add("plan", began, len(texts), texts=tuple(texts))
        return texts

    def _with_terms(
        self,
        query: str,
        vector: NDArray[np.float32],
        choices: Sequence[Selection],
        places: tuple[tuple[str, ...], ...],
        trace: TraceRecorder,
    ) -> tuple[list[str], list[tuple[tuple[str, ...], ...]]]:
        """The query with each of the key terms that are nearest to it, and the selections to search for each."""
        began = time.perf_counter()
        folded_query = _fold(query)
        places_by_term: dict[str, tuple[tuple[str, ...], ...]] = {}
        for position, selection in enumerate(choices):
            terms = [term for term in selection.key_terms if _fold(term) not in folded_query]
            if not terms:
                continue
            scores = self._embed(terms) @ vector
            order = sorted(range(len(terms)), key=lambda index: (-round(float(scores[index]), 6), index))
            for index in order[:TERMS]:
                places_by_term.setdefault(terms[index], places[position : position + 1])
        trace.add("key_terms", began, len(places_by_term), texts=tuple(places_by_term))
        return [f"{query} {term}" for term in places_by_term], list(places_by_term.values())

    def _sub_queries(self, texts: Sequence[str], places: Sequence[tuple[tuple[str, ...], ...]]) -> list[SubQuery]:
        if not texts:
            return []
        clean_texts = [clean_text(text) for text in texts]
        vectors = self._embedder.embed(clean_texts, EmbeddingKind.QUERY)
        return [SubQuery(*fields) for fields in zip(clean_texts, vectors, places, strict=True)]

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of texts, each computed once."""
        missing_texts = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing_texts:
            self._vectors |= zip(missing_texts, self._embedder.embed(missing_texts, EmbeddingKind.PASSAGE), strict=True)
        return np.stack([self._vectors[text] for text in texts])

    def _answer(self, request: Request) -> tuple[dict[str, JsonValue] | None, str]:
        """The answer to one request; None where it cannot be used, and why."""
        assert self._model is not None
        try:
            return answered_value(self._model, request), ""
        except BudgetError:
            raise
        except ModelError as error:
            return None, str(error)


def above_chance(scores: NDArray[np.float32], facets: Sequence[tuple[str, ...]]) -> list[int]:
    """The one or two best scores that stand out: at least a standard deviation above the mean of all.

    Cosines of one embedder lie close together whatever the texts, so that only their differences tell anything. A
    second one must not be part of the first, nor the first part of it.

    Returns:
        Positions, best first; none where all scores are equal, unless there is one only.
    """
    if len(scores) == 1:
        return [0]
    least = float(scores.mean()) + float(scores.std()) - 1e-6
    if float(scores.std()) < 1e-6:
        return []
    order = sorted(range(len(scores)), key=lambda index: (-round(float(scores[index]), 6), index))
    chosen_indexes: list[int] = []
    for index in order:
        if len(chosen_indexes) == MOST_SELECTIONS or scores[index] < least:
            break
        own_facets = set(facets[index])
        if not any(
            own_facets <= set(facets[other_index]) or own_facets >= set(facets[other_index])
            for other_index in chosen_indexes
        ):
            chosen_indexes.append(index)
    return chosen_indexes


def _within_filters(selections: Sequence[Selection], filters: Filters) -> list[Selection]:
    """Selections within the facet values asked for: those of most values, then those of most questions."""
    asked_facets = set(filters.facet)
    inside = [selection for selection in selections if asked_facets.issuperset(selection.facets)]
    inside.sort(key=lambda selection: -len(selection.facets))
    choices: list[Selection] = []
    for selection in inside:
        if not any(set(selection.facets) <= set(wider_selection.facets) for wider_selection in choices):
            choices.append(selection)
    return choices[:MOST_SELECTIONS]


def _description(selection: Selection) -> str:
    values = " ".join(value.replace("_", " ").replace("=", " ") for value in selection.facets)
    return f"{values}: {', '.join(selection.key_terms)}"


def _choice_request(query: str, selections: Sequence[Selection], context_tokens: int) -> Request:
    room = context_tokens - _PROMPT_TOKENS - QUERY_TOKENS - _CHOICE_TOKENS
    tokens = max(_LEAST_TOKENS, min(_LISTED_TOKENS, room))
    lines: list[str] = []
    for number, selection in enumerate(selections, start=1):
        line = f"{number}. {selection.name}: {', '.join(selection.key_terms[:_LISTED_TERMS])}"
        tokens -= estimate_tokens(line) + 1
        if lines and tokens < 0:
            break
        lines.append(line)
    groups: JsonValue = {
        "type": "array",
        "maxItems": MOST_SELECTIONS,
        "items": {"type": "integer", "minimum": 1, "maximum": len(lines)},
    }
    return prompted(
        Tag("search", CHOOSE_STEP),
        prompt_language(query),
        _CHOICE_TOKENS,
        {"most": str(MOST_SELECTIONS), "groups": fenced("\n".join(lines), "groups")},
        {"query": fenced_query(query)},
        {"groups": groups},
    )


def _plan_request(query: str, choices: Sequence[Selection], context_tokens: int) -> Request:
    room = context_tokens - _PROMPT_TOKENS - QUERY_TOKENS - _PLAN_TOKENS
    selection_tokens = max(_LEAST_TOKENS, min(_SUMMARY_TOKENS, room // len(choices)))
    summaries = [
        cut_to_tokens(f"{selection.name}\n{', '.join(selection.key_terms)}\n{selection.text}", selection_tokens)
        for selection in choices
    ]
    return prompted(
        Tag("search", PLAN_STEP),
        prompt_language(query),
        _PLAN_TOKENS,
        {"most": str(MOST_SUB_QUERIES), "plan_chars": str(_PLAN_CHARS)},
        {"query": fenced_query(query), "document": fenced("\n\n".join(summaries))},
        {"plan": {"type": "string", "maxLength": 2 * _PLAN_CHARS}, "queries": _QUERIES},
    )


def _augment_request(query: str) -> Request:
    return prompted(
        Tag("search", AUGMENT_STEP),
        prompt_language(query),
        _PLAN_TOKENS,
        {"most": str(MOST_SUB_QUERIES)},
        {"query": fenced_query(query)},
        {"queries": _QUERIES},
    )


def _fold(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
