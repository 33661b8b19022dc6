"""Keepers: the processes that hold the buckets of a stream between its micro-batches.

Spark gives a bucket to any of its Python workers, mostly to another one than before. Restoring a bucket from
its state is expensive: the events of its window are matched again. So a few keeper processes hold the
buckets, and all workers of a machine ask them. Without keepers, the worker holds its buckets itself. A step
brings new chunks, and the token of the state that Spark has. If the keeper has the bucket with this token, it
continues with that bucket; if not, it asks for the state.

The daemon of Spark's Python workers (``spaseq.spark.daemon``) first forks a *nursery*. It has everything
loaded, and only forks keepers when a worker asks for one. Workers reach keepers by sockets in a folder of
their user. Keepers end when the daemon and all workers have ended, as these hold the other end of a pipe.
"""

from __future__ import annotations

import os
import pickle
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NoReturn, Protocol

from spaseq.sources import BadEvent
from spaseq.spark.sinks._lines import LATE, MATCH, letter_line
from spaseq.spark.stages._bucket import Bucket, Changes, State
from spaseq.spark.stages._job import Job

#: An answer: its kind and its line.
Answer = tuple[str, str]

#: About how many characters of lines are passed on at once: more might not fit into memory.
BLOCK: Final = 1 << 20

#: Seconds without a step after which a keeper drops a bucket; Spark has its state.
_IDLE: Final = 600.0


@dataclass(frozen=True, slots=True)
class BucketStep:
    """The task of a bucket in a micro-batch.

    ``query`` names the running query; ``token`` is that of the state, None if there is none yet. ``chunks``
    are added, except events before the ``watermark``. Then the bucket advances to the watermark, or to the
    end if it ``is_over``.
    """

    query: str
    bucket: int
    token: str | None
    chunks: tuple[bytes, ...]
    watermark: int
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a step: the new state's token, the changes to the old state, and what is left.

    ``held``: the time of the first event not yet processed, or a lower bound of it. ``waits``: whether
    matches may still result without more events.
    """

    token: str
    changes: Changes
    held: int | None
    waits: bool


class Knows(Protocol):
    """The sender of a step; it can supply what a keeper lacks."""

    def job(self) -> Job:
        """Return the job of the query."""
        ...

    def state(self) -> State:
        """Return the state of the bucket; there must be one."""
        ...


@dataclass(slots=True)
class _Warm:
    token: str
    bucket: Bucket
    used: float


class Keeper:
    """A keeper's buckets of some queries, ready to continue."""

    def __init__(self) -> None:
        self._warm: dict[tuple[str, int], _Warm] = {}
        self._jobs: dict[str, Job] = {}

    def take(self, step: BucketStep, asker: Knows) -> Iterator[list[Answer] | Done]:
        """Do a step: yield its answers, in blocks, and then ``Done``.

        If the caller does not read to the end, the bucket is dropped, and its state counts.
        """
        now = time.monotonic()
        job = self._jobs.get(step.query)
        if job is None:
            job = self._jobs[step.query] = asker.job()
        bucket = self._bucket(step, job, asker)
        late = (letter for chunk in step.chunks for letter in bucket.add(chunk, step.watermark))
        yield from blocks((LATE, line) for line in _lines(job, late))
        found = bucket.close() if step.is_over else bucket.release(step.watermark)
        yield from blocks((MATCH, line) for line in found)
        yield from blocks(bucket.notices())
        done = Done(uuid.uuid4().hex, bucket.changes(), bucket.held, bucket.waits)
        if not step.is_over:  # otherwise what may come some day goes on with its state
            self._warm[step.query, step.bucket] = _Warm(done.token, bucket, now)
        self._forget(now)
        yield done

    def _bucket(self, step: BucketStep, job: Job, asker: Knows) -> Bucket:
        warm = self._warm.pop((step.query, step.bucket), None)
        if step.token is None:
            return Bucket(job)
        if warm is not None and warm.token == step.token:
            return warm.bucket
        return Bucket.from_state(asker.state(), job)

    def _forget(self, now: float) -> None:
        idle = [place for place, warm in self._warm.items() if now - warm.used > _IDLE]
        for place in idle:
            del self._warm[place]
        for query in self._jobs.keys() - {query for query, _ in self._warm}:
            del self._jobs[query]


def blocks(answers: Iterable[Answer]) -> Iterator[list[Answer]]:
    """Yield answers in lists of limited size."""
    block: list[Answer] = []
    size = 0
    for answer in answers:
        block.append(answer)
        size += len(answer[1])
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _lines(job: Job, letters: Iterable[BadEvent]) -> Iterator[str]:
    return (letter_line(letter, job.topics) for letter in letters)


#: Where workers find the sockets.
_FOLDER: Final = "SPASEQ_KEEPERS"

#: Keepers stand in for cores: buckets of as many partitions of Spark's make steps at the same time.
_COUNT: Final = os.cpu_count() or 1

