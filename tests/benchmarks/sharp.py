"""``sharp``: best effort under a bound, on the queries Q1 to Q6 of Sharp's paper over its DS1.

DS1 by a seeded generator: ten types, an id, and X, Y and V, all uniform; windows of so many events that ten
of each type and id are in one. The bound is a share of the latency without one, both in work units, so that
every run gives the same figures.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound, Policy, Pool, WorkClock
from spaseq.errors import SpaseqWarning
from spaseq.events import Clock, EventBatch
from spaseq.language.reading.parser import parse
from spaseq.limits import UNLIMITED
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.context import Context
from spaseq.matching.model import StreamWindow
from spaseq.matching.shedding.matcher import SheddingNfa
from spaseq.matching.shedding.query import BoundedQuery, obstacles
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.sharp_oracle import Foreseen, Oracle, mixed

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TYPES: Final = "ABCDEFGHIJ"
#: Of each type and id in a window.
_EACH: Final = 10
WARM: Final = 1.5
#: Latencies are means over so many events.
BLOCK: Final = 64

#: The events of a window: of few, or not; and of queries with a Kleene, or not.
WINDOW: Final = {True: {True: 100, False: 100}, False: {True: 300, False: 1_000}}
_ENOUGH: Final = 50

_M: Final = "<http://www.w3.org/2005/xpath-functions/math#{}>"
_RADIANS: Final = 0.017453292519943295
_SIN, _COS, _SQRT, _ASIN, _ACOS = (_M.format(name) for name in ("sin", "cos", "sqrt", "asin", "acos"))
_HALF: Final = f"{_SIN}((?ex - ?dx) * {_RADIANS / 2})"
_HALF_Y: Final = f"{_SIN}((?ey - ?dy) * {_RADIANS / 2})"

#: Sequence, and the condition of each element.
QUERIES: Final = {
    "Q1": ("A : B{1,5}[:] : C : D", {"C": "SUM(?bx) < ?cx"}),
    "Q2": ("A : B{1,5}[:] : E : F", {"F": "?ax + SUM(?bx) < ?ex + ?fx"}),
    "Q3": (
        "A : B : C : D : E : F : G",
        {
            "B": "?av < ?bv",
            "D": "?bv + ?cv < ?dv",
            "F": f"2 * 6371000 * {_ASIN}({_SQRT}({_HALF} * {_HALF} + {_COS}(?dx * {_RADIANS}) * "
            f"{_COS}(?ex * {_RADIANS}) * {_HALF_Y} * {_HALF_Y})) <= ?fv",
        },
    ),
    "Q4": (
        "A : B : C : D : H : I : J",
        {
            "B": "?av < ?bv",
            "D": "?bv + ?cv < ?dv",
            "I": f"6371000 * {_ACOS}({_SIN}(?dx * {_RADIANS}) * {_SIN}(?hx * {_RADIANS}) + "
            f"{_COS}(?dx * {_RADIANS}) * {_COS}(?hx * {_RADIANS}) * {_COS}((?hy - ?dy) * {_RADIANS})) <= ?iv",
        },
    ),
    "Q5": ("A : B : !C : D", {"B": "?ax < ?bx"}),
    "Q6": ("A : B : !C : E", {}),
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run gave: its matches, the units of each event, and what it says of itself."""

    matches: frozenset[int]
    units: Floats
    recall: float | None
    shed: int
    #: Of its blocks of matches, the positions of the events, and where each match begins.
    found: tuple[tuple[Ids, Ids], ...]
    #: The most bytes that it held between two events.
    held: int

    def by_window(self, window: int) -> Ids:
        """How many matches ended in each stretch of so many events."""
        last = [positions[offsets[1:] - 1] for positions, offsets in self.found]
        ends = np.concatenate([np.zeros(0, dtype=np.int64), *last])
        return np.bincount(ends // window, minlength=-(-len(self.units) // window))

    @property
    def latency(self) -> Floats:
        """Of blocks of events, when windows are full: the mean units of an event."""
        units = self.units[int(WARM / (1 + WARM) * len(self.units)) :]
        return units[: len(units) // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1)


def pattern(name: str) -> SequencePattern:
    """One of the queries."""
    sequence, filters = QUERIES[name]
    gpms = " ".join(
        f"DEFINE GPM {t} ON S {{ [] :{t} ?id ; :x ?{t.lower()}x ; :y ?{t.lower()}y ; :v ?{t.lower()}v . "
        f"{f'FILTER({filters[t]})' if t in filters else ''} }}"
        for t in TYPES
        if t in sequence
    )
    return normalise(
        parse(
            "PREFIX : <http://example.org/> SELECT * WITHIN 1 EVENTS SLIDING "
            f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({sequence}) {gpms} }}"
        )
    )


