"""Events as rows of a DataFrame: those of ``format("spaseq")``, and those made of columns and messages."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import BlankNode, NamedNode, RdfFormat, parse

from spaseq.chunks import numbered, terms_out
from spaseq.events import BatchBuilder, Clock, EventBatch, Ids, batch_of
from spaseq.limits import Limits
from spaseq.patterns.spectra.solutions import group_codes
from spaseq.sources import BadEvent
from spaseq.sources.scan.fast import Quads
from spaseq.spark.sinks._lines import letter_line, letter_of_line
from spaseq.spark.source._blocks import arrow_schema
from spaseq.terms._table_kernel import KIND, LABEL
from spaseq.terms.dictionary import UNBOUND, Dictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spaseq.spark.sinks._columns import Key

#: ``clock`` is ``instants`` or ``ticks``, and ``time`` a count on it. ``graph`` is the IRI of the event's
#: graph, or null; ``payload`` the graph as N-Triples. ``bad`` is the dead letter (see ``_lines``) of a record
#: that is not an event; then most other columns are null. The column ``bad`` may be missing.
EVENTS: Final = "stream string, clock string, time bigint, n bigint, graph string, payload binary, bad string"

ARROW: Final = arrow_schema(EVENTS)


def read_rows(rows: pa.RecordBatch, dictionary: Dictionary, letters: list[BadEvent]) -> Iterator[EventBatch]:
    """Yield the events of some rows, in batches of one clock; malformed ones are added to ``letters``."""
    if "bad" in rows.schema.names and (bad := rows.column("bad")).null_count < len(rows):
        letters += map(letter_of_line, bad.drop_null().to_pylist())
        rows = rows.filter(bad.is_null())
    clocks = rows.column("clock").to_pylist()
    if len(set(clocks)) > 1:
        for clock in dict.fromkeys(clocks):
            mask = pa.array([c == clock for c in clocks])
            yield from read_rows(rows.filter(mask), dictionary, letters)
    elif clocks:
        fast = _quickly(rows, dictionary)
        if fast is not None:
            yield fast
        else:
            yield from _one_by_one(rows, dictionary, letters)


def _quickly(rows: pa.RecordBatch, dictionary: Dictionary) -> EventBatch | None:
    """Return all rows as events at once; None if any row needs a closer look."""
    payloads = rows.column("payload").to_pylist()
    if any(rows.column(name).null_count for name in ("stream", "time", "n", "payload")):
        return None
    lines = [p if p.endswith(b"\n") else p + b"\n" for p in payloads]
    ends = np.cumsum([len(line) for line in lines], dtype=np.int64)
    with dictionary.lock:
        quads = Quads("nt", dictionary, Limits())
        if not quads.read(b"".join(lines)):
            return None
        s, p, o, _, starts, _ = quads.rows[:, : quads.count]
        event = np.searchsorted(ends, starts, side="right")
        here = s >= 0
        s, p, o, event = s[here], p[here], o[here], event[here]
        s, o = scoped(dictionary, event, s, o)
        event, s, p, o = without_repeated(event, s, p, o)
        offset = np.searchsorted(event, np.arange(len(payloads) + 1)).astype(np.int64)
        stream, graph = (_names(rows.column(name), dictionary) for name in ("stream", "graph"))
        of_events = stream, graph, integers(rows, "time"), integers(rows, "n"), offset
        return batch_of(dictionary, Clock(rows.column("clock")[0].as_py()), of_events, (s, p, o))


def scoped(dictionary: Dictionary, event: Ids, s: Ids, o: Ids) -> tuple[Ids, Ids]:
    """Return a fresh blank node for each label of an event."""
    table = dictionary.table()
    labels = [table.terms[column, KIND] == LABEL for column in (s, o)]
    if not (labels[0].any() or labels[1].any()):
        return s, o
    keys = [((event << 32) | column)[where] for column, where in zip((s, o), labels, strict=True)]
    different, which = np.unique(np.concatenate(keys), return_inverse=True)
    fresh = table.fresh(len(different))[which]
    s, o = s.copy(), o.copy()
    s[labels[0]], o[labels[1]] = np.split(fresh, [np.count_nonzero(labels[0])])
    return s, o


def without_repeated(event: Ids, s: Ids, p: Ids, o: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """Return the triples of events in their order, each once."""
    # Only if two hashes are equal are the triples compared. Usually none are, as no triple is repeated.
    mixed = ((event * 0x1F3D5B79 + s) * 0x2545F491 + p) * 0x1E3779B1 + o
    ordered = np.sort(mixed)
    if not (ordered[1:] == ordered[:-1]).any():
        return event, s, p, o
    different = np.sort(np.unique(group_codes([event, s, p, o]), return_index=True)[1])
    return event[different], s[different], p[different], o[different]


def _names(column: pa.Array, dictionary: Dictionary) -> Ids:
    encoded = column.dictionary_encode()
    names = [UNBOUND if iri is None else _name(iri, dictionary) for iri in encoded.dictionary.to_pylist()]
    ids = np.array([*names, UNBOUND], dtype=np.int64)
    found: Ids = ids[encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)]
    return found


def _name(iri: str, dictionary: Dictionary) -> int:
    return dictionary.fresh() if iri.startswith("_:") else dictionary.intern(NamedNode(iri))


def integers(rows: pa.RecordBatch, name: str) -> Ids:
    """Return a column of integers, with 0 for null."""
    return np.array(pc.fill_null(rows.column(name), 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _one_by_one(
    rows: pa.RecordBatch, dictionary: Dictionary, letters: list[BadEvent]
) -> Iterator[EventBatch]:
    builders: dict[str, BatchBuilder] = {}
    for row in rows.to_pylist():
        try:
            builder = builders.get(row["stream"])
            if builder is None:
                stream = NamedNode(row["stream"])
                builder = builders[row["stream"]] = BatchBuilder(dictionary, stream, Clock(row["clock"]))
            _add(builder, row)
        except (ValueError, SyntaxError, TypeError) as error:
            payload = (row["payload"] or b"").decode(errors="replace")
            letters.append(BadEvent(str(row["stream"]), f"event {row['n']}", str(error), payload))
    for builder in builders.values():
        if len(builder):
            yield builder.build()


def _add(builder: BatchBuilder, row: dict[str, Any]) -> None:
    for column in ("time", "n", "payload"):
        if row[column] is None:
            raise ValueError(f"its {column} is null")
    graph: NamedNode | BlankNode | None = None
    if row["graph"] is not None:
        graph = BlankNode() if row["graph"].startswith("_:") else NamedNode(row["graph"])
    quads = parse(io.BytesIO(row["payload"]), format=RdfFormat.N_TRIPLES)
    builder.add(row["time"], row["n"], [quad.triple for quad in quads], graph)


def all_rows(
    found: Iterable[EventBatch], letters: list[BadEvent], dictionary: Dictionary, n: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some events, and of the dead letters that came with them; ``n``: a number for
    these.
    """
    yield from map(rows_of, found)
    if letters:
        bad = [{"stream": one.stream, "n": n, "bad": letter_line(one)} for one in letters]
        yield pa.RecordBatch.from_pylist(bad, schema=ARROW)
        letters.clear()
    dictionary.sweep()


