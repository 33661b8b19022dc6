"""Parts of filters that the machine cannot compute: columns of one event's values, and lookups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox

from spaseq.automaton.pattern import Atom, Both, GpmPart, Kleene, Node, SequencePattern
from spaseq.automaton.scopes import owners, rebuilt
from spaseq.events import Ids
from spaseq.language.rewrite import substitute
from spaseq.language.scope import gpm_certain, mentioned, walk
from spaseq.language.syntax import (
    Aggregate,
    Binary,
    Call,
    Constant,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    In,
    Prev,
    Var,
)
from spaseq.matching.filters import _kernel_machine as memo
from spaseq.matching.filters.numbers import EARLY, ERROR, FAULT
from spaseq.matching.filters.postfix import METRES, DerivedLookup
from spaseq.patterns.expressions.aggregates import Reason, compile_reason, errs_for_want_of
from spaseq.patterns.expressions.columns import VectorizedCalls
from spaseq.patterns.expressions.compiled import ExpressionError, Solution, compile_value
from spaseq.patterns.expressions.extensions import BINARY, DISTANCE, PI, UNARY, metres, point
from spaseq.patterns.expressions.walk import VOLATILE, is_volatile
from spaseq.patterns.spectra.solutions import Solutions, per_distinct
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import DOUBLE, Value, decode

# The values of expressions that the machine cannot compute, by the values of their variables.

Ints = npt.NDArray[np.int64]


class Lookups:
    """Answers the kernel's questions; their rows are described in ``_kernel_machine``."""

    def __init__(self, lookups: Sequence[DerivedLookup], dictionary: Dictionary) -> None:
        self._expressions = [_AskedValues.of(one, dictionary) for one in lookups]
        self._error, self._early = dictionary.pin(ERROR), dictionary.pin(EARLY)

    def answered(self, questions: Ints) -> Ints:
        """Return the distinct questions, with the ids of their answers."""
        asked = np.unique(questions, axis=0)
        for number in np.unique(asked[:, memo.EXPRESSION]).tolist():
            rows = np.flatnonzero(asked[:, memo.EXPRESSION] == number)
            asked[rows, memo.ANSWER] = self._answers(self._expressions[number], asked[rows, memo.VALUES :])
        return asked

    def _answers(self, asked: _AskedValues, ids: Ints) -> list[int]:
        columns = {name: np.maximum(ids[:, i], UNBOUND) for i, name in enumerate(asked.names)}
        solutions = asked.calls.extended(Solutions(len(ids), None, columns), {})
        return [
            self._answer(asked, solution, row)
            for solution, row in zip(solutions.by_row(), ids.tolist(), strict=True)
        ]

    def _answer(self, asked: _AskedValues, solution: Solution, ids: Sequence[int]) -> int:
        try:
            return asked.evaluate(solution)
        except ExpressionError:
            named = zip(asked.names, ids, strict=False)
            early = frozenset(name for name, term in named if term == memo.TOO_EARLY)
            return self._early if early and asked.errs_early(solution, early) else self._error


@dataclass(frozen=True, slots=True)
class _AskedValues:
    """An expression for lookups: its vectorized calls, and a function that computes the rest."""

    names: tuple[str, ...]
    calls: VectorizedCalls
    evaluate: Callable[[Solution], int]
    errs_early: Callable[[Solution, frozenset[str]], bool]

    @classmethod
    def of(cls, lookup: DerivedLookup, dictionary: Dictionary) -> _AskedValues:
        calls = VectorizedCalls(lookup.expression, dictionary)
        evaluate = compile_value(calls.rest, dictionary)
        return cls(lookup.names, calls, evaluate, errs_for_want_of(lookup.expression, dictionary))


# Parts of filters between GPMs that one event decides: computed for a batch, and read as further variables.
#
# ``STRLEN(?s) > STRLEN(?t)`` with ?s of one GPM and ?t of another becomes a comparison of two columns of
# numbers. Only parts that a program cannot compute are replaced; such parts of several GPMs are looked up
# by their values.

#: Aggregates with an argument that a column can replace, if it is an expression.
_OF_VALUES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
#: In place of the longitude and latitude of terms that are no points: an error, but not for want of a value.
NO_POINT: Final = ox.Literal("no point")
#: Functions that may have a value although a variable is unbound.
_FORGIVING: Final = ("COALESCE", "IF", "BOUND")


class Of(StrEnum):
    """Which part of an expression's value a column holds."""

    VALUE = "value"
    LONGITUDE = "longitude"
    LATITUDE = "latitude"


