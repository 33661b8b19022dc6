"""The relations that leave a topic: what a language model should know before it writes relation paths.

>>> import spaseq
>>> films = spaseq.paths.load([
...     ("urn:film:Kismet", "urn:starred_actors", "urn:person:Edward_Arnold"),
...     ("urn:film:Kismet", "urn:release_year", "1944"),
...     ("urn:film:Meet_Nero_Wolfe", "urn:starred_actors", "urn:person:Edward_Arnold"),
... ])
>>> print(films.relations_of("Edward Arnold").text())
["^starred_actors"] (2): Kismet; Meet Nero Wolfe
["^starred_actors", "release_year"] (1): 1944
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from spaseq.paths.graph.linking.candidates import Candidate, topics
from spaseq.paths.graph.names import LABELS, names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.rendering import one_line
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.paths.search.stopping import current
from spaseq.results.writers._json import json_term
from spaseq.terms.interop import RdflibTerm, to_rdflib

#: What looking for the edges of some nodes takes for each edge of the graph, and for each one found.
_LOOKING_BYTES: Final = 1
_FOUND_BYTES: Final = 32

#: Names of examples are cut to so many characters in texts.
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class RelationPath:
    """Relations one after the other, by names that ``retrieve`` takes, ``^`` before those against the edge.

    ``count``: the number of distinct nodes that they reach; ``examples``: the numbers of some of these nodes.
    """

    relations: tuple[str, ...]
    count: int
    examples: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """The relation paths from some topics, shorter ones first, then by how much they reach; an iterable.

    ``unknown`` are topics that the graph does not have, ``linked`` what names were taken for; ``truncated``:
    there are more relation paths of one length than were wanted.
    """

    graph: Snapshot = field(repr=False)
    topics: tuple[int, ...]
    paths: tuple[RelationPath, ...] = field(repr=False)
    truncated: bool
    unknown: tuple[RdflibTerm, ...]
    linked: tuple[Candidate, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[RelationPath]:
        return iter(self.paths)

    def text(self) -> str:
        """A relation path a line, as JSON, with its count and examples by their labels."""
        return "\n".join(map(self._line, self.paths))

    def _line(self, path: RelationPath) -> str:
        shown = [_cut(one_line(names_of(self.graph).node(node))) for node in path.examples]
        if shown and len(shown) < path.count:
            shown.append("…")
        listed = json.dumps(path.relations, ensure_ascii=False)
        return f"{listed} ({path.count:,})" + (f": {'; '.join(shown)}" if shown else "")

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values; terms as in the SPARQL 1.1 results format."""
        return {
            "topics": [json_term(self.graph.term(topic)) for topic in self.topics],
            "relations": [
                {
                    "path": list(path.relations),
                    "count": path.count,
                    "examples": [json_term(self.graph.term(node)) for node in path.examples],
                }
                for path in self.paths
            ],
            "truncated": self.truncated,
            "unknown": [json_term(term) for term in self.unknown],
            "linked": [candidate.as_json() for candidate in self.linked],
        }


def neighbourhood(
    graph: Snapshot, topic: Any, hops: int, k: int, examples: int, labels: Any, *, returning: bool
) -> Neighbourhood:
    """Return what ``KnowledgeGraph.relations_of`` returns."""
    for name, number, least in (("hops", hops, 1), ("k", k, 0), ("examples", examples, 0)):
        if number < least:
            raise ValueError(f"{name}={number}: a number from {least} on is wanted")
    numbers, strangers, linked = topics(graph, topic, labels)
    found, truncated = list[_Reached](), False
    longest = [_Reached((), numbers, np.full(len(numbers), _SEVERAL))]
    avoided = None if returning else numbers
    for _ in range(hops):
        further = list(_further(graph, longest, avoided))
        further.sort(key=lambda reached: (-len(reached.nodes), reached.relations))
        truncated |= len(further) > k
        longest = further[:k]
        found += longest
    return Neighbourhood(
        graph,
        tuple(numbers.tolist()),
        tuple(_path(graph, reached, examples) for reached in found),
        truncated,
        tuple(map(to_rdflib, strangers)),
        linked,
    )


#: A predicate, and whether its edges are taken from object to subject.
_Relation = tuple[int, bool]


#: In ``_Reached.before``: the node is reached from several nodes.
_SEVERAL: Final = -1


@dataclass(frozen=True, slots=True)
class _Reached:
    """The distinct nodes that some relations lead to, in order.

    ``before``: for each the node from which the last relation leads there, if it is one only. No path turns
    straight back along its last edge, so it does not go on to that node by the same relation.
    """

    relations: tuple[_Relation, ...]
    nodes: Ids | Nodes
    before: Ids | Nodes


def _further(graph: Snapshot, reached: Sequence[_Reached], avoided: Ids | None) -> Iterator[_Reached]:
    """Extend each by one relation, in all ways that lead to nodes that are not ``avoided``."""
    if not reached:
        return
    stop = current()
    memory = graph.memory("the relations of a topic")
    memory.take(_LOOKING_BYTES * len(graph), "a look at each edge")
    left = np.zeros(graph.nodes, dtype=np.bool_)
    left[np.concatenate([one.nodes for one in reached])] = True
    s, p, o = graph.edges()
    labelling = [n for iri in LABELS if (n := graph.predicate_number(iri)) is not None]
    for inverse, source, target in ((False, s, o), (True, o, s)):
        here = left[source]
        memory.take(_FOUND_BYTES * int(np.count_nonzero(here)), "the edges of the nodes reached")
        if avoided is not None:
            here &= ~np.isin(target, avoided)
        if labelling:
            here &= ~np.isin(p, labelling)
        edges = p[here], source[here], target[here]
        for one in reached:
            stop.check()
            for predicate, nodes, before in _leaving(edges, one, inverse, graph.nodes):
                memory.take(2 * nodes.nbytes, "the nodes that relations lead to")
                yield _Reached((*one.relations, (predicate, inverse)), nodes, before)


def _leaving(
    edges: tuple[Nodes, Nodes, Nodes], reached: _Reached, inverse: bool, count: int
) -> Iterator[tuple[int, Nodes, Nodes]]:
    """Yield the predicates of the edges that leave some nodes, the nodes reached by each, and ``before``."""
    p, source, target = edges
    place = np.full(count, _SEVERAL)
    place[reached.nodes] = np.arange(len(reached.nodes))
    here = place[source] >= 0
    if reached.relations and reached.relations[-1][1] != inverse:
        here &= (p != reached.relations[-1][0]) | (reached.before[place[source]] != target)
    keys = p[here].astype(np.int64) * count + target[here]
    keys, first, counts = np.unique(keys, return_index=True, return_counts=True)
    before = np.where(counts == 1, source[here][first], _SEVERAL)
    predicates, begins = np.unique(keys // count, return_index=True)
    ends = np.split((keys % count).astype(np.int32), begins[1:])
    yield from zip(predicates.tolist(), ends, np.split(before, begins[1:]), strict=False)


def _path(graph: Snapshot, reached: _Reached, examples: int) -> RelationPath:
    names = tuple(
        ("^" if inverse else "") + names_of(graph).unmistakable(predicate)
        for predicate, inverse in reached.relations
    )
    count = len(reached.nodes)
    spread = np.arange(min(examples, count)) * count // max(min(examples, count), 1)
    return RelationPath(names, count, tuple(reached.nodes[spread].tolist()))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
