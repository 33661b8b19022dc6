"""The SPECTRA route: the summary of a batch, its vertically partitioned views, and their joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

import numpy as np
from pyoxigraph import BlankNode, NamedNode

from spaseq.events import EventBatch, Ids
from spaseq.language.scope import conjuncts, occurring, variables
from spaseq.language.syntax import (
    Bind,
    Exists,
    Expression,
    Filter,
    Graph,
    Group,
    Minus,
    Optional,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Pattern,
    ServicePattern,
    SubSelect,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
)
from spaseq.patterns.algebra import by_reach
from spaseq.patterns.expressions.columns import ColumnFilter, ColumnValue, value_or_unbound
from spaseq.patterns.expressions.compiled import ExistsCallback, Solution, compile_filter, compile_value
from spaseq.patterns.expressions.walk import exists_in, expressions, labels, only_joins, patterns, volatile
from spaseq.patterns.spectra.solutions import (
    UNIT,
    Mask,
    Solutions,
    compatible,
    distinct,
    join,
    left_join,
    minus,
    substituted,
    table,
    union,
)
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term

# The first two steps of SPECTRA: a batch's summary, and its vertically partitioned views.
#
# SPECTRA (Gillani, Picard, Laforest) drops the triples that a pattern cannot use, then keeps one
# (subject, object) table per predicate. Here a view spans a whole batch, with the event as a column, and
# the summary is that only the predicates that patterns ask for ever become views.

#: Event, subject and object of some triples.
View: TypeAlias = tuple[Ids, Ids, Ids]


class Views:
    """The triples of a batch by predicate: each view is made when it is first asked for.

    Triples of predicates that no pattern asks for are only passed over, and all patterns that are
    evaluated on one batch share its views.
    """

    def __init__(self, batch: EventBatch) -> None:
        self._batch = batch
        self._rows: dict[int, Ids] = {}
        self._views: dict[int, View] = {}

    @cached_property
    def _event(self) -> Ids:
        """The event of every triple."""
        offset = self._batch.offset
        return np.repeat(np.arange(len(self._batch)), offset[1:] - offset[:-1])

    def all(self) -> tuple[Ids, Ids, Ids, Ids]:
        """Event, subject, predicate and object of every triple."""
        batch = self._batch
        return self._event, batch.s, batch.p, batch.o

    def view(self, predicate: int) -> View:
        """Event, subject and object of the triples of one predicate."""
        found = self._views.get(predicate)
        if found is None:
            rows = self._of_predicate(predicate)
            batch = self._batch
            found = self._views[predicate] = self._event[rows], batch.subjects(rows), batch.o[rows]
        return found

    def with_object(self, predicate: int, object_: int) -> View:
        """Event, subject and object of the triples with one predicate and one object."""
        rows, batch = self._of_predicate(predicate), self._batch
        rows = rows[batch.o[rows] == object_]
        return self._event[rows], batch.subjects(rows), batch.o[rows]

    def _of_predicate(self, predicate: int) -> Ids:
        """Return the rows of the triples of one predicate."""
        found = self._rows.get(predicate)
        if found is None:
            found = self._rows[predicate] = np.flatnonzero(self._batch.p == predicate)
        return found

    def path(self, path: Path, dictionary: Dictionary) -> View:
        """Event, start and end of a path, once for every way to walk it.

        Covers predicates, inverses, sequences and alternatives; ValueError for the others.
        """
        match path:
            case NamedNode():
                return self.view(dictionary.intern(path))
            case PathInverse(inner):
                event, s, o = self.path(inner, dictionary)
                return event, o, s
            case PathAlternative(parts):
                found = [self.path(part, dictionary) for part in parts]
                dictionary.spending.rows(sum(len(ways[0]) for ways in found))
                event, s, o = (np.concatenate(columns) for columns in zip(*found, strict=True))
                return event, s, o
            case PathSequence((first, *rest)):
                event, s, o = self.path(first, dictionary)
                for part in rest:
                    next_event, middle, end = self.path(part, dictionary)
                    i, j = compatible(
                        Solutions(len(event), event, {"middle": o}),
                        Solutions(len(next_event), next_event, {"middle": middle}),
                        spending=dictionary.spending,
                    )
                    event, s, o = event[i], s[i], end[j]
                return event, s, o
        raise ValueError(f"not a path that joins can walk: {path}")


# The SPECTRA route: patterns evaluated by joins of views, for all events of a batch at once.
#
# Every node of a pattern is evaluated bottom-up to ``Solutions``, as SPARQL 1.1, section 18.6 has it.

#: A context that replaces no variable.
NO_CONTEXT: Final[Solution] = MappingProxyType({})


class Knowledge(Protocol):
    """What this route needs of the background knowledge base."""

    @property
    def version(self) -> int:
        """A number that is different whenever the graphs have changed."""

    def solutions(self, graph: Graph, dictionary: Dictionary, context: Solution) -> Solutions:
        """Return the solutions of a GRAPH pattern in which ``context`` replaces variables."""


class Route(Protocol):
    """A pattern that is ready to be evaluated on one of the routes."""

    def evaluate(self, batch: EventBatch, context: Solution, initial: Solutions = UNIT) -> Solutions:
        """Return the solutions of every event; their ``event`` is None if they are the same in all events.

        ``context`` replaces variables throughout, as EXISTS does; replaced variables get no column.
        ``initial`` holds one row per event; its variables are visible everywhere except in subqueries.
        """


def covers(pattern: Pattern, *, is_few: bool = False) -> str | None:
    """Return None if this route evaluates the pattern; if not, the part that needs the general route.

    ``is_few``: only a few events at a time are evaluated, and all paths are walked.
    """
    if sum(1 for expression in expressions(pattern) if labels(expression)) > 1:
        return "BNODE of a label in several expressions"
    for inner in patterns(pattern):
        match inner:
            case Triples(triples):
                for triple in () if is_few else triples:
                    if not isinstance(triple.predicate, Var) and (reason := _walkable(triple.predicate)):
                        return reason
            case ServicePattern():
                return "SERVICE"
            case SubSelect(select, _, modifiers):
                if modifiers.group_by or modifiers.having or modifiers.limit is not None or modifiers.offset:
                    return "a subquery with GROUP BY, HAVING, LIMIT or OFFSET"
                if select.items is not None and any(item.expression for item in select.items):
                    return "a subquery that computes"
    return None


def _walkable(path: Path) -> str | None:
    match path:
        case PathRepeat():
            return "a property path with *, + or ?"
        case PathNegated():
            return "a negated property set"
        case _:
            inner = getattr(path, "parts", None) or ([path.path] if hasattr(path, "path") else [])
            return next((reason for part in inner if (reason := _walkable(part))), None)


class Spectra:
    """A pattern, ready to be evaluated on batches."""

    def __init__(self, pattern: Group, dictionary: Dictionary, kb: Knowledge | None) -> None:
        self.pattern = pattern
        self.dictionary = dictionary
        self.kb = kb
        self._names = variables(pattern)
        self._lone = _lone(pattern)
        self._filters: dict[Expression, ColumnFilter] = {}
        self._values: dict[Expression, ColumnValue] = {}
        self._inner: dict[Group, Spectra] = {}

    def evaluate(
        self,
        batch: EventBatch,
        context: Solution = NO_CONTEXT,
        initial: Solutions = UNIT,
        views: Views | None = None,
    ) -> Solutions:
        """See ``Route``. ``views`` are the batch's, if they are there already."""
        views = views or Views(batch)
        if self._lone is not None and context is NO_CONTEXT and initial is UNIT:
            subject, predicate, object_, conditions = self._lone
            event, s, o = views.path(predicate, self.dictionary)
            found = Solutions(len(event), event, dict(sorted({subject: s, object_: o}.items())))
            return _Evaluation(self, batch, views, context, initial).keep(found, conditions)
        names = sorted(self._names - context.keys() | initial.columns.keys())
        return _Evaluation(self, batch, views, context, initial).group(self.pattern).project(names)

    def inner(self, pattern: Group) -> Spectra:
        """Return the pattern of an EXISTS, made ready once."""
        found = self._inner.get(pattern)
        if found is None:
            found = self._inner[pattern] = Spectra(pattern, self.dictionary, self.kb)
        return found

    def filter(self, expression: Expression) -> ColumnFilter:
        """Return a filter without EXISTS, compiled once."""
        found = self._filters.get(expression)
        if found is None:
            found = self._filters[expression] = ColumnFilter(expression, self.dictionary)
        return found

    def value(self, expression: Expression) -> ColumnValue:
        """Return BIND's expression, without EXISTS, compiled once."""
        found = self._values.get(expression)
        if found is None:
            found = self._values[expression] = ColumnValue(expression, self.dictionary)
        return found


