"""Callbacks that raise, again and again: each match comes all the same, once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import pytest

import spaseq
from spaseq.engine.arguments import GivenEvent
from tests.streams import NS, events_of, letters, query

EVENTS = [(letter.turtle, letter.time, f"{NS}{letter.name}") for letter in letters("a1 b2 a3 a4 b5 b6 a7 b8")]
BOUND = "9 SECONDS SLIDING"
SKIP = "AFTER MATCH SKIP TO NEXT EVENT"


def _refuse(seen: list[str]) -> Callable[[spaseq.Match], None]:
    """A callback that takes each match, and raises."""

    def refuse(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        raise RuntimeError("no")

    return refuse


def _push(engine: spaseq.Engine, events: Sequence[GivenEvent], size: int) -> None:
    """Pushes so many events at once, and closes the engine, whatever callbacks raise."""
    for first in range(0, len(events), size):
        try:
            engine.push_many(NS + "S", events[first : first + size])
        except RuntimeError:
            continue
    with contextlib.suppress(RuntimeError):
        engine.close()
    assert engine.events == len(events)


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("text", [query("A"), query("A : B", BOUND), query("A : B", BOUND) + SKIP])
@pytest.mark.parametrize("matcher", ["nfa", "interpreter", None])
def test_a_callback_that_raises_at_each_match_gets_them_all(
    size: int, text: str, matcher: str | None
) -> None:
    """What came while matches of before were owed, and raised again, was lost: with SKIP others came."""
    if SKIP in text and matcher == "interpreter":
        matcher = None
    engine = spaseq.Engine(matcher=matcher)
    read = engine.register(text)
    seen: list[str] = []
    engine.register(text, _refuse(seen))
    _push(engine, EVENTS, size)
    assert seen == [events_of(match) for match in read.matches()]
    assert seen


@pytest.mark.parametrize("size", [1, 3, 8])
def test_so_do_those_of_queries_that_run_as_one(size: int) -> None:
    text = query("A : B", BOUND).replace("a :a", ":of § ; a :a").replace("a :b", ":of § ; a :b")
    of = f"<{NS}of>"
    events = [(turtle.replace(" a :", f" {of} 0 , 1 ; a :"), time, name) for turtle, time, name in EVENTS]
    seen: list[list[str]] = [[], []]
    engine = spaseq.Engine()
    read = [engine.register(text.replace("§", str(n))) for n in range(2)]
    for n in range(2):
        engine.register(text.replace("§", str(n)), _refuse(seen[n]))
    _push(engine, events, size)
    assert [handle.stats.shared_with for handle in read] == [3, 3]
    assert seen == [[events_of(match) for match in handle.matches()] for handle in read]
    assert all(seen)


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("matcher", ["nfa", "interpreter", None])
def test_nothing_that_callbacks_raise_is_lost(size: int, matcher: str | None) -> None:
    """Of two that raised in one call, one was told, and nobody saw the other."""
    engine = spaseq.Engine(matcher=matcher)
    raised: list[str] = []

    def refuse(match: spaseq.Match) -> None:
        raised.append(f"{len(raised)} {events_of(match)}")
        raise RuntimeError(raised[-1])

    for _ in range(2):
        engine.register(query("A : B", BOUND), refuse)
    told: list[str] = []

    def tell(error: RuntimeError) -> None:
        told.extend([str(error), *(note.split(": ")[2] for note in getattr(error, "__notes__", ()))])

    for first in range(0, len(EVENTS), size):
        try:
            engine.push_many(NS + "S", EVENTS[first : first + size])
        except RuntimeError as error:
            tell(error)
    try:
        engine.close()
    except RuntimeError as error:
        tell(error)
    assert told == raised
    assert len(told) == 2 * 11


class _WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


@pytest.mark.parametrize("size", [1, 8])
def test_who_raises_what_has_no_words_loses_nothing(size: int) -> None:
    """Asked for its text it raised in the middle of what the engine does, and a job was made twice."""
    engine = spaseq.Engine()
    read = engine.register(query("A : B", BOUND))
    seen: list[str] = []

    def refuse(match: spaseq.Match) -> None:
        seen.append(events_of(match))
        raise _WordlessError

    for _ in range(2):
        engine.register(query("A : B", BOUND), refuse)
    for first in range(0, len(EVENTS), size):
        with contextlib.suppress(_WordlessError):
            engine.push_many(NS + "S", EVENTS[first : first + size])
    with contextlib.suppress(_WordlessError):
        engine.close()
    assert sorted(seen) == sorted(2 * [events_of(match) for match in read.matches()])
