"""The command line as a process of its own: slow pipes, signals, readers that go away, terminals."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

import spaseq as package
from spaseq.cli.console import Interrupts, Terminated

from .streams import before_totals
from .test_cli import CONSTRUCT, EX, QUERY, STREAM, event

COMMAND = (sys.executable, "-c", "from spaseq.cli import main; main()")
PATIENCE = 30.0


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A working directory with a query and a stream, and a plain environment."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "construct.rq").write_text(CONSTRUCT)
    (tmp_path / "s.nq").write_text(STREAM)
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return plain | {"PYTHONPATH": str(Path(package.__file__).parents[1]), "TERM": "xterm", "COLUMNS": "100"}


class Slow:
    """``spaseq run`` on a pipe that stays open."""

    def __init__(self, environment: dict[str, str], *arguments: str, query: str = "q.rq") -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "run", query, "-s", "S1=-?format=nq", *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self._out = self.process.stdout
        self.seen = b""

    def feed(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def read_until(self, text: bytes) -> None:
        """Wait until standard output has this text."""
        os.set_blocking(self._out.fileno(), False)
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            assert self.process.poll() is None, self.seen
            self.seen += self._out.read() or b""
            time.sleep(0.01)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> tuple[str, str, int]:
        """Ctrl-C or another signal, and what ``rest`` gives."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        return self.rest()

    def rest(self) -> tuple[str, str, int]:
        """What an ended process wrote, what it said, and its exit status."""
        os.set_blocking(self._out.fileno(), True)
        assert self.process.stderr is not None
        return (
            (self.seen + self._out.read()).decode(),
            self.process.stderr.read().decode(),
            self.process.returncode,
        )

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def slow(environment: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Slow]:
    name, query = getattr(request, "param", ("table", "q.rq"))
    run = Slow(environment, "-f", name, query=query)
    yield run
    run.stop()


@pytest.mark.few(0, ci=2)
@pytest.mark.parametrize(
    "slow",
    [(name, "q.rq") for name in ("table", "json", "xml", "csv", "tsv", "ndjson")]
    + [(name, "construct.rq") for name in ("trig", "nquads")],
    indirect=True,
    ids=lambda pair: str(pair[0]),
)
def test_ctrl_c_ends_with_what_was_found(slow: Slow, request: pytest.FixtureRequest) -> None:
    slow.feed(STREAM)
    slow.read_until(b"20")  # the first match, long before the pipe is closed
    out, err, status = slow.interrupt()
    assert (before_totals(err), status) == ("", 0)
    match request.node.callspec.id:
        case "json":
            assert json.loads(out)["results"]["bindings"][0]["w"]["value"] == "20"
        case "xml":
            assert len(ElementTree.fromstring(out)) == 2
        case "ndjson":
            assert json.loads(out.splitlines()[0])["end"] == 2
        case _:
            assert out.endswith("\n")


@pytest.mark.parametrize(
    "slow", [("json", "q.rq"), ("trig", "construct.rq")], indirect=True, ids=lambda p: p[0]
)
@pytest.mark.slow
def test_sigterm_ends_with_what_was_found(slow: Slow, request: pytest.FixtureRequest) -> None:
    slow.feed(STREAM)
    slow.read_until(b"20")
    out, err, status = slow.interrupt(signal.SIGTERM)
    assert (before_totals(err), status) == ("", 143)
    if request.node.callspec.id == "json":
        assert json.loads(out)["results"]["bindings"][0]["w"]["value"] == "20"
    assert out.endswith("\n")


