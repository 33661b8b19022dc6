"""The patterns that compiled code joins event by event: triples, background graphs and filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from pyoxigraph import BlankNode, NamedNode

from spaseq.events import Ids
from spaseq.language.scope import certain, conjuncts, variables
from spaseq.language.syntax import Expression, Filter, Graph, Group, Triples, Var
from spaseq.patterns.algebra import by_reach
from spaseq.patterns.expressions.walk import exists_in, volatile
from spaseq.patterns.spectra.joins import Knowledge
from spaseq.patterns.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term


class Continues(Protocol):
    """A table to join rows with, by their values at ``places``. Joined rows also get the values of
    ``others``.
    """

    places: Sequence[int]
    others: Sequence[str]
    #: Whether several patterns join with the same table, which is then kept once.
    is_shared: bool

    @property
    def version(self) -> int:
        """A number that changes with the table."""
        ...

    def packed(self) -> Ids:
        """Return the table for compiled code: see ``Lookup.packed``."""
        ...


class Known:
    """The solutions of a GRAPH pattern, looked up by those of its variables that rows have already bound.

    ``places``: the positions of these variables in a row; ``others``: the pattern's other variables.
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
        """A number that differs whenever the graphs have changed."""
        return self._kb.version

    def table(self) -> Solutions:
        """Return the solutions on the graphs as they are now."""
        if self._made != self._kb.version:
            self._table = self._kb.solutions(self._graph, self._dictionary, {})
            self._made = self._kb.version
        return self._table

    def packed(self) -> Ids:
        """Return the table for compiled code: see ``Lookup.packed``."""
        table = self.table()
        return table.lookup(self._keys).packed({name: table.column(name) for name in self.others})


def known_by(graph: Graph, names: Sequence[str], dictionary: Dictionary, kb: Knowledge) -> Known | None:
    """Return the table of a GRAPH pattern, looked up by variables ``names`` that rows bind.

    None if the pattern has none of them, or if values may be compatible without being equal.
    """
    if not variables(graph).intersection(names) or certain(graph) != variables(graph):
        return None
    return Known(graph, names, dictionary, kb)


#: Values of a step's place that binds a new variable, and of one that is a term.
NEW: Final = -1
CONSTANT: Final = -2


class JoinStep(NamedTuple):
    """A triple of a pattern. A place is a term, or the position of an already bound value in a row, or
    ``NEW``.
    """

    predicate: int
    subject: int
    s: int
    object: int
    o: int
    #: Whether subject and object are the same new variable.
    is_loop: bool


class SingleJoin(NamedTuple):
    """The join that finds a pattern's solutions in an event, triple by triple.

    ``known``: the tables to join the rows with afterwards; ``conditions``: the filters; ``bound``: the
    variables and blank nodes of a complete row; ``order``: the place in a row of each variable of the
    solutions.
    """

    steps: tuple[JoinStep, ...]
    known: tuple[Continues, ...]
    conditions: tuple[Expression, ...]
    bound: tuple[str, ...]
    order: tuple[int, ...]


def joined(
    pattern: Group, names: Sequence[str], dictionary: Dictionary, kb: Knowledge | None
) -> SingleJoin | None:
    """Return the join for a pattern; None if it is more than a join of triples and GRAPHs, and filters.

    ``names``: its variables, in the order in which solutions have them.
    """
    triples = [t for e in pattern.elements if isinstance(e, Triples) for t in e.patterns]
    graphs = [element for element in pattern.elements if isinstance(element, Graph)]
    conditions = [c for e in pattern.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]
    if not all(isinstance(e, Triples | Graph | Filter) for e in pattern.elements) or not triples:
        return None
    if any(exists_in(condition) or volatile(condition) for condition in conditions):
        return None
    bound: dict[str, int] = {}
    steps = []
    for place in by_reach([{_name(t.subject), _name(t.object)} - {""} for t in triples]):
        triple = triples[place]
        if not isinstance(triple.predicate, NamedNode):
            return None
        s, subject = _place(triple.subject, bound, dictionary)
        is_loop = s == NEW and _name(triple.subject) == _name(triple.object)
        if s == NEW:
            bound[_name(triple.subject)] = len(bound)
        o, object_ = (NEW, UNBOUND) if is_loop else _place(triple.object, bound, dictionary)
        if o == NEW and not is_loop:
            bound[_name(triple.object)] = len(bound)
        steps.append(JoinStep(dictionary.pin(triple.predicate), subject, s, object_, o, is_loop))
    known = []
    for graph in graphs:
        one = None if kb is None else known_by(graph, tuple(bound), dictionary, kb)
        if one is None:
            return None
        known.append(one)
        bound |= {name: len(bound) + i for i, name in enumerate(one.others)}
    if set(names) != {name for name in bound if not name.startswith("_:")}:
        return None
    return SingleJoin(
        tuple(steps),
        tuple(known),
        tuple(conditions),
        tuple(bound),
        tuple(bound[name] for name in names),
    )


def _place(term: Term | Var, bound: dict[str, int], dictionary: Dictionary) -> tuple[int, int]:
    """Return where a row has a term, if it has, and the id of a constant."""
    name = _name(term)
    if not name:
        assert not isinstance(term, Var)
        return CONSTANT, dictionary.pin(term)
    return bound.get(name, NEW), UNBOUND


def _name(term: Term | Var) -> str:
    """Return the name of a variable or blank node; empty for a constant."""
    if isinstance(term, Var):
        return term.name
    return f"_:{term.value}" if isinstance(term, BlankNode) else ""
