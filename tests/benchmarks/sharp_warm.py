"""``sharp-warm``: recall under a bound once the cost model has seen some windows, by Sharp's Q3 and Q4.

The paper's model learns from history; so the first windows, which begin with no state and nothing learned,
are told apart from the rest here. The bound holds in all of them. Q3 and Q4
are the queries of the paper's own figure 4, and 1,000 events its window that has ten of each type and id.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from spaseq.bounds import Policy
from spaseq.errors import SpaseqWarning
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.sharp import QUERIES, Ran, Stream, run

#: Windows, and how many of them are the first ones.
_WINDOWS: Final = 10
_FIRST: Final = 2
#: Nothing was chosen on these.
_SEEDS: Final = (11, 12, 13)
_BLOCK: Final = 64
#: So often the price of work is halved or doubled towards what keeps the bound.
_STEPS: Final = 30


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Each query at a half and a tenth of the work that it takes without a bound, by Sharp and by lots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)  # which say that shedding begins and ends
        for name in ("Q3", "Q4"):
            window = 100 if quick else 1_000
            for seed in _SEEDS[:1] if quick else _SEEDS:
                yield from _measured(name, Stream(window, _WINDOWS, seed), seed)


def _measured(name: str, stream: Stream, seed: int) -> Iterator[Measurement]:
    whole = run(name, stream, None)
    begin = _FIRST * stream.window
    every = whole.by_window(stream.window)
    for share in (0.5, 0.1):
        bound = share * float(whole.units[begin:].mean())
        knows = _reachable(name, stream, whole, bound)
        for policy in (Policy.RANDOM_STATE, Policy.SHARP):
            ran = run(name, stream, bound, policy)
            check(f"{name}: precision", len(ran.matches - whole.matches), 0)
            found = ran.by_window(stream.window)
            later = ran.units[begin:]
            means = later[: len(later) // _BLOCK * _BLOCK].reshape(-1, _BLOCK).mean(axis=1)
            facts = {
                "recall": float(found[_FIRST:].sum() / max(1, every[_FIRST:].sum())),
                "recall in the first windows": float(found[:_FIRST].sum() / max(1, every[:_FIRST].sum())),
                "matches": float(every[_FIRST:].sum()),
                "mean latency / bound": float(later.mean()) / bound,
                "p99 / bound": float(np.quantile(means, 0.99)) / bound,
                "recall of who knows": knows,
            }
            case = f"{name}, window {stream.window}, seed {seed}, {share:.0%} of the latency, {policy}"
            yield Measurement("sharp-warm", case, None, "", facts=facts)


def _reachable(name: str, stream: Stream, whole: Ran, bound: float) -> float:
    """The recall of who knows all that comes, within the same mean work.

    Of the partial matches that become matches, those are kept that bring more than a price for the work that
    they are, until the last event that they are needed for. The price is the least that keeps the bound.
    """
    begin = _FIRST * stream.window
    tree: dict[int, Any] = {}
    count = 0
    for positions, offsets in whole.found:
        for first, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            if positions[end - 1] >= begin:
                count += 1
                node = tree
                for position in positions[first:end].tolist():
                    node = node.setdefault(position, {})
    kinds = QUERIES[name][0].replace(" ", "").split(":")
    # An event is a unit of work itself; the first of a match is shown, and makes a partial match.
    firsts = float((stream.kinds == "ABCDEFGHIJ".index(kinds[0])).mean())
    most = (bound - 1 - 2 * firsts) * (stream.size - begin)
    events = _events(stream)
    low, high = 1e-9, 10.0
    best = 0.0
    for _ in range(_STEPS):
        price = (low * high) ** 0.5
        value, work = _worth(tree, 0, -1, price, kinds, events, stream)
        if work > most:
            low = price
        else:
            high, best = price, value
    return best / max(1, count)


def _events(stream: Stream) -> dict[tuple[str, int], list[int]]:
    """The positions of the events of each type and id."""
    found = defaultdict(list)
    for position, (kind, key) in enumerate(
        zip(stream.kinds.tolist(), stream.columns["id"].tolist(), strict=True)
    ):
        found["ABCDEFGHIJ"[kind], key].append(position)
    return found


def _worth(
    tree: dict[int, Any],
    depth: int,
    last: int,
    price: float,
    kinds: list[str],
    events: dict[tuple[str, int], list[int]],
    stream: Stream,
) -> tuple[float, float]:
    """The matches and the work of what is best kept of a partial match with ``depth`` events."""
    if depth == len(kinds):
        return 1.0, 0.0
    kept = []
    for position, further in sorted(tree.items()):
        value, work = _worth(further, depth + 1, position, price, kinds, events, stream)
        work += depth > 0
        if value > price * work:
            kept.append((position, value, work))
    if depth == 0:
        return sum(value for _, value, _ in kept), sum(work for _, _, work in kept)
    shown = events[kinds[depth], int(stream.columns["id"][last])]
    before = bisect_right(shown, last)
    best, value, work = (0.0, 0.0), 0.0, 0.0
    for position, more, further_work in kept:
        value, work = value + more, work + further_work
        whole = work + bisect_right(shown, position) - before
        if value - price * whole > best[0] - price * best[1]:
            best = value, float(whole)
    return best
