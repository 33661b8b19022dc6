"""Keepers as processes: how they are started, asked, and when they end.

The daemon of Spark's Python workers (``spaseq.spark.daemon``) first forks a *nursery*, which has all loaded
and does nothing but fork keepers, when a worker asks for one. They are reached by sockets in a folder of
their user's, and end when the daemon and all workers have ended: these hold the other end of a pipe.
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
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NoReturn

from spaseq.spark.stages._bucket import State
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._keeper import Answer, Done, Keeper, Knows, Step

#: Where workers find the sockets.
_FOLDER: Final = "SPASEQ_KEEPERS"

#: Keepers stand in for cores: buckets of as many partitions of Spark's make steps at the same time.
_COUNT: Final = os.cpu_count() or 1

#: How often a keeper is asked, and started anew, before a worker does without.
_TRIES: Final = 2

_NURSERY: Final = "nursery"
_JOB: Final = "job"
_STATE: Final = "state"


def start() -> None:
    """Forks the nursery of this process, and of those that are forked from it."""
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


def take(step: Step, partition: int, asker: Knows) -> Iterator[list[Answer] | Done]:
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
            # What the keeper would say next is no answer to the next step.
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
        """Starts the keeper that somebody asks for, unless another one has asked for it meanwhile."""
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
    except (OSError, EOFError):  # the worker has gone
        raise
    except Exception as error:
        asked.send(_portable(error))


class _Asker:
    """Who asked, at the other end of a connection."""

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
    """Answers who connects, one request at a time, until everybody who may ask has ended."""
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
