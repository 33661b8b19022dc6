"""Runs, and the index of waiting runs: by gate, by the values of their key, by their first event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from spaseq.events import Stamp, precedes
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Rows
from spaseq.matching.interpreter.program import Gate, GateEdge
from spaseq.matching.model import Choice, Occurrence
from spaseq.matching.search import Leading, Mark

#: A run's choices, newest first; runs that branched off each other share them.
History = tuple["History", Choice] | None

_SEVERAL: Final = -1

#: Estimated bytes of a waiting run, of one of its rows, and of a variable or iteration there.
_WAIT: Final = 900
_ROW: Final = 300
_ITEM: Final = 50


class MatchEnd(NamedTuple):
    """The end of a match so far, which every further event must follow. ``stream`` is -1 if its events are of
    several streams.
    """

    time: int
    stream: int
    n: int

    def precedes(self, stamp: Stamp) -> bool:
        """Return whether every event of the match precedes an event."""
        if stamp.time != self.time:
            return stamp.time > self.time
        return stamp.stream == self.stream and stamp.n > self.n


def frontier(stamps: Sequence[Stamp]) -> MatchEnd:
    """Return the end of some events: only those of the latest time matter."""
    if len(stamps) == 1:
        return MatchEnd(*stamps[0])
    time = max(stamp.time for stamp in stamps)
    last = [stamp for stamp in stamps if stamp.time == time]
    if len({stamp.stream for stamp in last}) > 1:
        return MatchEnd(time, _SEVERAL, 0)
    return MatchEnd(time, last[0].stream, max(stamp.n for stamp in last))


def head(stamps: Sequence[Stamp]) -> tuple[Stamp, ...]:
    """Return the earliest of some events: an event that precedes these precedes all of them."""
    time = min(stamp.time for stamp in stamps)
    return tuple(stamp for stamp in stamps if stamp.time == time)


def all_precede(earlier: Iterable[Stamp], later: Sequence[Stamp]) -> bool:
    """Return whether each of ``earlier`` precedes each of ``later``."""
    return all(precedes(e, f) for e in earlier for f in later)


class Gap(NamedTuple):
    """An absent element, which is decided at the next element or at the end of the match's window.

    It begins ``after`` the match so far. ``owner`` is the element that closes it with its events, after the
    operator ``strategy``; ``begun`` are the choices before the events of ``owner``.
    """

    mark: Mark
    after: MatchEnd | None
    owner: int | None = None
    strategy: Strategy | None = None
    begun: History = None


class Home(Protocol):
    """The ``ALL`` that gets matches of its operands; ``wait`` is the run that waits for them.

    ``found``: the matches of each operand so far, by number.
    """

    @property
    def wait(self) -> Wait: ...

    @property
    def found(self) -> Sequence[Mapping[int, Part]]: ...


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTrace:
    """The choices that made a run, newest first; runs that branched off each other share them.

    A ``choice`` is a way through the sequence (see ``Accept.order``), then events, the earliest of which is
    at ``moment``. Of two runs, the one with the smaller choice where they differ first is preferred.
    """

    before: ChoiceTrace | None
    choice: tuple[object, ...]
    moment: tuple[float, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """A match so far, without its Ω.

    ``counts`` are the counters of the Kleenes in progress, ``since`` the times at which bounded elements
    began (None: with the next event). ``home`` is the ``ALL`` with this run's operand, and the operand's
    number; such a run is *loose*. ``before`` are the choices before that ``ALL``, ``began`` the units that
    the run took first. ``trace`` is kept where preference matters.
    """

    history: History = None
    first: Occurrence | None = None
    frontier: MatchEnd | None = None
    counts: Mapping[int, int] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    leading: tuple[Leading, ...] = ()
    home: tuple[Home, int] | None = None
    trace: ChoiceTrace | None = None
    since: Mapping[int, int | None] = field(default_factory=dict)
    before: tuple[Choice, ...] = ()
    began: frozenset[int] = frozenset()

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The chosen events, in the order in which they were taken."""
        return chosen(self.history)

    def beginning(self, units: Iterable[int]) -> PartialMatch:
        """Return the run with these as its first units, if it had none before."""
        return self if self.began else replace(self, began=frozenset(units))

    def took(self, choices: Sequence[Choice]) -> PartialMatch:
        """Return the run after one more step: events at one time, or those of an ``ALL``."""
        stamps = [event.stamp for _, event in choices]
        history = self.history
        for choice in choices:
            history = (history, choice)
        since = self.since
        if None in since.values():
            begun = min(stamp.time for stamp in stamps)
            since = {within: begun if time is None else time for within, time in since.items()}
        first = self.first
        if first is None:
            first = min((event for _, event in choices), key=lambda event: event.position)
        return replace(
            self,
            history=history,
            first=first,
            frontier=frontier(stamps),
            trace=None,
            since=since,
        )


