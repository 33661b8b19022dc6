"""``output``: what it costs to have matches, after they are found; against nobody reading them.

Events of three kinds in turn, from tables: ``A : B : C`` has a match for each choice of one of each kind in
a window. They are left unread, counted, and read in every form. Unread, ``tecs`` has not found them;
``nfa`` has, but for those of the last table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from io import BytesIO
from statistics import median

import pyarrow as pa

import spaseq
from spaseq.results import writer
from tests.benchmarks.measure import Measurement, check

_QUERY = spaseq.prepare("""SELECT ?a ?b ?c WITHIN 90 SECONDS SLIDING FROM STREAM S <urn:s>
    WHERE { SEQ(A : B : C) DEFINE GPM A ON S { ?a <urn:kind> "a" } DEFINE GPM B ON S { ?b <urn:kind> "b" }
    DEFINE GPM C ON S { ?c <urn:kind> "c" } }""")
_MATCHERS = ("tecs", "nfa")
_TABLES = 20


def _unread(handle: spaseq.Handle) -> None:
    del handle


def _counted(handle: spaseq.Handle) -> None:
    for _ in handle.batches():
        pass


def _as_batches(handle: spaseq.Handle) -> None:
    for batch in handle.batches():
        batch.events, batch.bindings  # noqa: B018  # made when they are asked for


def _as_arrow(handle: spaseq.Handle) -> None:
    for batch in handle.batches():
        batch.to_arrow()


def _as_pandas(handle: spaseq.Handle) -> None:
    for batch in handle.batches():
        batch.to_pandas()


def _with_events(handle: spaseq.Handle) -> None:
    for match in handle.matches():
        match.events  # noqa: B018


def _with_bindings(handle: spaseq.Handle) -> None:
    for match in handle.matches():
        match.bindings  # noqa: B018


def _ndjson(handle: spaseq.Handle) -> None:
    with writer("ndjson", _QUERY, BytesIO()) as results:
        for batch in handle.batches():
            results.batch(batch)


#: How matches are read, and of how many of the events the time is taken: one by one takes long.
_FORMS: tuple[tuple[str, Callable[[spaseq.Handle], None], int], ...] = (
    ("unread", _unread, 1),
    ("counted", _counted, 1),
    ("batches with events and bindings", _as_batches, 1),
    ("Arrow", _as_arrow, 1),
    ("pandas", _as_pandas, 1),
    ("NDJSON", _ndjson, 1),
    ("Match with events", _with_events, 10),
    ("Match with bindings", _with_bindings, 10),
)


def _events(count: int) -> Iterator[spaseq.Source]:
    for begin in range(0, count, count // _TABLES):
        part = range(begin, min(begin + count // _TABLES, count))
        table = pa.table({"at": part, "kind": ["abc"[i % 3] for i in part]})
        source = spaseq.table(table, time="at", template="<urn:{at}> <urn:kind> ?kind .")
        yield spaseq.Source("urn:s", source)


def _matches(events: int) -> int:
    """How many there are: an event of each kind every three ticks, the first at most 90 before the last."""
    count = 0
    for last in range(2, events, 3):
        begin = max(0, last - 90)
        count += sum(len(range(first + 1, last, 3)) for first in range(begin + -begin % 3, last, 3))
    return count


def _seconds(matcher: str, events: int, read: Callable[[spaseq.Handle], None]) -> tuple[float, float]:
    """Processor time of finding, with nobody reading, and of what reading takes besides."""
    engine = spaseq.Engine(matcher=matcher, limits=spaseq.Limits(pending_matches=None))
    handle = engine.register(_QUERY)
    tables = list(_events(events))
    begin = time.process_time()
    for table in tables:
        engine.feed(table)
    found = time.process_time()
    read(handle)
    done = time.process_time()
    if read is not _unread:
        check("matches", handle.stats.matches, _matches(events))
    return found - begin, done - found


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Each form, in turn with the same left unread."""
    events, runs = (600, 1) if quick else (10_000, 3)
    for matcher in _MATCHERS:
        for form, read, share in _FORMS:
            size = events // share
            _seconds(matcher, 300, read)  # compiles what is compiled
            pairs = [_seconds(matcher, size, read) for _ in range(runs)]
            found, taken = median(pair[0] for pair in pairs), median(sum(pair) for pair in pairs)
            yield Measurement(
                "output",
                f"{matcher}, {form}",
                taken / found,
                "unread",
                {"matches": _matches(size) / taken, "events": size / taken},
                {"µs a match": 1e6 * taken / _matches(size)},
            )
