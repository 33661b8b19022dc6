"""The fourteen figures of ``guard``: ``python -m tests.benchmarks.guard_figures NAME`` measures one, as JSON.

A figure is the CPU time of a fixed peer divided by the CPU time of spaseq, so that higher is better. Both run
in turn, and both are warm. Only public names of spaseq occur here, and no matcher, so that the same file
measures other revisions.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

import numpy as np
import pyoxigraph as ox

import spaseq
from tests.benchmarks import many_queries as q
from tests.benchmarks.measure import check, cpu_seconds
from tests.benchmarks.trades import (
    PROV,
    STREAM,
    XSD,
    n_quads,
    next_higher,
    rising_and_falling,
    sinking,
    source,
    v_shape,
    v_shapes,
)

#: Wall seconds that a process measures, and the least and most pairs of runs.
_SECONDS: Final = 12.0
_LEAST, _MOST = 4, 40

#: Answers a run: matches, pairs or events.
Run = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Work:
    """What a figure compares. ``prepare`` makes a run of spaseq, and is not timed; ``peer`` is fixed work."""

    prepare: Callable[[], Run]
    peer: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the guard. ``make`` gets a folder that is deleted later, and a divisor of all sizes."""

    what: str
    peer: str
    make: Callable[[Path, int], Work]


@dataclass(frozen=True, slots=True)
class Taken:
    """What one process measured: CPU seconds of each pair of runs, and the answers of each run."""

    package: str
    code: list[float]
    peer: list[float]
    answers: int


def measure(name: str, *, quick: bool = False) -> Taken:
    """Return the CPU seconds of a figure's runs: code, peer, code, peer, …"""
    with tempfile.TemporaryDirectory() as folder:
        work = FIGURES[name].make(Path(folder), 100 if quick else 1)
        answers = work.prepare()()  # compiles, or loads what is compiled
        work.peer()
        code: list[float] = []
        peer: list[float] = []
        end = time.perf_counter() + _SECONDS
        while len(code) < (1 if quick else _LEAST) or (
            not quick and len(code) < _MOST and time.perf_counter() < end
        ):
            code.append(_checked(work.prepare(), answers))
            peer.append(cpu_seconds(work.peer))
    return Taken(str(spaseq.__file__), code, peer, answers)


def _checked(run: Run, answers: int) -> float:
    """Return the CPU seconds of a run. Raises AssertionError unless it has these answers."""
    found: list[int] = []
    taken = cpu_seconds(lambda: found.append(run()))
    check("answers", found, [answers])
    return taken


# --- peers ----------------------------------------------------------------------------------------------


def _oxigraph(data: bytes) -> Callable[[], object]:
    def parse() -> None:
        for _ in ox.parse(data, format=ox.RdfFormat.N_QUADS):
            pass

    return parse


def _json(lines: int) -> Callable[[], object]:
    row = {"time": "2024-01-01T00:00:00Z", "n": 17, "ticker": "T7", "volume": 100, "price": 12.5, "side": "B"}
    line = json.dumps(row)

    def parse() -> None:
        for _ in range(lines):
            json.loads(line)

    return parse


def _numpy(size: int) -> Callable[[], object]:
    numbers = np.random.default_rng(1).integers(0, 1 << 40, size)

    def sort_and_sum() -> None:
        order = np.argsort(numbers, kind="stable")
        np.cumsum(numbers[order])
        np.unique(numbers % 1_000, return_counts=True)

    return sort_and_sum


# --- from bytes -----------------------------------------------------------------------------------------


def _ingest(_folder: Path, divisor: int) -> Work:
    """Each event concerns the query; its filter passes none."""
    events = 100_000 // divisor
    data = n_quads(rising_and_falling(events, companies=100), 2)
    query = spaseq.prepare(f"""PREFIX : <http://example.org/>
        SELECT ?c WITHIN 10 SECONDS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?c :price ?p ; :volume ?v . FILTER(?p < 0) }} }}""")

    def run() -> int:
        with spaseq.Engine() as engine:
            engine.register(query)
            engine.feed(source(data))
            return engine.events

    check("events", run(), events)
    return Work(lambda: run, _oxigraph(data))


