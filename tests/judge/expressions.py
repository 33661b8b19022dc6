"""Filters as plain values: how they print, and what they say of a solution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal


class NoValueError(Exception):
    """A filter has no value, and why.

    ``early``: only for want of an earlier iteration; ``unbound``: only for that and for unbound variables.
    """

    def __init__(self, why: str = "other") -> None:
        super().__init__()
        self.why = why


@dataclass(frozen=True)
class Env:
    """What a filter sees: values, and the iterations of the Kleenes whose variables are asked for.

    ``iterations(v)``: the solutions of a group variable's Kleene, iteration by iteration, the last one the
    current one if ``current``; None if it has one value.
    """

    values: dict[str, object]
    iterations: Callable[[str], tuple[list[list[dict[str, object]]], bool] | None]


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
    """``SUM(?v)``, ``LAST(?v, n)``, ``COUNT(DISTINCT ?v)``, and with ``before`` ``PREV(SUM(?v))``."""

    function: str
    of: Expr
    n: int = 0
    before: bool = False
    distinct: bool = False

    def __str__(self) -> str:
        how = "DISTINCT " if self.distinct else ""
        whole = f"{self.function}({how}{self.of}{f', {self.n}' if self.n else ''})"
        return f"PREV({whole})" if self.before else whole


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
                raise NoValueError("unbound")
            return env.values[name]
        case Num(number):
            return number
        case Agg():
            return _aggregate(e, env)
        case Prev(name, n):
            found = env.iterations(name)
            earlier = found[0][:-1] if found is not None and found[1] else []
            if len(earlier) < n:
                raise NoValueError("early")
            values = sorted(s[name] for s in earlier[-n] if name in s)  # type: ignore[type-var]
            if not values:
                raise NoValueError("unbound")
            return values[-1]
        case Bound(name, positive):
            return (name in env.values) is positive
        case Coalesce(left, right):
            both = [_try(left, env), _try(right, env)]
            for one in both:
                if not isinstance(one, NoValueError):
                    return one
            raise _because(both)
        case Bin("&&" | "||" as op, left, right):
            return _logical(op == "||", _try(left, env), _try(right, env))
        case Bin(op, left, right):
            a, b = _try(left, env), _try(right, env)
            if isinstance(a, NoValueError) or isinstance(b, NoValueError):
                raise _because([a, b])
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
    if isinstance(a, NoValueError) or isinstance(b, NoValueError):
        raise _because([a, b])
    return not decisive


def _because(operands: list[object]) -> NoValueError:
    """Why an operator has no value: because of its operands that have none."""
    reasons = {x.why for x in operands if isinstance(x, NoValueError)}
    return NoValueError(max(reasons, key=["early", "unbound", "other"].index))


def _aggregate(e: Agg, env: Env) -> object:
    found = next((x for v in mentioned(e.of) if (x := env.iterations(v)) is not None), None)
    reasons = set()
    values: list[object] = []
    if found is None:
        if e.before:
            raise NoValueError("early")
        one = _try(e.of, env)
        if not isinstance(one, NoValueError):
            values = [one]
        elif e.function in ("SUM", "AVG"):
            raise NoValueError
    else:
        iterations, current = found
        if e.before:
            iterations = iterations[:-1] if current else []
            if not iterations:
                raise NoValueError("early")
        for i, iteration in enumerate(iterations):
            here = []
            for solution in iteration:
                past = [*iterations[:i], [solution]]
                x = _try(e.of, Env(solution, lambda _, past=past: (past, True)))  # type: ignore[misc]
                if not isinstance(x, NoValueError):
                    here.append(x)
                elif x.why == "other":
                    raise NoValueError
                else:
                    reasons.add(x.why)
            values += sorted(here)  # type: ignore[type-var]
    if e.distinct:
        values = list(dict.fromkeys(values))
    if e.function == "COUNT":
        return Decimal(len(values))
    numbers = [v for v in values if isinstance(v, Decimal)]
    if e.function in ("SUM", "AVG"):
        total = sum(numbers, Decimal(0))
        return total / len(numbers) if e.function == "AVG" and numbers else total
    if not values:
        raise NoValueError("early" if reasons == {"early"} else "other")
    if e.function in ("MIN", "MAX"):
        return min(numbers) if e.function == "MIN" else max(numbers)
    if len(values) <= e.n:
        raise NoValueError
    return values[-1 - e.n if e.function == "LAST" else e.n]


def holds(e: Expr, env: Env) -> bool:
    """Whether a filter keeps a solution: it holds, or errs for want of an earlier iteration alone."""
    try:
        return value(e, env) is True
    except NoValueError as error:
        return error.why == "early"


def mentioned(e: Expr, plain: bool = False) -> Iterator[str]:
    """The variables of an expression; ``plain``: those outside aggregates and PREV."""
    match e:
        case V(name) | Bound(name):
            yield name
        case Prev(name=name):
            if not plain:
                yield name
        case Agg(of=of):
            if not plain:
                yield from mentioned(of)
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
