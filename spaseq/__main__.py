"""``spaseq`` and ``python -m spaseq``: the entry point, which Ctrl-C ends at once while it imports."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

#: The status of a process that Ctrl-C has ended, as shells have it.
INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Import the command line, which takes a second, and run it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        if before is signal.default_int_handler:  # a background job of a shell ignores Ctrl-C, and goes on to
            signal.signal(signal.SIGINT, _end)
        from spaseq.cli import main as run

        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end(_number: int, _frame: FrameType | None) -> None:
    """There is nothing to be cleaned up yet, and an exception could be lost in an import."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
