"""Merge changes into a graph's arrays: copy them, with added edges in their places, without removed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from spaseq.paths.graph.loading import Loaded
from spaseq.paths.graph.relations import Edges
from spaseq.paths.graph.saved.contents import Contents, InMemory, in_memory
from spaseq.paths.search._kernel import Flags, Ids, Nodes

#: An edge, as ids of the dictionary: subject, predicate, object.
Edge = tuple[int, int, int]

#: Both ways of ``relations.both_ways``.
Ways = tuple[Nodes, Nodes]

#: All edges are sorted again for more changes than both this number and this fraction (1/50) of the edges.
_MANY: Final = 2_000
_PART: Final = 50


def merged(contents: Contents, ways: Ways | None, changes: Mapping[Edge, bool]) -> Contents:
    """Return the contents with changes: edges to add (``True``) and edges to remove (``False``).

    Terms keep their ids of the dictionary. Nodes and predicates keep their numbers, and new ones get the next
    numbers. But if one has lost its last edge, it is removed, and all get new numbers. ``ways`` are the
    result of ``both_ways`` for ``contents``, if known; the returned contents then have theirs, too.
    """
    edges = np.array([*changes], dtype=np.int64).reshape(-1, 3)
    wanted = np.fromiter(changes.values(), dtype=np.bool_, count=len(changes))
    numbered = _numbered(contents, edges[wanted])
    if len(changes) > max(_MANY, contents.size // _PART):
        return _anew(numbered, edges, wanted)
    node_of, predicate_of = numbered.node_of, numbered.predicate_of
    s, p, o = node_of[edges[:, 0]], predicate_of[edges[:, 1]], node_of[edges[:, 2]]
    known = (s >= 0) & (p >= 0) & (o >= 0)  # False: the edge does not exist, and cannot be removed
    s, p, o, wanted, edges = s[known], p[known], o[known], wanted[known], edges[known]
    old = contents.edges
    ahead = _places(old.begins, old.s, old.o, p, s, o)
    there = _is_there(old, ahead, s, p, o)
    come, go = wanted & ~there, there & ~wanted
    if not (come.any() or go.any()):
        return contents
    made = _changed(old, ahead, come, go, s, p, o, numbered)
    if go.any() and _is_alone(made, s[go], p[go], o[go]):
        return _anew(numbered, edges, wanted)
    if ways is not None:
        ways = _turned(old, made, ways, come, go, s, p, o)
    return replace(numbered, edges=made, ways=ways)


def _numbered(contents: Contents, new: Ids) -> InMemory:
    """Return the contents with numbers for the terms of new edges."""
    limit = contents.dictionary.limit
    node_ids, node_of = _with(contents.node_ids, contents.node_of, limit, new[:, [0, 2]])
    predicate_ids, predicate_of = _with(contents.predicate_ids, contents.predicate_of, limit, new[:, 1])
    return InMemory(
        contents.prefixes,
        contents.dictionary,
        node_ids,
        node_of,
        predicate_ids,
        predicate_of,
        contents.edges,
        continues=True,
    )


def _with(ids: Ids, numbers: Nodes, limit: int, more: Ids) -> tuple[Ids, Nodes]:
    """Return ids by number and numbers by id, extended by the ids ``more``."""
    grown = np.full(limit, -1, dtype=np.int32)
    grown[: len(numbers)] = numbers
    new = np.unique(more)
    new = new[grown[new] < 0]
    grown[new] = np.arange(len(ids), len(ids) + len(new), dtype=np.int32)
    return np.concatenate([ids, new]), grown


def _anew(numbered: InMemory, edges: Ids, wanted: Flags) -> InMemory:
    """Return the changed contents with all edges sorted and numbered again, as after loading."""
    old = numbered.edges
    s, p, o = numbered.node_ids[old.s], numbered.predicate_ids[old.p], numbered.node_ids[old.o]
    gone = edges[~wanted]
    if len(gone):
        node_of, predicate_of = numbered.node_of, numbered.predicate_of
        places = _places(
            old.begins, old.s, old.o, predicate_of[gone[:, 1]], node_of[gone[:, 0]], node_of[gone[:, 2]]
        )
        there = _is_there(old, places, node_of[gone[:, 0]], predicate_of[gone[:, 1]], node_of[gone[:, 2]])
        s, p, o = (np.delete(column, places[there]) for column in (s, p, o))
    come = edges[wanted]
    s, p, o = (np.concatenate([c, n]) for c, n in zip((s, p, o), come.T, strict=True))
    return in_memory(Loaded(numbered.dictionary, s, p, o, numbered.prefixes))


def _places(begins: Ids, first: Nodes, second: Nodes, p: Nodes, a: Nodes, b: Nodes) -> Ids:
    """Return where edges are, or would be inserted, among their predicate's edges, sorted by two columns."""
    places = np.empty(len(p), dtype=np.int64)
    last = len(begins) - 1
    for i, (predicate, x, y) in enumerate(zip(p.tolist(), a, b, strict=True)):  # x, y: int32, as columns are
        low, high = (begins[predicate], begins[predicate + 1]) if 0 <= predicate < last else (begins[-1],) * 2
        same = first[low:high]
        from_, to = low + np.searchsorted(same, x), low + np.searchsorted(same, x, side="right")
        places[i] = from_ + np.searchsorted(second[from_:to], y)
    return places


