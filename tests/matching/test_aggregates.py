"""Aggregates over loops, on every matcher: the page's examples, and random loops with optional values."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest

import spaseq
from spaseq.errors import EngineError
from tests.streams import NS, events_of

#: All that take queries without SKIP; None is the one that a query gets by itself.
MATCHERS = [None, "reference", "interpreter", "nfa", "lazy", "tree", "tecs"]
#: Matchers that run any filter; None is the one that is chosen.
_EXACT = (None, "reference", "interpreter")

#: The value of each event, in order; None: it has none.
Values = tuple[int | None, ...]


def loop(
    condition: str = "",
    *,
    seq: str = "A+[,]",
    head: str = "SELECT *",
    after: str = "",
    where: str = "",
    tail: str = "",
    more: str = "",
) -> str:
    """A query with a loop of A, in which ``?v`` is optional. ``condition`` is A's, ``after`` is C's."""
    last = f"DEFINE GPM C ON S {{ ?c a :c . ?c :v ?cv {after} }}" if "C" in seq else ""
    return f"""PREFIX : <{NS}> {head} WITHIN 99 SECONDS SLIDING FROM STREAM S <{NS}S>
        WHERE {{ SEQ({seq})
          DEFINE GPM A ON S {{ ?a a :a OPTIONAL {{ ?a :v ?v }} {condition} }}
          {last} {more} {where} }} {tail}"""


def matches(text: str, events: str, values: Values, matcher: str | None) -> list[spaseq.Match] | None:
    """The matches on letters ``a c a`` at ticks 1, 2, 3; None if the matcher refuses the query."""
    engine = spaseq.Engine(matcher=matcher)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        try:
            handle = engine.register(text)
        except EngineError as refusal:
            if "can run this query only if" not in str(refusal):
                raise
            return None
    for i, (letter, value) in enumerate(zip(events.split(), values, strict=True), 1):
        node, of = f"<{NS}{letter}{i}>", "" if value is None else f" ; <{NS}v> {value}"
        engine.push(f"{NS}S", f"{node} a <{NS}{letter}>{of} .", i, name=f"{NS}e/{letter}{i}")
    engine.close()
    return list(handle.matches())


def found(text: str, events: str, values: Values, matcher: str | None) -> list[str] | None:
    answer = matches(text, events, values, matcher)
    return None if answer is None else sorted(map(events_of, answer))


WORKED = [
    ("FILTER(?v > PREV(?v))", (1, 3, 2), "a1 a1a2 a2 a3"),
    ("FILTER(?v > PREV(MAX(?v)))", (1, 3, 2), "a1 a1a2 a2 a3"),
    ("FILTER(PREV(SUM(?v)) < 4)", (1, 3, 2), "a1 a1a2 a2 a2a3 a3"),
    ("FILTER(MAX(?v - PREV(?v)) > 1)", (1, 3, 2), "a1 a1a2 a1a2a3 a2 a3"),
    ("FILTER(SUM(?v - PREV(?v)) > 0)", (1, 3, 2), ""),
    ("FILTER(COUNT(?v) <= 1)", (1, None, 2), "a1 a1a2 a2 a2a3 a3"),
]

#: Worked out by hand from the page's text (4.6).
HAND = [
    # Without a value an iteration contributes nothing.
    ("FILTER(SUM(?v) < 4)", (1, None, 2), "a1 a1a2 a1a2a3 a2 a2a3 a3"),
    ("FILTER(AVG(?v) = 1)", (1, None, 2), "a1 a1a2"),
    ("FILTER(MIN(?v) = 1)", (1, None, 2), "a1 a1a2 a1a2a3"),
    ("FILTER(FIRST(?v) = 1)", (1, None, 2), "a1 a1a2 a1a2a3"),
    ("FILTER(SAMPLE(?v) = 1)", (1, None, 2), "a1 a1a2 a1a2a3"),
    ("FILTER(GROUP_CONCAT(?v) IN ('1', '1 2'))", (1, None, 2), "a1 a1a2 a1a2a3"),
    # Over no values at all.
    ("FILTER(SUM(?v) = 0 && AVG(?v) = 0 && COUNT(?v) = 0)", (None, None, 1), "a1 a1a2 a2"),
    ("FILTER(GROUP_CONCAT(?v) = '')", (None, None, 1), "a1 a1a2 a2"),
    ("FILTER(MAX(?v) > 0)", (None, None, 1), "a3"),
    # PREV inside: what the iteration before has not, and what it does not bind.
    ("FILTER(SUM(?v - PREV(?v)) >= 0)", (1, 3, 2), "a1 a1a2 a1a2a3 a2 a3"),
    ("FILTER(COUNT(?v - PREV(?v)) < 1)", (1, None, 2), "a1 a1a2 a1a2a3 a2 a2a3 a3"),
    ("FILTER(COUNT(COALESCE(PREV(?v), ?v)) < 2)", (1, None, 2), "a1 a2 a2a3 a3"),
    ("FILTER(COUNT(DISTINCT ?v - PREV(?v)) < 2)", (1, 2, 3), "a1 a1a2 a1a2a3 a2 a2a3 a3"),
    ("FILTER(LAST(?v - PREV(?v, 2)) = 1)", (1, 3, 2), "a1 a1a2 a1a2a3 a2 a2a3 a3"),
    ("FILTER(MAX(?v - PREV(?v)) > 0)", (None, 3, 2), "a2 a3"),
    # Any other error in an iteration is one of the aggregate.
    ("FILTER(SUM(6 / ?v) >= 3)", (2, 0, 3), "a1"),
    ("FILTER(COUNT(6 / ?v) >= 1)", (2, 0, 3), "a1 a3"),
    ("FILTER(LAST(6 / ?v) >= 1)", (0, 2, 3), "a2 a2a3 a3"),
    ("FILTER(LAST(6 / ?v) >= 1 || true)", (0, 2, 3), "a1 a1a2 a1a2a3 a2 a2a3 a3"),
    # PREV of an aggregate has a value from the second iteration on, if there is one.
    ("FILTER(PREV(COUNT(?v)) < 1)", (1, None, 2), "a1 a2 a2a3 a3"),
    ("FILTER(PREV(MAX(?v)) < 9)", (None, 1, 2), "a1 a2 a2a3 a3"),
    ("FILTER(PREV(MAX(?v - PREV(?v))) > 1)", (1, 3, 2), "a1 a1a2 a1a2a3 a2 a2a3 a3"),
    ("FILTER(?v > PREV(LAST(?v, 1)))", (1, 3, 2), "a1 a2 a3"),
    ("FILTER(?v < COALESCE(PREV(SUM(?v)), 3))", (1, 3, 2), "a1 a3"),
    # The second of the different values, if there are two.
    ("FILTER(COALESCE(FIRST(DISTINCT ?v, 1), 2) = 2)", (1, 1, 3), "a1 a1a2 a2 a3"),
    ("FILTER(FIRST(DISTINCT ?v, 1) = 2 || ?v = 1)", (1, None, 2), "a1"),
    ("FILTER(FIRST(DISTINCT ?v, 1) = 2 || ?v = 1)", (1, 1, 2), "a1 a1a2 a1a2a3 a2 a2a3"),
]


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize(("condition", "values", "expected"), WORKED + HAND)
def test_in_the_loop(matcher: str | None, condition: str, values: Values, expected: str) -> None:
    answer = found(loop(condition), "a a a", values, matcher)
    assert answer == expected.split() or (
        answer is None and matcher not in (None, "reference", "interpreter")
    )


@pytest.mark.parametrize("matcher", MATCHERS)
def test_merging_ranges_that_overlap(matcher: str | None) -> None:
    """The best-known use of MATCH_RECOGNIZE: a range begins before the latest end so far."""
    skip = "AFTER MATCH SKIP PAST LAST EVENT"
    ends = "?a :end ?end FILTER(?v <= PREV(MAX(?end)))"
    text = loop(ends, tail=skip if matcher in (None, "reference") else "")
    engine = spaseq.Engine(matcher=matcher)
    try:
        handle = engine.register(text)
    except EngineError:
        assert matcher in ("lazy", "tree", "tecs")
        return
    for i, (begin, end) in enumerate([(1, 5), (2, 3), (4, 8), (9, 10), (9, 12)], 1):
        graph = f"<{NS}a{i}> a <{NS}a> ; <{NS}v> {begin} ; <{NS}end> {end} ."
        engine.push(f"{NS}S", graph, i, name=f"{NS}e/a{i}")
    engine.close()
    longest = {"a1a2a3", "a4a5"}
    answer = {events_of(match) for match in handle.matches()}
    assert answer == longest if matcher in (None, "reference") else answer > longest
    assert "a3a4" not in answer


@pytest.mark.parametrize("matcher", MATCHERS)
def test_after_the_loop(matcher: str | None) -> None:
    def answer(after: str = "", where: str = "", seq: str = "(A | B)+[,] , C") -> list[str] | None:
        text = loop(seq=seq, after=after, where=where, more="DEFINE GPM B ON S { ?b a :b }")
        return found(text, "a b a c", (1, None, 2, 3), matcher)

    whole = ["a1b2a3c4", "a3c4", "b2a3c4"]
    some = {
        "FILTER(SUM(?v) = ?cv)": ["a1b2a3c4"],
        "FILTER(AVG(?v) = 2)": ["a3c4", "b2a3c4"],
        "FILTER(MAX(?v) < ?cv)": whole,
        "FILTER(COUNT(?v) = 2)": ["a1b2a3c4"],
        "FILTER(SUM(?v - PREV(?v)) = 0)": whole,
        "FILTER(MAX(COALESCE(?v - PREV(?v, 2), ?v)) = 1)": ["a1b2a3c4"],
    }
    for condition, expected in some.items():
        assert answer(condition) in (expected, None), condition
        assert answer(where=condition) in (expected, None), condition
    assert answer(next(iter(some))) is not None or matcher in ("lazy", "tree", "tecs")


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize("place", ["after", "where", "select"])
def test_a_loop_that_is_left_out_has_no_values(matcher: str | None, place: str) -> None:
    test = "SUM(?v) = 0 && AVG(?v) = 0 && COUNT(?v) = 0 && !BOUND(?v)"
    more = "DEFINE GPM B ON S { ?b a :b }"
    if place == "select":
        head = "SELECT ?b (SUM(?v) AS ?sum) (AVG(?v) AS ?avg) (COUNT(?v) AS ?n) (MAX(?v) AS ?max)"
        answer = matches(loop(seq="B ; A* ; C", head=head, more=more), "b c", (None, 3), matcher)
        if answer is not None:
            (match,) = answer
            (row,) = match.bindings
            assert [row["sum"].value, row["avg"].value, row["n"].value] == [0, 0, 0]
            assert "max" not in row
        return
    text = loop(seq="B ; A* ; C", more=more, **{place: f"FILTER({test})"})
    assert found(text, "b c", (None, 3), matcher) in (["b1c2"], None)
    # A loop that the filter does not let be is one that is left out.
    assert found(text, "b a c", (None, 1, 3), matcher) in (["b1c3"], None)


@pytest.mark.parametrize("matcher", MATCHERS)
def test_in_select(matcher: str | None) -> None:
    head = """SELECT (COUNT(?v) AS ?n) (SUM(?v - PREV(?v)) AS ?far) (MAX(?v - PREV(?v)) AS ?most)
        (GROUP_CONCAT(COALESCE(PREV(?v), ?v)) AS ?all) (FIRST(DISTINCT ?v, 1) AS ?second)"""
    answer = matches(loop(head=head, seq="A{4}[,]"), "a a a a", (1, None, 4, 9), matcher)
    assert answer is not None or matcher in ("lazy", "tree", "tecs")
    for match in answer or ():
        (row,) = match.bindings
        assert {name: str(term) for name, term in row.items()} == {
            "n": "3",
            "far": "5",
            "most": "5",
            "all": "1 1 4 4",
            "second": "4",
        }


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize(
    ("values", "expected"),
    [((1, 2, 5), "a1a2c3 a2c3"), ((1, 2, 8), "a2c3"), ((1, None, 8), "a1a2c3 a2c3"), ((1, 2, None), "")],
)
def test_a_filter_waits_for_what_binds_its_variables(
    matcher: str | None, values: Values, expected: str
) -> None:
    """``?cv``, by which each value is multiplied, is bound after the loop."""
    text = loop(seq="A+[,] , C", where="FILTER(SUM(?v * ?cv) < 20)")
    answer = found(text, "a a c", values, matcher)
    assert answer == expected.split() or (
        answer is None and matcher not in (None, "reference", "interpreter")
    )


def test_distance_travelled() -> None:
    head = "SELECT (SUM(geof:distance(?p, PREV(?p), uom:metre)) AS ?metres)"
    text = f"""PREFIX : <{NS}> PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
        PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/> PREFIX geo: <http://www.opengis.net/ont/geosparql#>
        {head} WITHIN 9 SECONDS FROM STREAM S <{NS}S>
        WHERE {{ SEQ(A{{3}}[,]) DEFINE GPM A ON S {{ ?a :at ?p }} }}"""
    engine = spaseq.Engine()
    handle = engine.register(text)
    wkt = "http://www.opengis.net/ont/geosparql#wktLiteral"
    for i, point in enumerate(["0 0", "0 1", "1 1"]):
        engine.push(f"{NS}S", f'<urn:a> <{NS}at> "POINT({point})"^^<{wkt}> .', i)
    ((row,),) = [match.bindings for match in handle.matches()]
    assert row["metres"].value == pytest.approx(110_574 + 111_303, rel=1e-3)


def test_sum_of_differences_in_a_loop() -> None:
    """A sum over no difference is 0: above it no loop begins, and none errs."""
    head = "SELECT (COUNT(?v) AS ?n)"
    assert found(loop("FILTER(SUM(?v - PREV(?v)) > 1)", head=head), "a a", (1, 3), None) == []
    text = loop("FILTER(SUM(?v - PREV(?v)) >= 0)", head=head)
    assert found(text, "a a", (1, 3), None) == ["a1", "a1a2", "a2"]


def test_several_solutions_in_an_iteration() -> None:
    """A filter sees its own solution of the current iteration; PREV takes the last one by value."""

    def answer(condition: str) -> list[str]:
        engine = spaseq.Engine()
        handle = engine.register(loop(condition))
        for i, values in enumerate(["1, 2", "5, 4"], 1):
            engine.push(f"{NS}S", f"<{NS}a{i}> a <{NS}a> ; <{NS}v> {values} .", i, name=f"{NS}e/a{i}")
        return sorted(f"{events_of(match)}:{len(match.bindings)}" for match in handle.matches())

    assert answer("FILTER(COUNT(?v) = 1)") == ["a1:2", "a2:2"]
    assert answer("FILTER(PREV(COUNT(?v)) = 2)") == ["a1:2", "a1a2:4", "a2:2"]
    assert answer("FILTER(SUM(?v - PREV(?v)) != 3)") == ["a1:2", "a1a2:3", "a2:2"]
    assert answer("FILTER(?v > PREV(?v) && COALESCE(FIRST(?v, 1), 2) = 2)") == ["a1:2", "a1a2:4", "a2:2"]


# --- random loops ---------------------------------------------------------------------------------


def number(value: object) -> Fraction | None:
    return None if value is None else Fraction(str(value.value))  # type: ignore[attr-defined]  # a literal


def expected(name: str, of: str, values: Values) -> Fraction | None:
    """An aggregate of SELECT, worked out from the values of the loop's events."""
    pairs = list(zip((None, *values), values, strict=False))
    per_iteration = {
        "?v": list(values),
        "?v - PREV(?v)": [None if a is None or b is None else b - a for a, b in pairs],
        "COALESCE(PREV(?v), ?v)": [b if a is None else a for a, b in pairs],
        "?v * 2": [None if b is None else 2 * b for b in values],
    }[of]
    known = [Fraction(x) for x in per_iteration if x is not None]
    match name:
        case "COUNT":
            return Fraction(len(known))
        case "SUM":
            return sum(known, Fraction(0))
        case "AVG":
            return sum(known, Fraction(0)) / len(known) if known else Fraction(0)
        case "MIN" | "MAX":
            return (min if name == "MIN" else max)(known) if known else None
        case _:
            return known[0 if name == "FIRST" else -1] if known else None


