"""Queries that begin alike, run as one: what is found goes to each of them.

The members stay queries of their own: they come to their matches as if alone, whatever becomes of the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.errors import EngineError
from spaseq.events import Clock, EventBatch
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.sharing import renamed_columns
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.limits import Budget
from spaseq.matching.columns.evaluator import Immediate
from spaseq.matching.columns.found import Block
from spaseq.matching.columns.history import Past
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.kernel.compiled import _kernel_layout as lay
from spaseq.matching.kernel.compiled import _kernel_memory as mem
from spaseq.matching.kernel.evaluator import Kernel
from spaseq.matching.kernel.matches import Ints, Runs, unrolled
from spaseq.matching.kernel.replay import Path
from spaseq.matching.kernel.tables.compiled import compile_tables
from spaseq.matching.model import Bounds
from spaseq.matching.sharing.canonical import Canonical
from spaseq.matching.sharing.merge import Merged, merge
from spaseq.matching.sharing.part import Part
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.kernel.tables.compiled import Compiled
    from spaseq.matching.sharing.cohort import Cohort

_ALWAYS: Final = 1 << 62


class Member(Immediate):
    """One of the queries: an evaluator to which others bring the matches.

    ``until``: from this position on it wants no match that ends there. ``queries`` says for how many queries,
    which ask the same, it stands. ``begin``: when its first window begins, once events have come; ``ticks``:
    what times are. ``is_courted``: it will have a group as soon as events come.
    """

    def __init__(
        self,
        cohort: Cohort,
        pattern: SequencePattern,
        common: Canonical,
        gpms: Mapping[str, GpmEvaluator],
        context: Context,
        dictionary: Dictionary,
    ) -> None:
        self.pattern = pattern
        self.window = pattern.query.window
        self.common = common
        self.gpms = gpms
        self.context = context
        self.dictionary = dictionary
        self.until = _ALWAYS
        self.begin: int | None = None
        self.ticks = False
        self.is_courted = False
        self.queries: Callable[[], int] = lambda: 1
        self._cohort: Cohort | None = cohort
        self._part: Part | None = None
        self._next: Part | None = None
        self._found: deque[tuple[int, list[Block]]] = deque()

    @cached_property
    def compiled(self) -> Compiled:
        """Its tables by itself."""
        return compile_tables(self.pattern, self.dictionary.pin)

    @property
    def is_over(self) -> bool:
        """Whether it wants nothing any more."""
        return self.until < _ALWAYS

    @property
    def is_waiting(self) -> bool:
        """Whether a group gets to know the events that it needs before it has this query's matches."""
        return self._next is not None

    @property
    def is_alone(self) -> bool:
        """Whether it is in no group, and will be in none soon."""
        return not (self._part or self._next or self._cohort or self.is_courted)

    @property
    def is_unseen(self) -> bool:
        """Whether it has seen no event."""
        return self._cohort is not None

    def is_shared_at(self, position: int) -> bool:
        """Whether its matches that end there, or later, come from a group; if not, it evaluates by itself."""
        return self._part is not None and position >= self._part.since

    @property
    def shared(self) -> tuple[int, ...]:
        """How many queries want the partial matches of its first element, its first two, and so on."""
        return () if self._part is None else self._part.group.shared(self)

    # --- as an evaluator ------------------------------------------------------------------------

    def see(self, batch: EventBatch, start: int, begin: int) -> None:
        """Events are there, the first at position ``start``; ``begin`` is when the first of all was.

        To be called before any member is given later ones: then what is found in these waits for ``process``.
        """
        if self.begin is None:
            self.begin, self.ticks = begin, batch.clock is Clock.TICKS
        if self._cohort is not None:
            cohort, self._cohort = self._cohort, None
            if self._part is None:
                cohort.begin(self, begin, self.ticks)
        if self._next is not None:  # may become that of now
            self._next.group.see(batch, start + self._next.offset)
        if self._part is not None:
            self._part.group.see(batch, start + self._part.offset)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        del solutions  # the group has its own
        while self._found and self._found[0][0] <= start + len(batch):
            yield from self._found.popleft()[1]
        yield from self.close()

    def close(self) -> Iterator[Block]:
        """No match waits for time to pass; but what has ended the group ends this query, too."""
        if self._part is not None and self._part.group.error is not None:
            raise self._part.group.error
        yield from ()

    def leave(self, position: int) -> None:
        """It wants no match that ends with the event at a position, or later."""
        self.until = min(self.until, position)
        for part in (self._part, self._next):
            if part is not None:
                part.group.drop()
        if self._cohort is not None:
            self._cohort.withdraw(self)
            self._cohort = None

    # --- as a part of the group -----------------------------------------------------------------

    def join(self, part: Part, now: int | None) -> None:
        """It becomes a member of a group; ``now``: its position, if it has the group's matches at once."""
        if self._cohort is not None:
            self._cohort.withdraw(self)
            self._cohort = None
        self.is_courted = False
        self._next = part
        if now is not None:
            self.move(now)

    def move(self, since: int) -> None:
        """The group that it waited for has all the events that it needs, from a position on."""
        before, part, self._next = self._part, self._next, None
        assert part is not None
        self._part, part.since = part, since
        if before is not None:
            before.group.drop()

    def stay(self, part: Part) -> None:
        """A group is over: if that is the one that it waited for, all stays as it is."""
        self._next = None if part is self._next else self._next

    def wants(self, part: Part) -> bool:
        """Whether a group is to look for its matches, now or later."""
        return part is self._part or part is self._next

    def has(self, part: Part) -> bool:
        """Whether its matches are those of this group."""
        return part is self._part

    def take(self, found: list[Block], before: int) -> None:
        """Matches; all events before a position were seen."""
        self._found.append((before, found))


