"""Questions about a whole collection, by the reports on its communities.

`global_answer` has a language model read all reports of a level, group by group, and joins what it finds. Mode
`graph_global` needs no model: it ranks the passages that the most relevant reports rest on.

Source: D. Edge and others, From local to global: a GraphRAG approach to query-focused summarization, 2024, section
3.1.6.
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request, Tag
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import COMMUNITY_MEMBERS
from rag_assets.models.prompts import fenced
from rag_assets.query.ask.written.reader import AskedQuestion, ReaderOptions
from rag_assets.query.prompting import prompted
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.graph_local import HOW_TO_INDEX, ranked_passages
from rag_assets.query.search.index import Candidate, Index
from rag_assets.query.search.passage_graph import PassageGraph
from rag_assets.query.search.passages import CANDIDATES, search_both
from rag_assets.query.search.report_levels import LevelChoice, ReportText, ReportTree, reports_to_read
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.query.stored import StoredTables
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

_Item = TypeVar("_Item")

MAP_STEP = "map_reports"
REDUCE_STEP = "reduce_answers"
HELPFULNESS: JsonValue = {"type": "integer", "minimum": 0, "maximum": 100}
_REPORTS = 10  # reports whose passages are searched
_LEAST_WEIGHT = 1 / _REPORTS  # of a report, where the best possible one has 1: passages of the last one count too


@dataclass(frozen=True)
class PartialAnswer:
    """What the reports of one group say."""

    text: str  # the answer, with references to records
    helpfulness: int  # from 1 to 100
    community_ids: tuple[str, ...]  # communities whose reports were read


@dataclass(frozen=True)
class GlobalAnswer:
    """The answer to a question about all documents."""

    text: str | None  # the answer, with references to records; None where no report helps or the model failed
    partial_answers: tuple[PartialAnswer, ...]  # those that it was made from, the most helpful first
    read: int  # reports that were read
    unhelpful: int  # groups of reports that do not help
    failed: int  # groups of reports that the model could not read
    left_out: int  # partial answers for which there was no room


def pack_reports(reports: Sequence[ReportText], context_tokens: int, seed: int) -> list[list[ReportText]]:
    """Reports in random order, in groups of at most so many tokens; one that is longer by itself is cut."""
    shuffled_reports = sorted(reports, key=lambda report: report.community_id)
    random.Random(seed).shuffle(shuffled_reports)  # noqa: S311 - an order that can be repeated, not a secret
    cut = [replace(report, text=cut_to_tokens(report.text, context_tokens)) for report in shuffled_reports]
    return in_groups(cut, context_tokens, lambda report: estimate_tokens(report.text) + 1)


def in_groups(items: Iterable[_Item], tokens: int, length: Callable[[_Item], int]) -> list[list[_Item]]:
    """Items in groups of at most so many tokens; one that is longer by itself is a group."""
    groups: list[list[_Item]] = []
    room = 0
    for item in items:
        item_tokens = length(item)
        if not groups or item_tokens > room:
            groups.append([])
            room = tokens
        groups[-1].append(item)
        room -= item_tokens
    return groups


def global_answer(
    question: AskedQuestion, reports: Sequence[ReportText], model: LanguageModel, options: ReaderOptions
) -> GlobalAnswer:
    """Answer a question from reports, group by group, then as a whole; the context is cut to what the model takes.

    Raises:
        QueryError: There are no reports.
        ModelError: The model as a whole cannot be used.
    """
    if not reports:
        raise QueryError("global answers need reports on communities, and there are none")
    answer_tokens, context_tokens = options.written_tokens(model), options.room_tokens(model, question)
    groups = pack_reports(reports, context_tokens, options.seed)
    requests = [_map_request(question, group, answer_tokens) for group in groups]
    answers = {completion.request.content_sha256: completion for completion in model.generate(requests)}
    partial_answers = [
        _partial(answers[request.content_sha256], group) for request, group in zip(requests, groups, strict=True)
    ]
    helpful = [answer for answer in partial_answers if answer is not None and answer.helpfulness > 0 and answer.text]
    helpful.sort(key=lambda answer: (-answer.helpfulness, answer.community_ids))
    fitting_answers = _fitting(helpful, context_tokens)
    text = _reduced(question, fitting_answers, model, answer_tokens) if fitting_answers else None
    failed_count = sum(answer is None for answer in partial_answers)
    unhelpful = len(partial_answers) - failed_count - len(helpful)
    return GlobalAnswer(
        text, tuple(fitting_answers), len(reports), unhelpful, failed_count, len(helpful) - len(fitting_answers)
    )


def _map_request(question: AskedQuestion, group: Sequence[ReportText], answer_tokens: int) -> Request:
    texts = "\n\n".join(report.text for report in group)
    values = {"reports": fenced(texts, "reports"), **question.fenced()}
    properties: dict[str, JsonValue] = {"answer": {"type": "string"}, "helpfulness": HELPFULNESS}
    return prompted(Tag("answers", MAP_STEP), question.language, answer_tokens, {}, values, properties)


def _partial(answer: Completion, group: Sequence[ReportText]) -> PartialAnswer | None:
    value = answer.value
    if answer.outcome is not Outcome.COMPLETED or not isinstance(value, dict):
        return None
    helpfulness = value["helpfulness"]
    if not isinstance(helpfulness, int):
        return None
    return PartialAnswer(str(value["answer"]).strip(), helpfulness, tuple(report.community_id for report in group))


def _fitting(answers: Sequence[PartialAnswer], context_tokens: int) -> list[PartialAnswer]:
    """The first answers, as many as fit; the first one in any case, cut where need be."""
    cut = [replace(answer, text=cut_to_tokens(answer.text, context_tokens)) for answer in answers]
    return next(iter(in_groups(cut, context_tokens, lambda answer: estimate_tokens(answer.text) + 1)), [])


def _reduced(
    question: AskedQuestion, answers: Sequence[PartialAnswer], model: LanguageModel, answer_tokens: int
) -> str | None:
    texts = "\n\n".join(f"({answer.helpfulness}) {answer.text}" for answer in answers)
    values = {"answers": fenced(texts, "answers"), **question.fenced()}
    request = prompted(Tag("answers", REDUCE_STEP), question.language, answer_tokens, {}, values)
    usable = {Outcome.COMPLETED, Outcome.TRUNCATED}
    return next(
        (completion.text.strip() for completion in model.generate([request]) if completion.outcome in usable), None
    )


@dataclass
class GlobalSearch:
    """Mode `graph_global`, for one query; its reports are chosen once, however many passages are wanted."""

    levels: LevelChoice  # which reports are searched
    _found: list[Candidate] | None = None

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """Passages that the most relevant reports rest on.

        A passage scores as its best report: the report's score, scaled to 1/10…1, times the weight of the passage's
        mentions of the community's entities relative to the passage that has most.

        Raises:
            QueryError: No reports are indexed.
        """
        reports, tree = indexes.reports, indexes.report_tree
        if reports is None or reports.row_count == 0:
            raise QueryError(f"mode graph_global needs the entity graph, and no reports are indexed: {HOW_TO_INDEX}")
        if self._found is None:
            self._found = self._nearest(request, reports, tree, trace)
        nearest_reports = self._found
        began = time.perf_counter()
        graph = indexes.graphs.get()
        members = community_members(indexes.graphs.stored, graph, [report.key for report in nearest_reports])
        scores = np.zeros(len(graph.chunk_ids))
        for report in nearest_reports:
            weights = np.zeros(graph.adjacency.shape[0])
            weights[len(graph.chunk_ids) + members[report.key]] = 1.0
            passages = (graph.adjacency @ weights)[: len(graph.chunk_ids)]
            weight = _LEAST_WEIGHT + (1 - _LEAST_WEIGHT) * report.score / 2
            scores = np.maximum(scores, weight * passages / max(float(passages.max(initial=0.0)), 1e-12))
        trace.add(
            "reports", began, len(nearest_reports), texts=tuple(f"report {report.key}" for report in nearest_reports)
        )
        return ranked_passages(graph, scores, request, indexes, trace)

    def _nearest(
        self, request: RetrievalRequest, reports: Index, tree: ReportTree, trace: TraceRecorder
    ) -> list[Candidate]:
        """The most relevant reports of those that are searched."""
        levels = self.levels
        chosen_ids = {
            report.community_id for report in reports_to_read(request.embedding, reports, tree, levels, trace)
        }
        depth, where = CANDIDATES, f"level <= {levels.level}"
        while True:
            nearest = search_both(reports, request.text, request.embedding, where, depth, trace)
            candidates = [candidate for candidate in nearest if candidate.key in chosen_ids]
            if len(candidates) >= min(_REPORTS, len(chosen_ids)) or depth >= reports.row_count:
                return candidates[:_REPORTS]
            depth *= 4


def community_members(
    stored: StoredTables, graph: PassageGraph, community_ids: Sequence[str]
) -> dict[str, NDArray[np.int64]]:
    """Positions of the entities of some communities."""
    rows = stored.read(COMMUNITY_MEMBERS, ["community_id", "entity_id"])
    rows = rows.filter(pc.is_in(rows["community_id"], value_set=pa.array(list(community_ids), pa.string())))
    members: dict[str, set[int]] = {community_id: set() for community_id in community_ids}
    for row in rows.to_pylist():
        if row["entity_id"] in graph.entity_positions:
            members[row["community_id"]].add(graph.entity_positions[row["entity_id"]])
    return {community_id: np.array(sorted(positions), dtype=np.int64) for community_id, positions in members.items()}
