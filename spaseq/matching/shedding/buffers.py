"""The utility of buffered rows: in how many matches they are, and the cost of keeping them.

The work of an event is to search the pairs (triples, …) of rows that may precede it. So a row's cost is its
share of its buffer, and its value its share of the matches. Classes with the smallest ratio of these shares
are shed first, over all buffers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.bounds import Policy
from spaseq.language.scope import mentioned
from spaseq.matching.lazy.compiled import _kernel_layout as lay
from spaseq.matching.lazy.memory import BufferMemory
from spaseq.matching.lazy.plans import LazyPlan
from spaseq.matching.lazy.records import counter, frame, moment, outcome, plan, ring, waiting
from spaseq.matching.lazy.tables import LazyTables
from spaseq.matching.shedding import _kernel_rows as k
from spaseq.matching.shedding.query import sheddable
from spaseq.matching.shedding.rates import shrunk

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Recent counts are kept for this many parts of a window.
_PARTS: Final = 16
#: Edges are learned from this many values on, and again when one class has this share of the new rows.
_FEW: Final = 64
_SKEWED: Final = 0.4
_STEPS: Final = 24
#: The share of rows kept as a sample; the most, for the most promising rows.
_SAMPLED: Final = 1 / 5
LEAST_SAMPLED: Final = 1 / 32
_MOST_SAMPLED: Final = 1 / 4


@dataclass(slots=True)
class _WindowPart:
    """A part of a window that began at ``axis``: the rows that came in it, by class, and the number of
    events.
    """

    axis: int
    came: Floats
    events: int = 0


class BufferModel:
    """The counts of the classes of a query's rows. ``kept``: the share of each class to keep."""

    def __init__(self, classes: BufferClasses, reach: int, policy: Policy) -> None:
        """``reach``: the reach of a window on its axis; 0 for tumbling ones, with their numbers as axis."""
        self.classes, self._reach, self._policy = classes, reach, policy
        count = len(classes.of)
        self.kept: Floats = np.ones(count)
        #: The share of each class that always stays: missing matches of removed rows cannot be observed.
        self.sampled: Floats = np.full(count, _SAMPLED)
        #: The range of ranks of each class's rows: see ``passing.rank``.
        self.low, self.high = np.zeros((2, count))
        self.came, self.declined, self.shed, self.won = np.zeros((4, count))
        self.edges: Floats = np.zeros(classes.edges)
        self.samples: Floats = np.zeros(len(classes.features) * (k.SAMPLE + 1))
        self.features = classes.features.copy()
        arrays = self.sampled, self.came, self.declined, self.shed, self.won
        read = classes.buffers.ravel(), self.features.ravel(), self.edges, self.samples, classes.sites
        #: The arrays, in the form that kernels take.
        self.arrays = k.RowClasses(*read, *arrays)
        self._parts: deque[_WindowPart] = deque()
        # By class, and halved within a window: the rows that stayed, and the credit for matches that they
        # were in.
        self._stayed, self._matched = np.zeros((2, count))
        self._relative: Floats = np.ones(count)
        # Recent units of work, in total and for matches.
        self._units = self._for_matches = 0.0

    def work(self, units: float, matches: int) -> None:
        """Count units of work and matches. A match takes two units: it was tested, and it is returned."""
        self._units += units
        self._for_matches += 2.0 * matches

    def pass_to(self, axis: int, events: int) -> bool:
        """Count events; ``axis`` is the current place. Return whether a new part of the window begins."""
        begins = not self._parts or self._is_over(axis)
        if begins:
            self._parts.append(_WindowPart(axis, np.zeros(len(self.came))))
            self._stayed *= 0.5 ** (1 / _PARTS)
            self._matched *= 0.5 ** (1 / _PARTS)
            self._units *= 0.5 ** (1 / _PARTS)
            self._for_matches *= 0.5 ** (1 / _PARTS)
        part = self._parts[-1]
        part.came += self.came
        part.events += events
        self._stayed += self.came - self.declined - 0.5 * self.shed
        np.maximum(self._stayed, 0.0, out=self._stayed)
        self._matched += self.won
        for counted in (self.came, self.declined, self.shed, self.won):
            counted[:] = 0.0
        while len(self._parts) > 1 and self._parts[1].axis <= axis - self._reach:
            self._parts.popleft()
        return begins

    def _is_over(self, axis: int) -> bool:
        last = self._parts[-1]
        if self._reach <= 0:
            return axis != last.axis
        # Even in a short window, not each event is a part.
        return axis - last.axis >= max(1, self._reach // _PARTS)

    # --- estimates --------------------------------------------------------------------------------

    @property
    def _window(self) -> Floats:
        """Return the rows that would be there without shedding, by class."""
        return np.asarray(sum((part.came for part in self._parts), np.zeros(len(self.came))))

    @property
    def by_buffer(self) -> Floats:
        """The rows that would be there without shedding, by buffer."""
        return self._by_buffer(self._window)

    def _by_buffer(self, rows: Floats) -> Floats:
        return np.bincount(self.classes.of, rows, minlength=len(self.classes.goes)).astype(np.float64)

    def _count(self, rows: Floats) -> Floats:
        """Return rows by buffer, from rows by class, weighted by their work: rows of many matches are more
        work.
        """
        return self._by_buffer(rows * self._weights)

    @property
    def _weights(self) -> Floats:
        """Return the work of a row of each class, relative to its buffer."""
        share = min(1.0, self._for_matches / max(1.0, self._units))
        return np.asarray(1 - share + share * self._relative)

    def load(self, rows: Floats) -> float:
        """Return how many rows, or pairs of rows, an event must test, with these many rows of each class."""
        return float(self._pairs(self._count(rows)))

    def _pairs(self, counts: Floats) -> Floats:
        """Return what ``load`` does, for counts by buffer; if these have several columns, for each column."""
        came = self._by_buffer(self._window)
        events = max(1, sum(part.events for part in self._parts))
        total = np.zeros(counts.shape[1:])
        for way in self.classes.ways:
            total += came[way.last] / events * np.prod(counts[list(way.others)], axis=0)
        return np.asarray(total)

    def learn(self) -> bool:
        """Learn the utility of rows, and edges where due; return whether classes have changed."""
        window = self._window
        changed = False
        for g, shape in enumerate(self.classes.shapes):
            own = self.classes.slice_of(g)
            features = range(*self.classes.buffers[g, [k.B_FEATURES, k.B_FEATURES_END]].tolist())
            for j, feature in enumerate(features):
                others = tuple(i for i in range(len(shape)) if i != j)
                changed |= self._cut(feature, window[own].reshape(shape).sum(axis=others))
        if changed:
            self.kept[:] = 1.0
            self._stayed = self._leveled(self._stayed)
            self._matched = self._leveled(self._matched)
            for part in self._parts:
                part.came = self._leveled(part.came)
            window = self._window
        for g in range(len(self.classes.shapes)):
            own = self.classes.slice_of(g)
            usual = (self._matched[own].sum() + 1e-6) / (self._stayed[own].sum() + 1.0)
            rates = shrunk(self._matched[own, None], self._stayed[own], usual)[:, 0]
            some = window[own].sum()
            mean = float((rates * window[own]).sum() / some) if some else float(rates.mean())
            self._relative[own] = rates / max(mean, 1e-12)
        self.sampled[:] = np.clip(_SAMPLED * self._relative, LEAST_SAMPLED, _MOST_SAMPLED)
        return changed

    def _leveled(self, counts: Floats) -> Floats:
        """Spread counts evenly over the classes of a buffer, as it is unknown which rows belong to which
        class now.
        """
        every = np.bincount(self.classes.of, counts, minlength=len(self.classes.goes))
        sizes = np.bincount(self.classes.of, minlength=len(self.classes.goes))
        return np.asarray((every / sizes)[self.classes.of])

    def _cut(self, feature: int, came: Floats) -> bool:
        """Learn the edges of a feature, given its counts by level; return whether they have changed."""
        row = self.features[feature]
        begin, count, room = int(row[k.F_EDGES]), int(row[k.F_COUNT]), int(row[k.F_LEVELS]) - 2
        ring = self.samples[feature * (k.SAMPLE + 1) :][: k.SAMPLE + 1]
        if ring[0] < _FEW or (count and came.max() <= max(_SKEWED, 3 / (count + 1)) * came.sum()):
            return False
        values = ring[1 : 1 + min(int(ring[0]), k.SAMPLE)]
        cut = np.unique(np.quantile(values, np.linspace(0, 1, room + 2)[1:-1], method="lower"))
        if len(cut) == count and np.array_equal(cut, self.edges[begin : begin + count]):
            return False
        self.edges[begin : begin + len(cut)] = cut
        row[k.F_COUNT] = len(cut)
        return True

    # --- selection --------------------------------------------------------------------------------

    def choose(self, rows: Floats, least: Floats, share: float) -> None:
        """Set which share of each class stays, so that this share of the load is left.

        ``rows``: by class; ``least``: the rows that stay in any case.
        """
        goes = self.classes.goes[self.classes.of]
        most = share * self.load(rows)
        self.kept[:] = 1.0
        if self._policy is Policy.RANDOM_STATE:
            self.kept[goes] = self._share(rows, goes, most)
        else:
            self._drop(rows, least, goes, most)

    def _share(self, rows: Floats, goes: npt.NDArray[np.bool_], most: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            share = (low + high) / 2
            left = np.where(goes, share, 1.0) * rows
            low, high = (share, high) if self.load(left) <= most else (low, share)
        return low

    def rank(self, rows: Floats) -> None:
        """Set the order in which rows are passed over, given the number of rows of each class."""
        goes = self.classes.goes[self.classes.of]
        self.low, self.high = np.zeros((2, len(rows)))
        order, loads = self._falling(rows, rows, goes)
        if loads[0] > 0:
            self.low[order], self.high[order] = loads[1:] / loads[0], loads[:-1] / loads[0]

    def _drop(self, rows: Floats, least: Floats, goes: npt.NDArray[np.bool_], most: float) -> None:
        """Drop the classes of lowest utility first."""
        order, loads = self._falling(rows, rows - least, goes)
        last = int(np.argmax(loads <= most)) if (loads <= most).any() else len(order)
        self.kept[order[:last]] = 0.0
        if last and loads[last] < most < loads[last - 1]:
            self.kept[order[last - 1]] = (most - loads[last]) / (loads[last - 1] - loads[last])

    def _falling(self, rows: Floats, lost: Floats, goes: npt.NDArray[np.bool_]) -> tuple[Ints, Floats]:
        """Return the classes in the order of dropping, and the load before each and after the last."""
        value = self._relative
        if self._policy is Policy.SELECTIVE:
            value = (self._by_buffer(self._matched) / (self._by_buffer(self._stayed) + 1.0))[self.classes.of]
        order = np.flatnonzero(goes)
        order = order[np.argsort(value[order], kind="stable")]
        loss = lost * self._weights
        gone = np.zeros((len(self.classes.goes), len(order) + 1))
        gone[self.classes.of[order], np.arange(1, len(order) + 1)] = loss[order]
        return order, self._pairs(self._count(rows)[:, None] - np.cumsum(gone, axis=1))


#: At most this many values of a buffer's rows define classes, with this many levels each.
_MOST: Final = 2
_LEVELS: Final = {1: 18, 2: 8}


@dataclass(frozen=True, slots=True)
class MatchEnding:
    """A way for matches to end: with a row of one GPM, after rows of ``others``, by their numbers."""

    last: int
    others: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BufferClasses:
    """The classes of all buffers. ``buffers`` and ``features`` are rows in the form of ``_kernel_rows``.

    ``of``: the buffer of each class; ``goes``: whether rows of a buffer may be shed; ``shapes``: the levels
    of each buffer's features; ``sites``: the GPM of each item of all plans; ``ways``: how matches may end.
    """

    buffers: Ints
    features: Ints
    of: Ints
    goes: npt.NDArray[np.bool_]
    shapes: tuple[tuple[int, ...], ...]
    sites: Ints
    ways: tuple[MatchEnding, ...]
    edges: int

    def slice_of(self, g: int) -> slice:
        """Return the classes of a buffer."""
        begin = int(self.buffers[g, k.B_CLASS])
        return slice(begin, begin + int(np.prod(self.shapes[g], dtype=np.int64)))


def classes(compiled: LazyTables) -> BufferClasses:
    """Return the classes of rows in the buffers of a query."""
    plans = [plan for plan, _ in compiled.plans]
    going = sheddable(plans)
    read = [*dict.fromkeys(_read(compiled))]
    places: dict[int, list[str]] = {}
    for g, name in compiled.columns:
        places.setdefault(g, []).append(name)
    of_one = {name: g for g, names in places.items() for name in names}
    shared = {name for g, names in places.items() for name in names if of_one[name] != g}
    buffers: list[tuple[int, ...]] = []
    rows: list[tuple[int, ...]] = []
    of: list[int] = []
    shapes: list[tuple[int, ...]] = []
    edges = 0
    for g, gpm in enumerate(compiled.gpms):
        told = [name for name in read if name in places.get(g, ()) and name not in shared][:_MOST]
        told = told if gpm in going else []
        shape = tuple(_LEVELS[len(told)] for _ in told)
        buffers.append((int(gpm in going), len(of), len(rows), len(rows) + len(told)))
        for name, levels in zip(told, shape, strict=True):
            rows.append((places[g].index(name), edges, 0, levels))
            edges += levels - 2
        of += [g] * int(np.prod(shape, dtype=np.int64))
        shapes.append(shape)
    numbers = {gpm: g for g, gpm in enumerate(compiled.gpms)}
    return BufferClasses(
        np.array(buffers, dtype=np.int64),
        np.array(rows or [(0, 0, 0, 2)], dtype=np.int64),
        np.array(of, dtype=np.int64),
        np.array([gpm in going for gpm in compiled.gpms]),
        tuple(shapes),
        np.array([numbers[item.atom.gpm] for item in compiled.sites], dtype=np.int64),
        tuple(way for plan in plans for way in _ways(plan, numbers)),
        max(edges, 1),
    )


def _ways(plan: LazyPlan, numbers: dict[str, int]) -> Iterator[MatchEnding]:
    for i, last in enumerate(plan.items):
        if not plan.after(i):
            others = (numbers[item.atom.gpm] for j, item in enumerate(plan.items) if j != i)
            yield MatchEnding(numbers[last.atom.gpm], tuple(others))


def _read(compiled: LazyTables) -> Iterator[str]:
    """Yield the variables that conditions read, those of the first conditions first."""
    for _, demanded in compiled.plans:
        for condition in demanded.conditions:
            yield from (str(step.what) for step in condition.code if step.op == "PUSH")
        for item in demanded.open:
            yield from sorted(mentioned(item.condition))


Codes = npt.NDArray[np.int8]

#: About this many of the matches found at once are sampled.
_SOME: Final = 64
#: All matches of one event together count at most like this many.
_AT_ONCE: Final = 2


class BufferRows:
    """The rows of a memory, with their shedding; their utility is in ``worth``."""

    def __init__(self, compiled: LazyTables, memory: BufferMemory, worth: BufferModel) -> None:
        self._tables, self._memory, self._worth = compiled.tables, memory, worth
        self.begin()
        # The rows counted so far.
        self._seen: Ints = np.zeros(len(compiled.gpms), dtype=np.int64)
        sites = len(worth.classes.sites)
        #: The value of a match, and the estimated number of missing matches, by its first item.
        self.weights, self.missed = np.ones(sites), np.zeros(sites)
        self._goes = worth.classes.goes
        of: list[tuple[int, int, int]] = []
        for number, (one, _) in enumerate(compiled.plans):
            items = int(self._tables[int(self._tables[lay.T_PLANS]) + number * plan.SIZE + plan.ITEMS])
            pairs = waiting.RECORD + memory.width - frame.SIZE + len(one.items) * moment.SIZE
            of += [(items, level, pairs) for level in range(len(one.items))]
        self._waiting: Ints = np.array(of, dtype=np.int64)

    @property
    def new(self) -> Ints:
        """Return how many rows came to each buffer since the last look."""
        rings = self._memory.rings
        return np.asarray(rings[:, ring.TAIL] - np.maximum(self._seen, rings[:, ring.HEAD]))

    def _buffers(self, numbers: Floats, codes: Codes) -> k.Buffers:
        """Return the memory in the form that kernels take."""
        m = self._memory
        return k.Buffers(
            self._tables, m.counters, m.frames, m.rings.ravel(), m.rows.ravel(), m.ordered, m.index,
            m.bounded, m.lists, m.waits, m.spans, m.size, numbers, codes,
        )  # fmt: skip

    def let_go(self, kept: Floats, numbers: Floats, codes: Codes, *, every: bool) -> int:
        """Count new rows. Shed new rows, or with ``every`` any rows, except the share ``kept`` of each class;
        return how many.
        """
        m = self._memory
        head, tail = m.rings[:, ring.HEAD], m.rings[:, ring.TAIL]
        np.maximum(self._seen, head, out=self._seen)
        begins = np.where(self._goes, head if every else self._seen, self._seen)
        offsets = np.concatenate([[0], np.cumsum(tail - begins)])
        moves = k.Renumbered(begins, offsets, np.empty(int(offsets[-1]) + 1, dtype=np.int64))
        held, waiting = self._buffers(numbers, codes), self._waiting.ravel()
        gone = k.let_go(held, self._worth.arrays, moves, self._seen, waiting, kept, every)
        self.begin()
        return gone

    def alive(self, numbers: Floats, codes: Codes) -> tuple[Floats, Floats]:
        """Return the number of rows of each class, and how many would stay if the share kept were 0."""
        w = self._worth
        alive, least = np.zeros((2, len(w.classes.of)))
        k.count(self._buffers(numbers, codes), w.arrays, w.low, w.high, alive, least)
        return alive, least

    def credit(self, found: Ints, choices: Ints, numbers: Floats, codes: Codes) -> None:
        """Count the rows of results, and the estimated number of missing matches."""
        count = len(found)
        events = 1 + int((found[1:, outcome.EVENT] != found[:-1, outcome.EVENT]).sum())
        weight = min(1.0, _AT_ONCE * events / max(1, count))
        results, step = k.CreditedResults(self._begins, found, choices), max(1, count // _SOME)
        held = self._buffers(numbers, codes)
        k.credit(held, self._worth.arrays, results, step, weight, self.weights, self.missed)
        self.begin()

    def begin(self) -> None:
        """Begin with new events: rows that leave the window from now on still count in ``credit``."""
        self._begins = self._memory.rings[:, ring.HEAD].copy()

    @property
    def tested(self) -> int:
        """Return how many rows were tested so far."""
        return int(self._memory.counters[counter.TESTED])
