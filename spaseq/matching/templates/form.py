"""The normal form of a query with constants as parameters, and the query of several with one form.

A constant is lifted where a variable in its place, joined with a table that has the constant, means the same:
subject or object of a triple pattern directly in a GPM, and operand of a comparison, of arithmetic or of a
connective in one of its top-level FILTERs. Predicates and classes are not lifted: they determine the kind of
events a query is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Final, Generic, TypeVar

from pyoxigraph import Literal, NamedNode

from spaseq.language.syntax import (
    All,
    Binary,
    Bounded,
    Conjunction,
    Constant,
    Disjunction,
    Expression,
    Filter,
    Gpm,
    Not,
    Pattern,
    Query,
    RegisterKind,
    Repeat,
    Seq,
    Sequence,
    Strategy,
    TriplePattern,
    Triples,
    Unary,
    Values,
    Var,
    Window,
)
from spaseq.patterns.expressions.walk import expressions, volatile
from spaseq.terms.dictionary import Term
from spaseq.terms.values import RDF, XSD

_Made = TypeVar("_Made")

#: A query without the names and values it is about: see ``outline``.
Outline = tuple[object, ...]

_TYPE: Final = NamedNode(RDF + "type")

#: In place of a lifted constant, in the key of a form.
_HOLE: Final = object()

#: In place of a predicate or a class.
_NAME: Final = object()

_INTEGER: Final = NamedNode(XSD + "integer")
_SMALL: Final = re.compile(r"[1-9][0-9]{0,8}")

_ANY_WINDOW: Final = Window(1, "SECONDS")

#: The most outlines with cached results, and the most queries with a cached outline.
_KEPT: Final = 256


#: Outlines of prepared queries: the same query may be registered again and again, with several calls each
#: time.
_OUTLINES: Final[dict[int, tuple[Query, Outline]]] = {}


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A query without the constants that may be parameters.

    ``key`` is equal for queries that differ only in these constants, LIMIT and the name in REGISTER QUERY,
    and may run as one. ``constants`` are in the order in which they occur in the query.
    """

    key: tuple[object, ...]
    constants: tuple[Term, ...]


def form(query: Query) -> NormalForm | None:
    """Return the form of a query that may run together with others; None if it must run alone."""
    if alone(query) is not None:
        return None
    key, constants, named = _form(query)
    key += named
    if not query.partition and Strategy.STRICT in key:
        # For ``,``, an irrelevant event counts as between two others, but not if it is in another partition.
        # So a row of constants cannot be a partition: only queries with equal constants run as one.
        key += constants
    return NormalForm(tuple(key), tuple(constants))


def shape(query: Query) -> tuple[object, ...]:
    """Return a query without what it is about: equal for queries that are evaluated in the same way.

    That is without the predicates, classes and nodes of its triple patterns, and without the values of small
    positive integers in FILTERs. Other literals stay: their value determines how they are compared, and
    whether division by them is possible.
    """
    key, constants, _ = _form(query)
    return (*key, *map(_kind, constants))


def outline(query: Query) -> Outline:
    """Return a query without its window, the names in triple patterns, and the values compared in FILTERs of
    GPMs.
    """
    known = _OUTLINES.get(id(query))
    if known is not None and known[0] is query:
        return known[1]
    key, _, _ = _form(query, _ANY_WINDOW)
    if len(_OUTLINES) >= _KEPT:
        _OUTLINES.clear()
    # The query is kept, too, so that no other query gets the same id().
    _OUTLINES[id(query)] = query, (found := tuple(key))
    return found


class ByOutline(Generic[_Made]):
    """A cache of one value per outline."""

    def __init__(self) -> None:
        self._made: dict[Outline, _Made] = {}

    def of(self, key: Outline, make: Callable[[], _Made]) -> _Made:
        """Return the value of an outline; ``make`` creates it."""
        found = self._made.get(key, self)
        if not isinstance(found, ByOutline):
            return found
        made = make()
        # Another thread may have added it, too, or cleared the cache.
        if len(self._made) >= _KEPT:
            self._made.clear()
        self._made[key] = made
        return made


def _kind(term: Term) -> object:
    if isinstance(term, NamedNode):
        return NamedNode
    if isinstance(term, Literal) and term.datatype == _INTEGER and _SMALL.fullmatch(term.value):
        return _INTEGER
    return term


def _form(query: Query, window: Window | None = None) -> tuple[list[object], list[Term], list[object]]:
    """Return a query without the constants that can be lifted, these constants, and the other names in its
    triple patterns, in order.

    ``window`` replaces the query's own.
    """
    key: list[object] = []
    constants: list[Term] = []
    named: list[object] = []
    plain = (
        query.form,
        window or query.window,
        query.streams,
        query.sequence,
        query.partition,
        query.knowledge,
        query.filters,
        query.emit,
        query.consume,
        query.skip,
        replace(query.modifiers, limit=None),
        None if query.register is None else query.register.kind,
    )
    _flatten(plain, key)
    for gpm in query.gpms:
        _flatten((gpm.name, gpm.streams, gpm.time, gpm.graph), key)
        for element in gpm.pattern.elements:
            if isinstance(element, Triples):
                key.append(len(element.patterns))
                for triple in element.patterns:
                    _lift_triple(triple, key, constants, named)
            elif isinstance(element, Filter):
                key.append(Filter)
                _lift(element.condition, key, constants)
            else:
                _flatten(element, key)
    return key, constants, named


def alone(query: Query) -> str | None:
    """Return why a query cannot run together with others of its form; None if it can."""
    if query.register is not None and query.register.kind is RegisterKind.STREAM:
        return "it makes a stream"
    conditions = [f.condition for f in query.filters]
    conditions += [e for gpm in query.gpms for e in expressions(gpm.pattern)]
    if any(map(volatile, conditions)):
        return "what it asks may have another answer each time"
    if _explodes(query.sequence):
        return "one event may complete more matches than anybody asks for"
    return None


