"""What the processes said → medians, whether all found the same, and a table in Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from tests.benchmarks.peers.workloads import Unsaid, Workload

#: What a process says of its run, always and for single events.
_ALWAYS: Final = ("matches", "sum", "cpu", "wall", "setup")


@dataclass(frozen=True, slots=True)
class Run:
    """A process's answer: seconds, and for single events microseconds by the clock."""

    matches: int
    sum: int
    cpu: float
    wall: float
    setup: float
    p50: float | None = None
    p99: float | None = None

    @classmethod
    def read(cls, output: str) -> Run:
        """From what a process printed: the last line that is an object (loggers may have said more)."""
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise ValueError(f"no result: {output[-2000:]!r}")
        said = json.loads(lines[-1])
        if missing := [name for name in _ALWAYS if name not in said]:
            raise ValueError(f"no {missing[0]!r} in {lines[-1]!r}")
        return cls(**said)


@dataclass(frozen=True, slots=True)
class Line:
    """A system's runs of a workload in one form, or why there are none."""

    workload: Workload
    system: str
    form: str
    events: int
    runs: tuple[Run, ...] | Unsaid

    def median(self, what: str) -> float:
        """Of all runs."""
        assert not isinstance(self.runs, Unsaid)
        return median(getattr(run, what) for run in self.runs)


def agreed(lines: Sequence[Line]) -> tuple[int, int]:
    """Matches of a workload and the sum of their events' numbers; AssertionError if not the same for all."""
    found = {
        f"{line.system}, {line.form}": (run.matches, run.sum)
        for line in lines
        if not isinstance(line.runs, Unsaid)
        for run in line.runs
    }
    if len(set(found.values())) != 1:
        raise AssertionError(f"{lines[0].workload.name}: matches and sums differ: {found}")
    return next(iter(found.values()))


def against(line: Line, lines: Sequence[Line]) -> Line | None:
    """With what a line of ours is compared: the fastest of the peers that read the same kind of thing."""
    kind = {"push": "push", "columns": "beans", "columns-objects": "beans"}.get(line.form, "csv")
    others = [
        other
        for other in lines
        if other.system != line.system and other.form == kind and not isinstance(other.runs, Unsaid)
    ]
    return min(others, key=lambda other: other.median("cpu"), default=None)


def markdown(lines: Sequence[Line], ours: str) -> str:
    """A table of all lines; ``ours`` is the system whose lines have a ratio."""
    out = [
        "| workload, window | system, from | matches | events/s | matches/s | × the fastest peer |",
        "|---|---|---|---|---|---|",
    ]
    for line in lines:
        head = f"| {line.workload.says} | {line.system}, {line.form} |"
        if isinstance(line.runs, Unsaid):
            out.append(f"{head} – | – | – | {line.runs.reason} |")
            continue
        cpu, matches = line.median("cpu"), line.runs[0].matches
        of = [other for other in lines if other.workload is line.workload]
        best = against(line, of) if line.system == ours else None
        ratio = f"{best.median('cpu') / cpu:.2g} × {best.system}" if best else ""
        if line.form == "push":
            ratio += f"; p50 {line.median('p50'):.3g} µs, p99 {line.median('p99'):.3g} µs"
        rates = f"{matches:,} | {line.events / cpu:,.0f} | {matches / cpu:,.0f}"
        out.append(f"{head} {rates} | {ratio.strip('; ')} |")
    return "\n".join(out)
