"""Partial matches of a search: events so far, how they were reached, and what is undecided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from spaseq.automaton.nfa import Again, Enter, Leave
from spaseq.automaton.pattern import (
    Absent,
    Both,
    Either,
    Maybe,
    Node,
)
from spaseq.events import precedes
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Rows
from spaseq.matching.model import Choice, Occurrence

Events = Sequence[Occurrence]


@dataclass(frozen=True, slots=True)
class Entry:
    """How an element is reached: the operator before it, and what else that operator must not skip.

    ``operator`` is None for the first element of the sequence. ``beside`` are the other sides of the ``|``s
    around it, each with the partial match before it.
    """

    operator: Strategy | None
    beside: tuple[tuple[Node, Partial], ...] = ()


#: An element that may be matched anywhere: its place is judged later, or does not matter.
FREE = Entry(None)


@dataclass(frozen=True, slots=True)
class Join:
    """The other operands of a completed ``ALL``: their events, and the rows of all."""

    events: tuple[Choice, ...]
    rows: Rows


@dataclass(frozen=True, slots=True)
class Mark:
    """An absent X, of ``X?`` or ``!X``: decided when the next element is there.

    ``at`` is the match before it, ``entry`` how X would have been reached; ``steps`` are the steps of Kleenes
    and ``ALL``s since.
    """

    node: Absent | Maybe
    at: Partial
    entry: Entry
    steps: tuple[Enter | Again | Leave | Join, ...] = ()


@dataclass(frozen=True, slots=True)
class Leading:
    """A mark before the first element of a match. The match's window bounds it, so it is decided when the
    match is complete.

    ``node`` is the element that followed it, after the operator ``operator``.
    """

    mark: Mark
    operator: Strategy
    node: Node
    before: Partial
    after: Partial


@dataclass(frozen=True, slots=True)
class Partial:
    """A match so far. ``inside`` are the Kleenes in progress, ``pool`` the events it chooses from.

    ``starts``: the elements that ``;`` before its first event must not have skipped (as ``Entry.beside``;
    None before the first event). ``loose`` ignores what depends on other operands of an ``ALL``: its filters,
    ``;``, marks. ``key`` are its choices from the start; under AFTER MATCH SKIP, a smaller key is
    preferred.
    """

    events: tuple[Choice, ...]
    rows: Rows
    pool: Events
    inside: tuple[int, ...] = ()
    marks: tuple[Mark, ...] = ()
    leading: tuple[Leading, ...] = ()
    starts: tuple[tuple[Node, Partial], ...] | None = None
    loose: bool = False
    key: tuple[object, ...] = ()

    @property
    def chosen(self) -> Events:
        return tuple(event for _, event in self.events)

    def since(self, earlier: Partial) -> Events:
        """Return the events that this match has chosen and an earlier one has not."""
        return self.chosen[len(earlier.events) :]


def follow(earlier: Iterable[Occurrence], later: Events) -> bool:
    """Return whether each of ``earlier`` precedes each of ``later``."""
    for e in earlier:
        for f in later:
            if not precedes(e.stamp, f.stamp):
                return False
    return True


#: What an element may begin with: units, each with the partial match before it.
Start = tuple[tuple[Node, Partial], ...]


def whole(unit: Node) -> Node:
    """Return a unit with all sides of its ``|``s, also sides not taken here."""
    match unit:
        case Both(operands=operands):
            return replace(unit, operands=tuple(map(whole, operands)))
        case Either(operands=operands, closed=closed):
            return replace(unit, operands=tuple(map(whole, (*operands, *closed))), closed=(), places=())
        case _:
            return unit
