"""What background graphs know of an event that came alone, by the variables that are bound before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spaseq.events import Ids
from spaseq.gpm.algebra import MANY
from spaseq.gpm.spectra.joins import Knowledge
from spaseq.gpm.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.language.scope import certain, variables
from spaseq.language.syntax import Graph
from spaseq.limits import Spending
from spaseq.terms.dictionary import Dictionary

_Row = tuple[int, ...]


class Continues(Protocol):
    """What rows are joined with, by their values at ``places``: each gets those of ``others``."""

    places: Sequence[int]
    others: Sequence[str]
    #: Whether others may ask the same, for whom it is kept once.
    is_shared: bool

    @property
    def version(self) -> int:
        """Another number whenever it is something else."""
        ...

    def packed(self) -> Ids:
        """It for compiled code: see ``Lookup.packed``."""
        ...

    def join(self, rows: Sequence[_Row], spending: Spending) -> list[_Row]:
        """The rows with what is known of them, each as often as that is there; ``spending`` is told first."""
        ...


class Known:
    """The solutions of a GRAPH pattern, found by the variables that rows bind before it.

    ``places``: where in a row those are; ``others``: the variables that it binds besides.
    """

    is_shared = True

    def __init__(self, graph: Graph, names: Sequence[str], dictionary: Dictionary, kb: Knowledge) -> None:
        """``names``: the variables of rows, in their order; some of them are in ``graph``."""
        asked = variables(graph)
        self._keys = tuple(name for name in names if name in asked)
        self.others: Sequence[str] = sorted(asked.difference(names))
        self.places: Sequence[int] = [names.index(key) for key in self._keys]
        self._graph, self._dictionary, self._kb = graph, dictionary, kb
        self._made: int | None = None
        self._table = NO_SOLUTIONS

    @property
    def version(self) -> int:
        """Another number whenever the graphs have changed."""
        return self._kb.version

    def table(self) -> Solutions:
        """They as the graphs are now."""
        if self._made != self._kb.version:
            self._table = self._kb.solutions(self._graph, self._dictionary, {})
            self._made = self._kb.version
        return self._table

    def packed(self) -> Ids:
        """The same for compiled code: see ``Lookup.packed``."""
        table = self.table()
        return table.lookup(self._keys).packed({name: table.column(name) for name in self.others})

    def join(self, rows: Sequence[_Row], spending: Spending) -> list[_Row]:
        """The rows with what is known of them, each as often as that is there; ``spending`` is told first."""
        table = self.table()
        lookup, columns = table.lookup(self._keys), [table.column(name) for name in self.others]
        found = [lookup.rows([row[place] for place in self.places]) for row in rows]
        if (count := sum(map(len, found))) > MANY:
            spending.rows(count, len(rows[0]) + len(columns))
        return [
            row + tuple([column.item(at) for column in columns])
            for row, places in zip(rows, found, strict=True)
            for at in places
        ]


def known_by(graph: Graph, names: Sequence[str], dictionary: Dictionary, kb: Knowledge) -> Known | None:
    """What is known by variables that rows bind; None if these may be compatible without being equal."""
    if not variables(graph).intersection(names) or certain(graph) != variables(graph):
        return None
    return Known(graph, names, dictionary, kb)
