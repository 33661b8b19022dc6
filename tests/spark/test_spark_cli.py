"""``spaseq run --engine spark``: mistakes before Spark starts, and runs that are broken off and go on."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import spaseq
from spaseq.cli import app
from spaseq.cli.running.cursor import Cursor, NotedWriter
from spaseq.engine.rejects import DeadLetterFile
from spaseq.results import Format, writer
from spaseq.results.writers._json import line_of
from spaseq.sources import BadEvent
from tests.spark.running import without_n
from tests.streams import NS, letters, matches, query

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from tests.spark.test_spark import quads, stocks  # noqa: E402  # after the skip

#: What breaks runs off, one after the other: Ctrl-C, a service manager, a crash.
SIGNALS = [signal.SIGINT, signal.SIGKILL, signal.SIGTERM] * 3

ENVIRONMENT = {
    **os.environ,
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

PAIRS = query("A ; B", head="CONSTRUCT { ?a :then ?b }")
FOUND = list(matches(PAIRS, letters("a1 b2 a3 b4 a5 b6")))


# --- mistakes -------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a query and a stream, where Spark must not start."""

    def no_session(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("spaseq.cli.running.spark.session", no_session)
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(query("A ; B"))
    Path("in.nq").write_text("")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments, "--engine", "spark"])


