"""Which configuration searches a collection best: successive halving on judged questions, within a time budget.

Every configuration is asked a few questions; the better half goes on with twice as many, or, where time is left for
all questions, all that are left go on with those. The default goes on always.
The last comparison is on questions that chose nothing.

What stays out: what is measured of a question (`rag_assets.evaluation.runs`), and which configurations there are
(`rag_assets.pipeline.tuning`).

Source: K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS
2016. Deviation: rungs are of questions, and the default is never eliminated.
"""

import math
import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from statistics import median

from rag_assets.contracts.errors import BudgetError, QueryError
from rag_assets.evaluation.statistics import (
    Interval,
    PairedDifference,
    bootstrap_interval,
    paired_bootstrap,
)
from rag_assets.training.pairs import document_folds

FIRST_RUNG = 8  # questions: fewer tell nothing of R@5
MEASURES = ("R@5", "MRR@10")  # the first decides, the second where it is equal
_FOLDS, _HELD_OUT = 5, 2  # of documents, and those that choose nothing


@dataclass(frozen=True)
class Asked:
    """What one question came to.

    Attributes:
        values: One for each of `MEASURES`; nan where it says nothing of the question.
        seconds: What the search took.
        usd: What calls of the language model cost, US dollars.
    """

    values: tuple[float, ...]
    seconds: float
    usd: float = 0.0


@dataclass
class Candidate:
    """A configuration.

    Attributes:
        name: What it is called.
        ask: Asks the question at a position, and says what it came to.
        adoption: What a user does to adopt it.
        results: By position of the question, what it came to.
        rung: The last rung that it went through, from 1; 0 for none.
        spent: Seconds that asking took, with all that is not the search.
    """

    name: str
    ask: Callable[[int], Asked]
    adoption: str = ""
    results: dict[int, Asked] = field(default_factory=dict)
    rung: int = 0
    spent: float = 0.0

    def values(self, measure: str, positions: Sequence[int]) -> list[float]:
        """Values of a measure at questions that were asked."""
        place = MEASURES.index(measure)
        return [self.results[each].values[place] for each in positions]

    def interval(self, measure: str, positions: Sequence[int]) -> Interval | None:
        """Mean with its interval over those of the questions that were asked; None where there are none."""
        values = self.values(measure, [each for each in positions if each in self.results])
        present = [each for each in values if not math.isnan(each)]
        return bootstrap_interval(present) if present else None

    @property
    def milliseconds(self) -> float:
        """Median time of a search, the first of which may load a model; nan before it."""
        return 1000 * median(each.seconds for each in self.results.values()) if self.results else math.nan

    @property
    def usd(self) -> float:
        """What its calls of the language model cost in all, US dollars."""
        return sum(each.usd for each in self.results.values())


@dataclass
class Tuning:
    """What tuning came to.

    Attributes:
        candidates: All of them, the default first.
        choosing: Positions of the questions that choose.
        held_out: Positions of those that choose nothing.
        winner: The best by the questions that choose; the default where nothing is better.
        differences: By measure, winner less default on questions held out; empty where there was no time for it.
        ended: Why it ended before all was asked; empty where all was.
    """

    candidates: Sequence[Candidate]
    choosing: Sequence[int]
    held_out: Sequence[int]
    winner: Candidate
    differences: dict[str, PairedDifference] = field(default_factory=dict)
    ended: str = ""


class _OutOfTimeError(Exception):
    pass


def parted(documents: Sequence[Collection[str]]) -> tuple[list[int], list[int]]:
    """Positions of questions that choose, and of those held out; questions that share a document stay together.

    Args:
        documents: Of each question, the documents that hold its evidence.

    Raises:
        QueryError: The questions cannot be parted.
    """
    folds = document_folds(documents, _FOLDS)
    if len(folds) < _FOLDS:
        raise QueryError(
            f"tune: the evidence of {len(documents)} questions is in {len(folds)} documents or groups of them that "
            f"share questions; {_FOLDS} are needed, so that some can be held out"
        )
    held_out = sorted(position for fold in folds[-_HELD_OUT:] for position in fold)
    choosing = [position for position in range(len(documents)) if position not in set(held_out)]
    random.Random(0).shuffle(choosing)  # noqa: S311 - no secret; sets stand by type
    return choosing, held_out


