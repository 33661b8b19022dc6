"""Joins in an event that came alone, by compiled code, are those of dicts; and what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import event as noted
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

import spaseq
from spaseq.alone import Single
from spaseq.events import Clock, Stamp
from spaseq.language.scope import variables
from spaseq.language.syntax import (
    Binary,
    Call,
    Constant,
    Expression,
    Filter,
    Graph,
    Group,
    In,
    TriplePattern,
    Triples,
    Unary,
    Var,
)
from spaseq.matching.columns.alone import _kernel_alone as k
from spaseq.matching.columns.alone.singles import ROWS, Singles
from spaseq.matching.columns.alone.taking import Joins
from spaseq.matching.columns.matcher import PushedPattern
from spaseq.matching.filters import batch as heads
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.sharing import Values
from spaseq.patterns.spectra.rowwise import Facts, Rowwise
from spaseq.patterns.spectra.single import joined
from spaseq.terms.dictionary import Dictionary, Term
from tests.conftest import examples

_NODES = [NamedNode(f"urn:{name}") for name in "abc"]
_PREDICATES = [NamedNode(f"urn:p{i}") for i in range(2)]
_PLACES: list[Term | Var] = [Var("x"), Var("y"), Var("z"), BlankNode("b"), *_NODES[:2]]

_KB = NamedNode("urn:kb")
_ONE = st.builds(
    TriplePattern, st.sampled_from(_PLACES), st.sampled_from(_PREDICATES), st.sampled_from(_PLACES)
)
_PATTERNS = st.lists(st.lists(_ONE, min_size=1, max_size=3), min_size=1, max_size=3)
_GRAPHS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(_NODES), st.sampled_from(_PREDICATES), st.sampled_from(_NODES)),
        max_size=10,
        unique=True,
    ),
    min_size=1,
    max_size=5,
)


def _column(batch: np.ndarray, column: int, rows: Sequence[int]) -> list[int]:
    """What the runs kernel reads: a column's values in the rows of an event."""
    at = batch[batch[heads.COLUMNS] + column]
    return [int(batch[at + row]) for row in rows]


class _Asked:
    """What a GPM asks that is a join, and the same by dicts."""

    def __init__(
        self, group: Group, names: Sequence[str], dictionary: Dictionary, kb: KnowledgeBase | None
    ) -> None:
        self.join, self._names = joined(group, names, dictionary, kb), names
        self._rowwise = None if self.join is None else Rowwise(group, dictionary, kb)

    def rows(self, terms: Sequence[int]) -> Values:
        assert self._rowwise is not None
        facts = Facts(zip(terms[0::3], terms[1::3], terms[2::3], strict=True))
        return tuple(tuple(row[name] for name in self._names) for row in self._rowwise.rows(facts, {}))

    def pattern(self, number: int) -> PushedPattern:
        """Return what a matcher gets to evaluate a graph pattern."""
        return PushedPattern(self._names, number, lambda event: self.rows(event.terms), self.join, None, True)


