"""Queries of one engine, whose events pass over those that they do not concern: as if each were alone."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from io import BytesIO
from typing import Final

import pyoxigraph as ox
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine import inbox, reading
from spaseq.engine.pipelines import dispatcher
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stream_set import DispatchedQuery
from spaseq.events import EventBatch
from spaseq.matching.sharing import canonical as shared_names
from spaseq.patterns import discrimination
from tests.conftest import examples
from tests.judge.generate import random_case, random_query
from tests.judge.pattern import Query
from tests.streams import NS, events_of, letters, query

Answers = list[tuple[str, tuple[str, ...]]]

_TIME: Final = "http://www.w3.org/ns/prov#generatedAtTime"
_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass
class _Alone:
    """An engine for each query, which looks at every event."""

    options: dict[str, object]
    engines: list[spaseq.Engine] = field(default_factory=list)

    def register(self, text: str) -> spaseq.Handle:
        engine = spaseq.Engine(**self.options)  # type: ignore[arg-type]
        handle = engine.register(text)
        handle.follow(_nothing)
        self.engines.append(engine)
        return handle

    def do(self, what: Callable[[spaseq.Engine], None]) -> None:
        for engine in self.engines:
            what(engine)


def _nothing(batch: EventBatch) -> None:
    """Whoever follows a query's events gets all of them, and so the query looks at all."""


def _answers(handle: spaseq.Handle) -> Answers:
    """What was found since the last time, in order of delivery."""
    return [
        (
            str([(gpm, [str(e.graph) for e in found]) for gpm, found in sorted(match.events.items())]),
            tuple(sorted(str(sorted(row.items())) for row in match.bindings)),
        )
        for match in handle.matches()
    ]


def _text(rng: random.Random, bounded: float = 0.15) -> tuple[str, Query]:
    """A query on ticks; and what events are made for. ``bounded``: how probable a LIMIT is."""
    while True:
        drawn = random_query(rng)
        text = drawn.text
        if rng.random() < bounded:
            text += f" LIMIT {rng.randint(1, 3)}"
        elif rng.random() < bounded / 2:
            text = text.replace("SELECT *", "ASK", 1)
        if drawn.instants:
            continue
        try:
            spaseq.prepare(text)
        except spaseq.QueryError:
            continue
        return text, drawn


def _steps(rng: random.Random, bounded: float = 0.15) -> Iterator[tuple[str, object]]:
    """What happens in an engine: queries come and go, events are pushed, time passes."""
    asked = []
    registered = 0
    for _ in range(rng.randint(2, 5)):
        text, drawn = _text(rng, bounded)
        asked.append(drawn)
        yield "register", text
        registered += 1
    time, late = 0, rng.choice([0, 0, 3])
    for _ in range(rng.randint(5, 30)):
        chance = rng.random()
        if chance < 0.05:
            text, drawn = _text(rng, bounded)
            asked.append(drawn)
            yield "register", text
            registered += 1
        elif chance < 0.1:
            yield "cancel", rng.randrange(registered)
        elif chance < 0.18:
            yield "advance", (time + rng.randint(-2, 3), rng.choice([None, "s1", "s2"]))
        else:
            stream, graph, _ = rng.choice(random_case(rng, rng.choice(asked), 10).written)
            time += rng.choice([0, 1, 1, 2])
            yield "push", (stream.lower(), graph, time - rng.randint(0, late))
    yield "close", None


