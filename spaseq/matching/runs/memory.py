"""What an evaluator remembers of past events: for negations, and to read an ``ALL`` again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, product

from spaseq.automaton.pattern import Atom, Both, Either, Node
from spaseq.events import Stamp
from spaseq.matching.context import Context, Rows
from spaseq.matching.model import Bounds, Choice, Occurrence
from spaseq.matching.runs.program import Program, gpms_of
from spaseq.matching.runs.state import Frontier, all_precede

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

    def between(self, gpm: str, after: Frontier | int, before: Sequence[Stamp] | int) -> Iterator[Occurrence]:
        """The events of a GPM in a gap; its ends are events, or places on the window's axis."""
        events = self._of[gpm]
        measure = self._bounds.measure
        if isinstance(after, int):
            start = bisect_left(events, after, key=measure)
        else:
            start = bisect_left(events, after.time, key=_time)
        for i in range(start, len(events)):
            event = events[i]
            if isinstance(before, int):
                if measure(event) > before:
                    return
            elif event.time > before[0].time:
                return
            elif not all_precede((event.stamp,), before):
                continue
            if isinstance(after, int) or after.precedes(event.stamp):
                yield event

    def has(
        self,
        context: Context,
        unit: Atom | Both,
        rows: Rows,
        inside: tuple[int, ...],
        after: Frontier | int,
        before: Sequence[Stamp] | int,
    ) -> bool:
        """Whether something in a gap is relevant for a unit in a context."""
        if isinstance(unit, Atom):
            return any(
                context.extend(rows, unit, event, inside) for event in self.between(unit.gpm, after, before)
            )
        found = {e.position: e for gpm in gpms_of(unit) for e in self.between(gpm, after, before)}
        events = sorted(found.values(), key=lambda event: event.position)
        return any(
            True
            for _, group in groupby(events, key=_time)
            for _ in simultaneous(context, unit, rows, inside, list(group))
        )


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
                    yield choices, found, (i, *path)
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
