"""The contents of a graph: terms, their numbers and edges, in memory or in a mapped file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from spaseq.paths.graph.loading import Loaded
from spaseq.paths.graph.relations import Edges, both_ways
from spaseq.paths.graph.saved.check import block
from spaseq.paths.graph.saved.file import Array, KeptFile
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.terms.dictionary import Dictionary, distinct_of


class Contents(Protocol):
    """Terms by ids of a dictionary; nodes and predicates by numbers of their own, from 0 on.

    ``node_ids`` are the ids of nodes by number, ``node_of`` the numbers of nodes by id (-1: not a node);
    ``predicate_ids`` and ``predicate_of`` are the same for predicates. ``both_ways()`` returns the result of
    ``relations.both_ways``. ``file`` is the mapped file, None for a graph in memory.
    """

    @property
    def prefixes(self) -> Mapping[str, str]: ...
    @property
    def nodes(self) -> int: ...
    @property
    def predicates(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def file(self) -> KeptFile | None: ...
    @property
    def dictionary(self) -> Dictionary: ...
    @property
    def node_ids(self) -> Ids: ...
    @property
    def node_of(self) -> Nodes: ...
    @property
    def predicate_ids(self) -> Ids: ...
    @property
    def predicate_of(self) -> Nodes: ...
    @property
    def edges(self) -> Edges: ...

    def both_ways(self) -> tuple[Nodes, Nodes]: ...


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """The contents of a graph in memory. ``ways`` is the result of ``both_ways`` if already known.

    ``continues``: nodes and predicates have the same numbers as before the last changes.
    """

    prefixes: Mapping[str, str]
    dictionary: Dictionary
    node_ids: Ids
    node_of: Nodes
    predicate_ids: Ids
    predicate_of: Nodes
    edges: Edges
    ways: tuple[Nodes, Nodes] | None = None
    file: None = None
    continues: bool = False

    @property
    def nodes(self) -> int:
        return len(self.node_ids)

    @property
    def predicates(self) -> int:
        return len(self.predicate_ids)

    @property
    def size(self) -> int:
        return len(self.edges)

    def both_ways(self) -> tuple[Nodes, Nodes]:
        return self.ways or both_ways(self.edges)


def in_memory(loaded: Loaded) -> InMemory:
    """Return the contents of loaded triples: nodes and predicates are numbered, edges are sorted."""
    limit = loaded.dictionary.limit
    node_ids, node_of = _numbered(limit, loaded.s, loaded.o)
    predicate_ids, predicate_of = _numbered(limit, loaded.p)
    edges = Edges.of(
        node_of[loaded.s], predicate_of[loaded.p], node_of[loaded.o], len(node_ids), len(predicate_ids)
    )
    return InMemory(loaded.prefixes, loaded.dictionary, node_ids, node_of, predicate_ids, predicate_of, edges)


#: The arrays of the table of terms in a file.
_TABLE: Final = ("slots", "terms", "arena", "counts")


class Mapped:
    """The contents of a graph in a mapped file; each part is checked when it is first needed."""

    def __init__(self, file: KeptFile) -> None:
        self.file = file
        facts = file.facts
        self.prefixes: Mapping[str, str] = facts["prefixes"]
        self.nodes: int = facts["nodes"]
        self.predicates: int = facts["predicates"]
        self.size: int = facts["edges"]

    @cached_property
    def dictionary(self) -> Dictionary:
        # Here, because compiled code takes a while to load.
        from spaseq.terms.table import TermTable

        made = Dictionary.of(TermTable.of(*(block(self.file, f"table.{name}") for name in _TABLE)))
        found: Dictionary = self.__dict__.setdefault(
            "dictionary", made
        )  # of several threads, the first one's
        return found

    @cached_property
    def node_ids(self) -> Ids:
        return block(self.file, "node_ids")

    @cached_property
    def node_of(self) -> Nodes:
        return block(self.file, "node_of")

    @cached_property
    def predicate_ids(self) -> Ids:
        return block(self.file, "predicate_ids")

    @cached_property
    def predicate_of(self) -> Nodes:
        return block(self.file, "predicate_of")

    @cached_property
    def edges(self) -> Edges:
        s, p, o, begins = (block(self.file, f"edges.{name}") for name in ("s", "p", "o", "begins"))
        return Edges(s, p, o, self.nodes, self.predicates, begins)

    def both_ways(self) -> tuple[Nodes, Nodes]:
        return block(self.file, "heads"), block(self.file, "targets")


def arrays_of(contents: Contents) -> dict[str, Array]:
    """Return all arrays of a graph for a file. Blank nodes without names get names."""
    dictionary, edges = contents.dictionary, contents.edges
    with dictionary.lock:
        table = dictionary.table()
        for identifier in table.nameless().tolist():
            dictionary.term(identifier)
        terms: tuple[Array, ...] = table.arrays()
    heads, targets = contents.both_ways()
    return {
        **{f"table.{name}": array for name, array in zip(_TABLE, terms, strict=True)},
        "node_ids": contents.node_ids,
        "node_of": _padded(contents.node_of, dictionary.limit),
        "predicate_ids": contents.predicate_ids,
        "predicate_of": _padded(contents.predicate_of, dictionary.limit),
        "edges.s": edges.s,
        "edges.p": edges.p,
        "edges.o": edges.o,
        "edges.begins": edges.begins,
        "heads": heads,
        "targets": targets,
    }


def _padded(numbers: Nodes, limit: int) -> Nodes:
    """Extend numbers by id to all ids, because the dictionary may have got more terms since."""
    return np.concatenate([numbers, np.full(limit - len(numbers), -1, dtype=np.int32)])


def facts_of(contents: Contents, prefixes: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts for the header of a file."""
    return {
        "prefixes": dict(prefixes),
        "nodes": contents.nodes,
        "predicates": contents.predicates,
        "edges": contents.size,
    }


def _numbered(limit: int, *columns: Ids) -> tuple[Ids, Nodes]:
    """Return the sorted ids in the columns, and for each id below ``limit`` its place among them, or -1."""
    ids = distinct_of(columns, limit)
    numbers = np.full(limit, -1, dtype=np.int32)
    numbers[ids] = np.arange(len(ids), dtype=np.int32)
    return ids, numbers
