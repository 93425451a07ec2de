"""What the HTTP API and agents' tools stand over: the published version, threads for each kind of work, and figures."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rag_assets.contracts.errors import ModelError, QueryError, RagAssetsError, StoreError
from rag_assets.contracts.modes import MODES
from rag_assets.query.contents.page_images import PageImages
from rag_assets.query.knowledge_base import SearchDefaults
from rag_assets.query.published import NothingPublished, OpenVersion, Published
from rag_assets.serve.limits import WorkerThreads
from rag_assets.serve.problems import Problem
from rag_assets.serve.sql.reader import SqlLimits, SqlReader
from rag_assets.serve.telemetry import Metrics

_log = logging.getLogger(__name__)
_CONTENTS_WORKERS = 4
_CLOSE_SECONDS = 8.0  # longer than sessions of models take to end


@dataclass(frozen=True)
class ServeOptions:
    """Who may ask, how much, and how searches go that say nothing of it."""

    token: str | None  # what callers must show; None where the address can only be reached from this machine
    loopback: bool  # whether the address can only be reached from this machine
    # names, beside those of this machine, under which the server may be called; of a server that others can reach, any
    # name where there is none
    hosts: tuple[str, ...]
    requests_per_minute: int  # requests of one client a minute; 0 for no limit
    request_bytes: int  # size of a request's body
    search_workers: int  # searches that run at once
    ask_workers: int  # answers that are written at once
    sql_workers: int  # SQL queries that run at once
    waiting: int  # requests of each kind that may wait for their turn; more are sent away
    sql: SqlLimits  # what one SQL query may take
    defaults: SearchDefaults  # of a search or a question
    # file of the question set that thumbs on answers are added to; None where they are not taken
    feedback: Path | None = None
    clicks: Path | None = None  # file of clicks on results; None where they are not taken


@dataclass
class Service:
    """What the routes and tools share.

    Attributes:
        published: The published version.
        sql: Runs queries of strangers.
        searching: Threads that search; few, as embedding a query keeps a processor busy.
        asking: Threads in which answers are written; they wait for a model most of the time.
        querying: Threads that wait for SQL.
        reading: Threads that read stored contents.
        drawing: Threads that wait for pictures.
        checking: The thread that finds out whether the server is ready, whatever else is read.
    """

    published: Published
    images: PageImages
    options: ServeOptions
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        options = self.options
        self.sql = SqlReader(self.published.lake, options.sql, options.sql_workers)
        self.searching = WorkerThreads("search", options.search_workers, options.waiting)
        self.asking = WorkerThreads("answers", options.ask_workers, options.waiting)
        self.querying = WorkerThreads("SQL", options.sql_workers, options.waiting)
        self.reading = WorkerThreads("contents", _CONTENTS_WORKERS, options.waiting)
        self.drawing = WorkerThreads("pictures", 1, options.waiting)
        self.checking = WorkerThreads("readiness", 1, options.waiting)
        self.works = (self.searching, self.asking, self.querying, self.reading, self.drawing, self.checking)
        for work in self.works:
            self.metrics.in_flight.labels(work.kind).set_function(work.count)

    def current(self) -> OpenVersion:
        """The version to ask now; for threads only, as it may be opened first."""
        version = self.published.current()
        self.metrics.snapshot.set(version.snapshot.number)
        return version

    def warm_up(self) -> None:
        """Open the published version and search once, so that the first caller does not wait."""
        self.current().base.search("warm up", "hybrid", 1)

    @contextmanager
    def timed(self, mode: str, kind: str) -> Iterator[None]:
        """Time a search or an answer, if it succeeds."""
        began = time.perf_counter()
        yield
        is_known = all(name in MODES for name in mode.replace("+", ",").split(","))
        label = "fused" if "," in mode else mode  # there are too many fusions for a label each
        seconds = time.perf_counter() - began
        self.metrics.search_seconds.labels(label if is_known else "unknown", kind).observe(seconds)

    def problem_of(self, error: RagAssetsError) -> Problem:
        """What a caller is told of an error. It is counted; the log says what a caller may not know."""
        self.metrics.errors.labels(type(error).__name__).inc()
        detail = str(error)
        match error:
            case NothingPublished():
                return Problem(503, detail, {"Retry-After": "10"})
            case QueryError():
                return Problem(400, detail)
            case ModelError():
                return Problem(502, detail)
        _log.error("%s: %s", type(error).__name__, error)
        if isinstance(error, StoreError):  # its message names files of this machine
            self.published.suspect()
            return Problem(503, "a published file is missing or damaged; see the log", {"Retry-After": "2"})
        return Problem(500, "the settings of the server do not fit; see the log")

    def close(self) -> None:
        """End threads and processes; what threads do is given up, and they are waited for a few seconds."""
        for work in self.works:
            work.close()
        self.sql.close()
        self.images.close()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for work in self.works:
            work.join(deadline)
