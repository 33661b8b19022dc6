"""The sequence of a query in normal form, the input of matchers and of the automaton.

Every place of the sequence gets an id. Every Kleene closure has the variables that are its own (*group
variables*: semantics, section 4). Every GPM is split into what one event decides alone and the correlated
filters that need the rest of the match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from pyoxigraph import NamedNode

from spaseq.language import syntax as s


@dataclass(frozen=True, slots=True)
class GpmPart:
    """A GPM in two parts: what one event decides, and the filters that need the match so far."""

    gpm: s.Gpm
    streams: frozenset[NamedNode]
    stateless: s.Group
    correlated: tuple[s.Filter, ...]
    variables: frozenset[str]

    @property
    def name(self) -> str:
        return self.gpm.name


@dataclass(frozen=True, slots=True)
class Atom:
    """One event that is relevant for a GPM.

    ``filters`` are its correlated filters. Filters that need a variable of another operand of an ``&`` around
    it are in that node's ``deferred`` instead. ``loose`` are those of its filters that need no variable of
    another operand of an ``ALL``.
    """

    id: int
    gpm: str
    filters: tuple[s.Filter, ...]
    loose: tuple[s.Filter, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Elements one after the other; ``operators[i]`` stands between element i and i + 1."""

    id: int
    items: tuple[Node, ...]
    operators: tuple[s.Strategy, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """``X & Y``: at the same time. ``deferred`` and ``loose``: the filters that need both, see ``Atom``."""

    id: int
    operands: tuple[Node, ...]
    deferred: tuple[s.Filter, ...]
    loose: tuple[s.Filter, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """``X | Y``, in order of preference.

    ``;`` waits for any operand, and for any of ``closed``: sides that are not taken here. If the operands are
    ``apart``, the choice is made beforehand, and no operand blocks another. They are apart in ``X{0,m}`` (X
    or ``Empty``), and if they are alternatives of a sequence in which variables have different scopes.
    ``places`` are the operands' positions in the order of preference, if not 0, 1 and so on.
    """

    id: int
    operands: tuple[Node, ...]
    closed: tuple[Node, ...] = ()
    apart: bool = False
    places: tuple[int, ...] = ()

    def place(self, operand: int) -> int:
        """Return an operand's place in the order of preference; operands of equal places are equally
        preferred.
        """
        return self.places[operand] if self.places else operand


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """``ALL(σ1, …)``"""

    id: int
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Kleene:
    """``X+``, ``X{n,m}`` with n ≥ 1; ``maximum`` None means unbounded.

    ``reluctant`` prefers to end the loop where it could continue (AFTER MATCH SKIP). ``own`` are the
    variables bound anew by every iteration: nothing outside of X binds or joins them in the same alternative.
    They include the variables of Kleenes inside X.
    """

    id: int
    element: Node
    minimum: int
    maximum: int | None
    strategy: s.Strategy
    own: frozenset[str]
    reluctant: bool = False


@dataclass(frozen=True, slots=True)
class Empty:
    """Matches no event, without a condition: the zero iterations of ``X{0,m}``."""

    id: int


@dataclass(frozen=True, slots=True)
class Maybe:
    """``X?``: a left join, X or no X in its place. (With AFTER MATCH SKIP it is a choice with ``Empty``.)

    Where X is left out, no X may occur. If ``element`` is only one alternative of X, ``readings`` are all its
    alternatives, and none of them may occur.
    """

    id: int
    element: Node
    readings: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """``!X``; with ``limit``, only events within this time after the preceding element prevent a match.

    At the beginning of a match, the time counts back from the following element. ``free`` are variables of X
    that join nothing: the variables of an adjacent Kleene that repeats X.
    """

    id: int
    element: Node
    limit: s.Duration | None = None
    free: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Within:
    """``X WITHIN d``: the last event chosen for X is at most ``limit`` after the first one."""

    id: int
    element: Node
    limit: s.Duration


Node = Atom | Chain | Both | Either | AnyOrder | Kleene | Empty | Maybe | Absent | Within

#: A unit that an element can start with, after the Kleenes entered on the way to it, outermost first.
Start = tuple[tuple[int, ...], Atom | Both]


@dataclass(frozen=True, slots=True)
class SequencePattern:
    """A query's sequence in normal form.

    ``group_of`` maps each group variable to the id of the innermost Kleene it belongs to. ``owners`` maps it
    to the Kleenes of all alternatives, outermost first. ``mixed`` are the variables that have different
    scopes at different places. ``where`` are the filters at the level of WHERE; ``negated`` are GPMs used
    only under ``!``. ``witnesses`` are further GPMs in ``gpms``, without their FILTERs: they only give an
    event's partitions (semantics, section 4) and match nothing.
    """

    query: s.Query
    root: Node
    gpms: Mapping[str, GpmPart]
    group_of: Mapping[str, int]
    owners: Mapping[str, tuple[int, ...]]
    mixed: frozenset[str]
    where: tuple[s.Filter, ...]
    negated: frozenset[str]
    streams: tuple[NamedNode, ...]
    witnesses: frozenset[str] = frozenset()

    @property
    def queried(self) -> tuple[str, ...]:
        """Return the names of the query's own GPMs, without witnesses."""
        return tuple(name for name in self.gpms if name not in self.witnesses)

    @property
    def positive(self) -> tuple[str, ...]:
        """Return the names of the GPMs that a match may choose events for."""
        return tuple(name for name in self.queried if name not in self.negated)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly inside."""
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
    """Yield the node and all nodes inside it, outermost first, in the order written."""
    yield node
    for child in children(node):
        yield from walk(child)


def starts(node: Node) -> tuple[Start, ...]:
    """Return the units that a node can start with: atoms, and conjunctions as a whole (semantics,
    4, ``;``).
    """
    return tuple(dict.fromkeys(start for choice in choices(node) for start in choice))


def choices(node: Node) -> tuple[tuple[Start, ...], ...]:
    """Return the units that a node can start with, for each choice of which optional parts are present.

    ``;`` waits for the units of one choice. An empty choice starts with nothing: the node may be left out.
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
    """Return whether a node has a match without any event."""
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
    """Return the units inside a node for which an event can be relevant: atoms, conjunctions as a whole."""
    if isinstance(node, Atom | Both):
        return (node,)
    return tuple(unit for child in children(node) for unit in units(child))


def may_trail(node: Node) -> bool:
    """Return whether a match may have to wait for the end of its window (a negation or ``?`` comes last)."""
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
    """Return how many events every match of a node has; None if that varies, or an event may occur twice."""
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
