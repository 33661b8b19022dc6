"""``engine.arrived``: each event that was given counts once, whatever became of it, after a restart, too."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from tests.conftest import examples
from tests.streams import NS, letters, query

Given = tuple[str, Any, Any]

S, UNREAD = NS + "S", NS + "unread"
GOOD = letters("a1")[0].turtle

#: Of a good event, a malformed one, one on the other clock, a late one.
KINDS: Mapping[str, Any] = {
    "good": lambda at: (GOOD, at),
    "malformed": lambda at: ("no Turtle", at),
    "clock": lambda _: (GOOD, datetime(2020, 1, 1, tzinfo=UTC)),
    "late": lambda at: (GOOD, at - 1_000),
    "nothing": lambda at: (None, at),
    "name": lambda at: (GOOD, at, "no IRI"),
}


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        yield


@pytest.mark.parametrize("how", ["push", "push_many"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strict", [False, True])
def test_each_counts_once(how: str, kind: str, strict: bool, tmp_path: Path) -> None:
    events = [KINDS["good"](5_000), KINDS[kind](5_001), KINDS["good"](5_002)]
    with _quiet():
        engine = spaseq.Engine(state=tmp_path / "s", strict=strict)
        engine.register(query("A"), name="q")
        engine.register(query("A ; B"), name="r")
        _give(engine, how, S, events[:2])
        _give(engine, how, S, events[2:])
        assert engine.arrived == {S: 3}
        assert engine.bad + engine.late == (kind != "good")
        engine.close()
        with spaseq.Engine(state=tmp_path / "s") as engine:
            assert engine.arrived == {S: 3}
            assert engine.bad + engine.late == (kind != "good")
            assert sum((engine.streams()[S].bad, engine.streams()[S].late)) == (kind != "good")


def _give(engine: spaseq.Engine, how: str, stream: str, events: list[Any]) -> None:
    if how == "push":
        for event in events:
            try:
                engine.push(stream, *event)
            except (spaseq.BadEventError, spaseq.LateEventError):
                continue
    else:
        try:
            engine.push_many(stream, events)
        except (spaseq.BadEventError, spaseq.LateEventError):
            return


def test_those_that_a_source_brings_count_once(tmp_path: Path) -> None:
    """Bad lines have no number, and an event on another clock has one; the next engine skips both."""
    file = tmp_path / "given.trig"
    event = f"<urn:g{{}}> {{{{ <urn:g{{}}> a <{NS}a> }}}}\n<urn:g{{}}> <{NS}at> {{}} .\n"
    file.write_text("".join(event.format(n, n, n, n) if n != 3 else "nonsense .\n" for n in range(1, 6)))
    options = spaseq.SourceOptions(time=ox.NamedNode(f"{NS}at"))
    with _quiet():
        for _ in range(2):
            with spaseq.Engine(state=tmp_path / "s") as engine:
                engine.register(query("A"), name="q")
                engine.feed(spaseq.Source(S, file, options))
                assert engine.arrived == {S: 5}
            with spaseq.Engine(state=tmp_path / "s") as engine:
                assert engine.arrived == {S: 5}


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["push", "push_many", "take", "restart", "commit"]),
            st.sampled_from([S, S, UNREAD]),
            st.lists(st.sampled_from(list(KINDS)), max_size=5),
        ),
        max_size=8,
    ),
    st.booleans(),
    st.integers(0, 2),
)
def test_each_counts_once_in_any_order(
    steps: list[tuple[str, str, list[str]]], durable: bool, queries: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, _quiet():
        engine = _engine(folder, durable, queries)
        given_: Counter[str] = Counter()
        at = 10_000
        for how, stream, kinds in steps:
            if how == "restart":
                if durable:
                    engine.close()
                    engine = _engine(folder, durable, queries)
            elif how == "commit":
                if durable:
                    engine.commit()
            elif how == "take":
                text = "".join(f'<urn:a> <urn:b> "{n}" .\n' for n in range(len(kinds)))
                file = Path(folder) / "given.nt"
                file.write_text(text)
                source = spaseq.Source(stream, file, spaseq.SourceOptions(format="nt", triples=1))
                for _ in engine.take(source, time=at):
                    pass
                given_[stream] += len(kinds)
            else:
                events = []
                for kind in kinds:
                    at += 1
                    events.append(KINDS[kind](at))
                _give(engine, how, stream, events)
                given_[stream] += len(kinds)
            assert engine.arrived == +given_
        engine.close()
        if durable:
            with _engine(folder, durable, queries) as engine:
                assert engine.arrived == +given_


def _engine(folder: str, durable: bool, queries: int) -> spaseq.Engine:
    engine = spaseq.Engine(state=Path(folder) / "state" if durable else None)
    for number in range(queries):
        engine.register(query("A ; B" if number else "A"), name=f"q{number}")
    return engine


@pytest.mark.parametrize("how", ["push", "push_many"])
def test_each_is_told_with_its_place_in_the_stream(how: str, tmp_path: Path) -> None:
    """Bad events one after the other had one place, and those behind them the places of others."""
    kinds = ["good", "malformed", "malformed", "late", "good", "nothing", "clock", "late", "malformed"]
    events = [KINDS[kind](5_000 + n) for n, kind in enumerate(kinds)]
    told: list[spaseq.BadEvent] = []
    engine = spaseq.Engine(state=tmp_path / "s", dead_letters=told.append)
    engine.register(query("A"), name="q")
    _give(engine, how, S, events[:6])
    engine.close()
    with spaseq.Engine(state=tmp_path / "s", dead_letters=told.append) as engine:
        _give(engine, how, S, events[6:])
    assert [letter.position for letter in told] == [f"event {n}" for n in (2, 3, 4, 6, 7, 8, 9)]


def test_each_has_its_place_inside_a_callback() -> None:
    told: list[spaseq.BadEvent] = []
    engine = spaseq.Engine(dead_letters=told.append)

    def again(match: spaseq.Match) -> None:
        if match.start == 1:
            for event in [("no Turtle", 2), (GOOD, 3), ("no Turtle", 4)]:
                engine.push(S, *event)
            engine.push_many(S, [(GOOD, 5), ("no Turtle", 6), ("no Turtle", 7), (GOOD, 0)])

    engine.register(query("A"), again)
    engine.push(S, GOOD, 1)
    assert [letter.position for letter in told] == [f"event {n}" for n in (2, 4, 6, 7, 8)]
    assert engine.arrived == {S: 8}
