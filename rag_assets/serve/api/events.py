"""Answers while they are written: a thread reads the events of `KnowledgeBase.ask_stream`, the event loop sends them.

Where the caller goes away, a question that waits for its turn is dropped, and one that is being answered is given up
with its calls of language models.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rag_assets.contracts.errors import RagAssetsError
from rag_assets.query.ask.answers import Answered, AnswerEvent, EvidenceFound, TextPiece
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.filters import parse_filters
from rag_assets.query.published import OpenVersion
from rag_assets.serve.api.routing import LOOK_SECONDS, json_bytes, version_header
from rag_assets.serve.problems import Problem
from rag_assets.serve.requests import AskRequest, check_options, levels_of, turns_of
from rag_assets.serve.service import Service

_log = logging.getLogger(__name__)
_KEEP_ALIVE_SECONDS = 10.0


def events_of(
    service: Service, version: OpenVersion, asked: AskRequest, mode: str, cancellation: Cancellation
) -> Iterator[AnswerEvent]:
    """What comes of a question, in the thread that reads it.

    Raises:
        RagAssetsError: The question cannot be answered, or was given up.
    """
    defaults = service.options.defaults
    check_options(mode, asked.level, asked.dynamic_level, asked.summaries)
    with service.timed(mode, "ask"):
        stream = version.base.ask_stream(
            asked.question,
            mode,
            asked.k or defaults.k,
            parse_filters(asked.filters),
            history=turns_of(asked.history),
            summaries=asked.summaries or "page",
            levels=levels_of(asked.level, asked.dynamic_level, defaults.levels),
            cancellation=cancellation,
        )
        with closing(stream):
            for event in stream:
                yield event
                cancellation.check()


class _AnswerStream:
    """One question that is being answered.

    Attributes:
        version: The version that is asked, once there is an event.
    """

    version: OpenVersion

    def __init__(self, service: Service, asked: AskRequest, mode: str) -> None:
        self._service = service
        self._asked = asked
        self._mode = mode
        self._cancellation = Cancellation()
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[AnswerEvent | None] = asyncio.Queue()  # None stands behind the last one
        self._work = asyncio.ensure_future(service.asking.run(self._write, self._cancellation))
        self._work.add_done_callback(self._end)

    async def next(self, seconds: float) -> AnswerEvent | None:
        """The next event; None after the last one.

        Raises:
            TimeoutError: There is none within the time.
            RagAssetsError: The question cannot be answered.
            Problem: Too many wait.
        """
        async with asyncio.timeout(seconds):
            event = await self._events.get()
        if event is None:
            self._work.result()
        return event

    def leave(self) -> None:
        """Give the question up; does nothing where it has been answered."""
        self._work.cancel()

    def _write(self) -> None:
        """In a thread: read the events."""
        self.version = self._service.current()
        for event in events_of(self._service, self.version, self._asked, self._mode, self._cancellation):
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def _end(self, work: "asyncio.Future[None]") -> None:
        if not work.cancelled():
            work.exception()  # one that nobody waits for is not logged with its text
        self._events.put_nowait(None)


def wants_events(request: Request) -> bool:
    """Whether the caller asks for server-sent events."""
    return "text/event-stream" in request.headers.get("accept", "").lower()


async def answer_events(request: Request, service: Service, asked: AskRequest, mode: str) -> Response:
    """The answer as server-sent events. What is wrong with the question is told as a plain response.

    Raises:
        RagAssetsError: The question cannot be answered.
        Problem: Too many wait, or the caller is gone.
    """
    stream = _AnswerStream(service, asked, mode)
    try:
        first = await _first(request, stream)
    except BaseException:
        stream.leave()
        raise
    headers = {"X-Accel-Buffering": "no", **version_header(stream.version)}
    return StreamingResponse(_sent(service, stream, first), media_type="text/event-stream", headers=headers)


async def _first(request: Request, stream: _AnswerStream) -> AnswerEvent | None:
    """The first event, as long as the caller waits for it."""
    while True:
        with suppress(TimeoutError):
            return await stream.next(LOOK_SECONDS)
        if await request.is_disconnected():
            raise Problem(503, "the caller is gone")


async def _sent(service: Service, stream: _AnswerStream, first: AnswerEvent | None) -> AsyncIterator[bytes]:
    event = first
    try:
        while event is not None:
            yield _as_event(event)
            while True:
                try:
                    event = await stream.next(_KEEP_ALIVE_SECONDS)
                    break
                except TimeoutError:
                    yield b": still writing\n\n"
    except RagAssetsError as error:
        problem = service.problem_of(error)
        yield _event("error", {"status": problem.status, "detail": problem.detail})
    except Exception:  # noqa: BLE001 - the response has begun
        _log.exception("an answer failed")
        yield _event("error", {"status": 500, "detail": "the request failed; see the log"})
    finally:
        stream.leave()


def _as_event(event: AnswerEvent) -> bytes:
    match event:
        case EvidenceFound():
            return _event("evidence", event)
        case TextPiece():
            return _event("text", event)
        case Answered():
            return _event("answer", event.answer)


def _event(name: str, content: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json_bytes(content))
