"""What outlives the longest window is cut out of the log, and nobody can tell."""

from __future__ import annotations

import json
import random
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

import spaseq
from spaseq.engine.durable import journal, state, summary
from spaseq.engine.durable.horizon import keeps
from tests.conftest import examples
from tests.durable.test_random import Steps, run, seeds
from tests.engine.test_many_queries import _text
from tests.judge.generate import random_case
from tests.streams import NS, letters, query


def _steps(rng: random.Random) -> Iterator[tuple[str, object]]:
    """A few queries whose windows are short beside the stream."""
    asked = []
    for number in range(rng.randint(1, 3)):
        while True:
            text, drawn = _text(rng)
            if keeps(spaseq.prepare(text)) is None:
                break
        asked.append(drawn)
        yield "register", (f"q{number}", text)
    time = 0
    for _ in range(rng.randint(40, 90)):
        if rng.random() < 0.05:
            yield "advance", (time + rng.randint(0, 3), None)
            continue
        stream, graph, _ = rng.choice(random_case(rng, rng.choice(asked), 10).written)
        time += rng.choice([0, 1, 1, 2, 5])
        yield "push", (stream.lower(), graph, time)
    yield "finish", None


@settings(max_examples=examples(25), phases=[Phase.explicit, Phase.generate])
@given(seeds)
def test_any_queries_of_time(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("state") / "s.db"
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        patch.setattr(journal, "BLOCK", rng.choice([1, 2, 4]))
        patch.setattr(state, "PER_QUERY", 0)
        steps: Steps = list(_steps(rng))
        run(steps, rng, path, {})


@pytest.mark.parametrize(
    "window", ["5 SECONDS SLIDING", "5 SECONDS TUMBLING", "5 EVENTS SLIDING", "3 EVENTS TUMBLING"]
)
def test_the_log_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: str) -> None:
    monkeypatch.setattr(journal, "BLOCK", 8)
    path = tmp_path / "s.db"
    text = query("A ; B", window)
    whole = spaseq.Engine()
    expected = whole.register(text)
    found: list[tuple[object, object]] = []
    for begin in range(0, 400, 20):
        with spaseq.Engine(state=path, commit_every=None) as engine:
            handle = engine.register(text, name="q")
            for letter in letters(" ".join(f"{'ab'[t % 2]}{t}" for t in range(begin, begin + 20))):
                for one in (engine, whole):
                    one.push(NS + letter.stream, letter.turtle, letter.time)
            found += [(match.start, match.end) for match in handle.matches()]
        said = summary(path)
        assert said.events == begin + 20
        assert said.kept <= 60
    assert found == [(match.start, match.end) for match in expected.matches()]
    whole.close()


def test_what_nobody_took_keeps_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "BLOCK", 8)
    path = tmp_path / "s.db"
    with spaseq.Engine(state=path) as engine:
        engine.register(query("A", "5 SECONDS SLIDING"), name="q")
        for letter in letters(" ".join(f"a{t}" for t in range(100))):
            engine.push(NS + letter.stream, letter.turtle, letter.time)
    with spaseq.Engine(state=path) as engine:
        assert [match.end for match in engine.queries["q"].matches()] == list(range(100))
        for letter in letters(" ".join(f"a{t}" for t in range(100, 120))):
            engine.push(NS + letter.stream, letter.turtle, letter.time)
        assert [match.end for match in engine.queries["q"].matches()] == list(range(100, 120))
    assert summary(path).kept < 100


def test_the_layout_before_counts_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "BLOCK", 8)
    path = tmp_path / "s.db"
    text = query("A ; B", "5 SECONDS SLIDING")
    for begin in range(0, 200, 20):
        with spaseq.Engine(state=path, commit_every=None) as engine:
            handle = engine.register(text, name="q")
            for letter in letters(" ".join(f"{'ab'[t % 2]}{t}" for t in range(begin, begin + 20))):
                engine.push(NS + letter.stream, letter.turtle, letter.time)
            found = [match.end for match in handle.matches()]
        assert found == list(range(begin + 1, begin + 20, 2))
        with closing(sqlite3.connect(path)) as connection, connection:
            mark = json.loads(dict(connection.execute("SELECT key, value FROM meta")).get("mark", "null"))
            for order in mark["orders"] if mark else ():
                del order["position"]
            connection.execute("UPDATE meta SET value = ? WHERE key = 'mark'", (json.dumps(mark),))
            connection.execute("UPDATE query SET base = json_remove(base, '$.of')")
            connection.execute("DROP TABLE graph")
            connection.execute("PRAGMA user_version = 2")
    assert mark is not None
