"""Which configuration searches a collection best: successive halving on judged questions, within a time budget.

Every configuration is asked a few questions; the better half goes on with twice as many, or, where time is left for
all questions, all that are left go on with those. The default goes on always; what cannot search is left out.
The last comparison is on questions that chose nothing; without it there is no winner.

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

from rag_assets.contracts.errors import BudgetError, ModelError, QueryError, StoreError
from rag_assets.evaluation.statistics import (
    Interval,
    PairedDifference,
    bootstrap_interval,
    paired_bootstrap,
)
from rag_assets.training.pairs import document_groups, held_out_parts

FIRST_RUNG = 8  # questions: fewer tell nothing of R@5
MEASURES = ("R@5", "MRR@10")  # the first decides, the second where it is equal
_DIGITS = 9  # of a mean, beyond which sums depend on their order
_HELD_OUT = 2 / 5  # of the questions


@dataclass(frozen=True)
class QuestionOutcome:
    """What one question came to."""

    values: tuple[float, ...]  # one for each of `MEASURES`; nan where it says nothing of the question
    seconds: float  # what the search took
    usd: float = 0.0  # what calls of the language model cost, US dollars


@dataclass
class Configuration:
    """A configuration."""

    name: str  # what it is called
    ask: Callable[[int], QuestionOutcome]  # asks the question at a position, and says what it came to
    adoption: str = ""  # what a user does to adopt it
    results: dict[int, QuestionOutcome] = field(default_factory=dict)  # by position of the question, what it came to
    rung: int = 0  # the last rung that it went through, from 1; 0 for none
    spent: float = 0.0  # seconds that asking took, with all that is not the search
    first: float = 0.0  # the part of these that the first question took, which may load a model
    failure: str = ""  # why it cannot search, and so was left out; empty where it can

    def values(self, measure: str, positions: Sequence[int]) -> list[float]:
        """Values of a measure at questions that were asked."""
        place = MEASURES.index(measure)
        return [self.results[position].values[place] for position in positions]

    def interval(self, measure: str, positions: Sequence[int]) -> Interval | None:
        """Mean with its interval over those of the questions that were asked; None where there are none."""
        values = self.values(measure, [position for position in positions if position in self.results])
        present = [value for value in values if not math.isnan(value)]
        return bootstrap_interval(present) if present else None

    def means(self, positions: Sequence[int]) -> tuple[float, ...]:
        """Of each of `MEASURES` over those of the questions that were asked; 0 where there are none.

        The same values in another order have the same mean.
        """
        intervals = (self.interval(measure, positions) for measure in MEASURES)
        return tuple(round(interval.mean, _DIGITS) if interval else 0.0 for interval in intervals)

    @property
    def milliseconds(self) -> float:
        """Median time of a search, the first of which may load a model; nan before it."""
        return 1000 * median(result.seconds for result in self.results.values()) if self.results else math.nan

    @property
    def usd(self) -> float:
        """What its calls of the language model cost in all, US dollars."""
        return sum(result.usd for result in self.results.values())


@dataclass
class Tuning:
    """What tuning came to."""

    candidates: Sequence[Configuration]  # all of them, the default first
    choosing: Sequence[int]  # positions of the questions that choose
    held_out: Sequence[int]  # positions of those that choose nothing
    # the best by the questions that choose, compared on those held out; the default where nothing is better. None where
    # it ended before that
    winner: Configuration | None = None
    # by measure, winner less default on questions held out; empty where nothing was compared
    differences: dict[str, PairedDifference] = field(default_factory=dict)
    ended: str = ""  # why it ended before all was asked; empty where all was


class _EndedError(Exception):
    pass


def parted(documents: Sequence[Collection[str]]) -> tuple[list[int], list[int]]:
    """Positions of questions that choose, and of those held out; questions that share a document stay together.

    Args:
        documents: Of each question, the documents that hold its evidence.

    Raises:
        QueryError: The questions cannot be parted.
    """
    shuffler = random.Random(0)  # noqa: S311 - no secret
    held_out, choosing = held_out_parts(documents, [_HELD_OUT], shuffler, "tune")
    shuffler.shuffle(choosing)  # sets stand by type
    return choosing, held_out


def tuned(
    candidates: Sequence[Configuration],
    choosing: Sequence[int],
    held_out: Sequence[int],
    deadline: float,
    clock: Callable[[], float] = time.monotonic,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    documents: Sequence[Collection[str]] = (),
) -> Tuning:
    """Find the best configuration, and compare it with the default on questions held out.

    A rung begins only where the time measured so far says that it fits beside the last comparison, and no search begins
    after the deadline. Ctrl-C ends it with what is known. A configuration that cannot search is left out.

    Args:
        candidates: The configurations, the default first.
        choosing: Positions of the questions that choose, in the order in which they are asked.
        held_out: Positions of those for the last comparison.
        deadline: When it ends, by the clock.
        clock: Seconds that only grow.
        progress: Told searches done, and planned in the rung under way.
        documents: As for `parted`; questions that share one are resampled together. Empty for questions by themselves.

    Raises:
        QueryError: The default cannot be searched at all.
    """
    default, alive, count, rung = candidates[0], list(candidates), 0, 0
    tuning = Tuning(candidates, choosing, held_out)
    try:
        while count < len(choosing):
            size = FIRST_RUNG
            if rung:
                last = 2 * max(_seconds((item,), len(held_out)) for item in alive)  # comparison, where the slowest wins
                time_left = deadline - clock() - last
                size = len(choosing)
                if _seconds(alive, size - count) > time_left:
                    alive = _better_half(alive, default, choosing[:count])
                    size = 2 * count
                if _seconds(alive, min(size, len(choosing)) - count) > time_left:
                    tuning.ended = (
                        f"the time of the budget ended after {count} of {len(choosing)} questions that choose"
                    )
                    break
            _ask(alive, choosing[count:size], deadline, clock, progress)
            if default.failure and not rung:
                raise QueryError(f"{default.name}: {default.failure}")
            _check(default)
            alive = [candidate for candidate in alive if not candidate.failure]
            count, rung = min(size, len(choosing)), rung + 1
            for candidate in alive:
                candidate.rung = rung
        for candidate in _ranked(alive, choosing[:count], default):
            if candidate is default:
                tuning.winner = None if tuning.ended else default
                break
            _ask((default, candidate), held_out, deadline, clock, progress)
            _check(default)
            if not candidate.failure:
                tuning.winner, tuning.differences = candidate, _differences(candidate, default, held_out, documents)
                break
    except (_EndedError, BudgetError) as error:
        tuning.ended = str(error)
    except KeyboardInterrupt:
        tuning.ended = "interrupted"
    return tuning


def _ask(
    candidates: Sequence[Configuration],
    positions: Sequence[int],
    deadline: float,
    clock: Callable[[], float],
    progress: Callable[[int, int], None],
) -> None:
    """Ask question by question, so that where time ends all have been asked the same, but for the last one.

    What fails is asked no more.
    """
    done_count, total = 0, len(candidates) * len(positions)
    for position in positions:
        for candidate in candidates:
            if candidate.failure or position in candidate.results:
                continue
            if clock() >= deadline:
                raise _EndedError("the time of the budget ended while questions were asked")
            began = clock()
            try:
                candidate.results[position] = candidate.ask(position)
            except BudgetError:
                raise
            except (QueryError, ModelError, StoreError) as error:
                candidate.failure = str(error)
            took = clock() - began
            candidate.spent, candidate.first = candidate.spent + took, candidate.first or took
            done_count += 1
            progress(done_count, total)


def _check(default: Configuration) -> None:
    """End it where nothing can be compared any more."""
    if default.failure:
        raise _EndedError(f"{default.name}: {default.failure}")


def _differences(
    winner: Configuration, default: Configuration, positions: Sequence[int], documents: Sequence[Collection[str]]
) -> dict[str, PairedDifference]:
    groups = document_groups([documents[position] for position in positions]) if documents else None
    return {
        measure: paired_bootstrap(winner.values(measure, positions), default.values(measure, positions), groups=groups)
        for measure in MEASURES
        if any(not math.isnan(value) for value in default.values(measure, positions))
    }


def _better_half(
    alive: Sequence[Configuration], default: Configuration, positions: Sequence[int]
) -> list[Configuration]:
    ranking = _ranked(alive, positions, default)[: max(1, len(alive) // 2)]
    return ranking if default in ranking else [*ranking, default]


def _ranked(alive: Sequence[Configuration], positions: Sequence[int], default: Configuration) -> list[Configuration]:
    """Best first; of equal ones the default, then the faster."""

    def rank(candidate: Configuration) -> tuple[float, ...]:
        return (*(-mean for mean in candidate.means(positions)), candidate is not default, candidate.milliseconds)

    return sorted(alive, key=rank)


def _seconds(candidates: Sequence[Configuration], questions: int) -> float:
    """Seconds that so many further questions take; what the first took, which may load a model, tells nothing."""
    return sum(
        (candidate.spent - candidate.first) / max(len(candidate.results) - 1, 1) * questions for candidate in candidates
    )
