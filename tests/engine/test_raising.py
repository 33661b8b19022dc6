"""Callbacks that push and raise: no event is lost, no match comes twice, and all that was raised is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from tests.streams import NS, events_of, query

STREAM = NS + "S"
#: Of the letters that callbacks push, each match gives the next; no query asks for them in turn but the last.
QUERIES = {"A ; B": "9 SECONDS SLIDING", "A ; !C": "3 SECONDS SLIDING", "X : B": "9 SECONDS SLIDING"}


@cache
def prepared(sequence: str, window: str) -> spaseq.Query:
    """A query, which is read once for all engines."""
    return spaseq.prepare(query(sequence, window))


class CallbackError(Exception):
    """What callbacks raise here."""


def event(kind: str, time: int, number: int) -> tuple[str, int, str]:
    """An event of a letter's type; its graph's name says which it is."""
    name = f"{kind}{time}n{number}"
    return f"@prefix : <{NS}> . <{NS}e/{name}> a :{kind} ; :v {time} .", time, f"{NS}{name}"


def told(error: BaseException) -> int:
    """How many exceptions one stands for."""
    return 1 + len(getattr(error, "__notes__", ()))


class Script:
    """An engine that is told what to do; its callbacks push ``x`` at every third match, and may raise."""

    def __init__(
        self, raises: Callable[[int], type[BaseException] | None], matcher: str | None = None
    ) -> None:
        self.raises = raises
        self.letters: list[spaseq.BadEvent] = []
        self.engine = spaseq.Engine(dead_letters=self._refused, matcher=matcher)
        self.seen: list[tuple[str, str]] = []
        self.handles: list[spaseq.Handle] = []
        self.pushed = self.raised = self.told = self.calls = 0
        for sequence, window in QUERIES.items():
            self.register(sequence, window)

    def register(self, sequence: str, window: str) -> None:
        who = f"{len(self.handles)} {sequence}"
        self.handles.append(self.engine.register(prepared(sequence, window), lambda m: self._found(who, m)))

    def _raise(self) -> None:
        self.calls += 1
        if (kind := self.raises(self.calls)) is not None:
            self.raised += 1
            raise kind(f"call {self.calls}")

    def _refused(self, letter: spaseq.BadEvent) -> None:
        self.letters.append(letter)
        self._raise()

    def _found(self, who: str, match: spaseq.Match) -> None:
        self.seen.append((who, events_of(match)))
        assert isinstance(match.end, int)
        if len(self.seen) % 3 == 0 and len(self.seen) < 40:
            many = [event("x", match.end, self.pushed + n) for n in range(len(self.seen) % 2 + 1)]
            with suppress(spaseq.EngineError):  # while it closes nothing can be pushed
                self.engine.push_many(STREAM, many)
                self.pushed += len(many)
        if len(self.seen) == 7:
            with suppress(spaseq.EngineError):
                self.register("X", "9 SECONDS SLIDING")
        if len(self.seen) == 11:
            self.handles[0].cancel()
        self._raise()

    def do(self, step: tuple[str, object]) -> None:
        """One call, whatever it raises."""
        what, of = step
        try:
            match what, of:
                case "push", (kind, time):
                    self.pushed += 1
                    self.engine.push(STREAM, *event(kind, time, self.pushed))  # type: ignore[arg-type]
                case "push_many", list(many):
                    events = [event(kind, time, self.pushed + n) for n, (kind, time) in enumerate(many, 1)]
                    self.pushed += len(many)
                    self.engine.push_many(STREAM, events)
                case "bad", _:
                    self.pushed += 1
                    self.engine.push(STREAM, "no Turtle", 1)
                case "advance", int(time):
                    self.engine.advance(time)
                case "close", _:
                    self.engine.close()
        except (CallbackError, KeyboardInterrupt) as error:
            self.told += told(error)

    def told_of(self) -> tuple[object, ...]:
        late = self.engine.late
        return (
            sorted(self.seen),  # matchers may find the matches that one event completes in any order
            self.engine.events,
            late,
            self.engine.bad,
            [letter.position for letter in self.letters],
        )


TIMED = st.tuples(st.sampled_from("aabbc"), st.integers(0, 12))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), TIMED),
        st.tuples(
            st.just("push_many"),
            st.lists(TIMED, min_size=1, max_size=6).map(lambda m: sorted(m, key=lambda e: e[1])),
        ),
        st.tuples(st.just("bad"), st.none()),
        st.tuples(st.just("advance"), st.integers(0, 12)),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=20, deadline=None)
@given(steps=STEPS, every=st.integers(1, 4), kind=st.sampled_from([CallbackError, KeyboardInterrupt]))
def test_what_callbacks_raise_changes_nothing(
    steps: Sequence[tuple[str, object]], every: int, kind: type[BaseException]
) -> None:
    calm = Script(lambda _: None, matcher="reference")
    raising = Script(lambda call: kind if call % every == 0 else None)
    for script in (calm, raising):
        for step in (*steps, ("close", None)):
            script.do(step)
    assert raising.told_of() == calm.told_of()
    assert raising.told == raising.raised
    assert raising.engine.events + raising.engine.bad == raising.pushed
    assert len(set(raising.seen)) == len(raising.seen)


def boom(_: object = None) -> None:
    raise CallbackError("boom")


@pytest.mark.parametrize("kind", [CallbackError, KeyboardInterrupt, SystemExit])
def test_pushed_events_arrive_though_queued_ones_raise(kind: type[BaseException]) -> None:
    """Seven events of one call were lost when what the callback had pushed before raised in it."""
    engine = spaseq.Engine()
    seen: list[str] = []

    def found(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        if len(seen) < 3:
            engine.push(STREAM, *event("a", len(seen), 0))
        raise kind(f"match {len(seen)}")

    engine.register(query("A"), found)
    with pytest.raises(kind, match="match 1") as raised:
        engine.push(STREAM, *event("a", 0, 0))
    assert told(raised.value) == 3
    assert seen == ["a0n0", "a1n0", "a2n0"]
    with pytest.raises(kind, match="match 4") as raised:
        engine.push_many(STREAM, [event("a", time, 1) for time in range(3, 10)])
    assert told(raised.value) == 7
    assert engine.events == 10
    assert len(seen) == 10


def test_close_delivers_each_match_once_and_closes() -> None:
    engine, seen = spaseq.Engine(), list[str]()

    def found(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        raise CallbackError(seen[-1])

    engine.register(query("A ; !B", "9 SECONDS SLIDING"), found)
    engine.push_many(STREAM, [event("a", time, 0) for time in range(4)])
    with pytest.raises(CallbackError) as raised:
        engine.close()
    assert told(raised.value) == 4
    engine.close()
    assert sorted(seen) == [f"a{time}n0" for time in range(4)]
    with pytest.raises(spaseq.EngineError, match="closed"):
        engine.push(STREAM, *event("a", 9, 0))


@pytest.mark.parametrize("many", [False, True])
def test_a_callback_that_always_pushes_meets_a_limit(many: bool) -> None:
    engine = spaseq.Engine(limits=spaseq.Limits(callback_events=20))
    seen: list[int] = []

    def found(_: spaseq.Match) -> None:
        seen.append(1)
        if many:
            engine.push_many(STREAM, [event("a", 1, 0)] * 3)
        else:
            engine.push(STREAM, *event("a", 1, 0))

    engine.register(query("A"), found)
    for _ in range(2):  # each call anew
        seen.clear()
        with pytest.raises(spaseq.LimitError, match="callback_events=20"):
            engine.push(STREAM, *event("a", 1, 0))
        assert len(seen) == (19 if many else 21)


def test_dead_letters_that_push_what_is_refused_again_meet_a_limit() -> None:
    engine: spaseq.Engine

    def again(letter: spaseq.BadEvent) -> None:
        engine.push(letter.stream, "no Turtle", 1)

    engine = spaseq.Engine(dead_letters=again, limits=spaseq.Limits(callback_events=20))
    with pytest.raises(spaseq.LimitError, match="callback_events=20"):
        engine.push(STREAM, "no Turtle", 1)
    assert engine.bad == 21


def test_what_dead_letters_push_arrives_with_the_call() -> None:
    engine: spaseq.Engine

    def mend(letter: spaseq.BadEvent) -> None:
        engine.push(letter.stream, *event("a", 2, 0))
        raise CallbackError

    engine = spaseq.Engine(dead_letters=mend)
    seen: list[str] = []
    engine.register(query("A"), lambda match: seen.append(events_of(match)))
    with pytest.raises(CallbackError):
        engine.push(STREAM, "no Turtle", 1)
    assert (seen, engine.events, engine.bad) == (["a2n0"], 1, 1)


def test_each_late_event_is_a_dead_letter_though_that_raises() -> None:
    refused: list[str] = []

    def refuse(letter: spaseq.BadEvent) -> None:
        refused.append(letter.position)
        raise CallbackError

    engine = spaseq.Engine(dead_letters=refuse)
    handle = engine.register(query("A"))
    engine.push(STREAM, *event("a", 9, 0))
    with pytest.raises(CallbackError) as raised:
        engine.push_many(STREAM, [event("a", time, 0) for time in (1, 2, 9)])
    assert told(raised.value) == 2
    assert (engine.late, refused) == (2, ["event 2", "event 3"])
    assert [events_of(match) for match in handle.matches()] == ["a9n0", "a9n0"]


def test_streams_that_queries_make_are_complete_though_callbacks_raise() -> None:
    engine, seen = spaseq.Engine(), list[object]()
    engine.register(
        query(
            "A ; B", "9 SECONDS SLIDING", head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?b a :c ; :v ?bv }}"
        ),
        boom,
    )

    def found(match: spaseq.Match) -> None:
        seen.append(match.end)
        boom()

    engine.register(query("C", streams=["T"]), found)
    for first in (1, 4):
        with pytest.raises(CallbackError):
            engine.push_many(STREAM, [event("ab"[time % 2], time, 0) for time in range(first, first + 4)])
    with suppress(CallbackError):
        engine.close()
    calm, handles = spaseq.Engine(), list[spaseq.Handle]()
    for one in (
        query(
            "A ; B", "9 SECONDS SLIDING", head=f"REGISTER STREAM <{NS}T> AS CONSTRUCT {{ ?b a :c ; :v ?bv }}"
        ),
        query("C", streams=["T"]),
    ):
        handles.append(calm.register(one))
    for first in (1, 4):
        calm.push_many(STREAM, [event("ab"[time % 2], time, 0) for time in range(first, first + 4)])
    calm.close()
    assert seen == [match.end for match in handles[1].matches()]
    assert seen


def lines(numbers: range) -> bytes:
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    return "".join(
        f'<{NS}a{n}> {time} "{n}"^^{integer} .\n<{NS}e{n}> {kind} <{NS}a> <{NS}a{n}> .\n'
        f'<{NS}e{n}> <{NS}v> "{n}"^^{integer} <{NS}a{n}> .\n'
        for n in numbers
    ).encode()


@pytest.mark.parametrize("how", ["feed", "pull", "take"])
def test_sources_raise_at_the_end_of_the_chunk_in_hand(how: str) -> None:
    engine, seen = spaseq.Engine(), list[str]()

    def found(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        raise CallbackError(seen[-1])

    engine.register(query("A"), found)
    source = spaseq.Source(STREAM, BytesIO(lines(range(5))), spaseq.SourceOptions(format="nq"))
    read: dict[str, Callable[[spaseq.Source], object]] = {
        "feed": engine.feed,
        "pull": lambda source: [*engine.pull(source)],
        "take": lambda source: [*engine.take(source)],
    }
    with pytest.raises(CallbackError, match="a0") as raised:
        read[how](source)
    assert told(raised.value) == 4 == engine.events  # an event ends where the next one begins
    assert seen == [f"a{n}" for n in range(4)]


def test_run_gives_what_it_has_found_before_it_raises_what_dead_letters_raise() -> None:
    late = lines(range(3, 5)) + lines(range(1)) + lines(range(5, 7))
    read: list[str] = []

    def refuse(_: spaseq.BadEvent) -> None:
        raise CallbackError("late")

    source = spaseq.Source(STREAM, BytesIO(late), spaseq.SourceOptions(format="nq"))
    run = spaseq.run(query("A"), {"S": source}, dead_letters=refuse)
    with pytest.raises(CallbackError, match="late"):
        read.extend(events_of(match) for match in run)
    assert read == ["a3", "a4", "a5"]


@pytest.mark.parametrize("kind", [CallbackError, StopIteration])
def test_callbacks_of_an_engine_for_asyncio(kind: type[Exception]) -> None:
    """A future takes no StopIteration: whoever awaited that waited for ever."""
    seen: list[str] = []

    def found(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        raise kind("no")

    async def scenario() -> None:
        engine = spaseq.AsyncEngine()
        await engine.call(lambda inner: inner.register(query("A"), found))
        wanted = RuntimeError if kind is StopIteration else kind
        for time in range(2):
            with pytest.raises(wanted):
                await engine.push(STREAM, *event("a", time, 0))
        with pytest.raises(wanted):
            await engine.push_many(STREAM, [event("a", time, 0) for time in range(2, 5)])
        await engine.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert len(seen) == 5


def test_a_callback_that_raises_keeps_no_commit_from_being_made(tmp_path: Path) -> None:
    path = tmp_path / "state"
    engine = spaseq.Engine(state=path, commit_every=1)
    engine.register(query("A"), boom, name="q")
    with pytest.raises(CallbackError):
        engine.push(STREAM, *event("a", 1, 0))
    engine.abandon()
    again = spaseq.Engine(state=path)
    assert again.arrived == {STREAM: 1}
    assert not list(again.queries["q"].matches())
    again.abandon()


def test_a_background_graph_changes_though_what_waited_raises() -> None:
    engine = spaseq.Engine({f"{NS}g": ""})

    def events() -> Iterator[tuple[str, int, str]]:
        yield event("a", 1, 0)
        engine.change(f"{NS}g", [])
        yield event("a", 2, 0)

    engine.register(query("A"), boom)
    with pytest.raises(CallbackError) as raised:
        engine.push_many(STREAM, events())
    assert told(raised.value) == 2 == engine.events
