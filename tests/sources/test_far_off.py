"""Far-off times: what is far ahead of the wall clock does not end a stream (semantics, section 7)."""

from __future__ import annotations

import os
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import spaseq
from spaseq.connect import parse_location
from spaseq.errors import SourceError, SpaseqWarning

from .reading import read

S = "http://example.org/s"
QUERY = f"""
PREFIX : <http://example.org/>
SELECT ?a ?b WITHIN 1 HOURS SLIDING FROM STREAM S <{S}>
WHERE {{ SEQ(A ; B)
  DEFINE GPM A ON S {{ ?x :level ?a }}
  DEFINE GPM B ON S {{ ?y :level ?b FILTER(?b > ?a) }} }}
"""
TIMES = ["2024-06-03T10:00:00Z", "9057-08-08T13:05:04Z", "2024-06-03T10:01:00Z", "2024-06-03T10:02:00Z"]
DATETIME = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


def nquads(times: list[str], datatype: str = DATETIME) -> str:
    return "".join(
        f'<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> "{time}"{datatype} .\n'
        f'<urn:e{n}> <http://example.org/level> "{n}"{INTEGER} <urn:g{n}> .\n'
        for n, time in enumerate(times)
    )


def rows(text: str) -> str:
    """As CSV, lifted by ``context``."""
    return "level,at\n" + "".join(f"{n},{time}\n" for n, time in enumerate(TIMES)) + text


@pytest.fixture
def context(tmp_path: Path) -> Path:
    path = tmp_path / "context.jsonld"
    path.write_text(
        '{"@context": {"level": {"@id": "http://example.org/level", '
        '"@type": "http://www.w3.org/2001/XMLSchema#integer"}, "at": {"@id": '
        '"http://www.w3.org/ns/prov#generatedAtTime", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}}}'
    )
    return path


@pytest.mark.parametrize("repeated", [1, 400])
def test_far_ahead_is_a_dead_letter(repeated: int) -> None:
    """By the slow reader, and, where there is more text, by the compiled one."""
    reading = read(nquads(TIMES * repeated), "format=nq&max_ahead=1 DAYS&time=<urn:x>")
    assert not reading.times  # of a predicate that nothing says: all are malformed, and none is far off
    names = [time for _ in range(repeated) for time in TIMES]
    reading = read(nquads(names), "format=nq&max_ahead=1 DAYS")
    assert len(reading.times) == 3 * repeated
    assert len(reading.bad) == repeated
    assert all("9057-08-08" in reason and "max_ahead" in reason for reason in reading.reasons)
    assert "<urn:e1>" in reading.bad[0].payload
    assert reading.numbers == list(range(3 * repeated))


def test_rows(context: Path) -> None:
    reading = read(rows(""), f"format=csv&max_ahead=24h&context={context}")
    assert len(reading.times) == 3
    assert len(reading.bad) == 1