@dataclass(frozen=True, slots=True)
class Derived:
    """A column computed from others: an expression that one GPM's rows decide.

    If the expression has no value, the column holds ``ERROR``, or ``FAULT`` if an aggregate reads the column
    (``summed``). The coordinates of terms that are no points are ``NO_POINT``.
    """

    expression: Expression
    of: Of = Of.VALUE
    summed: bool = False

    def column(self, dictionary: Dictionary) -> Callable[[Solutions], Ids]:
        """Return a function that computes the ids of the column from solutions."""
        calls = VectorizedCalls(self.expression, dictionary)
        names = sorted(mentioned(calls.rest))
        evaluate = compile_value(calls.rest, dictionary)
        error = dictionary.pin(FAULT if self.summed else ERROR)
        no_point = dictionary.pin(NO_POINT)

        def value(solution: Solution) -> int:
            try:
                identifier = evaluate(solution)
            except ExpressionError:
                return error
            if self.of is Of.VALUE:
                return identifier
            try:
                place = point(dictionary.value(identifier))[self.of is Of.LATITUDE]
            except ExpressionError:
                return no_point
            return dictionary.intern(Value(DOUBLE, place).term)

        return lambda solutions: per_distinct(calls.extended(solutions, {}), names, value, {})


@dataclass(frozen=True, slots=True)
class Split:
    """A query with filters that read ``derived`` columns, by their names; ``certain``: what GPMs
    surely bind.
    """

    pattern: SequencePattern
    derived: Mapping[str, Derived]
    certain: Mapping[str, frozenset[str]]


def split(pattern: SequencePattern) -> Split:
    """Replace the parts of filters that one event decides."""
    return _FilterSplitter(pattern).split()