def rows_of(batch: EventBatch) -> pa.RecordBatch:
    """Return the rows of some events."""
    with batch.dictionary.lock:
        columns = batch.stream, batch.graph, batch.s, batch.p, batch.o
        used, local = numbered(batch.dictionary, columns)
        found = terms_out(batch.dictionary, used)
    ends = np.append(np.int32(0), found["ends"])
    texts = binaries(ends, found["terms"], len(used))

    def terms(ids: Ids) -> pa.Array:
        """Their N-Triples; null for ``UNBOUND``."""
        places = local[ids] - 1
        return texts.take(pa.array(places, mask=places < 0))

    lines = pc.binary_join_element_wise(terms(batch.s), terms(batch.p), terms(batch.o), b".\n", b" ")
    begins = np.frombuffer(lines.buffers()[1], dtype=np.int32)[: len(lines) + 1]
    payloads = binaries(begins[batch.offset], np.frombuffer(lines.buffers()[2] or b"", np.uint8), len(batch))
    return pa.RecordBatch.from_arrays(
        [
            _unbracketed(terms(batch.stream)),
            pa.array([batch.clock.value] * len(batch), pa.string()),
            pa.array(batch.time),
            pa.array(batch.n),
            _unbracketed(terms(batch.graph)),
            payloads,
            pa.nulls(len(batch), pa.string()),
        ],
        schema=ARROW,
    )


def binaries(ends: npt.NDArray[np.int32], data: npt.NDArray[np.generic], count: int) -> pa.Array:
    """Return an array of texts that are adjacent in ``data``, from where each begins and the last ends."""
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _unbracketed(terms: pa.Array) -> pa.Array:
    """Return IRIs without their brackets, and blank nodes unchanged."""
    texts = terms.cast(pa.string())
    return pc.if_else(pc.starts_with(texts, "<"), pc.utf8_slice_codeunits(texts, 1, -1), texts)


# --- what events are made of ------------------------------------------------------------------

#: Turns rows into events; malformed ones are added to the list.
Reading = Callable[[pa.RecordBatch, Dictionary, list[BadEvent]], Iterator[EventBatch]]


@dataclass(frozen=True, slots=True)
class Behind:
    """The rows from which events are made, and how. A query reads these rows, without N-Triples in between.

    ``by_stream`` returns the rows of each stream, since each stream has its own watermark. ``keys`` are the
    columns of the template; None if the events have no template.
    """

    rows: DataFrame
    reading: Reading
    by_stream: Callable[[], list[DataFrame]]
    keys: Mapping[str, Key] | None = None

    def events(self) -> DataFrame:
        """Return the events as rows, for readers other than queries of this package."""
        reading = self.reading

        def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            dictionary = Dictionary()
            letters: list[BadEvent] = []
            for batch in batches:
                yield from all_rows(reading(batch, dictionary, letters), letters, dictionary)

        return self.rows.mapInArrow(read, EVENTS)


_behind: WeakKeyDictionary[DataFrame, Behind] = WeakKeyDictionary()


def remembered(behind: Behind, events: DataFrame) -> DataFrame:
    """Return the events, after noting for queries from which rows they are made."""
    _behind[events] = behind
    return events


def behind(events: DataFrame) -> Behind | None:
    """Return the rows from which events are made; None if the DataFrame was transformed since."""
    return _behind.get(events)
