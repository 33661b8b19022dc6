"""A knowledge graph as it is at one time: what one path query sees of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spaseq.errors import KnowledgeError
from spaseq.limits import Limits
from spaseq.paths.graph.linking.candidates import Linker
from spaseq.paths.graph.linking.changes import Touched, changed
from spaseq.paths.graph.names import Names
from spaseq.paths.graph.numbering import Numbering
from spaseq.paths.graph.questions import Questions
from spaseq.paths.graph.relations import Relations
from spaseq.paths.graph.saved.contents import Contents, Mapped
from spaseq.paths.graph.saved.file import KeptFile, mapped
from spaseq.paths.graph.saved.graph import as_bytes, kept_index, kept_linker
from spaseq.paths.graph.updates.merging import Edge, merged
from spaseq.paths.language.compile import Compiled, compile_path
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.parser import parse
from spaseq.paths.language.transitions import Automaton, automaton_of
from spaseq.paths.search._kernel import Flags, Ids, Nodes
from spaseq.paths.search.memory import Memory
from spaseq.paths.search.product import Product
from spaseq.paths.search.workspace import Workspaces
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm

_KEPT: Final = 256
_KEPT_LINKERS: Final = 4

_MOST_SHOWN: Final = 1 << 20

#: What a graph is called that came by a pipe, not from a file.
_PICKLED: Final = "<pickled graph>"


class Snapshot(Questions):
    """An RDF graph that does not change: what a ``KnowledgeGraph`` is ``now``.

    Its nodes are all subjects and objects, numbered from 0; its predicates have numbers of their own. Threads
    may share it.
    """

    def __init__(
        self,
        contents: Contents,
        prefixes: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        compiled: Callable[[str | Expression], Compiled] | None = None,
    ) -> None:
        """``compiled`` keeps the automata of expressions: those of any graph with these prefixes."""
        self.limits = limits or Limits()
        self.prefixes: Mapping[str, str] = MappingProxyType({**contents.prefixes, **(prefixes or {})})
        self.contents = contents
        self._relations: Relations | None = None
        self._lock = threading.Lock()
        self.workspaces = Workspaces(contents.nodes, self.limits)
        self._shown: tuple[npt.NDArray[np.object_], Flags] | None = None
        self._numbering = Numbering(contents, self.prefixes)
        self.compile = compiled or lru_cache(_KEPT)(partial(_compile, self.prefixes))
        self._product = lru_cache(_KEPT)(self._bind)
        self._linkers: dict[tuple[int, ...], Linker] = {}

    @property
    def now(self) -> Snapshot:
        """This is what it is."""
        return self

    def changed(self, changes: Mapping[Edge, bool]) -> Snapshot:
        """The graph with the edges that are ``True`` and without those that are ``False``."""
        ways = None if self._relations is None else self._relations.ways
        contents = merged(self.contents, ways, changes)
        if contents is self.contents:
            return self
        made = Snapshot(contents, self.prefixes, self.limits, self.compile)
        if self._linkers and (touched := Touched.of(self.contents, contents, changes)) is not None:
            linkers = {labels: changed(of, touched, made, labels) for labels, of in [*self._linkers.items()]}
            made._linkers = {labels: of for labels, of in linkers.items() if of is not None}
        return made

    def kept_terms(self, nodes: Ids | Nodes) -> list[RdflibTerm]:
        """See ``terms``."""
        if self._shown is None:
            self._shown = self._nothing_shown()
        found, known = self._shown
        there = known.take(nodes)
        if np.count_nonzero(there) < len(nodes):
            if np.count_nonzero(known) > _MOST_SHOWN:
                self._shown = self._nothing_shown()
            for node in dict.fromkeys(nodes[~there].tolist()):
                found[node] = self.term(node)
                known[node] = True
        terms: list[RdflibTerm] = found.take(nodes).tolist()
        return terms

    def _nothing_shown(self) -> tuple[npt.NDArray[np.object_], Flags]:
        return np.empty(self.nodes, dtype=np.object_), np.zeros(self.nodes, dtype=np.bool_)

    def read(self, value: Any) -> Term:
        """What is given as a term, with the graph's prefixes."""
        return self._numbering.term(value)

    def find(self, found: Term, numbers: Nodes) -> int | None:
        """The number of a term, by those of ids; None if it has none."""
        identifier = self.contents.dictionary.find(found)
        number = int(numbers[identifier]) if identifier < len(numbers) else -1
        return None if number < 0 else number

    def __reduce__(self) -> tuple[Any, ...]:
        """How pickle makes it anew: what was opened, from its file, which both sides then share."""
        kept = self.file
        if kept is not None and kept.name != _PICKLED:
            place = str(Path(kept.name).absolute())
            return _reopened, (place, kept.facts, dict(self.prefixes), self.limits)
        return _of_bytes, (as_bytes(self), self.limits)

    # --- names

    @cached_property
    def names(self) -> Names:
        """What terms are called, and predicates by their names."""
        return Names(self, kept_index(self.file))

    @property
    def linker(self) -> Linker:
        """The nodes by their names; made when it is first needed, and saved with the graph."""
        return self.linker_by(())

    def linker_by(self, labels: tuple[int, ...]) -> Linker:
        """The nodes by the values of these predicates, too. Some that were made last are kept."""
        found = self._linkers.get(labels)
        if found is None:
            made = (None if labels else kept_linker(self.file)) or Linker.of(self, labels)
            found = self._linkers.setdefault(labels, made)
            for old in [key for key in self._linkers if key][:-_KEPT_LINKERS]:
                self._linkers.pop(old, None)
        return found

    # --- what the backends stand on

    @property
    def relations(self) -> Relations:
        """The edges as CSR arrays, a row per relation."""
        relations = self._relations
        if relations is None or self._is_too_large(relations):
            with self._lock:
                relations = self._relations
                if relations is None or self._is_too_large(relations):
                    relations = self._relations = Relations(
                        self.contents.edges,
                        self.contents.both_ways(),
                        lambda predicate: self.find(predicate, self.contents.predicate_of),
                        lambda node: self.find(node, self.contents.node_of),
                    )
                    self._product.cache_clear()  # what is being asked keeps its own
        return relations

    def _is_too_large(self, relations: Relations) -> bool:
        """Whether what queries have added to the edges is better forgotten."""
        most = self.limits.query_bytes
        return most is not None and relations.added > most

    def product(self, expression: str | Expression, *, backwards: bool = False) -> Product:
        """The transitions of an expression's automaton bound to this graph's CSR arrays. Kept."""
        return self._product(expression, backwards)

    def _bind(self, expression: str | Expression, backwards: bool) -> Product:
        found: Automaton = automaton_of(self.compile(expression))
        found = found.reversed() if backwards else found
        return Product(self.relations, found, self.nodes, self.memory(expression))

    def memory(self, query: str | Expression) -> Memory:
        """What a query may take of memory."""
        return Memory(self.limits, query)

    def numbers(self, values: Any) -> tuple[Ids, tuple[Term, ...]]:
        """Terms, or one term, as distinct numbers of nodes; and those that are no nodes of the graph."""
        return self._numbering.numbers(values)


def _compile(prefixes: Mapping[str, str], expression: str | Expression) -> Compiled:
    """The automaton of an expression, with the graph's prefixes."""
    if isinstance(expression, str):
        expression = parse(expression, prefixes)
    elif not isinstance(expression, Expression):
        raise TypeError(f"not a path expression: {expression!r}")
    return compile_path(expression)


def _reopened(name: str, facts: Mapping[str, Any], prefixes: Mapping[str, str], limits: Limits) -> Snapshot:
    kept = mapped(Path(name))
    if kept.facts != facts:
        raise KnowledgeError(f"{name}: this is no longer the graph that was pickled")
    return Snapshot(Mapped(kept), prefixes, limits)


def _of_bytes(data: bytes, limits: Limits) -> Snapshot:
    return Snapshot(Mapped(KeptFile(_PICKLED, bytearray(data))), None, limits)
