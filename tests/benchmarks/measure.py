"""What benchmarks share: times taken side by side, and what a measurement says."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table: ``ratio`` is what counts, ``against`` what it is a ratio to.

    ``rates`` are events, quads and so on per second; ``facts`` whatever else there is to know.
    """

    benchmark: str
    case: str
    ratio: float | None
    against: str
    rates: dict[str, float] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        head = f"{self.ratio:7.2f} × {self.against}" if self.ratio is not None else f"      – {self.against}"
        rates = [f"{value:,.0f} {unit}/s" for unit, value in self.rates.items()]
        facts = [f"{name} {value:,.4g}" for name, value in self.facts.items()]
        return f"{head:<42} {self.benchmark}, {self.case}: {', '.join(rates + facts)}".rstrip(": ")


#: A benchmark: its measurements as they are taken. With ``quick`` on small inputs, to see that it works.
Benchmark = Callable[[bool], Iterator[Measurement]]


def seconds(work: Callable[[], object]) -> float:
    """How long a call takes, garbage of earlier ones collected before it."""
    gc.collect()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, of all threads. Garbage of earlier calls is collected before it."""
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def side_by_side(runs: int, *works: Callable[[], object]) -> list[float]:
    """The median seconds of several calls, taken in turn, so that what else the machine does hits all."""
    taken = [[seconds(work) for work in works] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def check(what: str, found: object, expected: object) -> None:
    """A benchmark of wrong answers is none: AssertionError unless they are as expected."""
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")
