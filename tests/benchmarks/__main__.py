"""``python -m tests.benchmarks [NAME…] [--json] [-f svg] [--quick]``: measures, a line for each measurement.

What is compared is measured side by side in this process; numbers are medians of several runs.
``python -m tests.benchmarks guard --help``: fourteen figures in ten minutes, for before and after a change.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import sys
from dataclasses import asdict
from typing import Final

from tests.benchmarks import guard
from tests.benchmarks.charts import panels, svg
from tests.benchmarks.measure import Benchmark, Measurement

#: Every benchmark, and the module and function that measure it.
BENCHMARKS: Final = {
    "vshape-bytes": ("pipelines", "vshape_bytes"),
    "ingest": ("ingest", "benchmark"),
    "rows": ("rows", "benchmark"),
    "window": ("pipelines", "window"),
    "state": ("durable", "benchmark"),
    "push": ("events", "push"),
    "pushed": ("pushed", "benchmark"),
    "many": ("many", "benchmark"),
    "output": ("output", "benchmark"),
    "kb": ("pipelines", "kb"),
    "gpm": ("events", "gpm"),
    "kleene": ("pipelines", "kleene"),
    "nfa": ("nfa", "benchmark"),
    "skip": ("skip", "benchmark"),
    "paths": ("paths", "benchmark"),
    "kmp": ("kmp", "benchmark"),
    "w1": ("w1", "benchmark"),
    "lazy": ("lazy", "benchmark"),
    "sharp-settings": ("sharp_settings", "benchmark"),
    "sharp-warm": ("sharp_warm", "benchmark"),
    "sharp-scan": ("sharp_scan", "benchmark"),
    "sharp-clock": ("sharp_clock", "benchmark"),
    "sharp-many": ("sharp_many", "benchmark"),
    "sharp-oracle": ("sharp_rows", "benchmark"),
    "sharp-paths": ("sharp_paths", "benchmark"),
    "planner": ("planner", "benchmark"),
    "sharp": ("sharp", "benchmark"),
    "real": ("pipelines", "real"),
    "spark": ("spark", "benchmark"),
    "rdflib-service": ("inside_rdflib", "service"),
    "soak": ("soak", "soak"),
    "metaqa": ("metaqa", "benchmark"),
    "rag": ("rag", "benchmark"),
    "gmark": ("gmark_paths", "whole"),
    "graphblas": ("peers.graphblas", "benchmark"),
    "peers": ("peers.run", "benchmark"),
}

#: These take so long that they run only when they are named.
LONG: Final = (
    "gmark",
    "peers",
    "sharp-clock",
    "sharp-many",
    "sharp-oracle",
    "sharp-scan",
    "sharp-settings",
    "sharp-warm",
    "soak",
)


def find(name: str) -> Benchmark | None:
    """A benchmark; None if its module is not there."""
    module, function = BENCHMARKS[name]
    path = f"tests.benchmarks.{module}"
    if importlib.util.find_spec(path) is None:
        return None
    found: Benchmark = getattr(importlib.import_module(path), function)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measures what is asked for, and prints it."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["guard"]:
        guard.main(arguments[1:])
        return
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", choices=[*BENCHMARKS, []], help=", ".join(BENCHMARKS)
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("-f", "--format", choices=["svg"], help="charts instead, of sharp and its settings")
    parser.add_argument("--quick", action="store_true", help="small inputs: does it work, not how fast is it")
    given = parser.parse_args(arguments)
    print(f"Python {platform.python_version()} on {platform.platform()}", file=sys.stderr)
    measured: list[Measurement] = []
    for name in given.names or (name for name in BENCHMARKS if name not in LONG):
        benchmark = find(name)
        if benchmark is None:
            print(f"{name}: not there", file=sys.stderr)
            continue
        for measurement in benchmark(given.quick):
            if given.format:
                measured.append(measurement)
                print(measurement, file=sys.stderr, flush=True)
                continue
            print(json.dumps(asdict(measurement)) if given.json else measurement, flush=True)

    if given.format:
        print(svg(panels(measured)), end="")


if __name__ == "__main__":
    main()