@given(_PATTERNS, _GRAPHS, st.lists(_ONE, max_size=2), st.data())
def test_as_by_dicts(patterns: list[list[TriplePattern]], graphs, known, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    dictionary = Dictionary()
    joins: list[_Asked] = []
    names: list[list[str]] = []
    kb = KnowledgeBase({_KB: "\n"})
    kb.change(_KB, [Triple(s, p, o) for s in _NODES for p in _PREDICATES for o in _NODES[:2] if s != o])
    for triples in patterns:
        of_event = Group((Triples(tuple(triples)),))
        of_both = Group((*of_event.elements, *(Graph(_KB, Group((Triples((one,)),))) for one in known)))
        for group in (of_both, of_event):  # where they have something in common
            of_group = sorted(variables(group))
            if (join := _Asked(group, of_group, dictionary, kb)).join is not None:
                break
        assert join.join is not None
        names.append(of_group)
        joins.append(join)
    asked = [*range(len(joins)), *data.draw(st.lists(st.sampled_from(range(len(joins))), max_size=2))]
    of_gpms = [names[question] for question in asked]
    places = [(g, value) for g in range(len(asked)) for value in range(-1, len(of_gpms[g]))]
    columns = data.draw(st.lists(st.sampled_from(places), max_size=6))
    singles, compiled = (
        Singles(dictionary, Clock.TICKS, {}, of_gpms, asked, [True] * len(asked)),
        Joins(
            [join.pattern(n) for n, join in enumerate(joins)],
            [1] * len(joins),
            asked,
            columns,
            dictionary,
            ROWS,
        ),
    )
    expected = [[join.rows(_terms(dictionary, graph)) for join in joins] for graph in graphs]
    before = [0] * len(joins)
    for n, graph in enumerate(graphs):
        terms = _terms(dictionary, graph)
        event = Single(dictionary, Clock.TICKS, Stamp(n + 5, 1, n), 0, terms)
        assert singles.write(event, n + 3, n + 7)
        if compiled.take(singles, event) == k.LARGE:
            steps = [len(j.join.steps) + len(j.join.known) for j in joins if j.join is not None]
            assert max(map(len, expected[n])) > compiled.rows or max(steps) > 1
            noted("given to it")
            by_python = Joins(
                [join.pattern(n) for n, join in enumerate(joins)],
                [1] * len(joins),
                asked,
                columns,
                dictionary,
                ROWS,
                1 << max(map(len, expected[n])).bit_length(),
                is_given=True,
            )
            if by_python.take_given(singles, expected[n]) == k.LARGE:
                assert max(map(len, expected[n])) + max(before) > ROWS
                return
            batch = by_python.batch
        else:
            batch = compiled.batch
        singles.add(n + 3, len(terms), n + 7, 0)
        assert batch[[heads.SIZE, heads.START]].tolist() == [1, n + 3]
        assert [int(batch[batch[at]]) for at in (heads.TIME, heads.STREAM, heads.NUMBER, heads.AXIS)] == [
            n + 5,
            0,
            n,
            n + 7,
        ]
        first, end = batch[batch[heads.SHARES] :][:2].tolist()
        shares = batch[first:end].reshape(-1, heads.SHARE).tolist()
        after = [begin + len(rows) for begin, rows in zip(before, expected[n], strict=True)]
        spans = [[before[q], after[q]] for q in asked]
        assert shares == [[g, *span] for g, span in enumerate(spans) if span[0] < span[1]]
        for c, (g, value) in enumerate(columns):
            rows = expected[n][asked[g]]
            assert _column(batch, c, range(*spans[g])) == [row[value] if value >= 0 else 0 for row in rows]
        before = after
    counts = singles.counts()
    assert counts.rows.tolist() == [sum(len(event[q]) for event in expected) for q in asked]
    assert counts.matched.tolist() == [sum(bool(event[q]) for event in expected) for q in asked]
    assert counts.relevant == sum(any(event) for event in expected)
    assert not singles.counts().relevant
    chunk, _ = singles.take()
    for g, q in enumerate(asked):
        rows = [row for event in expected for row in event[q]]
        table = chunk.solutions[g]
        assert list(zip(*(table.column(name).tolist() for name in of_gpms[g]), strict=True)) == (
            rows if of_gpms[g] else []
        )


def test_more_than_a_join_is_not_its() -> None:
    x = Var("x")
    anything = Group((Triples((TriplePattern(x, Var("p"), x),)),))
    assert joined(anything, ["p", "x"], Dictionary(), None) is None
    assert joined(Group(()), [], Dictionary(), None) is None
    one = Group((Triples((TriplePattern(x, _PREDICATES[0], x),)),))
    assert joined(one, ["x", "time"], Dictionary(), None) is None


_X = "http://www.w3.org/2001/XMLSchema#"
_LITERALS: list[NamedNode | Literal] = [
    *(
        Literal(value)
        for value in (0, 1, 2, -3, 10**20, "", "a", "1", True, False, 1.5, float("inf"), float("nan"))
    ),
    *(Literal(text, datatype=NamedNode(_X + "decimal")) for text in ("0.5", "2.0", "1.50")),
    *(
        Literal(text, datatype=NamedNode(_X + "dateTime"))
        for text in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00")
    ),
    Literal("x", datatype=NamedNode(_X + "integer")),
    Literal("a", language="en"),
    *_NODES[:2],
]
_VALUES: list[Expression] = [*map(Var, "xyz"), *map(Constant, _LITERALS)]
_OPERATORS = ["=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "&&", "||"]
_EXPRESSIONS = st.recursive(
    st.sampled_from(_VALUES),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(_OPERATORS), inner, inner),
        st.builds(Unary, st.sampled_from("!-"), inner),
        st.builds(
            lambda operand, items: In(operand, tuple(items), False),
            inner,
            st.lists(inner, min_size=1, max_size=2),
        ),
        st.builds(lambda a, b, c: Call("IF", (a, b, c)), inner, inner, inner),
        st.builds(lambda a, b: Call("COALESCE", (a, b)), inner, inner),
        st.builds(lambda a: Call("ABS", (a,)), inner),
        st.builds(lambda a: Call("STR", (a,)), inner),
    ),
    max_leaves=5,
)


