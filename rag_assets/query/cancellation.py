"""Giving up a question that nobody waits for any more: its calls of language models end, and no further ones begin."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import Session


class Cancelled(QueryError):  # noqa: N818 - what is the case
    """Nobody waits for the result."""


class Cancellation:
    """Whether a search or a question was given up. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: list[Session] = []
        self._cancelled = False

    def cancel(self) -> None:
        """Give up: sessions that are open are cancelled, and whoever asks for another one is told."""
        with self._lock:
            self._cancelled = True
            sessions = tuple(self._sessions)
        for session in sessions:
            session.cancel()

    def check(self) -> None:
        """Find out whether somebody still waits.

        Raises:
            Cancelled: Nobody does.
        """
        if self._cancelled:
            raise Cancelled("given up: nobody waits for it any more")

    @contextmanager
    def ends(self, session: Session) -> Iterator[None]:
        """While this is open, the session is cancelled with the rest.

        Raises:
            Cancelled: Nobody waits any more.
        """
        with self._lock:
            self.check()
            self._sessions.append(session)
        try:
            yield
        finally:
            with self._lock:
                self._sessions.remove(session)
