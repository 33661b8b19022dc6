"""Further settings of Sharp's paper: bounds of memory, wider windows, and a drift, by its Q3 and Q4."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Final

import numpy as np

from spaseq.bounds import Policy
from spaseq.errors import SpaseqWarning
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.sharp import WARM, Ran, Stream, run

_QUERIES: Final = ("Q3", "Q4")
_POLICIES: Final = (Policy.RANDOM_STATE, Policy.SHARP)
_SEED: Final = 2
#: Windows from where a drift is measured: it comes in their middle.
_DRIFTING: Final = 6


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Each setting, by Sharp and by lots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)  # which say that shedding begins and ends
        for name in _QUERIES:
            yield from _memory(name, 200 if quick else 4_000)
            yield from _windows(name, (100, 200) if quick else (1_000, 4_000, 16_000))
            yield from _drift(name, 100 if quick else 1_000)


def _memory(name: str, window: int) -> Iterator[Measurement]:
    stream = Stream(window, 1 + WARM, seed=_SEED)
    whole = run(name, stream, None)
    for share in (0.5, 0.1):
        for policy in _POLICIES:
            bound = int(share * whole.held)
            ran = run(name, stream, None, policy, memory=bound)
            facts = _facts(ran, whole) | {"held / bound": ran.held / bound}
            case = f"{name}, window {window}, {share:.0%} of the memory, {policy}"
            yield Measurement("sharp-settings", case, None, "", facts=facts)


def _windows(name: str, windows: tuple[int, ...]) -> Iterator[Measurement]:
    for window in windows:
        stream = Stream(window, 1 + WARM, seed=_SEED)
        whole = run(name, stream, None)
        bound = 0.5 * float(whole.latency.mean())
        for policy in _POLICIES:
            ran = run(name, stream, bound, policy)
            p99 = float(np.quantile(ran.latency, 0.99)) / bound
            case = f"{name}, half of the latency, {window} of the window, {policy}"
            yield Measurement(
                "sharp-settings", case, None, "", facts=_facts(ran, whole) | {"p99 / bound": p99}
            )


def _drift(name: str, window: int) -> Iterator[Measurement]:
    stream = Stream(window, _DRIFTING, seed=_SEED, drift=True)
    whole = run(name, stream, None)
    bound = 0.5 * float(whole.units[window:].mean())
    every = whole.by_window(window)
    for policy in _POLICIES:
        found = run(name, stream, bound, policy).by_window(window)
        for number in np.flatnonzero(every).tolist():
            facts = {"recall": float(found[number] / every[number]), "matches": float(every[number])}
            case = f"{name}, drift at {_DRIFTING // 2}, {number} of the windows, {policy}"
            yield Measurement("sharp-settings", case, None, "", facts=facts)


def _facts(ran: Ran, whole: Ran) -> dict[str, float]:
    check("precision", len(ran.matches - whole.matches), 0)
    every = len(whole.matches)
    return {"recall": len(ran.matches) / max(1, every), "matches": float(every)}
