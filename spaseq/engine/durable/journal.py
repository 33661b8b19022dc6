"""What happened to an engine, in order, and its form as bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode, RdfFormat, Triple, parse, serialize

from spaseq.events import Clock, EventBatch, concatenate
from spaseq.terms.dictionary import Dictionary

_COLUMNS: Final = ("stream", "graph", "s", "p", "o")

#: Columns that mostly ascend, often in equal steps, are stored as differences, which may overflow: half the
#: size.
_STEPS: Final = ("graph", "ends", "time")


@dataclass(slots=True)
class Arrived:
    """Events of a stream; ``first`` is the arrival number of the first one; ``joins``: more may be appended.

    ``next`` is the number after the last one.
    """

    stream: int
    first: int
    batches: list[EventBatch]
    joins: bool = True
    next: int = field(init=False)

    def __post_init__(self) -> None:
        self.next = self.first + sum(map(len, self.batches))

    def join(self, batch: EventBatch) -> None:
        """Append the next events."""
        self.batches.append(batch)
        self.next += len(batch)

    @property
    def last(self) -> int:
        """The time of the last event."""
        return int(self.batches[-1].time[-1])

    @property
    def clock(self) -> Clock:
        """The clock of their times."""
        return self.batches[0].clock


@dataclass(frozen=True, slots=True)
class Moved:
    """The queries advanced to their watermarks."""


@dataclass(frozen=True, slots=True)
class Promised:
    """A promise that no event before a time will come, of a stream or of any."""

    clock: Clock
    time: int
    stream: int | None


@dataclass(frozen=True, slots=True)
class Held:
    """A stream holds the others back from now on, or no longer."""

    stream: int
    holds: bool


@dataclass(frozen=True, slots=True)
class Registered:
    """The query of this number sees events from now on."""

    number: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The query of this number was removed."""

    number: int


@dataclass(frozen=True, slots=True)
class Changed:
    """A background graph has these triples from now on, as N-Triples; None: it was removed."""

    graph: str
    triples: str | None

    @classmethod
    def of(cls, name: NamedNode, triples: Sequence[Triple] | None) -> Changed:
        """Return a graph's new triples; blank nodes keep their labels."""
        if triples is None:
            return cls(name.value, None)
        text = serialize(triples, format=RdfFormat.N_TRIPLES)
        assert text is not None
        return cls(name.value, text.decode())

    def read(self) -> tuple[NamedNode, list[Triple] | None]:
        """Return the graph's name, and its triples."""
        if self.triples is None:
            return NamedNode(self.graph), None
        return NamedNode(self.graph), [quad.triple for quad in parse(self.triples, RdfFormat.N_TRIPLES)]


Happening = Arrived | Moved | Promised | Held | Registered | Cancelled | Changed

#: All but ``Arrived``, by their names in an entry: there, each is its name and the values of its fields.
_KINDS: Final = {
    kind.__name__.lower(): kind for kind in (Moved, Promised, Held, Registered, Cancelled, Changed)
}

#: JSON: the state of the engine's orders before the first happening of an entry.
Orders = list[dict[str, Any]]


def encode(orders: Orders, happenings: Sequence[Happening], dictionary: Dictionary) -> bytes:
    """Return the bytes of an entry."""
    # Imported here, because compiled code takes a while to load.
    from spaseq.chunks import numbered, pack, terms_out

    def iri(stream: int) -> str:
        return dictionary.term(stream).value

    listed: list[list[object]] = []
    batches: list[EventBatch] = []
    for what in happenings:
        match what:
            case Arrived():
                count = what.next - what.first
                listed.append(["events", iri(what.stream), what.first, count, what.clock.value])
                batches += what.batches
            case _:
                said = {f.name: getattr(what, f.name) for f in fields(what)}
                if said.get("stream") is not None:
                    said["stream"] = iri(said["stream"])
                listed.append([type(what).__name__.lower(), *said.values()])
    arrays: dict[str, npt.NDArray[Any]] = {}
    if batches:
        batch = concatenate(batches)
        with dictionary.lock:
            used, local = numbered(dictionary, [getattr(batch, name) for name in _COLUMNS])
            arrays = {name: local[getattr(batch, name)] for name in _COLUMNS}
            arrays |= terms_out(dictionary, used)
        arrays |= {"time": batch.time, "sizes": np.diff(batch.offset).astype(np.int32)}
        for name in _STEPS:
            arrays[name] = np.diff(arrays[name], prepend=arrays[name].dtype.type(0))
    return pack({"orders": orders, "happenings": listed}, arrays)


