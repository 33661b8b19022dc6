"""``peers``: workloads on our engine and on others in turn, a process a run → CPU seconds behind start-up.

What is timed: from the first event to the last match, every event of every match read, in a process after six
passes that are the same; all threads (a JVM's compilers and collectors, too). Who is absent is said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.measure import Measurement
from tests.benchmarks.peers import graphblas
from tests.benchmarks.peers.systems import System, ours, peers, written
from tests.benchmarks.peers.table import Line, Run, against, agreed, markdown
from tests.benchmarks.peers.workloads import WORKLOADS, Unsaid, Workload, csv

_RUNS = 3
#: Of a process, for all of its passes.
_SECONDS = 420


def _lines(workload: Workload, systems: Sequence[System], events: int, runs: int) -> list[Line]:
    """Each system in each of its forms, one after the other, and all of that several times."""
    asked = [(system, system.asked(workload)) for system in systems]
    found: dict[tuple[System, str], list[Run] | Unsaid] = {}
    for system, forms in asked:
        if isinstance(forms, Unsaid):
            found[system, "–"] = forms
        else:
            found |= {(system, form): [] for form in forms}
    with tempfile.TemporaryDirectory(prefix="spaseq-peers-") as name:
        files = Path(name)
        written(files, workload, csv(workload.rows(events)), systems)
        for _ in range(runs):
            for (system, form), before in found.items():
                if not isinstance(before, Unsaid):
                    run = process(system.line(workload, form, events, files), _SECONDS)
                    found[system, form] = run if isinstance(run, Unsaid) else [*before, run]
    return [
        Line(workload, system.name, form, events, runs if isinstance(runs, Unsaid) else tuple(runs))
        for (system, form), runs in found.items()
    ]


def process(command: list[str], seconds: float) -> Run | Unsaid:
    """What a process says; one that hangs is ended."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Unsaid(f"did not end within {seconds:g} s")
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[-6:])} ended with {done.returncode}: {done.stderr[-2000:]}")
    return Run.read(done.stdout)


def benchmark(quick: bool) -> Iterator[Measurement]:
    """All workloads, and path queries beside GraphBLAS; the whole table goes to stderr at the end."""
    yield from graphblas.benchmark(quick)
    own = ours()
    systems, absent = [own], []
    for found in peers():
        if isinstance(found, Unsaid):
            absent.append(found.reason)
            yield Measurement("peers", f"absent: {found.reason}", None, "absent")
        else:
            systems.append(found)
    table: list[Line] = []
    for workload in WORKLOADS:
        events = min(workload.events, 2_000) if quick else workload.events
        lines = _lines(workload, systems, events, 1 if quick else _RUNS)
        agreed(lines)
        table += lines
        for line in lines:
            yield _measured(line, lines, own.name)
    versions = ", ".join(f"{system.name} {system.version}" for system in systems)
    load = ", ".join(f"{of:.1f}" for of in os.getloadavg())
    print(f"{versions}; load {load}\n\n{markdown(table, own.name)}", file=sys.stderr)
    print("\n".join(["", *absent]), file=sys.stderr)


def _measured(line: Line, lines: Sequence[Line], own: str) -> Measurement:
    case = f"{line.workload.name}: {line.system}, {line.form}"
    if isinstance(line.runs, Unsaid):
        return Measurement("peers", f"{case}: {line.runs.reason}", None, "not said")
    cpu, matches = line.median("cpu"), line.runs[0].matches
    best = against(line, lines) if line.system == own else None
    facts = {name: line.median(name) for name in ("cpu", "wall", "setup")}
    if line.form == "push":
        facts |= {f"{name} µs": line.median(name) for name in ("p50", "p99")}
    return Measurement(
        "peers",
        case,
        None if best is None else best.median("cpu") / cpu,
        "" if best is None else f"{best.system}, {best.form}",
        {"events": line.events / cpu, "matches": matches / cpu},
        {"matches": float(matches), **facts},
    )
