"""``spaseq run --state``, killed at random points and started again: its output is what one run writes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import spaseq as package
from spaseq.engine.durable import summary

COMMAND = (sys.executable, "-c", "from spaseq.cli import main; main()")
PATIENCE = 300.0

_HEAD = "PREFIX : <http://example.org/>\n"
_S = "PARTITION BY ?c FROM STREAM S <http://example.org/s>"
QUERIES = {
    "negation.rq": f"""{_HEAD} SELECT ?c ?p WITHIN 30 SECONDS SLIDING {_S}
        WHERE {{ SEQ(A ; !B)
          DEFINE GPM A ON S {{ ?c :price ?p . FILTER(?p > 80) }}
          DEFINE GPM B ON S {{ ?c :price ?q . FILTER(?q < 50) }} }}""",
    "kleene.rq": f"""{_HEAD} SELECT ?c ?p WITHIN 200 SECONDS SLIDING {_S}
        WHERE {{ SEQ(A , B+[,] , C)
          DEFINE GPM A ON S {{ ?c :price ?p . FILTER(?p > 70) }}
          DEFINE GPM B ON S {{ ?c :price ?q . FILTER(?q < ?p) }}
          DEFINE GPM C ON S {{ ?c :price ?r . FILTER(?r > 90) }} }}""",
    "made.rq": f"""{_HEAD} REGISTER STREAM :peaks AS CONSTRUCT {{ ?c :peak ?p }}
        WITHIN 30 SECONDS SLIDING {_S}
        WHERE {{ SEQ(A ; B)
          DEFINE GPM A ON S {{ ?c :price ?p . FILTER(?p > 95) }}
          DEFINE GPM B ON S {{ ?c :price ?q . FILTER(?q > 90) }} }}""",
    "consume.rq": f"""{_HEAD} SELECT ?c ?p ?q WITHIN 100 SECONDS SLIDING {_S}
        WHERE {{ SEQ(A : B)
          DEFINE GPM A ON S {{ ?c :price ?p . FILTER(?p > 70) }}
          DEFINE GPM B ON S {{ ?c :price ?q . FILTER(?q > 85) }} }} CONSUME ANY""",
    "skip.rq": f"""{_HEAD} SELECT ?c ?p WITHIN 150 SECONDS SLIDING {_S}
        WHERE {{ SEQ(A , B+[,] , C)
          DEFINE GPM A ON S {{ ?c :price ?p . FILTER(?p > 50) }}
          DEFINE GPM B ON S {{ ?c :price ?q . FILTER(?q > 40) }}
          DEFINE GPM C ON S {{ ?c :price ?r . FILTER(?r < 50) }} }} AFTER MATCH SKIP PAST LAST EVENT""",
    "counts.rq": f"""{_HEAD} SELECT ?c ?p ?q WITHIN 60 EVENTS SLIDING {_S}
        WHERE {{ SEQ(A , B)
          DEFINE GPM A ON S {{ ?c :price ?p . FILTER(?p > 95) }}
          DEFINE GPM B ON S {{ ?c :price ?q . FILTER(?q > 90) }} }}""",
    "reads.rq": f"""{_HEAD} SELECT ?c ?d WITHIN 20 SECONDS SLIDING FROM STREAM P :peaks
        WHERE {{ SEQ(A , B)
          DEFINE GPM A ON P {{ ?c :peak ?p }} DEFINE GPM B ON P {{ ?d :peak ?q }} }}""",
}


def _events(count: int) -> str:
    rng = random.Random(1)
    return "".join(
        f'<urn:c{rng.randrange(50)}> <http://example.org/price> "{rng.randrange(100)}"'
        f"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g{i}> .\n"
        f"<urn:g{i}> <http://www.w3.org/ns/prov#generatedAtTime> "
        f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        for i in range(count)
    )


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(package.__file__).parents[1])}
    return subprocess.Popen(
        [*COMMAND, "run", *QUERIES, "-f", "ndjson", "--no-why", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors.decode()


def _kills(tmp_path: Path, times: int, events: int = 40_000) -> None:
    for name, text in QUERIES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "ticks").mkdir()
    text = _events(events).splitlines(keepends=True)
    for number in range(20):  # a file is a step at least
        (tmp_path / "ticks" / f"{number:02}.nq").write_text(
            "".join(text[number * events // 10 : (number + 1) * events // 10])
        )
    _end(_start(tmp_path, "-s", "S=ticks", "-o", "whole.ndjson"))
    whole = (tmp_path / "whole.ndjson").read_bytes()
    assert whole.count(b"\n") > events // 40
    rng = random.Random(7)
    killed, runs = 0, 0
    while killed < times:
        runs += 1
        killed += _killed_until_done(tmp_path, rng, times - killed)
        assert (tmp_path / "out.ndjson").read_bytes() == whole, f"run {runs}"
        said = summary(tmp_path / "s.state")
        # No log may be cut behind a query whose window counts events.
        assert {query.name for query in said.queries if query.keeps is not None} <= {"counts"}
        assert said.events >= events
        for path in tmp_path.glob("*.state*"):
            path.unlink()
        (tmp_path / "out.ndjson").unlink()


def _killed_until_done(folder: Path, rng: random.Random, most: int) -> int:
    """A run that is killed, at most so many times, and started again until it has ended; how often it was."""
    arguments = ("-s", "S=ticks", "-o", "out.ndjson", "--state", "s.state", "--commit-every", "1")
    killed = 0
    while killed < most:
        process = _start(folder, *arguments)
        try:
            process.wait(timeout=rng.uniform(0.2, 8.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, -signal.SIGKILL)
        if process.returncode == 0:
            return killed
        killed += 1
    _end(_start(folder, *arguments))
    return killed


def test_killed_once(tmp_path: Path) -> None:
    _kills(tmp_path, 1, events=4_000)


@pytest.mark.slow
def test_killed_a_few_times(tmp_path: Path) -> None:
    _kills(tmp_path, 5)


@pytest.mark.long
def test_killed_200_times(tmp_path: Path) -> None:
    _kills(tmp_path, 200)


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize("full", ["s.state", "out.ndjson"])
def test_a_full_disk(tmp_path: Path, full: str) -> None:
    """The state, or the output, is on a disk that becomes full; with room, the same command goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=150k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    try:
        for name, text in QUERIES.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "ticks.nq").write_text(_events(20_000))
        places = {
            name: str((disk if name == full else tmp_path) / name) for name in ("s.state", "out.ndjson")
        }
        arguments = ("-o", places["out.ndjson"], "--state", places["s.state"], "--commit-every", "1")
        _end(_start(tmp_path, "-s", "S=ticks.nq", "-o", "whole.ndjson"))
        process = _start(tmp_path, "-s", "S=ticks.nq", *arguments)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1, errors.decode()
        assert full in errors.decode()
        assert "Traceback" not in errors.decode()
        subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True, timeout=PATIENCE)
        _end(_start(tmp_path, "-s", "S=ticks.nq", *arguments))
        assert Path(places["out.ndjson"]).read_bytes() == (tmp_path / "whole.ndjson").read_bytes()
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=PATIENCE)