def orders_of(data: bytes) -> Orders:
    """Return the state of the orders before an entry, without the rest. Raises EngineError if it
    is damaged.
    """
    from spaseq.chunks import unpack_header, unpacking

    with unpacking():
        orders: Orders = unpack_header(data)["orders"]
    return orders


def decode(data: bytes, dictionary: Dictionary) -> list[Happening]:
    """Return an entry's happenings. Raises EngineError for bytes that are not an entry."""
    from spaseq.chunks import unpack, unpacking

    header, arrays = unpack(data)
    with unpacking():
        return _happenings(header, _events(arrays, dictionary) if arrays else None, dictionary)


def _events(arrays: dict[str, npt.NDArray[Any]], dictionary: Dictionary) -> EventBatch:
    """Return the events of an entry. Raises ValueError, or KeyError, for arrays that are not an entry's."""
    from spaseq.chunks import check_shapes, chosen, terms_in

    for name in _STEPS:
        arrays[name] = np.cumsum(arrays[name], dtype=arrays[name].dtype)
    with dictionary.lock:
        ids = terms_in(dictionary, arrays)
        stream, graph, *triples = (
            chosen(ids, arrays[name], 0 if name == "graph" else 1) for name in _COLUMNS
        )
        count = len(arrays["time"])
        offset = np.concatenate(([0], np.cumsum(arrays["sizes"], dtype=np.int64)))
        batch = EventBatch(
            dictionary, Clock.TICKS, stream, graph, arrays["time"].astype(np.int64),
            np.zeros(count, dtype=np.int64), offset, *triples,
        )  # fmt: skip
        check_shapes(batch)
        return batch


def _happenings(
    header: Mapping[str, Any], batch: EventBatch | None, dictionary: Dictionary
) -> list[Happening]:
    """Return the happenings of a header; ``batch`` has their events."""
    from spaseq.chunks import require

    happenings: list[Happening] = []
    at = 0

    def identity(iri: str) -> int:
        return dictionary.pin(NamedNode(iri))

    for kind, *said in header["happenings"]:
        match kind:
            case "events":
                iri, first, count, clock = said
                require(batch is not None and 0 < count <= len(batch) - at, "a number of events")
                assert batch is not None
                part = batch if count == len(batch) else batch.take(np.arange(at, at + count))
                numbers = np.arange(first, first + count, dtype=np.int64)
                part = replace(part, clock=Clock(clock), n=numbers)
                happenings.append(Arrived(identity(iri), first, [part]))
                at += count
            case _:
                made = _KINDS[kind]
                given = {f.name: value for f, value in zip(fields(made), said, strict=True)}
                if "clock" in given:
                    given["clock"] = Clock(given["clock"])
                if given.get("stream") is not None:
                    given["stream"] = identity(given["stream"])
                happenings.append(made(**given))
    return happenings


#: The events of a complete entry. The last entry, which is incomplete, is rewritten by each commit.
BLOCK: Final = 2_048


@dataclass(slots=True)
class JournalEntry:
    """An entry in the file, or about to be written.

    ``reach``: the latest times of its events. ``begun``: the state of the orders before it. ``graphs``: the
    background graphs that changed, as N-Triples; None for removed ones.
    """

    seq: int
    events: int = 0
    reach: dict[tuple[int, Clock], int] = field(default_factory=dict)
    begun: Orders = field(default_factory=list)
    graphs: dict[str, str | None] = field(default_factory=dict)

    def saw(self, stream: int, batch: EventBatch) -> None:
        """Note that it contains these events."""
        key, last = (stream, batch.clock), int(batch.time.max())
        self.events += len(batch)
        self.reach[key] = max(self.reach.get(key, last), last)


@dataclass(slots=True)
class _OpenEntry:
    kept: JournalEntry
    happenings: list[Happening] = field(default_factory=list)


