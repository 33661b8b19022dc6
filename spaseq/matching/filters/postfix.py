"""Filters as programs of the kernel's postfix machine (``_kernel_machine``), with names, not numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode

from spaseq.language.rewrite import substitute
from spaseq.language.scope import conjuncts, mentioned, operands, walk
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
    Span,
    Unary,
    Var,
)
from spaseq.language.syntax.printing import print_expression
from spaseq.matching.filters._kernel_machine import MEMO_LIMIT
from spaseq.matching.filters._kernel_values import DEEPEST
from spaseq.matching.filters.numbers import EARLY, ERROR, OPEN
from spaseq.matching.obstacles import Obstacle
from spaseq.patterns.expressions.extensions import BINARY, PI, UNARY
from spaseq.patterns.expressions.walk import VOLATILE, is_volatile

_DIFFERS: Final = (
    "no filter between GPMs asks NOW, RAND, UUID, STRUUID, BNODE or a function that is not deterministic"
)
_COMPARISONS: Final = ("=", "!=", "<", ">", "<=", ">=")
_ARITHMETIC: Final = {"+": "ADD", "-": "SUBTRACT", "*": "MULTIPLY", "/": "DIVIDE"}
_LOGIC: Final = {"||": ("UNLESS_TRUE", "OR"), "&&": ("UNLESS_FALSE", "AND")}
_AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
_DEMAND: Final = (
    "aggregates between GPMs are COUNT, SUM, AVG, MIN, MAX, FIRST or LAST, without DISTINCT, "
    "of a variable or of what one GPM surely binds"
)
#: Aggregates that do not depend on DISTINCT.
_DISTINCT: Final = ("MIN", "MAX", "FIRST")

#: The metres between two points, given as two longitudes and latitudes (``derived``); no query can name this
#: function.
METRES: Final = "metres between"

#: How many more values an instruction pushes than it pops; other instructions pop one more than they push.
_GROWS: Final = {
    **dict.fromkeys(("PUSH", "CONSTANT", "AGGREGATE", "ONE", "BOUND"), 1),
    **dict.fromkeys(("MINUS", "NOT", "ABS", "FUNCTION", "UNLESS_TRUE", "UNLESS_FALSE", "KEEP"), 0),
    **dict.fromkeys(("IF_BOUND", "IF_COMPLETED"), 0),
    "COMPARE": -2,
    "DISTANCE": -3,
}


#: The Kleenes that each group variable belongs to, in all alternatives, outermost first.
Owners = Mapping[str, tuple[int, ...]]


class BeyondTables(ValueError):  # noqa: N818  # an answer more than an error
    """The kernel's tables cannot hold a query, because of ``obstacle``."""

    def __init__(self, demand: str, here: str, span: Span | None = None) -> None:
        self.obstacle = Obstacle(demand, here, span)
        super().__init__(f"{demand}; here {self.obstacle.place}")


class Accumulator(NamedTuple):
    """An aggregate of a Kleene's completed iterations. ``kind`` names one of the kernel's.

    ``offset`` counts from the first value on, or back from the last iteration or value.
    """

    kleene: int
    kind: str
    variable: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class DerivedLookup:
    """An expression that is computed once for each combination of values of its variables, ``names``."""

    expression: Expression
    names: tuple[str, ...]


class Instruction(NamedTuple):
    """An instruction. ``what`` depends on ``op``: a variable, term, accumulator, Kleene or operator.

    ``inside``: an aggregate includes the iteration in progress. ``skip``: how many instructions to skip if
    the instruction jumps.
    """

    op: str
    what: str | int | NamedNode | Literal | Accumulator | DerivedLookup | None = None
    inside: bool = False
    skip: int = 0


@dataclass(frozen=True, slots=True)
class FilterSite:
    """Where a filter is evaluated: inside which Kleenes, and when it is skipped.

    ``guarded``: it is skipped while variables are unbound, or Kleenes not completed.
    """

    inside: tuple[int, ...] = ()
    guarded: bool = False