def _is_there(edges: Edges, places: Ids, s: Nodes, p: Nodes, o: Nodes) -> Flags:
    """Return for each place whether the edge there is the given one."""
    if not len(edges):
        return np.zeros(len(places), dtype=np.bool_)
    at = np.minimum(places, len(edges) - 1)
    there: Flags = (places < len(edges)) & (edges.s[at] == s) & (edges.p[at] == p) & (edges.o[at] == o)
    return there


def _changed(
    old: Edges, places: Ids, come: Flags, go: Flags, s: Nodes, p: Nodes, o: Nodes, numbered: InMemory
) -> Edges:
    order = np.lexsort((o[come], s[come], p[come]))
    s, p, o = (
        _replaced(column, places, come, go, order, new)
        for column, new in ((old.s, s), (old.p, p), (old.o, o))
    )
    predicates = numbered.predicates
    return Edges(
        s, p, o, numbered.nodes, predicates, np.searchsorted(p, np.arange(predicates + 1, dtype=p.dtype))
    )


def _turned(
    old: Edges, made: Edges, ways: Ways, come: Flags, go: Flags, s: Nodes, p: Nodes, o: Nodes
) -> Ways:
    """Return the edges both ways; backward edges are sorted by (p, o, s)."""
    heads, targets = ways
    tails = targets[len(old) :]
    places = _places(old.begins, heads, tails, p, o, s)
    order = np.lexsort((s[come], o[come], p[come]))
    heads, tails = (
        _replaced(column, places, come, go, order, new) for column, new in ((heads, o), (tails, s))
    )
    return heads, np.concatenate([made.o, tails])


def _replaced(column: Nodes, places: Ids, come: Flags, go: Flags, order: Ids, new: Nodes) -> Nodes:
    """Return a column without removed edges (``go``), and with added ones (``come``) in ``order``."""
    kept = np.ones(len(column), dtype=np.bool_)
    kept[places[go]] = False
    shifted = places[come] - np.searchsorted(np.sort(places[go]), places[come])
    return np.insert(column[kept] if go.any() else column, shifted[order], new[come][order])


def _is_alone(edges: Edges, s: Nodes, p: Nodes, o: Nodes) -> bool:
    """Return whether a node or predicate of the removed edges has no edge left."""
    used = np.zeros(edges.nodes, dtype=np.bool_)
    used[edges.s] = used[edges.o] = True
    empty = edges.begins[1:] == edges.begins[:-1]
    return not (used[s].all() and used[o].all()) or bool(empty[p].any())
