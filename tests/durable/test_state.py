"""Single pieces of a state: files that are none, names, bounds, disks that are full."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

import spaseq
from spaseq.engine.durable import copy, summary
from spaseq.engine.durable.store import Commit, Store
from tests.streams import NS, events_of, letters, query


def _push(engine: spaseq.Engine, text: str) -> None:
    for letter in letters(text):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (query("A ; B", "5 SECONDS TUMBLING"), "a3 x4", "b7 a8 b9"),  # windows begin at 3
        (query("A ; B", "3 EVENTS SLIDING"), "a1 x2", "b3 a4 x5 x6 b7"),
        (query("A ; B", "3 EVENTS TUMBLING"), "a1 x2", "b3 a4 b5"),
        (query("A", tail="LIMIT 2"), "a1", "a2 a3"),
        (query("A", head="ASK"), "a1", "a2"),
        (query("A : B", "9 SECONDS SLIDING", tail="CONSUME ANY"), "a1 b2", "b3 a4 b5"),
        (query("A , B+[,]", tail="AFTER MATCH SKIP PAST LAST EVENT"), "a1 b2", "b3 a4 b5 x6"),
        (query("A ; !B", "4 SECONDS SLIDING"), "a1 a2", "b6 x9 x12"),
    ],
    ids=["tumbling", "events", "counted", "limit", "ask", "consume", "skip", "waiting"],
)
def test_goes_on_where_it_was(tmp_path: Path, text: str, before: str, after: str) -> None:
    expected = []
    with spaseq.Engine() as whole:
        handle = whole.register(text)
        _push(whole, f"{before} {after}")
        expected = [events_of(match) for match in handle.matches()]
    with spaseq.Engine(state=tmp_path / "s") as engine:
        handle = engine.register(text, name="q")
        _push(engine, before)
        found = [events_of(match) for match in handle.matches()]
    with spaseq.Engine(state=tmp_path / "s") as engine:
        handle = engine.queries["q"]
        _push(engine, after)
        found += [events_of(match) for match in handle.matches()]
    assert found == expected
    assert found


def test_a_query_sees_nothing_from_before_its_registration(tmp_path: Path) -> None:
    with spaseq.Engine(state=tmp_path / "s") as engine:
        engine.register(query("A"), name="one")
        _push(engine, "a1")
        engine.register(query("A ; B"), name="two")
        _push(engine, "b2")
    with spaseq.Engine(state=tmp_path / "s") as engine:
        assert engine.arrived == {f"{NS}S": 2}
        assert [events_of(match) for match in engine.queries["one"].matches()] == ["a1"]
        assert not list(engine.queries["two"].matches())


def test_held_events_and_counts_of_rejects(tmp_path: Path) -> None:
    letters: list[spaseq.BadEvent] = []
    options = {"lateness": timedelta(seconds=3), "dead_letters": letters.append}
    with spaseq.Engine(state=tmp_path / "s", **options) as engine:  # type: ignore[arg-type]
        engine.register(query("A ; B", "9 SECONDS SLIDING"), name="q")
        _push(engine, "a1 b9 a2 a8")
        engine.push(f"{NS}S", "no turtle", 9)
        assert (engine.late, engine.bad) == (1, 1)
    with spaseq.Engine(state=tmp_path / "s", **options) as engine:  # type: ignore[arg-type]
        assert (engine.late, engine.bad) == (1, 1)
        _push(engine, "x20")
        assert [events_of(m) for m in engine.queries["q"].matches()] == ["a1b9", "a8b9"]
    with pytest.raises(spaseq.EngineError, match="lateness"):
        spaseq.Engine(state=tmp_path / "s")


def test_names(tmp_path: Path) -> None:
    with spaseq.Engine(state=tmp_path / "s") as engine:
        with pytest.raises(spaseq.EngineError, match="needs a name"):
            engine.register(query("A"))
        first = engine.register(query("A"), name="q")
        assert engine.register(query("A"), name="q") is first
        with pytest.raises(spaseq.EngineError, match="replace=True"):
            engine.register(query("B"), name="q")
        second = engine.register(query("B"), name="q", replace=True)
        assert first.done
        assert engine.queries["q"] is second
        _push(engine, "a1 b2")
    with spaseq.Engine(state=tmp_path / "s") as engine:
        assert [events_of(match) for match in engine.queries["q"].matches()] == ["b2"]


def _text(path: Path) -> None:
    path.write_text("no database, but long enough to be taken for one" * 9)


def _other(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()


def _of_layout(version: int, path: Path) -> None:
    spaseq.Engine(state=path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_text, "not a database"),
        (_other, "not a state of spaseq"),
        (partial(_of_layout, 99), "a newer version"),
        (partial(_of_layout, 5), "an older version"),
    ],
)
def test_files_that_are_no_states(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path / "s")
    with pytest.raises(spaseq.EngineError, match=said):
        spaseq.Engine(state=tmp_path / "s")
    with pytest.raises(spaseq.EngineError, match=said):
        summary(tmp_path / "s")


def test_one_engine_a_file(tmp_path: Path) -> None:
    with spaseq.Engine(state=tmp_path / "s"), pytest.raises(spaseq.EngineError, match="another engine uses"):
        spaseq.Engine(state=tmp_path / "s")
    spaseq.Engine(state=tmp_path / "s").close()


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    engine = spaseq.Engine(state=tmp_path / "s", commit_every=None)
    engine.register(query("A"), name="q")
    engine.commit()
    assert engine._core.state is not None
    run = engine._core.state.store._connection
    (pages,) = run.execute("PRAGMA page_count").fetchone()
    run.execute(f"PRAGMA max_page_count = {pages}")
    _push(engine, " ".join(f"a{t}" for t in range(3_000)))
    with pytest.raises(spaseq.EngineError, match="make room"):
        engine.commit()
    run.execute("PRAGMA max_page_count = 100000")
    engine.close()
    with spaseq.Engine(state=tmp_path / "s") as again:
        assert sum(1 for _ in again.queries["q"].matches()) == 3_000


def test_copies(tmp_path: Path) -> None:
    with spaseq.Engine(state=tmp_path / "s") as engine:
        engine.register(query("A"), name="q")
        _push(engine, "a1")
        engine.commit()
        copy(tmp_path / "s", tmp_path / "t")
        with pytest.raises(spaseq.EngineError, match="there already"):
            copy(tmp_path / "s", tmp_path / "t")
    assert summary(tmp_path / "t").events == 1
    with spaseq.Engine(state=tmp_path / "t") as engine:
        assert [events_of(match) for match in engine.queries["q"].matches()] == ["a1"]


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
def test_an_interrupt_in_a_commit_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """It waits for the end of the commit."""
    whole = Store.commit

    def interrupted(store: Store, commit: Commit) -> None:
        if is_written:
            whole(store, commit)
        signal.raise_signal(signal.SIGINT)
        if not is_written:
            whole(store, commit)

    engine = spaseq.Engine(state=tmp_path / "s", commit_every=None)
    handle = engine.register(query("A ; B"), name="q")
    _push(engine, "a1")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.commit()
    _push(engine, "b2 a3")
    assert [events_of(match) for match in handle.matches()] == ["a1b2"]
    engine.commit()
    engine.abandon()
    with spaseq.Engine(state=tmp_path / "s") as again:
        assert again.arrived == {f"{NS}S": 3}
        _push(again, "b4")
        assert [events_of(match) for match in again.queries["q"].matches()] == ["a3b4"]


def test_times_over_all_64_bits_come_again(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    least, most = -(2**63), 2**63 - 1
    with spaseq.Engine(state=path) as engine:
        engine.register(query("A", "5 EVENTS SLIDING"), name="q")
        for time in (least, -1, most):
            engine.push(f"{NS}S", f"<{NS}x> a <{NS}a> ; <{NS}v> 1 .", time)
    with spaseq.Engine(state=path) as engine:
        assert [match.end for match in engine.queries["q"].matches()] == [least, -1, most]