def _explodes(sequence: Seq, in_loop: bool = False) -> bool:
    """Return whether there is ``:`` in a loop: then there are exponentially many matches, enumerated on
    demand.
    """
    match sequence:
        case Repeat(element=element, maximum=maximum, strategy=strategy):
            loops = maximum != 1
            return (loops and strategy is Strategy.ANY) or _explodes(element, in_loop or loops)
        case Sequence(elements=elements, operators=operators):
            return (in_loop and Strategy.ANY in operators) or any(_explodes(e, in_loop) for e in elements)
        case Conjunction(operands=operands) | Disjunction(operands=operands) | All(operands=operands):
            return any(_explodes(operand, in_loop) for operand in operands)
        case Not(element=element) | Bounded(element=element):
            return _explodes(element, in_loop)
        case _:
            return False


@cache
def compared(kind: type) -> tuple[str, ...]:
    """Return the fields by which nodes of a class of the syntax tree are compared; none for other classes."""
    return tuple(f.name for f in fields(kind) if f.compare) if is_dataclass(kind) else ()


def _flatten(node: Any, out: list[object]) -> None:
    """Append a syntax tree as a flat list, which is fast to make and to compare."""
    kind = node.__class__
    if kind is tuple:
        out.append(len(node))
        for part in node:
            _flatten(part, out)
        return
    names = compared(kind)
    if not names:
        out.append(node)
        return
    out.append(kind)
    for name in names:
        _flatten(getattr(node, name), out)


def _is_constant(term: object) -> bool:
    return isinstance(term, NamedNode | Literal)


def _lifts(triple: TriplePattern) -> tuple[bool, bool]:
    """Return whether subject and object of a triple pattern may be parameters."""
    predicate = triple.predicate
    if not isinstance(predicate, NamedNode | Var):  # a path may have length 0
        return False, False
    return _is_constant(triple.subject), _is_constant(triple.object) and predicate != _TYPE


def _lift_triple(
    triple: TriplePattern, key: list[object], constants: list[Term], named: list[object]
) -> None:
    subject, other = _lifts(triple)
    for term, lifted in ((triple.predicate, False), (triple.subject, subject), (triple.object, other)):
        if lifted:
            key.append(_HOLE)
            constants.append(term)  # type: ignore[arg-type]  # a constant
        elif isinstance(term, NamedNode):
            key.append(_NAME)
            named.append(term)
        else:
            _flatten(term, key)


def _lift(expression: Expression, key: list[object], constants: list[Term]) -> None:
    match expression:
        case Constant(term):
            key.append(_HOLE)
            constants.append(term)
        case Binary(operator, left, right):
            key.append(operator)
            _lift(left, key, constants)
            _lift(right, key, constants)
        case Unary(operator, operand):
            key.append((operator,))
            _lift(operand, key, constants)
        case _:
            _flatten(expression, key)


# --- the query of a query set -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A query with parameters: variables that a table binds, a row for each set of constants.

    ``query`` has ``member``, which identifies a row, first in its PARTITION BY. Each of its GPMs has an empty
    VALUES in the table's place. ``parameters`` are the variables of the table, each with its place among the
    form's constants.
    """

    query: Query
    member: str
    parameters: tuple[tuple[str, int], ...]


def template(query: Query, varying: Several[int]) -> QueryTemplate:
    """Return a query of a form with some constants, given by their places, as parameters."""
    prefix = _free_prefix(query)
    member = f"{prefix}query"
    names = {place: f"{prefix}{place}" for place in varying}
    places = iter(range(len(_form(query)[1])))
    gpms = tuple(_with_parameters(gpm, names, places, member) for gpm in query.gpms)
    taken = replace(query, gpms=gpms, partition=(Var(member), *query.partition))
    return QueryTemplate(taken, member, tuple((name, place) for place, name in names.items()))


def _with_parameters(gpm: Gpm, names: dict[int, str], places: Iterator[int], member: str) -> Gpm:
    elements: list[Pattern] = []
    outside: dict[str, None] = {}

    def instead(term: Any) -> Any:
        place = next(places)
        return Var(names[place]) if place in names else term

    def triple(pattern: TriplePattern) -> TriplePattern:
        subject, other = _lifts(pattern)
        first = instead(pattern.subject) if subject else pattern.subject
        last = instead(pattern.object) if other else pattern.object
        return replace(pattern, subject=first, object=last)

    def expression(node: Expression) -> Expression:
        match node:
            case Constant():
                taken = instead(node)
                if isinstance(taken, Var):
                    outside[taken.name] = None
                return taken  # type: ignore[no-any-return]  # a variable or the constant
            case Binary(left=left, right=right):
                first = expression(left)
                return replace(node, left=first, right=expression(right))
            case Unary(operand=operand):
                return replace(node, operand=expression(operand))
            case _:
                return node

    for element in gpm.pattern.elements:
        if isinstance(element, Triples):
            elements.append(replace(element, patterns=tuple(map(triple, element.patterns))))
        elif isinstance(element, Filter):
            elements.append(replace(element, condition=expression(element.condition)))
        else:
            elements.append(element)
    table = Values((Var(member), *map(Var, outside)), ())
    return replace(gpm, pattern=replace(gpm.pattern, elements=(*elements, table)))


def _free_prefix(query: Query) -> str:
    """Return a prefix that no variable of the query has."""
    prefix = "_"
    text = str(query)
    while f"?{prefix}" in text or f"${prefix}" in text:
        prefix += "_"
    return prefix
