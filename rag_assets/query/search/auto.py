"""Mode `auto`: how a question is searched, by the first rule that fits it and whose mode is there.

| rule | fits | mode |
| --- | --- | --- |
| the whole | is about documents as a whole (`rag_assets.query.search.whole`) | `graph_global` |
| several things | joins things, names two entities of the graph, or goes on from one by a relation | `graph_local` |
| any other | | `weighted` |

A question that refers back to a conversation is judged together with the questions that it refers to, and rewritten
before it is searched.

What stays out: the modes, and resolving conversations (`rag_assets.query.search.rewriting_rules`).
"""

import re
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from rag_assets.contracts.modes import GRAPH_GLOBAL_MODE, GRAPH_LOCAL_MODE, REWRITE_MODE, WEIGHTED_MODE
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.graph_local import HOW_TO_INDEX
from rag_assets.query.search.index import Index
from rag_assets.query.search.modes import SearchParameters
from rag_assets.query.search.passage_graph import named_entities
from rag_assets.query.search.request import Indexes
from rag_assets.query.search.rewriting_rules import refers_back, with_history
from rag_assets.query.search.whole import is_on_the_whole

_READ_CHARS = 1000  # of a longer text the beginning is judged

_JOINED = re.compile(
    r"との(?:関係|関連|つながり|違い)|の間の|両方|双方|どちらも|共通点"
    r"|\b(?:both|between)\b.+\band\b|\b(?:related\sto|relationship|in\scommon|the\ssame\s.+\sas)\b",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"の[^の、。]{1,20}の|(?:した|する|している|された|がある)[^、。]{1,15}の"
    # something of another thing, or a thing told by what it does
    r"|\b(?:of|whose|who|that|which|by|where|when)\s\S|\w['’]s?\s",
    re.IGNORECASE,
)
_FIRST_QUESTION_WORD = re.compile(
    r"^\W*(?:(?:in|at|on|by|for|of|from)\s)?(?:who|whose|what|which|where|when|why|how|that)\b(?:['’]s\b)?",
    re.IGNORECASE,
)


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


@dataclass(frozen=True)
class _Question:
    """A question as it is judged."""

    text: str
    indexes: Indexes


@dataclass(frozen=True)
class _Rule:
    """A mode for what fits."""

    name: str
    mode: str
    fits: Callable[[_Question], bool]


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
    asked = _Question(unicodedata.normalize("NFKC", resolved[:_READ_CHARS]), available.indexes)
    left_out = []
    for rule in (each for each in _RULES if each.fits(asked)):
        lacking = _lacking(rule.mode, available)
        if lacking is None:
            break
        left_out.append(f"{rule.name}: {rule.mode} is left out: {lacking}")
    mode = f"{REWRITE_MODE}+{rule.mode}" if follows else rule.mode
    trace.add("choose", began, 1, texts=(f"rule: {'follow-up, ' * follows}{rule.name}", f"mode: {mode}", *left_out))
    return replace(parameters, mode=mode)


def _lacking(mode: str, available: Available) -> str | None:
    """What a mode would need and is not there."""
    indexes = available.indexes
    if mode == GRAPH_LOCAL_MODE:
        return None if _filled(indexes.entities) and indexes.graphs else f"there is no entity graph: {HOW_TO_INDEX}"
    if mode == GRAPH_GLOBAL_MODE:
        if not (_filled(indexes.reports) and indexes.report_tree and indexes.graphs):
            return f"there are no community reports: {HOW_TO_INDEX}"
        if available.answers and not available.writes:
            return "answers from community reports need a language model"
    return None


def _filled(index: Index | None) -> bool:
    return index is not None and index.row_count > 0


def _names_several(asked: _Question) -> bool:
    """Whether it joins things, names two entities of the graph, or one and a relation that leads on from it."""
    if _JOINED.search(asked.text):
        return True
    if asked.indexes.graphs is None or not _filled(asked.indexes.entities):
        return False
    named = named_entities(asked.indexes.graphs.get(), asked.text)
    rest = _FIRST_QUESTION_WORD.sub("", asked.text)
    return len(named) > 1 or (len(named) == 1 and _RELATION.search(rest) is not None)


_RULES = (
    _Rule("the whole", GRAPH_GLOBAL_MODE, lambda asked: is_on_the_whole(asked.text)),
    _Rule("several things", GRAPH_LOCAL_MODE, _names_several),
    _Rule("any other", WEIGHTED_MODE, lambda _: True),
)