@settings(max_examples=examples(400))
@given(
    st.lists(_EXPRESSIONS, min_size=1, max_size=3),
    st.lists(st.sampled_from(_LITERALS), max_size=5, unique=True),
)
def test_filters_as_by_dicts(conditions: list[Expression], objects: list[Term]) -> None:
    """Those that compiled code decides: of an event's values, which nobody has looked at before."""
    dictionary = Dictionary()
    x, y, z = map(Var, "xyz")
    triples = Triples((TriplePattern(x, _PREDICATES[0], y), TriplePattern(x, _PREDICATES[0], z)))
    group = Group((triples, *map(Filter, conditions)))
    names = ["x", "y", "z"]
    join = _Asked(group, names, dictionary, None)
    singles = Singles(dictionary, Clock.TICKS, {}, [names], [0], [True])
    compiled = Joins([join.pattern(0)], [1], [0], [(0, 1), (0, 2)], dictionary, ROWS)
    if compiled._given:
        noted("given to it")
        assert "STR" in str(conditions)
    terms = _terms(dictionary, [(_NODES[0], _PREDICATES[0], term) for term in objects])
    expected = list(join.rows(terms))
    event = Single(dictionary, Clock.TICKS, Stamp(0, 1, 0), 0, terms)
    assert singles.write(event, 0, 0)
    if compiled.take(singles, event) == k.LARGE:
        noted(f"left to dicts, {bool(expected)}")
        return
    noted(f"decided, {bool(expected)}")
    singles.add(0, len(terms), 0, 0)
    chunk, _ = singles.take()
    found = [chunk.solutions[0].column(name).tolist() for name in names]
    assert list(zip(*found, strict=True)) == expected


def _terms(dictionary: Dictionary, graph: Sequence[tuple[Term, Term, Term]]) -> tuple[int, ...]:
    return tuple(dictionary.intern(term) for triple in graph for term in triple)


_QUERY = """PREFIX : <urn:> SELECT * WITHIN 300 SECONDS SLIDING FROM STREAM S <urn:s>
WHERE { SEQ(A ; B) DEFINE GPM A ON S { ?x :p ?a } DEFINE GPM B ON S { ?x :p ?b FILTER(?b > ?a) %s } }"""


@pytest.mark.parametrize("further", ["", "FILTER(?b > 2)"])
def test_many_solutions_and_many_triples(further: str) -> None:
    """Events beyond what compiled code joins are taken among others, and all are counted."""
    sizes = [1, 20, 1, 16, 40, 1, 0, 3, 17, 2] * 30
    engines = [spaseq.Engine(), spaseq.Engine()]
    found: list[spaseq.Match] = []
    told = engines[0].register(_QUERY % further, found.append)
    asked = engines[1].register(_QUERY % further)
    x, p = NamedNode("urn:x"), NamedNode("urn:p")
    events = [
        [Triple(x, p, Literal((7 * n + i) % 11)) for i in range(min(size, 11))]
        + [Triple(NamedNode(f"urn:{n}"), p, Literal(i)) for i in range(size)]
        for n, size in enumerate(sizes[:90])
    ]
    for n, event in enumerate(events):
        engines[0].push("urn:s", event, 40 * n)
    engines[1].push_many("urn:s", [(event, 40 * n) for n, event in enumerate(events)])
    others = list(asked.matches())
    assert [match.bindings for match in found] == [match.bindings for match in others]
    assert len(found) > 50
    assert told.stats == asked.stats
    told.cancel()
    assert told.stats.gpms == asked.stats.gpms
