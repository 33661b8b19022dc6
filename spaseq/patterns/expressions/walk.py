"""Properties of expressions and patterns that both routes use: EXISTS, volatile calls, paths of no step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from spaseq.language.scope import walk
from spaseq.language.syntax import (
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Graph,
    Group,
    Minus,
    Optional,
    Path,
    PathAlternative,
    PathInverse,
    PathRepeat,
    PathSequence,
    Pattern,
    Query,
    Select,
    ServicePattern,
    SubSelect,
    Triples,
    Union,
)

#: Functions of which two calls may differ.
VOLATILE: Final = frozenset({"RAND", "UUID", "STRUUID", "BNODE", "NOW"})


def exists_in(expression: Expression) -> list[Exists]:
    """Return the EXISTS of an expression, without those nested in their patterns."""
    return [inner for inner in walk(expression) if isinstance(inner, Exists)]


def labels(expression: Expression) -> int:
    """Return how many calls of ``BNODE(label)`` there are. In one solution, equal labels are one node."""
    return sum(isinstance(i, Call) and i.name == "BNODE" and bool(i.arguments) for i in walk(expression))


def is_volatile(part: Expression) -> bool:
    """Return whether two calls of a function may differ, apart from its arguments."""
    match part:
        case Call(name):
            return name in VOLATILE
        case FunctionCall(own=own):
            return own is not None and not own.deterministic
    return False


def volatile(expression: Expression) -> bool:
    """Return whether two evaluations on the same solution may differ."""
    return any(map(is_volatile, walk(expression)))


def children(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the direct children of a pattern, also in the EXISTS of its expressions."""
    match pattern:
        case Group(parts) | Union(parts):
            yield from parts
        case Optional(inner) | Minus(inner) | Graph(_, inner) | ServicePattern(_, inner):
            yield inner
        case SubSelect():
            yield pattern.pattern
        case Filter(expression) | Bind(expression):
            yield from (exists.pattern for exists in exists_in(expression))


def patterns(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and all patterns in it."""
    yield pattern
    for child in children(pattern):
        yield from patterns(child)


def only_joins(group: Group) -> bool:
    """Return whether a group is nothing but triples, so that replacing variables in it is a join
    with them.
    """
    return all(
        isinstance(element, Triples) or (isinstance(element, Group) and only_joins(element))
        for element in group.elements
    )


def expressions(pattern: Pattern) -> Iterator[Expression]:
    """Yield the expressions of FILTER and BIND in a pattern, and in the subqueries and EXISTS inside it."""
    for inner in patterns(pattern):
        match inner:
            case Filter(expression) | Bind(expression):
                yield expression
            case SubSelect(select, _, modifiers):
                yield from (item.expression for item in select.items or () if item.expression is not None)
                yield from (condition.expression for condition in modifiers.group_by)
                yield from modifiers.having
                yield from (condition.expression for condition in modifiers.order_by)


def matching_calls(query: Query) -> Iterator[Call | FunctionCall]:
    """Yield the calls in a query that decide what matches: in its patterns and FILTERs."""
    asked = [part.condition for part in query.filters]
    asked += [part for gpm in query.gpms for part in expressions(gpm.pattern)]
    yield from _calls(asked)


def own_calls(query: Query) -> Iterator[FunctionCall]:
    """Yield the calls in a query of functions that the user registered."""
    modifiers = query.modifiers
    asked = [*modifiers.having, *(condition.expression for condition in modifiers.group_by)]
    asked += [condition.expression for condition in modifiers.order_by]
    if isinstance(query.form, Select):
        asked += [item.expression for item in query.form.items or () if item.expression is not None]
    for call in (*matching_calls(query), *_calls(asked)):
        if isinstance(call, FunctionCall) and call.own is not None:
            yield call


def _calls(asked: Iterable[Expression]) -> Iterator[Call | FunctionCall]:
    return (part for e in asked for part in walk(e) if isinstance(part, Call | FunctionCall))


def takes_no_step(path: Path) -> bool:
    """Return whether a path may lead from a node to itself without a triple."""
    match path:
        case PathRepeat(inner, minimum):
            return minimum == 0 or takes_no_step(inner)
        case PathInverse(inner):
            return takes_no_step(inner)
        case PathSequence(parts):
            return all(map(takes_no_step, parts))
        case PathAlternative(parts):
            return any(map(takes_no_step, parts))
        case _:
            return False


def simplified(path: Path) -> Path:
    """Return an equal path without closures directly in closures (their costs multiply): ``(p*)*`` is ``p*``.

    The star normal form of regular expressions (Brüggemann-Klein, 1993). A closure has each of its pairs
    once, however many walks there are.

    >>> from pyoxigraph import NamedNode
    >>> simplified(PathRepeat(PathRepeat(NamedNode("urn:p"), 0, None), 1, None))
    PathRepeat(path=<NamedNode value=urn:p>, minimum=0, maximum=None)
    """
    match path:
        case PathRepeat(inner, minimum, maximum):
            step = simplified(inner)
            least = 0 if takes_no_step(step) else minimum
            if maximum is None:
                return PathRepeat(_once(step), least, None)
            if isinstance(step, PathRepeat):
                return PathRepeat(step.path, 0, step.maximum)
            return PathRepeat(step, least, 1)
        case PathInverse(inner):
            return PathInverse(simplified(inner))
        case PathSequence(parts):
            return PathSequence(tuple(map(simplified, parts)))
        case PathAlternative(parts):
            return PathAlternative(tuple(map(simplified, parts)))
        case _:
            return path


def _once(path: Path) -> Path:
    """Return a path that may replace another inside a closure, which repeats it and may leave it out."""
    match path:
        case PathRepeat(inner):
            return _once(inner)
        case PathInverse(inner):
            return PathInverse(_once(inner))
        case PathAlternative(parts):
            return PathAlternative(tuple(map(_once, parts)))
        case PathSequence(parts) if takes_no_step(path):
            return PathAlternative(tuple(map(_once, parts)))
        case _:
            return path
