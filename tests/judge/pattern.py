"""What the second judge speaks: sequences, GPMs, filters and queries as plain values that print as SPAseq.

Nothing here knows the engine. A node is itself, not what it is made of: two equal names in a sequence are
two places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Name:
    """One event that is relevant for a GPM."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Seq:
    """``X1 op1 X2 op2 X3``"""

    items: tuple[Node, ...]
    ops: tuple[str, ...]

    def __str__(self) -> str:
        first, *rest = self.items
        tail = "".join(f" {op} {_unit(item, Seq)}" for op, item in zip(self.ops, rest, strict=True))
        return _unit(first, Seq) + tail


@dataclass(frozen=True, eq=False)
class Or:
    """``X | Y``. Where ``take`` says so, only that side is taken; what ``;`` must not skip stays both."""

    operands: tuple[Node, ...]
    take: int | None = None

    def __str__(self) -> str:
        return f"({' | '.join(_unit(o, Or) for o in self.operands)})"


@dataclass(frozen=True, eq=False)
class And:
    """``X & Y``"""

    operands: tuple[Node, ...]

    def __str__(self) -> str:
        return f"({' & '.join(_unit(o, And) for o in self.operands)})"


@dataclass(frozen=True, eq=False)
class AllOf:
    """``ALL(X, Y)``"""

    operands: tuple[Node, ...]

    def __str__(self) -> str:
        return f"ALL({', '.join(f'({o})' if isinstance(o, Seq) else str(o) for o in self.operands)})"


@dataclass(frozen=True, eq=False)
class Times:
    """``X{least,most}[op]``, a plain choice of how often; ``most`` None is unbounded."""

    element: Node
    least: int
    most: int | None
    op: str = ";"
    reluctant: bool = False

    def __str__(self) -> str:
        bounds = (
            "+"
            if (self.least, self.most) == (1, None)
            else f"{{{self.least},{'' if self.most is None else self.most}}}"
        )
        return f"{_unit(self.element)}{bounds}{'?' * self.reluctant}" + f"[{self.op}]" * (self.op != ";")


@dataclass(frozen=True, eq=False)
class Opt:
    """``X?``; ``X*`` is one of a ``Times``. ``readings`` are the alternatives of X that may be absent."""

    element: Node
    reluctant: bool = False
    readings: tuple[Node, ...] = ()

    def __str__(self) -> str:
        return f"{_unit(self.element)}?{'?' * self.reluctant}"


@dataclass(frozen=True, eq=False)
class No:
    """``!X``"""

    element: Node

    def __str__(self) -> str:
        return f"!{_unit(self.element)}"


@dataclass(frozen=True, eq=False)
class In:
    """``X WITHIN limit unit``"""

    element: Node
    limit: Fraction
    unit: str = "SECONDS"

    def __str__(self) -> str:
        inner = str(self.element) if isinstance(self.element, No | Times | Opt) else _unit(self.element)
        return f"{inner} WITHIN {decimal(self.limit)} {self.unit}"


@dataclass(frozen=True, eq=False)
class Either:
    """One of several readings of the same thing: alternatives that do not hinder each other."""

    readings: tuple[Node, ...]


Node = Name | Seq | Or | And | AllOf | Times | Opt | No | In | Either


