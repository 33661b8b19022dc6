"""Queries whose sequences begin alike share partial matches; and each is as if it were alone."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.matching.columns import singles
from tests.conftest import examples
from tests.streams import NS, events_of, letters, query

Answers = list[tuple[str, list[str]]]

#: Numbers, two of which a double does not tell apart.
_VALUES = (*map(str, range(5)), "2.50000000000000000001", "2.5")


class _Drawn:
    """Queries that begin alike, under names of their own; drawn from a seed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._joined, self._partition = rng.random() < 0.7, rng.random() < 0.5
        self._unit, self._kind = rng.choice(["SECONDS", "EVENTS"]), rng.choice(["SLIDING", "TUMBLING"])
        self._size = rng.randint(4, 20)
        self._prefix = self._elements(rng.randint(1, 3))
        self.texts = [self._text(i) for i in range(rng.randint(2, 8))]

    def _elements(self, count: int) -> list[tuple[str, str, str, str]]:
        """Of each element the operator before it, its type, how often it is repeated, and its filter."""
        rng = self._rng
        return [
            (
                rng.choice(";;:"),
                rng.choice("abc"),
                rng.choice(["", "", "", "+[;]", "{1,2}[:]"]),
                rng.choice(["", "?v{n} > ?v{m}", "?v{n} >= ?v{m}", "?v{n} != ?v{m} && ?v{n} < 4"]),
            )
            for _ in range(count)
        ]

    def _text(self, number: int) -> str:
        rng, q = self._rng, f"q{number}"
        elements = self._prefix + self._elements(rng.choice([0, 1, 1, 2]))
        if len(elements) == 1:
            elements = elements + self._elements(1)
        sequence, gpms = "", []
        for n, (operator, letter, repeated, condition) in enumerate(elements):
            sequence += f"{f' {operator} ' if n else ''}{q}G{n}{repeated}"
            key = f"?k{q}" if self._joined or self._partition else f"?k{q}{n}"
            pattern = f"{key} :{letter} ?v{q}{n}"
            if n and condition:
                other = rng.choice([0, 0, n - 1]) if n >= len(self._prefix) else 0
                pattern += f" . FILTER({condition.format(n=f'{q}{n}', m=f'{q}{other}')})"
            gpms.append(f"DEFINE GPM {q}G{n} ON S {{ {pattern} }}")
        size = self._size if self._kind == "TUMBLING" or rng.random() < 0.5 else rng.randint(2, 20)
        by = f"PARTITION BY ?k{q}" if self._partition else ""
        emit = rng.choice(["", "", "", "EMIT MAX", "EMIT NEXT", "EMIT LAST"])
        limit = f"LIMIT {rng.randint(1, 4)}" if rng.random() < 0.2 else ""
        return (
            f"PREFIX : <{NS}> SELECT * WITHIN {size} {self._unit} {self._kind} {by} FROM STREAM S <{NS}S> "
            f"WHERE {{ SEQ({sequence}) {' '.join(gpms)} }} {emit} {limit}"
        )

    def event(self) -> str:
        rng = self._rng
        keys = [f"<{NS}{rng.choice('xy')}>" for _ in range(rng.choice([1, 1, 1, 2]))]
        return " ".join(f"{key} <{NS}{rng.choice('abc')}> {rng.choice(_VALUES)} ." for key in keys)


def _answers(matches: Iterable[spaseq.Match]) -> Answers:
    return [
        (
            str([[str(e.graph) for e in found] for _, found in sorted(match.events.items())]),
            sorted(str(sorted(row.items())) for row in match.bindings),
        )
        for match in matches
    ]


