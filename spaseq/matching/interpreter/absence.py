"""The memory of past events, and the decisions about absent elements that are based on it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product

from spaseq.automaton.nfa import Forbid, Omit
from spaseq.automaton.pattern import Absent, Atom, Both, Either, Maybe, Node, SequencePattern, units, walk
from spaseq.events import Stamp
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Rows
from spaseq.matching.interpreter.program import RunsProgram, gpms_of
from spaseq.matching.interpreter.state import Gap, MatchEnd, PartialMatch, chosen
from spaseq.matching.model import Choice, Found, Occurrence, StreamWindow
from spaseq.matching.search import Entry, Leading, Mark, Partial, Prospects, SequenceSearch, follow, horizon

# The memory of past events: for negations, and to match the operands of an ``ALL`` again.

#: How many events come between two cleanups.
_PAUSE = 256


class EventMemory:
    """Past events in processing order: those of some GPMs, and all if a program needs them."""

    def __init__(self, program: RunsProgram, window: StreamWindow) -> None:
        self._window = window
        self._of: dict[str, list[Occurrence]] = {gpm: [] for gpm in program.remembered}
        self._log: list[Occurrence] | None = [] if program.logged else None
        self._added = 0

    def add(self, event: Occurrence) -> None:
        """Remember an event, if it may be needed."""
        for gpm in event.solutions:
            if gpm in self._of:
                self._of[gpm].append(event)
        if self._log is not None:
            self._log.append(event)
        self._added += 1

    def clear(self, oldest: int) -> None:
        """Now and then, forget events before a place on the window's axis."""
        if self._added < _PAUSE:
            return
        self._added = 0
        for events in (*self._of.values(), *([self._log] if self._log is not None else [])):
            del events[: bisect_left(events, oldest, key=self._window.measure)]

    def log(self, after: MatchEnd | None, first: Occurrence, last: Occurrence) -> Iterator[Occurrence]:
        """Yield all events up to ``last``: those after the end ``after`` of a match so far, or without it
        those from ``first`` on.
        """
        events = self._log or []
        for i in range(bisect_left(events, after.time if after else first.time, key=_time), len(events)):
            event = events[i]
            if event.position > last.position:
                return
            if after.precedes(event.stamp) if after else event.position >= first.position:
                yield event

    @property
    def everything(self) -> Sequence[Occurrence]:
        """Return all remembered events, if a program needs them."""
        return self._log or []

    def since(self, gpms: Iterable[str] | None, first: int, last: int) -> Sequence[Occurrence]:
        """Return the events of some GPMs, or of all, from one time to another."""
        return self._slice(gpms, _time, first, last)

    def between(self, gpms: Iterable[str] | None, opening: int, closing: int) -> Sequence[Occurrence]:
        """Return the events between two places on the window's axis."""
        return self._slice(gpms, self._window.measure, opening, closing)

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


#: The choices in an ``&``, in the order written: the side of a ``|``, the event of a GPM.
Path = tuple[int | Stamp, ...]


def simultaneous(
    context: Context,
    node: Node,
    rows: Rows,
    inside: tuple[int, ...],
    events: Sequence[Occurrence],
    loose: bool = False,
) -> Iterator[tuple[tuple[Choice, ...], Rows, Path]]:
    """Yield the matches of a GPM, an ``&`` or a ``|`` of them, among events of one time."""
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


# Absent elements, ``X?`` and ``!X``: decided by the remembered events.
#
# The conditions are those of a ``search`` (a left join searches any X that fits between a match and the next
# element), applied to the events of the gap alone.


class _Question(SequenceSearch):
    """A search among the events of one gap."""

    def could(self, mark: Mark, strategy: Strategy | None, node: Node, wanted: Sequence[Choice]) -> bool:
        """Return whether there is an X where ``X?`` was left out, before an element with these choices."""
        return self._could(mark, strategy, node, wanted, self._events)

    def bars(self, mark: Mark, new: Sequence[Occurrence], after: Partial) -> bool:
        """Return whether one of the events before the new ones is relevant for a negated element."""
        return self._bars(mark, self._gap(mark, [g for g in self._events if follow([g], new)]), after)

    def led(self, leading: Leading) -> bool:
        """Return whether an element that must be absent at a match's beginning is there."""
        if isinstance(leading.mark.node, Maybe):
            wanted = leading.after.events[len(leading.before.events) :]
            return self.could(leading.mark, leading.operator, leading.node, wanted)
        return self._was_there(leading, self._events)

    def trails(self, mark: Mark, m: Partial) -> bool:
        """Return whether an element that must be absent at a match's end is there."""
        return self._is_there(mark, m, self._events)