def _lone(pattern: Group) -> tuple[str, Path, str, Sequence[Expression]] | None:
    """Return the parts of a pattern that is one triple pattern of two variables, with filters; else None.

    Most GPMs are such: their solutions are the view.
    """
    match pattern.elements:
        case (Triples((TriplePattern(Var(s), predicate, Var(o)),)), *others) if s != o:
            filters = [other for other in others if isinstance(other, Filter)]
            if isinstance(predicate, Var) or len(filters) < len(others) or variables(pattern) != {s, o}:
                return None
            return s, predicate, o, [part for each in filters for part in conjuncts(each.condition)]
    return None


class _Evaluation:
    """One evaluation of a pattern on one batch."""

    def __init__(
        self, spectra: Spectra, batch: EventBatch, views: Views, context: Solution, initial: Solutions
    ) -> None:
        self._spectra = spectra
        self._dictionary = spectra.dictionary
        self._spending = spectra.dictionary.spending
        self._batch = batch
        self._views = views
        self._context = context
        self._initial = initial

    @cached_property
    def _events(self) -> Ids:
        """The numbers of all events."""
        return np.arange(len(self._batch))

    # --- groups -------------------------------------------------------------------------------

    def group(self, group: Group) -> Solutions:
        """``{ … }``: elements in order, then the filters on the whole."""
        found, filters = self._elements(group)
        return self.keep(found, filters)

    def _elements(self, group: Group) -> tuple[Solutions, list[Expression]]:
        found = self._initial
        filters: list[Expression] = []
        pending: list[TriplePattern] = []
        for element in group.elements:
            match element:
                case Triples(triples):
                    pending += triples
                    continue
                case Filter(condition):
                    filters += conjuncts(condition)
                    continue
            found = self._combine(self._join_triples(found, pending), element)
            pending = []
        return self._join_triples(found, pending), filters

    def _combine(self, left: Solutions, element: Pattern) -> Solutions:
        match element:
            case Bind(expression, variable):
                return self._bind(left, expression, variable.name)
            case Values():
                return join(left, self._values(element), self._spending)
            case Optional(pattern):
                right, conditions = self._elements(pattern)
                if any(exists_in(condition) or volatile(condition) for condition in conditions):
                    left = left.everywhere(self._events, self._spending)
                return left_join(
                    left,
                    self._inner(right),
                    self._events,
                    lambda rows: self._mask(rows, conditions),
                    self._spending,
                )
            case Union(branches):
                parts = [self._inner(self.group(branch)) for branch in branches]
                if left.event is not None and any(part.event is None for part in parts):
                    # Not repeated for each event: it may be background knowledge.
                    joined = [join(left, part, self._spending) for part in parts]
                    return union(joined, self._events, self._spending)
                return join(left, union(parts, self._events, self._spending), self._spending)
            case Minus(pattern):
                return minus(left, self._inner(self.group(pattern)), self._events, self._spending)
            case Graph():
                if self._spectra.kb is None:
                    raise ValueError("GRAPH without a background knowledge base")
                known = self._spectra.kb.solutions(element, self._dictionary, self._context)
                return join(left, known, self._spending)
            case SubSelect():
                return join(left, self._subselect(element), self._spending)
            case Group():
                return join(left, self._inner(self.group(element)), self._spending)
        raise ValueError(f"not covered: {type(element).__name__}")

    def _inner(self, solutions: Solutions) -> Solutions:
        """Return a nested pattern's solutions without the initial columns, which the outer pattern has as
        well.
        """
        return solutions.drop(self._initial.columns)

    def _subselect(self, query: SubSelect) -> Solutions:
        """Evaluate a subquery. It sees nothing of the outer pattern, nor the context and the
        initial columns.
        """
        alone = _Evaluation(self._spectra, self._batch, self._views, NO_CONTEXT, UNIT)
        found = alone.group(query.pattern)
        if query.values is not None:
            found = join(found, alone._values(query.values), self._spending)
        if query.select.items is not None:
            found = found.project(item.variable.name for item in query.select.items)
        return substituted(distinct(found) if query.select.distinct else found, self._context)

    def _values(self, values: Values) -> Solutions:
        intern = self._dictionary.intern
        rows = [[UNBOUND if term is None else intern(term) for term in row] for row in values.rows]
        return substituted(table([v.name for v in values.variables], rows), self._context)

    def _bind(self, solutions: Solutions, expression: Expression, name: str) -> Solutions:
        with_exists = bool(exists_in(expression))
        if with_exists or volatile(expression):
            solutions = solutions.everywhere(self._events, self._spending)
        if with_exists:
            ids = [
                value_or_unbound(compile_value(expression, self._dictionary, exists))(row)
                for row, exists in self._each(solutions)
            ]
            column = np.array(ids, dtype=np.int64)
        else:
            column = self._spectra.value(expression)(solutions, self._context)
        return substituted(solutions.extend(name, column), self._context)

    # --- filters ------------------------------------------------------------------------------

    def keep(self, solutions: Solutions, filters: Sequence[Expression]) -> Solutions:
        """Return the rows that pass all filters, of solutions of the whole pattern."""
        for expression in filters:
            if exists_in(expression) or volatile(expression):
                solutions = solutions.everywhere(self._events, self._spending)
            keep = self._test(solutions, expression)
            if not keep.all():
                solutions = solutions.take(keep)
        return solutions

    def _mask(self, solutions: Solutions, filters: list[Expression]) -> Mask:
        """Return the rows that pass all filters."""
        keep = np.ones(len(solutions), dtype=np.bool_)
        for expression in filters:
            rows = np.flatnonzero(keep)
            keep[rows] = self._test(solutions.take(rows), expression)
        return keep

    def _test(self, solutions: Solutions, expression: Expression) -> Mask:
        if not exists_in(expression):
            return self._spectra.filter(expression)(solutions, self._context)
        if isinstance(expression, Exists) and only_joins(expression.pattern):
            return self._semi_join(solutions, expression)
        tests = [
            compile_filter(expression, self._dictionary, exists)(row) for row, exists in self._each(solutions)
        ]
        return np.array(tests, dtype=np.bool_)

    def _semi_join(self, solutions: Solutions, exists: Exists) -> Mask:
        """EXISTS of a pattern that only joins: the rows with a compatible solution of it."""
        inner = self.group(exists.pattern)
        keep = np.zeros(len(solutions), dtype=np.bool_)
        shared = inner.columns.keys() & solutions.columns.keys()
        rows = distinct(inner.project(shared))
        keep[compatible(solutions, rows, spending=self._spending)[0]] = True
        return ~keep if exists.negated else keep

    def _each(self, solutions: Solutions) -> Iterator[tuple[Solution, ExistsCallback]]:
        """Yield each row with the callback that decides EXISTS in its event."""
        assert solutions.event is not None
        callbacks: dict[int, ExistsCallback] = {}
        for event, row in zip(solutions.event.tolist(), solutions.by_row(), strict=True):
            self._spending.check()
            if event not in callbacks:
                callbacks[event] = exists_on(self._batch, event, self._spectra.inner)
            yield {**self._context, **row}, callbacks[event]

    # --- triples ------------------------------------------------------------------------------

    def _join_triples(self, left: Solutions, triples: list[TriplePattern]) -> Solutions:
        """Return a basic graph pattern: its views joined, the smallest first, and connected ones
        if possible.
        """
        if not triples:
            return left
        views = sorted((self._scan(triple) for triple in triples), key=len)
        first, *others = by_reach([view.columns for view in views])
        found = views[first]
        for place in others:
            found = join(found, views[place], self._spending)
        return join(
            left, found.drop([name for name in found.columns if name.startswith("_:")]), self._spending
        )

    def _scan(self, triple: TriplePattern) -> Solutions:
        """Return the solutions of one triple pattern."""
        if isinstance(triple.predicate, Var):
            event, s, p, o = self._views.all()
            places = [(triple.subject, s), (triple.predicate, p), (triple.object, o)]
        elif isinstance(triple.predicate, NamedNode) and isinstance(end := self._resolve(triple.object), int):
            event, s, _ = self._views.with_object(self._dictionary.intern(triple.predicate), end)
            places = [(triple.subject, s)]
        else:
            event, s, o = self._views.path(triple.predicate, self._dictionary)
            places = [(triple.subject, s), (triple.object, o)]
        kept: list[Mask] = []
        columns: dict[str, Ids] = {}
        for term, column in places:
            wanted = self._resolve(term)
            if isinstance(wanted, int):
                kept.append(column == wanted)
            elif (known := columns.setdefault(wanted, column)) is not column:
                kept.append(column == known)  # the variable occurs twice in the triple
        found = Solutions(len(event), event, columns)
        return found.take(np.flatnonzero(np.logical_and.reduce(kept))) if kept else found

    def _resolve(self, term: Term | Var) -> str | int:
        """Return the id that a term of a pattern stands for, or the name of the variable that it is."""
        if isinstance(term, Var):
            return self._context.get(term.name, UNBOUND) or term.name
        if isinstance(term, BlankNode):
            return f"_:{term.value}"
        return self._dictionary.intern(term)


def exists_on(batch: EventBatch, event: int, prepare: Callable[[Group], Route]) -> ExistsCallback:
    """Return the callback for EXISTS in one event: whether a pattern, its variables replaced, matches its
    graph.
    """
    one = batch.take(np.array([event]))

    def exists(pattern: Group, solution: Solution) -> bool:
        context = {name: solution[name] for name in occurring(pattern) & solution.keys()}
        return len(prepare(pattern).evaluate(one, context)) > 0

    return exists
