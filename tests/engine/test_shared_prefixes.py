"""Queries whose sequences begin alike share partial matches; and each is as if it were alone."""

from __future__ import annotations

import gc
import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from itertools import groupby

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine import core
from spaseq.engine.pipelines import stream_set
from spaseq.matching.columns.alone import singles
from spaseq.matching.sharing.member import Member
from spaseq.why.sample import Sample
from tests.conftest import examples
from tests.streams import NS, events_of, letters, query

Answers = list[tuple[str, list[str]]]

#: Numbers, two of which a double does not tell apart.
_VALUES = (*map(str, range(5)), "2.50000000000000000001", "2.5")


class _Drawn:
    """Queries that begin alike, under names of their own; drawn from a seed."""

    def __init__(self, rng: random.Random, matcher: str = "nfa") -> None:
        """``matcher`` can run them."""
        self._rng = rng
        self._is_enumerated, self._is_lazy = matcher == "tecs", matcher == "lazy"
        self._skip = ""
        self._reluctant = ["+?[;]", "{1,2}?[:]"] if matcher.endswith("skip") else []
        if matcher.endswith("skip"):
            self._skip = rng.choice(["PAST LAST EVENT", "TO NEXT EVENT", "TO FIRST", "TO LAST"])
        self._joined, self._partition = rng.random() < 0.7, rng.random() < 0.5
        self._unit, self._kind = rng.choice(["SECONDS", "EVENTS"]), rng.choice(["SLIDING", "TUMBLING"])
        # Loops of any events have very many matches, unless a window has few events.
        self._most = {"tecs": 6, "lazy": 8, "nfa, skip": 12}.get(matcher, 20)
        self._size = rng.randint(4, self._most)
        self._prefix = self._elements(rng.randint(1, 3))
        self._count = 0
        self.texts = [self.text() for _ in range(rng.randint(2, 8))]

    def _elements(self, count: int) -> list[tuple[str, str, str, str]]:
        """Of each element the operator before it, its type, how often it is repeated, and its filter."""
        rng = self._rng
        if self._is_enumerated:
            repeated = ["", "", "+[:]", "{1,2}[:]"] if self._unit == "EVENTS" else [""]
            return [(":", rng.choice("abc"), rng.choice(repeated), "") for _ in range(count)]
        loops = "+[;]" if not self._is_lazy else "+[:]" if self._unit == "EVENTS" else ""
        return [
            (
                ":" if self._is_lazy else rng.choice(";;:"),
                rng.choice("abc"),
                rng.choice(["", "", "", loops, "{1,2}[:]", *self._reluctant]),
                rng.choice(["", "?v{n} > ?v{m}", "?v{n} >= ?v{m}", "?v{n} != ?v{m} && ?v{n} < 4"]),
            )
            for _ in range(count)
        ]

    def text(self) -> str:
        """One query more."""
        rng, q = self._rng, f"q{self._count}"
        self._count += 1
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
        size = self._size if self._kind == "TUMBLING" or rng.random() < 0.5 else rng.randint(2, self._most)
        by = f"PARTITION BY ?k{q}" if self._partition else ""
        emit = rng.choice(["", "", "", "EMIT MAX", "EMIT NEXT", "EMIT LAST"])
        if self._is_enumerated and self._joined and not self._partition:
            emit = ""  # it joins by partition alone then
        if self._skip:
            emit = ""
        limit = f"LIMIT {rng.randint(1, 4)}" if rng.random() < 0.2 else ""
        skip = f"AFTER MATCH SKIP {self._skip}" if self._skip else ""
        if self._skip in ("TO FIRST", "TO LAST"):
            skip += f" {q}G{rng.randrange(len(elements))}"
        return (
            f"PREFIX : <{NS}> SELECT * WITHIN {size} {self._unit} {self._kind} {by} FROM STREAM S <{NS}S> "
            f"WHERE {{ SEQ({sequence}) {' '.join(gpms)} }} {emit} {skip} {limit}"
        )

    def event(self) -> str:
        rng = self._rng
        keys = [f"<{NS}{rng.choice('xy')}>" for _ in range(rng.choice([1, 1, 1, 2]))]
        return " ".join(f"{key} <{NS}{rng.choice('abc')}> {rng.choice(_VALUES)} ." for key in keys)


class _Told:
    """A query, and its matches since they were asked for the last time: read, or got by a callback."""

    def __init__(self, engine: spaseq.Engine, text: str, is_called: bool) -> None:
        self._called: list[spaseq.Match] | None = [] if is_called else None
        self.handle = engine.register(text, None if self._called is None else self._called.append)

    def matches(self) -> list[spaseq.Match]:
        if self._called is None:
            return list(self.handle.matches())
        found, self._called[:] = [*self._called], []
        return found

    def counts(self) -> dict[str, object]:
        """What is counted of it, but for what it shares."""
        counts = asdict(self.handle.stats)
        return {name: counts[name] for name in counts if not name.startswith("shared") and name != "limit"}