@settings(max_examples=examples(100), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_as_if_each_were_alone(seed: int) -> None:
    rng = random.Random(seed)
    options: dict[str, object] = {"lateness": timedelta(seconds=rng.choice([0, 0, 1, 3]))}
    together, alone = spaseq.Engine(**options), _Alone(options)  # type: ignore[arg-type]
    handles: list[tuple[spaseq.Handle, spaseq.Handle]] = []
    said: list[object] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        for step, (what, given_) in enumerate(_steps(rng)):
            said.append((what, given_))
            if what == "register":
                handles.append((together.register(str(given_)), alone.register(str(given_))))
                continue
            if what == "cancel":
                assert isinstance(given_, int)
                for handle in handles[given_]:
                    handle.cancel()
            else:
                do = _do(step, what, given_)
                do(together)
                alone.do(do)
            for one, other in handles:
                assert _answers(one) == _answers(other), said
                assert one.done == other.done, said
                assert replace(one.stats, shared_with=0, shared=()) == other.stats, said


@settings(max_examples=examples(60), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
@pytest.mark.slow
def test_as_if_somebody_asked_after_each_event(seed: int) -> None:
    """Whatever waits until somebody asks, or until it is enough: answers, their order, counts and rejects."""
    rng = random.Random(seed)
    lateness = timedelta(seconds=rng.choice([0, 0, 1, 3]))
    unasked, asked = spaseq.Engine(lateness=lateness), spaseq.Engine(lateness=lateness)
    handles: list[tuple[spaseq.Handle, spaseq.Handle]] = []
    answers: list[tuple[Answers, Answers]] = []
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        patch.setattr(inbox, "MOST_EVENTS", rng.choice([3, 5, 256]))
        patch.setattr(dispatcher, "ENOUGH", rng.choice([3, 6, 128]))
        patch.setattr(dispatcher, "MOST", rng.choice([4, 9, 4_096]))
        patch.setattr(discrimination, "_FEW", rng.choice([1, 256]))
        for step, (what, given_) in enumerate(_steps(rng, 0.03)):
            if what == "register":
                handles.append((unasked.register(str(given_)), asked.register(str(given_))))
                answers.append(([], []))
            elif what == "cancel":
                assert isinstance(given_, int)
                for handle in handles[given_]:
                    handle.cancel()
            else:
                do = _do(step, what, given_)
                do(unasked)
                do(asked)
                assert unasked.events == asked.events
            for both, own in zip(handles, answers, strict=True):
                own[1].extend(_answers(both[1]))
                if rng.random() < 0.05:
                    assert both[0].done == both[1].done
                    own[0].extend(_answers(both[0]))
                    assert own[0] == own[1]
    for (one, other), own in zip(handles, answers, strict=True):
        assert [*own[0], *_answers(one)] == own[1]
        assert one.stats == other.stats
    assert (unasked.watermark, unasked.late, unasked.bad) == (asked.watermark, asked.late, asked.bad)
    rejected = [[(e.stream, e.position, e.reason) for e in engine.rejected] for engine in (unasked, asked)]
    assert rejected[0] == rejected[1]


class _Slowly(BytesIO):
    """A file that gives a few lines at a time."""

    def read1(self, size: int | None = -1, /) -> bytes:
        del size
        return super().read1(400)


def _sources(pushed: list[tuple[str, str, int]], file: type[BytesIO] = _Slowly) -> list[spaseq.Source]:
    """The same events, read: a source for each stream."""
    texts: dict[str, list[str]] = {}
    for number, (stream, graph, time) in enumerate(pushed):
        quads = ox.parse(graph, ox.RdfFormat.TURTLE, base_iri=NS)
        lines = texts.setdefault(stream, [])
        lines += [f"{quad.triple} <{NS}e{number}> .\n" for quad in quads]
        lines.append(f'<{NS}e{number}> <{_TIME}> "{time}"^^<{_INTEGER}> .\n')
    options = spaseq.SourceOptions(format="nq")
    return [spaseq.Source(NS + s, file("".join(lines).encode()), options) for s, lines in texts.items()]


@settings(max_examples=examples(60), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_what_is_fed_is_as_if_somebody_asked_after_each_step(seed: int) -> None:
    rng = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        steps = list(_steps(rng, 0.03))
    texts = [str(given_) for what, given_ in steps if what == "register"]
    pushed: list[tuple[str, str, int]] = [given_ for what, given_ in steps if what == "push"]  # type: ignore[misc]
    pushed.sort(key=lambda event: event[2])
    fed, asked = spaseq.Engine(), spaseq.Engine()
    answers: list[Answers] = [[] for _ in texts]
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handles = [[engine.register(text) for text in texts] for engine in (fed, asked)]
        patch.setattr(reading, "ENOUGH", rng.choice([3, 9, 65_536]))
        patch.setattr(discrimination, "_FEW", rng.choice([1, 256]))
        fed.feed(*_sources(pushed))
        fed.finish()
        for _ in asked.pull(*_sources(pushed)):
            for handle, own in zip(handles[1], answers, strict=True):
                own += _answers(handle)
        asked.finish()
    for one, other, own in zip(*handles, answers, strict=True):
        assert _answers(one) == [*own, *_answers(other)]
        assert one.stats == other.stats


def _do(step: int, what: str, given_: object) -> Callable[[spaseq.Engine], None]:
    if what == "close":
        return spaseq.Engine.close
    assert isinstance(given_, tuple)
    if what == "advance":
        time, stream = given_
        return lambda engine: engine.advance(time, None if stream is None else NS + stream)
    stream, graph, time = given_
    return lambda engine: engine.push(NS + stream, graph, time, name=f"{NS}e{step}")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that look at events, by the name of their sequence, each time that they do."""
    names: list[str] = []

    def counted(of: type[DispatchedQuery] | type[Pipeline], name: str) -> None:
        look = getattr(of, name)

        def counting(self: DispatchedQuery | Pipeline, batch: EventBatch, position: int) -> object:
            pipeline = self if isinstance(self, Pipeline) else self.pipeline
            names.append(",".join(sorted(gpm.name for gpm in pipeline.query.gpms)))
            return look(self, batch, position)

        monkeypatch.setattr(of, name, counting)

    counted(DispatchedQuery, "process")
    counted(Pipeline, "take_one")
    return names


def test_events_pass_over_queries_that_ask_for_other_constants(looks: list[str]) -> None:
    engine = spaseq.Engine()
    ab = engine.register(query("A ; B", "5 SECONDS TUMBLING"))
    cd = engine.register(query("C ; D", "5 SECONDS TUMBLING"))
    for letter in letters("c1 a2 c3 b4 d5 a6 b7"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        assert engine.watermark == letter.time  # who asks has nothing waiting
    assert looks == ["C,D", "A,B", "C,D", "A,B", "C,D", "A,B", "A,B"]
    # The first window begins with the first event, whomever it concerns.
    assert [events_of(match) for match in ab.matches()] == ["a2b4", "a6b7"]
    assert [events_of(match) for match in cd.matches()] == ["c1d5", "c3d5"]
    assert ab.stats.events == cd.stats.events == 7
    assert ab.stats.watermark == cd.stats.watermark == 7
    assert (ab.stats.relevant, cd.stats.relevant) == (4, 3)


def test_events_wait_until_somebody_asks(looks: list[str]) -> None:
    """But the first, and those that a callback is to hear of."""
    engine = spaseq.Engine()
    ab = engine.register(query("A ; B"))
    for letter in letters("a1 a2 b3"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
    assert looks == ["A,B"]
    assert engine.events == 3
    assert ab.stats.events == 3
    assert looks == ["A,B", "A,B"]
    seen: list[str] = []
    engine.register(query("A"), lambda match: seen.append(events_of(match)))
    for letter in letters("a4 a5"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        assert seen[-1] == letter.name
    assert [events_of(match) for match in ab.matches()] == ["a1b3", "a2b3"]


def test_a_few_hundred_events_wait_at_most(looks: list[str]) -> None:
    engine = spaseq.Engine()
    engine.register(query("A ; B"))
    triples = [quad.triple for quad in ox.parse(letters("a1")[0].turtle, format=ox.RdfFormat.TURTLE)]
    for tick in range(1 + 2 * inbox.MOST_EVENTS):
        engine.push(NS + "S", triples, tick)
    assert looks == 3 * ["A,B"]


def test_time_moves_on_for_who_waits_for_it(looks: list[str]) -> None:
    """An event that concerns none of its GPMs ends a query's window."""
    engine = spaseq.Engine()
    handle = engine.register(query("A ; !B", "3 SECONDS SLIDING"))
    engine.register(query("C"))
    for letter in letters("a1 c3 c5"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        assert engine.watermark == letter.time
    assert looks == ["A,B", "C", "C"]
    assert [events_of(match) for match in handle.matches()] == ["a1"]


def _give(engine: spaseq.Engine, text: str, is_read: bool) -> None:
    """The events of a line of words, as one batch or one by one."""
    pushed = [(letter.stream, letter.turtle, letter.time) for letter in letters(text)]
    if is_read:
        engine.feed(*_sources(pushed, BytesIO))
        return
    for stream, turtle, time in pushed:
        engine.push(NS + stream, turtle, time)


@pytest.mark.parametrize("is_read", [False, True])
def test_what_an_event_of_others_ends_consumes_what_has_begun(is_read: bool) -> None:
    """At c3 it is certain that no B follows a1: its match is emitted, and what begins with a2 is gone."""
    engine = spaseq.Engine()
    handle = engine.register(query("A ; !B WITHIN 1 SECONDS", "9 SECONDS SLIDING", tail="CONSUME ANY"))
    others = engine.register(query("C : D", "9 SECONDS SLIDING"))
    pushed = [
        (letter.stream, letter.turtle, letter.time) for letter in letters("a1 a2 c3 c4 c5 c6 c7 c8 a9 d12")
    ]
    if is_read:
        engine.feed(*_sources(pushed))
    else:
        for stream, turtle, time in pushed:
            engine.push(NS + stream, turtle, time)
    assert [match.end for match in handle.matches()] == [1, 9]
    assert len(list(others.matches())) == 6


_SKIP: Final = "AFTER MATCH SKIP PAST LAST EVENT"


@pytest.mark.filterwarnings("ignore:.*TUMBLING windows begin")
@pytest.mark.parametrize("window", ["5 SECONDS SLIDING", "5 SECONDS TUMBLING", "40 EVENTS SLIDING"])
@pytest.mark.parametrize(
    ("matcher", "seq", "tail"),
    [
        ("nfa", "A ; !B", ""),
        ("interpreter", "A ; !B WITHIN 1 SECONDS", ""),
        ("reference", "A ; !B WITHIN 1 SECONDS", ""),
        ("nfa", "A ; !B WITHIN 1 SECONDS", _SKIP),
        ("nfa", "A ; (C+ WITHIN 3 SECONDS)", _SKIP),
    ],
)
def test_time_passes_by_what_is_read_and_concerns_others(
    matcher: str, seq: str, tail: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds of time, and windows of time where there is none; a few events at a time."""
    monkeypatch.setattr(discrimination, "_FEW", 1)
    monkeypatch.setattr(reading, "ENOUGH", 3)
    engine = spaseq.Engine(matcher=matcher)
    handle = engine.register(query(seq, window, tail=tail))
    engine.register(query("D ; E", tail=tail))
    said = letters("a1 c2 " + " ".join(f"d{tick}" for tick in range(3, 20)))
    engine.feed(*_sources([(letter.stream, letter.turtle, letter.time) for letter in said]))
    is_due = "WITHIN" in seq or "SECONDS" in window
    assert [match.start for match in handle.matches()] == [1] * is_due
    engine.finish()
    assert len(list(handle.matches())) == 1 - is_due


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("matcher", [None, "nfa", "interpreter", "reference"])
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("a1/x a2/y a3/x", [1, 2, 3]),
        ("a1/x a2/y a3/x a4/y b9/x", [1, 2, 3, 4]),
        ("a1/x a2/y b3/x a4/x", [2, 4]),
    ],
)
def test_matches_come_as_they_are_due(
    matcher: str | None, is_read: bool, events: str, expected: list[int]
) -> None:
    """Of several partitions, too, and though time leaps over the events of others."""
    engine = spaseq.Engine(matcher=matcher)
    keys = {name: f"?{name.lower()} :k ?k" for name in "AB"}
    all_, one = (
        engine.register(query("A ; !B", "5 SECONDS SLIDING", keys, partition="?k", tail=tail))
        for tail in ("", "LIMIT 1")
    )
    others = engine.register(query("C"))
    _give(engine, f"{events} c10 c11 c12 c13 c14 c15 c16 c20", is_read)
    assert [match.end for match in all_.matches()] == expected
    assert [match.end for match in one.matches()] == expected[:1]
    assert len(list(others.matches())) == 8


def test_registering_late_joins_those_who_came_before(looks: list[str]) -> None:
    """And what is cancelled is looked for no more."""
    engine = spaseq.Engine()
    handles = []
    for i, letter in enumerate(letters("a1 b2 c3 d4 a5 b6 c7 d8 a9")):
        if i < 4:
            handles.append(engine.register(query("ABCD"[i])))
        engine.push(NS + letter.stream, letter.turtle, letter.time)
        assert engine.watermark == letter.time
        if i == 4:
            handles[1].cancel()
    assert looks == ["A", "B", "C", "D", "A", "C", "D", "A"]
    assert [handle.stats.events for handle in handles] == [9, 4, 7, 6]


def test_one_that_comes_late_does_not_have_all_others_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that begin with other graph patterns nobody need know what they are under common names."""
    made: list[object] = []
    canonical = shared_names.under_common_names

    def noting(*given: object) -> object:
        made.append(given[0])
        return canonical(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(shared_names, "under_common_names", noting)
    engine = spaseq.Engine()
    for sequence in ("A ; B", "B ; C", "C ; D", "D ; E", "A ; C"):
        engine.register(query(sequence))
        engine.push(NS + "S", "<urn:x> <urn:y> <urn:z> .", engine.events)
        assert engine.watermark == engine.events - 1
    assert len(made) == 2


@pytest.mark.parametrize(("between", "together"), [([], True), ([("T", 3)], False), ([("T", 4)], True)])
def test_simultaneous_events_do_not_come_between(between: list[tuple[str, int]], together: bool) -> None:
    """Nor do they hide one that does, from a query that neither concerns."""
    engine = spaseq.Engine()
    handle = engine.register(
        f"PREFIX : <{NS}> SELECT * WITHIN 9 SECONDS FROM STREAM S :S FROM STREAM T :T "
        "WHERE { SEQ(A{1,2}[,]) DEFINE GPM A ON S { ?a a :a } }"
    )
    events = [("S", 2), *between, ("T", 4), ("S", 4)]
    for stream, time in events:
        engine.push(NS + stream, f"<urn:e> a <{NS}{'a' if stream == 'S' else 'b'}> .", time)
    engine.close()
    assert len(list(handle.matches())) == 2 + together


def test_who_follows_a_query_sees_each_event_once() -> None:
    """Also where each is looked at alone, since somebody is called back."""
    engine = spaseq.Engine()
    found: list[object] = []
    handle = engine.register(query("A ; B", "9 SECONDS SLIDING"), lambda match: found.append(match.end))
    seen: list[int] = []
    handle.follow(lambda batch: seen.extend(batch.time.tolist()))
    for letter in letters("a1 b2 c3 a4 d5 b6"):
        engine.push(NS + letter.stream, letter.turtle, letter.time)
        assert seen[-1] == letter.time
    assert (seen, found) == ([1, 2, 3, 4, 5, 6], [2, 6])
    assert handle.stats.gpms["A"].matched == 2
