"""The sequence of a query in normal form: what the evaluators and the automaton are built from.

Every place of the sequence gets an identity, every Kleene closure knows which variables are its own
(*group variables*: semantics, section 4), every GPM is cut into what one event decides alone and the
correlated filters that need the rest of the match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pyoxigraph import NamedNode

from spaseq.language import scope
from spaseq.language.syntax import (
    All,
    Bounded,
    Conjunction,
    Disjunction,
    Duration,
    Filter,
    Gpm,
    Group,
    Not,
    Query,
    Ref,
    Repeat,
    Seq,
    Sequence,
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
    """``X | Y``, in order of preference. ``X{0,m}`` is a choice with ``Empty``, too."""

    id: int
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """``ALL(σ1, …)``"""

    id: int
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Kleene:
    """``X+``, ``X{n,m}`` with n ≥ 1; ``maximum`` None means unbounded.

    ``reluctant`` prefers to leave, where it could go on (AFTER MATCH SKIP).
    ``own`` are the variables bound anew by every iteration: those that no other element of the query
    has, the ones of Kleenes inside X included.
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
    """``X?``: a left join, X or no X in its place. (With AFTER MATCH SKIP it is a choice with ``Empty``.)"""

    id: int
    element: Node


@dataclass(frozen=True, slots=True)
class Absent:
    """``!X``; with ``limit``, only events within so long after what is before it bar a match.

    At the beginning: before what follows it.
    """

    id: int
    element: Node
    limit: Duration | None = None


@dataclass(frozen=True, slots=True)
class Within:
    """``X WITHIN d``: the last event that X chose is at most ``limit`` after its first."""

    id: int
    element: Node
    limit: Duration


Node = Atom | Chain | Both | Either | AnyOrder | Kleene | Empty | Maybe | Absent | Within