def tuned(
    candidates: Sequence[Candidate],
    choosing: Sequence[int],
    held_out: Sequence[int],
    deadline: float,
    clock: Callable[[], float] = time.monotonic,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Tuning:
    """Find the best configuration, and compare it with the default on questions held out.

    A rung begins only where the time measured so far says that it fits beside the last comparison, and no search begins
    after the deadline. Ctrl-C ends it with what is known.

    Args:
        candidates: The configurations, the default first.
        choosing: Positions of the questions that choose, in the order in which they are asked.
        held_out: Positions of those for the last comparison.
        deadline: When it ends, by the clock.
        clock: Seconds that only grow.
        progress: Told searches done, and planned in the rung under way.
    """
    default, alive, count, rung = candidates[0], list(candidates), 0, 0
    made = Tuning(candidates, choosing, held_out, default)
    try:
        while count < len(choosing):
            size = FIRST_RUNG
            if rung:
                time_left = deadline - clock() - _final(alive, held_out)
                size = len(choosing)
                if _seconds(alive, size - count) > time_left:
                    alive = _better_half(alive, default, choosing[:count])
                    size = 2 * count
                if _seconds(alive, min(size, len(choosing)) - count) > time_left:
                    made.ended = f"the time of the budget ended after {count} of {len(choosing)} questions that choose"
                    break
            _ask(alive, choosing[count:size], deadline, clock, progress)
            count, rung = min(size, len(choosing)), rung + 1
            for each in alive:
                each.rung = rung
            made.winner = _ranked(alive, choosing[:count], default)[0]
        if made.winner is not default:
            _ask((default, made.winner), held_out, deadline, clock, progress)
            made.differences = {
                measure: paired_bootstrap(made.winner.values(measure, held_out), default.values(measure, held_out))
                for measure in MEASURES
                if any(not math.isnan(each) for each in default.values(measure, held_out))
            }
    except _OutOfTimeError:
        made.ended = "the time of the budget ended while questions were asked"
    except BudgetError as error:
        made.ended = str(error)
    except KeyboardInterrupt:
        made.ended = "interrupted"
    return made


def _ask(
    candidates: Sequence[Candidate],
    positions: Sequence[int],
    deadline: float,
    clock: Callable[[], float],
    progress: Callable[[int, int], None],
) -> None:
    """Ask question by question, so that where time ends all have been asked the same, but for the last one."""
    done, total = 0, len(candidates) * len(positions)
    for position in positions:
        for each in candidates:
            if clock() >= deadline:
                raise _OutOfTimeError
            began = clock()
            each.results[position] = each.ask(position)
            each.spent += clock() - began
            done += 1
            progress(done, total)


def _better_half(alive: Sequence[Candidate], default: Candidate, positions: Sequence[int]) -> list[Candidate]:
    ranked = _ranked(alive, positions, default)[: max(1, len(alive) // 2)]
    return ranked if default in ranked else [*ranked, default]


def _ranked(alive: Sequence[Candidate], positions: Sequence[int], default: Candidate) -> list[Candidate]:
    """Best first; of equal ones the default, then the faster."""

    def rank(each: Candidate) -> tuple[float, ...]:
        means = [each.interval(measure, positions) for measure in MEASURES]
        return (*(-(mean.mean if mean else 0.0) for mean in means), each is not default, each.milliseconds)

    return sorted(alive, key=rank)


def _seconds(candidates: Sequence[Candidate], questions: int) -> float:
    return sum(each.spent / len(each.results) * questions for each in candidates)


def _final(alive: Sequence[Candidate], held_out: Sequence[int]) -> float:
    """Seconds of the last comparison, where the slowest wins."""
    return 2 * max(_seconds((each,), len(held_out)) for each in alive)
