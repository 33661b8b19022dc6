"""A thread beside the caller's, for work that cannot be cancelled: it is abandoned when its time is over."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from math import isinf
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")


class _Job(Generic[T]):
    """Something to be done, and what became of it."""

    def __init__(self, do: Callable[[], T]) -> None:
        self._do = do
        self._done = threading.Lock()
        self._done.acquire()
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do it."""
        try:
            self.result = self._do()
        except BaseException as error:  # which is the caller's
            self.error = error
        finally:
            self._done.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is done before so many seconds are over."""
        return self._done.acquire(timeout=-1 if isinf(seconds) else min(seconds, threading.TIMEOUT_MAX))


#: What has nothing to do now: the queue of a thread each.
_idle: Final[list[SimpleQueue[_Job[Any]]]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # the threads are not there


def beside(do: Callable[[], T], seconds: float, abandon: Callable[[], object]) -> T | None:
    """What ``do`` returns or raises; None if it takes more than ``seconds``.

    After ``abandon`` nobody waits for it: then, or if the caller is interrupted. A thread whose work is
    abandoned ends with it.
    """
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue()
        threading.Thread(target=_work, args=(jobs,), name="spaseq beside", daemon=True).start()
    job = _Job(do)
    jobs.put(job)
    is_done = False
    try:
        is_done = job.wait(seconds)
    finally:
        if is_done:
            _idle.append(jobs)
        else:
            abandon()
            jobs.put(_Job(_end))
    if not is_done:
        return None
    if job.error is not None:
        raise job.error
    return job.result


def _work(jobs: SimpleQueue[_Job[Any]]) -> None:
    while True:
        job = jobs.get()
        job.run()
        if isinstance(job.error, SystemExit):
            return
        del job  # which may hold much


def _end() -> None:
    raise SystemExit