class Stream:
    """Events of DS1 as columns, in one dictionary. ``drift``: from the middle on, V of D is another one."""

    def __init__(self, window: int, windows: float, seed: int = 1, drift: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.window, self.size = window, int(window * windows)
        self.dictionary = Dictionary()
        count = window // (len(TYPES) * _EACH)
        self.kinds = rng.integers(0, len(TYPES), self.size)
        ids = [self._pin(f"id{i}") for i in range(count)]
        chosen = rng.integers(0, count, self.size)
        numbers = {
            "x": rng.integers(-90, 91, self.size),
            "y": rng.integers(-180, 181, self.size),
            "v": rng.integers(1, 3_000_001, self.size),
        }
        if drift:
            late = np.arange(self.size) >= self.size // 2
            least, most = np.where(late, 1, 1_000_000), np.where(late, 2_000_000, 3_500_000)
            some = self.kinds == TYPES.index("D")
            numbers["v"][some] = rng.integers(least, most + 1)[some]
        self.columns = {
            "id": np.array(ids)[chosen],
            **{name: self._numbers(values) for name, values in numbers.items()},
        }

    def _pin(self, value: str | int) -> int:
        return self.dictionary.pin(Literal(value))

    def _numbers(self, values: Ids) -> Ids:
        different, inverse = np.unique(values, return_inverse=True)
        return np.array([self._pin(value) for value in different.tolist()])[inverse]

    def batch(self, begin: int, end: int) -> tuple[EventBatch, dict[str, Solutions]]:
        """Some events, and what each GPM has in them."""
        size, none = end - begin, np.zeros(0, dtype=np.int64)
        zeros, at = np.zeros(size, dtype=np.int64), np.arange(begin, end)
        empty = np.zeros(size + 1, dtype=np.int64)
        batch = EventBatch(self.dictionary, Clock.TICKS, zeros + 1, zeros, at, at, empty, none, none, none)
        found = {}
        for number, kind in enumerate(TYPES):
            rows = np.flatnonzero(self.kinds[begin:end] == number)
            columns = {
                name if name == "id" else f"{kind.lower()}{name}": column[begin:end][rows]
                for name, column in self.columns.items()
            }
            found[kind] = Solutions(len(rows), rows, columns)
        return batch, found


def run(
    name: str,
    stream: Stream,
    bound: float | None,
    policy: Policy = Policy.SHARP,
    evaluated: type[SheddingNfa] = SheddingNfa,
    memory: int | None = None,
) -> Ran:
    """A query over a stream, with a bound in units, and one in bytes."""
    asked = pattern(name)
    clock = WorkClock(1.0)
    pool = None if memory is None else Pool(memory)
    kept = Bound(1e18 if bound is None else bound, pool, policy=policy, clock=clock)
    if pool is not None:
        pool.join(kept)
    context = Context(asked, stream.dictionary, None, UNLIMITED)
    window = StreamWindow(stream.window, True, True, 0, True)
    matcher = evaluated(BoundedQuery(asked, stream.dictionary, context, window, kept))
    if bound is None:
        # Nobody looks for the dead without a bound, or tries events on ghosts.
        runs = matcher._observed
        runs.features = replace(runs.features, tells_the_dead=False, graves=runs.features.graves[:0])
        runs.model.rehearsal = None
    found: list[tuple[Ids, Ids]] = []
    units = np.zeros(stream.size)
    held = 0
    for start in range(stream.size):
        before = clock()
        batch, solutions = stream.batch(start, start + 1)
        found += [_events(block) for block in matcher.process(batch, start, solutions)]
        units[start] = clock() - before
        held = max(held, context.budget.size)
    matches = frozenset(name for events in found for name in _names(*events).tolist())
    return Ran(matches, units, matcher.shed.recall, matcher.shed.partial_matches, tuple(found), held)


def needed(name: str, stream: Stream, whole: Ran) -> float:
    """Which share of the work is left to who knows which partial matches come to nothing."""

    class Knowing(Oracle):
        foreseen = Foreseen(list(whole.found))

    ran = run(name, stream, None, evaluated=Knowing)
    check(f"{name}: matches of who knows", len(ran.matches), len(whole.matches))
    return float(ran.units.sum() / whole.units.sum())


def _events(block: Block) -> tuple[Ids, Ids]:
    chosen = block.chosen()
    positions = np.array([int(batch.time[0]) for batch in chosen.batches])[chosen.which]
    return positions, np.asarray(chosen.offsets)


def _names(positions: Ids, offsets: Ids) -> Ids:
    """A number for each match, by which events it is of."""
    return np.add.reduceat(mixed(positions), offsets[:-1]).view(np.int64)


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Recall, precision and latency of each policy at a half and a tenth of the latency without a bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)  # which say that shedding begins and ends
        yield from _measured(quick)


def _measured(quick: bool) -> Iterator[Measurement]:
    for name in QUERIES:
        stream = Stream(WINDOW[quick]["{" in QUERIES[name][0]], 1 + WARM)
        whole = run(name, stream, None)
        base = float(whole.latency.mean())
        least = needed(name, stream, whole)
        for share in (0.5, 0.1):
            random_state = 0.0
            for policy in (Policy.RANDOM_STATE, Policy.SHARP, Policy.SELECTIVE, Policy.RANDOM_INPUT):
                if any(obstacles(pattern(name), policy)):
                    continue  # the engine refuses it: there would be false matches
                ran = run(name, stream, share * base, policy)
                check(f"{name}: precision", len(ran.matches - whole.matches), 0)
                recall = len(ran.matches) / max(1, len(whole.matches))
                random_state = random_state or recall
                facts = {
                    "recall": recall,
                    "mean latency / bound": float(ran.latency.mean()) / (share * base),
                    "p99 / bound": float(np.quantile(ran.latency, 0.99)) / (share * base),
                    "matches": float(len(whole.matches)),
                    "work that these need": least,
                }
                if ran.recall is not None:
                    facts["estimate"] = ran.recall
                # Of a few matches no share can be told.
                ratio = recall / random_state if random_state and len(whole.matches) >= _ENOUGH else None
                case = f"{name}, window {stream.window}, {share:.0%} of the latency, {policy}"
                yield Measurement("sharp", case, ratio, "recall of random-state", facts=facts)
