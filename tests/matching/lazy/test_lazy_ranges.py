"""Ordering filters: what they say of an event's values is right, however odd, and spares looking at most."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from pyoxigraph import Literal, NamedNode

from spaseq.engine import Engine
from spaseq.language.syntax import Filter
from spaseq.matching.filters.postfix import FilterSite, steps
from spaseq.matching.lazy import memory
from spaseq.matching.lazy.ranges import LEAST, MOST, ranges
from spaseq.matching.lazy.records import counter
from spaseq.matching.model import StreamWindow
from spaseq.terms.dictionary import Term
from spaseq.terms.values import XSD
from tests.matching.kernel_cases import by_runs, whole
from tests.matching.lazy.test_lazy import by_lazy, by_tree, check
from tests.matching.lazy.test_lazy_costs import Stream, text
from tests.matching.random_sequences import ODD, PLAIN, TIMES, Query, Sample, pattern_of, random_sample
from tests.matching.test_fuzz import seeds, unshrunk


def bounds_of(condition: str, own: str) -> list[tuple[str, int, dict[str | None, float]]]:
    """What a filter says of the variables of an event, as numbers."""
    pattern = pattern_of(text("A : B", {"B": condition}))
    (item,) = (f for f in pattern.gpms["B"].gpm.pattern.elements if isinstance(f, Filter))
    code = steps(item, FilterSite(), {})
    return [
        (one.variable, one.bounds, {term.name: float(term.factor) for term in one.sum})
        for one in ranges(code, frozenset(own))
    ]


@pytest.mark.parametrize(
    ("condition", "least", "most"),
    [
        ("?b < ?a", None, {"a": 1}),
        ("?a < ?b", {"a": 1}, None),
        ("?b >= ?a - 20", {"a": 1, None: -20}, None),
        ("?b = ?a", {"a": 1}, {"a": 1}),
        ("?b * 2 <= ?a", None, {"a": 0.5}),
        ("-?b <= ?a", {"a": -1}, None),
        ("10 - ?b / 4 > ?a", None, {"a": -4, None: 40}),
        ("2e0 * ?b > 1.5", {None: 0.75}, None),
        ("?b != ?a", None, None),
        ("?b * ?b < ?a", None, None),
        ("?b + ?b < ?a", None, None),
        ("?b * ?a < 3", None, None),
        ("?b / 0 < ?a", None, None),
        ("?b * 0 < ?a", None, None),
        ("?b < ?a * 1e200", None, None),
        ("?b < ?a * 'x'", None, None),
        ("?b < 'x'", None, None),
        ("?a < 3", None, None),
    ],
)
def test_what_is_linear_is_solved(
    condition: str, least: dict[str | None, float] | None, most: dict[str | None, float] | None
) -> None:
    found = bounds_of(condition, "b")
    assert [total for _, sides, total in found if sides & LEAST] == [least] * (least is not None)
    assert [total for _, sides, total in found if sides & MOST] == [most] * (most is not None)
    assert all(name == "b" for name, _, _ in found)


# --- right --------------------------------------------------------------------------------------------

SEQUENCES = (
    "A : B : C",
    "ALL(A, B, C)",
    "A : !B : C",
    "A : B{1,2}[:] : C",
    "A : B+[:] : C",
    "ALL(A : B, C)",
    "!A : B : C",
)
#: Values that are nearly the same, or so far apart that sums of them say nothing.
HARD: list[Term] = [
    *PLAIN,
    *ODD,
    TIMES[0],
    TIMES[3],
    *(Literal(x) for x in (0.1, 0.2, 0.1 + 0.2, 1 / 3, 1e16, 1e16 + 2, 1e308, -1e308, 1e-308, 1.0)),
]
#: Where sums of decimals are equal, and those of their doubles are not.
CLOSE: list[Term] = [
    *(Literal(x, datatype=NamedNode(XSD + "decimal")) for x in ("0.1", "0.2", "0.3", "-0.1", "0.6")),
    *(Literal(x) for x in (0.1, 0.2, 0.3, 0.1 + 0.2, -0.1)),
]


@pytest.mark.parametrize("matcher", ["lazy", "tree"])
@pytest.mark.parametrize(
    ("condition", "a", "b"),
    [
        ("?b >= ?a + 0.2", "0.1", "0.3"),
        ("?b + 0.2 <= ?a", "0.3", "0.1"),
        ("?b * 3 <= ?a", "0.3", "0.1"),
        ("?b + 1e16 <= ?a", "1e16", "1e0"),
        ("?b < ?a + 1e308", "1e308", "1"),
        ("?b <= ?a", "1e400", "1"),
    ],
)
def test_what_doubles_round_is_found(condition: str, a: str, b: str, matcher: str) -> None:
    engine = Engine(matcher=matcher)
    handle = engine.register(text("A : B", {"B": condition}).replace("WITHIN 1 ", "WITHIN 9 "))
    for tick, value in enumerate((a, b)):
        body = f"[] <http://example.org/v> {value} ; <http://example.org/k> 0 ."
        engine.push("http://example.org/s", body, tick)
    assert (0, 1) in [(match.start, match.end) for match in handle.matches()]


def test_each_variable_has_bounds_of_its_own() -> None:
    """There are fewer B than A: after C, it is found by ?w, and A by ?b."""
    query = (
        "PREFIX : <http://example.org/> SELECT * WITHIN 9 SECONDS FROM STREAM S <http://example.org/s> "
        "WHERE { SEQ(A : B : C) DEFINE GPM A ON S { [] :a ?a } "
        "DEFINE GPM B ON S { [] :b ?b ; :w ?w . FILTER(?b = ?a) } "
        "DEFINE GPM C ON S { [] :c ?c . FILTER(?c = ?w) } }"
    )
    engine = Engine(matcher="tree")
    handle = engine.register(query)
    for tick, event in enumerate((":a 5", ":a 6", ":b 5 ; :w 9", ":c 9")):
        engine.push("http://example.org/s", f"@prefix : <http://example.org/> . [] {event} .", tick)
    assert [(match.start, match.end) for match in handle.matches()] == [(0, 3)]


def linear(rng: random.Random, names: Sequence[str]) -> str:
    """A comparison of sums."""

    def one() -> str:
        value = f"?{rng.choice('vvw')}{rng.choice(names)}"
        match rng.randrange(5):
            case 0:
                return f"{value} {rng.choice('+-')} {rng.choice(['0.2', '0.1', '1e-1', '1e16', '1e308'])}"
            case 1:
                return f"{rng.choice(['2', '-3', '3', '1e-1', '0'])} * {value}"
            case 2:
                return f"{value} / {rng.choice(['3', '-0.7', '1e1', '0'])}"
            case 3:
                return f"{value} - ?v{rng.choice(names)}"
            case _:
                return value

    return f"{one()} {rng.choice(['<', '<=', '>', '>=', '='])} {one()}"


def linear_query(rng: random.Random, sequence: str, joined: bool) -> Query:
    names = [name for name in "ABC" if name in sequence.replace("ALL", "")]
    gpms = ""
    for i, name in enumerate(names):
        there = [one for one in names if f"!{one}" not in sequence]
        seen = there if "ALL" in sequence else [one for one in names[: i + 1] if one in (name, *there)]
        filters = " ".join(f"FILTER({linear(rng, seen)})" for _ in range(rng.choice([0, 1, 1, 2])))
        key = " ; :k ?k" * joined
        gpms += f"DEFINE GPM {name} ON S {{ [] :v ?v{name} ; :w ?w{name}{key} . {filters} }} "
    query = (
        "PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS FROM STREAM S <http://example.org/s> "
        f"WHERE {{ SEQ({sequence}) {gpms}}}"
    )
    types, streams = dict.fromkeys(names, "x"), dict.fromkeys(names, (1,))
    return Query(query, pattern_of(query), types, streams, dict.fromkeys(names, ("k",) * joined))


def with_values(sample: Sample, rng: random.Random, values: Sequence[Term]) -> Sample:
    """The same stream with these values."""
    ids = [sample.dictionary.intern(term) for term in values]
    events = []
    for event in sample.events:
        solutions = {
            gpm: tuple({**one, f"v{gpm}": rng.choice(ids), f"w{gpm}": rng.choice(ids)} for one in rows)
            for gpm, rows in event.solutions.items()
        }
        events.append(replace(event, solutions=solutions))
    return replace(sample, events=tuple(events), drops=frozenset())


@unshrunk
@given(seeds)
@pytest.mark.slow
def test_sums_of_hard_numbers(seed: int) -> None:
    """What the bounds leave out, the reference finds no match with: rounding, no numbers, infinity."""
    rng = random.Random(f"linear {seed}")
    query = linear_query(rng, rng.choice(SEQUENCES), rng.random() < 0.2)
    for _ in range(10):
        values = CLOSE if rng.random() < 0.3 else rng.sample(HARD, rng.choice([3, 5, 8]))
        check(with_values(random_sample(rng, query, 7), rng, values))


@pytest.mark.few(2, ci=5)
@pytest.mark.parametrize("sequence", ["A : B : C", "A : !B : C", "A : B{1,2}[:] : C"])
@pytest.mark.parametrize("seed", range(4))
def test_long_windows(sequence: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that grow, turn round and expire; lists of partial matches that grow and lose some."""
    monkeypatch.setattr(memory, "_ROWS", 4)
    monkeypatch.setattr(memory, "_WAITS", 1)
    rng = random.Random(f"long {sequence} {seed}")
    for _ in range(2):
        query = linear_query(rng, sequence, rng.random() < 0.3)
        values: list[Term] = [Literal(rng.randrange(40)) for _ in range(30)]
        sample = with_values(random_sample(rng, query, 80, steps=False), rng, values)
        sizes = [rng.randrange(1, 40) for _ in range(12)]
        sample = whole(sample, StreamWindow(12, True, True, 0), *sizes)
        expected = by_runs(sample)
        assert by_lazy(sample) == expected
        assert by_tree(sample) == expected


