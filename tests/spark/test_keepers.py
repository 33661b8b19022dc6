"""Buckets are held by processes that all workers of a machine ask, and brought back from states otherwise."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import spaseq
from spaseq.events import Clock
from spaseq.spark.stages import _keepers
from spaseq.spark.stages._bucket import State
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._keepers import Answer, BucketStep, Done, Keeper
from tests.spark.stages import Cluster, comparable, pushed
from tests.streams import Letter, letters, query

TEXT = query("A ; B", "50 SECONDS SLIDING", {n: f"?{n.lower()} :k ?k ." for n in "AB"}, partition="?k")
JOB = Job(TEXT, Clock.TICKS, None, (0,), "reference", is_stream=True)


@dataclass
class Asker:
    """Who has the state of a bucket, as Spark would; ``asked`` says for what."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    head: bytes = b""
    token: str | None = None
    asked: list[str] = field(default_factory=list)

    def job(self) -> Job:
        self.asked.append("job")
        return JOB

    def state(self) -> State:
        self.asked.append("state")
        return State(self.head, self.chunks)

    def step(self, chunks: Sequence[bytes], watermark: int, is_over: bool = False) -> BucketStep:
        return BucketStep("q", 0, self.token, tuple(chunks), watermark, is_over)

    def stored(self, said: Iterator[list[Answer] | Done]) -> list[str]:
        """The matches of a step, whose state is stored."""
        lines: list[str] = []
        for one in said:
            if isinstance(one, Done):
                for number in one.changes.dropped:
                    del self.chunks[number]
                self.chunks |= one.changes.added
                self.head, self.token = one.changes.head, one.token
            else:
                lines += [line for _, line in one]
        return lines


def parts() -> list[tuple[list[Letter], list[bytes]]]:
    """Four times five events, with their chunks."""
    events = [letters(f"a{i}/k a{i + 1}/k b{i + 2}/k b{i + 3}/k a{i + 4}/k") for i in range(1, 40, 10)]
    return [(some, [piece.data for piece in Cluster(buckets=1).pieces(TEXT, some)]) for some in events]


def wanted() -> list[str]:
    return without_n(pushed(TEXT, [letter for some, _ in parts() for letter in some]))


def without_n(lines: Sequence[str]) -> list[str]:
    """Each part counts its events anew."""
    return comparable(re.sub(r',"n":\d+', "", line) for line in lines)


def test_the_bucket_of_the_token_goes_on() -> None:
    keeper, asker, found = Keeper(), Asker(), []
    for some, chunks in parts():
        found += asker.stored(keeper.take(asker.step(chunks, some[0].time), asker))
    found += asker.stored(keeper.take(asker.step([], 100, is_over=True), asker))
    assert without_n(found) == wanted()
    assert asker.asked == ["job"]


@pytest.mark.parametrize("what", ["other keeper", "step not stored", "step not ended"])
def test_any_other_is_brought_back(what: str) -> None:
    keeper, asker, found = Keeper(), Asker(), []
    for some, chunks in parts():
        step = asker.step(chunks, some[0].time)
        if what == "other keeper":
            keeper = Keeper()
        elif what == "step not stored":  # its task has failed later on
            list(keeper.take(step, asker))
        elif found:
            next(keeper.take(step, asker))
        found += asker.stored(keeper.take(step, asker))
    found += asker.stored(keeper.take(asker.step([], 100, is_over=True), asker))
    assert without_n(found) == wanted()
    assert asker.asked.count("state") >= 2


def test_what_nobody_asks_for_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.spark.stages._keepers._IDLE", -1.0)
    keeper, asker, found = Keeper(), Asker(), []
    for some, chunks in parts():
        found += asker.stored(keeper.take(asker.step(chunks, some[0].time), asker))
    assert asker.asked == ["job", *["job", "state"] * 3]


def test_many_lines_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.spark.stages._keepers.BLOCK", 1_000)
    keeper, asker = Keeper(), Asker()
    events = letters(" ".join([f"a{i}/k" for i in range(1, 20)] + [f"b{i}/k" for i in range(20, 40)]))
    chunks = [piece.data for piece in Cluster(buckets=1).pieces(TEXT, events)]
    *blocks, done = keeper.take(asker.step(chunks, 100), asker)
    assert isinstance(done, Done)
    sizes = [sum(len(line) for _, line in block) for block in blocks if not isinstance(block, Done)]
    assert len(sizes) > 10
    assert max(sizes) < 3_000


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no list of processes in /proc")
@pytest.mark.slow
def test_all_workers_of_a_machine_ask_the_same(tmp_path: Path) -> None:
    """In a process of its own, as the daemon of Spark's workers is."""
    # The checkout at the end of the path, so that ``spaseq`` is the installed package.
    root = str(Path(__file__).parents[2])
    script = f"import sys; sys.path.append({root!r}); import tests.spark.test_keepers as t; t.as_daemon()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all is well\n"
    deadline = time.monotonic() + 60
    while list(tmp_path.iterdir()):  # the nursery ends after the daemon
        assert time.monotonic() < deadline
        time.sleep(0.05)


def as_daemon() -> None:
    """Each step by another worker; then without its keeper; then without any; an error is the one of here."""
    _keepers.start()
    asker, found = Asker(), []
    *most, (last, chunks) = parts()
    for some, own in most:
        found += in_a_worker(asker, asker.step(own, some[0].time))
    assert asker.asked == ["job"], asker.asked
    keeper = in_a_worker(asker, None)
    os.kill(int(keeper[0]), signal.SIGKILL)
    found += in_a_worker(asker, asker.step(chunks, last[0].time))
    assert asker.asked == ["job", "job", "state"], asker.asked
    os.environ["SPASEQ_KEEPERS"], folder = os.devnull, os.environ["SPASEQ_KEEPERS"]
    found += in_a_worker(asker, asker.step([], 100, is_over=True))
    os.environ["SPASEQ_KEEPERS"] = folder
    assert without_n(found) == wanted()
    asker.head = b"SPQ0"
    asker.token = "of another version"
    with pytest.raises(spaseq.EngineError, match="layout"):
        in_a_worker(asker, asker.step([], 200))
    print("all is well")


def in_a_worker(asker: Asker, step: BucketStep | None) -> list[str]:
    """What a worker, forked from this process, does with a step; without one, who its keeper is."""
    from multiprocessing import get_context

    context = get_context("fork")
    ours, theirs = context.Pipe()

    def work() -> None:
        try:
            if step is None:
                theirs.send((asker, [str(_peer())], None))
            else:
                lines = asker.stored(_keepers.take(step, 3, asker))
                theirs.send((asker, lines, None))
        except Exception as error:
            theirs.send((asker, [], error))

    worker = context.Process(target=work)
    worker.start()
    after, lines, error = ours.recv()
    worker.join()
    if error is not None:
        raise error
    vars(asker).update(vars(after))
    found: list[str] = lines
    return found


def _peer() -> int:
    """The process at the other end: the only child of the one that has begun to listen there."""
    connection = _keepers._connection(3 % (os.cpu_count() or 1))
    with socket.socket(fileno=os.dup(connection.fileno())) as peer:
        said = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    nursery: int = struct.unpack("3i", said)[0]
    (keeper,) = Path(f"/proc/{nursery}/task/{nursery}/children").read_text().split()
    return int(keeper)
