"""Mode `auto`: how a question is searched.

Questions about documents as a whole (`rag_assets.query.search.whole`) are searched by `graph_global` where there are
community reports, all others by `weighted`. A question that refers back to a conversation is judged together with the
questions that it refers to, and rewritten before it is searched.

What stays out: the modes, and resolving conversations (`rag_assets.query.search.rewriting_rules`).
"""

import time
import unicodedata
from dataclasses import dataclass, replace

from rag_assets.contracts.modes import GRAPH_GLOBAL_MODE, REWRITE_MODE, WEIGHTED_MODE
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.graph_local import HOW_TO_INDEX
from rag_assets.query.search.modes import SearchParameters
from rag_assets.query.search.request import Indexes
from rag_assets.query.search.rewriting_rules import refers_back, with_history
from rag_assets.query.search.whole import is_on_the_whole

_READ_CHARS = 1000  # of a longer text the beginning is judged


@dataclass(frozen=True)
class Available:
    """What there is to choose from.

    Attributes:
        indexes: The serving tables.
        answers: Whether an answer is wanted, not passages.
        writes: Whether a language model writes it.
    """

    indexes: Indexes
    answers: bool = False
    writes: bool = False


def choose_mode(
    query: str, parameters: SearchParameters, available: Available, trace: TraceRecorder
) -> SearchParameters:
    """What is asked of a search, with the mode that `auto` chooses.

    Args:
        query: As asked.
        parameters: What is asked of the search, its conversation included.
        available: What there is to choose from.
        trace: Told the rule, the mode, and which modes would have come first but are not there.

    Raises:
        StoreError: A file of the entity graph is missing or damaged.
    """
    began = time.perf_counter()
    follows = bool(parameters.history) and refers_back(query)
    resolved = with_history(query, parameters.history) if follows else query
    whole = is_on_the_whole(unicodedata.normalize("NFKC", resolved[:_READ_CHARS]))
    lacking = _lacking_for_the_whole(available) if whole else None
    left_out = [f"the whole: {GRAPH_GLOBAL_MODE} is left out: {lacking}"] if lacking else []
    rule, mode = ("the whole", GRAPH_GLOBAL_MODE) if whole and not lacking else ("any other", WEIGHTED_MODE)
    mode = f"{REWRITE_MODE}+{mode}" if follows else mode
    trace.add("choose", began, 1, texts=(f"rule: {'follow-up, ' * follows}{rule}", f"mode: {mode}", *left_out))
    return replace(parameters, mode=mode)


def _lacking_for_the_whole(available: Available) -> str | None:
    """What questions about the whole would need and is not there."""
    indexes = available.indexes
    reports = indexes.reports
    if not (reports and reports.row_count and indexes.report_tree and indexes.graphs):
        return f"there are no community reports: {HOW_TO_INDEX}"
    if available.answers and not available.writes:
        return "answers from community reports need a language model"
    return None