def _sorted(matches: Iterable[spaseq.Match], enumerated: bool) -> Iterator[spaseq.Match]:
    """Matches of the same last event by partition: an engine has these in the order in which it met them.

    Those of one partition are in order, unless they are enumerated.
    """

    def key(match: spaseq.Match) -> tuple[str, str]:
        return str(sorted(match.partition.items())), str(_answers([match])) if enumerated else ""

    for _, alike in groupby(matches, key=lambda match: max(e.n for of in match.events.values() for e in of)):
        yield from sorted(alike, key=key)


def _answers(matches: Iterable[spaseq.Match]) -> Answers:
    return [
        (
            str([[str(e.graph) for e in found] for _, found in sorted(match.events.items())]),
            sorted(str(sorted(row.items())) for row in match.bindings),
        )
        for match in matches
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("matcher", ["nfa", "tecs", "lazy", "nfa, skip"])
@settings(max_examples=examples(60), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_as_if_each_were_alone(matcher: str, seed: int) -> None:
    check_against_each_alone(matcher, seed)


def check_against_each_alone(matcher: str, seed: int) -> None:
    """Queries that begin alike, in one engine, have what they have each in one of its own."""
    rng = random.Random(seed)
    drawn = _Drawn(rng, matcher)
    lateness = timedelta(seconds=rng.choice([0, 0, 3, 100]))  # with the last, all events are one batch
    together = spaseq.Engine(lateness=lateness, matcher=matcher.partition(",")[0])
    engines = [spaseq.Engine(lateness=lateness, matcher=matcher.partition(",")[0]) for _ in drawn.texts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        called = rng.random() < 0.5
        shared = [_Told(together, text, called) for text in drawn.texts]
        alone = [_Told(engine, text, called) for engine, text in zip(engines, drawn.texts, strict=True)]
    time = 0
    for number in range(rng.randint(10, 40)):
        time += rng.choice([0, 1, 1, 2])
        graph, name = drawn.event(), f"{NS}e{number}"
        for engine in [together, *engines]:
            engine.push(NS + "S", graph, time, name=name)
        if rng.random() < 0.05:
            gone = rng.randrange(len(shared))
            shared[gone].handle.cancel()
            alone[gone].handle.cancel()
        if rng.random() < 0.3:
            _compare(shared, alone, drawn.texts)
    apart = not any(told.handle.done or told.handle.stats.shared_with for told in shared)
    if apart and lateness < timedelta(seconds=100):
        assert all(told.handle.stats.shared[0] == len(shared) for told in shared), drawn.texts
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
    told, judge = spaseq.Engine(), spaseq.Engine(matcher="reference")
    matches: list[spaseq.Match] = []
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(singles, "_MOST", rng.choice([1, 3, 64]))
        patch.setattr(singles, "_LOG", rng.choice([9, 60, 1 << 13]))
        patch.setattr(core, "_SWEEP_AFTER", rng.choice([4, 10_000]))
        # While events are kept to say why there is no match, they are more than a few numbers.
        patch.setattr(stream_set, "Sample", partial(Sample, *rng.choice([(1, 1), (2_000, 10_000)])))
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
    assert handle.stats == expected.stats


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize("matcher", ["nfa", "tecs", "lazy", "nfa, skip"])
@settings(max_examples=examples(100), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_those_that_come_later_are_as_if_alone_too(matcher: str, seed: int) -> None:
    rng = random.Random(seed)
    drawn = _Drawn(rng, matcher)
    lateness = timedelta(seconds=rng.choice([0, 0, 3]))
    together = spaseq.Engine(lateness=lateness, matcher=matcher.partition(",")[0])
    engines: list[spaseq.Engine] = []
    shared: list[_Told] = []
    alone: list[_Told] = []
    called = rng.random() < 0.5
    texts = drawn.texts[: rng.choice([1, 1, 2, 4])]
    drawn.texts = []
    time = 0
    for number in range(rng.randint(20, 60)):
        for text in texts:
            # Which of the matches that end with an event is the first is for the engine to say.
            if "PARTITION" in text or matcher == "tecs":
                text = text.partition("LIMIT")[0]
            engine = spaseq.Engine(lateness=lateness, matcher=matcher.partition(",")[0])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", spaseq.SpaseqWarning)
                shared.append(_Told(together, text, called))
                alone.append(_Told(engine, text, called))
            engines.append(engine)
            drawn.texts.append(text)
        texts = [drawn.text() for _ in range(rng.choice([1, 1, 2]))] if rng.random() < 0.1 else []
        time += rng.choice([0, 1, 1, 2])
        events = [(drawn.event(), time, f"{NS}e{number}.{i}") for i in range(rng.choice([1, 1, 1, 6]))]
        if len(events) > 1 and rng.random() < 0.5:
            for engine in [together, *engines]:
                engine.push_many(NS + "S", events)
        else:
            for engine in [together, *engines]:
                for graph, at, name in events:
                    engine.push(NS + "S", graph, at, name=name)
        if rng.random() < 0.1:
            gone = rng.randrange(len(shared))
            shared[gone].handle.cancel()
            alone[gone].handle.cancel()
        if rng.random() < 0.3:
            _compare(shared, alone, drawn.texts, enumerated=matcher == "tecs")
    for engine in [together, *engines]:
        engine.close()
    _compare(shared, alone, drawn.texts, enumerated=matcher == "tecs")


@pytest.mark.parametrize("matcher", ["nfa", "tecs", "lazy"])
@pytest.mark.slow
def test_most_that_begin_alike_share_whenever_they_come(matcher: str) -> None:
    """Of sets of random queries that come one after the other; tumbling windows would have to begin alike."""
    shared = 0
    sets = examples(50)
    for seed in range(sets):
        rng = random.Random(seed)
        drawn = _Drawn(rng, matcher)
        engine = spaseq.Engine(matcher=matcher.partition(",")[0])
        handles: list[spaseq.Handle] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spaseq.SpaseqWarning)
            for time in range(60):
                if time % 3 == 0 and drawn.texts:
                    text = drawn.texts.pop().replace("TUMBLING", "SLIDING").partition("LIMIT")[0]
                    handles.append(engine.register(text))
                engine.push(NS + "S", drawn.event(), time)
                said = [handle.stats.shared for handle in handles]
        shared += all(of and of[0] == len(handles) for of in said)
    assert shared >= 0.8 * sets


def test_one_that_comes_later_shares_when_a_window_is_over() -> None:
    engine = spaseq.Engine(matcher="nfa")
    handles = [engine.register(query("A ; B ; C", "4 SECONDS SLIDING"))]
    pushing = _pushed(engine, "a1 b2 c3 a4 b5 c6 a7 b8 d9 a10 b11 c12 d13 a14 b15 c16")
    for _ in range(4):
        next(pushing)
    handles.append(engine.register(query("A ; B ; D", "4 SECONDS SLIDING")))
    said = []
    for _ in pushing:
        said.append([handle.stats.shared for handle in handles])
    assert said == [[(), ()]] * 6 + [[(2, 2, 1)] * 2] * 6
    found = [[events_of(match) for match in handle.matches()] for handle in handles]
    assert found == [["a1b2c3", "a4b5c6", "a10b11c12", "a14b15c16"], ["a7b8d9", "a10b11d13"]]
    handles.append(engine.register(query("A ; B", "9 SECONDS SLIDING")))
    for letter in letters("a20 b21 a40 b41 c42 d43"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        shared_ = [handle.stats.shared for handle in handles]  # which asks for the answer at once
    assert shared_ == [(3, 3, 1), (3, 3, 1), (3, 3)]
    found = [[events_of(match) for match in handle.matches()] for handle in handles]
    assert found == [["a40b41c42"], ["a40b41d43"], ["a20b21", "a40b41"]]


def _compare(
    shared: Sequence[_Told], alone: Sequence[_Told], texts: Sequence[str], *, enumerated: bool = False
) -> None:
    for one, other, text in zip(shared, alone, texts, strict=True):
        found, expected = (_answers(_sorted(told.matches(), enumerated)) for told in (one, other))
        assert found == expected, text
        assert one.handle.done == other.handle.done, text
        assert one.counts() == other.counts(), text


def _pushed(engine: spaseq.Engine, text: str) -> Iterator[None]:
    for letter in letters(text):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        yield


def test_who_asks_as_a_query_joins_others_has_all_matches() -> None:
    """Those that it found by itself come in two parts, one of which is read when it joins: more follow."""
    engine = spaseq.Engine(matcher="tecs")
    others, own = (
        f"PREFIX : <{NS}> SELECT * WITHIN 5 SECONDS TUMBLING FROM STREAM S <{NS}S> WHERE {{ SEQ(G : H) "
        f"DEFINE GPM G ON S {{ ?k :a ?v }} DEFINE GPM H ON S {{ ?k :{letter} ?w }} }}"
        for letter in "ba"
    )

    def push(line: str) -> None:
        for number, word in enumerate(line.split()):
            key, letter, time = word[0], word[1], int(word[2:])
            values = "1, 2" if number == 9 else "1"  # of several solutions, a match is run again
            engine.push(NS + "S", f"<{NS}{key}> <{NS}{letter}> {values} .", time)

    engine.register(others)
    push("ya5")
    handle = engine.register(own)
    push("xb15 xa16 ya16 ya16 xa16 xa19 ya19 ya19 ya19 xa19")
    engine.push_many(NS + "S", [(f"<{NS}x> <{NS}a> {value} .", 20) for value in (0, 1)])
    found = [match.end for match in handle.matches()]
    assert found == [16] * 2 + [19] * 14 + [20]
    assert not list(handle.matches())


def test_what_is_shared_is_told_of() -> None:
    engine = spaseq.Engine(matcher="nfa")
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


def test_one_that_ends_after_events_that_concern_nobody_leaves_the_others_their_windows() -> None:
    engine = spaseq.Engine(matcher="nfa")
    narrow, wide = (
        engine.register(query(f"A ; {x}", f"{size} EVENTS SLIDING")) for x, size in (("B", 3), ("C", 9))
    )
    for letter in letters("a1 d2 d3 b5 a6 b7"):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
        assert narrow.stats.events
        if letter.time == 3:
            wide.cancel()
            engine.push(NS + "S", "", 4)
    assert [events_of(match) for match in narrow.matches()] == ["a6b7"]


def test_events_that_came_alone_count_when_another_query_comes_to_share() -> None:
    together, alone = (spaseq.Engine(matcher="nfa") for _ in range(2))
    handles = [engine.register(query("A ; B ; C", "6 EVENTS TUMBLING")) for engine in (together, alone)]
    for letter in letters("a1 b2 c3 a4 b5 c6 a7 b8 d9 a10 b11 c12 a13"):
        if letter.time == 7:
            together.register(query("A ; B ; D", "6 EVENTS TUMBLING"))
        for engine in (together, alone):
            if letter.time < 13:
                engine.push(NS + letter.stream, letter.turtle, letter.time)
            else:
                engine.push_many(NS + letter.stream, [(letter.turtle, letter.time)])
    counts = [asdict(handle.stats) | {"limit": None} for handle in handles]
    assert [count.pop("shared") for count in counts] == [(2, 2, 1), ()]
    assert counts[0] == counts[1]


def test_a_query_that_comes_later_has_no_earlier_events() -> None:
    engine = spaseq.Engine(matcher="nfa")
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
    engine = spaseq.Engine(matcher="nfa", limits=limits)
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


@pytest.mark.slow
def test_those_that_are_over_are_forgotten() -> None:
    engine = spaseq.Engine(matcher="nfa")
    handles: list[spaseq.Handle] = []
    for number in range(200):
        handles.append(engine.register(query("A ; B", f"{2 + number} SECONDS TUMBLING")))
        engine.push(NS + "S", f"<{NS}e> a <{NS}a> ; <{NS}v> 1 .", number)
        assert handles[-1].stats.events == 1
        if len(handles) > 5:
            handles.pop(1).cancel()
    gc.collect()
    assert sum(type(thing) is Member for thing in gc.get_objects()) < 60


def test_more_gpms_than_a_group_has_room_for_are_several_groups() -> None:
    engine = spaseq.Engine()
    gpms = "DEFINE GPM A ON S { ?x :a ?a } DEFINE GPM B ON S { ?x :b ?b } DEFINE GPM C ON S { ?x :c%d ?c }"
    handles = [
        engine.register(
            f"PREFIX : <{NS}> SELECT * WITHIN 9 SECONDS SLIDING FROM STREAM S <{NS}S> "
            f"WHERE {{ SEQ(A : B : C) {gpms % number} }}"
        )
        for number in range(70)
    ]
    for time, of in enumerate(["a", "b", "c0", "c69"]):
        engine.push(NS + "S", f"<{NS}x> <{NS}{of}> 1 .", time)
    assert [handle.stats.matches for handle in handles] == [1, *[0] * 68, 1]
    assert [handle.stats.shared for handle in handles] == [(60, 60, 1)] * 60 + [(10, 10, 1)] * 10


def test_what_a_cancelled_query_has_not_read_can_be_read_later_and_holds_nothing_back() -> None:
    engine = spaseq.Engine(matcher="tecs", limits=spaseq.Limits(pending_matches=None))
    wide = engine.register(query("A : B : C", "5000 SECONDS SLIDING"))
    narrow = engine.register(query("A : B : D", "9 SECONDS SLIDING"))
    events = [(f"<{NS}e> a <{NS}{'abcd'[i % 4]}> ; <{NS}v> 1 .", i) for i in range(12_000)]
    engine.push_many(NS + "S", events[:40])
    assert narrow.stats.matches == 1 + 9 * 3
    assert wide.stats.shared == (2, 2, 1)
    wide.cancel()
    for begin in range(40, len(events), 1_000):
        engine.push_many(NS + "S", events[begin : begin + 1_000])
        narrow.drop()
    assert sum(1 for _ in wide.matches()) == sum(k * (k + 1) // 2 for k in range(1, 11))