class Group:
    """Members, and the kernel that runs them all; ``error`` is what ended them.

    Members that have seen events before the group has go on as they did, until it knows all the events that
    their matches may have: then all of them move at once (``is_settled``).
    """

    def __init__(self, members: Sequence[Member], windows: Sequence[Bounds]) -> None:
        """Members that see the first events now. Raises ``BeyondTables``; then nothing has become of them."""
        self._make(members, windows, [0] * len(members), 0)
        for part in self._parts:
            part.member.join(part, 0)
        self.is_settled = True
        self.drop()

    @classmethod
    def of(
        cls, members: Sequence[Member], windows: Sequence[Bounds], offsets: Sequence[int], reached: int
    ) -> Group:
        """Members that may have seen events, as many as ``reached`` in the group's counting.

        ``windows`` are in that, too; ``offsets``: what their own positions lack in it. Raises as
        ``__init__`` does.
        """
        group = cls.__new__(cls)
        group._make(members, windows, offsets, reached)
        for part in group._parts:
            part.member.join(part, reached - part.offset if part.member.is_unseen else None)
        group.is_settled = False
        group.drop()
        return group

    def _make(
        self, members: Sequence[Member], windows: Sequence[Bounds], offsets: Sequence[int], reached: int
    ) -> None:
        first = members[0]
        self.error: Exception | None = None
        self._windows = windows
        self._merged = merge([member.common.pattern for member in members], first.dictionary.pin)
        self._parts = [
            Part(self, member, offset, number, self._merged)
            for number, (member, offset) in enumerate(zip(members, offsets, strict=True))
        ]
        self._widest = max(windows, key=lambda window: window.size)
        self._kernel = _Together(self, self._merged, first, self._widest)
        self._reached = reached
        self._reach = self._widest.reach
        #: Where the first of its events is on the window's axis.
        self._first: int | None = None
        self._gpms: dict[str, tuple[GpmEvaluator, tuple[str, ...]]] = {}

    def _live(self) -> list[int]:
        return [i for i, part in enumerate(self._parts) if part.until > self._reached and part.is_wanted]

    def shared(self, member: Member) -> tuple[int, ...]:
        """See ``Member.shared``."""
        live = [self._parts[i].member for i in self._live()]
        wanted = [(other.common.beginnings, other.queries()) for other in live]
        return tuple(sum(n for other, n in wanted if own in other) for own in member.common.beginnings)

    def drop(self) -> None:
        """Asks for nothing that no member wants any more."""
        live = self._live()
        self._gpms = {
            member.common.gpms[name]: (gpm, tuple(member.common.variables[n] for n in gpm.names))
            for member in (self._parts[i].member for i in live)
            for name, gpm in member.gpms.items()
        }
        self._kernel.restrict(self._merged.gates, frozenset(live))
        self._reach = max((self._windows[i].reach for i in live), default=0)
        self._kernel.reach(self._reach)

    def see(self, batch: EventBatch, start: int) -> None:
        """Takes events, unless another member came first; errors are for each member to meet."""
        if start < self._reached or self.error is not None:
            return
        if not self.is_settled:
            self._settle(batch, start)
        try:
            solutions = {
                name: renamed_columns(gpm.evaluate(batch), gpm.names, names)
                for name, (gpm, names) in self._gpms.items()
            }
            found = self._kernel.found_in(batch, start, solutions)
            self._reached = start + len(batch)
            if found is not None:
                self._give(found)
        except Exception as error:
            self.error = error
        except BaseException as error:
            self.error = EngineError(f"{type(error).__name__} came while several queries were run as one")
            raise
        if self.error is not None:
            for part in self._parts:
                part.member.stay(part)

    def _settle(self, batch: EventBatch, start: int) -> None:
        """Members move as soon as no match of theirs can have an event from before the group's first."""
        at = self._widest.place(int(batch.time[0]), start)
        if self._first is None:
            self._first = at
        if at - self._widest.reach > self._first:
            self.is_settled = True
            for part in self._parts:
                if part.is_wanted and not part.member.has(part):
                    part.member.move(start - part.offset)

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Whether events are relevant for a run: to all members that have it alike."""
        number = step[0][1]
        for i in self._live():
            if self._merged.candidates[i][number] >= 0:
                self._parts[i].follow(self._kernel.past)
                return self._parts[i].is_relevant(path, step, key)
        return False  # nobody wants it

    def _give(self, runs: Runs) -> None:
        """Gives members their matches."""
        past = self._kernel.past
        offsets = np.concatenate([[0], np.cumsum(runs.depths)])
        ends = runs.steps[offsets[1:] - 1, 0]
        lengths = self._lengths(runs.steps[offsets[:-1], 0], ends, past)
        order = np.argsort(runs.ways, kind="stable")
        cuts = np.searchsorted(runs.ways[order], np.arange(len(self._merged.compiled.accepts) + 1))
        for i in self._live():
            part, accepts = self._parts[i], np.flatnonzero(self._merged.accepts[i] >= 0).tolist()
            if not part.member.has(part):
                continue
            own = np.concatenate([order[cuts[a] : cuts[a + 1]] for a in accepts])
            own = np.sort(own) if len(accepts) > 1 else own
            if lengths is not None:
                own = own[lengths[own] <= self._windows[i].size]
            if part.member.is_over:
                own = own[ends[own] < part.until]
            if len(own):
                part.follow(past)
                part.take(_some(runs, offsets, own), self._reached)

    def _lengths(self, first: Ints, last: Ints, past: Past) -> Ints | None:
        """How far matches reach on the window's axis; None if no member's window ends before the kernel's."""
        windows = [self._windows[i] for i in self._live()]
        if all(window.reach == self._reach for window in windows):
            return None
        if windows[0].counted:
            return last - first
        stretch, places = past.stretch(np.concatenate([first, last]))
        times = stretch.events("time")[places]
        return np.asarray(times[len(first) :] - times[: len(first)])


