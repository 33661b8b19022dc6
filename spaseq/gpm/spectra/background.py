"""An event that came alone: its triples' solutions, joined with what background graphs know of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spaseq.events import Ids
from spaseq.gpm.sharing import Values
from spaseq.gpm.spectra.joins import Knowledge
from spaseq.gpm.spectra.lookup import Lookup
from spaseq.gpm.spectra.single import Join, joined
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.language.scope import certain, variables
from spaseq.language.syntax import Graph, Group, Triples
from spaseq.terms.dictionary import Dictionary

#: What is known of so many values is remembered.
_MOST: Final = 4_096

_Row = tuple[int, ...]


class _Known:
    """The solutions of a GRAPH pattern, found by the variables that rows bind before it."""

    def __init__(self, graph: Graph, names: Sequence[str], dictionary: Dictionary, kb: Knowledge) -> None:
        """``names``: those variables, in the order in which rows have them."""
        asked = variables(graph)
        self.keys = [name for name in names if name in asked]
        #: What it binds besides.
        self.others = sorted(asked.difference(names))
        self._places = [names.index(key) for key in self.keys]
        self._graph, self._dictionary, self._kb = graph, dictionary, kb
        self._version: int | None = None
        self._lookup: Lookup | None = None
        self._columns: list[Ids] = []
        self._found: dict[_Row, list[_Row]] = {}

    def join(self, rows: Sequence[_Row]) -> list[_Row]:
        """The rows with what is known of them, each as often as that is there."""
        if self._version != self._kb.version:
            self._forget()
        found, places, out = self._found, self._places, []
        for row in rows:
            key = tuple([row[place] for place in places])
            known = found.get(key)
            if known is None:
                known = self._look(key)
            out += [row + others for others in known]
        return out

    def _forget(self) -> None:
        """The graphs have changed."""
        table: Solutions = self._kb.solutions(self._graph, self._dictionary, {})
        self._found.clear()
        self._lookup = table.lookup(tuple(self.keys))
        self._columns = [table.column(name) for name in self.others]
        self._version = self._kb.version

    def _look(self, key: _Row) -> list[_Row]:
        assert self._lookup is not None
        if len(self._found) >= _MOST:
            self._found.clear()
        # An id that is given to another term meanwhile is of none in the graphs: those are held.
        known = [tuple([c.item(row) for c in self._columns]) for row in self._lookup.rows(key)]
        self._found[key] = known
        return known


class BackgroundJoin:
    """What gives the solutions of a pattern of triples and GRAPHs in an event that came alone."""

    def __init__(self, join: Join, known: Sequence[_Known], order: Sequence[int]) -> None:
        self._join = join
        self._known = known
        self._order = order

    def __call__(self, terms: Sequence[int]) -> Values:
        rows: Sequence[_Row] = self._join(terms)
        for known in self._known:
            if not rows:
                return ()
            rows = known.join(rows)
        return tuple([tuple([row[i] for i in self._order]) for row in rows])


def joined_with(
    pattern: Group, names: Sequence[str], dictionary: Dictionary, kb: Knowledge | None
) -> BackgroundJoin | None:
    """What gives a pattern's solutions; None if it is more than triples and GRAPHs joined with them.

    ``names``: its variables, in the order in which they are given.
    """
    triples = tuple(element for element in pattern.elements if isinstance(element, Triples))
    graphs = [element for element in pattern.elements if isinstance(element, Graph)]
    if kb is None or not graphs or len(triples) + len(graphs) < len(pattern.elements):
        return None
    bound = sorted(variables(Group(triples)))
    join = joined(Group(triples), bound, dictionary)
    if join is None:
        return None
    known = []
    for graph in graphs:
        one = _Known(graph, bound, dictionary, kb)
        # Where something need not be bound, compatible is more than equal.
        if not one.keys or certain(graph) != variables(graph):
            return None
        known.append(one)
        bound += one.others
    return BackgroundJoin(join, known, [bound.index(name) for name in names])
