"""Expressions between GPMs: what programs say of them, on random values, and that matchers agree."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

import spaseq
from spaseq._jit import kernel as compiled
from spaseq.language.reading.parser import parse_group
from spaseq.language.syntax import Expression, Filter, Unary
from spaseq.matching.filters import _kernel_machine as memo
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters._kernel_machine import holds
from spaseq.matching.filters._kernel_values import pointer
from spaseq.matching.filters.derived import Lookups
from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.filters.postfix import FilterSite, steps
from spaseq.matching.filters.programs import Programs, Sections
from spaseq.matching.lazy.matcher import LazyMatcher
from spaseq.matching.nfa import memory as kernel_memory
from spaseq.matching.nfa import sizing
from spaseq.patterns.expressions.compiled import ExpressionError, compile_value
from spaseq.terms.dictionary import Dictionary, Term
from tests.matching.kernel_cases import Yields, by_kernel, by_reference, difference
from tests.matching.lazy_cases import random_lazy_query
from tests.matching.random_sequences import (
    DURATIONS,
    ODD,
    PLACES,
    PLAIN,
    TIMES,
    Sample,
    random_condition,
    random_query,
    random_sample,
)
from tests.matching.shrinking import shrink

#: So many streams, or solutions, are tried with each query or condition; streams have so many events at most.
STREAMS = 10
EVENTS = 7

EXAMPLES = settings.default.max_examples if settings.default else 100
unshrunk = settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate])
seeds = st.integers(0, 2**64 - 1)

# --- programs ---------------------------------------------------------------------------------

Ints = v.Ints


@compiled
def _run(tables: Ints, end: int, ints: Ints, floats: v.Floats, numbers: v.Floats, codes: v.Codes) -> int:
    t, m, f, x, c = pointer(tables), pointer(ints), pointer(floats), pointer(numbers), pointer(codes)
    return holds(v.RunMachine(t, m, f, m, x, c), 0, v.TABLES_HEADER, end, v.STACK, 0, 0)


class _Program:
    """A condition as a program, over variables of a run."""

    def __init__(self, condition: Expression, names: str, dictionary: Dictionary) -> None:
        self._slots = {name: i for i, name in enumerate(names)}
        out = Sections()
        programs = Programs(out, self._slots, {}, [], dictionary.pin)
        code = steps(Filter(condition), FilterSite(), {})
        programs.write(code)
        self._tables = out.array([0] * v.TABLES_HEADER)
        self._end = v.TABLES_HEADER + v.CODE_SIZE * len(code)
        self._lookups = Lookups(list(programs.lookups), dictionary)
        self._numbers = Numbers(dictionary)
        self._numbers.cover(np.array(list(programs.constants), dtype=np.int64))

    def verdict(self, solution: Mapping[str, int]) -> int:
        """What the program says, when it is told what it asks."""
        room, most = 64, 16
        slots = v.STACK + v.SLOTS
        table = slots + len(self._slots)
        ints = np.zeros(table + (room + most + 1) * memo.MEMO_SIZE, dtype=np.int64)
        ints[v.MEMO], ints[v.MEMO_MASK] = table, room - 1
        ints[v.WONDERED], ints[v.MOST_WONDERS] = table + room * memo.MEMO_SIZE, most
        floats = np.zeros(1 + 2 * v.DEEPEST)
        for name, identifier in solution.items():
            ints[slots + self._slots[name]] = identifier
        known = self._numbers
        known.cover(np.array(list(solution.values()), dtype=np.int64))
        while True:
            ints[v.WONDERS] = 0
            verdict = _run(self._tables, self._end, ints, floats, known.numbers, known.codes)
            at, size = int(ints[v.WONDERED]), int(ints[v.WONDERS]) * memo.MEMO_SIZE
            if not size:
                return verdict
            answered = self._lookups.answered(ints[at : at + size].reshape(-1, memo.MEMO_SIZE))
            known.cover(answered[:, memo.ANSWER])
            memo.learn(ints, table, room - 1, answered.ravel())


def _meant(condition: Expression, dictionary: Dictionary, solution: Mapping[str, int]) -> int:
    """What the condition is, by the rules of SPARQL."""
    try:
        opposite = compile_value(Unary("!", condition), dictionary)(solution)
    except ExpressionError:
        return v.ERRED
    return v.FALSE if dictionary.term(opposite) == Literal(True) else v.TRUE


def _condition(text: str) -> Expression:
    element = parse_group(f"PREFIX : <http://example.org/> {{ FILTER({text}) }}").elements[0]
    assert isinstance(element, Filter)
    return element.condition


NAMES = "abcd"
TERMS: tuple[list[Term], ...] = (PLAIN, ODD, TIMES, DURATIONS, PLACES)


@unshrunk
@given(seeds)
def test_programs_say_what_expressions_mean(seed: int) -> None:
    """True, false or an error, or that the tables do not know."""
    rng = random.Random(seed)
    text = random_condition(rng, NAMES)
    condition, dictionary = _condition(text), Dictionary()
    program = _Program(condition, NAMES, dictionary)
    for _ in range(STREAMS):
        terms = rng.choice(TERMS)
        chosen = {name: rng.choice(terms) for name in NAMES if rng.random() < 0.9}
        solution = {name: dictionary.intern(term) for name, term in chosen.items()}
        verdict, meant = program.verdict(solution), _meant(condition, dictionary, solution)
        # A conjunction is asked operand by operand: an error before what is false is an error.
        same = verdict == meant or (verdict <= v.FALSE and meant <= v.FALSE and "&&" in text)
        assert same or verdict == v.UNKNOWN, (text, chosen, verdict, meant)


@pytest.mark.parametrize(
    ("condition", "terms", "known"),
    [
        ("?a > 2 || ?b > 1.5", PLAIN, 1.0),
        ("?a > 2 || ?b > 1.5", ODD, 0.7),
        ("COALESCE(?a, ?b) < IF(?b > 1, ?b, 7)", PLAIN, 1.0),
        ("?a IN (1, ?b, 0.1) && !BOUND(?c)", ODD, 0.6),
        ("ABS(?a - ?b) <= 1.5", PLAIN, 1.0),
        ('REGEX(STR(?a), "1") || STRLEN(CONCAT(STR(?a), STR(?b))) < 4', ODD, 1.0),
        ("<M#sqrt>(<M#pow>(?a - ?b, 2) + <M#pow>(0.1 * ?c, 2)) < 1.7", PLAIN, 1.0),
        ("<M#sqrt>(<M#pow>(?a - ?b, 2) + <M#pow>(0.1 * ?c, 2)) < 1.7", ODD, 0.6),
        ("<M#sin>(?a / 3) + <M#atan2>(?b / 7, ?c) > <M#exp>(?a * 0.1) - <M#log>(?b + 1)", PLAIN, 1.0),
        ('?b - ?a <= "PT2H"^^<X#dayTimeDuration>', TIMES, 0.15),
        ('?a - "PT2H"^^<X#dayTimeDuration> < ?b || ?a = ?b', DURATIONS, 0.6),
    ],
)
@pytest.mark.few(1, ci=4)
def test_how_much_programs_know(condition: str, terms: Sequence[Term], known: float) -> None:
    """They leave little to be asked exactly, and nothing of plain numbers."""
    text = condition.replace("<M", "<http://www.w3.org/2005/xpath-functions/math")
    text = text.replace("<X", "<http://www.w3.org/2001/XMLSchema")
    dictionary = Dictionary()
    program = _Program(_condition(text), NAMES, dictionary)
    ids = [dictionary.intern(term) for term in terms]
    solutions = [dict(zip("abc", values, strict=True)) for values in product(ids, repeat=3)]
    solutions = random.Random(1).sample(solutions, min(len(solutions), 200))
    verdicts = [program.verdict(solution) for solution in solutions]
    for verdict, solution in zip(verdicts, solutions, strict=True):
        assert verdict == v.UNKNOWN or max(verdict, v.FALSE) == max(
            _meant(_condition(text), dictionary, solution), v.FALSE
        )
    assert sum(verdict != v.UNKNOWN for verdict in verdicts) >= known * len(verdicts)


# --- matchers -------------------------------------------------------------------------------


@pytest.fixture(params=[False, True])
def little_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for one run, one question and one answer, at first."""
    if request.param:
        for room in ("START", "ENOUGH"):
            monkeypatch.setattr(
                sizing, room, kernel_memory.Capacity(*(1 for _ in kernel_memory.Capacity._fields))
            )
        monkeypatch.setattr(kernel_memory, "_DECISIONS", 1)
        monkeypatch.setattr(kernel_memory, "_QUESTIONS", 1)
        monkeypatch.setattr(kernel_memory, "_ANSWERS", 3)