class _Together(Kernel):
    """The kernel of a group: its matches go to the members."""

    def __init__(self, group: Group, merged: Merged, first: Member, window: Bounds) -> None:
        context = first.context
        budget = Budget(context.budget.limits.times(len(merged.accepts)))
        super().__init__(merged.pattern, first.dictionary, context, window, merged.compiled, budget)
        self._group = group
        self._runs: list[Runs] = []

    @property
    def past(self) -> Past:
        """The events that runs may still have."""
        return self._columns.past

    def found_in(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Runs | None:
        """The runs that events complete, if there are any; see ``process``."""
        self._runs = []
        for _ in self.process(batch, start, solutions):
            pass
        return Runs(*map(np.concatenate, zip(*self._runs, strict=True))) if self._runs else None

    def reach(self, limit: int) -> None:
        """Runs go on so far on the window's axis from their first event."""
        self._tables[v.LIMIT] = limit

    def restrict(self, gates: Sequence[frozenset[int]], members: frozenset[int]) -> None:
        """Nothing goes on at the gates that are of other members alone."""
        t = self._tables
        begin = int(t[t[v.START] + lay.P_GATES])
        rows = t[begin : begin + len(gates) * lay.GATE_SIZE].reshape(-1, lay.GATE_SIZE)
        over = [number for number, of in enumerate(gates) if not of & members]
        rows[over, lay.G_CANDIDATES_END] = rows[over, lay.G_CANDIDATES]

    def _found(self) -> Iterator[Block]:
        m = self._memory.ints
        if m[mem.FOUND_COUNT]:
            self._runs.append(unrolled(m, len(self._keys)))
        yield from ()

    def _is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        return self._group.is_relevant(path, step, key)


def _some(runs: Runs, offsets: Ints, numbers: Ints) -> Runs:
    """Some of the runs, the events of which begin at ``offsets``."""
    depths = runs.depths[numbers]
    begins = np.cumsum(depths) - depths
    events = np.repeat(offsets[:-1][numbers] - begins, depths) + np.arange(int(depths.sum()))
    return Runs(runs.ends[numbers], runs.keys[numbers], runs.ways[numbers], depths, runs.steps[events])
