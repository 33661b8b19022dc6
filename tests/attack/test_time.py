"""Time: exact over 64 bits, in every form in which it is given, and passing where no event says so."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import spaseq
from spaseq.cli import app
from spaseq.events import Clock
from spaseq.spark.stages._job import END_MS, milliseconds, reached
from tests.spark.stages import Cluster, comparable, pushed
from tests.streams import NS, events_of, letters, query
from tests.test_cli_process import Slow, environment

__all__ = ["environment"]  # a fixture

XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"

#: The ends of 64 bits, those of doubles, and nanoseconds of our days.
BASES = [-(2**63), -(2**53), 0, 2**53 - 5, 1_700_000_000_000_000_000, 2**62, 2**63 - 1_200_000]

#: A window, and what it holds of `a b` and `a … b`, each two events so far apart.
STEPS = [1, 7, 1_000, 99_999]


def graph(kind: str) -> str:
    return f"<{NS}e> a <{NS}{kind}> ; <{NS}v> 1 ."


def nquads(kind: str, name: str, time: str, datatype: str = "integer") -> str:
    return (
        f"<{NS}e> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{kind}> <{NS}{name}> .\n"
        f'<{NS}e> <{NS}v> "1"^^<{XSD}integer> <{NS}{name}> .\n'
        f'<{NS}{name}> <{PROV}> "{time}"^^<{XSD}{datatype}> .\n'
    )


# --- 64 bits ------------------------------------------------------------------------------------


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.sampled_from([0, 1, 2, 1_000, 10**6]), min_size=1, max_size=12),
    st.integers(1, 5),
)
@example(1_700_000_000_000_000_000, [1] * 12, 5)
@example(2**53, [1] * 4, 2)
@settings(max_examples=60, deadline=None)
def test_ticks_in_order_are_never_late(base: int, steps: list[int], size: int) -> None:
    times = [time for time in (base + sum(steps[:i]) for i in range(len(steps))) if time < 2**63]
    engine = spaseq.Engine(strict=True)
    handle = engine.register(query("A", "1 SECONDS"))
    for time in times:
        engine.push(NS + "S", graph("a"), time)
    engine.close()
    assert [match.start for match in handle.matches()] == times
    # And in batches, of so many blocks of a file.
    reader = _Blocks([nquads("a", f"e{i}", str(time)).encode() for i, time in enumerate(times)], size)
    source = spaseq.Source(NS + "S", reader, spaseq.SourceOptions(format="nq"))  # type: ignore[arg-type]
    with spaseq.Engine(strict=True) as engine:
        handle = engine.register(query("A", "1 SECONDS"))
        engine.feed(source)
    assert [match.start for match in handle.matches()] == times


class _Blocks:
    """A file that gives so many events at a time."""

    name = "blocks"

    def __init__(self, events: list[bytes], size: int) -> None:
        self._blocks = [b"".join(events[i : i + size]) for i in range(0, len(events), size)]

    def read(self, _: int = -1) -> bytes:
        return self._blocks.pop(0) if self._blocks else b""

    read1 = read


@given(st.sampled_from(BASES), st.integers(0, 3_000), st.lists(st.integers(0, 3_000), max_size=20))
@example(1_700_000_000_000_000_000, 0, [1, 0, 2])
@settings(max_examples=60, deadline=None)
def test_exactly_those_before_the_watermark_are_late(base: int, lateness: int, offsets: list[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        engine = spaseq.Engine(lateness=timedelta(seconds=lateness))
        handle = engine.register(query("A", "1 SECONDS"))
        newest, kept, late = None, [], 0
        for time in (base + offset for offset in offsets):
            engine.push(NS + "S", graph("a"), time)
            if newest is not None and time < newest - lateness:
                late += 1
            else:
                kept.append(time)
            newest = time if newest is None else max(newest, time)
            assert engine.watermark == max(newest - lateness, -(2**63))
        engine.close()
    assert engine.late == late
    assert [match.start for match in handle.matches()] == sorted(kept)


@pytest.mark.filterwarnings("ignore:.*TUMBLING windows begin and end anywhere")
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("window", ["10 SECONDS SLIDING", "10 SECONDS", "1000000 SECONDS SLIDING"])
@pytest.mark.parametrize(
    ("matcher", "sequence"),
    [
        ("reference", "A ; B"),
        ("interpreter", "A ; B"),
        ("nfa", "A ; B"),
        ("nfa", "A ; !C"),
        ("interpreter", "A ; !C"),
        ("tecs", "A : B"),
        ("lazy", "A : B"),
        ("tree", "A : B"),
        ("kmp", "A , B"),
    ],
)
def test_windows_anywhere(matcher: str, sequence: str, window: str, base: int) -> None:
    """What is found depends on how far events are apart, and not on where."""
    answers = []
    for start in (base, 0):
        engine = spaseq.Engine(matcher=matcher)
        handle = engine.register(query(sequence, window))
        for offset, kind in [(0, "a"), (3, "b"), (9, "a"), (20, "b"), (21, "a"), (30, "b"), (1_100_000, "b")]:
            engine.push(NS + "S", graph(kind), start + offset, name=f"{NS}{kind}{offset}")
        engine.close()
        answers.append([(events_of(match), match.end - start) for match in handle.matches()])
    assert answers[0] == answers[1]
    assert answers[0]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10_000))
@example(2**52 - 1, 2)
@example(-(2**52), 1)
@example(2**63 - 10_001, 10_000)
def test_sparks_watermark_has_room_for_all_ticks(time: int, more: int) -> None:
    """None is the end, none comes before an earlier one, and nothing is reached before it was said."""
    said = milliseconds(time, Clock.TICKS)
    assert -END_MS < said < END_MS
    assert said <= milliseconds(min(time + more, 2**63 - 1), Clock.TICKS)
    assert reached(said, Clock.TICKS) <= time < reached(said + 1, Clock.TICKS)


@pytest.mark.parametrize("base", [0, 1_700_000_000_000_000_000, 2**63 - 200])
@pytest.mark.parametrize("cold", [False, True])
def test_sparks_stages_anywhere(base: int, cold: bool) -> None:
    text = query("A ; B", "10 SECONDS SLIDING")
    events = letters(" ".join(f"{kind}{base + at}=1" for at, kind in enumerate("abaabxbabb" * 10)))
    found = Cluster(sizes=(7, 1, 30), cold=cold, matcher="interpreter").run(text, events)
    assert comparable(found) == comparable(pushed(text, events))
    assert len(found) > 30


# --- what push takes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (7, 7),
        (np.int64(7), 7),
        (np.uint8(7), 7),
        (-(2**63), -(2**63)),
        (2**63 - 1, 2**63 - 1),
        (np.uint64(2**63 - 1), 2**63 - 1),
        (datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 1, 22, tzinfo=UTC)),
        (pd.Timestamp("2026-01-02T03:04:05.123456789Z"), datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        (pd.Timestamp("2026-01-02"), datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_times_that_are_taken(time: object, shown: object) -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    engine.push(NS + "S", graph("a"), time)  # type: ignore[arg-type]
    (match,) = handle.matches()
    assert match.start == shown
    assert type(match.start) in (int, datetime)
    engine.advance(time)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "time",
    [
        True, np.bool_(True), 1.0, np.float64(1), "2026-01-01", None, 2**63, -(2**63) - 1, np.uint64(2**63),
        np.datetime64("2026-01-01"), np.timedelta64(5), timedelta(1), datetime(2026, 1, 1).date(), pd.NaT,
    ],
    ids=repr,
)  # fmt: skip
def test_times_that_are_refused(time: object) -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    for call in (lambda: engine.push(NS + "S", graph("a"), time), lambda: engine.advance(time)):  # type: ignore[arg-type]
        with pytest.raises(spaseq.EngineError, match=r"a time is a datetime|64 bits|NaT"):
            call()
    assert (engine.events, engine.bad, list(handle.matches())) == (0, 0, [])


@pytest.mark.parametrize("option", ["lateness", "idle"])
@pytest.mark.parametrize("value", [timedelta(-1), 5, "5s"])
def test_durations_that_are_refused(option: str, value: object) -> None:
    with pytest.raises(spaseq.EngineError, match=f"{option}=.* timedelta that is not negative"):
        spaseq.Engine(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("format_", ["nq", "trig"])
def test_an_ill_formed_datetime_is_malformed(tmp_path: Path, format_: str) -> None:
    path = tmp_path / f"s.{format_}"
    good = nquads("a", "good", "2008-02-01T09:13:00", "dateTime")
    bad = nquads("a", "bad", "200802010913", "dateTime")
    path.write_text(bad + good if format_ == "nq" else "".join(map(_as_trig, (bad, good))))
    with spaseq.Engine(dead_letters=(letters := []).append) as engine:
        handle = engine.register(query("A"))
        engine.feed(spaseq.Source(NS + "S", path))
    assert [match.start for match in handle.matches()] == [datetime(2008, 2, 1, 9, 13, tzinfo=UTC)]
    assert ["ill-formed: '200802010913' is not valid as dateTime" in letter.reason for letter in letters] == [
        True
    ]


def _as_trig(event: str) -> str:
    *inside, about = event.strip().split("\n")
    name = inside[0].split()[3]
    triples = "\n".join(f"{line.rsplit(name, 1)[0]}." for line in inside)
    return f"{name} {{ {triples} }}\n{about}\n"


# --- nobody is silent ---------------------------------------------------------------------------


def test_bad_and_late_events_of_a_run_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    events = [("one", "5"), ("two", "x"), ("three", "1"), ("four", "y"), ("five", "2")]
    path.write_text("".join(nquads("a", name, time) for name, time in events))
    with pytest.warns(spaseq.SpaseqWarning) as warned:
        assert len(list(spaseq.run(query("A"), {"S": path}))) == 1
    texts = [str(warning.message) for warning in warned]
    assert len(texts) == 3
    assert "a bad event is left out: its time is ill-formed" in texts[0] or "its time" in texts[0]
    assert "a late event is left out: late: its time 1 is before" in texts[1]
    assert texts[2].startswith("2 bad and 2 late events were left out (engine.rejected has the newest)")


# --- time without events ------------------------------------------------------------------------


def test_a_not_followed_by_b_on_a_silent_stream() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A ; !B", "10 SECONDS SLIDING"))
    engine.push(NS + "S", graph("a"), 1, name=f"{NS}a1")
    engine.advance(11)
    assert list(handle.matches()) == []
    engine.advance(12)
    assert [events_of(match) for match in handle.matches()] == ["a1"]
    assert engine.watermark == 12
    engine.push(NS + "S", graph("a"), 12, name=f"{NS}a12")
    with pytest.warns(spaseq.SpaseqWarning, match="late: its time 11 is before the watermark, 12"):
        engine.push(NS + "S", graph("a"), 11)
    engine.advance(5)  # nothing new
    assert engine.watermark == 12


def test_what_advance_promises_needs_no_lateness() -> None:
    engine = spaseq.Engine(lateness=timedelta(seconds=100))
    handle = engine.register(query("A ; !B", "10 SECONDS SLIDING"))
    engine.push(NS + "S", graph("a"), 50, name=f"{NS}a50")
    engine.push(NS + "S", graph("a"), 40, name=f"{NS}a40")
    engine.advance(51)
    assert [events_of(match) for match in handle.matches()] == ["a40"]
    engine.advance(61)
    assert [events_of(match) for match in handle.matches()] == ["a50"]


def test_advance_before_the_first_event() -> None:
    engine = spaseq.Engine()
    engine.register(query("A"))
    engine.advance(10)
    engine.advance(datetime(2026, 1, 1))  # of the other clock
    with pytest.warns(spaseq.SpaseqWarning, match="late"):
        engine.push(NS + "S", graph("a"), 9)
    engine.push(NS + "S", graph("a"), 10)
    assert (engine.late, engine.watermark) == (1, 10)


def test_advance_of_one_stream() -> None:
    engine = spaseq.Engine()
    handles = {name: engine.register(query("A ; !B", "9 SECONDS SLIDING", streams=[name])) for name in "ST"}
    for name in "ST":
        engine.push(NS + name, graph("a"), 1)
    engine.advance(100, NS + "S")
    assert [len(list(handle.matches())) for handle in handles.values()] == [1, 0]
    engine.advance(100)
    assert len(list(handles["T"].matches())) == 1


SHORT = ["A ; !C WITHIN 3 SECONDS", "A : !C WITHIN 3 SECONDS"]
PREFERRED = ["(A ; B+) WITHIN 3 SECONDS", "A ; (B+ WITHIN 3 SECONDS)", *SHORT]
AFTER = ["AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH SKIP TO NEXT EVENT"]


@pytest.mark.parametrize("matcher", [None, "reference", "interpreter", "nfa"])
@pytest.mark.parametrize("window", ["40 EVENTS SLIDING", "40 SECONDS SLIDING"])
@pytest.mark.few(1, ci=3)
def test_what_a_bound_of_time_decides_waits_for_no_event(matcher: str | None, window: str) -> None:
    """Whatever the window counts: time decides it, by events of other partitions and by ``advance``."""
    by_skip = matcher not in ("interpreter",)
    cases = [(s, "") for s in SHORT if matcher != "nfa"]  # has them without SKIP by tables
    cases += [(s, skip) for s in PREFERRED for skip in AFTER if by_skip]
    for partition in ["", "PARTITION BY ?x"]:
        for sequence, skip in cases:
            names = re.findall(r"\b[ABC]\b", sequence)
            gpms = " ".join(f"DEFINE GPM {name} ON S {{ ?x :{name.lower()} ?v{name} }}" for name in names)
            engine = spaseq.Engine() if matcher is None else spaseq.Engine(matcher=matcher)
            handle = engine.register(
                f"""PREFIX : <{NS}> SELECT * WITHIN {window} {partition} FROM STREAM S <{NS}S>
                WHERE {{ SEQ({sequence}) {gpms} }} {skip}"""
            )
            for time, (who, kind) in enumerate([("x", "a"), ("x", "b"), ("y", "b"), ("y", "d")]):
                engine.push(NS + "S", f"<{NS}{who}> <{NS}{kind}> 1 .", time)
            assert list(handle.matches()) == [], (sequence, skip, partition)
            # What began at 0 or 1 may go on until 3 or 4.
            due = 4 + sequence.startswith("A ; (B+")
            for time in range(4, due + 1):
                assert list(handle.matches()) == [], (sequence, skip, partition, time)
                engine.advance(time)
            assert [match.start for match in handle.matches()] == [0], (sequence, skip, partition)


def test_advance_moves_derived_streams_on() -> None:
    """What an alarm's silence completes is an event of its stream, and in time there."""
    first = query(
        "A ; !B",
        "10 SECONDS SLIDING",
        head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?a a :c ; :v 2 }}",
    )
    engine = spaseq.Engine()
    engine.register(first)
    handle = engine.register(query("C ; !B", "10 SECONDS SLIDING", streams=["T"]))
    engine.push(NS + "S", graph("a"), 1)
    engine.advance(12)
    assert (engine.late, [match.start for match in handle.matches()]) == (0, [1])


