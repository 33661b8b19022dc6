"""What the runs matcher costs: an event, what it changes. (``test_fuzz`` is about what it gives.)"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from pyoxigraph import Literal

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import Atom
from spaseq.events import Stamp
from spaseq.language.reading.parser import parse
from spaseq.matching import planner
from spaseq.matching.context import Context, Rows
from spaseq.matching.interpreter.machine import PartitionRuns
from spaseq.matching.interpreter.state import Wait
from spaseq.matching.model import Found, Occurrence, PartitionMatcher, StreamWindow
from spaseq.terms.dictionary import Dictionary


class Counting(Context):
    """Counts how often an event is joined with a run."""

    asked = 0

    def extend(
        self, rows: Rows, atom: Atom, event: Occurrence, inside: tuple[int, ...], loose: bool = False
    ) -> Rows:
        self.asked += 1
        return super().extend(rows, atom, event, inside, loose)


def made(
    seq: str, size: int, counted: bool = False, streams: int = 1
) -> tuple[PartitionMatcher, Counting, list[int]]:
    """A runs matcher for letters that share ``?k``, in a sliding window; ids of 1,000 keys."""
    names = [f"S{i}" for i in range(streams)]
    gpms = " ".join(
        f"DEFINE GPM {name} ON {', '.join(names)} {{ ?{name.lower()} :k ?k }}"
        for name in "ABC"
        if name in seq
    )
    declared = " ".join(f"FROM STREAM {name} <http://example.org/{name}>" for name in names)
    text = f"SELECT * WITHIN 1 SECONDS {declared} WHERE {{ SEQ({seq}) {gpms} }}"
    pattern = normalise(parse("PREFIX : <http://example.org/> " + text))
    dictionary = Dictionary()
    keys = [dictionary.intern(Literal(i)) for i in range(1_000)]
    context = Counting(pattern, dictionary, lambda *_: False)
    return (
        planner.by_events("interpreter", pattern, context, StreamWindow(size, counted, True, 0))(),
        context,
        keys,
    )


def stream(
    letters: str, keys: list[int], step: int = 1, streams: int = 1, tick: int = 1
) -> Iterator[Occurrence]:
    """One event per letter (a blank: none of them), ``tick`` apart; keys come around in turn."""
    for i, letter in enumerate(letters):
        solutions = {letter: ({"k": keys[i // step % len(keys)]},)} if letter != " " else {}
        yield Occurrence(Stamp(i * tick, 1 + i % streams, i), i, solutions)


@pytest.mark.parametrize("operator", [";", ":"])
def test_runs_are_found_by_the_value_of_their_key(operator: str) -> None:
    matcher, context, keys = made(f"A {operator} B", 10_000)
    matches = sum(len(matcher.push(event)) for event in stream("A" * 1_000 + "B" * 1_000, keys))
    assert matches == 1_000
    # An A is asked once, to begin; a B once more by the one run that has its key.
    assert context.asked == 2_000


def test_irrelevant_events_cost_nothing() -> None:
    matcher, context, keys = made("A : B", 10_000)
    for event in stream("A" * 500 + " " * 5_000, keys):
        matcher.push(event)
    assert context.asked == 500


@pytest.mark.few(0, ci=3)
@pytest.mark.parametrize("seq", ["A : B", "A , B", "A ; B+ ; C", "A ; !B ; C", "ALL(A, B)", "A & B"])
def test_expired_runs_are_gone(seq: str) -> None:
    matcher, _, keys = made(seq, 20)
    waiting = []
    for i, event in enumerate(stream("AAB CAA" * 300, keys, step=7)):
        matcher.push(event)
        if i % 500 == 499:
            waiting.append(sum(type(thing) is Wait for thing in gc.get_objects()))
    assert max(waiting) <= waiting[0] * 2


@pytest.mark.few(0, ci=3)
@pytest.mark.parametrize("seq", ["A : B", "A , B+", "!C ; A ; B?", "ALL(A : B, C)", "ALL(A, B) ; !C"])
def test_dropped_partitions_are_gone_at_once(seq: str) -> None:
    """Nothing of them waits for the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        waiting = []
        for _ in range(2):
            matcher, _, keys = made(seq, 20)
            for event in stream("ABCAABCCAB" * 5, keys):
                matcher.push(event)
            del matcher
            waiting.append(sum(type(thing) in (Wait, PartitionRuns) for thing in gc.get_objects()))
    finally:
        gc.enable()
    assert waiting == [0, 0]


@pytest.mark.slow
def test_expired_events_are_forgotten() -> None:
    matcher, _, keys = made("A ; !B ; C", 20)
    seen = []
    for i, event in enumerate(stream("BBC" * 500, keys)):
        matcher.push(event)
        if i in (300, 1_300):
            gc.collect()
            seen.append(sum(type(thing) is Occurrence for thing in gc.get_objects()))
    assert seen[1] <= seen[0] + 5


def test_simultaneous_events_may_be_too_many_for_a_window_of_events() -> None:
    matcher, _, keys = made("A & B", 1, counted=True)
    found: list[Found] = []
    for i, letter in enumerate(["A", "A", " ", "B"]):
        solutions = {letter: ({"k": keys[0]},)} if letter != " " else {}
        found += matcher.push(Occurrence(Stamp(0, 1, i), i, solutions))
    assert found == []


@pytest.mark.parametrize(("streams", "tick"), [(1, 1), (1, 0), (2, 1)])
def test_a_neighbour_is_asked_once(streams: int, tick: int) -> None:
    matcher, context, keys = made("A , B", 10_000, streams=streams)
    for event in stream("A  " * 1_000, keys, streams=streams, tick=tick):
        matcher.push(event)
    # Each A begins, and meets the event right after it; then never again.
    assert context.asked == 2_000


def test_runs_that_are_over_are_gone() -> None:
    matcher, _, keys = made("A , B", 10_000)
    for event in stream("A " * 1_000, keys):
        matcher.push(event)
    assert sum(type(thing) is Wait for thing in gc.get_objects()) < 10
