"""The names of a graph after a few changes: only the names of nodes with changed edges are read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from pyoxigraph import Literal

from spaseq.paths.graph.linking.candidates import Linker, Linkers, NameKind, label_kinds, own_name
from spaseq.paths.graph.linking.index import key
from spaseq.paths.graph.saved.contents import Contents, InMemory
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.graph.updates.merging import Edge

#: If more nodes than this are touched, all names are read again.
_MOST: Final = 1_000

#: An edge as numbers of nodes and of a predicate; -1 for an unknown term.
_Numbers = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Touched:
    """The effect of changes: how many edges each touched node has gained or lost, and the edges ``added``."""

    degrees: Mapping[int, int]
    added: tuple[_Numbers, ...]

    @classmethod
    def of(cls, before: Contents, after: Contents, changes: Mapping[Edge, bool]) -> Touched | None:
        """Return the effect of changes; None if there are too many, or nodes have new numbers."""
        if len(changes) > _MOST or not (isinstance(after, InMemory) and after.continues):
            return None
        degrees: dict[int, int] = {}
        added = list[_Numbers]()
        for edge, wanted in changes.items():
            s, p, o = _numbers(after, edge)
            if _has(before, s, p, o) != wanted:
                added += [(s, p, o)] * wanted
                for node in (s, o):
                    degrees[node] = degrees.get(node, 0) + (1 if wanted else -1)
        return cls(degrees, tuple(added))


def carry_names(before: Snapshot, after: Snapshot, changes: Mapping[Edge, bool]) -> None:
    """Carry the linkers of the graph ``before`` over to the graph ``after``, if few nodes have changed."""
    linkers = before.derived(Linkers).made
    if after is before or not linkers:
        return
    touched = Touched.of(before.contents, after.contents, changes)
    if touched is not None:
        made = {labels: _changed(of, touched, after, labels) for labels, of in [*linkers.items()]}
        after.derived(Linkers).made.update({labels: of for labels, of in made.items() if of is not None})


def _changed(linker: Linker, touched: Touched, after: Snapshot, labels: Iterable[int]) -> Linker | None:
    """Return the linker after changes; None if too many nodes were touched since all names were read."""
    nodes = sorted({*linker.changed, *touched.degrees})
    if len(nodes) > _MOST:
        return None
    degrees = dict(linker.more_edges)
    for node, more in touched.degrees.items():
        degrees[node] = degrees.get(node, 0) + more
    entries = {**linker.changed, **dict(_entries(after, touched, labels))}
    return replace(linker, more_edges=degrees, changed=entries)


def _numbers(contents: Contents, edge: Edge) -> _Numbers:
    s, p, o = edge
    nodes, predicates = contents.node_of, contents.predicate_of
    return (
        int(nodes[s]) if 0 < s < len(nodes) else -1,
        int(predicates[p]) if 0 < p < len(predicates) else -1,
        int(nodes[o]) if 0 < o < len(nodes) else -1,
    )


def _has(contents: Contents, s: int, p: int, o: int) -> bool:
    """Return whether the contents have an edge."""
    if min(s, p, o) < 0 or p >= contents.predicates:
        return False
    values = contents.edges.objects(s, p)
    at = int(values.searchsorted(np.int32(o)))
    return at < len(values) and int(values[at]) == o


def _entries(
    graph: Snapshot, touched: Touched, labels: Iterable[int]
) -> Iterator[tuple[int, tuple[tuple[str, NameKind], ...]]]:
    """Yield the touched nodes, each with the keys and kinds of its names."""
    by_kind = label_kinds(graph, labels)
    labelling = _labelling(graph, touched, by_kind)
    for node in sorted(touched.degrees):
        names = [
            (value.value, kind)
            for kind, predicates in by_kind.items()
            for predicate in predicates
            for value in map(graph.ox_term, graph.contents.edges.objects(node, predicate).tolist())
            if isinstance(value, Literal)
        ]
        term = graph.ox_term(node)
        is_literal = isinstance(term, Literal)
        own = None if is_literal and node in labelling else own_name(term, False)
        if own is not None:
            names.append((own, NameKind.LITERAL if is_literal else NameKind.LAST_SEGMENT))
        yield node, tuple((key(name), kind) for name, kind in names)


def _labelling(graph: Snapshot, touched: Touched, by_kind: Mapping[NameKind, tuple[int, ...]]) -> set[int]:
    """Return the touched literals that are labels; the set may have other nodes, too."""
    predicates = {predicate for some in by_kind.values() for predicate in some}
    found = {o for _, p, o in touched.added if p in predicates}
    left = [n for n in touched.degrees if n not in found and isinstance(graph.ox_term(n), Literal)]
    if left:  # all labels are looked at
        edges = graph.contents.edges
        asked = np.zeros(graph.nodes, dtype=np.bool_)
        asked[left] = True
        for predicate in predicates:
            objects = edges.o[edges.begins[predicate] : edges.begins[predicate + 1]]
            found.update(objects[asked[objects]].tolist())
    return found
