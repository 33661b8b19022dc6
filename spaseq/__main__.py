"""``spaseq`` and ``python -m spaseq``: the entry point. Ctrl-C ends it at once, also during imports."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

#: The exit status after Ctrl-C, by the shells' convention.
INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Import the command line, which takes a second, and run it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        if before is signal.default_int_handler:  # background jobs of a shell keep ignoring it
            signal.signal(signal.SIGINT, _end)
        from spaseq.cli import main as run

        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end(_number: int, _frame: FrameType | None) -> None:
    """End the process at once: nothing needs cleanup yet, and an import could swallow an exception."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
