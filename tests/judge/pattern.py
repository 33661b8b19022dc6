"""What the second judge speaks: sequences, GPMs, filters and queries as plain values that print as SPAseq.

Nothing here knows the engine. A node is itself, not what it is made of: two equal names in a sequence are
two places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from tests.judge.expressions import Expr


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
