"""The process that answers SPARQL queries, seen from the server: started, used and ended.

A query that exceeds its time or its memory ends the process. The next query starts another one and sends it
all data: the process has no durable state.
"""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from threading import Lock
from typing import Final

from spaseq.patterns.kb import KnowledgeBase
from spaseq.serve.errors import ApiError, beyond
from spaseq.serve.newest.recent import KeptEvent
from spaseq.serve.settings import ServeLimits
from spaseq.serve.sparql.dataset import Datasets, Matches
from spaseq.serve.sparql.worker import NO_MEMORY, Answer, DatasetQuery, Refusal

_LOG: Final = logging.getLogger("spaseq.serve")

#: What the process runs, with the same module path as this one.
_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from spaseq.serve.sparql.worker import main; main(int(sys.argv[1]))"
)

#: Seconds for a process to end after its socket is closed.
_PATIENCE: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Running:
    """A process, and what it has been sent."""

    process: subprocess.Popen[bytes]
    connection: Connection
    datasets: Datasets = field(default_factory=Datasets)


class SparqlProcess:
    """One process, which answers one query at a time. Thread-safe."""

    def __init__(self, limits: ServeLimits) -> None:
        self._limits = limits
        self._running: _Running | None = None
        self._lock = Lock()
        self._is_closed = False

    def ask(
        self,
        kb: KnowledgeBase,
        events: Sequence[KeptEvent],
        services: Sequence[Matches],
        question: DatasetQuery,
        end: float,
    ) -> Answer | Refusal:
        """Return the answer of a query about background graphs, a window's events, and matches.

        ``end`` is on the monotonic clock. Raises ``ApiError`` if there is no answer by then, or if the query
        exceeds its memory.
        """
        if not self._lock.acquire(timeout=max(0.0, end - time.monotonic())):
            raise self._late()
        try:
            if self._running is not None and self._running.process.poll() is not None:
                self._end()  # ended by something other than a query
            running = self._running = self._running or _started()
            if self._is_closed:
                raise ApiError(503, "stopping", "the server is being stopped")
            try:
                for message in running.datasets.changes(question.dataset, kb, events, services):
                    running.connection.send(message)
                    if time.monotonic() > end:  # the next query continues from here
                        raise self._late()
                are_all = running.datasets.are_all(question.dataset, services)
                running.connection.send(replace(question, are_all=are_all))
                if not running.connection.poll(max(0.0, end - time.monotonic())):
                    self._end()
                    raise self._late()
                answer: Answer | Refusal = running.connection.recv()
            except (EOFError, OSError):
                with suppress(subprocess.TimeoutExpired):  # its socket is closed, so it is ending
                    running.process.wait(_PATIENCE)
                raise self._ended(self._end()) from None
            return answer
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process, also during a query."""
        self._is_closed = True
        if (running := self._running) is not None:
            running.process.kill()
        with self._lock:
            self._end()

    def _end(self) -> int:
        """End the process; return its status."""
        running, self._running = self._running, None
        if running is None:
            return 0
        running.connection.close()
        running.process.kill()
        return running.process.wait()

    def _late(self) -> ApiError:
        """Return the error of a query that is not answered in time."""
        return beyond("seconds", self._limits.seconds, "the SPARQL query took too long", 503)

    def _ended(self, status: int) -> ApiError:
        """Return the error of a query during which the process ended."""
        if self._is_closed:
            return ApiError(503, "stopping", "the server is being stopped")
        if status in (NO_MEMORY, -signal.SIGABRT):
            most = self._limits.sparql_bytes
            return beyond("sparql_bytes", most, "the SPARQL query took too much memory", 503)
        _LOG.error("the process for questions of SPARQL ended with status %d", status)
        return ApiError(500, "internal", "the process for questions of SPARQL ended; it is started again")


def _started() -> _Running:
    ours, theirs = socket.socketpair()
    with theirs:
        # A session of its own: Ctrl-C is for the server, which ends this process.
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(theirs.fileno()), *sys.path],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return _Running(process, Connection(ours.detach()))
