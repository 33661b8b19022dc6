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
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spaseq.paths.graph.linking.candidates import Candidate, topics
from spaseq.paths.graph.names import LABELS
from spaseq.paths.rendering import one_line
from spaseq.paths.search._kernel import Flags, Ids, Nodes
from spaseq.paths.search.stopping import current
from spaseq.results.writers._json import json_term
from spaseq.terms.interop import RdflibTerm, to_rdflib

if TYPE_CHECKING:
    from spaseq.paths.graph.snapshot import Snapshot

#: What looking for the edges of some nodes takes for each edge of the graph, and for each one found.
_LOOKING_BYTES: Final = 1
_FOUND_BYTES: Final = 32

#: Names of examples are cut to so many characters in texts.
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class RelationPath:
    """Relations one after the other, by names that ``retrieve`` takes, ``^`` before those against the edge.

    ``count``: so many distinct nodes, topics aside, are reached by them; ``examples`` are some, as numbers.
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
        shown = [_cut(one_line(self.graph.names.node(node))) for node in path.examples]
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
    graph: Snapshot, topic: Any, hops: int, k: int, examples: int, labels: Any
) -> Neighbourhood:
    """What ``KnowledgeGraph.relations_of`` gives."""
    for name, number, least in (("hops", hops, 1), ("k", k, 0), ("examples", examples, 0)):
        if number < least:
            raise ValueError(f"{name}={number}: a number from {least} on is wanted")
    numbers, strangers, linked = topics(graph, topic, labels)
    found, truncated = list[_Reached](), False
    longest = [_Reached((), numbers)]
    for _ in range(hops):
        further = list(_further(graph, longest, numbers))
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


@dataclass(frozen=True, slots=True)
class _Reached:
    """The distinct nodes that some relations lead to, in order."""

    relations: tuple[_Relation, ...]
    nodes: Ids | Nodes


def _further(graph: Snapshot, reached: Sequence[_Reached], taken: Ids) -> Iterator[_Reached]:
    """One relation more for each, in all ways that lead to other nodes than those ``taken``."""
    if not reached:
        return
    stop = current()
    memory = graph.memory("the relations of a topic")
    memory.take(_LOOKING_BYTES * len(graph), "a look at each edge")
    left = np.zeros(graph.nodes, dtype=np.bool_)
    left[np.concatenate([one.nodes for one in reached])] = True
    entered = np.ones(graph.nodes, dtype=np.bool_)
    entered[taken] = False
    s, p, o = graph.edges()
    labelling = [n for iri in LABELS if (n := graph.predicate_number(iri)) is not None]
    for inverse, source, target in ((False, s, o), (True, o, s)):
        here = left[source]
        memory.take(_FOUND_BYTES * int(np.count_nonzero(here)), "the edges of the nodes reached")
        here &= entered[target]
        if labelling:
            here &= ~np.isin(p, labelling)
        edges = p[here], source[here], target[here]
        for one in reached:
            stop.check()
            for predicate, nodes in _leaving(edges, one.nodes, graph.nodes):
                memory.take(nodes.nbytes, "the nodes that relations lead to")
                yield _Reached((*one.relations, (predicate, inverse)), nodes)


def _leaving(
    edges: tuple[Nodes, Nodes, Nodes], nodes: Ids | Nodes, count: int
) -> Iterator[tuple[int, Nodes]]:
    """The predicates of the edges that leave some nodes, each with the distinct nodes that they lead to."""
    p, source, target = edges
    left: Flags = np.zeros(count, dtype=np.bool_)
    left[nodes] = True
    here = left[source]
    keys = np.unique(p[here].astype(np.int64) * count + target[here])
    predicates, begins = np.unique(keys // count, return_index=True)
    ends = (keys % count).astype(np.int32)
    yield from zip(predicates.tolist(), np.split(ends, begins[1:]), strict=False)


def _path(graph: Snapshot, reached: _Reached, examples: int) -> RelationPath:
    names = tuple(
        ("^" if inverse else "") + graph.names.unmistakable(predicate)
        for predicate, inverse in reached.relations
    )
    count = len(reached.nodes)
    spread = np.arange(min(examples, count)) * count // max(min(examples, count), 1)
    return RelationPath(names, count, tuple(reached.nodes[spread].tolist()))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
