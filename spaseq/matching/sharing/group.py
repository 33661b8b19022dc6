"""Queries that begin alike, run as one: what is found goes to each of them.

The members stay queries of their own: they come to their matches as if alone, whatever becomes of the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.errors import EngineError
from spaseq.events import Clock, EventBatch
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.sharing import renamed_columns
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.limits import UNLIMITED, Budget
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.columns.evaluator import Immediate
from spaseq.matching.columns.found import Block
from spaseq.matching.columns.history import Past
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.kernel.compiled import _kernel_layout as lay
from spaseq.matching.kernel.compiled import _kernel_memory as mem
from spaseq.matching.kernel.evaluator import Kernel
from spaseq.matching.kernel.matches import Ints, Matches, Runs, unrolled
from spaseq.matching.kernel.replay import Path, Replay
from spaseq.matching.kernel.tables.compiled import compile_tables
from spaseq.matching.model import Bounds
from spaseq.matching.sharing.canonical import Canonical
from spaseq.matching.sharing.merge import Merged, merge
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.cohort import Cohort

_ALWAYS: Final = 1 << 62


class Member(Immediate):
    """One of the queries: an evaluator to which others bring the matches.

    ``until``: from this position on it wants no match that ends there. ``queries`` says for how many queries,
    which ask the same, it stands.
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
        self.queries: Callable[[], int] = lambda: 1
        self._cohort: Cohort | None = cohort
        self._group: Group | None = None
        self._found: deque[tuple[int, list[Block]]] = deque()

    @property
    def is_shared(self) -> bool:
        """Whether it is in a group; if not, it is to be evaluated by itself."""
        return self._group is not None

    @property
    def is_alone(self) -> bool:
        """Whether it is in no group, and will be in none."""
        return self._group is None and self._cohort is None

    @property
    def shared(self) -> tuple[int, ...]:
        """How many queries want the partial matches of its first element, its first two, and so on."""
        return () if self._group is None else self._group.shared(self)

    def join(self, group: Group, number: int, merged: Merged) -> None:
        """It is a member of a group, under a number."""
        self._group = group
        compiled = compile_tables(self.pattern, self.dictionary.pin)
        self._names = [
            (merged.compiled.gpms.index(self.common.gpms[gpm]), *self._columns(gpm)) for gpm in compiled.gpms
        ]
        # The group's columns are its own, too, under other names: they are counted there.
        keys = tuple(variable.name for variable in self.pattern.query.partition)
        self._past = Past(compiled.gpms, keys, Budget(UNLIMITED))
        self._last = -1
        self._replay = Replay(compiled, self.context, self._past)
        self._matches = Matches(self.pattern, compiled, self._past, self._replay, self.context.order)
        self._candidates, self._accepts = merged.candidates[number], merged.accepts[number]

    def _columns(self, gpm: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        own = self.gpms[gpm].names
        return tuple(self.common.variables[name] for name in own), own

    # --- as an evaluator ------------------------------------------------------------------------

    def see(self, batch: EventBatch, start: int, begin: int) -> None:
        """Events are there, the first at position ``start``; ``begin`` is when the first of all was.

        To be called before any member is given later ones: then what is found in these waits for ``process``.
        """
        if self._cohort is not None:
            cohort, self._cohort = self._cohort, None
            if self._group is None:
                cohort.begin(self, begin, batch.clock is Clock.TICKS)
        if self._group is not None:
            self._group.see(batch, start)

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        del solutions  # the group has its own
        while self._found and self._found[0][0] <= start + len(batch):
            yield from self._found.popleft()[1]
        yield from self.close()

    def close(self) -> Iterator[Block]:
        """No match waits for time to pass; but what has ended the group ends this query, too."""
        if self._group is not None and self._group.error is not None:
            raise self._group.error
        yield from ()

    def leave(self, position: int) -> None:
        """It wants no match that ends with the event at a position, or later."""
        self.until = min(self.until, position)
        if self._group is not None:
            self._group.drop()
        elif self._cohort is not None:
            self._cohort.withdraw(self)
            self._cohort = None

    # --- as a part of the group -----------------------------------------------------------------

    def follow(self, past: Past) -> None:
        """Has the events of the group, under its own names."""
        for chunk in past.since(self._last):
            tables = tuple(renamed_columns(chunk.solutions[g], common, own) for g, common, own in self._names)
            rows = None if chunk.rows is None else chunk.rows[[g for g, _, _ in self._names]]
            oldest = next(iter(past)).last
            self._past.add(Chunk(chunk.start, chunk.batch, tables, chunk.last, rows), oldest)
            self._last = chunk.start

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Whether events are relevant for a run of the group that is one of its own."""

        def own(events: Path) -> Path:
            return [(position, int(self._candidates[number])) for position, number in events]

        return self._replay.is_relevant(own(path), own(step), key)

    def take(self, runs: Runs, before: int) -> None:
        """Runs of the group that are its matches; all events before a position were seen."""
        steps = runs.steps.copy()
        steps[:, 1] = self._candidates[steps[:, 1]]
        own = runs._replace(ways=self._accepts[runs.ways], steps=steps)
        self._found.append((before, list(self._matches.of_runs(own))))


class Group:
    """Members, and the kernel that runs them all; ``error`` is what ended them."""

    def __init__(self, members: Sequence[Member], windows: Sequence[Bounds]) -> None:
        """Raises ``BeyondTables``; then nothing has become of the members."""
        first = members[0]
        self.error: Exception | None = None
        self._members = members
        self._windows = windows
        self._merged = merge([member.common.pattern for member in members], first.dictionary.pin)
        for number, member in enumerate(members):
            member.join(self, number, self._merged)
        self._kernel = _Together(self, self._merged, first, self._widest())
        self._reached = 0
        self._gpms: dict[str, tuple[GpmEvaluator, tuple[str, ...]]] = {}
        self.drop()

    def _live(self) -> list[int]:
        return [i for i, member in enumerate(self._members) if member.until > self._reached]

    def _widest(self) -> Bounds:
        return max(self._windows, key=lambda window: window.size)

    def shared(self, member: Member) -> tuple[int, ...]:
        """See ``Member.shared``."""
        live = [self._members[i] for i in self._live()]
        wanted = [(other.common.beginnings, other.queries()) for other in live]
        return tuple(sum(n for other, n in wanted if own in other) for own in member.common.beginnings)

    def drop(self) -> None:
        """Asks for nothing that no member wants any more."""
        live = self._live()
        self._gpms = {
            member.common.gpms[name]: (gpm, tuple(member.common.variables[n] for n in gpm.names))
            for member in (self._members[i] for i in live)
            for name, gpm in member.gpms.items()
        }
        self._kernel.restrict(self._merged.gates, frozenset(live))
        self._kernel.reach(max((self._windows[i].reach for i in live), default=0))

    def see(self, batch: EventBatch, start: int) -> None:
        """Takes events, unless another member came first; errors are for each member to meet."""
        if start < self._reached or self.error is not None:
            return
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

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Whether events are relevant for a run: to all members that have it alike."""
        number = step[0][1]
        for i in self._live():
            if self._merged.candidates[i][number] >= 0:
                self._members[i].follow(self._kernel.past)
                return self._members[i].is_relevant(path, step, key)
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
            member, accepts = self._members[i], np.flatnonzero(self._merged.accepts[i] >= 0).tolist()
            own = np.concatenate([order[cuts[a] : cuts[a + 1]] for a in accepts])
            own = np.sort(own) if len(accepts) > 1 else own
            if lengths is not None:
                own = own[lengths[own] <= self._windows[i].size]
            if member.until < _ALWAYS:
                own = own[ends[own] < member.until]
            if len(own):
                member.follow(past)
                member.take(_some(runs, offsets, own), self._reached)

    def _lengths(self, first: Ints, last: Ints, past: Past) -> Ints | None:
        """How far matches reach on the window's axis; None if all members' windows are the same."""
        windows = [self._windows[i] for i in self._live()]
        if len({window.size for window in windows}) < 2:
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