def test_it_moves_no_watermark(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(nquads(TIMES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        found = spaseq.run(QUERY, {S: f"{path}?max_ahead=1d"})
        spans = [(match.start, match.end) for match in found]
    ten = datetime(2024, 6, 3, 10, tzinfo=UTC)
    assert spans == [(ten + n * timedelta(minutes=1), ten + (n + 1) * timedelta(minutes=1)) for n in (0, 1)]


def test_what_moved_the_watermark_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(nquads(TIMES))
    with pytest.warns(SpaseqWarning) as caught:
        list(spaseq.run(QUERY, {S: str(path)}))
    (told,) = [str(w.message) for w in caught if "event 3" in str(w.message)]
    assert "event 2" in told
    assert "max_ahead" in told


def pushed(times: list[datetime], lateness: timedelta, many: bool) -> None:
    engine = spaseq.Engine(lateness=lateness)
    engine.register(spaseq.prepare(QUERY), on_match=lambda _: None)
    events = [(f"<urn:e{n}> <http://example.org/level> {n} .", time) for n, time in enumerate(times)]
    if many:
        engine.push_many(S, events)
    else:
        for graph, time in events:
            engine.push(S, graph, time)


@pytest.mark.parametrize("lateness", [timedelta(0), timedelta(minutes=5)])
@pytest.mark.parametrize("many", [False, True])
def test_what_moved_the_watermark_is_named_of_pushed_events(lateness: timedelta, many: bool) -> None:
    with pytest.warns(SpaseqWarning, match="event 3.*which event 2 moved.*max_ahead"):
        pushed([datetime.fromisoformat(time) for time in TIMES], lateness, many)


def test_late_events_of_today_are_no_reason_to_speak_of_max_ahead() -> None:
    times = [datetime(2024, 6, 3, 10, minute, tzinfo=UTC) for minute in (5, 3)]
    with pytest.warns(SpaseqWarning, match="which event 1 moved") as caught:
        pushed(times, timedelta(0), many=False)
    assert "max_ahead" not in str(caught[0].message)


def test_dead_letters_and_strict_errors_name_what_moved_the_watermark() -> None:
    """Where dead letters are heard of, as by the command line, nothing else tells."""
    events = [("<urn:e> <http://example.org/level> 1 .", datetime.fromisoformat(time)) for time in TIMES]
    letters: list[spaseq.BadEvent] = []
    engine = spaseq.Engine(dead_letters=letters.append)
    engine.register(QUERY)
    engine.push_many(S, events)
    first, *others = [letter.reason for letter in letters]
    assert "which event 2 moved" in first
    assert "max_ahead" in first
    assert not any("moved" in other for other in others)
    strict = spaseq.Engine(strict=True)
    strict.register(QUERY)
    with pytest.raises(spaseq.LateEventError, match="which event 2 moved"):
        strict.push_many(S, events)


def test_pushed_events() -> None:
    engine = spaseq.Engine(max_ahead=timedelta(days=1), dead_letters=(letters := []).append)
    engine.register(spaseq.prepare(QUERY), on_match=lambda _: None)
    far = datetime.now(UTC) + timedelta(days=2)
    graph = "<urn:e> <http://example.org/level> 1 ."
    engine.push(S, graph, far)
    engine.push_many(S, [(graph, far), (graph, datetime.now(UTC))])
    assert (engine.events, engine.bad, engine.late) == (1, 2, 0)
    assert [letter.position for letter in letters] == ["event 1", "event 2"]


def test_pipes_have_a_day() -> None:
    """A pipe is a live source: what it reads is of about now."""
    end, begin = os.pipe()
    os.write(begin, nquads(TIMES).encode())
    os.close(begin)
    with os.fdopen(end, "rb") as pipe:
        reading = read(pipe, "format=nq")
    assert len(reading.times) == 3
    end, begin = os.pipe()
    os.write(begin, nquads(TIMES).encode())
    os.close(begin)
    with os.fdopen(end, "rb") as pipe:
        reading = read(pipe, "format=nq&max_ahead=9999999 DAYS")
    assert len(reading.times) == 4


def test_ticks_are_not_of_the_wall_clock() -> None:
    text = nquads(["1", "99999999999999"], INTEGER)
    with pytest.raises(SourceError, match="max_ahead"):
        read(text, "format=nq&max_ahead=1 DAYS")
    end, begin = os.pipe()
    os.write(begin, text.encode())
    os.close(begin)
    with os.fdopen(end, "rb") as pipe:
        assert len(read(pipe, "format=nq").times) == 2  # the default of a pipe is for instants


@pytest.mark.parametrize("value", ["1", "soon", "0 DAYS", "-1 DAYS", "1 YEARS", "99999999999999 DAYS"])
def test_refused(value: str) -> None:
    with pytest.raises(SourceError, match="max_ahead"):
        parse_location(f"s.nq?max_ahead={value}")
