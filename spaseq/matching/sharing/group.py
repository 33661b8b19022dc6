"""Groups: queries with a common prefix, run as one.

The members stay separate queries: each gets the matches that it would get alone, regardless of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.errors import EngineError
from spaseq.events import EventBatch
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.history import History
from spaseq.matching.columns.matcher import PushedPattern, Solve
from spaseq.matching.model import StreamWindow
from spaseq.matching.sharing.member import GroupPart, Member
from spaseq.patterns.discrimination import Discrimination, needs
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.sharing import Values, renamed_columns
from spaseq.patterns.spectra.solutions import Solutions

Ints = npt.NDArray[np.int64]

_What = TypeVar("_What")


class Keeping(Protocol):
    """The bound of a group."""

    def begin(self) -> None:
        """Begin with the members, which have the group from now on."""
        ...

    def weigh(self, live: frozenset[int]) -> None:
        """Restrict the bound to these members."""
        ...


class PrefixGroup(ABC):
    """Members, and the matcher that runs them all; each matcher has its own subclass. ``error``: the error
    that has ended the members.

    Members that have seen events before the group continue as before, until the group has all events that
    their matches may have; then all of them move at once (``is_settled``). ``reached``: how many events the
    group has seen; ``reach``: the greatest distance of two events of a match.
    """

    error: Exception | None
    #: The bound that the group keeps, if it keeps one.
    kept: Keeping | None = None

    def __init__(self, members: Sequence[Member], windows: Sequence[StreamWindow]) -> None:
        """Group members that see their first events now. Raises ``BeyondTables``, with the
        members unchanged.
        """
        self._make(members, windows, [0] * len(members), 0)
        self.is_settled = True
        for part in self.parts:
            part.member.join(part, 0)
        self.drop()
        self.error = None

    @classmethod
    def of(
        cls, members: Sequence[Member], windows: Sequence[StreamWindow], offsets: Sequence[int], reached: int
    ) -> PrefixGroup:
        """Group members that may have seen events, when the group's count of events is ``reached``.

        ``windows`` are in the group's count, too; ``offsets``: the differences to the members' own positions.
        Raises ``BeyondTables``, as ``__init__`` does.
        """
        group = cls.__new__(cls)
        group._make(members, windows, offsets, reached)
        group.is_settled = False
        for part in group.parts:
            part.member.join(part, reached - part.offset if part.member.is_unseen else None)
        group.drop()
        group.error = None
        return group

    def _make(
        self, members: Sequence[Member], windows: Sequence[StreamWindow], offsets: Sequence[int], reached: int
    ) -> None:
        # This error stays until all have joined: an interrupt before that ends the members that have joined.
        self.error = EngineError("an interrupt came while several queries began as one")
        self.windows = windows
        self.widest = max(windows, key=lambda window: window.size)
        self.parts = self.prepare(members, offsets)
        if self.kept is not None:
            self.kept.begin()
        self.reached = reached
        self.reach = self.widest.reach
        #: The place of its first event on the window's axis.
        self._first: int | None = None
        #: For the last event, if it came alone: the number of solutions of each GPM that has some.
        self.matched: dict[str, int] | None = None
        self._gpms: dict[str, tuple[GpmEvaluator, tuple[str, ...]]] = {}
        # An index of the GPMs that an event may concern; created for the first single event.
        self._index: Discrimination[str] | None = None
        self._nothing: dict[str, Solutions] = {}
        # The object that takes single events, with its GPMs; and whether it can be used, once this is known.
        self._taking: tuple[Taking, Sequence[str]] | None = self.alone()
        self._is_asked: bool | None = None

    @abstractmethod
    def prepare(self, members: Sequence[Member], offsets: Sequence[int]) -> Sequence[GroupPart]:
        """Create the matcher of the members, and return each member's part; their windows are known."""

    @abstractmethod
    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """Process events, up to ``reached``; give members their matches."""

    @abstractmethod
    def alone(self) -> tuple[Taking, Sequence[str]] | None:
        """Return the object that takes single events, and the GPMs that it evaluates, in order. Return None
        if the group takes no single events.
        """

    @abstractmethod
    def look_one(self, event: Single, start: int) -> bool:
        """Do what ``look`` does for a single event. If the event is large, do nothing and return False."""

    @abstractmethod
    def narrow(self, live: frozenset[int], reach: int) -> None:
        """Restrict the group to these members; ``reach``: the greatest extent of their matches on the
        window's axis.
        """

    def live(self) -> list[int]:
        """Return the numbers of the members that have not ended."""
        return [i for i, part in enumerate(self.parts) if part.until > self.reached and part.is_wanted]

    def shared(self, member: Member) -> tuple[int, ...]:
        """See ``Member.shared``."""
        live = [self.parts[i].member for i in self.live()]
        wanted = [(other.common.beginnings, other.queries()) for other in live]
        return tuple(sum(n for other, n in wanted if own in other) for own in member.common.beginnings)

    def lengths(self, first: Ints, last: Ints, history: History) -> Ints | None:
        """Return how far matches reach on the window's axis, given their first and last events.

        None if no live member's window ends before the group's.
        """
        windows = [self.windows[i] for i in self.live()]
        if all(window.reach == self.reach for window in windows):
            return None
        if windows[0].counted:
            return last - first
        stretch, places = history.stretch(np.concatenate([first, last]))
        times = stretch.events("time")[places]
        return np.asarray(times[len(first) :] - times[: len(first)])

    def drop(self) -> None:
        """Drop what no member needs any more."""
        live = self.live()
        self._gpms = _gpms(self.parts[i].member for i in live)
        self._index, self._nothing = None, {}
        self.reach = max((self.windows[i].reach for i in live), default=0)
        self.narrow(frozenset(live), self.reach)
        if self.kept is not None:
            self.kept.weigh(frozenset(live))

    def see(self, batch: EventBatch, start: int) -> None:
        """Process events, unless another member has already passed them; errors are raised by each member."""
        if start < self.reached or self.error is not None:
            return
        if not self.is_settled:
            self._let_members_move(batch, start)
        self.attempt(lambda: self.look(batch, start, self._solutions(batch)))

    @property
    def takes_alone(self) -> bool:
        """Return whether ``see_alone`` can be called, instead of ``see`` by each member that an event
        concerns.
        """
        if self._is_asked is None:
            self._is_asked = self._expect()
        return self._is_asked and self.is_settled and self.error is None

    def see_alone(self, event: Single, start: int) -> bool:
        """Do what ``see`` does for a single event. If the event is large, do nothing and return False."""
        self.matched = {}  # for errors: nothing counted
        return self.attempt(lambda: self.look_one(event, start)) is not False

    def _expect(self) -> bool:
        """Prepare to take single events for the members' GPMs; return whether that is possible."""
        if self._taking is None:
            return False
        taking, gpms = self._taking
        index, known, asked = self._indexed(), _gpms(part.member for part in self.parts), []
        for name in gpms:
            gpm, names = known[name]
            if not gpm.is_for_one:
                return False
            # Python evaluates a GPM only for events that concern the query.
            solve = gpm.of_one if gpm.join is not None else partial(_concerned, index, name, gpm.of_one)
            asked.append(PushedPattern(names, gpm.number, solve, gpm.join, gpm.streams, is_told=True))
        taking.watch = self._count
        return taking.expect(asked)

    def _count(self, found: Ints) -> None:
        for part in self.parts:
            if not part.member.is_over and part.member.has(part):
                part.count(found)

    def count(self) -> None:
        """Count the single events so far."""
        if self._taking is not None:
            self._taking[0].counts()

    def attempt(self, do: Callable[[], _What]) -> _What | None:
        """Call ``do`` once for all members together, and return its result. After an Exception, return None;
        each member raises that exception later.
        """
        found: _What | None = None
        try:
            found = do()
        except Exception as error:
            self.error = error
        except BaseException as error:
            self.error = EngineError(f"{type(error).__name__} came while several queries were run as one")
            raise
        if self.error is not None:
            for part in self.parts:
                part.member.stay(part)
        return found

    def _solutions(self, batch: EventBatch) -> dict[str, Solutions]:
        """Return the solutions of each GPM. For a single event, only GPMs that it may concern are
        evaluated.
        """
        self.matched = None
        if len(batch) > 1:
            return {name: self._evaluated(name, batch) for name in self._gpms}
        if self._index is None:
            self._index = self._indexed()
        solutions = dict(self._nothing)
        for name in self._index.of_event(batch.triples(0)):
            solutions[name] = self._evaluated(name, batch)
        for name in self._gpms.keys() - solutions.keys():
            solutions[name] = found = self._evaluated(name, batch)
            if not len(found):
                self._nothing[name] = found
        self.matched = {name: len(found) for name, found in solutions.items() if len(found)}
        return solutions

    def _indexed(self) -> Discrimination[str]:
        """Return the GPMs of live members, indexed by the triples they need."""
        index, known = Discrimination[str](), set[str]()
        for member in (self.parts[i].member for i in self.live()):
            for name, part in member.pattern.gpms.items():
                if (gpm := member.common.gpms[name]) not in known:
                    known.add(gpm)
                    index.add(gpm, needs(part.stateless, member.dictionary))
        return index

    def _evaluated(self, name: str, batch: EventBatch) -> Solutions:
        gpm, names = self._gpms[name]
        return renamed_columns(gpm.evaluate(batch), gpm.names, names)

    def _let_members_move(self, batch: EventBatch, start: int) -> None:
        """Move members as soon as no match of theirs can have an event from before the group's first."""
        at = self.widest.place(int(batch.time[0]), start)
        if self._first is None:
            self._first = at
        if at - self.widest.reach > self._first:
            self.is_settled = True
            for part in self.parts:
                if part.is_wanted and not part.member.has(part):
                    part.member.move(start - part.offset)


def _gpms(members: Iterable[Member]) -> dict[str, tuple[GpmEvaluator, tuple[str, ...]]]:
    """Return the evaluator of each GPM of members, and the common names of its variables."""
    return {
        member.common.gpms[name]: (gpm, tuple(member.common.variables[n] for n in gpm.names))
        for member in members
        for name, gpm in member.gpms.items()
    }


def _concerned(index: Discrimination[str], name: str, solve: Solve, event: Single) -> Values | None:
    """Return a GPM's solutions in a single event; it is evaluated only if the event may concern it."""
    return solve(event) if name in index.of_single(event.terms) else ()
