"""Which community reports are read: those of one level, or of a level that is chosen community by community.

Source: D. Edge and others, From local to global: a GraphRAG approach to query-focused summarization, 2024, section
3.1.4: missing levels are projected downwards. Deviation: a level that is chosen dynamically is so by the similarity of
reports to the question, not by a model.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.tables import COMMUNITIES, COMMUNITY_REPORTS
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.index import Index
from rag_assets.query.stored import StoredTables, once


@dataclass(frozen=True)
class LevelChoice:
    """Which reports are read."""

    level: int  # level of the reports, 0 for the coarsest; communities that are not split so far stand for themselves
    # whether, from level 0 down to `level`, the report on a community gives way to those on its parts only where one of
    # these is nearer to the question
    dynamic: bool


@dataclass(frozen=True)
class ReportedCommunity:
    """A community with a report."""

    community_id: str
    level: int  # level at which it is split off
    parent_id: str | None  # community of the level above that holds it, or None


@dataclass(frozen=True)
class ReportText(ReportedCommunity):
    """A report on a community."""

    text: str  # the report


class ReportTree:
    """The communities with reports of one published version.

    Attributes:
        get: Gives the communities, by level and id, which are read when they are first asked for. May be asked by
            several threads.
    """

    def __init__(self, stored: StoredTables) -> None:
        self._stored = stored
        self.get = once(lambda: _reported_communities(stored))

    def reports(self, chosen: Sequence[ReportedCommunity]) -> list[ReportText]:
        """Some communities with the texts of their reports.

        Raises:
            StoreError: A file is missing or damaged.
        """
        rows = self._stored.read(COMMUNITY_REPORTS, ["community_id", "text"]).to_pylist()
        texts = {row["community_id"]: row["text"] for row in rows}
        return [
            ReportText(community.community_id, community.level, community.parent_id, texts[community.community_id])
            for community in chosen
        ]


def _reported_communities(stored: StoredTables) -> list[ReportedCommunity]:
    rows = stored.read(COMMUNITIES, ["community_id", "level", "parent_id"]).to_pylist()
    written_ids = set(stored.read(COMMUNITY_REPORTS, ["community_id"])["community_id"].to_pylist())
    communities = [ReportedCommunity(**row) for row in rows if row["community_id"] in written_ids]
    return sorted(communities, key=lambda community: (community.level, community.community_id))


def choose_reports(
    reports: Sequence[ReportedCommunity], levels: LevelChoice, scores: Mapping[str, float] = MappingProxyType({})
) -> list[ReportedCommunity]:
    """The reports that are read, so that no entity is read about twice.

    Args:
        reports: All communities with reports.
        levels: Which level, and whether it is chosen community by community.
        scores: Relevance of reports, by community, where they are chosen so; one that is not there counts as 0.

    Returns:
        Those of the level, and those that are not split so far or whose parts have no report.
    """
    children: dict[str | None, list[ReportedCommunity]] = {}
    report_ids = {report.community_id for report in reports}
    for report in reports:
        children.setdefault(report.parent_id if report.parent_id in report_ids else None, []).append(report)

    def choose(report: ReportedCommunity) -> list[ReportedCommunity]:
        parts = [part for part in children.get(report.community_id, []) if part.level <= levels.level]
        own = scores.get(report.community_id, 0.0)
        if not parts or (levels.dynamic and max(scores.get(part.community_id, 0.0) for part in parts) <= own):
            return [report]
        return [choice for part in parts for choice in choose(part)]

    return [choice for report in children.get(None, []) if report.level <= levels.level for choice in choose(report)]


def reports_to_read(
    embedding: NDArray[np.float32], reports: Index, tree: ReportTree, levels: LevelChoice, trace: TraceRecorder
) -> list[ReportedCommunity]:
    """The reports that are read for a question; a level that is chosen dynamically, by the cosine with the question."""
    scores: dict[str, float] = {}
    if levels.dynamic:
        nearest = reports.nearest(embedding, f"level <= {levels.level}", max(1, reports.row_count), trace)
        scores = {candidate.key: candidate.score for candidate in nearest}
    began = time.perf_counter()
    chosen_reports = choose_reports(tree.get(), levels, scores)
    trace.add(
        "choose_level", began, len(chosen_reports), texts=(f"level {levels.level}{', dynamic' * levels.dynamic}",)
    )
    return chosen_reports
