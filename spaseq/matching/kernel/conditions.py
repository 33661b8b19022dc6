"""Filters as programs of the kernel's postfix machine (``_kernel_machine``), still with names in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode

from spaseq.automaton.pattern import SequencePattern
from spaseq.language.printer import print_expression
from spaseq.language.scope import conjuncts, mentioned, walk
from spaseq.language.syntax import Aggregate, Binary, Constant, Expression, Filter, Prev, Span, Unary, Var
from spaseq.matching.obstacles import Obstacle

_COMPARISONS: Final = ("=", "!=", "<", ">", "<=", ">=")
_ARITHMETIC: Final = {"+": "ADD", "-": "SUBTRACT", "*": "MULTIPLY", "/": "DIVIDE"}
_SIMPLE: Final = ("COUNT", "SUM", "MIN", "MAX", "FIRST", "LAST")

#: The machine's stack has so many places.
_DEEPEST: Final = 32


class BeyondTables(ValueError):  # noqa: N818  # an answer more than an error
    """The kernel's tables cannot hold a query, because of ``obstacle``."""

    def __init__(self, demand: str, here: str, span: Span | None = None) -> None:
        self.obstacle = Obstacle(demand, here, span)
        super().__init__(f"{demand}; here {self.obstacle.place}")


class Accumulator(NamedTuple):
    """An aggregate of a Kleene's completed iterations. ``kind`` names one of the kernel's."""

    kleene: int
    kind: str
    variable: str


class Step(NamedTuple):
    """An instruction. ``what`` depends on ``op``: a variable, term, accumulator, Kleene or operator.

    ``inside``: an aggregate takes the iteration in progress, too. ``skip``: how many instructions to pass
    over if a condition (``IF_…``) does not hold.
    """

    op: str
    what: str | int | NamedNode | Literal | Accumulator | None = None
    inside: bool = False
    skip: int = 0


@dataclass(frozen=True, slots=True)
class Site:
    """Where a filter is asked: inside which Kleenes, and when it is passed over.

    ``guarded``: while variables are unbound, or Kleenes not completed, it says nothing.
    """

    inside: tuple[int, ...] = ()
    guarded: bool = False


def steps(item: Filter, site: Site, group_of: Mapping[str, int]) -> list[Step]:
    """A filter as a program.

    Raises ``BeyondTables`` unless it is a conjunction of comparisons of arithmetic.
    """
    expression = item.condition
    previous = [part.variable.name for part in walk(expression) if isinstance(part, Prev)]
    if any(name not in group_of for name in previous):
        return []  # without a Kleene there is never a second iteration
    body: list[Step] = []
    for comparison in conjuncts(expression):
        code = list(_comparison(comparison, site, group_of))
        if _depth(code) > _DEEPEST:
            raise BeyondTables(
                f"expressions between GPMs are at most {_DEEPEST} deep",
                print_expression(comparison),
                comparison.span,
            )
        body += code
    guards = [Step("IF_COMPLETED", group_of[name]) for name in dict.fromkeys(previous)]
    if site.guarded:
        guards += [Step("IF_BOUND", name) for name in sorted(needs(expression))]
        guards += [Step("IF_COMPLETED", kleene) for kleene in sorted(summarised(expression, group_of))]
    count = len(guards)
    return [guard._replace(skip=len(body) + count - 1 - i) for i, guard in enumerate(guards)] + body


def needs(expression: Expression) -> frozenset[str]:
    """The variables outside aggregates and PREV."""
    match expression:
        case Aggregate() | Prev():
            return frozenset()
        case Binary(_, left, right):
            return needs(left) | needs(right)
        case Unary(_, operand):
            return needs(operand)
        case _:
            return mentioned(expression)


def summarised(expression: Expression, group_of: Mapping[str, int]) -> frozenset[int]:
    """The Kleenes that aggregates in an expression range over."""
    found = (mentioned(part) for part in walk(expression) if isinstance(part, Aggregate))
    return frozenset(
        max(group_of[v] for v in names if v in group_of) for names in found if names & group_of.keys()
    )


def touched(expression: Expression, pattern: SequencePattern) -> frozenset[int]:
    """The Kleenes that must be left before a filter of WHERE is decided."""
    own = frozenset(pattern.group_of[v] for v in needs(expression) if v in pattern.group_of)
    return own | summarised(expression, pattern.group_of)


def _comparison(expression: Expression, site: Site, group_of: Mapping[str, int]) -> Iterator[Step]:
    match expression:
        case Binary(operator, left, right) if operator in _COMPARISONS:
            yield from _value(left, site, group_of)
            yield from _value(right, site, group_of)
            yield Step("COMPARE", operator)
        case _:
            raise _beyond(expression)


def _value(expression: Expression, site: Site, group_of: Mapping[str, int]) -> Iterator[Step]:
    match expression:
        case Var(name):
            yield Step("PUSH", name)
        case Constant(term):
            yield Step("CONSTANT", term)
        case Unary("-", operand):
            yield from _value(operand, site, group_of)
            yield Step("MINUS")
        case Binary(operator, left, right) if operator in _ARITHMETIC:
            yield from _value(left, site, group_of)
            yield from _value(right, site, group_of)
            yield Step(_ARITHMETIC[operator])
        case Prev(variable):
            name = variable.name
            yield Step("AGGREGATE", Accumulator(group_of[name], "PREVIOUS", name))
        case Aggregate(function, Var(name), False) if function in (*_SIMPLE, "AVG"):
            yield from _aggregate(function, name, site, group_of)
        case _:
            raise _beyond(expression)


def _aggregate(function: str, name: str, site: Site, group_of: Mapping[str, int]) -> Iterator[Step]:
    kleene = group_of.get(name)
    if kleene is None:
        # Over the one solution that there is.
        if function == "COUNT":
            yield Step("ONE", name)
        elif function in ("SUM", "AVG"):
            yield from (Step("CONSTANT", Literal(0)), Step("PUSH", name), Step("ADD"))
        else:
            yield Step("PUSH", name)
        return
    inside = kleene in site.inside
    for kind in ("SUM", "COUNT") if function == "AVG" else (function,):
        yield Step("AGGREGATE", Accumulator(kleene, kind, name), inside)
    if function == "AVG":
        yield Step("AVERAGE")


def _depth(code: list[Step]) -> int:
    depth = deepest = 0
    for step in code:
        if step.op in ("PUSH", "CONSTANT", "AGGREGATE", "ONE"):
            depth += 1
        elif step.op != "MINUS":
            depth -= 1
        deepest = max(deepest, depth)
    return deepest


def _beyond(expression: Expression) -> BeyondTables:
    return BeyondTables(
        "filters between GPMs compare arithmetic", print_expression(expression), expression.span
    )
