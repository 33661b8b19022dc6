"""NFA_scep, the automaton of a sequence (SPAseq paper, section 6): plain, immutable data.

It is the position automaton of the sequence: a state is "after this place of the sequence", so there are no
empty edges, and one edge is one step of a run: an event for a GPM, the simultaneous events of an ``&``, or a
whole ``ALL``. Five things go beyond a textbook automaton:

- *Operators* stand on the edges, as state-transition predicates ``(U, op, P)``, together with the
  *rivals* of P: all units that the element after the operator can start with. An element with optional parts
  has an edge for each choice of which of them are present.
- *Kleene bounds* are counters: ``Enter``, ``Again`` and ``Leave`` guard an edge, so that ``X{2,500}``
  needs no 500 copies of X. They also mark in Ω where an iteration begins and ends.
- *Negations* open a gap (``Forbid``) that the next element closes (``Await`` … ``Decide``), or the end
  of the window if no element follows. An ``X?`` that is left out opens a gap, too (``Omit``).
- *Time bounds* inside the sequence begin at ``Since`` and are tested at ``Until``.
- Each operand of an ``ALL`` has an automaton of its own (``parts``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyoxigraph import NamedNode

from spaseq.automaton.pattern import Absent, AnyOrder, Atom, Both, Maybe, Node, SequencePattern
from spaseq.language.syntax import Duration, Filter, Strategy


@dataclass(frozen=True, slots=True)
class Enter:
    """A Kleene begins: its counter becomes 1."""

    kleene: int


@dataclass(frozen=True, slots=True)
class Again:
    """An iteration ends and another one begins: possible while the counter is below ``maximum``."""

    kleene: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Leave:
    """A Kleene ends: possible from ``minimum`` iterations on. ``inside`` are the Kleenes around it."""

    kleene: int
    minimum: int
    inside: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forbid:
    """A gap opens here: until it closes, no event may be relevant for any of these ``units`` of ``!X``.

    ``strategy`` is the operator before ``!X``, None at the beginning of a match. After ``,`` only the next
    event counts. ``inside`` are the Kleenes in progress.
    """

    units: tuple[Atom | Both, ...]
    negation: Absent
    strategy: Strategy | None = None
    inside: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AbsentSide:
    """A side ``node`` of a ``|`` of which another side was taken.

    ``entered`` are the Kleenes entered on the way to it; ``inside`` are all Kleenes in progress.
    """

    entered: tuple[int, ...]
    inside: tuple[int, ...]
    node: Node


@dataclass(frozen=True, slots=True)
class Omit:
    """``X?`` is left out here: from here to the next element there must be no X that could stand here.

    ``strategy`` is the operator before ``X?``, None at the beginning of a match. ``beside`` are the sides of
    a ``|`` that were not taken and must not be skipped either. ``inside`` are the Kleenes in progress.
    """

    optional: Maybe
    strategy: Strategy | None = None
    inside: tuple[int, ...] = ()
    beside: tuple[AbsentSide, ...] = ()


@dataclass(frozen=True, slots=True)
class Await:
    """Element ``owner`` begins: it closes the gaps that are open. ``strategy`` stands right before it."""

    owner: int
    strategy: Strategy | None


@dataclass(frozen=True, slots=True)
class Since:
    """The next event begins the time of ``within``."""

    within: int


@dataclass(frozen=True, slots=True)
class Until:
    """The last event is at most ``limit`` after the event that began the time of ``within``."""

    within: int
    limit: Duration


@dataclass(frozen=True, slots=True)
class Decide:
    """Element ``owner`` is complete: the units forbidden before it must not have occurred.

    ``inside`` are the Kleenes in progress.
    """

    owner: int
    inside: tuple[int, ...]


Action = Enter | Again | Leave | Forbid | Omit | Await | Decide | Since | Until

#: What one edge consumes.
Unit = Atom | Both | AnyOrder


@dataclass(frozen=True, slots=True)
class Rival:
    """A unit that ``;`` must not skip, and the Kleenes that are entered on the way to it."""

    entered: tuple[int, ...]
    unit: Atom | Both


@dataclass(frozen=True, slots=True)
class Predicate:
    """A state-transition predicate ``(U, op, P)``.

    ``strategy`` is None where a sequence begins: nothing is before it. ``rivals`` is empty unless
    the strategy is ``;``. ``inside`` are the Kleenes in progress where the operator stands.
    """

    streams: frozenset[NamedNode]
    strategy: Strategy | None
    unit: Unit
    rivals: tuple[Rival, ...]
    inside: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A step of a run from ``source`` to ``target``, which reads one unit.

    The actions ``ends`` act on the match so far, before the operator is tested. The actions ``begins`` start
    the elements that contain the unit, after the operator. ``key`` are variables that the match so far, every
    rival and the unit all surely bind: runs can be found by their values. ``filters`` are the filters of
    WHERE and of the GPM that can first be decided at this step. ``order``: see ``Accept``.
    """

    source: int
    target: int
    ends: tuple[Action, ...]
    predicate: Predicate
    begins: tuple[Action, ...]
    key: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def inside(self) -> tuple[int, ...]:
        """Return the Kleenes in progress while the unit is read, outermost first."""
        entered = (action.kleene for action in self.begins if isinstance(action, Enter))
        return (*self.predicate.inside, *entered)


@dataclass(frozen=True, slots=True)
class Accept:
    """The state may end the match, after these actions.

    With AFTER MATCH SKIP, ``order`` lists the choices that ending here makes in the sequence, each as its
    position in the order of preference. Of all ways to leave a state, the one with the least ``order`` is
    preferred.
    """

    state: int
    ends: tuple[Action, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NFA:
    """The automaton of ``root``. States are numbered from 0, the initial one.

    ``parts`` has the automata of the operands of each ALL on an edge, by node id. ``shared`` are the
    variables that every GPM binds in each solution; GPMs that are only negated do not count. These variables
    are natural partition keys, but no matcher partitions by them.
    """

    pattern: SequencePattern = field(repr=False)
    root: Node = field(repr=False)
    size: int
    edges: tuple[Edge, ...]
    accepts: tuple[Accept, ...]
    parts: Mapping[int, NFA]
    shared: tuple[str, ...] = ()

    def leaving(self, state: int) -> tuple[Edge, ...]:
        """Return the edges out of a state."""
        return tuple(edge for edge in self.edges if edge.source == state)

    def everywhere(self, change: Callable[[NFA], NFA]) -> NFA:
        """Apply a change to this automaton and to all parts inside it."""
        parts = {identity: part.everywhere(change) for identity, part in self.parts.items()}
        return change(replace(self, parts=parts))
