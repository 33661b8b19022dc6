"""Serve standard input and output until the input ends or a signal arrives."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_STDIN: Final = 0
_STDOUT: Final = 1
_AT_ONCE: Final = 1 << 16


def serve(run: Callable[[], None]) -> int | None:
    """Run a server that reads ``sys.stdin`` to its end. Return the signal that ended it, or None.

    A read of standard input cannot be interrupted, so a thread reads it for the server. On Ctrl-C and SIGTERM
    the server sees the end of its input, and ends. It also ends when its output cannot be written because the
    client is gone. A second signal ends the process at once.
    """
    ours, theirs = socket.socketpair()
    caught: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        caught.append(number)
        signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_WR)

    def copy() -> None:
        with contextlib.suppress(OSError):  # the reader has gone
            while data := os.read(_STDIN, _AT_ONCE):
                ours.sendall(data)
            ours.shutdown(socket.SHUT_WR)

    stdin = sys.stdin
    before = {number: signal.signal(number, end) for number in _SIGNALS}
    # A daemon: it may wait for input for ever.
    threading.Thread(target=copy, name="spaseq-mcp-stdin", daemon=True).start()
    try:
        with theirs, ours, io.TextIOWrapper(theirs.makefile("rb"), encoding="utf-8") as text:
            sys.stdin = text
            run()
    except* BrokenPipeError:  # the client is gone: discard the remaining output
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, _STDOUT)
        os.close(nowhere)
    finally:
        sys.stdin = stdin
        for number, handler in before.items():
            signal.signal(number, handler)
    return caught[0] if caught else None
