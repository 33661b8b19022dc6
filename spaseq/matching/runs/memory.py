"""What an evaluator remembers of past events: for negations, and to read an ``ALL`` again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, product

from spaseq.automaton.pattern import Atom, Both, Either, Node
from spaseq.events import Stamp
from spaseq.matching.context import Context, Rows
from spaseq.matching.model import Bounds, Choice, Occurrence
from spaseq.matching.runs.program import Program
from spaseq.matching.runs.state import Frontier

#: How many events come between two clearings.
_PAUSE = 256


class Memory:
    """Past events in processing order: those of some GPMs, and all if a program asks for it."""

    def __init__(self, program: Program, bounds: Bounds) -> None:
        self._bounds = bounds
        self._of: dict[str, list[Occurrence]] = {gpm: [] for gpm in program.remembered}
        self._log: list[Occurrence] | None = [] if program.logged else None
        self._added = 0

    def add(self, event: Occurrence) -> None:
        """Remembers an event, if it may matter."""
        for gpm in event.solutions:
            if gpm in self._of:
                self._of[gpm].append(event)
        if self._log is not None:
            self._log.append(event)
        self._added += 1

    def clear(self, oldest: int) -> None:
        """From time to time, forgets what lies before a place on the window's axis."""
        if self._added < _PAUSE:
            return
        self._added = 0
        for events in (*self._of.values(), *([self._log] if self._log is not None else [])):
            del events[: bisect_left(events, oldest, key=self._bounds.measure)]

    def log(self, after: Frontier | None, first: Occurrence, last: Occurrence) -> Iterator[Occurrence]:
        """All events up to ``last`` that come after a match so far, or else from ``first`` on."""
        events = self._log or []
        for i in range(bisect_left(events, after.time if after else first.time, key=_time), len(events)):
            event = events[i]
            if event.position > last.position:
                return
            if after.precedes(event.stamp) if after else event.position >= first.position:
                yield event

    @property
    def everything(self) -> Sequence[Occurrence]:
        """All events remembered, if a program asks for them."""
        return self._log or []

    def since(self, gpms: Iterable[str] | None, first: int, last: int) -> Sequence[Occurrence]:
        """The events of some GPMs, or of all, from one time to another."""
        return self._slice(gpms, _time, first, last)

    def window(self, gpms: Iterable[str] | None, opening: int, closing: int) -> Sequence[Occurrence]:
        """The same between two places on the window's axis."""
        return self._slice(gpms, self._bounds.measure, opening, closing)

    def _slice(
        self, gpms: Iterable[str] | None, key: Callable[[Occurrence], int], first: int, last: int
    ) -> Sequence[Occurrence]:
        lists = [self.everything] if gpms is None else [self._of[gpm] for gpm in sorted(gpms)]
        parts = [
            events[bisect_left(events, first, key=key) : bisect_right(events, last, key=key)]
            for events in lists
        ]
        if len(parts) == 1:
            return parts[0]
        unique = {event.position: event for events in parts for event in events}
        return [unique[position] for position in sorted(unique)]


#: What was chosen in an ``&``, in the order written: of a ``|`` which side, of a GPM which event.
Path = tuple[int | Stamp, ...]


def simultaneous(
    context: Context,
    node: Node,
    rows: Rows,
    inside: tuple[int, ...],
    events: Sequence[Occurrence],
    loose: bool = False,
) -> Iterator[tuple[tuple[Choice, ...], Rows, Path]]:
    """The matches of a GPM, an ``&`` or a ``|`` of them, among events of one time."""
    match node:
        case Atom(gpm=gpm):
            for event in events:
                found = context.extend(rows, node, event, inside, loose)
                if found:
                    yield ((gpm, event),), found, (event.stamp,)
        case Either(operands=operands):
            for i, operand in enumerate(operands):
                for choices, found, path in simultaneous(context, operand, rows, inside, events, loose):
                    yield choices, found, (node.place(i), *path)
        case Both(operands=operands):
            marked = context.mark(rows)
            options = [list(simultaneous(context, o, marked, inside, events, loose)) for o in operands]
            for parts in product(*options):
                joined = context.join([found for _, found, _ in parts], node, inside, loose)
                if joined:
                    chosen = dict.fromkeys(chain.from_iterable(choices for choices, *_ in parts))
                    yield tuple(chosen), joined, tuple(chain.from_iterable(path for *_, path in parts))
        case _:
            raise TypeError(f"not simultaneous: {node}")


def _time(event: Occurrence) -> int:
    return event.time
