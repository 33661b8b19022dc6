"""Joins in an event that came alone, of its triples and of background graphs: all are a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from pyoxigraph import BlankNode, NamedNode

from spaseq.events import Ids
from spaseq.language.scope import certain, conjuncts, variables
from spaseq.language.syntax import Expression, Filter, Graph, Group, Triples, Var
from spaseq.limits import Spending
from spaseq.patterns.algebra import MANY, by_reach
from spaseq.patterns.expressions.compiled import Solution, compile_filter
from spaseq.patterns.expressions.walk import exists_in, volatile
from spaseq.patterns.sharing import Values
from spaseq.patterns.spectra.joins import Knowledge
from spaseq.patterns.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term

# What background graphs know of an event that came alone, by the variables that are bound before.

_Row = tuple[int, ...]


class Continues(Protocol):
    """A table to join rows with, by their values at ``places``: each row gets the values of ``others``."""

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

    def join(self, rows: Sequence[_Row], spending: Spending) -> list[_Row]:
        """Return the joined rows. Calls ``spending`` with their number first."""
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
        """Return the table for compiled code: see ``Lookup.packed``."""
        table = self.table()
        return table.lookup(self._keys).packed({name: table.column(name) for name in self.others})

    def join(self, rows: Sequence[_Row], spending: Spending) -> list[_Row]:
        """Return the joined rows. Calls ``spending`` with their number first."""
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


# Joins in an event that came alone, of its triples and of background graphs: all are a few numbers.
#
# What ``rowwise`` says by dicts of names, tuples say here: the names are the same for all events.

#: Up to so many triples all of them are looked at for each of a pattern's.
MOST_TRIPLES: Final = 16

#: What a place of a step is that binds a new variable, and one that is a term.
NEW: Final = -1
CONSTANT: Final = -2


class JoinStep(NamedTuple):
    """A triple of a pattern. A place is a term, or where in a row it was bound before, or binds a new one."""

    predicate: int
    subject: int
    s: int
    object: int
    o: int
    #: Whether subject and object are the same new variable.
    is_loop: bool


@dataclass(frozen=True, slots=True)
class SingleJoin:
    """The join that finds a pattern's solutions in an event, triple by triple.

    ``known``: the tables to join the rows with afterwards; ``conditions``: the filters, compiled in
    ``tests``; ``spending``: called with the number of rows; ``bound``: the variables and blank nodes of a
    complete row; ``order``: the place in a row of each variable of the solutions. Call it with the terms of
    the event's triples, one after the other.
    """

    steps: tuple[JoinStep, ...]
    known: tuple[Continues, ...]
    conditions: tuple[Expression, ...]
    tests: tuple[Callable[[Solution], bool], ...]
    spending: Spending
    bound: tuple[str, ...]
    order: tuple[int, ...]

    def __call__(self, terms: Sequence[int]) -> Values:
        rows: list[tuple[int, ...]] = [()]
        for step in self.steps:
            rows = _extended(rows, terms, step, self.spending)
            if not rows:
                return ()
        for known in self.known:
            rows = known.join(rows, self.spending)
        if self.tests:
            rows = [row for row in rows if self._passes(dict(zip(self.bound, row, strict=True)))]
        return tuple([tuple([row[i] for i in self.order]) for row in rows])

    def _passes(self, solution: Solution) -> bool:
        self.spending.check()
        return all(test(solution) for test in self.tests)


def joined(
    pattern: Group, names: Sequence[str], dictionary: Dictionary, kb: Knowledge | None
) -> SingleJoin | None:
    """What gives a pattern's solutions; None if it is more than a join of triples and GRAPHs, and filters.

    ``names``: its variables, in the order in which they are given.
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
        tuple(compile_filter(condition, dictionary) for condition in conditions),
        dictionary.spending,
        tuple(bound),
        tuple(bound[name] for name in names),
    )


def _extended(
    rows: list[tuple[int, ...]], terms: Sequence[int], step: JoinStep, spending: Spending
) -> list[tuple[int, ...]]:
    """The rows joined with the event's triples of a predicate."""
    predicate, subject, s, object_, o, is_loop = step
    found: list[tuple[int, ...]] = []
    most = spending.most
    for row in rows:
        if len(found) > most:
            break
        for at in range(1, len(terms), 3):
            if terms[at] != predicate:
                continue
            first, second = terms[at - 1], terms[at + 1]
            if s != NEW and first != (subject if s == CONSTANT else row[s]):
                continue
            if is_loop:
                if first == second:
                    found.append((*row, first))
            elif o == NEW:
                found.append((*row, second) if s != NEW else (*row, first, second))
            elif second == (object_ if o == CONSTANT else row[o]):
                found.append(row if s != NEW else (*row, first))
    if len(found) > MANY or len(found) > most:
        spending.rows(len(found), len(found[0]))
    return found


def _place(term: Term | Var, bound: dict[str, int], dictionary: Dictionary) -> tuple[int, int]:
    """Where a row has a term, if it has, and the id of a constant."""
    name = _name(term)
    if not name:
        assert not isinstance(term, Var)
        return CONSTANT, dictionary.pin(term)
    return bound.get(name, NEW), UNBOUND


def _name(term: Term | Var) -> str:
    """That of a variable or blank node; empty for a constant."""
    if isinstance(term, Var):
        return term.name
    return f"_:{term.value}" if isinstance(term, BlankNode) else ""