#: How often a worker asks a keeper, starting it anew, before the worker does the step itself.
_TRIES: Final = 2

_NURSERY: Final = "nursery"
_JOB: Final = "job"
_STATE: Final = "state"


def start() -> None:
    """Fork the nursery of this process and of the processes forked from it."""
    folder = tempfile.mkdtemp(prefix="spaseq-")
    nursery = _listening(Path(folder) / _NURSERY)
    alive, others = os.pipe()
    if os.fork():
        nursery.close()
        os.close(alive)
        os.set_inheritable(others, False)
        os.environ[_FOLDER] = folder
        return
    os.close(others)
    _detach()
    with nursery:
        _serve(nursery, alive, lambda asked: _Nursery(Path(folder), alive).ask(asked))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def take(step: BucketStep, partition: int, asker: Knows) -> Iterator[list[Answer] | Done]:
    """As ``Keeper.take``, by the keeper of a partition of Spark's; or here, where none can be reached."""
    for _ in range(_TRIES if _FOLDER in os.environ else 0):
        begun = False
        number = partition % _COUNT
        try:
            asked = _connection(number)
            asked.send(step)
            for said in _answered(asked, asker):
                begun = True
                yield said
            return
        except (OSError, EOFError):  # it has ended: what it held is brought back from the state
            _close(number)
            if begun:
                raise
        except BaseException:
            # The rest of the keeper's answer does not answer the next step.
            _close(number)
            raise
    yield from _own().take(step, asker)


@cache
def _own() -> Keeper:
    """That of this process."""
    return Keeper()


def _answered(asked: Connection, asker: Knows) -> Iterator[list[Answer] | Done]:
    while True:
        said = asked.recv()
        if isinstance(said, BaseException):
            raise said
        if said == _JOB:
            asked.send(asker.job())
        elif said == _STATE:
            asked.send(asker.state())
        else:
            yield said
            if isinstance(said, Done):
                return


_connections: dict[int, Connection] = {}


def _connection(number: int) -> Connection:
    if number not in _connections:
        folder = Path(os.environ[_FOLDER])
        try:
            _connections[number] = _connected(folder / str(number))
        except OSError:  # it was never asked for, or has ended
            with _connected(folder / _NURSERY) as nursery:
                nursery.send(number)
                nursery.recv()
            _connections[number] = _connected(folder / str(number))
    return _connections[number]


def _close(number: int) -> None:
    connection = _connections.pop(number, None)
    if connection is not None:
        connection.close()


# --- in the processes ---------------------------------------------------------------------------


class _Nursery:
    def __init__(self, folder: Path, alive: int) -> None:
        self._folder = folder
        self._alive = alive

    def ask(self, asked: Connection) -> None:
        """Start the requested keeper, unless another request has started it."""
        path = self._folder / str(asked.recv())
        try:
            _connected(path).close()
        except OSError:
            path.unlink(missing_ok=True)
            listening = _listening(path)
            if not os.fork():
                _keep(listening, self._alive)
            listening.close()
        asked.send(None)


def _keep(listening: socket.socket, alive: int) -> NoReturn:
    keeper = Keeper()
    _serve(listening, alive, lambda asked: _step(keeper, asked))
    os._exit(0)


def _step(keeper: Keeper, asked: Connection) -> None:
    step = asked.recv()
    try:
        for said in keeper.take(step, _Asker(asked)):
            asked.send(said)
    except (OSError, EOFError):  # the worker has ended
        raise
    except Exception as error:
        asked.send(_portable(error))


class _Asker:
    """The sender of a step, at the other end of a connection."""

    def __init__(self, asked: Connection) -> None:
        self._asked = asked

    def job(self) -> Job:
        """See ``Knows``."""
        self._asked.send(_JOB)
        found: Job = self._asked.recv()
        return found

    def state(self) -> State:
        """See ``Knows``."""
        self._asked.send(_STATE)
        found: State = self._asked.recv()
        return found


def _portable(error: Exception) -> Exception:
    """An error that another process can raise; with where it was raised here."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _serve(listening: socket.socket, alive: int, answer: Callable[[Connection], None]) -> None:
    """Serve connections, one request at a time, until all processes that may connect have ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(alive, selectors.EVENT_READ)
        selector.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == alive:
                    return
                if key.fileobj is listening:
                    asked = Connection(listening.accept()[0].detach())
                    selector.register(asked, selectors.EVENT_READ)
                    continue
                assert isinstance(key.fileobj, Connection)
                try:
                    answer(key.fileobj)
                except (OSError, EOFError):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()


def _listening(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(64)
    return listening


def _connected(path: Path) -> Connection:
    connecting = socket.socket(socket.AF_UNIX)
    try:
        connecting.connect(str(path))
    except BaseException:
        connecting.close()
        raise
    return Connection(connecting.detach())


def _detach() -> None:
    """A process group of its own, so that no signal to others reaches it; and nothing of theirs is held."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers that have ended are not waited for
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(sys.stderr.fileno(), 1)
    os.close(null)