@pytest.mark.slow
def test_sigkill_leaves_whole_lines_and_nothing_else(environment: dict[str, str]) -> None:
    """Only the last line may be torn, and a later run is none the wiser."""
    slow = Slow(environment, "-f", "ndjson", "-o", "out.ndjson", "--dead-letters", "bad.ndjson")
    try:
        before = {*os.listdir()} | {"out.ndjson", "bad.ndjson"}
        deadline = time.monotonic() + PATIENCE
        for n in range(0, 100_000, 20):
            slow.feed("nonsense\n" + "".join(event(t, t, "vw"[t % 2], t) for t in range(n, n + 20)))
            if Path("out.ndjson").exists() and Path("out.ndjson").stat().st_size > 100_000:
                break
            assert time.monotonic() < deadline
        slow.process.kill()
        assert slow.process.wait(PATIENCE) == -signal.SIGKILL
    finally:
        slow.stop()
    assert {*os.listdir()} == before
    for name in ("out.ndjson", "bad.ndjson"):
        *whole, _ = Path(name).read_text().split("\n")
        assert len(whole) > 10
        assert all(isinstance(json.loads(line), dict) for line in whole)
    again = [*COMMAND, "run", "q.rq", "-s", "S1=s.nq", "-f", "ndjson", "-o", "out.ndjson"]
    subprocess.run(again, env=environment, check=True)
    assert len(Path("out.ndjson").read_text().splitlines()) == 2


#: Finds terms by compiled kernels, those that take the least time to compile.
FIND_TERMS = """
from pyoxigraph import NamedNode
from spaseq.terms.dictionary import Dictionary
terms = Dictionary()
terms.table()
print(terms.intern(NamedNode("x:a")), terms.intern(NamedNode("x:b")), terms.find(NamedNode("x:a")))
"""