def chosen(history: History, begun: History = None) -> tuple[Choice, ...]:
    """Return the choices of a history since an earlier one, in the order in which they were taken."""
    found = []
    link = history
    while link is not None and link is not begun:
        link, choice = link
        found.append(choice)
    return tuple(reversed(found))


#: A match of one operand of an ``ALL``.
Part = tuple[PartialMatch, Rows]


class Parts(NamedTuple):
    """The matches of one operand of an ``ALL``, by number, and the ``ALL`` itself."""

    found: dict[int, Part]
    home: Home


class Wait:
    """A run before a gate, with its Ω there.

    ``blockers`` are the events that its operator must not skip, each a set of simultaneous events. All are at
    one time, since later blockers would exclude nothing more.
    """

    __slots__ = ("begun", "blockers", "gate", "number", "rows", "run", "size")

    def __init__(self, number: int, gate: Gate, run: PartialMatch, rows: Rows) -> None:
        self.number = number
        self.gate = gate
        self.run = run
        self.rows = rows
        self.blockers: list[tuple[Stamp, ...]] = []
        # Per edge, the run and its Ω after the operator.
        self.begun: list[tuple[GateEdge, PartialMatch, Rows]] = []
        # An estimate of the bytes of the waiting run; 0 when it no longer waits.
        self.size = 0

    def weigh(self) -> int:
        """Compute ``size``, as of when the run begins to wait."""
        rows = (row for _, _, rows in self.begun for row in rows)
        self.size = _WAIT + sum(
            _ROW + _ITEM * len(row.binding) + _ITEM * sum(map(len, row.iterations.values())) for row in rows
        )
        return self.size

    def bars(self, stamps: Sequence[Stamp]) -> bool:
        """Return whether these events are excluded, because they come after a blocker."""
        return any(all_precede(blocker, stamps) for blocker in self.blockers)


class WaitIndex:
    """The runs that wait at a gate, by the values of its key."""

    def __init__(self, gate: Gate) -> None:
        self._key = gate.key
        self._all: dict[int, Wait] = {}
        self._buckets: dict[tuple[int, ...], dict[int, Wait]] = {}

    def add(self, wait: Wait) -> None:
        """Let a run wait."""
        if not self._key:
            self._all[wait.number] = wait
        for values in self._values(wait):
            self._buckets.setdefault(values, {})[wait.number] = wait

    def discard(self, wait: Wait) -> None:
        """Remove a waiting run."""
        self._all.pop(wait.number, None)
        if not self._all:
            self._all = {}  # a dict that was large once stays slow to iterate
        for values in self._values(wait):
            bucket = self._buckets.get(values)
            if bucket is not None and bucket.pop(wait.number, None) is not None and not bucket:
                del self._buckets[values]

    def concerned(self, gpm: str, event: Occurrence) -> Iterator[Wait]:
        """Yield the runs that an event with solutions of ``gpm`` may concern."""
        if not self._key:
            yield from self._all.values()
            return
        key = self._key
        for values in {tuple(solution[v] for v in key) for solution in event.solutions[gpm]}:
            yield from self._buckets.get(values, {}).values()

    def _values(self, wait: Wait) -> Iterable[tuple[int, ...]]:
        key = self._key
        return {tuple(row.binding[v] for v in key) for row in wait.rows} if key else ()
