"""CONSTRUCT for many matches: the template filled as columns of numbers of terms.

``Projector.construct`` does the same for one match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox

from spaseq.events import Ids
from spaseq.language.syntax import TriplePattern, Var
from spaseq.results.encoded import Bindings
from spaseq.results.event import ConstructedTriple
from spaseq.terms.dictionary import Term


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """The graphs that matches construct: the triples of match i are ``offsets[i]`` to ``offsets[i + 1]``.

    ``triples``, of shape ``(triples, 3)``, has numbers of ``terms``: subject, predicate, object. Numbers from
    ``fresh`` on are blank nodes of the template, each of one match only.
    """

    offsets: Ids
    triples: Ids
    terms: Sequence[Term]
    fresh: int

    def of(self, i: int) -> tuple[ConstructedTriple, ...]:
        """Return the graph of match i."""
        terms = self.terms
        rows = self.triples[self.offsets[i] : self.offsets[i + 1]].tolist()
        return tuple((terms[s], terms[p], terms[o]) for s, p, o in rows)

    def lines(self) -> Iterator[list[str]]:
        """Yield for each graph its triples as sorted N-Triples, without the final point."""
        texts = [str(term) for term in self.terms]
        lines = [f"{texts[s]} {texts[p]} {texts[o]}" for s, p, o in self.triples.tolist()]
        for begin, end in pairwise(self.offsets.tolist()):
            yield sorted(lines[begin:end])


def filled(template: Sequence[TriplePattern], rows: Bindings) -> Graphs:
    """Fill a template with the rows of matches; impossible triples are left out."""
    count = int(rows.offsets[-1])
    terms = [*rows.terms]
    blank = {part: i for i, part in enumerate(_blank_nodes(template))}
    constants = {part: len(terms) + i for i, part in enumerate(_constants(template))}
    terms += constants
    fresh = len(terms)
    terms += [ox.BlankNode() for _ in range(count * len(blank))]
    here = fresh + np.arange(count, dtype=np.int64) * len(blank)
    unbound = np.full(count, -1, dtype=np.int64)

    def column(part: object) -> Ids:
        if isinstance(part, Var):
            numbers = rows.columns.get(part.name)
            return unbound if numbers is None else numbers.astype(np.int64)
        if isinstance(part, ox.BlankNode):
            return here + blank[part]
        if isinstance(part, ox.NamedNode | ox.Literal):
            return np.full(count, constants[part], dtype=np.int64)
        return unbound

    parts = [[column(part) for part in (t.subject, t.predicate, t.object)] for t in template]
    # By row, then by triple of the template: of shape (rows, triples, 3).
    found = np.array(parts, dtype=np.int64).reshape(len(template), 3, count).transpose(2, 0, 1)
    # The number -1 selects the last element, which is False.
    may_begin = np.array([*(not isinstance(term, ox.Literal) for term in terms), False])
    may_link = np.array([*(isinstance(term, ox.NamedNode) for term in terms), False])
    possible = may_begin[found[:, :, 0]] & may_link[found[:, :, 1]] & (found[:, :, 2] >= 0)
    match = np.repeat(np.arange(len(rows.offsets) - 1), np.diff(rows.offsets))
    matches = np.repeat(match, len(template)).reshape(possible.shape)[possible]
    triples = np.ascontiguousarray(found[possible])
    once = _first(matches, triples)
    offsets = np.searchsorted(matches[once], np.arange(len(rows.offsets)))
    return Graphs(offsets, triples[once], terms, fresh)


def gathered(graphs: Iterable[Sequence[ConstructedTriple]]) -> Graphs:
    """Return ``Graphs`` of graphs that were made one by one."""
    numbers: dict[Term, int] = {}
    offsets, triples = [0], []
    for graph in graphs:
        triples += [[numbers.setdefault(term, len(numbers)) for term in triple] for triple in graph]
        offsets.append(len(triples))
    rows = np.array(triples, dtype=np.int64).reshape(-1, 3)
    return Graphs(np.array(offsets), rows, [*numbers], len(numbers))


def _first(matches: Ids, triples: Ids) -> npt.NDArray[np.int64]:
    """Return the indices of the first of equal triples of each match, in order."""
    # A stable order: the first of equal ones comes first.
    order = np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0], matches))
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = (matches[order][1:] == matches[order][:-1]) & (triples[order][1:] == triples[order][:-1]).all(
        axis=1
    )
    return np.sort(order[~same])


def _blank_nodes(template: Sequence[TriplePattern]) -> dict[ox.BlankNode, None]:
    parts = (part for t in template for part in (t.subject, t.object))
    return {part: None for part in parts if isinstance(part, ox.BlankNode)}


def _constants(template: Sequence[TriplePattern]) -> dict[Term, None]:
    parts = (part for t in template for part in (t.subject, t.predicate, t.object))
    return {part: None for part in parts if isinstance(part, ox.NamedNode | ox.Literal)}