def steps(item: Filter, site: FilterSite, owners: Owners) -> list[Instruction]:
    """Return a filter as a program. Raises ``BeyondTables`` if the machine cannot run it."""
    expression = item.condition
    body: list[Instruction] = []
    for condition in conjuncts(expression):
        code = list(_PostfixWriter(site, owners).condition(condition))
        if _depth(code) > DEEPEST:
            raise BeyondTables(
                f"expressions between GPMs are at most {DEEPEST} deep",
                print_expression(condition),
                condition.span,
            )
        body += code
    guards: list[Instruction] = []
    if site.guarded:
        guards += [Instruction("IF_BOUND", name) for name in sorted(needs(expression, owners))]
        guards += [Instruction("IF_COMPLETED", kleene) for kleene in sorted(_completed(expression, owners))]
    count = len(guards)
    return [guard._replace(skip=len(body) + count - 1 - i) for i, guard in enumerate(guards)] + body


def needs(expression: Expression, owners: Owners) -> frozenset[str]:
    """Return the variables of an expression, except those in PREV, and group variables in aggregates."""
    match expression:
        case Prev():
            return frozenset()
        case Aggregate() if (names := mentioned(expression)) & owners.keys():
            return names - owners.keys()
        case Var() | Exists() | Aggregate():
            return mentioned(expression)
        case _:
            return frozenset[str]().union(*(needs(part, owners) for part in operands(expression)))


def summarised(expression: Expression, owners: Owners) -> Iterator[str]:
    """Yield the group variables over which the aggregates in an expression range."""
    for part in walk(expression):
        if isinstance(part, Aggregate) and (names := mentioned(part) & owners.keys()):
            yield max(names, key=lambda name: (owners[name][-1], name))


def _completed(expression: Expression, owners: Owners) -> Iterator[int]:
    """Yield the Kleenes that must be completed before an expression's aggregates can be evaluated."""
    for name in summarised(expression, owners):
        if len(owners[name]) > 1:
            raise _beyond("aggregates in WHERE are of variables of one scope", expression)
        yield owners[name][0]


def with_nearer(accumulators: Iterable[Accumulator]) -> list[Accumulator]:
    """Return the aggregates in order, each followed by the one of the next smaller offset that it is computed
    from.
    """
    found = {a._replace(offset=i) for a in accumulators for i in range(a.offset + 1)}
    return sorted(found, key=lambda a: (a.kleene, a.kind, a.variable, -a.offset))


def touched(expression: Expression, owners: Owners) -> frozenset[int]:
    """Return the Kleenes that must be left before a filter of WHERE is decided."""
    names = (*needs(expression, owners), *summarised(expression, owners))
    return frozenset(kleene for name in names for kleene in owners.get(name, ()))


