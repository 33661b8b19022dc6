"""``sharp-oracle``: what of row patterns (Q5 and Q6) can be found at all in a share of the work.

All of it in work units, as ``sharp`` counts them: an event is one, and so is each partial match or match that
is made, and each time that a partial match is shown an event. What C has ended is gone at once, for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.sharp import BLOCK, TYPES, WARM, WINDOW, Stream, run

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: What comes last in each.
_LAST: Final = {"Q5": "D", "Q6": "E"}
_SEEDS: Final = {True: range(801, 802), False: range(801, 813)}
#: So many shares of the first events are tried, and up to which part of a window they are kept.
_TRIED: Final = 16
_KEPT: Final = (1.0, 0.75, 0.5)
#: A bound is held if p99 is no more than so much of it.
_HELD: Final = 1.1


@dataclass(frozen=True, slots=True)
class Found:
    """Of each pair that was made, its first event, and the matches of it; the units of each event."""

    firsts: Ids
    matches: Ids
    units: Floats

    @property
    def blocks(self) -> Floats:
        """Of blocks of events, when windows are full: the mean units of an event."""
        warm = self.units[_begin(len(self.units)) :]
        return np.asarray(warm[: len(warm) // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1))


def _begin(size: int) -> int:
    return int(WARM / (1 + WARM) * size)


class Row:
    """A row pattern over a stream."""

    def __init__(self, name: str, stream: Stream) -> None:
        self._kinds, self._ids = stream.kinds.tolist(), stream.columns["id"].tolist()
        self._window, self._last = stream.window, TYPES.index(_LAST[name])
        terms, inverse = np.unique(stream.columns["x"], return_inverse=True)
        numbers = [int(stream.dictionary.term(term).value) for term in terms.tolist()]
        # Q6 takes any B: all of them come up to it.
        self.x: Floats = np.array(numbers)[inverse] + 0.0 if name == "Q5" else np.full(stream.size, -np.inf)
        self._compared = self.x if name == "Q5" else np.full(stream.size, np.inf)

    def find(self, kept: npt.NDArray[np.bool_], oldest: float, most: float) -> Found:
        """What is found of the first events that are kept, until ``oldest`` events have come.

        A block of events takes ``most`` units, about: who would take more is passed over.
        """
        firsts: dict[int, list[int]] = {}
        waiting: dict[int, list[int]] = {}
        pairs, matches = list[int](), list[int]()
        units, room, phase = np.ones(len(self._kinds)), most, _begin(len(self._kinds)) % BLOCK
        for now, (kind, key) in enumerate(zip(self._kinds, self._ids, strict=True)):
            room = most if now % BLOCK == phase else room - units[now - 1]
            shows = int(max(0.0, min(room - 1.0, 1e9)) / 2)  # what is shown makes one more, at most
            if kind == 0 and kept[now]:
                firsts.setdefault(key, []).append(now)
                units[now] += 1
            elif kind == 1:
                firsts[key] = [a for a in firsts.get(key, ()) if now - a <= oldest]
                shown = firsts[key][::-1][:shows]
                made = [a for a in shown if self.x[a] < self._compared[now]]
                waiting.setdefault(key, []).extend(range(len(pairs), len(pairs) + len(made)))
                pairs += made
                matches += [0] * len(made)
                units[now] += len(shown) + len(made)
            elif kind == 2:  # what C has ended
                waiting.pop(key, None)
            elif kind == self._last:
                waiting[key] = [pair for pair in waiting.get(key, ()) if now - pairs[pair] <= self._window]
                for pair in waiting[key][:shows]:
                    matches[pair] += 1
                units[now] += 2 * len(waiting[key][:shows])
        return Found(np.array(pairs, dtype=np.int64), np.array(matches, dtype=np.int64), units)

    def by_chance(self, bound: float, whole: int, *, held: bool) -> float:
        """The share that who knows the distributions finds: which first events are kept, and how long.

        Those with the least X: of all else, as much comes of the same work. ``held``: p99 holds the bound,
        and not the mean.
        """
        rank = np.lexsort((np.random.default_rng(1).random(len(self.x)), self.x)).argsort()
        best = 0
        for share in np.linspace(1 / _TRIED, 1, _TRIED):
            among = np.flatnonzero(np.array(self._kinds) == 0)
            kept = np.zeros(len(self.x), dtype=np.bool_)
            kept[among[np.argsort(rank[among])[: int(share * len(among))]]] = True
            for part in _KEPT:
                found = self.find(kept, part * self._window, _HELD * bound * BLOCK if held else np.inf)
                late = np.quantile(found.blocks, 0.99) / _HELD if held else found.blocks.mean()
                if late <= bound:
                    best = max(best, int(found.matches.sum()))
        return best / whole

    def in_hindsight(self, bound: float, every: Found) -> float:
        """The share that who knows all that comes finds, within the bound on average.

        No more is made and shown than what matches come of, first what most come of.
        """
        room, begun, count = (bound - 1) * len(self.x), set[int](), 0
        for pair in np.argsort(-every.matches, kind="stable").tolist():
            first, matches = int(every.firsts[pair]), int(every.matches[pair])
            room -= 2 + 2 * matches + (first not in begun)
            if room < 0 or not matches:
                break
            begun.add(first)
            count += matches
        return count / int(every.matches.sum())


def benchmark(quick: bool) -> Iterator[Measurement]:
    """What can be found of row patterns at a half and a tenth of the work, on average over streams."""
    for name in _LAST:
        shares: dict[float, list[tuple[float, ...]]] = {0.5: [], 0.1: []}
        for seed in _SEEDS[quick]:
            stream = Stream(WINDOW[quick][False], 1 + WARM, seed=seed)
            whole = run(name, stream, None)
            row = Row(name, stream)
            every = row.find(np.ones(stream.size, dtype=np.bool_), stream.window, np.inf)
            check(f"{name}: matches", int(every.matches.sum()), len(whole.matches))
            for share, found in shares.items():
                bound = share * float(whole.latency.mean())
                found.append(
                    (
                        row.in_hindsight(bound, every),
                        row.by_chance(bound, len(whole.matches), held=False),
                        row.by_chance(bound, len(whole.matches), held=True),
                    )
                )
        for share, found in shares.items():
            knows = "knows all", "knows distributions", f"the same, p99 at most {_HELD}"
            facts = dict(zip(knows, np.mean(found, axis=0).tolist(), strict=True))
            case = f"{name}, window {WINDOW[quick][False]}, {share:.0%} of the latency"
            yield Measurement("sharp-oracle", case, None, "recall of who", facts=facts)
