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
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from spaseq.paths.graph.linking.candidates import Candidate, topics
from spaseq.paths.graph.names import names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.path import one_line
from spaseq.paths.retrieval.trie import ReachedNodes, further, name_of, start
from spaseq.results.writers._json import json_term
from spaseq.terms.interop import RdflibTerm, to_rdflib

#: Names of examples are cut to this many characters in texts.
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class RelationPath:
    """A path of relations, by names that ``retrieve`` takes; ``^`` goes from object to subject.

    ``count`` is the number of distinct nodes that the path reaches, ``examples`` the numbers of some of them.
    """

    relations: tuple[str, ...]
    count: int
    examples: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """The relation paths from some topics; iterating yields them.

    Shorter paths come first; of one length, paths that reach more nodes. ``unknown`` are topics that the
    graph does not have, ``linked`` the nodes that names were linked to. ``truncated``: there are more
    relation paths of one length than ``k``.
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
        """Return a line for each relation path: the path as JSON, its count, and its examples' labels."""
        return "\n".join(map(self._line, self.paths))

    def _line(self, path: RelationPath) -> str:
        shown = [_cut(one_line(names_of(self.graph).node(node))) for node in path.examples]
        if shown and len(shown) < path.count:
            shown.append("…")
        listed = json.dumps(path.relations, ensure_ascii=False)
        return f"{listed} ({path.count:,})" + (f": {'; '.join(shown)}" if shown else "")

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values; terms as in the SPARQL 1.1 results format."""
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
    found, truncated = list[ReachedNodes](), False
    longest = [start(numbers)]
    avoided = None if returning else numbers
    memory = graph.memory("the relations of a topic")
    for _ in range(hops):
        longer = [one for reached in longest for one in further(graph, reached, avoided, memory)]
        longer.sort(key=lambda reached: (-len(reached.nodes), reached.relations))
        truncated |= len(longer) > k
        longest = longer[:k]
        found += longest
    return Neighbourhood(
        graph,
        tuple(numbers.tolist()),
        tuple(_path(graph, reached, examples) for reached in found),
        truncated,
        tuple(map(to_rdflib, strangers)),
        linked,
    )


def _path(graph: Snapshot, reached: ReachedNodes, examples: int) -> RelationPath:
    names = tuple(name_of(graph, relation) for relation in reached.relations)
    count = len(reached.nodes)
    spread = np.arange(min(examples, count)) * count // max(min(examples, count), 1)
    return RelationPath(names, count, tuple(reached.nodes[spread].tolist()))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