@pytest.mark.usefixtures("little_memory")
def test_kernel_and_reference() -> None:
    @unshrunk
    @given(seeds)
    def compared(seed: int) -> None:
        rng = random.Random(f"expressions {seed}")
        query = random_query(rng, alls=False, kernel=True, rich=True)
        for _ in range(STREAMS):
            _compare(random_sample(rng, query, EVENTS), by_kernel)

    compared()


@pytest.mark.slow
def test_lazy_and_reference() -> None:
    @unshrunk
    @given(seeds)
    def compared(seed: int) -> None:
        rng = random.Random(f"expressions {seed}")
        query = random_lazy_query(rng, rich=True)
        for _ in range(STREAMS):
            _compare(random_sample(rng, query, EVENTS), _by_lazy)

    compared()


def _by_lazy(sample: Sample) -> Yields:
    return by_kernel(sample, LazyMatcher)


def _compare(sample: Sample, evaluate: Callable[[Sample], Yields]) -> None:
    if sample.drops:
        return
    if difference(sample, evaluate, by_reference(sample)) is not None:
        least = shrink(sample, lambda one: difference(one, evaluate, by_reference(one)) is not None)
        pytest.fail(f"{difference(least, evaluate, by_reference(least))}\n{least}")


# --- as a user does it ------------------------------------------------------------------------

