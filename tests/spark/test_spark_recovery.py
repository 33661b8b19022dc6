"""A crash loses nothing and repeats nothing: processes killed at random, and started again.

In CI each is killed once, in the long profile 20 times, and so is what Spark's own sink of text writes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import settings

import spaseq
from spaseq.results.writers._json import line_of

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.errors import StreamingQueryException  # noqa: E402  # after the skip
from pyspark.sql import SparkSession  # noqa: E402

from spaseq.spark import drive, folder_sink, planned  # noqa: E402
from tests.spark.running import without_n  # noqa: E402
from tests.spark.test_spark import stocks  # noqa: E402

ROOT = Path(__file__).parents[2]
IS_LONG = (settings.default or settings()).max_examples > 1_000

#: How often the process is killed.
KILLS = {"stream": 20, "save": 20, "driver": 20} if IS_LONG else {"save": 1, "driver": 1}

#: So many events for each kill, that the stream does not end before: more than there are in the micro-batches
#: that a process can begin in the seconds that it has, see ``killed.EVERY``.
EVENTS = {"stream": 200, "save": 200, "driver": 400}

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def started(mode: str, folder: Path) -> subprocess.Popen[bytes]:
    """The process, and the JVM that it starts, in a group of their own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.killed", mode, str(folder)],
        cwd=ROOT,
        env={"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", **os.environ},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed_at_random(mode: str, folder: Path, kills: int, rng: random.Random) -> int:
    """Runs to the end of the stream, killed so often on the way; how often it was.

    A kill comes up to four seconds after the first micro-batch of a process has begun, which is some
    micro-batches later, in any of their steps. After the last one there is more of the stream to come.
    """
    done = 0
    while True:
        process = started(mode, folder)
        before = _begun(folder)
        try:
            if done == kills:
                assert process.wait(timeout=1_200) == 0
                assert _begun(folder) > before
                return done
            while process.poll() is None and _begun(folder) == before:
                time.sleep(0.05)
            try:
                assert process.wait(timeout=rng.uniform(0, 4)) == 0
                return done
            except subprocess.TimeoutExpired:
                done += 1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _begun(folder: Path) -> int:
    """How many micro-batches have begun."""
    return len(list((folder / "checkpoint" / "offsets").glob("[0-9]*")))


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


@pytest.mark.slow
@pytest.mark.timeout(3_600 if IS_LONG else 480)  # 20 kills take 20 sessions
@pytest.mark.parametrize("mode", KILLS)
def test_killed_and_started_again(tmp_path: Path, mode: str) -> None:
    """Nothing is lost, and nothing comes twice."""
    wanted = KILLS[mode]
    text, streams = stocks(tmp_path, EVENTS[mode] * wanted)
    (tmp_path / "query.rq").write_text(str(text))
    Path(str(streams["S"])).rename(tmp_path / "in.nq")
    seed = random.randrange(1 << 30) if IS_LONG else 7
    kills = killed_at_random(mode, tmp_path, wanted, random.Random(seed))
    assert kills == wanted, f"the stream ended after {kills} of {wanted} kills"
    if mode == "stream":
        lines = committed(tmp_path / "out")
    else:
        files = sorted((tmp_path / "out").glob("matches-*.ndjson"))
        lines = [line for file in files for line in file.read_text().splitlines()]
    want = [line_of(match) for match in spaseq.run(text, {"S": str(tmp_path / "in.nq")})]
    assert len(want) > 10 * wanted
    assert without_n(lines) == without_n(want), f"seed {seed}"


class _CrashError(Exception):
    pass


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_driver_hands_on_again_what_it_had_committed(spark: SparkSession, tmp_path: Path) -> None:
    text, streams = stocks(tmp_path, 120)
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    write = folder_sink(out, text)
    given: list[int] = []

    def crashing(number: int, answers: Sequence[tuple[str, str]]) -> None:
        given.append(number)
        if number == 1 and given.count(1) == 1:
            raise _CrashError
        write(number, answers)

    def run() -> None:
        plan = planned(spark, text, streams, checkpoint=checkpoint, most_bytes=20_000, piece_bytes=10_000)
        running = drive(plan, checkpoint, crashing)
        try:
            running.processAllAvailable()
        finally:
            running.stop()

    with pytest.raises(StreamingQueryException):
        run()
    run()
    assert given.count(1) == 2
    lines = [line for file in sorted(out.glob("matches-*")) for line in file.read_text().splitlines()]
    assert without_n(lines) == without_n([line_of(match) for match in spaseq.run(text, streams)])