class Journal:
    """Records what happens. ``kept``: the entries, in order."""

    def __init__(
        self,
        dictionary: Dictionary,
        orders: Callable[[], Orders],
        joins: Callable[[], bool],
        mixes: Callable[[], bool],
    ) -> None:
        """``orders`` is called before an entry; ``joins``: whether events may be replayed in larger batches.

        ``mixes``: whether derived events may come between simultaneous events.
        """
        self.kept: deque[JournalEntry] = deque()
        self._dictionary = dictionary
        self._orders, self._joins, self._mixes = orders, joins, mixes
        self._whole: list[_OpenEntry] = []
        self._open = _OpenEntry(JournalEntry(0))
        self._is_written = self._is_moved = True

    def known(self, kept: JournalEntry) -> None:
        """Add an entry that is in the file."""
        self.kept.append(kept)
        self._open = _OpenEntry(JournalEntry(kept.seq + 1))

    @property
    def seq(self) -> int:
        """The number of the incomplete entry."""
        return self._open.kept.seq

    @property
    def unfinished(self) -> JournalEntry:
        """The content so far of the incomplete entry."""
        return self._open.kept

    # --- recording ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Record the state of the orders, if a new entry begins."""
        if not self._open.happenings:
            self._open.kept.begun = self._orders()
        self._is_written = self._is_moved = False

    def arrived(self, stream: int, first: int, batch: EventBatch) -> None:
        """Record that events of a stream arrived."""
        entry = self._open
        entry.kept.saw(stream, batch)
        entry.happenings.append(Arrived(stream, first, [batch], self._joins()))

    def moved(self) -> None:
        """Record that the queries advance to their watermarks."""
        if self._is_moved:
            return
        self.begin()
        if not self._join():
            self._open.happenings.append(Moved())
        self._is_moved = True
        if self._open.kept.events >= BLOCK:
            self.close()

    def promised(self, clock: Clock, time: int, stream: int | None) -> None:
        """Record the promise that no event before a time will come."""
        self.note(Promised(clock, time, stream))

    def held(self, stream: int, holds: bool) -> None:
        """Record that a stream holds the others back, or no longer."""
        self.note(Held(stream, holds))

    def changed(self, name: NamedNode, triples: Sequence[Triple] | None) -> None:
        """Record that a background graph has other triples from now on; None: it was removed."""
        what = Changed.of(name, triples)
        self.note(what)
        self._open.kept.graphs[what.graph] = what.triples

    def note(self, what: Happening) -> None:
        """Record a happening that is neither events nor the advance of queries."""
        self.begin()
        self._open.happenings.append(what)

    def _join(self) -> bool:
        """Join events that came one by one, if nothing was late or came between them.

        An event that does not conform to shapes counts as between: it has a number, and no entry.
        """
        happenings = self._open.happenings
        match happenings[-3:]:
            case [Arrived() as run, Moved(), Arrived(batches=[batch]) as new] if (
                run.joins
                and new.joins
                and run.stream == new.stream
                and run.clock is new.clock
                and run.next == new.first
                and _is_sorted(batch, run.last + self._mixes())
            ):
                run.join(batch)
                happenings.pop()
                return True
        return False

    # --- entries ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Complete the current entry, if it contains anything."""
        if self._open.happenings:
            self._whole.append(self._open)
            self.kept.append(self._open.kept)
            self._open = _OpenEntry(JournalEntry(self._open.kept.seq + 1))

    @property
    def events(self) -> int:
        """How many events wait to be written."""
        return sum(entry.kept.events for entry in self._whole) + self._open.kept.events

    def unwritten(self, first: int) -> list[tuple[int, int, bytes]]:
        """Return the entries from ``first`` on that must be written: their numbers, events and bytes."""
        entries = [*self._whole, self._open] if self._open.happenings else self._whole
        return [
            (each.kept.seq, each.kept.events, encode(each.kept.begun, each.happenings, self._dictionary))
            for each in ([] if self._is_written else entries)
            if each.kept.seq >= first
        ]

    def written(self, first: int) -> None:
        """Note that they are in the file, and that those before ``first`` were removed."""
        while self.kept and self.kept[0].seq < first:
            self.kept.popleft()
        self._whole, self._is_written = [], True


def _is_sorted(batch: EventBatch, after: int) -> bool:
    time = batch.time
    if len(batch) == 1:
        return time.item(0) >= after
    return bool(time[0] >= after and (time[1:] >= time[:-1]).all())
