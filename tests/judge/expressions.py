"""Filters as plain values: how they print, and what they say of a solution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal


class NoValueError(Exception):
    """A filter has no value; ``early`` if only for want of an earlier iteration."""

    def __init__(self, early: bool = False) -> None:
        super().__init__()
        self.early = early


@dataclass(frozen=True)
class Env:
    """What a filter sees: values, and the iterations of the Kleenes whose variables are asked for.

    ``iterations(v)``: the values of a group variable, iteration by iteration, the last one the current
    one if ``current``; None if it has one value.
    """

    values: dict[str, object]
    iterations: Callable[[str], tuple[list[list[object]], bool] | None]


@dataclass(frozen=True)
class V:
    """``?v``"""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True)
class Num:
    """A number."""

    value: Decimal

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Agg:
    """``SUM(?v)``, ``LAST(?v, n)``"""

    function: str
    name: str
    n: int = 0

    def __str__(self) -> str:
        return f"{self.function}(?{self.name}{f', {self.n}' if self.n else ''})"


@dataclass(frozen=True)
class Prev:
    """``PREV(?v, n)``"""

    name: str
    n: int = 1

    def __str__(self) -> str:
        return f"PREV(?{self.name}{f', {self.n}' if self.n != 1 else ''})"


@dataclass(frozen=True)
class Bin:
    """A comparison, ``+ - *``, ``&&`` or ``||``."""

    op: str
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True)
class Coalesce:
    """``COALESCE(x, y)``"""

    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"COALESCE({self.left}, {self.right})"


@dataclass(frozen=True)
class Bound:
    """``BOUND(?v)``, or its negation."""

    name: str
    positive: bool = True

    def __str__(self) -> str:
        return f"{'' if self.positive else '!'}BOUND(?{self.name})"


Expr = V | Num | Agg | Prev | Bin | Coalesce | Bound

_OPERATORS: dict[str, Callable[[Decimal, Decimal], object]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def value(e: Expr, env: Env) -> object:
    """An expression's value; raises ``NoValueError``."""
    match e:
        case V(name):
            if name not in env.values:
                raise NoValueError
            return env.values[name]
        case Num(number):
            return number
        case Agg():
            return _aggregate(e, env)
        case Prev(name, n):
            found = env.iterations(name)
            earlier = found[0][:-1] if found is not None and found[1] else []
            if len(earlier) < n:
                raise NoValueError(early=True)
            values = [v for v in earlier[-n] if v is not None]
            if not values:
                raise NoValueError
            return values[-1]
        case Bound(name, positive):
            return (name in env.values) is positive
        case Coalesce(left, right):
            try:
                return value(left, env)
            except NoValueError:
                return value(right, env)
        case Bin("&&" | "||" as op, left, right):
            return _logical(op == "||", _try(left, env), _try(right, env))
        case Bin(op, left, right):
            a, b = _try(left, env), _try(right, env)
            errors = [x for x in (a, b) if isinstance(x, NoValueError)]
            if errors:
                raise NoValueError(early=all(x.early for x in errors))
            assert isinstance(a, Decimal)
            assert isinstance(b, Decimal)
            return _OPERATORS[op](a, b)


def _try(e: Expr, env: Env) -> object:
    try:
        return value(e, env)
    except NoValueError as error:
        return error


def _logical(decisive: bool, a: object, b: object) -> bool:
    if a is decisive or b is decisive:
        return decisive
    errors = [x for x in (a, b) if isinstance(x, NoValueError)]
    if errors:
        raise NoValueError(early=all(x.early for x in errors))
    return not decisive


def _aggregate(e: Agg, env: Env) -> object:
    found = env.iterations(e.name)
    if found is None:
        values = [env.values[e.name]] if e.name in env.values else []
        complete = bool(values)
    else:
        # None stands for a solution in which the variable is unbound.
        everything = [v for iteration in found[0] for v in iteration]
        values = [v for v in everything if v is not None]
        complete = len(values) == len(everything)
    if e.function == "COUNT":
        return Decimal(len(values))
    if e.function in ("FIRST", "LAST"):
        if len(values) <= e.n:
            raise NoValueError
        return values[e.n if e.function == "FIRST" else -1 - e.n]
    numbers = [v for v in values if isinstance(v, Decimal)]
    if not complete:
        raise NoValueError
    if e.function == "SUM":
        return sum(numbers, Decimal(0))
    if not numbers:
        raise NoValueError
    return min(numbers) if e.function == "MIN" else max(numbers)


def holds(e: Expr, env: Env) -> bool:
    """Whether a filter keeps a solution: it holds, or errs for want of an earlier iteration alone."""
    try:
        return value(e, env) is True
    except NoValueError as error:
        return error.early


def mentioned(e: Expr, plain: bool = False) -> Iterator[str]:
    """The variables of an expression; ``plain``: those outside aggregates and PREV."""
    match e:
        case V(name) | Bound(name):
            yield name
        case Agg(name=name) | Prev(name=name):
            if not plain:
                yield name
        case Bin(left=left, right=right) | Coalesce(left=left, right=right):
            yield from mentioned(left, plain)
            yield from mentioned(right, plain)
        case Num():
            pass


def parts(e: Expr) -> Iterator[Expr]:
    """An expression and all inside it."""
    yield e
    if isinstance(e, Bin | Coalesce):
        yield from parts(e.left)
        yield from parts(e.right)
