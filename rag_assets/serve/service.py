"""What the routes share: the published version, threads for each kind of work, and figures."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from rag_assets.contracts.errors import RagAssetsError
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.contents.contents import Contents
from rag_assets.query.contents.page_images import PageImages
from rag_assets.query.published import OpenVersion, Published
from rag_assets.query.search.modes import MODES
from rag_assets.serve.api.limits import Work
from rag_assets.serve.api.metrics import Metrics
from rag_assets.serve.api.options import ApiOptions
from rag_assets.serve.api.problems import Problem
from rag_assets.serve.sql.reader import SqlReader

_T = TypeVar("_T")
_CONTENTS_WORKERS = 4
_CLOSE_SECONDS = 8.0  # longer than sessions of models take to end
_LOOK_SECONDS = 0.5


@dataclass
class Service:
    """What the routes share.

    Attributes:
        published: The published version.
        images: Draws pages.
        options: Limits and defaults.
        metrics: Figures.
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
    options: ApiOptions
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        chosen = self.options
        self.sql = SqlReader(self.published.lake, chosen.sql, chosen.sql_workers)
        self.searching = Work("search", chosen.search_workers, chosen.waiting)
        self.asking = Work("answers", chosen.ask_workers, min(chosen.waiting, chosen.ask_workers))
        self.querying = Work("SQL", chosen.sql_workers, min(chosen.waiting, 4 * chosen.sql_workers))
        self.reading = Work("contents", _CONTENTS_WORKERS, chosen.waiting)
        self.drawing = Work("pictures", 1, chosen.waiting)
        self.checking = Work("readiness", 1, chosen.waiting)
        self.works = (self.searching, self.asking, self.querying, self.reading, self.drawing, self.checking)
        for work in self.works:
            self.metrics.in_flight.labels(work.kind).set_function(work.count)

    def current(self) -> OpenVersion:
        """The version to ask now; for threads only, as it may be opened first."""
        version = self.published.current()
        self.metrics.snapshot.set(version.snapshot.number)
        return version

    async def read(self, kind: type[_T] | Any, find: Callable[[Contents], _T | None], missing: str = "") -> Response:
        """Read from the published version, as JSON.

        Args:
            kind: Type of what is read.
            find: Reads it.
            missing: What is told where there is none.

        Raises:
            Problem: There is none.
        """

        def action() -> Response:
            version = self.current()
            found = find(version.contents)
            if found is None:
                raise Problem(404, missing)
            return Response(self.json_of(kind, found), media_type="application/json", headers=version_header(version))

        return await self.reading.run(action)

    async def search(self, request: Request, action: Callable[[Cancellation], _T]) -> _T:
        """Search in a thread, as long as the caller waits.

        Args:
            request: Of the caller.
            action: Searches.

        Raises:
            Problem: Too many wait, or the caller is gone.
        """
        cancellation = Cancellation()
        work = asyncio.ensure_future(self.searching.run(lambda: action(cancellation), cancellation))
        try:
            while not (await asyncio.wait({work}, timeout=_LOOK_SECONDS))[0]:
                if await request.is_disconnected():
                    raise Problem(503, "the caller is gone")
            return work.result()
        finally:
            work.cancel()

    @staticmethod
    def json_of(kind: Any, value: object) -> bytes:
        """A value as JSON."""
        return _adapter(kind).dump_json(value)

    def close(self) -> None:
        """End threads and processes; what threads do is given up, and they are waited for a few seconds."""
        for work in self.works:
            work.close()
        self.sql.close()
        self.images.close()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for work in self.works:
            work.join(deadline)


_adapters: dict[Any, TypeAdapter[Any]] = {}


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def version_header(version: OpenVersion) -> dict[str, str]:
    """Which version a response is of."""
    return {"X-Snapshot": str(version.snapshot.number)}


def json_response(content: object, version: OpenVersion) -> Response:
    """A response of JSON; text that is no Unicode is mended."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(body, media_type="application/json", headers=version_header(version))


def note(request: Request, **facts: object) -> None:
    """Add facts to the log line of a request; never text of queries or documents."""
    request.scope["state"].setdefault("noted", {}).update(facts)


class Timed:
    """Times a search or an answer, and counts its failure by cause."""

    def __init__(self, metrics: Metrics, mode: str, kind: str) -> None:
        self._metrics = metrics
        known = all(name in MODES for name in mode.replace("+", ",").split(","))
        label = "fused" if "," in mode else mode  # there are too many fusions for a label each
        self._labels = (label if known else "unknown", kind)
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._metrics.search_seconds.labels(*self._labels).observe(time.perf_counter() - self._began)
        elif isinstance(error, RagAssetsError):
            self._metrics.errors.labels(type(error).__name__).inc()
