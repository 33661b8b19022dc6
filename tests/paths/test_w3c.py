"""The W3C's evaluation tests of property paths: the queries that are triple patterns with paths, joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from spaseq.language.syntax import Group, SubSelect, TriplePattern, Triples, Var
from spaseq.language.syntax.printing import print_path
from spaseq.paths import KnowledgeGraph, load
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib
from tests.patterns.w3c import Case, cases

Row = frozenset[tuple[str, Term]]


def patterns(group: Group) -> tuple[TriplePattern, ...] | None:
    """The triple patterns of a query that is nothing else; None if there is more to it."""
    match group.elements:
        case (SubSelect(pattern=pattern),):
            return patterns(pattern)
        case (Triples(found),) if all(not isinstance(triple.predicate, Var) for triple in found):
            return found
    return None


def rows(graph: KnowledgeGraph, found: tuple[TriplePattern, ...]) -> set[Row]:
    """The distinct solutions: the pairs of each pattern, joined."""
    joined: set[Row] = {frozenset()}
    for triple in found:
        pairs = set(_solutions(graph, triple))
        joined = {a | b for a in joined for b in pairs if len(dict(a | b)) == len(a | b)}
    return joined


def _solutions(graph: KnowledgeGraph, triple: TriplePattern) -> Iterator[Row]:
    source, target = (None if isinstance(t, Var) else t for t in (triple.subject, triple.object))
    for pair in graph.pairs(print_path(triple.predicate), source, target):
        terms = map(from_rdflib, pair)
        row = {
            (v.name, t)
            for v, t in zip((triple.subject, triple.object), terms, strict=True)
            if isinstance(v, Var)
        }
        if len(dict(row)) == len(row):
            yield frozenset(row)


def answers(case: Case) -> tuple[object, object] | None:
    """What we find and what is expected, on the variables asked for; None if it is not about paths alone."""
    found = patterns(case.group())
    if found is None:
        return None
    ours = rows(load((t.subject, t.predicate, t.object) for t in case.triples()), found)
    wanted = case.expected()
    if isinstance(wanted, bool):
        return bool(ours), wanted
    names = {name for row in wanted for name in row}
    projected = {frozenset((name, term) for name, term in row if name in names) for row in ours}
    return projected, {frozenset(row.items()) for row in wanted}


def test_property_path_suite(shared: Callable[[str], Path]) -> None:
    checked, others = {}, set()
    for case in cases(shared("w3c-rdf-tests") / "sparql" / "sparql11"):
        _, folder, name = case.name.split("/")
        if folder == "property-path":
            compared = answers(case)
            if compared is None:
                others.add(name)
            else:
                checked[name] = compared
    assert [name for name, (ours, wanted) in checked.items() if ours != wanted] == []
    assert (len(checked), others) == (28, {"values_and_path"})
