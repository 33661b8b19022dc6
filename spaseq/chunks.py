"""Events and the solutions of GPMs as bytes (chunks), for other processes and for state files."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from spaseq.errors import EngineError
from spaseq.events import Clock, EventBatch, Ids, concatenate
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms import _table_kernel as kernels
from spaseq.terms._table_kernel import FRESH, IRI, KIND, LABEL, LENGTH, PADDING
from spaseq.terms.dictionary import UNBOUND, Dictionary, distinct_of
from spaseq.terms.table import padded

# Arrays and a few plain values as bytes: the form of chunks and states.

Array = npt.NDArray[Any]

#: The first bytes of everything packed; the digit is the version of the layout.
MAGIC: Final = b"SPQ6"

#: Then the CRC-32 of all that follows it, and the length of the header.
_FRAME: Final = struct.Struct("<IQ")
_HEAD: Final = len(MAGIC) + _FRAME.size
_SEALED: Final = len(MAGIC) + 4

#: Types of arrays: integers of 1 to 8 bytes.
_TYPES: Final = re.compile(r"\|[iu]1|<[iu][248]")

#: The exceptions that a malformed header or array causes.
_MALFORMED: Final = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    MemoryError,
    RecursionError,
    zstandard.ZstdError,
)


def pack(header: Mapping[str, object], arrays: Mapping[str, Array]) -> bytes:
    """Return a header of JSON values and arrays of one dimension as bytes. The header can be read alone."""
    directory = [(name, array.dtype.str, len(array)) for name, array in arrays.items()]
    head = json.dumps({"header": header, "arrays": directory}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    packed = zstandard.ZstdCompressor(level=1).compress(body)
    length = len(head).to_bytes(8, "little")
    checksum = zlib.crc32(packed, zlib.crc32(head, zlib.crc32(length)))
    return b"".join([MAGIC, checksum.to_bytes(4, "little"), length, head, packed])


def unpack_header(data: bytes) -> dict[str, Any]:
    """Return the header alone. Raises EngineError for bytes of another version, and for damaged ones."""
    with unpacking():
        header: dict[str, Any] = _head(data)[0]["header"]
        return header


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays, which are writable. Raises EngineError as ``unpack_header`` does."""
    with unpacking():
        head, at = _head(data)
        packed = memoryview(data)[at:]
        kinds = [(name, _kind(kind), length) for name, kind, length in head["arrays"]]
        size = sum(kind.itemsize * length for _, kind, length in kinds)
        require(min((length for *_, length in kinds), default=0) >= 0, "the length of an array")
        require(zstandard.frame_content_size(packed) == size, "the size of its arrays")
        # In a bytearray: kernels would be compiled again for read-only arrays.
        body = bytearray(zstandard.ZstdDecompressor().decompress(packed))
        arrays: dict[str, Array] = {}
        at = 0
        for name, kind, length in kinds:
            arrays[name] = np.frombuffer(body, kind, length, at)
            at += arrays[name].nbytes
        return head["header"], arrays


@contextmanager
def unpacking() -> Iterator[None]:
    """Turn errors of reading bytes inside the block into EngineError: ``pack`` did not write such bytes."""
    try:
        yield
    except _MALFORMED as error:
        raise EngineError(f"stored data is damaged: {error or type(error).__name__}") from error


def require(holds: bool | np.bool_, what: str) -> None:
    """Raise ValueError about ``what`` unless the condition ``holds`` is true of unpacked data."""
    if not holds:
        raise ValueError(f"{what} is wrong")


def within(array: Array, least: int, limit: int) -> bool:
    """Return whether all numbers are at least ``least``, and below ``limit``."""
    return not len(array) or bool(least <= array.min() and array.max() < limit)