SHIPS = """
    PREFIX : <http://e.org/>
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    PREFIX math: <http://www.w3.org/2005/xpath-functions/math#>
    PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
    PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/>
    SELECT * WITHIN 1 HOUR SLIDING FROM STREAM S <http://e.org/ships>
    WHERE {{ SEQ(A ; B)
      DEFINE GPM A ON S AT ?t {{ ?x :at ?p ; :name ?n }}
      DEFINE GPM B ON S AT ?u {{ ?y :at ?q ; :name ?m . FILTER({}) }} }}
"""
CALLS = [
    (datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC), "Aurora", "POINT(4.0 52.0)"),
    (datetime(2024, 5, 1, 10, 0, 10, tzinfo=UTC), "Boreas", "POINT(4.1 52.0)"),
    (datetime(2024, 5, 1, 10, 0, 40, tzinfo=UTC), "Aura", "POINT(4.0 52.0)"),
    (datetime(2024, 5, 1, 10, 1, 0, tzinfo=UTC), "Boreal", "LINESTRING(0 0, 1 1)"),
    (datetime(2024, 5, 1, 10, 2, 0, tzinfo=UTC), "Calypso", "POINT(9.9 53.5)"),
]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("geof:distance(?p, ?q, uom:kilometre) < 7", 2),
        ("geof:distance(?p, ?q, uom:kilometre) > 7 || ?n = ?m", 3),
        ('?u - ?t <= "PT30S"^^xsd:dayTimeDuration', 3),
        ('?u < ?t + "PT30S"^^xsd:dayTimeDuration', 2),
        ('STRSTARTS(?m, SUBSTR(?n, 1, 3)) || REGEX(?m, "so$")', 4),
        ("math:pow(STRLEN(?n) - STRLEN(?m), 2) < 1", 2),
        ("COALESCE(geof:distance(?p, ?q, uom:metre), 0) = 0", 4),
        ("?u - ?t < 10", 0),
    ],
)
def test_all_matchers(condition: str, expected: int) -> None:
    query = spaseq.prepare(SHIPS.format(condition))
    assert spaseq.explain(query).matcher == "nfa"
    found = {}
    for matcher in ("nfa", "interpreter", "reference"):
        engine = spaseq.Engine(matcher=matcher)
        handle = engine.register(query)
        for time, name, place in CALLS:
            literal = f'"{place}"^^<http://www.opengis.net/ont/geosparql#wktLiteral>'
            at, named = "<http://e.org/at>", "<http://e.org/name>"
            engine.push("http://e.org/ships", f'<urn:s> {at} {literal} ; {named} "{name}" .', time)
        found[matcher] = [(match.start, match.end) for match in handle.matches()]
    assert found["nfa"] == found["interpreter"] == found["reference"]
    assert len(found["nfa"]) == expected


def test_what_is_no_term_is_known_before_any_column_is_looked_at() -> None:
    """An event that comes alone may be the first that a dictionary's table is asked of."""
    numbers = Numbers(Dictionary())
    numbers.cover_few([0])
    assert numbers.codes[0] == v.NOTHING
