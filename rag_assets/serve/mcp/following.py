"""A call that is under way: whether the caller still waits, and what it is told meanwhile."""

import time
from collections.abc import Callable

from rag_assets.query.cancellation import Cancellation

_TOLD_SECONDS = 1.0


class Following:
    """Shared by the thread that works and the event loop that waits for it.

    Args:
        tell: Tells the caller in one line how far it is; may be called from any thread.

    Attributes:
        cancellation: Gives the call up where the caller is gone.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.cancellation = Cancellation()
        self._told = float("-inf")

    def tell(self, message: str) -> None:
        """Tell how far it is, at most once a second.

        Raises:
            Cancelled: The caller is gone.
        """
        self.cancellation.check()
        if time.monotonic() - self._told >= _TOLD_SECONDS:
            self._told = time.monotonic()
            self._tell(message)