def narrow(array: Array) -> Array:
    """Return the same integers in the fewest bytes that hold them all."""
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    kinds = (np.uint8, np.int8, np.uint16, np.int16, np.int32)
    chosen = (kind for kind in kinds if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return array.astype(next(chosen, np.int64))


def _head(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header with the directory of the arrays, and where these begin."""
    if data[: len(MAGIC)] != MAGIC:
        raise EngineError(
            f"state or data in a layout that this version does not read: {data[:4]!r} instead of {MAGIC!r}. "
            "Start the query with a new checkpoint, or with the version of spaseq that wrote this one"
        )
    require(len(data) >= _HEAD, "its length")
    checksum, size = _FRAME.unpack_from(data, len(MAGIC))
    require(zlib.crc32(memoryview(data)[_SEALED:]) == checksum, "its checksum")
    require(size <= len(data) - _HEAD, "the length of its header")
    found: dict[str, Any] = json.loads(data[_HEAD : _HEAD + size])
    return found, _HEAD + size


def _kind(kind: str) -> np.dtype[Any]:
    require(_TYPES.fullmatch(kind) is not None, "the type of an array")
    return np.dtype(kind)


# Chunks: events and the solutions of GPMs, in transit from one process to another.
#
# A chunk brings its own terms: its columns are indexes of a table of its terms, which the receiver enters
# into its dictionary at once. Blank nodes travel under their labels, which are unique.

Mask = npt.NDArray[np.bool_]

_NONE: Final[Ids] = np.zeros(0, dtype=np.int64)
_NOTHING: Final[Ids] = np.array([UNBOUND])

#: The first byte of a term by its kind: IRI, literal, label. Each term has at least two bytes.
_FIRST: Final = np.frombuffer(b'\0<"_', dtype=np.uint8)
_SHORTEST: Final = 2


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Chunk:
    """Events with the solutions of each GPM; ``event`` of the solutions is a position in ``batch``.

    The events have no triples unless a query needs them.
    """

    batch: EventBatch
    solutions: Mapping[str, Solutions]

    def __post_init__(self) -> None:
        self.batch.dictionary.hold(self)

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids that the solutions hold."""
        return [column for table in self.solutions.values() for column in table.columns.values()]

    def take(self, events: Ids) -> Chunk:
        """Return the events at these positions, in this order."""
        place = np.full(len(self.batch), -1, dtype=np.int64)
        place[events] = np.arange(len(events))
        moving = _Moving(place)
        return Chunk(
            self.batch.take(events), {name: moving.table(table) for name, table in self.solutions.items()}
        )


@dataclass(frozen=True, slots=True)
class ChunkExtent:
    """The header of a packed chunk: its first and last time, and how many events it has.

    ``again``: the positions of events that another bucket has, too: that bucket reports late ones.
    """

    begin: int
    last: int
    events: int
    again: tuple[int, ...]


def join(chunks: Sequence[Chunk], streams: Mapping[int, int]) -> Chunk:
    """Return the events of several chunks, ordered by time, rank of the stream, and arrival number.

    ``streams``: the rank of each stream's id. There must be at least one chunk.
    """
    batch = concatenate([chunk.batch for chunk in chunks])
    ranks = np.zeros(len(batch), dtype=np.int64)
    for stream, rank in streams.items():
        ranks[batch.stream == stream] = rank
    starts = np.cumsum([0] + [len(chunk.batch) for chunk in chunks])
    known: dict[tuple[int, ...], tuple[list[Ids], Ids]] = {}

    def joined(parts: list[Ids], more: Sequence[int] = ()) -> Ids:
        """Concatenate parts, once for the same arrays; ``known`` keeps them, so that no id() is reused."""
        key = tuple(map(id, parts))
        if key not in known:
            added = [part + start for part, start in zip(parts, more, strict=True)] if more else parts
            known[key] = parts, np.concatenate(added)
        return known[key][1]

    solutions = {}
    for name in chunks[0].solutions:
        tables = [chunk.solutions[name] for chunk in chunks]
        event = joined([events_of(table) for table in tables], starts[:-1].tolist())
        columns = {
            variable: joined([table.column(variable) for table in tables]) for variable in tables[0].columns
        }
        solutions[name] = Solutions(len(event), event, columns)
    return Chunk(batch, solutions).take(np.lexsort((batch.n, ranks, batch.time)))


def events_of(table: Solutions) -> Ids:
    """Return the event of each row."""
    if table.event is None:
        raise ValueError("these solutions belong to no event")
    return table.event


class _Moving:
    """Gives solutions the new positions of their events (-1: dropped), and sorts them by these positions.

    Arrays that tables share stay shared.
    """

    def __init__(self, place: Ids) -> None:
        self._place = place
        self._events: dict[int, tuple[Ids | None, Ids]] = {}
        self._columns: dict[tuple[int, int], Ids] = {}

    def table(self, table: Solutions) -> Solutions:
        event = events_of(table)
        if id(event) not in self._events:
            self._events[id(event)] = self._of(event)
        rows, places = self._events[id(event)]
        columns = {name: self._column(column, rows) for name, column in table.columns.items()}
        return Solutions(len(places), places, columns)

    def _of(self, event: Ids) -> tuple[Ids | None, Ids]:
        """Return the rows to keep, in their new order, and the positions of their events. None for the rows:
        all are kept, in the same order.
        """
        places = self._place[event]
        if (places[1:] >= places[:-1]).all() and (places[:1] >= 0).all():
            return None, places
        rows = np.flatnonzero(places >= 0)
        rows = rows[np.argsort(places[rows], kind="stable")]
        return rows, places[rows]

    def _column(self, column: Ids, rows: Ids | None) -> Ids:
        if rows is None:
            return column
        key = id(column), id(rows)
        if key not in self._columns:
            self._columns[key] = column[rows]
        return self._columns[key]


# --- to bytes and back ------------------------------------------------------------------------


@dataclass(slots=True)
class _Columns:
    """Distinct arrays, by number: GPMs with the same pattern share one array object."""

    arrays: list[Ids] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)

    def number(self, array: Ids) -> int:
        found = self._numbers.get(id(array))
        if found is None:
            found = self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return found


def encode(chunk: Chunk, *, with_triples: bool = False, again: Ids = _NONE) -> bytes:
    """Return a chunk as bytes; at least one event. ``again``: see ``ChunkExtent``."""
    batch = chunk.batch
    events, terms = _Columns(), _Columns()
    gpms = {
        name: [events.number(events_of(table)), {v: terms.number(c) for v, c in table.columns.items()}]
        for name, table in chunk.solutions.items()
    }
    count = len(terms.arrays)
    parts = [*terms.arrays, batch.stream, batch.graph]
    if with_triples:
        parts += [batch.s, batch.p, batch.o]
    used, local = numbered(batch.dictionary, parts)
    # Neighbours differ by little, so that differences take few bytes.
    ordered = {"time": batch.time, "n": batch.n} | {f"e{i}": array for i, array in enumerate(events.arrays)}
    arrays: dict[str, npt.NDArray[Any]] = {name: np.diff(array) for name, array in ordered.items()}
    arrays |= {f"t{i}": local[array] for i, array in enumerate(terms.arrays)}
    arrays |= {"stream": local[batch.stream], "graph": local[batch.graph]}
    if with_triples:
        arrays |= {"offset": batch.offset, "s": local[batch.s], "p": local[batch.p], "o": local[batch.o]}
    arrays |= terms_out(batch.dictionary, used)
    header = {
        "clock": batch.clock.value,
        "begin": int(batch.time.min()),
        "last": int(batch.time.max()),
        "events": len(batch),
        "again": again.tolist(),
        "gpms": gpms,
        "columns": [len(events.arrays), count],
        "first": {name: int(array[0]) for name, array in ordered.items() if len(array)},
    }
    return pack(header, {name: narrow(array) for name, array in arrays.items()})


def extent(data: bytes) -> ChunkExtent:
    """Return the header of a packed chunk. Raises EngineError for a damaged one."""
    header = unpack_header(data)
    with unpacking():
        return ChunkExtent(header["begin"], header["last"], header["events"], tuple(header["again"]))


def decode(data: bytes, dictionary: Dictionary) -> Chunk:
    """Return a chunk, its terms entered into a dictionary. Raises EngineError for a damaged one."""
    header, arrays = unpack(data)
    with unpacking(), dictionary.lock:
        for name, first in header["first"].items():
            arrays[name] = np.cumsum(np.append(first, arrays[name]), dtype=np.int64)
        ids = terms_in(dictionary, arrays)
        size = header["events"]
        has_triples = "offset" in arrays
        batch = EventBatch(
            dictionary,
            Clock(header["clock"]),
            chosen(ids, arrays["stream"], 1),
            chosen(ids, arrays["graph"]),
            arrays["time"].astype(np.int64),
            arrays["n"].astype(np.int64),
            arrays["offset"].astype(np.int64) if has_triples else np.zeros(size + 1, dtype=np.int64),
            *((chosen(ids, arrays[part], 1) for part in "spo") if has_triples else (_NONE, _NONE, _NONE)),
        )
        require(len(batch) == size, "its number of events")
        check_shapes(batch)
        event_count, term_count = header["columns"]
        events = [arrays[f"e{i}"].astype(np.int64) for i in range(event_count)]
        require(all(within(array, 0, size) for array in events), "an event of a solution")
        terms = [chosen(ids, arrays[f"t{i}"]) for i in range(term_count)]
        solutions = {
            name: Solutions(
                len(events[event]), events[event], {v: terms[column] for v, column in columns.items()}
            )
            for name, (event, columns) in header["gpms"].items()
        }
        for table in solutions.values():
            require(all(len(c) == len(table) for c in table.columns.values()), "a column of solutions")
        return Chunk(batch, solutions)


def chosen(ids: Ids, numbers: npt.NDArray[np.generic], least: int = 0) -> Ids:
    """Return the ids of these numbers. Raises ValueError for numbers below ``least`` or without an id."""
    require(within(numbers, least, len(ids)), "the number of a term")
    found: Ids = ids[numbers]
    return found


def check_shapes(batch: EventBatch) -> None:
    """Raise ValueError unless the columns of a batch have one length, and each triple is in one event."""
    size, triples, offset = len(batch), len(batch.s), batch.offset
    columns = (batch.stream, batch.graph, batch.n, offset[1:])
    require(all(len(column) == size for column in columns), "the length of a column")
    require(len(batch.p) == len(batch.o) == triples, "the length of a column of triples")
    ordered = offset[0] == 0 and offset[-1] == triples and (offset[1:] >= offset[:-1]).all()
    require(ordered, "the place of a triple")


def numbered(dictionary: Dictionary, columns: Iterable[Ids]) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return the distinct ids in some columns, and each column's indexes among them, from 1; 0 stays 0."""
    ids = distinct_of([*columns, _NOTHING], dictionary.limit)[1:]
    local = np.zeros(dictionary.limit, dtype=np.int32)
    local[ids] = np.arange(1, len(ids) + 1)
    return ids, local


def terms_out(dictionary: Dictionary, ids: Ids) -> dict[str, npt.NDArray[np.generic]]:
    """Return the bytes and kinds of terms."""
    table = labelled(dictionary, ids)
    data = np.empty(int(table.terms[ids, LENGTH].sum()) + PADDING, dtype=np.uint8)
    ends = np.zeros(len(ids), dtype=np.int64)
    kernels.copy_terms(table.terms, table.arena, ids, data, ends)
    return {
        "terms": data[: len(data) - PADDING],
        "ends": ends.astype(np.int32),
        "kinds": table.terms[ids, KIND].astype(np.int8),
    }


def labelled(dictionary: Dictionary, ids: Ids):  # type: ignore[no-untyped-def]
    """Return the dictionary's table. Fresh blank nodes among ``ids`` get labels, so that all have bytes."""
    table = dictionary.table()
    for identifier in ids[table.terms[ids, KIND] == FRESH].tolist():
        dictionary.term(identifier)  # which gives a fresh blank node its label
    return table


def hashed(dictionary: Dictionary, columns: Iterable[Ids]) -> Ids:
    """Return a hash of each row's terms, equal in every process. There must be a column; 0 is no term."""
    codes = np.zeros(1, dtype=np.uint64)
    for column in columns:
        distinct, inverse = np.unique(column, return_inverse=True)
        terms = labelled(dictionary, distinct[distinct != 0])
        mixed = np.zeros(len(distinct), dtype=np.int64)
        kernels.hash_terms(terms.terms, terms.arena, distinct, mixed)
        # As unsigned words, since the product is meant to overflow.
        codes = codes * np.uint64(31) + mixed[inverse].view(np.uint64)
    return codes.view(np.int64)


def terms_in(dictionary: Dictionary, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Ids:
    """Return the ids of a chunk's terms, in order. Raises ValueError for bytes that are no terms."""
    data, kinds = np.asarray(arrays["terms"], dtype=np.uint8), arrays["kinds"].astype(np.int64)
    ends = arrays["ends"].astype(np.int64)
    begins = np.append(0, ends)
    require(begins[-1] == len(data) and len(kinds) == len(ends), "the length of its terms")
    require((np.diff(begins) >= _SHORTEST).all() and within(kinds, IRI, LABEL + 1), "a term")
    text = data.tobytes()
    text.decode()  # ValueError if it is not UTF-8
    require((data[begins[:-1]] == _FIRST[kinds]).all(), "a term")
    table = dictionary.table()
    ids = np.zeros(len(ends) + 1, dtype=np.int64)
    table.reserve(len(ids), len(data))
    kernels.enter_terms(
        table.slots, table.terms, table.arena, table.counts,
        padded(text), ends, kinds, ids[1:],
    )  # fmt: skip
    return ids