@pytest.mark.slow
def test_sigkill_while_kernels_are_compiled_leaves_a_good_cache(environment: dict[str, str]) -> None:
    # What other tests compiled stands beside the package, and would be read from there.
    shutil.copytree(
        Path(package.__file__).parent, "fresh/spaseq", ignore=shutil.ignore_patterns("__pycache__")
    )
    cold = environment | {
        "NUMBA_CACHE_DIR": str(Path("cache").absolute()),
        "PYTHONPATH": str(Path("fresh").absolute()),
    }
    first = subprocess.Popen([sys.executable, "-c", FIND_TERMS], env=cold, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 4 * PATIENCE
    while not any(Path("cache").rglob("*.nb[ic]*")):  # the first kernel is being written
        assert time.monotonic() < deadline
        assert first.poll() is None
        time.sleep(0.002)
    first.kill()
    first.communicate()
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", FIND_TERMS], env=cold, capture_output=True, text=True)
        assert (done.stdout, done.stderr, done.returncode) == ("1 2 1\n", "", 0)


@pytest.mark.parametrize(
    "idle", [(), ("--idle", "100ms")], ids=["", "idle"]
)  # idle streams are read by threads
@pytest.mark.slow
def test_ctrl_c_before_anything_was_found(environment: dict[str, str], idle: tuple[str, ...]) -> None:
    slow = Slow(environment, "-f", "json", *idle)
    try:
        doubtful = '"{}"^^<http://www.w3.org/2001/XMLSchema#date>'
        slow.feed(event(0, doubtful.format(1), "v", 1) + event(1, doubtful.format(2), "v", 2))
        assert slow.process.stderr is not None
        assert slow.process.stderr.readline().startswith(b"warning: ")  # so it has read them
        out, err, status = slow.interrupt()
    finally:
        slow.stop()
    assert json.loads(out)["results"]["bindings"] == []
    # How many events came before the interrupt is a matter of milliseconds; the reason depends on it.
    reason = before_totals(err)
    assert reason == "" or (reason.startswith("no match: ") and reason.count("\n") == 1)
    assert status == 0


@pytest.mark.parametrize(("number", "raised"), [("SIGINT", KeyboardInterrupt), ("SIGTERM", Terminated)])
@pytest.mark.parametrize(("presses", "written"), [(1, ["begun", "done"]), (2, ["begun"])])
def test_interrupts_wait_for_a_write_once(
    number: str, raised: type[KeyboardInterrupt], presses: int, written: list[str]
) -> None:
    steps: list[str] = []

    def write(interrupts: Interrupts) -> None:
        with interrupts.held():
            steps.append("begun")
            for _ in range(presses):
                signal.raise_signal(signal.Signals[number])
            steps.append("done")
        steps.append("went on")

    before = signal.getsignal(signal.Signals[number])
    with Interrupts() as interrupts, pytest.raises(raised):
        write(interrupts)
    assert steps == written
    assert signal.getsignal(signal.Signals[number]) is before


class Finalized:
    """Is interrupted while it is finalized, as what py4j holds may be."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize(
    ("name", "raised"), [("SIGINT", KeyboardInterrupt), ("SIGTERM", Terminated)], ids=["INT", "TERM"]
)
def test_an_interrupt_in_a_finalizer_is_not_lost(
    name: str, raised: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    steps = []

    def finalize() -> None:
        Finalized(signal.Signals[name])
        steps.append("went on")
        time.sleep(PATIENCE)
        steps.append("waited")

    hook = sys.unraisablehook
    with pytest.raises(raised), Interrupts():
        finalize()
    assert steps == ["went on"]
    assert sys.unraisablehook is hook
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("idle", [(), ("--idle", "100ms")], ids=["", "idle"])
@pytest.mark.slow
def test_a_run_that_wants_no_more_ends_although_its_stream_does_not(
    environment: dict[str, str], idle: tuple[str, ...]
) -> None:
    Path("first.rq").write_text(f"{QUERY} LIMIT 1")
    slow = Slow(environment, "-f", "csv", *idle, query="first.rq")
    try:
        slow.feed(STREAM)
        slow.process.wait(PATIENCE)
        out, err, status = slow.rest()
    finally:
        slow.stop()
    assert out.splitlines() == ["x,v,w", f"{EX}x,10,20"]
    assert (before_totals(err), status) == ("", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table", "json", "ndjson", "csv"])
def test_a_reader_that_goes_away_ends_the_run_quietly(environment: dict[str, str], name: str) -> None:
    """As with ``| head -n 1``: more is found than a pipe holds."""
    Path("many.nq").write_text("".join(event(n, n, "vw"[n % 2], n) for n in range(8_000)))
    run = subprocess.Popen(
        [*COMMAND, "run", "q.rq", "-s", "S1=many.nq", "-f", name],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdout is not None
    assert run.stderr is not None
    assert run.stdout.readline()
    run.stdout.close()
    assert run.wait(PATIENCE) == 0
    assert before_totals(run.stderr.read().decode()) == ""
    run.stderr.close()


def on_a_terminal(environment: dict[str, str], *arguments: str) -> tuple[bytes, bytes]:
    """What a command writes to standard output, a pipe, and to standard error, a terminal."""
    terminal, side = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], env=environment, stdout=subprocess.PIPE, stderr=side
    ) as process:
        os.close(side)
        shown = b""
        try:
            while block := os.read(terminal, 65536):
                shown += block
        except OSError:  # how the end of a terminal reads
            pass
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(terminal)
    return out, shown


@pytest.mark.slow
def test_progress_is_shown_on_terminals_only(environment: dict[str, str]) -> None:
    out, shown = on_a_terminal(environment, "run", "q.rq", "-s", "S1=s.nq", "-f", "csv")
    assert b"4 events" in shown
    assert b"2 matches" in shown
    assert b"watermark 4" in shown
    assert b"\x1b" not in out
    done = subprocess.run(
        [*COMMAND, "run", "q.rq", "-s", "S1=s.nq"], env=environment, capture_output=True, check=True
    )
    assert before_totals(done.stderr.decode()) == ""


@pytest.mark.slow
def test_errors_are_coloured_on_terminals_only(environment: dict[str, str]) -> None:
    _, shown = on_a_terminal(environment, "run", "q.rq")
    assert b"\x1b[31merror:\x1b[0m no source" in shown
    piped = subprocess.run([*COMMAND, "run", "q.rq"], env=environment, capture_output=True, check=False)
    assert piped.stderr.startswith(b"error: no source")
    assert piped.returncode == 2


@pytest.mark.slow
def test_a_missing_source_shows_no_traceback(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*COMMAND, "run", "q.rq", "-s", "S1=none.nq"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: none.nq")
    assert EX not in done.stderr


def test_the_package_runs_as_a_module() -> None:
    """Where scripts are on no path: what pip and others do."""
    run = subprocess.run(
        [sys.executable, "-m", "spaseq", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.split()[-1] == package.__version__
    typo = subprocess.run([sys.executable, "-m", "spaseq", "ruun"], capture_output=True, text=True)
    assert typo.returncode == 2
    assert "Did you mean 'run'?" in typo.stderr