def inside(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside."""
    match node:
        case Name():
            return ()
        case Seq(items=parts) | Or(operands=parts) | And(operands=parts) | AllOf(operands=parts):
            return parts
        case Either(readings=parts):
            return parts
        case Times(element=part) | Opt(element=part) | No(element=part) | In(element=part):
            return (part,)


def _unit(node: Node, within: type | None = None) -> str:
    """A node where the grammar wants an element: in parentheses, unless it is one."""
    if isinstance(node, Name | Or | And | AllOf):
        return str(node)
    if within is Seq and isinstance(node, No | Times | Opt | In):
        return str(node)
    return f"({node})"


def decimal(value: Fraction | Decimal | int) -> str:
    """A number as SPARQL writes it."""
    if isinstance(value, Fraction):
        value = Decimal(value.numerator) / Decimal(value.denominator)
    return format(value, "f")


# --- filters --------------------------------------------------------------------------------------


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


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gpm:
    """A GPM: what it asks of an event's solutions by itself is in ``own``, and in ``filters`` the rest.

    ``body`` is its pattern without filters; ``binds`` are the variables it binds, ``own`` its filters that
    speak of no other GPM.
    """

    name: str
    streams: tuple[str, ...]
    body: str
    binds: tuple[str, ...]
    own: tuple[Expr, ...] = ()
    filters: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        conditions = "".join(f" FILTER({f})" for f in (*self.own, *self.filters))
        return f"DEFINE GPM {self.name} ON {', '.join(self.streams)} {{ {self.body}{conditions} }}"


@dataclass(frozen=True)
class Skip:
    """``AFTER MATCH SKIP``: ``PAST``, ``NEXT``, ``FIRST`` or ``LAST``, the latter two to a GPM."""

    mode: str
    gpm: str = ""

    def __str__(self) -> str:
        where = {"PAST": "PAST LAST EVENT", "NEXT": "TO NEXT EVENT"}.get(self.mode)
        return f"AFTER MATCH SKIP {where or f'TO {self.mode} {self.gpm}'}"


@dataclass(frozen=True)
class Query:
    """A query. ``size`` in ``unit``: events, or seconds, milli- or microseconds.

    Times are ticks, of which one is a second, or microseconds if they are ``instants``.
    """

    root: Node
    gpms: dict[str, Gpm]
    size: Fraction
    unit: str = "SECONDS"
    sliding: bool = False
    streams: tuple[str, ...] = ("S1",)
    where: tuple[Expr, ...] = ()
    partition: tuple[str, ...] = ()
    emit: str = "ALL"
    consume: bool = False
    skip: Skip | None = None
    instants: bool = False
    prefix: str = field(default="http://example.org/", repr=False)

    def length(self, size: Fraction, unit: str) -> Fraction:
        """How long something lasts, in units of time."""
        a_second = 1_000_000 if self.instants else 1
        return size * a_second / {"SECONDS": 1, "MILLISECONDS": 1_000, "MICROSECONDS": 1_000_000}[unit]

    @cached_property
    def text(self) -> str:
        """The query in SPAseq."""
        streams = " ".join(f"FROM STREAM {s} <{self.prefix}{s.lower()}>" for s in self.streams)
        by = "PARTITION BY " + " ".join(f"?{v}" for v in self.partition) if self.partition else ""
        tail = str(self.skip or "") or f"EMIT {self.emit}{' CONSUME ANY' * self.consume}"
        gpms = "\n".join(f"  {g}" for g in self.gpms.values())
        where = "".join(f"\n  FILTER({f})" for f in self.where)
        return (
            f"PREFIX : <{self.prefix}>\nSELECT * WITHIN {decimal(self.size)} {self.unit} "
            f"{'SLIDING' if self.sliding else 'TUMBLING'} {by}\n{streams}\n"
            f"WHERE {{ SEQ({self.root})\n{gpms}{where}\n}} {tail}"
        )


@dataclass(frozen=True)
class Event:
    """An event: per GPM, its solutions, and its solutions without any top-level filter."""

    i: int
    time: int
    stream: str
    n: int
    solutions: dict[str, list[dict[str, object]]] = field(compare=False, repr=False)
    unfiltered: dict[str, list[dict[str, object]]] = field(compare=False, repr=False)

    @property
    def order(self) -> tuple[int, str, int]:
        """Simultaneous events stand by their streams' IRIs."""
        return (self.time, self.stream, self.n)

    def precedes(self, other: Event) -> bool:
        """Whether this event precedes another."""
        return self.time < other.time or (
            self.stream == other.stream and self.time == other.time and self.n < other.n
        )
