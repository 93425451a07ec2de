"""How far `rag-assets index` is, on standard error: a live display on a terminal, plain lines elsewhere.

Both write to a copy of standard error, since a run of Dagster may send file descriptor 2 to a file of its own.
What stays out: what the steps do, and what is printed once they are done.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import UnsupportedOperation
from typing import TYPE_CHECKING, TextIO

from rag_assets.text.plain import printable_line

if TYPE_CHECKING:
    from rich.console import RenderableType

_LINE_SECONDS = 5.0  # between two plain lines: a log of an hour stays below 1,000 lines
_DRAWINGS_PER_SECOND = 4  # a display that moves this often is seen to be alive
_SHOWN_SECONDS = 1.0  # a step that reports nothing gets a line of its own from this time on
_ESTIMATED_FROM = 0.02  # share of all steps from which on the time that is left says something
_BAR_CHARS = 30

# How long steps take beside each other, in thousandths of a first run on docs/sample without a language model; those of
# the graph are estimates.
_STEP_SHARES: Mapping[str, int] = {
    "parse": 150,
    "chunk": 50,
    "summarize_pages": 50,
    "summarize_files": 30,
    "classify_documents": 90,
    "ask_questions": 40,
    "cluster_questions": 30,
    "extract_mentions": 200,
    "report_communities": 50,
    "index_chunks": 340,
    "index_summaries": 80,
    "index_questions": 30,
    "snapshot": 30,
}
_OTHER_SHARE = 3  # of a step that is not listed, as checks are
_ASKING_FACTOR = 20  # a language model takes this many times as long as the algorithm that stands in for it, or more


@dataclass
class _Work:
    """One piece of work that is under way."""

    name: str
    begun: float  # when it began, by `time.monotonic`
    done: int = 0
    total: int = 0  # units in all; 0 where nobody knows
    first: int = 0  # units that were done when it was first heard of, which say nothing of the rate
    heard: bool = False  # whether it ever reported
    counted: float = 0.0  # when the number of units done grew last
    counts: int = 0  # how often it grew

    def told_at(self, now: float) -> float:
        """When it was as far as is known: at the last count, or later where the next is overdue."""
        return max(self.counted, now - (self.counted - self.begun) / max(1, self.counts)) if self.counts else now

    def rate(self, now: float) -> float:
        """Units a second so far; 0 where none was done."""
        return (self.done - self.first) / max(self.told_at(now) - self.begun, 1e-3)

    def fraction(self) -> float:
        """Share that is done; 0 where nobody knows."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def is_late(self, now: float) -> bool:
        """Whether all was to be done by now, as it went until the last count: nobody knows what is left."""
        return now - self.counted > (self.total - self.done) / max(self.rate(self.counted), 1e-9)

    def tells_time(self) -> bool:
        """Whether what is done tells how long the rest takes."""
        return self.total > 0 and self.done > self.first

    def describe(self, now: float) -> str:
        """Its state in words."""
        parts = [self.name]
        if self.heard:
            parts[0] += f": {self.done:,} of {self.total:,}" if self.total else f": {self.done:,}"
            rate = self.rate(now)
            if rate:
                parts.append(f"{_number(rate)}/s")
            if rate and self.done < self.total and not self.is_late(now):
                left = (self.total - self.done) / rate - (now - self.told_at(now))
                parts.append(f"about {_clock(max(0.0, left))} left")
        return ", ".join([*parts, _clock(now - self.begun)])


@dataclass
class _Run:
    """The steps of a run."""

    steps: Sequence[str]  # their keys, in no particular order
    begun: float  # when it began, by `time.monotonic`
    finished: set[str] = field(default_factory=set)  # keys of the steps that ended
    step: str = ""  # key of the step that began last
    step_begun: float = 0.0  # when that was
    asking_steps: Collection[str] = ()  # steps in which a language model writes

    def fraction(self, share_of_step: float) -> float:
        """Share of the run that is done, each step weighed by the time that it takes."""
        done_share: float = sum(map(self._share, self.finished))
        if self.step and self.step not in self.finished:
            done_share += self._share(self.step) * share_of_step
        return done_share / max(1, sum(map(self._share, self.steps)))

    def describe(self, now: float, work: _Work | None) -> str:
        """Its state in words.

        A step of which nobody knows how far it is is taken to last as long, beside those before it, as it usually
        does. Once it has lasted longer, nobody knows what is left, and nothing is said of it.

        Args:
            now: The time.
            work: What is under way in the step that began last, or None.
        """
        number = min(len(self.finished) + 1, len(self.steps))
        text = f"step {number} of {len(self.steps)}, {_clock(now - self.begun)}"
        if work is not None and not work.tells_time():
            work = None
        fraction = self.fraction(work.fraction() if work is not None else 0.0)
        if fraction < _ESTIMATED_FROM:
            return text
        guesses = work is None and self.step not in self.finished
        told_at = work.told_at(now) if work is not None else self.step_begun if guesses else now
        whole = (told_at - self.begun) / fraction
        if guesses and now - told_at > whole * (self.fraction(1.0) - fraction):
            return text
        return f"{text}, about {_clock(max(0.0, self.begun + whole - now))} left in all"

    def _share(self, step: str) -> int:
        factor = _ASKING_FACTOR if step in self.asking_steps else 1
        return factor * _STEP_SHARES.get(step, _OTHER_SHARE)