def test_a_maker_that_is_over_holds_nobody_back() -> None:
    text = query("A", head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?a a :c ; :v 2 }}")
    engine = spaseq.Engine()
    maker = engine.register(text)
    handle = engine.register(query("C : A", streams=["T", "S"]))
    engine.push(NS + "S", graph("a"), 1)
    maker.cancel()
    engine.push(NS + "S", graph("a"), 2)
    assert [(match.start, match.end) for match in handle.matches()] == [(1, 2)]


@contextmanager
def pipe() -> Iterator[tuple[int, object]]:
    """A pipe that stays open until the end: a stream that falls silent."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as file:
        closed = False
        try:
            yield writing, file
        finally:
            if not closed:
                os.close(writing)


def test_the_wall_clock_moves_a_silent_stream_on() -> None:
    seconds = [0.0]
    with pipe() as (writing, file):
        os.write(writing, nquads("a", "a1", "2026-01-01T00:00:00Z", "dateTime").encode())
        engine = spaseq.Engine(idle=timedelta(milliseconds=50), wall_clock=lambda: seconds[0])
        handle = engine.register(query("A ; !B", "10 SECONDS SLIDING"))
        source = spaseq.Source(NS + "S", file, spaseq.SourceOptions(format="nq"))  # type: ignore[arg-type]
        steps = engine.pull(source)
        while not engine.events:
            next(steps)
        for _ in range(3):
            next(steps)
        assert engine.watermark == datetime(2026, 1, 1, tzinfo=UTC)
        assert list(handle.matches()) == []
        seconds[0] = 10.5
        found: list[spaseq.Match] = []
        for _ in range(200):
            next(steps)
            found += handle.matches()
            if found:
                break
        assert [events_of(match) for match in found] == ["a1"]
        assert engine.watermark == datetime(2026, 1, 1, 0, 0, 10, 500_000, tzinfo=UTC)


def test_a_wall_clock_needs_idle() -> None:
    with pytest.raises(spaseq.EngineError, match="idle"):
        spaseq.Engine(wall_clock=lambda: 0.0)


@pytest.mark.slow
def test_the_wall_clock_on_the_command_line(environment: dict[str, str], tmp_path: Path) -> None:
    """The alarm comes while the stream is open."""
    (tmp_path / "q.rq").write_text(query("A ; !B", "1 SECONDS SLIDING", streams=["S1"]))
    run = Slow(environment, "--idle", "50ms", "--wall-clock", "-f", "ndjson")
    try:
        run.feed(nquads("a", "a1", "1"))
        run.read_until(b"}\n")
        assert b'"start":1' in run.seen
    finally:
        run.stop()


@pytest.mark.usefixtures("environment")
def test_a_wall_clock_needs_idle_on_the_command_line() -> None:
    done = CliRunner().invoke(app, ["run", "q.rq", "-s", "S1=s.nq", "--wall-clock"])
    assert done.exit_code == 2
    assert "--idle" in done.stderr
