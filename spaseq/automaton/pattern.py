"""The sequence of a query in normal form: what the matchers and the automaton are built from.

Every place of the sequence gets an identity, every Kleene closure knows which variables are its own
(*group variables*: semantics, section 4), every GPM is cut into what one event decides alone and the
correlated filters that need the rest of the match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from pyoxigraph import NamedNode

from spaseq.language.syntax import (
    Duration,
    Filter,
    Gpm,
    Group,
    Query,
    Strategy,
)


@dataclass(frozen=True, slots=True)
class GpmPart:
    """A GPM, cut in two: what one event decides, and the filters that need the match so far."""

    gpm: Gpm
    streams: frozenset[NamedNode]
    stateless: Group
    correlated: tuple[Filter, ...]
    variables: frozenset[str]

    @property
    def name(self) -> str:
        return self.gpm.name


@dataclass(frozen=True, slots=True)
class Atom:
    """One event that is relevant for a GPM.

    ``filters`` are its correlated filters, without those that need a variable which another operand
    of an ``&`` around it binds: those stand in that node's ``deferred``. ``loose`` are the ones among
    them that need no variable of another operand of an ``ALL``.
    """

    id: int
    gpm: str
    filters: tuple[Filter, ...]
    loose: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Elements one after the other; ``operators[i]`` stands between element i and i + 1."""

    id: int
    items: tuple[Node, ...]
    operators: tuple[Strategy, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """``X & Y``: at the same time. ``deferred`` and ``loose``: the filters that need both, see ``Atom``."""

    id: int
    operands: tuple[Node, ...]
    deferred: tuple[Filter, ...]
    loose: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """``X | Y``, in order of preference.

    ``;`` waits for any operand, and for any of ``closed``: sides that are not taken here. Where the operands
    are ``apart``, the choice is made beforehand, and none hinders another: ``X{0,m}`` is one of X and
    ``Empty``, and so are the alternatives of one sequence, where their variables have different scopes.
    ``places`` are the operands' in the order of preference, if not 0, 1 and so on.
    """

    id: int
    operands: tuple[Node, ...]
    closed: tuple[Node, ...] = ()
    apart: bool = False
    places: tuple[int, ...] = ()

    def place(self, operand: int) -> int:
        """Where an operand stands in the order of preference; of those with one place none is preferred."""
        return self.places[operand] if self.places else operand


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """``ALL(σ1, …)``"""

    id: int
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Kleene:
    """``X+``, ``X{n,m}`` with n ≥ 1; ``maximum`` None means unbounded.

    ``reluctant`` prefers to leave, where it could go on (AFTER MATCH SKIP).
    ``own`` are the variables bound anew by every iteration: those that nothing outside of X binds or joins in
    the same alternative, the ones of Kleenes inside X included.
    """

    id: int
    element: Node
    minimum: int
    maximum: int | None
    strategy: Strategy
    own: frozenset[str]
    reluctant: bool = False


@dataclass(frozen=True, slots=True)
class Empty:
    """Matches no event, and asks nothing: the zero iterations of ``X{0,m}``."""

    id: int


@dataclass(frozen=True, slots=True)
class Maybe:
    """``X?``: a left join, X or no X in its place. (With AFTER MATCH SKIP it is a choice with ``Empty``.)

    What is absent is X, or any of its ``readings`` if it has alternatives, one of which is taken here.
    """

    id: int
    element: Node
    readings: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """``!X``; with ``limit``, only events within so long after what is before it bar a match.

    At the beginning: before what follows it. ``free`` are variables of X that join nothing: those of the
    Kleene beside it that repeats X.
    """

    id: int
    element: Node
    limit: Duration | None = None
    free: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Within:
    """``X WITHIN d``: the last event that X chose is at most ``limit`` after its first."""

    id: int
    element: Node
    limit: Duration


Node = Atom | Chain | Both | Either | AnyOrder | Kleene | Empty | Maybe | Absent | Within

#: A unit that an element can start with, after the Kleenes entered on the way to it, outermost first.
Start = tuple[tuple[int, ...], Atom | Both]


@dataclass(frozen=True, slots=True)
class SequencePattern:
    """A query's sequence in normal form.

    ``group_of`` maps each group variable to the id of the innermost Kleene it belongs to, ``owners`` to those
    of all alternatives, outermost first; ``mixed`` are the ones that have another scope elsewhere.
    ``where`` are the filters at the level of WHERE; ``negated`` are GPMs used only under ``!``.
    ``witnesses`` are in ``gpms`` beside those of the query: GPMs without their FILTERs, which say of what
    partitions an event is (semantics, section 4). They match nothing.
    """

    query: Query
    root: Node
    gpms: Mapping[str, GpmPart]
    group_of: Mapping[str, int]
    owners: Mapping[str, tuple[int, ...]]
    mixed: frozenset[str]
    where: tuple[Filter, ...]
    negated: frozenset[str]
    streams: tuple[NamedNode, ...]
    witnesses: frozenset[str] = frozenset()

    @property
    def queried(self) -> tuple[str, ...]:
        """The GPMs of the query."""
        return tuple(name for name in self.gpms if name not in self.witnesses)

    @property
    def positive(self) -> tuple[str, ...]:
        """The GPMs that a match may choose events for."""
        return tuple(name for name in self.queried if name not in self.negated)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside."""
    match node:
        case Atom() | Empty():
            return ()
        case Chain(items=items):
            return items
        case Both(operands=operands) | AnyOrder(operands=operands):
            return operands
        case Either(operands=operands, closed=closed):
            return (*operands, *closed)
        case Maybe(element=element, readings=readings):
            return (element, *readings)
        case Kleene(element=element):
            return (element,)
        case Absent(element=element) | Within(element=element):
            return (element,)


def walk(node: Node) -> Iterator[Node]:
    """The node and all inside it, outermost first, in the order written."""
    yield node
    for child in children(node):
        yield from walk(child)


def starts(node: Node) -> tuple[Start, ...]:
    """What a node can start with: atoms, and conjunctions as a whole (semantics, section 4, ``;``)."""
    return tuple(dict.fromkeys(start for choice in choices(node) for start in choice))


def choices(node: Node) -> tuple[tuple[Start, ...], ...]:
    """What a node can start with, once for each way in which its optional parts are there or not.

    ``;`` waits for what one choice starts with; an empty one starts with nothing: the node may be left out.
    """
    match node:
        case Atom() | Both():
            return ((((), node),),)
        case Chain(items=items):
            ways: tuple[tuple[Start, ...], ...] = ((),)
            for item in items:
                more = choices(item) if () in ways else ()
                ways = (*filter(None, ways), *more)
            return tuple(dict.fromkeys(ways))
        case Either(operands=operands, apart=True):
            return tuple(dict.fromkeys(choice for operand in operands for choice in choices(operand)))
        case Either(operands=operands, closed=closed):
            return _together((*operands, *closed))
        case AnyOrder(operands=operands):
            return _together(operands)
        case Kleene(id=identity, element=element):
            return tuple(
                tuple(((identity, *entered), unit) for entered, unit in choice) for choice in choices(element)
            )
        case Maybe(element=element):
            return ((), *choices(element))
        case Within(element=element):
            return choices(element)
        case Absent() | Empty():
            return ((),)


def _together(nodes: Iterable[Node]) -> tuple[tuple[Start, ...], ...]:
    return tuple(sum(parts, ()) for parts in product(*map(choices, nodes)))


def nullable(node: Node) -> bool:
    """Whether a node has a match without any event."""
    match node:
        case Atom() | Both():
            return False
        case Empty() | Maybe() | Absent():
            return True
        case Kleene(element=element) | Within(element=element):
            return nullable(element)
        case Either(operands=operands):
            return any(map(nullable, operands))
        case Chain(items=parts) | AnyOrder(operands=parts):
            return all(map(nullable, parts))


def units(node: Node) -> tuple[Atom | Both, ...]:
    """What an event can be relevant for inside a node: its atoms, and conjunctions as a whole."""
    if isinstance(node, Atom | Both):
        return (node,)
    return tuple(unit for child in children(node) for unit in units(child))


def may_trail(node: Node) -> bool:
    """Whether a match may have to wait for the end of its window (a negation or ``?`` comes last)."""
    match node:
        case Chain(items=items):
            last = [item for i, item in enumerate(items) if all(map(nullable, items[i + 1 :]))]
            return any(map(may_trail, last))
        case Either(operands=operands) | AnyOrder(operands=operands):
            return any(map(may_trail, operands))
        case Kleene(element=element) | Within(element=element):
            return may_trail(element)
        case Maybe() | Absent():
            return True
        case Atom() | Both() | Empty():
            return False


def events_of_each(node: Node) -> int | None:
    """How many events each way to match a node has; None if not all have as many, or one may stand twice."""
    match node:
        case Atom():
            return 1
        case Empty() | Absent():
            return 0
        case Chain(items=items):
            counts = [events_of_each(item) for item in items]
            return None if None in counts else sum(count for count in counts if count is not None)
        case Either(operands=operands):
            of_any = {events_of_each(operand) for operand in operands}
            return of_any.pop() if len(of_any) == 1 else None
        case Kleene(element=element):
            count = events_of_each(element)
            return None if count is None or node.minimum != node.maximum else count * node.minimum
        case Within(element=element):
            return events_of_each(element)
        case Both() | AnyOrder() | Maybe():
            return None
