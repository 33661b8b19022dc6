"""``python -m tests.benchmarks.peers.ours WORKLOAD FORM EVENTS``: a process that runs a workload on spaseq.

It does what the peers' drivers do: six passes to warm up, then one that is timed; a line of JSON to stdout
with the matches, the sum of the numbers of all events in them, and seconds.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyoxigraph as ox

import spaseq
from tests.benchmarks.peers.workloads import WORKLOADS, Row, Workload, csv, n_quads, triples

#: What lifts the rows of a CSV.
_CONTEXT: Final = Path(__file__).with_name("context.jsonld")
_TEMPLATE: Final = "<urn:e{id}> <urn:kind> ?kind ; <urn:key> ?key ; <urn:v> ?v ."
#: Passes before the one that is timed; the peers' drivers have the same number.
WARM_UP: Final = 6
Totals = tuple[int, int]
Read = Callable[[spaseq.Handle], Totals]


def _batches(handle: spaseq.Handle) -> Totals:
    """Every event and every binding of every match, as columns."""
    matches = total = 0
    for batch in handle.batches():
        batch.bindings  # noqa: B018  # made when they are asked for
        matches += len(batch)
        total += sum(int(events.n.sum()) for events in batch.events.values())
    return matches, total


def _matches(handle: spaseq.Handle) -> Totals:
    """Every event of every match, one by one."""
    matches = total = 0
    for match in handle.matches():
        matches += 1
        total += sum(event.n for events in match.events.values() for event in events)
    return matches, total


def _table(rows: list[Row]) -> spaseq.Source:
    columns = dict(zip(("id", "kind", "key", "v"), np.array(rows).T, strict=True))
    return spaseq.Source("urn:s", spaseq.table(pa.table(columns), time="id", template=_TEMPLATE))


def _as_n_quads(rows: list[Row]) -> spaseq.Source:
    return spaseq.Source("urn:s", BytesIO(n_quads(rows)), spaseq.SourceOptions(format="nq"))


def _as_csv(rows: list[Row]) -> spaseq.Source:
    return spaseq.Source("urn:s", BytesIO(csv(rows)), spaseq.SourceOptions(format="csv", context=_CONTEXT))


#: What the events come as, and how matches are read.
FORMS: Final[dict[str, tuple[Callable[[list[Row]], spaseq.Source], Read]]] = {
    "columns": (_table, _batches),
    "columns-objects": (_table, _matches),
    "nq": (_as_n_quads, _batches),
    "csv": (_as_csv, _batches),
}


def engine(workload: Workload, matcher: str | None = None) -> tuple[spaseq.Engine, list[spaseq.Handle]]:
    """An engine with the workload's queries."""
    made = spaseq.Engine(matcher=matcher, limits=spaseq.Limits(pending_matches=None))
    return made, [made.register(query) for query in workload.ours]


def fed(made: spaseq.Engine, handles: list[spaseq.Handle], form: str, source: spaseq.Source) -> Totals:
    """What a pass gives: matches are read while events come, as a caller with a long stream would."""
    read = FORMS[form][1]
    found: list[Totals] = []
    for _ in made.pull(source):
        found += [read(handle) for handle in handles]
    made.close()
    found += [read(handle) for handle in handles]
    return sum(matches for matches, _ in found), sum(total for _, total in found)


def pushed(
    made: spaseq.Engine, handles: list[spaseq.Handle], rows: list[list[ox.Triple]]
) -> Iterator[tuple[int, Totals]]:
    """Nanoseconds of each event, its matches read behind it."""
    (handle,) = handles
    for number, row in enumerate(rows):
        begin = time.perf_counter_ns()
        made.push("urn:s", row, number)
        totals = _matches(handle)
        yield time.perf_counter_ns() - begin, totals


def _parsed(rows: list[Row]) -> list[list[ox.Triple]]:
    texts = (" .\n".join([*triples(row), ""]) for row in rows)
    return [[quad.triple for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES)] for text in texts]


def timed(workload: Workload, form: str, rows: list[Row]) -> dict[str, float]:
    """A pass."""
    begin = time.process_time()
    made, handles = engine(workload)
    setup = time.process_time() - begin
    given = _parsed(rows) if form == "push" else FORMS[form][0](rows)
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    latencies: dict[str, float] = {}
    if isinstance(given, list):
        answers = list(pushed(made, handles, given))
        matches, total = sum(of[0] for _, of in answers), sum(of[1] for _, of in answers)
        p50, p99 = np.percentile([taken for taken, _ in answers], [50, 99])
        latencies = {"p50": p50 / 1_000, "p99": p99 / 1_000}
    else:
        matches, total = fed(made, handles, form, given)
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "setup": setup}
    return {"matches": matches, "sum": total, **spent, **latencies}


def main() -> None:
    """Run the passes to warm up; print what the next pass takes."""
    name, form, events = sys.argv[1:]
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    rows = workload.rows(int(events))
    for _ in range(WARM_UP):
        timed(workload, form, rows)
    print(json.dumps(timed(workload, form, rows)))


if __name__ == "__main__":
    main()