@settings(max_examples=examples(60), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_as_if_each_were_alone(seed: int) -> None:
    rng = random.Random(seed)
    drawn = _Drawn(rng)
    lateness = timedelta(seconds=rng.choice([0, 0, 3, 100]))  # with the last, all events are one batch
    together = spaseq.Engine(lateness=lateness, evaluator="kernel")
    engines = [spaseq.Engine(lateness=lateness, evaluator="kernel") for _ in drawn.texts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        shared = [together.register(text) for text in drawn.texts]
        alone = [engine.register(text) for engine, text in zip(engines, drawn.texts, strict=True)]
    time = 0
    for number in range(rng.randint(10, 40)):
        time += rng.choice([0, 1, 1, 2])
        graph, name = drawn.event(), f"{NS}e{number}"
        for engine in [together, *engines]:
            engine.push(NS + "S", graph, time, name=name)
        if rng.random() < 0.05:
            gone = rng.randrange(len(shared))
            shared[gone].cancel()
            alone[gone].cancel()
        if rng.random() < 0.3:
            _compare(shared, alone, drawn.texts)
    apart = not any(handle.done or handle.stats.shared_with for handle in shared)
    if apart and lateness < timedelta(seconds=100):
        assert all(handle.stats.shared[0] == len(shared) for handle in shared), drawn.texts
    for engine in [together, *engines]:
        engine.close()
    _compare(shared, alone, drawn.texts)


@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_each_event_alone_is_as_the_reference_says(seed: int) -> None:
    """Where somebody is called back, an event reaches the kernel by itself; some of them wait together."""
    rng = random.Random(seed)
    drawn = _Drawn(rng)
    text = drawn.texts[0]
    told, judge = spaseq.Engine(), spaseq.Engine(evaluator="reference")
    matches: list[spaseq.Match] = []
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(singles, "_MOST", rng.choice([1, 3, 64]))
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handle, expected = told.register(text, matches.append), judge.register(text)
        time = 0
        for number in range(rng.randint(10, 30)):
            time += rng.choice([0, 1, 1, 2, -1 if rng.random() < 0.1 else 1])
            graph, name = drawn.event() if rng.random() < 0.9 else "", f"{NS}e{number}"
            late = told.late
            told.push(NS + "S", graph, time, name=name)
            judge.push(NS + "S", graph, time, name=name)
            if rng.random() < 0.2:
                assert _answers(matches) == _answers(expected.matches()), text
                matches.clear()
            if rng.random() < 0.05:
                told.advance(time)
                judge.advance(time)
            time += told.late - late
        told.close()
        judge.close()
    assert _answers(matches) == _answers(expected.matches()), text
    assert asdict(handle.stats) == asdict(expected.stats)


def _compare(shared: Sequence[spaseq.Handle], alone: Sequence[spaseq.Handle], texts: Sequence[str]) -> None:
    for one, other, text in zip(shared, alone, texts, strict=True):
        assert _answers(one.matches()) == _answers(other.matches()), text
        assert one.done == other.done, text
        assert (one.stats.matches, one.stats.rows) == (other.stats.matches, other.stats.rows), text


def _pushed(engine: spaseq.Engine, text: str) -> Iterator[None]:
    for letter in letters(text):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        yield


def test_what_is_shared_is_told_of() -> None:
    engine = spaseq.Engine(evaluator="kernel")
    sequences = ["A ; B ; C+", "A ; B ; D", "A ; C", "B : C", "A , B"]
    handles = [engine.register(query(sequence, "9 SECONDS SLIDING")) for sequence in sequences]
    assert [handle.stats.shared for handle in handles] == [()] * 5  # nothing was to be shared yet
    pushing = _pushed(engine, "a1 b2 c3 d4")
    for _ in pushing:
        pass
    assert [handle.stats.shared for handle in handles] == [(3, 2, 1), (3, 2, 1), (3, 1), (), ()]
    handles[0].cancel()
    assert handles[1].stats.shared == (2, 1, 1)
    assert [events_of(match) for match in handles[1].matches()] == ["a1b2d4"]


def test_a_query_that_comes_later_has_no_earlier_events() -> None:
    engine = spaseq.Engine(evaluator="kernel")
    sequences = ["A ; B ; C", "A ; B ; C+"]
    first = [engine.register(query(sequence, "9 SECONDS SLIDING")) for sequence in sequences]
    pushing = _pushed(engine, "a1 b2 c3 a4 b5 c6 d7")
    for _ in range(3):
        next(pushing)
    late = [engine.register(query(sequence, "9 SECONDS SLIDING")) for sequence in sequences]
    for _ in pushing:
        pass
    found = [[events_of(match) for match in handle.matches()] for handle in (*first, *late)]
    assert found == [["a1b2c3", "a4b5c6"], ["a1b2c3", "a1b2c3c6", "a4b5c6"], ["a4b5c6"], ["a4b5c6"]]
    assert [handle.stats.shared for handle in (*first, *late)] == [(2, 2, 1)] * 4


def test_more_than_all_may_keep_ends_all_that_share_it() -> None:
    """Together they may keep what each may by itself."""
    limits = spaseq.Limits(partial_matches=600)
    engine = spaseq.Engine(evaluator="kernel", limits=limits)
    handles = [engine.register(query(f"A : B : {x}", "9 SECONDS SLIDING")) for x in ("C", "D+")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        for number in range(3_000):
            engine.push(
                NS + "S",
                f"<{NS}e> a <{NS}{'ab'[number % 2]}> ; <{NS}v> 1 .",
                1 + number // 2_000,
                name=f"{NS}{number}",
            )
            if all(handle.done for handle in handles):
                break
    assert [type(handle.error) for handle in handles] == [spaseq.LimitError] * 2