def _vshape(_folder: Path, divisor: int) -> Work:
    trades = rising_and_falling(100_000 // divisor, companies=100, falls=0.004)
    data, query = n_quads(trades, 2), v_shape(2)

    def run() -> int:
        return sum(1 for _ in spaseq.run(query, {STREAM: source(data)}))

    check("V shapes", run(), v_shapes(trades))
    return Work(lambda: run, _oxigraph(data))


def _restart(folder: Path, divisor: int) -> Work:
    """Read a state file whose window is full, in a warm process."""
    size = 100_000 // divisor
    data, state = folder / "window.nq", folder / "window.state"
    data.write_bytes(n_quads(sinking(size), 2))
    with spaseq.Engine(state=state) as engine:
        handle = engine.register(next_higher(size), name="higher")
        engine.feed(spaseq.Source(STREAM, data))
        handle.drop()

    def run() -> int:
        engine = spaseq.Engine(state=state)
        events = engine.events
        engine.abandon()
        return events

    check("events", run(), size)
    return Work(lambda: run, _oxigraph(data.read_bytes()))


# --- A : B : C and the like -----------------------------------------------------------------------------

_QUERY: Final = """PREFIX : <urn:> SELECT * WITHIN {window} SECONDS SLIDING FROM STREAM S <urn:s>
    WHERE {{ SEQ({sequence})
      DEFINE GPM A ON S {{ ?x :a ?a }}
      DEFINE GPM B ON S {{ ?y :b ?b . {b} }}
      DEFINE GPM C ON S {{ ?z :{c} }} }} {after}"""


def _query(sequence: str, window: int, b: str = "", c: str = "c ?c", after: str = "") -> spaseq.Query:
    return spaseq.prepare(_QUERY.format(sequence=sequence, window=window, b=b, c=c, after=after))


def _from_columns(queries: Sequence[spaseq.Query], events: q.Events) -> Callable[[], Run]:
    """Make runs that feed a table, and read all matches as batches, with events and bindings."""
    made = events.columns()

    def prepare() -> Run:
        engine = spaseq.Engine(limits=spaseq.Limits(pending_matches=None))
        handles = [engine.register(query) for query in queries]
        table = made()

        def run() -> int:
            engine.feed(table)
            engine.close()
            count = 0
            for handle in handles:
                for batch in handle.batches():
                    batch.events, batch.bindings  # noqa: B018  # made when they are asked for
                    count += len(batch)
            return count

        return run

    return prepare


def _batches(_folder: Path, divisor: int) -> Work:
    events = q.drawn(60_000 // divisor, 100, ["a", "b", "c"])
    return Work(_from_columns([_query("A : B : C", 4)], events), _numpy(1_000_000 // divisor))


def _ndjson(folder: Path, divisor: int) -> Work:
    """The command line, in this process, from a file to a file."""
    events = q.drawn(6_000 // divisor, 100, ["a", "b", "c"])
    query, data, out = folder / "query.rq", folder / "events.nq", folder / "matches.ndjson"
    text = _QUERY.format(sequence="A : B : C", window=3, b="", c="c ?c", after="")
    query.write_text(text, encoding="utf-8")
    rows = zip(events.subjects, events.predicates, events.values, strict=True)
    with data.open("w", encoding="utf-8") as file:
        for i, (s, p, v) in enumerate(rows):
            file.write(f'<urn:{s}> <urn:{p}> "{v}"^^<{XSD}integer> <urn:e{i}> .\n')
            file.write(f'<urn:e{i}> <{PROV}> "{i // 10}"^^<{XSD}integer> .\n')
    arguments = ["spaseq", "run", str(query), "-s", f"S={data}", "-f", "ndjson", "-o", str(out)]

    def run() -> int:
        errors = io.StringIO()
        with patch.object(sys, "argv", arguments), contextlib.redirect_stderr(errors):
            try:
                runpy.run_module("spaseq", run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(errors.getvalue()) from end
        return out.stat().st_size

    return Work(lambda: run, _json(40_000 // divisor))


def _filters(_folder: Path, divisor: int) -> Work:
    query = _query(
        "A : B : C", 100, "FILTER(?b > ?a && ?b < ?a + 3)", "c ?c . FILTER(?c > ?b && ?c < ?b + 3)"
    )
    events = q.drawn(60_000 // divisor, 100, ["a", "b", "c"])
    return Work(_from_columns([query], events), _numpy(1_000_000 // divisor))


def _skip(_folder: Path, divisor: int) -> Work:
    after = "AFTER MATCH SKIP PAST LAST EVENT"
    query = _query("A , B+[,] , C+[,]", 1_000, c="c ?c . FILTER(?c > ?a)", after=after)
    events = q.drawn(300_000 // divisor, 100, [*"abbbbccc", "x", "x"])
    return Work(_from_columns([query], events), _numpy(1_000_000 // divisor))


# --- one event at a time --------------------------------------------------------------------------------


def _push(_folder: Path, divisor: int, beside: int = 0) -> Work:
    """Push events as triples; every second one completes matches. ``beside`` queries concern other events."""
    count, queries = 8_000 // divisor, [spaseq.prepare(text) for text in q.unlike(1 + beside)]
    subject = ox.NamedNode("urn:x")
    kinds = [ox.NamedNode("urn:bought0"), ox.NamedNode("urn:price0")]
    events = [[ox.Triple(subject, kinds[i % 2], ox.Literal(i))] for i in range(count)]

    def prepare() -> Run:
        engine = spaseq.Engine()
        ends: list[object] = []
        for query in queries:
            engine.register(query, on_match=lambda match: ends.append(match.end))

        def run() -> int:
            for i, event in enumerate(events):
                engine.push("urn:s", event, 3 * i)
            return len(ends)

        return run

    return Work(prepare, _json(80_000 // divisor))


def _push_beside(folder: Path, divisor: int) -> Work:
    return _push(folder, divisor, beside=max(2, 100 // divisor))


# --- many queries ---------------------------------------------------------------------------------------


def _prefix(_folder: Path, divisor: int) -> Work:
    queries = [_query("A ; B ; C", 100, c=f"c{i} ?c") for i in range(32)]
    events = q.drawn(40_000 // divisor, 100, q.third_and_third(32))
    return Work(_from_columns(queries, events), _numpy(1_000_000 // divisor))


def _template(_folder: Path, divisor: int) -> Work:
    count = 1_000 // divisor
    queries = [spaseq.prepare(text) for text in q.alerts(count)]
    events = q.drawn(100_000 // divisor, max(1, count // q.A_SHARE), ["price"])
    return Work(_from_columns(queries, events), _numpy(1_000_000 // divisor))


def _one_pattern(_folder: Path, divisor: int) -> Work:
    """All constants are in A; B and C are the same for all queries."""
    count, size, rng = 1_000 // divisor, max(40, 400 // divisor), random.Random(5)
    queries = [
        spaseq.prepare(f"""PREFIX : <urn:> SELECT * WITHIN 100 SECONDS SLIDING FROM STREAM S <urn:s>
            WHERE {{ SEQ(A ; B ; C)
              DEFINE GPM A ON S {{ ?s :a ?u . FILTER(?u = {i}) }}
              DEFINE GPM B ON S {{ ?s :b ?b }}
              DEFINE GPM C ON S {{ ?s :c ?c }} }}""")
        for i in range(count)
    ]
    events = q.Events(
        [f"s{rng.randrange(10)}" for _ in range(size)],
        [rng.choice("abc") for _ in range(size)],
        [rng.randrange(count) for _ in range(size)],
    )
    return Work(_from_columns(queries, events), _numpy(2_000_000 // divisor))


def _registered(_folder: Path, divisor: int) -> Work:
    """Prepared queries of one template, and the first event after them."""
    count = 10_000 // divisor
    queries = [spaseq.prepare(text) for text in q.alerts(1_000 // divisor)] * 10

    def run() -> int:
        engine = spaseq.Engine()
        handles = [engine.register(query) for query in queries]
        engine.push("urn:s", "<urn:s0> <urn:price> 1 .", 0)
        return len(handles)

    check("queries", run(), count)
    return Work(lambda: run, _json(150_000 // divisor))


# --- paths ----------------------------------------------------------------------------------------------


def _paths(_folder: Path, divisor: int) -> Work:
    """All pairs of at most three steps, as terms."""
    nodes, edges, rng = 20_000 // divisor, 200_000 // divisor, np.random.default_rng(1)
    terms = [ox.NamedNode(f"urn:{i}") for i in range(nodes)]
    labels = [ox.NamedNode(f"urn:{letter}") for letter in "abcdefghij"]
    columns = (rng.integers(0, size, edges).tolist() for size in (nodes, len(labels), nodes))
    graph = spaseq.paths.load(
        [ox.Triple(terms[s], labels[p], terms[o]) for s, p, o in zip(*columns, strict=True)]
    )

    def run() -> int:
        return sum(1 for _source, _target in graph.pairs("(<urn:a>|<urn:b>){1,3}"))

    return Work(lambda: run, _numpy(1_000_000 // divisor))


_OXIGRAPH, _JSON, _NUMPY = "Oxigraph's parser", "json.loads", "a NumPy pass"

#: The guard's figures, by name.
FIGURES: Final = {
    "ingest": Figure("N-Quads bytes to columns", _OXIGRAPH, _ingest),
    "vshape": Figure("V shapes from N-Quads bytes", _OXIGRAPH, _vshape),
    "batches": Figure("A : B : C from columns, read as batches", _NUMPY, _batches),
    "ndjson": Figure("A : B : C written as NDJSON", _JSON, _ndjson),
    "filters": Figure("A : B : C with filters between patterns", _NUMPY, _filters),
    "skip": Figure("AFTER MATCH SKIP from columns", _NUMPY, _skip),
    "push": Figure("one push with a callback", _JSON, _push),
    "push-beside": Figure("the same, 100 queries beside it", _JSON, _push_beside),
    "prefix": Figure("32 queries of one prefix", _NUMPY, _prefix),
    "template": Figure("1,000 queries of a template", _NUMPY, _template),
    "one-pattern": Figure("the same, all constants in one pattern", _NUMPY, _one_pattern),
    "registered": Figure("10,000 queries registered", _JSON, _registered),
    "paths": Figure("paths of at most three steps", _NUMPY, _paths),
    "restart": Figure("a restart with a window of 100,000 events", _OXIGRAPH, _restart),
}


if __name__ == "__main__":
    print(json.dumps(asdict(measure(sys.argv[1], quick="--quick" in sys.argv[2:]))))