OPERANDS = ["?v", "?v", "?v - PREV(?v)", "COALESCE(PREV(?v), ?v)", "?v * 2"]
NAMES = ["COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"]


def conditions(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Filters at places of a query: in the loop, after it, in WHERE."""
    for place in rng.sample(["condition", "after", "where"], rng.randint(0, 2)):
        aggregate = f"{rng.choice(NAMES)}({rng.choice(OPERANDS)})"
        if place == "condition" and rng.random() < 0.4:
            aggregate = f"PREV({aggregate})"
        bound = rng.choice(["?v", "2", "4"]) if place == "condition" else rng.choice(["?cv", "2"])
        yield place, f"FILTER({aggregate} {rng.choice(['<', '>=', '=', '!='])} {bound})"


def random_loop(seed: int) -> set[str]:
    """Compare all matchers on a random loop; those that can run it."""
    rng = random.Random(seed)
    operator = rng.choice(",;:")
    name, of = rng.choice(NAMES), rng.choice(OPERANDS)
    element = rng.choice(["A+", "A{1,2}", "A{2,}", "A*"])
    before = rng.choice(["", "C2 : " if operator == ":" else ""])
    seq = f"{before}{element}[{operator}] {rng.choice([operator, ':'])} C"
    text = loop(
        seq=seq,
        head=f"SELECT ({name}({of}) AS ?x)",
        more="DEFINE GPM C2 ON S { ?c2 a :c }" if before else "",
        **dict(conditions(rng)),  # type: ignore[arg-type]  # places are names of parameters
    )
    events = [rng.choice("aaac") for _ in range(6)]
    values = tuple(rng.choice([0, 1, 2, 3]) if e == "c" else rng.choice([None, 0, 1, 2, 4]) for e in events)
    able, answers = set(), {}
    for matcher in MATCHERS:
        answer = matches(text, " ".join(events), values, matcher)
        if answer is None:
            continue
        able.add(str(matcher))
        answers[str(matcher)] = sorted(
            (events_of(match), [number(row.get("x")) for row in match.bindings]) for match in answer
        )
        for match in answer:
            chosen = [values[event.time - 1] for event in match.events.get("A", ())]
            ((x,),) = [[number(row.get("x")) for row in match.bindings]]
            wanted = expected(name, of, tuple(chosen))
            assert x == wanted or abs(x - wanted) < Fraction(1, 10**12), f"{seed}\n{text}"
    for able_matcher, answer in answers.items():
        assert answer == answers["reference"], f"{able_matcher}, seed {seed}\n{text}\n{events} {values}"
    return able


def test_random_loops() -> None:
    counts = Counter(matcher for seed in range(60) for matcher in random_loop(seed))
    assert counts["interpreter"] == counts["None"] == 60
    assert counts["nfa"] > 20
    assert counts["lazy"] > 4


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize("part", range(40))
def test_many_random_loops(part: int) -> None:
    for seed in range(1_000 + 50 * part, 1_050 + 50 * part):
        random_loop(seed)