class _PostfixWriter:
    """Writes the conditions of one site."""

    def __init__(self, site: FilterSite, owners: Owners) -> None:
        self._site = site
        self._owners = owners

    def _kleenes(self, name: str) -> tuple[tuple[int, ...], bool]:
        """Return the Kleenes that a variable may belong to here, and whether one is in progress."""
        owners = self._owners.get(name, ())
        here = [kleene for kleene in owners if kleene in self._site.inside]
        return (tuple(here[-1:]), True) if here else (owners, False)

    def condition(self, expression: Expression) -> Iterator[Instruction]:
        """Write a condition; all its parts must hold."""
        match expression:
            case Binary(operator, left, right) if operator in _COMPARISONS:
                yield from self._value(left)
                yield from self._value(right)
                yield Instruction("COMPARE", operator)
            case _:
                yield from self._value(expression)
                yield Instruction("TEST")

    def _value(self, expression: Expression) -> Iterator[Instruction]:
        match expression:
            case Var(name):
                yield Instruction("PUSH", name)
            case Constant(term):
                yield Instruction("CONSTANT", term)
            case Unary("-", operand):
                yield from self._value(operand)
                yield Instruction("MINUS")
            case Unary("+", operand):
                yield from self._value(operand)
                yield from (Instruction("MINUS"), Instruction("MINUS"))
            case Unary("!", operand):
                yield from self._value(operand)
                yield Instruction("NOT")
            case Binary(operator, left, right):
                yield from self._binary(operator, left, right)
            case In(operand, items, negated) if items:
                yield from self._in(operand, items)
                yield from [Instruction("NOT")] * negated
            case Prev(variable, offset):
                kleenes, inside = self._kleenes(variable.name)
                if inside:
                    previous = Accumulator(kleenes[0], "PREVIOUS", variable.name, offset - 1)
                    yield Instruction("AGGREGATE", previous)
                else:
                    yield Instruction("CONSTANT", EARLY)
            case Aggregate():
                yield from self._aggregate(expression)
            case Exists():
                raise _beyond("no filter between GPMs asks EXISTS", expression)
            case Call(name, arguments):
                yield from self._call(expression, name, arguments)
            case FunctionCall(function, arguments):
                yield from self._named(expression, function.value, arguments)
            case _:
                yield from self._lookup(expression)

    def _binary(self, operator: str, left: Expression, right: Expression) -> Iterator[Instruction]:
        yield from self._value(left)
        second = list(self._value(right))
        if operator in _LOGIC:
            unless, combine = _LOGIC[operator]
            yield Instruction(unless, skip=len(second) + 1)
            yield from second
            yield Instruction(combine)
            return
        yield from second
        yield (
            Instruction("RELATE", operator)
            if operator in _COMPARISONS
            else Instruction(_ARITHMETIC[operator])
        )

    def _in(self, operand: Expression, items: tuple[Expression, ...]) -> Iterator[Instruction]:
        either: Expression = Binary("=", operand, items[0])
        for item in items[1:]:
            either = Binary("||", either, Binary("=", operand, item))
        return self._value(either)

    def _call(self, call: Expression, name: str, arguments: tuple[Expression, ...]) -> Iterator[Instruction]:
        match name, arguments:
            case "BOUND", (Var(variable),):
                yield Instruction("BOUND", variable)
            case "ABS", (argument,):
                yield from self._value(argument)
                yield Instruction("ABS")
            case "IF", (condition, then, otherwise):
                first, second = list(self._value(then)), list(self._value(otherwise))
                yield from self._value(condition)
                yield Instruction("CHOOSE", len(first) + 1 + len(second), skip=len(first) + 1)
                yield from first
                yield Instruction("JUMP", skip=len(second))
                yield from second
            case "COALESCE", candidates:
                # Each further candidate replaces an error, which is kept until then.
                codes = [list(self._value(candidate)) for candidate in candidates]
                yield from codes[0]
                for i, code in enumerate(codes[1:], 1):
                    left = sum(len(later) + 2 for later in codes[i:]) - 1
                    yield Instruction("KEEP", skip=left)
                    yield from code
                    yield Instruction("INSTEAD")
            case metres, _ if metres == METRES:
                for argument in arguments:
                    yield from self._value(argument)
                yield Instruction("DISTANCE")
            case _ if name in VOLATILE:
                raise _beyond(_DIFFERS, call)
            case _:
                yield from self._lookup(call)

    def _named(self, call: Expression, iri: str, arguments: tuple[Expression, ...]) -> Iterator[Instruction]:
        if iri in UNARY or iri in BINARY:
            for argument in arguments:
                yield from self._value(argument)
            yield (
                Instruction("FUNCTION", UNARY[iri])
                if iri in UNARY
                else Instruction("FUNCTION_2", BINARY[iri])
            )
        elif iri == PI:
            yield Instruction("CONSTANT", Literal(math.pi))
        else:
            yield from self._lookup(call)

    def _aggregate(self, node: Aggregate) -> Iterator[Instruction]:
        function = node.name
        if (
            not isinstance(node.argument, Var)
            or function not in _AGGREGATES
            or (node.distinct and (function not in _DISTINCT or node.offset))
        ):
            raise _beyond(_DEMAND, node)
        name = node.argument.name
        kleenes, inside = self._kleenes(name)
        codes = []
        for kleene in kleenes:
            kinds = ("SUM", "COUNT") if function == "AVG" else (function,)
            current = inside and not node.before
            code = [
                Instruction("AGGREGATE", Accumulator(kleene, kind, name, node.offset), current)
                for kind in kinds
            ]
            codes.append((kleene, code + [Instruction("AVERAGE")] * (function == "AVG")))
        if node.before:
            yield from _first_completed(codes if inside else [], [Instruction("CONSTANT", EARLY)])
            return
        # If none of its Kleenes has occurred, there is one solution.
        single = list(self._single(node, name, of_loop=bool(kleenes)))
        yield from codes[0][1] if inside else _first_completed(codes, single)

    @staticmethod
    def _single(node: Aggregate, name: str, of_loop: bool) -> Iterator[Instruction]:
        """Write an aggregate over one solution; ``of_loop``: its variable may be of a loop that
        is left out.
        """
        if node.offset:
            yield Instruction("CONSTANT", ERROR)
        elif node.name == "COUNT":
            yield Instruction("ONE", name)
        elif node.name in ("SUM", "AVG"):
            summed = [Instruction("CONSTANT", Literal(0)), Instruction("PUSH", name), Instruction("ADD")]
            if of_loop:
                # For a loop that is left out, the aggregate is 0; for a loop in another alternative, it is an
                # error.
                summed = [
                    Instruction("IF_BOUND", name, skip=4),
                    *summed,
                    Instruction("JUMP", skip=1),
                    Instruction("CONSTANT", OPEN),
                ]
            yield from summed
        else:
            yield Instruction("PUSH", name)

    def _lookup(self, expression: Expression) -> Iterator[Instruction]:
        """Write a lookup of an expression that the machine cannot compute, by the values of its variables."""
        taken: dict[Expression, str] = {}

        def take_out(part: Expression) -> Expression | None:
            match part:
                case Var() | Prev():
                    return Var(taken.setdefault(part, f" {len(taken)}"))
                case Aggregate("COUNT" | "SUM" | "AVG"):
                    raise _beyond("functions of COUNT, SUM and AVG are those of mathematics", expression)
                case Aggregate():
                    return Var(taken.setdefault(part, f" {len(taken)}"))
                case Exists():
                    raise _beyond("no filter between GPMs asks EXISTS", part)
                case Call() | FunctionCall() if is_volatile(part):
                    raise _beyond(_DIFFERS, part)
            return None

        asked = substitute(expression, take_out)
        if len(taken) > MEMO_LIMIT:
            raise _beyond(f"functions between GPMs are of at most {MEMO_LIMIT} variables", expression)
        for part in taken:
            yield from self._value(part)
        yield Instruction("LOOK_UP", DerivedLookup(asked, tuple(taken.values())))


def _first_completed(
    codes: Sequence[tuple[int, list[Instruction]]], otherwise: list[Instruction]
) -> Iterator[Instruction]:
    """Return the code of the first Kleene that has a completed iteration, or else ``otherwise``."""
    rest = otherwise
    for kleene, code in reversed(codes):
        rest = [
            Instruction("IF_COMPLETED", kleene, skip=len(code) + 1),
            *code,
            Instruction("JUMP", skip=len(rest)),
            *rest,
        ]
    return iter(rest)


def _depth(code: list[Instruction]) -> int:
    depth = deepest = 0
    for step in code:
        match step:
            case Instruction("LOOK_UP", DerivedLookup(names=names)):
                depth += 1 - len(names)
            case _:
                depth += _GROWS.get(step.op, -1)
        deepest = max(deepest, depth)
    return deepest


def _beyond(demand: str, expression: Expression) -> BeyondTables:
    return BeyondTables(demand, print_expression(expression), expression.span)
