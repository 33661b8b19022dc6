"""Damaged chunks and entries are refused with one error; crafted ones cannot reach past any array."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq import chunks
from spaseq.chunks import Chunk
from spaseq.engine.durable import journal as entry
from spaseq.errors import EngineError
from spaseq.events import Clock, EventBatch
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary, Term

Read = Callable[[bytes], object]

TERMS: list[Term] = [
    *(NamedNode(f"http://example.org/{i}") for i in range(6)),
    *(Literal(f"é {i}", language="fr") for i in range(3)),
    *(BlankNode(f"b{i}") for i in range(3)),
]


def _batch(dictionary: Dictionary, count: int = 40) -> EventBatch:
    rng = np.random.default_rng(1)
    ids = np.array([dictionary.intern(term) for term in TERMS])
    offset = np.append(0, np.cumsum(rng.integers(0, 4, count)))
    s, p, o = (ids[rng.integers(0, len(ids), offset[-1])] for _ in range(3))
    time = np.sort(rng.integers(0, 99, count))
    stream, graph = np.full(count, ids[0]), ids[rng.integers(0, 6, count)]
    return EventBatch(dictionary, Clock.TICKS, stream, graph, time, np.arange(count), offset, s, p, o)


def _chunk() -> bytes:
    dictionary = Dictionary()
    batch = _batch(dictionary)
    events = np.arange(0, 40, 2)
    columns = {"a": batch.graph[events], "b": np.zeros(20, dtype=np.int64)}
    return chunks.encode(Chunk(batch, {"A": Solutions(20, events, columns)}), with_triples=True)


def _entry() -> bytes:
    dictionary = Dictionary()
    batch = _batch(dictionary)
    stream = int(batch.stream[0])
    happenings: list[entry.Happening] = [
        entry.Registered(0),
        entry.Arrived(stream, 0, [batch]),
        entry.Moved(),
        entry.Promised(Clock.TICKS, 99, None),
    ]
    return entry.encode([{"first": 0}], happenings, dictionary)


def _read_chunk(data: bytes) -> object:
    """All that a chunk says, as another process reads it, and packs it again."""
    read = chunks.decode(data, Dictionary())
    batch, terms = read.batch, read.batch.dictionary.term
    again = chunks.encode(chunks.join([read], {int(batch.stream[0]): 0}), with_triples=True)
    assert chunks.extent(data).events == chunks.extent(again).events
    triples = [[tuple(map(terms, t)) for t in batch.triples(i)] for i in range(len(batch))]
    found = {
        name: (
            table.events.tolist(),
            [(n, [*map(terms, c[c > 0].tolist())]) for n, c in table.columns.items()],
        )
        for name, table in read.solutions.items()
    }
    return batch.clock, batch.time.tolist(), batch.n.tolist(), triples, found


def _read_entry(data: bytes) -> object:
    dictionary = Dictionary()
    said: list[object] = [entry.orders_of(data)]
    for what in entry.decode(data, dictionary):
        if isinstance(what, entry.Arrived):
            (batch,) = what.batches
            triples = [[tuple(map(dictionary.term, t)) for t in batch.triples(i)] for i in range(len(batch))]
            said += [dictionary.term(what.stream), what.first, batch.time.tolist(), triples]
        else:
            said.append(what)
    return said


def _damaged(data: bytes, number: int, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    if number % 5 == 0:
        return data[:at]
    changed = bytearray(data)
    changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _refused(data: bytes, read: Read, times: int) -> None:
    rng = random.Random(times)
    for number in range(times):
        with pytest.raises(EngineError, match=r"damaged|layout"):
            read(_damaged(data, number, rng))


KINDS = pytest.mark.parametrize(
    ("make", "read"), [(_chunk, _read_chunk), (_entry, _read_entry)], ids=["chunk", "entry"]
)


@KINDS
def test_damages(make: Callable[[], bytes], read: Read) -> None:
    """A bit that is flipped, or a missing end, is found before anything is decoded."""
    data = make()
    assert read(data) == read(data)
    _refused(data, read, 300)


@KINDS
@pytest.mark.slow
def test_10_000_damages(make: Callable[[], bytes], read: Read) -> None:
    _refused(make(), read, 10_000)


def _crafted(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """The same with numbers that nothing here writes, each under a checksum that is right."""
    while True:
        header, arrays = chunks.unpack(data)
        name = rng.choice([*arrays])
        array = arrays[name]
        match rng.randrange(5):
            case 0:
                kind = np.iinfo(array.dtype)
                array[rng.randrange(len(array))] = rng.choice([kind.min, kind.max, 0, kind.max // 2])
            case 1:
                array[rng.randrange(len(array))] += rng.choice([1, 2, 100])
            case 2:
                arrays[name] = array[: rng.randrange(len(array))]
            case 3:
                wide = array.astype(np.int64)
                wide[rng.randrange(len(wide))] = rng.choice([-1, -(2**63), 2**62, 2**31, len(wide)])
                arrays[name] = wide
            case 4:
                place = rng.choice([*header])
                header[place] = rng.choice([None, -1, 2**70, [], {}, "x"])
        yield chunks.pack(header, arrays)


def _not_beyond(data: bytes, read: Read, times: int) -> None:
    crafted = _crafted(data, random.Random(times))
    refused = 0
    for _ in range(times):
        try:
            read(next(crafted))
        except EngineError:
            refused += 1
        except (AssertionError, KeyError, TypeError, ValueError):
            pass  # what the header says of the rest
    assert refused > times // 3


@KINDS
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_crafted(make: Callable[[], bytes], read: Read) -> None:
    """Numbers out of bounds are refused, however right their checksum is."""
    _not_beyond(make(), read, 300)


@KINDS
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_10_000_crafted(make: Callable[[], bytes], read: Read) -> None:
    _not_beyond(make(), read, 10_000)
