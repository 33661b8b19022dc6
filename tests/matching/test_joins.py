"""Joins in an event that came alone, by compiled code, are those of tuples; and what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

import spaseq
from spaseq.events import Clock, Stamp
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.spectra.single import Join, joined
from spaseq.language.scope import variables
from spaseq.language.syntax import Graph, Group, TriplePattern, Triples, Var
from spaseq.matching.columns.alone import _kernel_alone as k
from spaseq.matching.columns.alone.joins import Joins
from spaseq.matching.columns.alone.singles import Singles
from spaseq.matching.conditions import batch as heads
from spaseq.terms.dictionary import Dictionary, Term

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


@given(_PATTERNS, _GRAPHS, st.lists(_ONE, max_size=2), st.data())
def test_as_by_tuples(patterns: list[list[TriplePattern]], graphs, known, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    dictionary = Dictionary()
    joins: list[Join] = []
    names: list[list[str]] = []
    kb = KnowledgeBase({_KB: "\n"})
    kb.change(_KB, [Triple(s, p, o) for s in _NODES for p in _PREDICATES for o in _NODES[:2] if s != o])
    for triples in patterns:
        of_event = Group((Triples(tuple(triples)),))
        of_both = Group((*of_event.elements, *(Graph(_KB, Group((Triples((one,)),))) for one in known)))
        for group in (of_both, of_event):  # where they have something in common
            of_group = sorted(variables(group))
            if (join := joined(group, of_group, dictionary, kb)) is not None:
                break
        assert join is not None
        names.append(of_group)
        joins.append(join)
    asked = [*range(len(joins)), *data.draw(st.lists(st.sampled_from(range(len(joins))), max_size=2))]
    of_gpms = [names[question] for question in asked]
    places = [(g, value) for g in range(len(asked)) for value in range(-1, len(of_gpms[g]))]
    columns = data.draw(st.lists(st.sampled_from(places), max_size=6))
    singles, compiled = (
        Singles(dictionary, Clock.TICKS, of_gpms, asked, [True] * len(asked)),
        Joins(joins, asked, columns),
    )
    expected = [[join(_terms(dictionary, graph)) for join in joins] for graph in graphs]
    codes = np.zeros(dictionary.limit, dtype=np.int8)
    before = [0] * len(joins)
    for n, graph in enumerate(graphs):
        terms = _terms(dictionary, graph)
        singles.write(n + 3, Stamp(n + 5, 1, n), 0, terms, n + 7, len(codes))
        size = compiled.take(singles, len(terms), codes)
        if size == k.LARGE:
            assert max(map(len, expected[n])) > k.MOST_ROWS or any(
                len(j.steps) + len(j.known) > 1 for j in joins
            )
            return
        singles.add(n + 3, len(terms), n + 7, 0)
        batch = compiled.batch
        assert batch[[heads.SIZE, heads.START]].tolist() == [1, n + 3]
        assert [int(batch[batch[at]]) for at in (heads.TIME, heads.STREAM, heads.NUMBER, heads.AXIS)] == [
            n + 5,
            0,
            n,
            n + 7,
        ]
        spans = batch[batch[heads.ROWS] :][: 2 * len(asked)].reshape(-1, 2).tolist()
        after = [begin + len(rows) for begin, rows in zip(before, expected[n], strict=True)]
        assert spans == [[before[q], after[q]] for q in asked]
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