# --- spared -------------------------------------------------------------------------------------------


def count_looks(query: str, kinds: str, size: int, window: int, tree: bool) -> tuple[int, int]:
    """How many rows were looked at, and how many matches there were."""
    rng = random.Random(3)
    stream = Stream(query, window, tree=tree)
    found = stream.push([(rng.choice(kinds), rng.randrange(300)) for _ in range(size)])
    return int(stream.lazy.memory.counters[counter.TESTED]), len(found)


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize(
    "kinds", ["ABC", "AABBBBBBBBCCCCCCCC", "AAAAAAAAAABBBBBBBBBBC", "AAAAAAAAAABCCCCCCCCCC"]
)
@pytest.mark.parametrize(
    "filters",
    [
        {"B": "?b > ?a && ?b <= ?a + 3", "C": "?c > ?b && ?c <= ?b + 3"},
        {"B": "?b - ?a > 0 && ?b / 2 - ?a / 2 <= 1.5", "C": "-?c < -?b && ?c - 3 <= ?b"},
        {"B": "?b = ?a + 1", "C": "?c - ?b = 1"},
    ],
)
@pytest.mark.few(1, ci=8)
def test_what_cannot_match_is_not_looked_at(tree: bool, kinds: str, filters: dict[str, str]) -> None:
    """Neither in the buffers nor among what waits: an event is looked at once, and then few others."""
    looked, matches = count_looks(text("A : B : C", filters), kinds, 1_500, 200, tree)
    assert looked < (9_000 if tree else 1_500)
    assert matches > 0


@pytest.mark.parametrize("tree", [False, True])
def test_what_must_not_be_is_looked_for_within_its_bounds(tree: bool) -> None:
    query = text("A : !B : C", {"B": "?b > ?a && ?b < ?a + 3"})
    looked, matches = count_looks(query, "AAABBBBBBBBC", 1_000, 60, tree)
    assert matches > 1_000
    assert looked < 2 * matches
