"""What buffered rows are worth: how many matches they are part of, and what it takes to keep them.

The work of an event is to look through the pairs (triples, …) of rows that may precede it. So what a row
costs is its share of its buffer, and what it is worth its share of the matches; of all buffers those go first
that have the smallest share of the matches for their share of the rows.
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

#: What was counted of late is kept by so many parts of a window.
_PARTS: Final = 16
#: From so many values edges are learned, and anew where one class has such a share of what comes.
_FEW: Final = 64
_SKEWED: Final = 0.4
_STEPS: Final = 24
#: Which share of rows is kept as a sample: of those that promise most, the most.
_SAMPLED: Final = 1 / 5
LEAST_SAMPLED: Final = 1 / 32
_MOST_SAMPLED: Final = 1 / 4


@dataclass(slots=True)
class _WindowPart:
    """What came in a part of a window, which began at ``axis``: rows by class, and how many events."""

    axis: int
    came: Floats
    events: int = 0


class BufferModel:
    """What was counted of the classes of a query's rows. ``kept``: which share of each is to stay."""

    def __init__(self, classes: BufferClasses, reach: int, policy: Policy) -> None:
        """``reach``: how far a window reaches on its axis; 0 for tumbling ones, whose numbers that is."""
        self.classes, self._reach, self._policy = classes, reach, policy
        count = len(classes.of)
        self.kept: Floats = np.ones(count)
        #: Which share of each stays however little it promises: what is not there is not seen to be missed.
        self.sampled: Floats = np.full(count, _SAMPLED)
        #: Between which ranks rows of each class are: see ``passing.rank``.
        self.low, self.high = np.zeros((2, count))
        self.came, self.declined, self.shed, self.won = np.zeros((4, count))
        self.edges: Floats = np.zeros(classes.edges)
        self.samples: Floats = np.zeros(len(classes.features) * (k.SAMPLE + 1))
        self.features = classes.features.copy()
        self._parts: deque[_WindowPart] = deque()
        # Rows that stayed, and events of matches that they were in: halved within a window.
        self._stayed, self._matched = np.zeros((2, count))
        self._relative: Floats = np.ones(count)
        # Of late, the units of work, and those that were for matches.
        self._units = self._for_matches = 0.0

    def work(self, units: float, matches: int) -> None:
        """So many units of work were done, for so many matches: each was tested, and is given out."""
        self._units += units
        self._for_matches += 2.0 * matches

    def pass_to(self, axis: int, events: int) -> bool:
        """So many events have come, and time has come to a place on the axis; whether a part is over."""
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
        # However long the window is, not each event is a part.
        return axis - last.axis >= max(1, self._reach // _PARTS)

    # --- what is known --------------------------------------------------------------------------

    @property
    def _window(self) -> Floats:
        """The rows that would be there, by class."""
        return np.asarray(sum((part.came for part in self._parts), np.zeros(len(self.came))))

    @property
    def by_buffer(self) -> Floats:
        """The rows that would be there, by buffer."""
        return self._by_buffer(self._window)

    def _by_buffer(self, rows: Floats) -> Floats:
        return np.bincount(self.classes.of, rows, minlength=len(self.classes.goes)).astype(np.float64)

    def _count(self, rows: Floats) -> Floats:
        """Rows by buffer, of rows by class; what is in many matches is more work."""
        return self._by_buffer(rows * self._weights)

    @property
    def _weights(self) -> Floats:
        """How much work a row of each class is, against others of its buffer."""
        share = min(1.0, self._for_matches / max(1.0, self._units))
        return np.asarray(1 - share + share * self._relative)

    def load(self, rows: Floats) -> float:
        """How many rows, or pairs of rows, an event is to look at, where there are so many of each class."""
        return float(self._pairs(self._count(rows)))

    def _pairs(self, counts: Floats) -> Floats:
        """The same for counts by buffer, of which there may be several columns."""
        came = self._by_buffer(self._window)
        events = max(1, sum(part.events for part in self._parts))
        total = np.zeros(counts.shape[1:])
        for way in self.classes.ways:
            total += came[way.last] / events * np.prod(counts[list(way.others)], axis=0)
        return np.asarray(total)

    def learn(self) -> bool:
        """Learns what rows are worth, and edges where that is due; whether classes are others now."""
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
        self.sampled = np.clip(_SAMPLED * self._relative, LEAST_SAMPLED, _MOST_SAMPLED)
        return changed

    def _leveled(self, counts: Floats) -> Floats:
        """Which class was which is not known any more."""
        every = np.bincount(self.classes.of, counts, minlength=len(self.classes.goes))
        sizes = np.bincount(self.classes.of, minlength=len(self.classes.goes))
        return np.asarray((every / sizes)[self.classes.of])

    def _cut(self, feature: int, came: Floats) -> bool:
        """Learns the edges of a feature of which so many came by level; whether they are others now."""
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

    # --- what stays -----------------------------------------------------------------------------

    def choose(self, rows: Floats, least: Floats, share: float) -> None:
        """Says which of so many rows of each class stay so that this share of the load is left.

        ``least``: so many of them stay if none is to.
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
        """Says in which order rows are passed over, of which there are so many of each class."""
        goes = self.classes.goes[self.classes.of]
        self.low, self.high = np.zeros((2, len(rows)))
        order, loads = self._falling(rows, rows, goes)
        if loads[0] > 0:
            self.low[order], self.high[order] = loads[1:] / loads[0], loads[:-1] / loads[0]

    def _drop(self, rows: Floats, least: Floats, goes: npt.NDArray[np.bool_], most: float) -> None:
        """The classes go first that bring least."""
        order, loads = self._falling(rows, rows - least, goes)
        last = int(np.argmax(loads <= most)) if (loads <= most).any() else len(order)
        self.kept[order[:last]] = 0.0
        if last and loads[last] < most < loads[last - 1]:
            self.kept[order[last - 1]] = (most - loads[last]) / (loads[last - 1] - loads[last])

    def _falling(self, rows: Floats, lost: Floats, goes: npt.NDArray[np.bool_]) -> tuple[Ints, Floats]:
        """The classes in the order in which they go, and the load before each and after the last."""
        value = self._relative
        if self._policy is Policy.SELECTIVE:
            value = (self._by_buffer(self._matched) / (self._by_buffer(self._stayed) + 1.0))[self.classes.of]
        order = np.flatnonzero(goes)
        order = order[np.argsort(value[order], kind="stable")]
        loss = lost * self._weights
        gone = np.zeros((len(self.classes.goes), len(order) + 1))
        gone[self.classes.of[order], np.arange(1, len(order) + 1)] = loss[order]
        return order, self._pairs(self._count(rows)[:, None] - np.cumsum(gone, axis=1))


#: Of a buffer's values so many tell its rows apart at most: into so many levels each, if there are so many.
_MOST: Final = 2
_LEVELS: Final = {1: 18, 2: 8}


@dataclass(frozen=True, slots=True)
class MatchEnding:
    """How a match may end: with a row of one GPM, after rows of ``others``, by their numbers."""

    last: int
    others: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BufferClasses:
    """The classes of all buffers. ``buffers`` and ``features`` are rows as ``_kernel_rows`` has them.

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
        """The classes of a buffer."""
        begin = int(self.buffers[g, k.B_CLASS])
        return slice(begin, begin + int(np.prod(self.shapes[g], dtype=np.int64)))


def classes(compiled: LazyTables) -> BufferClasses:
    """What tells rows apart in the buffers of a query."""
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
    """The variables that conditions read, those of the first conditions first."""
    for _, demanded in compiled.plans:
        for condition in demanded.conditions:
            yield from (str(step.what) for step in condition.code if step.op == "PUSH")
        for item in demanded.open:
            yield from sorted(mentioned(item.condition))


Codes = npt.NDArray[np.int8]

#: So many of the matches found at once are looked at, about.
_SOME: Final = 64
#: The matches of one event say of their rows no more than so many would.
_AT_ONCE: Final = 2


class BufferRows:
    """The rows of a memory, as they are shed; what is known of them is in ``worth``."""

    def __init__(self, compiled: LazyTables, memory: BufferMemory, worth: BufferModel) -> None:
        self._tables, self._memory, self._worth = compiled.tables, memory, worth
        self.begin()
        # Up to where rows have been counted.
        self._seen: Ints = np.zeros(len(compiled.gpms), dtype=np.int64)
        sites = len(worth.classes.sites)
        #: What a match is worth, and how many matches are thought to be missing, by its first item.
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
        """Of each buffer, how many rows came since they were looked at last."""
        rings = self._memory.rings
        return np.asarray(rings[:, ring.TAIL] - np.maximum(self._seen, rings[:, ring.HEAD]))

    def let_go(self, kept: Floats, numbers: Floats, codes: Codes, *, every: bool) -> int:
        """Counts new rows, and sheds of these, or of all, all but the shares ``kept`` by class; how many."""
        m, w = self._memory, self._worth
        head, tail = m.rings[:, ring.HEAD], m.rings[:, ring.TAIL]
        np.maximum(self._seen, head, out=self._seen)
        begins = np.where(self._goes, head if every else self._seen, self._seen)
        offsets = np.concatenate([[0], np.cumsum(tail - begins)])
        gone = k.let_go(
            self._tables, m.counters, m.frames, m.rings.ravel(), m.rows.ravel(), m.ordered, m.index, m.lists,
            m.waits, m.spans, m.size, self._waiting.ravel(), begins, offsets,
            np.empty(int(offsets[-1]) + 1, dtype=np.int64), self._seen, w.classes.buffers.ravel(),
            w.features.ravel(), w.edges, w.samples, kept, w.sampled, w.came, w.declined, w.shed, every,
            numbers, codes, m.bounded,
        )  # fmt: skip
        self.begin()
        return gone

    def alive(self, numbers: Floats, codes: Codes) -> tuple[Floats, Floats]:
        """How many rows there are of each class, and would be if no share of them were to stay."""
        w, m = self._worth, self._memory
        alive, least = np.zeros((2, len(w.classes.of)))
        k.count(
            self._tables, m.rings.ravel(), m.rows.ravel(), w.classes.buffers.ravel(), w.features.ravel(),
            w.edges, w.sampled, w.low, w.high, alive, least, numbers, codes, m.bounded,
        )  # fmt: skip
        return alive, least

    def credit(self, found: Ints, choices: Ints, numbers: Floats, codes: Codes) -> None:
        """Counts the rows of what was found, and how many matches are thought to be missing beside them."""
        w = self._worth
        count = len(found)
        events = 1 + int((found[1:, outcome.EVENT] != found[:-1, outcome.EVENT]).sum())
        weight = min(1.0, _AT_ONCE * events / max(1, count))
        k.credit(
            self._tables, self._memory.rings.ravel(), self._memory.rows.ravel(), self._begins, found,
            choices, max(1, count // _SOME), weight, w.classes.sites, w.classes.buffers.ravel(),
            w.features.ravel(), w.edges, w.won, self.weights, self.missed, numbers, codes,
            self._memory.bounded,
        )  # fmt: skip
        self.begin()

    def begin(self) -> None:
        """Events are looked at from now on: rows that go out of the window meanwhile count in ``credit``."""
        self._begins = self._memory.rings[:, ring.HEAD].copy()

    @property
    def tested(self) -> int:
        """How many rows were looked at so far, to match them."""
        return int(self._memory.counters[counter.TESTED])
