"""Queries that begin alike, run as one: what is found goes to each of them.

The members stay queries of their own: they come to their matches as if alone, whatever becomes of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from spaseq.errors import EngineError
from spaseq.events import EventBatch
from spaseq.gpm.discrimination import Discrimination, needs
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.sharing import renamed_columns
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.limits import Budget
from spaseq.matching.columns.found import Block
from spaseq.matching.columns.history import Past
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.host import Key
from spaseq.matching.kernel.compiled import _kernel_layout as lay
from spaseq.matching.kernel.compiled import _kernel_memory as mem
from spaseq.matching.kernel.evaluator import Kernel
from spaseq.matching.kernel.matches import Ints, Runs, unrolled
from spaseq.matching.kernel.replay import Path
from spaseq.matching.model import Bounds
from spaseq.matching.sharing.member import Member
from spaseq.matching.sharing.merge import Merged, merge
from spaseq.matching.sharing.part import Part


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
        #: Of the event seen last, if it came alone, how many solutions the GPMs have that have some.
        self.matched: dict[str, int] | None = None
        self._gpms: dict[str, tuple[GpmEvaluator, tuple[str, ...]]] = {}
        self._index: Discrimination[str] = Discrimination()
        self._nothing: dict[str, Solutions] = {}

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
        self._index, self._nothing = Discrimination(), {}
        known = set[str]()
        for member in (self._parts[i].member for i in live):
            for name, part in member.pattern.gpms.items():
                if (gpm := member.common.gpms[name]) not in known:
                    known.add(gpm)
                    self._index.add(gpm, needs(part.stateless, member.dictionary))
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
            solutions = self._solutions(batch)
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

    def _solutions(self, batch: EventBatch) -> dict[str, Solutions]:
        """Those of each GPM. Of an event that comes alone those are asked that it may concern."""
        self.matched = None
        if len(batch) > 1:
            return {name: self._evaluated(name, batch) for name in self._gpms}
        solutions = dict(self._nothing)
        for name in self._index.of_event(batch.triples(0)):
            solutions[name] = self._evaluated(name, batch)
        for name in self._gpms.keys() - solutions.keys():
            solutions[name] = found = self._evaluated(name, batch)
            if not len(found):
                self._nothing[name] = found
        self.matched = {name: len(found) for name, found in solutions.items() if len(found)}
        return solutions

    def _evaluated(self, name: str, batch: EventBatch) -> Solutions:
        gpm, names = self._gpms[name]
        return renamed_columns(gpm.evaluate(batch), gpm.names, names)

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
