"""What outlives the longest window is cut out of the log, and nobody can tell."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

import spaseq
from spaseq.engine.durable import journal, state, summary
from spaseq.engine.durable.horizon import keeps
from spaseq.engine.pipelines.cuts import begins_anew
from tests.conftest import examples
from tests.durable.test_random import Steps, run, seeds
from tests.engine.test_many_queries import _text
from tests.judge.generate import random_case
from tests.streams import NS, letters, query

#: Makes events of stream S2, as the queries at random ask for them.
_MAKER = """PREFIX : <http://example.org/> REGISTER STREAM :s2 AS
    CONSTRUCT {{ <urn:e> :v ?v ; a ?t ; :k ?k ; :o ?o }} WITHIN {} FROM STREAM S1 :s1
    WHERE {{ SEQ({}) DEFINE GPM A ON S1 {{ [] :v ?v ; a ?t }} DEFINE GPM B ON S1 {{ [] :k ?k ; :o ?o }}
        DEFINE GPM C ON S1 {{ [] :v 2 }} }} {}"""


def _maker(rng: random.Random) -> str:
    return _MAKER.format(
        rng.choice(["3 SECONDS SLIDING", "2 SECONDS TUMBLING", "4 EVENTS SLIDING", "3 EVENTS TUMBLING"]),
        rng.choice(["A , B", "A ; B", "A : B", "A & B", "(A & B) ; !C", "A ; B ; C"]),
        rng.choice(["", "", "", "CONSUME ANY", "AFTER MATCH SKIP PAST LAST EVENT", "LIMIT 4"]),
    )


def _any(query: spaseq.Query) -> bool:
    del query
    return True


def _steps(
    rng: random.Random, wanted: Callable[[spaseq.Query], bool] = _any, makes: bool = False
) -> Iterator[tuple[str, object]]:
    """A few queries whose windows are short beside the stream; ``makes``: one makes a stream."""
    asked = []
    if makes:
        yield "register", ("q9", _maker(rng))
    for number in range(rng.randint(1, 3)):
        while True:
            text, drawn = _text(rng)
            prepared = spaseq.prepare(text)
            if keeps(prepared) is None and wanted(prepared):
                break
        asked.append(drawn)
        yield "register", (f"q{number}", text)
    time = 0
    cancels = rng.randrange(200) if makes else None
    for step in range(rng.randint(40, 90)):
        if step == cancels:
            yield "cancel", 9
        if rng.random() < 0.05:
            yield "advance", (time + rng.randint(0, 3), None)
            continue
        stream, graph, _ = rng.choice(random_case(rng, rng.choice(asked), 10).written)
        time += rng.choice([0, 1, 1, 2, 5])
        yield "push", (stream.lower(), graph, time)
    yield "finish", None


@pytest.mark.slow
@settings(max_examples=examples(25), phases=[Phase.explicit, Phase.generate])
@given(seeds)
def test_any_queries_of_time(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    _compare(_steps, seed, tmp_path_factory)


@pytest.mark.slow
@settings(max_examples=examples(12), phases=[Phase.explicit, Phase.generate])
@given(seeds)
def test_queries_whose_matches_say_where_the_next_begins(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    _compare(lambda rng: _steps(rng, begins_anew), seed, tmp_path_factory)


@pytest.mark.slow
@settings(max_examples=examples(12), phases=[Phase.explicit, Phase.generate])
@given(seeds)
def test_queries_that_read_what_others_make(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    _compare(lambda rng: _steps(rng, _reads, makes=True), seed, tmp_path_factory)


def _reads(query: spaseq.Query) -> bool:
    return any(stream.iri.value == f"{NS}s2" for stream in query.streams)


def _compare(
    steps: Callable[[random.Random], Iterator[tuple[str, object]]], seed: int, paths: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    path = paths.mktemp("state") / "s.db"
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        patch.setattr(journal, "BLOCK", rng.choice([1, 2, 4]))
        patch.setattr(state, "PER_QUERY", 0)
        said: Steps = list(steps(rng))
        run(said, rng, path, {})


@pytest.mark.parametrize(
    "window", ["5 SECONDS SLIDING", "5 SECONDS TUMBLING", "5 EVENTS SLIDING", "3 EVENTS TUMBLING"]
)
@pytest.mark.few(1)
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


def test_what_is_made_of_simultaneous_events_stays_between_them(tmp_path: Path) -> None:
    made = query("A", "5 SECONDS SLIDING", head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?a a :d }}")
    text = query("A : B", "2 EVENTS SLIDING", streams=["S", "T"])
    path = tmp_path / "s.db"
    with spaseq.Engine(state=path) as engine:
        engine.register(made, name="made")
        engine.register(text, name="q")
        for name in "xy":
            engine.push(f"{NS}S", f"<{NS}{name}> a <{NS}a> ; <{NS}v> 1 .", 1)
    with spaseq.Engine(state=path) as engine:
        engine.push(f"{NS}S", f"<{NS}z> a <{NS}b> ; <{NS}v> 2 .", 2)
        # The events were x, what is made of it, y, what is made of that, and z.
        assert [str(match.bindings[0]["a"]) for match in engine.queries["q"].matches()] == [f"{NS}y"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (query("A : B", tail="CONSUME ANY"), None),
        (query("A , B+[,]", tail="AFTER MATCH SKIP PAST LAST EVENT"), None),
        (query("!B , A ; C", tail="AFTER MATCH SKIP PAST LAST EVENT"), None),
        (query("!B , A ; B", tail="CONSUME ANY"), "is what B asks for"),
        (query("B? , A ; C", tail="CONSUME ANY"), "what may be absent"),
        (query("!B , A ; B", tail="AFTER MATCH SKIP TO NEXT EVENT"), None),
        (query("A", head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?a a :d }}"), None),
        (
            query("A", head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?a a :d }}", tail="CONSUME ANY"),
            "others",
        ),
    ],
)
def test_the_state_says_what_keeps_all(tmp_path: Path, text: str, reason: str | None) -> None:
    path = tmp_path / "s.db"
    with warnings.catch_warnings(), spaseq.Engine(state=path) as engine:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        engine.register(text, name="q")
        engine.register(query("D", streams=["T"]), name="reads")
    said = {each.name: each.keeps for each in summary(path).queries}
    assert said["reads"] is None
    assert said["q"] == reason if reason is None else reason in str(said["q"])
