"""A call that is under way: whether the caller still waits, and what it is told meanwhile."""

import threading
import time
from collections.abc import Callable

_TOLD_SECONDS = 1.0


class Following:
    """Shared by the thread that works and the event loop that waits for it.

    Args:
        tell: Tells the caller in one line how far it is; may be called from any thread.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._gone = threading.Event()
        self._told = float("-inf")

    @property
    def gone(self) -> bool:
        """Whether nobody waits any more."""
        return self._gone.is_set()

    def leave(self) -> None:
        """The caller is gone."""
        self._gone.set()

    def tell(self, message: str) -> None:
        """Tell how far it is, at most once a second."""
        if time.monotonic() - self._told >= _TOLD_SECONDS and not self.gone:
            self._told = time.monotonic()
            self._tell(message)