class _FilterSplitter:
    def __init__(self, pattern: SequencePattern) -> None:
        self._pattern = pattern
        self._certain = {name: gpm_certain(part.gpm) for name, part in pattern.gpms.items()}
        self._derived: dict[Derived, str] = {}

    def split(self) -> Split:
        pattern = self._pattern
        # Filters first: they determine the columns.
        where = self._filters(pattern.where)
        correlated = {name: self._filters(part.correlated) for name, part in pattern.gpms.items()}
        root = self._node(pattern.root)
        gpms = {
            name: replace(part, correlated=correlated[name], variables=part.variables | self._of_gpm(part))
            for name, part in pattern.gpms.items()
        }
        root = self._own(root)
        found, mixed = owners(root, {name: part.variables for name, part in gpms.items()})
        group_of = {name: kleenes[-1] for name, kleenes in found.items()}
        return Split(
            replace(pattern, root=root, gpms=gpms, group_of=group_of, owners=found, mixed=mixed, where=where),
            {name: derived for derived, name in self._derived.items()},
            {name: self._certain[name] | self._of_gpm(part) for name, part in pattern.gpms.items()},
        )

    def _of_gpm(self, part: GpmPart) -> frozenset[str]:
        """Return the derived columns of a GPM."""
        return frozenset(n for d, n in self._derived.items() if mentioned(d.expression) <= part.variables)

    def _filters(self, filters: Iterable[Filter]) -> tuple[Filter, ...]:
        return tuple(replace(item, condition=self._expression(item.condition)) for item in filters)

    def _node(self, node: Node) -> Node:
        match node:
            case Atom(filters=filters, loose=loose):
                return replace(node, filters=self._filters(filters), loose=self._filters(loose))
            case Both(operands=operands, deferred=deferred, loose=loose):
                return replace(
                    node,
                    operands=tuple(map(self._node, operands)),
                    deferred=self._filters(deferred),
                    loose=self._filters(loose),
                )
            case _:
                return rebuilt(node, self._node)

    def _own(self, node: Node) -> Node:
        """Return a node with Kleenes that own the columns derived from their own variables."""
        if isinstance(node, Kleene):
            more = {n for d, n in self._derived.items() if mentioned(d.expression) & node.own}
            node = replace(node, own=node.own | more)
        return rebuilt(node, self._own)

    # --- expressions --------------------------------------------------------------------------

    def _expression(self, expression: Expression) -> Expression:
        return substitute(expression, self._instead)

    def _instead(self, part: Expression) -> Expression | None:
        """Return the replacement of a part of a filter; None if the parts inside it must be considered."""
        match part:
            case Exists() | Prev():
                return part
            case Aggregate(name, argument) if argument is not None and not isinstance(argument, Var):
                if name in _OF_VALUES and (column := self._summed(argument)) is not None:
                    return replace(part, argument=column)
                return part
            case FunctionCall(function, (first, second, Constant(unit))) if function.value == DISTANCE:
                return self._distance(first, second, decode(unit)) or part
            case FunctionCall() if is_volatile(part):
                return None
            case FunctionCall(function) if function.value not in (*UNARY, *BINARY, PI):
                # An expression of several GPMs is looked up by its variables, regardless of its parts.
                return self._applied(part) or part
            case Call(name) if name not in (*_FORGIVING, *VOLATILE, "ABS"):
                return self._applied(part) or part
            case _:
                return None

    def _applied(self, call: Expression) -> Expression | None:
        """Return a call on one event's variables as a column. A call on an earlier iteration's variables
        becomes PREV, FIRST or LAST of a column.
        """
        return self._column(call) or self._of_earlier(call, lambda e: self._column(e))

    def _of_earlier(
        self, expression: Expression, column: Callable[[Expression], Var | None]
    ) -> Expression | None:
        """Return a function of one PREV(?v), FIRST(?v) or LAST(?v) as PREV, FIRST or LAST of the function's
        column.
        """
        parts = [p for p in walk(expression) if isinstance(p, Prev | Aggregate)]
        if len(set(parts)) != 1:
            return None
        (one, *_) = parts
        match one:
            case Prev(variable) | Aggregate("FIRST" | "LAST", Var() as variable, False):
                taken = substitute(expression, lambda p: variable if p == one else None)
            case _:
                return None
        inside = {p for p in walk(expression) if isinstance(p, Var)} - {variable}
        if inside or any(p == variable for p in _outside(expression, one)):
            return None
        found = column(taken)
        if found is None:
            return None
        return replace(one, variable=found) if isinstance(one, Prev) else replace(one, argument=found)

    def _distance(self, first: Expression, second: Expression, unit: Value) -> Expression | None:
        places = []
        for operand in (first, second):
            for of in (Of.LONGITUDE, Of.LATITUDE):
                place = self._place(operand, of)
                if place is None:
                    return None
                places.append(place)
        try:
            length = Constant(Value(DOUBLE, metres(unit)).term)  # type: ignore[arg-type]  # a literal
        except ExpressionError:
            return None
        return Binary("/", Call(METRES, tuple(places)), length)

    def _place(self, operand: Expression, of: Of) -> Expression | None:
        """Return the longitude or latitude of a point."""
        if isinstance(operand, Constant):
            try:
                found = point(decode(operand.term))[of is Of.LATITUDE]
            except ExpressionError:
                return None
            return Constant(Value(DOUBLE, found).term)  # type: ignore[arg-type]  # a literal
        column = self._column(operand, of)
        return column or self._of_earlier(operand, lambda e: self._column(e, of))

    def _summed(self, argument: Expression) -> Var | None:
        """Return the column of an aggregate over iterations. It must err if the variables are unbound."""
        if not mentioned(argument) & self._pattern.owners.keys():
            return None
        if any(isinstance(part, Aggregate | Prev | Exists) for part in walk(argument)):
            return None
        if compile_reason(argument, Dictionary())({}, frozenset()) is not Reason.UNBOUND:
            return None
        return self._column(argument, summed=True)

    def _column(self, expression: Expression, of: Of = Of.VALUE, summed: bool = False) -> Var | None:
        """Return the variable of a column, if one GPM's rows decide the expression wherever its variables are
        bound.

        If all variables are unbound it must be an error, so that a match without the GPM's events has no
        value. A GPM that binds one of the variables must surely bind all, so that all GPMs agree.
        """
        names = mentioned(expression)
        parts = list(walk(expression))
        if not names or any(map(_is_forgiving, parts)):
            return None
        binding = [part.gpm for part in self._pattern.gpms.values() if part.variables & names]
        for gpm in binding:
            # Not every event has a name for AS.
            if not names <= self._certain[gpm.name] or (gpm.graph is not None and gpm.graph.name in names):
                return None
        if not binding:
            return None
        derived = Derived(expression, of, summed)
        return Var(self._derived.setdefault(derived, f" {len(self._derived)}"))


def _is_forgiving(part: Expression) -> bool:
    match part:
        case Exists() | Aggregate() | Prev() | In():
            return True
        case Call(name):
            return name in _FORGIVING or name in VOLATILE
        case FunctionCall():
            return is_volatile(part)
        case Binary(operator):
            return operator in ("||", "&&")
        case _:
            return False


def _outside(expression: Expression, one: Expression) -> Iterable[Expression]:
    """Return the parts of an expression that are not inside ``one``."""
    return walk(substitute(expression, lambda p: Constant(ERROR) if p == one else None))
