"""Corners of the runs kernel: numbers that floats do not hold, rows beside rows, keys that are not there."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import pytest
from pyoxigraph import Literal, NamedNode

from spaseq.events import Stamp
from spaseq.matching.context import Context
from spaseq.matching.filters.numbers import _look, _short
from spaseq.matching.host import Matcher
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.reference import Reference
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.terms.texts import text_of
from spaseq.terms.values import decode
from tests.matching.blocks import singly
from tests.matching.kernel_cases import batches, shown
from tests.matching.random_sequences import pattern_of

XSD = "http://www.w3.org/2001/XMLSchema#"
BOUNDS = StreamWindow(1_000, False, True, 0)

#: A row of a GPM: its value and the values of what else it binds.
Rows = Sequence[dict[str, Term]]


def typed(text: str, kind: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + kind))


NUMBERS = (
    *(typed(str(number), "integer") for number in (0, 1, 3, 2**53, 2**53 + 1, -(2**53) - 1, 2**63, 10**30)),
    *(typed(text, "decimal") for text in ("0.1", "0.30000000000000004", "3.0", "9007199254740993.0")),
    *(typed(text, "double") for text in ("0.1", "0.3", "3", "9007199254740992", "-0", "NaN", "INF", "-INF")),
    *(typed(text, "float") for text in ("0.1", "3", "16777217")),
)
OTHERS = (
    *(typed(f"2026-11-20T12:00:00{zone}", "dateTime") for zone in ("", "Z", "+01:00", ".0000001Z")),
    typed("2026-11-20T13:00:00+01:00", "dateTime"),
    typed("2026-11-20", "date"),
    typed("x", "integer"),
    typed("true", "boolean"),
    Literal("3"),
    Literal("a", language="en"),
    NamedNode("urn:3"),
)
#: With NaN before and after another double.
FEW = tuple(NUMBERS[i] for i in (12, 17, 14, 1, 2, 4, 5, 8, 9, 20))


def query(seq: str, bodies: dict[str, str], partition: str = "") -> str:
    """GPMs that bind ``?a``, ``?b``, …, and what their bodies say."""
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :v ?{name.lower()} . {bodies.get(name, '')} }}"
        for name in "ABCD"
        if name in seq
    )
    return (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 1000 SECONDS {partition} "
        f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }}"
    )


def compared(text: str, events: Iterable[dict[str, Rows]], *sizes: int) -> int:
    """How many matches there are; fails unless the kernel finds those of the reference."""
    pattern, dictionary = pattern_of(text), Dictionary()
    context = Context(pattern, dictionary, lambda *_: False)
    occurrences = [
        Occurrence(
            Stamp(i, 1, i),
            i,
            {
                gpm: tuple({name: dictionary.intern(term) for name, term in row.items()} for row in rows)
                for gpm, rows in event.items()
            },
        )
        for i, event in enumerate(events)
    ]
    matcher = Matcher(pattern, BOUNDS, lambda: Reference(pattern, context, BOUNDS))
    expected = [match for one in occurrences for match in shown(matcher.push(one))]
    kernel = NfaMatcher(pattern, dictionary, context, BOUNDS)
    copies = [replace(one) for one in occurrences]
    found = [
        match for part in batches(copies, dictionary, sizes) for match in shown(singly(kernel.process(*part)))
    ]
    assert Counter(found) == Counter(expected)
    return len(expected)


def valued(gpm: str, terms: Iterable[Term]) -> list[dict[str, Rows]]:
    """An event for each term."""
    return [{gpm: ({gpm.lower(): term},)} for term in terms]


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["=", "!=", "<", ">", "<=", ">="])
def test_any_two_values(operator: str) -> None:
    values = (*NUMBERS, *OTHERS)
    text = query("A : B", {"B": f"FILTER(?b {operator} ?a)"})
    assert compared(text, [*valued("A", values), *valued("B", values)]) > 0


@pytest.mark.parametrize("operator", [">", "<="])
def test_any_two_values_in_a_heap(operator: str) -> None:
    """With ``;``, waits stand in the order of the values that they compare with."""
    rng = random.Random(operator)
    text = query("A ; B", {"B": f"FILTER(?b {operator} ?a)"})
    for _ in range(12):
        events = [valued(rng.choice("AAB"), [rng.choice((*NUMBERS, *OTHERS))])[0] for _ in range(25)]
        compared(text, events, rng.randrange(1, 20))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "condition",
    [
        "?b + ?a > ?a",
        "?a - ?b >= 0",
        "?a - ?b > -1",
        "?a + ?a - (?b - ?b) > 0",
        "?a * ?b = ?a",
        "?a / ?b < 1",
        "-?a < ?b",
        "?b - 1 = ?a",
        "?b < ?a - 1",
        "?a >= ?b + 3",
        "?b = 3 * ?a && ?a != 0.1",
        "?a + 0.1 + 0.2 = ?b",
    ],
)
def test_arithmetic(condition: str) -> None:
    text = query("A : B", {"B": f"FILTER({condition})"})
    compared(text, [*valued("A", (*NUMBERS, *OTHERS[:8])), *valued("B", NUMBERS)])


@pytest.mark.parametrize("function", ["SUM", "AVG", "MIN", "MAX", "COUNT", "FIRST", "LAST"])
def test_aggregates(function: str) -> None:
    text = query("A{2}[:] : B", {"B": f"FILTER(?b <= {function}(?a))"})
    assert compared(text, [*valued("A", FEW), *valued("B", FEW)]) > 0


def test_sums_that_are_exact_only_as_integers() -> None:
    text = query("A{3}[,] , B", {"B": "FILTER(?b = SUM(?a))"})
    big = [typed(str(number), "integer") for number in (2**53, 1, 1)]
    for last in (2**53 + 2, 2**53 + 1):
        events = [*valued("A", big), *valued("B", [typed(str(last), "integer")])]
        assert compared(text, events) == (last == 2**53 + 2)


def test_iterations_that_are_compared_with_the_one_before() -> None:
    text = query("A{3}[:]", {"A": "FILTER(?a > PREV(?a))"})
    assert compared(text, valued("A", (*FEW, *reversed(FEW)))) > 0


# --- rows and keys --------------------------------------------------------------------------------


def _terms(prefix: str) -> list[Term]:
    return [Literal(f"{prefix} {i}") for i in range(2)]


def _several(rng: random.Random, gpm: str, keys: Sequence[str], lack: float) -> Rows:
    """Rows of a GPM with values from 0 to 5, some without some of the keys."""
    found = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        row: dict[str, Term] = {gpm.lower(): typed(str(rng.randrange(6)), "integer")}
        row |= {key: rng.choice(_terms(key)) for key in keys if rng.random() >= lack}
        if row not in found:
            found.append(row)
    return tuple(found)


@pytest.mark.few(3, ci=5)
@pytest.mark.parametrize(
    ("seq", "filtered"),
    [("A ; B", "?b > ?a"), ("A ; B", "?b >= ?a"), ("A : B", "?b < ?a"), ("A , B", "?b > ?a"), ("A ; B", "")],
)
@pytest.mark.parametrize("lack", [0, 0.2])
def test_several_rows_joined_by_two_keys(seq: str, filtered: str, lack: float) -> None:
    rng = random.Random(f"{seq} {filtered} {lack}")
    more = f"FILTER({filtered})" if filtered else ""
    body = "OPTIONAL { [] :k ?k } OPTIONAL { [] :j ?j }" if lack else "[] :k ?k ; :j ?j ."
    text = query(seq, {"A": body, "B": f"{body} {more}"})
    total = 0
    for _ in range(25):
        events = []
        for _ in range(12):
            gpms = rng.choice(["A", "A", "B", "AB"])
            events.append({gpm: _several(rng, gpm, "kj", lack) for gpm in gpms})
        total += compared(text, events, rng.randrange(1, 12))
    assert total > 20


@pytest.mark.parametrize("seq", ["A ; B", "A , B", "A : B+[:]"])
def test_rows_without_a_key_are_in_no_partition(seq: str) -> None:
    rng = random.Random(seq)
    text = query(seq, dict.fromkeys("AB", "[] :k ?k ."), "PARTITION BY ?k")
    total = 0
    for _ in range(15):
        events = [{gpm: _several(rng, gpm, "k", 0.4)} for gpm in rng.choices("AAB", k=10)]
        total += compared(text, events, rng.randrange(1, 10))
    assert total > 10


@pytest.mark.parametrize("seq", ["A ; ((B & C) | D)", "A , ((B & C) | D)", "A : (D | (B & C)) ; D"])
def test_one_event_or_several_at_a_time(seq: str) -> None:
    """At the same gate."""
    rng = random.Random(seq)
    text = query(seq, {"B": "FILTER(?b > ?a)", "D": "FILTER(?d >= ?a)"})
    total = 0
    for _ in range(25):
        gpms = rng.choices(["A", "B", "C", "D", "BC", "BCD", "AD", "BD"], k=9)
        events = [{gpm: _several(rng, gpm, "", 0) for gpm in names} for names in gpms]
        total += compared(text, events, rng.randrange(1, 9))
    assert total > 20


@pytest.mark.parametrize("function", ["SUM", "COUNT"])
def test_an_iteration_has_several_rows(function: str) -> None:
    """What they count is beyond the tables, and exact all the same."""
    text = query("A+[:] : B", {"B": f"FILTER(?b = {function}(?a))"})
    values = [typed(str(number), "integer") for number in (1, 2, 3)]
    for numbers in product(range(1, 3), repeat=3):
        events = [{"A": tuple({"a": value} for value in values[:number])} for number in numbers]
        compared(text, [*events, *valued("B", [typed(str(number), "integer") for number in range(3, 8)])])


@pytest.mark.parametrize("datatype", ["integer", "decimal", "double", "string"])
def test_a_short_number_is_read_as_its_exact_value_says(datatype: str) -> None:
    texts = [
        "0",
        "-0",
        "+7",
        "007",
        "1.5",
        "-0.0",
        "1.",
        ".5",
        "1e3",
        " 1",
        "1_0",
        "٣",
        "9" * 15,
        "9" * 16,
        "x",
    ]
    for text in [*texts, "1234567.7654321", "12345678.5", "NaN"]:
        term = typed(text, datatype)
        found = _short(text_of(term))
        assert found is None or repr(found) == repr(_look(decode(term))), text
        assert (
            found is not None
            or datatype not in ("integer", "decimal")
            or text not in ("0", "-0", "+7", "007")
        )
