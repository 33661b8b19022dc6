"""The relation paths that leave a topic as a trie, expanded only where it is read, and as grammars.

Graph-constrained decoding (Luo et al., *Graph-constrained Reasoning*, 2024): if a language model may only
continue as the trie allows, it writes only relation paths that the graph has. A state of the trie is the set
of nodes that the relations so far lead to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from spaseq.errors import LimitError
from spaseq.paths.graph.names import LABELS, names_of
from spaseq.paths.graph.relations import sort_edges
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.paths.search.running import Memory, current

#: Bytes for each edge of the nodes reached.
_FOUND_BYTES: Final = 32

#: In ``ReachedNodes.before``: the node is reached from several nodes.
SEVERAL: Final = -1

#: At most this many expanded states are kept; then all are dropped.
_KEPT: Final = 1 << 16

#: A predicate, and whether its edges are taken from object to subject.
Relation = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class ReachedNodes:
    """The distinct nodes that ``relations`` lead to, in order.

    ``before`` has for each node the node from which the last relation leads there, or SEVERAL. No path turns
    straight back along its last edge, so the inverse of the last relation does not lead back to that node.
    """

    relations: tuple[Relation, ...]
    nodes: Ids | Nodes
    before: Ids | Nodes


class _Incident:
    """The outgoing and the incoming edges of each node of a graph."""

    def __init__(self, graph: Snapshot) -> None:
        s, _, o = graph.edges()
        orders = (sort_edges((column, graph.nodes)).astype(np.int32) for column in (s, o))
        counts = (np.bincount(column, minlength=graph.nodes) for column in (s, o))
        self._sides = [
            (order, np.cumsum(count) - count, count) for order, count in zip(orders, counts, strict=True)
        ]

    def of(self, nodes: Ids | Nodes, inverse: bool) -> Ids:
        """Return the numbers of the edges of some nodes, node by node."""
        order, begins, counts = self._sides[inverse]
        count = counts[nodes]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        found: Ids = order[np.repeat(begins[nodes], count) + within].astype(np.int64)
        return found


def further(
    graph: Snapshot, reached: ReachedNodes, avoided: Ids | None, memory: Memory
) -> Iterator[ReachedNodes]:
    """Extend ``reached.relations`` by one, in all ways that lead to nodes that are not ``avoided``."""
    current().check()
    s, p, o = graph.edges()
    labelling = [n for iri in LABELS if (n := graph.predicate_number(iri)) is not None]
    for inverse, source, target in ((False, s, o), (True, o, s)):
        edges = graph.derived(_Incident).of(reached.nodes, inverse)
        memory.take(_FOUND_BYTES * len(edges), "the edges of the nodes reached")
        predicate, ends = p[edges], target[edges]
        here = ~np.isin(predicate, labelling)
        if avoided is not None:
            here &= ~np.isin(ends, avoided)
        if reached.relations and reached.relations[-1][1] != inverse:
            place = np.searchsorted(reached.nodes, source[edges])
            here &= (predicate != reached.relations[-1][0]) | (reached.before[place] != ends)
        keys = predicate[here].astype(np.int64) * graph.nodes + ends[here]
        keys, first, counts = np.unique(keys, return_index=True, return_counts=True)
        before = np.where(counts == 1, source[edges[here][first]], SEVERAL)
        predicates, begins = np.unique(keys // graph.nodes, return_index=True)
        nodes = np.split((keys % graph.nodes).astype(np.int32), begins[1:])
        for number, some, last in zip(predicates.tolist(), nodes, np.split(before, begins[1:]), strict=False):
            memory.take(2 * some.nbytes, "the nodes that relations lead to")
            yield ReachedNodes((*reached.relations, (number, inverse)), some, last)
        memory.give(_FOUND_BYTES * len(edges))


def start(topics: Ids) -> ReachedNodes:
    """Return the topics as the nodes reached by no relation."""
    return ReachedNodes((), np.sort(topics), np.full(len(topics), SEVERAL))


class RelationTrie:
    """The paths of 1 to ``hops`` relations that leave some topics, by the names that ``retrieve`` takes.

    A path is in the trie if a walk with its relations exists that does not turn straight back. A state is
    expanded when it is first read; this looks at the edges of the nodes reached there.

    >>> import spaseq.paths
    >>> films = spaseq.paths.load([
    ...     ("urn:Kismet", "urn:starred", "urn:Edward_Arnold"), ("urn:Kismet", "urn:year", "1944"),
    ... ])
    >>> trie = films.relation_trie("Edward Arnold")
    >>> trie.next(), trie.next(["^starred"]), ["^starred", "starred"] in trie
    (('^starred',), ('year',), False)
    >>> list(trie)
    [('^starred',), ('^starred', 'year')]
    >>> trie.continuations('["^starred", "')
    ['year"']
    """

    def __init__(self, graph: Snapshot, topics: Ids, hops: int, *, returning: bool) -> None:
        self._graph = graph
        self._hops = hops
        self._avoided = None if returning else topics
        self._root = start(topics)
        self._expanded: dict[tuple[Relation, ...], Mapping[str, ReachedNodes]] = {}

    def next(self, path: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the relations that may follow ``path``; none if it is not in the trie."""
        state = self._state(path)
        return () if state is None else tuple(self._children(state))

    def __contains__(self, path: object) -> bool:
        """Return whether the relations are a path that leaves the topics."""
        return isinstance(path, list | tuple) and len(path) > 0 and self._state(path) is not None

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Yield all paths, each after the path that it begins with."""
        waiting: list[tuple[tuple[str, ...], ReachedNodes]] = [((), self._root)]
        while waiting:
            path, state = waiting.pop()
            if path:
                yield path
            children = self._children(state)
            waiting += [((*path, name), children[name]) for name in reversed([*children])]

    def continuations(self, text: str) -> list[str]:
        """Return what may follow a text, for processors of logits; none if the text cannot become a path.

        The text is the beginning of a JSON list as ``json.dumps`` writes it: ``["^starred", "year"]``. Each
        continuation is the rest of a relation with its closing quote, or ``, `` or ``]``. Allow a token if it
        begins a continuation. If a continuation begins the token, check the rest of the token in the same
        way.
        """
        if not text.startswith("["):
            return ["["] if not text else []
        path, at = list[str](), 1
        while True:
            names = self.next(path)
            rest = text[at:]
            for name in names:
                quoted = _quoted(name)
                if rest.startswith(quoted):
                    path.append(name)
                    at += len(quoted)
                    break
            else:
                return sorted(q[len(rest) :] for q in map(_quoted, names) if q.startswith(rest))
            after = [", ", "]"] if self.next(path) else ["]"]
            rest = text[at:]
            if not rest.startswith(", ") or ", " not in after:
                return [end[len(rest) :] for end in after if end.startswith(rest) and end != rest]
            at += len(", ")

    def json_schema(self, most: int = 10_000) -> dict[str, Any]:
        """Return a JSON Schema of lists of paths; each item is ``oneOf`` all paths.

        Raises LimitError if there are more than ``most``.
        """
        paths = list[dict[str, Any]]()
        for path in self:
            if len(paths) == most:
                raise LimitError(
                    f"there are more than {most:,} relation paths: ask for fewer hops, or use a grammar",
                    limit="most",
                )
            paths.append({"const": list(path)})
        return {"type": "array", "items": {"oneOf": paths}}

    def gbnf(self) -> str:
        """Return a grammar of JSON lists of paths in GBNF, as llama.cpp reads it."""
        return self._grammar("root", " ::= ")

    def lark(self) -> str:
        """Return a grammar of JSON lists of paths for Lark and libraries that read Lark's grammars."""
        return self._grammar("start", ": ")

    def _grammar(self, root: str, sign: str) -> str:
        rules = [(root, '"[" (path (", " path)*)? "]"'), ("path", '"[" r0 "]"'), *self._rules()]
        if not self.next():
            rules = [(root, '"[]"')]
        return "".join(f"{rule}{sign}{body}\n" for rule, body in rules)

    def _rules(self) -> list[tuple[str, str]]:
        """Return a rule for each state: what may follow. States with the same continuations share one."""
        names = {"": "r0"}  # of rules, by their bodies

        def rule(state: ReachedNodes) -> str:
            ways = []
            for name, child in self._children(state).items():
                after = rule(child)
                more = f' (", " {after})?' if after else ""
                ways.append(f"{json.dumps(_quoted(name), ensure_ascii=False)}{more}")
            body = " | ".join(ways)
            if not state.relations:
                names[""] = body
                return ""
            return names.setdefault(body, f"r{len(names)}") if body else ""

        rule(self._root)
        first = names.pop("")
        return [("r0", first), *((name, body) for body, name in names.items())]

    # --- states

    def _state(self, path: Sequence[str]) -> ReachedNodes | None:
        state: ReachedNodes | None = self._root
        for name in path:
            state = None if state is None else self._children(state).get(name)
        return state

    def _children(self, state: ReachedNodes) -> Mapping[str, ReachedNodes]:
        if len(state.relations) == self._hops:
            return {}
        found = self._expanded.get(state.relations)
        if found is None:
            memory = self._graph.memory("the relations of a topic")
            states = further(self._graph, state, self._avoided, memory)
            found = {name_of(self._graph, child.relations[-1]): child for child in states}
            if len(self._expanded) >= _KEPT:
                self._expanded.clear()
            self._expanded[state.relations] = found
        return found


def name_of(graph: Snapshot, relation: Relation) -> str:
    """Return a name of a relation that no other has, ``^`` before one from object to subject."""
    predicate, inverse = relation
    return ("^" if inverse else "") + names_of(graph).unmistakable(predicate)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