class ProgressDisplay:
    """What is under way: phases, and the steps of runs. Any thread may report.

    Args:
        print_line: Writes a line that stays.
        announce: Whether phases get a line when they begin, as nothing else shows them.

    Attributes:
        asking_steps: Steps in which a language model writes, which takes its time; for the estimate of all steps.
    """

    def __init__(self, print_line: Callable[[str], None], *, announce: bool) -> None:
        self._print_line = print_line  # not under the lock: whoever draws holds locks of its own
        self._announce = announce
        self.asking_steps: Collection[str] = ()
        self._lock = threading.Lock()
        self._work: _Work | None = None
        self._run: _Run | None = None
        self._line_at = time.monotonic()

    def phase(self, name: str) -> Callable[[int, int], None]:
        """Begin what comes before, between or after runs; ends what is under way."""
        name = printable_line(name)
        with self._lock:
            line = self._end_work()
            self._run = None
            self._work = work = _Work(name, time.monotonic())
        self._print(line, name if self._announce else None)
        return self._reporter(work)

    def begin_run(self, steps: Sequence[str]) -> None:
        """Begin a run of some steps."""
        with self._lock:
            line = self._end_work()
            self._run = _Run(tuple(steps), time.monotonic(), asking_steps=self.asking_steps)
        self._print(line)

    def begin_step(self, key: str) -> None:
        """Begin a step of the run."""
        with self._lock:
            line = self._end_work()
            self._work = _Work(key.replace("_", " "), time.monotonic())
            if self._run is not None:
                self._run.step, self._run.step_begun = key, time.monotonic()
        self._print(line)

    def end_step(self, key: str) -> None:
        """End a step of the run."""
        with self._lock:
            if self._run is not None:
                self._run.finished.add(key)
            line = self._end_work()
        self._print(line)

    def step(self, name: str) -> Callable[[int, int], None]:
        """A callback for work within the current step, told what is done and what there is in all."""
        with self._lock:
            line = self._end_work()
            self._work = work = _Work(printable_line(name), time.monotonic())
        self._print(line)
        return self._reporter(work)

    def repeat(self) -> None:
        """Print the state where the last line is some seconds old."""
        now = time.monotonic()
        if now - self._line_at >= _LINE_SECONDS and (lines := self.describe(now)):
            self._print("; ".join(text for text, _ in lines))

    def describe(self, now: float) -> list[tuple[str, float]]:
        """Of the current work and of the run, where there are any: its state in words, and the share that is done."""
        with self._lock:
            work, lines, share = self._work, [], self._work.fraction() if self._work is not None else 0.0
            if work is not None:
                lines.append((work.describe(now), share))
            if self._run is not None:
                lines.append((self._run.describe(now, work), self._run.fraction(share)))
            return lines

    def _reporter(self, work: _Work) -> Callable[[int, int], None]:
        def report(done: int, total: int) -> None:
            with self._lock:
                if not work.heard:
                    work.heard, work.first = True, done
                elif done > work.done:
                    work.counted, work.counts = time.monotonic(), work.counts + 1
                work.done, work.total = done, total

        return report

    def _end_work(self) -> str | None:
        """End what is under way; a line on it, unless there is nothing to tell."""
        work, self._work = self._work, None
        now = time.monotonic()
        if work is None or not (work.heard or now - work.begun >= _SHOWN_SECONDS):
            return None
        line = work.describe(now)
        return f"{line} (step {len(self._run.finished)} of {len(self._run.steps)})" if self._run is not None else line

    def _print(self, *lines: str | None) -> None:
        for line in lines:
            if line is not None:
                self._line_at = time.monotonic()
                with contextlib.suppress(OSError, ValueError):  # whoever read it is gone; indexing goes on
                    self._print_line(line)


@contextlib.contextmanager
def progress_display() -> Iterator[ProgressDisplay]:
    """Show progress on standard error while the block runs; what is printed meanwhile goes there, too."""
    with _standard_error() as stream, contextlib.redirect_stdout(sys.stderr):
        if stream.isatty() and os.environ.get("TERM") != "dumb":
            with _drawn(stream) as display:
                yield display
        else:
            with _written(stream) as display:
                yield display


@contextlib.contextmanager
def _drawn(stream: TextIO) -> Iterator[ProgressDisplay]:
    """A display that is drawn over and over on a terminal."""
    from rich.console import Console
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, emoji=False, markup=False, highlight=False)
    display = ProgressDisplay(lambda line: console.print(Text(line)), announce=False)
    spinner = Spinner("dots")

    def draw() -> "RenderableType":
        table = Table.grid(padding=(0, 1))
        table.add_column(width=_BAR_CHARS)
        table.add_column(no_wrap=True, overflow="ellipsis")
        for text, share in display.describe(time.monotonic()):
            table.add_row(ProgressBar(1.0, share, _BAR_CHARS) if share else spinner, Text(text))
        return table

    with Live(get_renderable=draw, console=console, refresh_per_second=_DRAWINGS_PER_SECOND, transient=True):
        yield display


@contextlib.contextmanager
def _written(stream: TextIO) -> Iterator[ProgressDisplay]:
    """A display of plain lines."""

    def print_line(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    display, end = ProgressDisplay(print_line, announce=True), threading.Event()

    def repeat() -> None:
        while not end.wait(1 / _DRAWINGS_PER_SECOND):
            display.repeat()

    thread = threading.Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield display
    finally:
        end.set()
        thread.join()


@contextlib.contextmanager
def _standard_error() -> Iterator[TextIO]:
    """A copy of standard error that stays what it is when file descriptor 2 is sent elsewhere."""
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (UnsupportedOperation, OSError, ValueError):  # replaced by an object without a file
        yield sys.stderr
        return
    with open(descriptor, "w", encoding=sys.stderr.encoding, errors="backslashreplace") as stream:  # noqa: PTH123
        yield stream


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.1 else f"{value:.3f}"


def _clock(seconds: float) -> str:
    """A time as `0:07`, `12:30` or `3:05:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
