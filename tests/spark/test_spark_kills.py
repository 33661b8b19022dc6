"""Processes killed at random and started again: nothing is lost, and nothing comes twice.

In CI ``drive`` and ``save`` of a stream in Kafka are killed once each (the command line: ``test_spark_cli``);
20 times, and so what Spark's own sink of text writes, where the tests marked ``long`` are asked for.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import spaseq
from spaseq.results.writers._json import line_of

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from tests.spark.broker import broker  # noqa: E402  # after the skip
from tests.spark.killed import LAST, TOPIC  # noqa: E402
from tests.spark.maven import jars, unavailable  # noqa: E402
from tests.spark.running import without_n  # noqa: E402
from tests.spark.test_spark import quads, stocks  # noqa: E402

_CLI = ["run", "query.rq", "-s", "S=in.nq", "-f", "ndjson", "-o", "out", "--checkpoint", "checkpoint"]

#: So many events for each kill, that the stream does not end before: more than there are in the micro-batches
#: that a process can begin in the seconds that it has, see ``killed.EVERY``.
EVENTS = {"stream": 200, "save": 200, "driver": 400, "kafka": 240, "cli": 1_600}

#: Which process of those of a run is killed: all at once, as when a machine fails, half of the times.
VICTIMS = ("all", "all", "python", "java")

_FEW = [pytest.param(mode, 1, marks=pytest.mark.slow) for mode in ("driver", "kafka")]
_MANY = [pytest.param(mode, 20, marks=pytest.mark.long) for mode in EVENTS]


@pytest.mark.parametrize(("mode", "wanted"), [*_FEW, *_MANY])
def test_killed_and_started_again(tmp_path: Path, mode: str, wanted: int) -> None:
    """Nothing is lost, and nothing comes twice."""
    text, streams = stocks(tmp_path, EVENTS[mode] * wanted)
    (tmp_path / "query.rq").write_text(str(text))
    Path(str(streams["S"])).rename(tmp_path / "in.nq")
    seed = 7 if wanted == 1 else random.randrange(1 << 30)
    rng = random.Random(seed)
    if mode == "kafka":
        with _topic(tmp_path, EVENTS[mode] * wanted):
            kills = killed_at_random(mode, tmp_path, wanted, rng)
        with (tmp_path / "in.nq").open("a") as file:
            file.write(quads(LAST))
    else:
        kills = killed_at_random(mode, tmp_path, wanted, rng)
    assert kills == wanted, f"the stream ended after {kills} of {wanted} kills, seed {seed}"
    want = [line_of(match) for match in spaseq.run(text, {"S": str(tmp_path / "in.nq")})]
    assert len(want) > 10 * wanted
    assert without_n(_lines(mode, tmp_path / "out")) == without_n(want), f"seed {seed}"
    assert not list(tmp_path.glob("out/letters-*"))


@pytest.mark.slow
def test_an_executor_is_killed(tmp_path: Path) -> None:
    """The stream goes on by itself, on what is left of the cluster."""
    text, streams = stocks(tmp_path, 2 * EVENTS["save"])
    (tmp_path / "query.rq").write_text(str(text))
    Path(str(streams["S"])).rename(tmp_path / "in.nq")
    process = started("executors", tmp_path)
    try:
        while process.poll() is None and _begun(tmp_path) < 2:
            time.sleep(0.05)
        java = [number for number, name in _below(process.pid).items() if name == "java"]
        command = {number: Path(f"/proc/{number}/cmdline").read_bytes() for number in java}
        executors = [number for number in java if b"CoarseGrainedExecutorBackend" in command[number]]
        assert len(executors) == 2
        os.kill(executors[0], signal.SIGKILL)
        assert process.wait(timeout=400) == 0, (tmp_path / "errors").read_text()[-4_000:]
    finally:
        if process.poll() is None:
            _kill(process, "all")
    want = [line_of(match) for match in spaseq.run(text, {"S": str(tmp_path / "in.nq")})]
    assert without_n(_lines("save", tmp_path / "out")) == without_n(want)


@contextmanager
def _topic(folder: Path, count: int) -> Iterator[None]:
    """A broker with a topic of two partitions, and in it the events, by turns."""
    needed = {name: jars(name) for name in ("broker", "connector")}
    for found in needed.values():
        if isinstance(found, str):
            unavailable("kafka", found)
    kafka = pytest.importorskip(
        "confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)"
    )
    admin = pytest.importorskip("confluent_kafka.admin")
    data = folder / "broker"
    data.mkdir()
    with broker(data, needed["broker"]) as servers:  # type: ignore[arg-type]  # no text, see above
        making = admin.AdminClient({"bootstrap.servers": servers})
        making.create_topics([admin.NewTopic(TOPIC, 2, 1)])[TOPIC].result()
        producer = kafka.Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": count + 1})
        for i in range(count):
            producer.produce(TOPIC, quads(i).encode(), partition=i % 2)
        assert producer.flush(60) == 0
        given = {"servers": servers, "jars": [str(jar) for jar in needed["connector"]]}
        (folder / "kafka.json").write_text(json.dumps(given))
        yield


def killed_at_random(mode: str, folder: Path, kills: int, rng: random.Random) -> int:
    """Runs to the end of the stream, killed so often on the way; how often it was.

    A kill comes up to four seconds after the first micro-batch of a process has begun, which is some
    micro-batches later, in any of their steps. After the last one there is more of the stream to come.
    """
    done = 0
    while True:
        process = started(mode, folder)
        try:
            before = _begun(folder)
            if done == kills:
                assert process.wait(timeout=1_200) == 0, (folder / "errors").read_text()[-4_000:]
                assert _begun(folder) > before
                return done
            while process.poll() is None and _begun(folder) == before:
                time.sleep(0.05)
            try:
                code = process.wait(timeout=rng.uniform(0, 4))
                assert code == 0, (folder / "errors").read_text()[-4_000:]
                return done
            except subprocess.TimeoutExpired:
                done += 1
            _kill(process, rng.choice(VICTIMS))
        finally:
            if process.poll() is None:
                _kill(process, "all")


def started(mode: str, folder: Path) -> subprocess.Popen[bytes]:
    """The process, and the JVM that it starts, in a group of their own."""
    module = ["small_cli", *_CLI, "--engine", "spark"] if mode == "cli" else ["killed", mode, str(folder)]
    with (folder / "errors").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", f"tests.spark.{module[0]}", *module[1:]],
            cwd=folder,
            env={
                "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                **os.environ,
            },
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _kill(process: subprocess.Popen[bytes], victim: str) -> None:
    """Kills what is said; what is left of the run ends by itself, if need be while the next one begins."""
    below = _below(process.pid)
    if victim == "java":
        victims = [number for number, name in below.items() if name == "java"]
        assert victims
    else:
        victims = [process.pid, *(below if victim == "all" else ())]
    for number in victims:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    process.wait(timeout=300)


def _below(ancestor: int) -> dict[int, str]:
    """The processes that a process has started, and those that they have: their names by their numbers."""
    known = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, _, rest = stat.read_text().partition(" (")
            name, _, fields = rest.rpartition(") ")
            known[int(number)] = int(fields.split()[1]), name
    found = {ancestor}
    while more := {number for number, (parent, _) in known.items() if parent in found} - found:
        found |= more
    return {number: known[number][1] for number in found - {ancestor}}


def _begun(folder: Path) -> int:
    """How many micro-batches have begun."""
    return len(list((folder / "checkpoint" / "offsets").glob("[0-9]*")))


def _lines(mode: str, out: Path) -> list[str]:
    """The matches that were written."""
    if mode == "cli":
        return out.read_text().splitlines()
    if mode == "stream":
        return committed(out)
    return [line for file in sorted(out.glob("matches-*.ndjson")) for line in file.read_text().splitlines()]


def committed(folder: Path) -> list[str]:
    """The lines of a folder that Spark writes to: those of the files that count by its log."""
    logs = {path.name: path for path in (folder / "_spark_metadata").iterdir() if path.name[0].isdigit()}
    compact = max((int(n.partition(".")[0]) for n in logs if n.endswith(".compact")), default=-1)
    files: list[str] = []
    for name, path in logs.items():
        if name == f"{compact}.compact" or ("." not in name and int(name) > compact):
            files += [json.loads(line)["path"] for line in path.read_text().splitlines()[1:]]
    paths = [Path(unquote(urlsplit(file).path)) for file in files]
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