class Absences:
    """The decisions for one automaton. ``memory`` has the events."""

    def __init__(
        self, pattern: SequencePattern, context: Context, window: StreamWindow, memory: EventMemory
    ) -> None:
        self._pattern = pattern
        self._context = context
        self._window = window
        self._memory = memory
        self._nodes = {node.id: node for node in walk(pattern.root)}

    def begin(self, action: Forbid | Omit, run: PartialMatch, rows: Rows, start: Rows) -> Gap:
        """Return the gap of an absent element after a run; ``start`` are its rows at the operator
        before it.
        """
        at = Partial(_events(run), rows, (), action.inside)
        if isinstance(action, Forbid):
            return Gap(Mark(action.negation, at, Entry(action.strategy)), run.frontier)
        beside = []
        for side in action.beside:
            entered = start
            for kleene in side.entered:
                entered = self._context.enter(entered, kleene)
            beside.append((side.node, replace(at, rows=entered, inside=side.inside)))
        return Gap(Mark(action.optional, at, Entry(action.strategy, tuple(beside))), run.frontier)

    def decide(self, gap: Gap, run: PartialMatch, rows: Rows, inside: tuple[int, ...]) -> Leading | bool:
        """Return whether a gap's element is absent, now that the next element is there. At a match's
        beginning, return what must be decided later.
        """
        after = Partial(_events(run), rows, (), inside)
        wanted = chosen(run.history, gap.begun)
        before = replace(after, events=after.events[: len(after.events) - len(wanted)])
        assert gap.owner is not None
        node = self._nodes[gap.owner]
        if not gap.mark.at.events:
            assert gap.strategy is not None
            return Leading(gap.mark, gap.strategy, node, before, after)
        new = [event for _, event in wanted]
        assert gap.after is not None
        question = self._question(
            self._memory.since(_gpms(gap.mark), gap.after.time, max(event.time for event in new))
        )
        if isinstance(gap.mark.node, Absent):
            return not question.bars(gap.mark, new, after)
        return not question.could(gap.mark, gap.strategy, node, wanted)

    def led(self, run: PartialMatch, match: Found) -> bool:
        """Return whether an element that must be absent at a match's beginning is in its window."""
        if not run.leading:
            return False
        places = self._places(match)
        return any(self._question(self._memory.between(_read(x), *places)).led(x) for x in run.leading)

    def trailed(self, run: PartialMatch, match: Found) -> bool:
        """Return whether an element that must be absent at a match's end is in its window."""
        m, places = _complete(run, match), self._places(match)
        return any(
            self._question(self._memory.between(_gpms(gap.mark), *places)).trails(gap.mark, m)
            for gap in run.gaps
        )

    def early(self, run: PartialMatch) -> bool:
        """Return whether absences at the end of a match may be decided before its window ends."""
        return all(
            gap.mark.entry.operator is Strategy.STRICT
            or (
                gap.mark.node.limit is not None
                if isinstance(gap.mark.node, Absent)
                else not isinstance(gap.mark.node.element, Atom)
            )
            for gap in run.gaps
        )

    def open(self, run: PartialMatch, match: Found, newest: Occurrence, at: int, time: int) -> bool:
        """Return whether an element that must be absent at a match's end may still come; see
        ``PartitionMatcher.advance``.
        """
        coming = horizon(self._context, self._window, newest, at, time)
        events = self._memory.everything
        prospects = Prospects(self._pattern, self._context, self._window, events, coming)
        return prospects.open(_complete(run, match))

    # --- events -------------------------------------------------------------------------------

    def _question(self, events: Sequence[Occurrence]) -> _Question:
        return _Question(self._pattern, self._context, self._window, events)

    def _places(self, match: Found) -> tuple[int, int]:
        return self._window.opening(match.first, match.last), self._window.closing(match.first)


def _gpms(mark: Mark) -> frozenset[str] | None:
    """Return the GPMs with events that are needed; None if all events are, since any event may be between two
    others.
    """
    if isinstance(mark.node, Maybe) or mark.entry.operator is Strategy.STRICT:
        return None
    return frozenset(gpm for unit in units(mark.node.element) for gpm in gpms_of(unit))


def _read(leading: Leading) -> frozenset[str] | None:
    return None if leading.operator is Strategy.STRICT else _gpms(leading.mark)


def _events(run: PartialMatch) -> tuple[Choice, ...]:
    return (*run.before, *run.choices)


def _complete(run: PartialMatch, match: Found) -> Partial:
    return Partial(_events(run), match.rows, (), marks=tuple(gap.mark for gap in run.gaps))