@dataclass(frozen=True, slots=True)
class SequencePattern:
    """A query's sequence in normal form.

    ``group_of`` maps each group variable to the id of the innermost Kleene it belongs to;
    ``where`` are the filters at the level of WHERE; ``negated`` are GPMs used only under ``!``.
    """

    query: Query
    root: Node
    gpms: Mapping[str, GpmPart]
    group_of: Mapping[str, int]
    where: tuple[Filter, ...]
    negated: frozenset[str]
    streams: tuple[NamedNode, ...]


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside."""
    match node:
        case Atom() | Empty():
            return ()
        case Chain(items=items):
            return items
        case Both(operands=operands) | Either(operands=operands) | AnyOrder(operands=operands):
            return operands
        case Kleene(element=element) | Maybe(element=element):
            return (element,)
        case Absent(element=element) | Within(element=element):
            return (element,)


def walk(node: Node) -> Iterator[Node]:
    """The node and all inside it, outermost first, in the order written."""
    yield node
    for child in children(node):
        yield from walk(child)


def normalise(query: Query) -> SequencePattern:
    """The normal form of a checked query."""
    references = list(scope.references(query.sequence))
    positive = {ref.name for ref, negated in references if not negated}
    gpms = {gpm.name: _part(query, gpm, positive) for gpm in query.gpms}
    builder = _Builder(gpms, scope.private_variables(query), query.skip is None)
    root = builder.build(query.sequence, frozenset(), frozenset())
    owners = {node.id: node.own for node in walk(root) if isinstance(node, Kleene)}
    # Kleenes are numbered from the outside in, so the last owner is the innermost.
    group_of = {variable: kleene for kleene, own in sorted(owners.items()) for variable in own}
    return SequencePattern(
        query=query,
        root=root,
        gpms=gpms,
        group_of=group_of,
        where=query.filters,
        negated=frozenset(gpm.name for gpm in query.gpms) - positive,
        streams=tuple(declaration.iri for declaration in query.streams),
    )


def _part(query: Query, gpm: Gpm, positive: set[str]) -> GpmPart:
    elsewhere = frozenset().union(
        *(scope.gpm_variables(g) for g in query.gpms if g.name != gpm.name and g.name in positive)
    )
    stateless, correlated = scope.split(gpm, elsewhere)
    return GpmPart(
        gpm=gpm,
        streams=frozenset(query.stream(name) for name in gpm.streams),
        stateless=stateless,
        correlated=correlated,
        variables=scope.gpm_variables(gpm),
    )


class _Builder:
    """Numbers the places of a sequence in the order written and hands filters to their node."""

    def __init__(self, gpms: Mapping[str, GpmPart], private: frozenset[str], joins: bool) -> None:
        self._gpms = gpms
        self._private = private
        self._joins = joins  # whether X? is a left join
        self._count = 0

    def _identity(self) -> int:
        self._count += 1
        return self._count - 1

    def build(self, seq: Seq, simultaneous: frozenset[str], unordered: frozenset[str]) -> Node:
        """``simultaneous``: variables that only other operands of the ``&`` around bind.

        ``unordered``: the same of the ``ALL`` around.
        """
        identity = self._identity()

        def inner(part: Seq) -> Node:
            return self.build(part, simultaneous, unordered)

        match seq:
            case Ref(name=name):
                filters = self._filters(seq, simultaneous)
                return Atom(identity, name, filters, self._without(filters, seq, unordered))
            case Sequence(elements=elements, operators=operators):
                return Chain(identity, tuple(map(inner, elements)), operators)
            case Disjunction(operands=operands):
                return Either(identity, tuple(map(inner, operands)))
            case Conjunction(operands=operands):
                others = [self._others(operands, i) for i in range(len(operands))]
                nodes = tuple(
                    self.build(o, simultaneous | waited, unordered)
                    for o, waited in zip(operands, others, strict=True)
                )
                deferred: dict[Filter, None] = {}
                loose: dict[Filter, None] = {}
                for operand, waited in zip(operands, others, strict=True):
                    for ref, _ in scope.references(operand):
                        here = self._filters(ref, simultaneous)
                        mine = [f for f in here if self._waits(ref, f, waited)]
                        deferred.update(dict.fromkeys(mine))
                        loose.update(dict.fromkeys(self._without(mine, ref, unordered)))
                return Both(identity, nodes, tuple(deferred), tuple(loose))
            case All(operands=operands):
                nodes = tuple(
                    self.build(o, simultaneous, unordered | self._others(operands, i))
                    for i, o in enumerate(operands)
                )
                return AnyOrder(identity, nodes)
            case Not(element=element):
                return Absent(identity, inner(element))
            case Bounded(element=Not(element=element), within=within):
                return Absent(identity, inner(element), within)
            case Bounded(element=element, within=within):
                return Within(identity, inner(element), within)
            case Repeat(element=element, minimum=0, maximum=maximum, optional=optional):
                plain = replace(seq, minimum=1, optional=False)
                some = inner(element if optional and maximum == 1 else plain)
                if optional and self._joins:
                    return Maybe(identity, some)
                none = Empty(self._identity())
                return Either(identity, (none, some) if seq.reluctant else (some, none))
            case Repeat(element=element, minimum=minimum, maximum=maximum, strategy=strategy):
                own = self._variables(element) & self._private
                return Kleene(identity, inner(element), minimum, maximum, strategy, own, seq.reluctant)

    def _filters(self, ref: Ref, waited: frozenset[str]) -> tuple[Filter, ...]:
        return self._without(self._gpms[ref.name].correlated, ref, waited)

    def _without(self, filters: Iterable[Filter], ref: Ref, waited: frozenset[str]) -> tuple[Filter, ...]:
        return tuple(f for f in filters if not self._waits(ref, f, waited))

    def _waits(self, ref: Ref, condition: Filter, waited: frozenset[str]) -> bool:
        """Whether a filter of a GPM needs a variable that only a sibling operand binds."""
        needed = scope.mentioned(condition.condition) - self._gpms[ref.name].variables
        return bool(needed & waited)

    def _variables(self, seq: Seq) -> frozenset[str]:
        return frozenset().union(*(self._gpms[ref.name].variables for ref, _ in scope.references(seq)))

    def _others(self, operands: tuple[Seq, ...], i: int) -> frozenset[str]:
        """What the other operands bind and operand ``i`` does not."""
        others = (self._variables(o) for j, o in enumerate(operands) if j != i)
        return frozenset().union(*others) - self._variables(operands[i])


def starts(node: Node) -> tuple[tuple[tuple[int, ...], Atom | Both], ...]:
    """What a node can start with: atoms, and conjunctions as a whole (semantics, section 4, ``;``).

    Each comes with the ids of the Kleenes that are entered on the way to it, outermost first.
    """
    match node:
        case Atom() | Both():
            return (((), node),)
        case Chain(items=items):
            return tuple(_first_of_chain(items))
        case Either(operands=operands) | AnyOrder(operands=operands):
            return tuple(start for operand in operands for start in starts(operand))
        case Kleene(id=identity, element=element):
            return tuple(((identity, *entered), unit) for entered, unit in starts(element))
        case Maybe(element=element) | Within(element=element):
            return starts(element)
        case Absent() | Empty():
            return ()


def _first_of_chain(items: Iterable[Node]) -> Iterator[tuple[tuple[int, ...], Atom | Both]]:
    for item in items:
        yield from starts(item)
        if not nullable(item):
            return


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
