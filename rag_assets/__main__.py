"""The command `rag-assets` from its first moment: Ctrl-C ends it in one line while it is still being loaded.

Nothing but what this needs is imported before that. What stays out: the commands (`rag_assets.cli`).
"""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from rag_assets.cli import main as command

    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End on the spot: nothing has been begun, and an exception would come out of the middle of an import."""
    os.write(2, b"rag-assets: interrupted\n")
    os._exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