@pytest.mark.usefixtures("here")
def test_a_mistake_in_the_query_has_its_place() -> None:
    Path("q.rq").write_text(query("A ; B", gpms={"B": "FILTER(?bw > 1)"}))
    result = run("q.rq", "-s", "S=in.nq")
    assert result.exit_code == 2
    assert "q.rq:6:47: no GPM binds ?bw" in result.stderr
    assert "^" in result.stderr


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-s", "S=nowhere.nq"], 1, "nowhere.nq: no such file, folder or pattern"),
        (["-s", "S=-"], 1, "not an open file or a pipe"),
        (["-s", "S=in.nq?formt=nq"], 2, "unknown option 'formt'"),
        (["-s", "S=in.nq", "--idle", "5s"], 1, "--idle is for --engine local"),
        (
            ["-s", "S=in.nq", "--latency", "1ms", "--checkpoint", "cp", "-o", "out"],
            2,
            "may find other matches",
        ),
        (["-s", "S=in.nq", "--policy", "selective"], 2, "--policy is for --engine local"),
        (["-s", "S=in.nq", "--follow"], 1, "--follow reads bit by bit: say --checkpoint"),
        (["-s", "S=in.nq", "--checkpoint", "cp", "-f", "json", "-o", "out"], 2, "json is one document"),
    ],
)
def test_mistakes_in_the_call(arguments: list[str], status: int, said: str) -> None:
    result = run("q.rq", *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert said in result.stderr


# --- where an output has come to ------------------------------------------------------------------


def written(folder: Path, form: Format, batch: int, found: list[spaseq.Match], torn: bytes = b"") -> int:
    """A run that writes some matches of a micro-batch and dies; how many it found written already."""
    cursor = Cursor(folder / "cp", folder / "out", form)
    with cursor.open(folder / "out") as out:
        writing = NotedWriter(writer(form, spaseq.prepare(PAIRS), out), cursor, out)
        done = cursor.begin(batch)
        for match in found[done:]:
            writing.match(match)
        out.write(torn)
    return done


@pytest.mark.parametrize("form", [Format.NDJSON, Format.NQUADS, Format.TRIG])
def test_a_micro_batch_goes_on_where_its_output_was(tmp_path: Path, form: Format) -> None:
    assert written(tmp_path, form, 0, FOUND[:1], torn=b'{"start":') == 0
    assert written(tmp_path, form, 0, FOUND[:2]) == 1
    assert written(tmp_path, form, 0, FOUND[:2], torn=b"<") == 2
    assert written(tmp_path, form, 1, FOUND[2:]) == 0
    whole = io.BytesIO()
    with writer(form, spaseq.prepare(PAIRS), whole) as writing:
        for match in FOUND:
            writing.match(match)
    assert (tmp_path / "out").read_bytes() == whole.getvalue()


def test_a_head_is_written_once(tmp_path: Path) -> None:
    rows = query("A ; B")
    found = list(matches(rows, letters("a1 b2 a3 b4")))
    for batch, match in enumerate(found):
        cursor = Cursor(tmp_path, tmp_path / "out.csv", Format.CSV)
        with cursor.open(tmp_path / "out.csv") as out:
            writing = NotedWriter(writer("csv", spaseq.prepare(rows), out), cursor, out)
            cursor.begin(batch)
            writing.match(match)
            writing.close()
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("a")


def test_an_output_is_of_its_checkpoint(tmp_path: Path) -> None:
    written(tmp_path, Format.NDJSON, 0, FOUND)
    with pytest.raises(spaseq.SpaseqError, match=r"wrote to .*out: go on there"):
        Cursor(tmp_path / "cp", tmp_path / "other", Format.NDJSON)


def test_a_checkpoint_is_of_its_query(tmp_path: Path) -> None:
    """From its first micro-batch on: what was refused before that may be mended."""
    mistaken, query, other = PAIRS.replace("SEQ", "SEQ "), PAIRS, PAIRS.replace(";", ",")
    for text in (mistaken, query):
        cursor = Cursor(tmp_path, None, Format.NDJSON)
        cursor.require(text)
    assert cursor.begin(0) == 0
    Cursor(tmp_path, None, Format.NDJSON).require(query)
    with pytest.raises(spaseq.SpaseqError, match="is of another query: give each a checkpoint of its own"):
        Cursor(tmp_path, None, Format.NDJSON).require(other)


@contextmanager
def full_disk() -> Iterator[None]:
    """Nothing can be written to a file meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_run_that_dies_while_it_begins_leaves_the_cursor(tmp_path: Path) -> None:
    written(tmp_path, Format.NDJSON, 0, FOUND[:2])
    (tmp_path / "new").mkdir()
    with full_disk():
        for folder in (tmp_path / "cp", tmp_path / "new"):
            with pytest.raises(OSError, match="too large"):
                Cursor(folder, None, Format.NDJSON)
    assert Cursor(tmp_path / "new", None, Format.NDJSON).begin(0) == 0
    assert written(tmp_path, Format.NDJSON, 0, FOUND[:3]) == 2


def test_letters_count_as_rows(tmp_path: Path) -> None:
    cursor = Cursor(tmp_path, None, Format.TABLE)
    assert cursor.begin(0) == 0
    cursor.passed()
    assert Cursor(tmp_path, None, Format.TABLE).begin(0) == 1
    assert Cursor(tmp_path, None, Format.TABLE).begin(1) == 0


@contextmanager
def letters_in(folder: Path, name: str = "letters") -> Iterator[DeadLetterFile]:
    sink = DeadLetterFile(folder / name)
    with closing(sink):
        yield sink


def refused(folder: Path, row: int, *, noted: bool = True) -> None:
    """A run that writes a dead letter, and dies before or after that is noted."""
    with letters_in(folder) as sink:
        cursor = Cursor(folder / "cp", None, Format.TABLE, sink.file)
        assert cursor.begin(0) == row
        sink(BadEvent("s", str(row), "bad", ""))
        if noted:
            cursor.passed()


def test_a_letter_is_written_once(tmp_path: Path) -> None:
    """A run that dies before it is noted, as one under --strict does, writes it again in the same place."""
    with letters_in(tmp_path) as sink:
        sink(BadEvent("s", "before", "of another run", ""))
    refused(tmp_path, 0)
    for _ in range(2):
        refused(tmp_path, 1, noted=False)
    refused(tmp_path, 1)
    lines = (tmp_path / "letters").read_text().splitlines()
    assert [json.loads(line)["position"] for line in lines] == ["before", "0", "1"]


def test_letters_elsewhere_are_left_alone(tmp_path: Path) -> None:
    refused(tmp_path, 0)
    other = tmp_path / "other"
    other.write_text("something\n" * 100)
    with letters_in(tmp_path, "other") as sink:
        Cursor(tmp_path / "cp", None, Format.TABLE, sink.file)
    assert other.read_text() == "something\n" * 100


def test_a_match_that_becomes_a_letter_is_noted_with_it(tmp_path: Path) -> None:
    letter = BadEvent("s", "match 1", "the format cannot hold it", "")
    for is_noted in (False, True, True):
        with letters_in(tmp_path) as sink:
            cursor = Cursor(tmp_path / "cp", None, Format.TABLE, sink.file)
            if not cursor.begin(0):
                cursor.refused()
                sink(letter)
            if is_noted:
                cursor.note()
    assert (tmp_path / "letters").read_text().count("\n") == 1


def test_a_cursor_from_before_letters_were_noted_is_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"12345torn")
    (tmp_path / "output").write_bytes(struct.pack("<4q", 3, 2, 7, 5) + str(out).encode())
    cursor = Cursor(tmp_path, out, Format.NDJSON)
    assert (cursor.begin(3), cursor.matches) == (2, 7)
    cursor.open(out).close()
    assert out.read_bytes() == b"12345"
    with pytest.raises(spaseq.SpaseqError, match="wrote to"):
        Cursor(tmp_path, tmp_path / "other", Format.NDJSON)


# --- shapes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([], marks=pytest.mark.long, id="batch"),
        pytest.param(["--checkpoint", "cp"], marks=pytest.mark.slow, id="stream"),
    ],
)
def test_events_that_do_not_conform(tmp_path: Path, more: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The matches, letters and counts of a local run; windows begin with the first event that conforms."""
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(query("A ; B", "7 SECONDS TUMBLING"))
    Path("s.nq").write_text("".join(quads(i, "ab"[i // 3 % 2]) for i in range(9, 120)))
    Path("shapes.ttl").write_text(
        f"@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{NS}> . "
        ":Most sh:targetSubjectsOf :v ; sh:property [ sh:path :v ; sh:minExclusive 1 ; sh:message 'few' ] ."
    )
    given = ["run", "q.rq", "-s", "S=s.nq", "--shapes", "shapes.ttl", "-f", "ndjson"]
    here = CliRunner().invoke(app, [*given, "-o", "here", "--dead-letters", "dead here"])
    there = subprocess.run(
        [
            sys.executable,
            "-m",
            "spaseq",
            *given,
            "-o",
            "there",
            "--dead-letters",
            "dead",
            "--engine",
            "spark",
            *more,
        ],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (here.exit_code, there.returncode) == (0, 0), there.stderr
    lines = [sorted(Path(name).read_text().splitlines()) for name in ("here", "there")]
    assert lines[0] == lines[1]
    reasons = [
        sorted(json.loads(line)["reason"] for line in Path(name).read_text().splitlines())
        for name in ("dead here", "dead")
    ]
    assert reasons[0] == reasons[1]
    totals = [
        re.sub(r" in [\d.,]+ s|kept in .*", "", said.splitlines()[-1]) for said in (here.stderr, there.stderr)
    ]
    assert "; 30 not conforming: " in totals[0]
    assert totals[0].split("; ")[-1] == totals[1].split("; ")[-1]
    assert totals[0].split(",")[0] == totals[1].split(",")[0]
    assert len(lines[0]) > 5


# --- broken off -----------------------------------------------------------------------------------


#: What a run ends with on standard error, unless it is killed.
TOTALS = re.compile(rb"([\d,]+ events?, .*)?")


@pytest.mark.parametrize(
    "signals",
    [pytest.param(SIGNALS[:2], marks=pytest.mark.slow), pytest.param(SIGNALS, marks=pytest.mark.long)],
)
def test_broken_off_and_gone_on_with(tmp_path: Path, signals: Sequence[signal.Signals]) -> None:
    """Nothing is lost, nothing comes twice, and standard error has nothing but the totals.

    What was read to its end goes on with what was appended since: in the long run, since CI has
    ``test_a_stream_that_ended_goes_on`` for it. Other crashes are in ``test_spark_kills``.
    """
    count = 600 * len(signals)
    text, streams = stocks(tmp_path, count)
    (tmp_path / "q.rq").write_text(str(text))
    for number in signals:
        process = started(tmp_path)
        size = grown(process, tmp_path / "out", 0)
        time.sleep(0.5)
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == {signal.SIGINT: 0, signal.SIGTERM: 143}.get(number, -number)
        assert TOTALS.fullmatch(errors.strip()), errors
        assert size > 0
    appended = "".join(quads(i) for i in range(count, count + 30))
    for more in ("", appended) if len(signals) > 2 else (appended,):
        with (tmp_path / "trades.nq").open("a") as file:
            file.write(more)
        process = started(tmp_path)
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0
        assert TOTALS.fullmatch(errors.strip()), errors
    want = (line_of(match) for match in spaseq.run(text, streams))
    assert without_n((tmp_path / "out").read_text().splitlines()) == without_n(want)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param([], [rb"stage \d+: \d+ of \d+ tasks"], marks=pytest.mark.slow),
        pytest.param(
            ["--checkpoint", "cp"], [rb"watermark \d+", rb"batch \d+", rb"state"], marks=pytest.mark.long
        ),
    ],
)
def test_progress_on_a_terminal(tmp_path: Path, more: list[str], said: list[bytes]) -> None:
    """How far it is while it runs, and in the end what it has read and found."""
    text, streams = stocks(tmp_path, 400)
    (tmp_path / "q.rq").write_text(str(text))
    terminal, side = pty.openpty()
    given = ["run", "q.rq", "-s", "S=trades.nq", "-f", "ndjson", "-o", "out", "--engine", "spark", *more]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.spark.small_cli", *given],
        cwd=tmp_path,
        env=ENVIRONMENT | {"TERM": "xterm", "COLUMNS": "150"},
        stderr=side,
    ) as process:
        os.close(side)
        shown = b""
        with suppress(OSError):  # how the end of a terminal reads
            while block := os.read(terminal, 65536):
                shown += block
    os.close(terminal)
    assert process.returncode == 0, shown
    for one in said:
        assert re.search(one, shown), shown
    found = len(list(spaseq.run(text, streams)))
    assert re.search(rf"400 events  [\d,]+ events/s  {found} matches".encode(), shown), shown


def started(folder: Path) -> subprocess.Popen[bytes]:
    """The command, in a process group as a terminal makes one."""
    given = ["q.rq", "-s", "S=trades.nq", "-f", "ndjson", "-o", "out", "--checkpoint", "cp"]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.small_cli", "run", *given, "--engine", "spark"],
        cwd=folder,
        env=ENVIRONMENT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def grown(process: subprocess.Popen[bytes], path: Path, least: int) -> int:
    """Waits until a file is larger than it was; its size then, 0 if the process ends before."""
    before = path.stat().st_size if path.exists() else least
    while process.poll() is None:
        size = path.stat().st_size if path.exists() else 0
        if size > before:
            return size
        time.sleep(0.05)
    return 0
