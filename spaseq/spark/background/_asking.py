"""The stage before the stateless one, used if background graphs are too large for every worker.

It reads events, and returns the keys of the background that they need (``lookups``). A DataFrame join fetches
the solutions with these keys. Then the stateless stage continues, see ``_joined``. Keys are sent as hashes.
If two keys have the same hash, some unneeded solutions arrive too, which does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from spaseq.automaton.pattern import GpmPart, SequencePattern
from spaseq.chunks import Chunk, Mask, encode, hashed
from spaseq.events import EventBatch, Ids, concatenate
from spaseq.language.scope import certain, mentioned, occurring
from spaseq.language.syntax import (
    Filter,
    Graph,
    Group,
    Minus,
    Optional,
    Pattern,
    SubSelect,
    Triples,
    Union,
    Values,
)
from spaseq.patterns.expressions.walk import exists_in, expressions, patterns, volatile
from spaseq.patterns.oxigraph import prepare
from spaseq.patterns.sharing import Shared, Sharing
from spaseq.patterns.spectra.joins import NO_CONTEXT, Route
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.sources import BadEvent
from spaseq.spark._workers import sweep
from spaseq.spark.background._background import asked_once
from spaseq.spark.sinks._lines import letter_line
from spaseq.spark.source._blocks import arrow_schema
from spaseq.spark.stages._job import Job, milliseconds, needs
from spaseq.spark.stages._late import stamps
from spaseq.spark.stages._stateless import together
from spaseq.terms.dictionary import Dictionary

#: ``chunk`` groups rows that belong together; by the number ``slot``, Spark brings them to one task. A row
#: with a ``graph``, the number of a GRAPH pattern, asks for its solutions of the hash ``key``. A row without
#: it brings events (``body``), their number, and the stamps of more events (``over``), or a dead letter, or
#: says that all streams have ended (``ends``).
ASKED: Final = (
    "at timestamp, slot int, chunk bigint, graph int, key bigint, "
    "body binary, letter string, over binary, ends boolean, events bigint"
)

#: Stands for no GRAPH pattern.
NO_GRAPH: Final = -1

_ASKED: Final = arrow_schema(ASKED)


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """The keys that some events ask for, with the number of events, their largest time, and dead letters.

    ``body``: the events that a GPM may want, None if there are none. ``keys``: by the number of a GRAPH
    pattern. ``over``: the stamps of the other events.
    """

    events: int
    newest: int | None
    body: bytes | None
    keys: dict[int, Ids]
    over: bytes | None
    letters: list[BadEvent]


class Asking:
    """The stage for one job, in one process."""

    def __init__(self, job: Job) -> None:
        assert job.joined is not None
        pattern = job.pattern
        self._job = job
        self._all_events = needs(pattern).all_events
        self.dictionary = Dictionary()
        self.dictionary.table()
        self._sharing = Sharing()
        self._streams = {
            name: frozenset(self.dictionary.pin(stream) for stream in part.streams)
            for name, part in pattern.gpms.items()
        }
        self._wanted = [(name, without_graphs(part)) for name, part in pattern.gpms.items()]
        found, graphs = lookups(pattern), asked_once(pattern) or ()
        self._lookups = {number: found[graphs[number]] for number in job.joined.graphs}
        self._routes: dict[Group, Route] = {}

    def run(self, batches: Iterable[EventBatch], letters: list[BadEvent]) -> Iterator[KeyRequest]:
        """Process batches of events; see ``Stateless.run``."""
        for waiting, bad in together(batches, self._job, letters):
            yield self._asked(waiting, bad)

    def _asked(self, waiting: Sequence[EventBatch], letters: list[BadEvent]) -> KeyRequest:
        if not waiting:
            return KeyRequest(0, None, None, {}, None, letters)
        batch = concatenate(waiting)
        shared = self._sharing.of(batch)
        known: dict[tuple[frozenset[int], Group], Solutions] = {}
        wanted = self._wanted_of(shared, known)
        keys = self._keys_of(shared, known)
        kept, left = np.flatnonzero(wanted), np.flatnonzero(~wanted)
        body = None
        if len(kept):
            part = batch.take(kept) if len(left) else batch
            body = encode(Chunk(part, {}), with_triples=True)
        over = stamps(batch, left) if self._job.is_stream and len(left) else None
        asked = KeyRequest(len(batch), int(batch.time.max()), body, keys, over, letters)
        sweep(self.dictionary)
        return asked

    def _wanted_of(self, shared: Shared, known: dict[tuple[frozenset[int], Group], Solutions]) -> Mask:
        """Return which events some GPM may want."""
        wanted = np.full(len(shared.batch), self._all_events)
        for name, group in self._wanted:
            wanted[self._solved(shared, known, name, group).events] = True
        return wanted

    def _keys_of(
        self, shared: Shared, known: dict[tuple[frozenset[int], Group], Solutions]
    ) -> dict[int, Ids]:
        """Return the hashes of the requested keys, each once."""
        keys = {}
        for number, lookup in self._lookups.items():
            tables = [self._solved(shared, known, name, group) for name, group in lookup.asks]
            codes = [hashed(self.dictionary, [t.columns[name] for name in lookup.key]) for t in tables]
            keys[number] = np.unique(np.concatenate(codes))
        return keys

    def _solved(
        self,
        shared: Shared,
        known: dict[tuple[frozenset[int], Group], Solutions],
        name: str,
        group: Group,
    ) -> Solutions:
        """Return a group's solutions in the events of a GPM's streams."""
        streams = self._streams[name]
        if (streams, group) not in known:
            part = shared.part(streams)
            if group not in self._routes:
                self._routes[group] = prepare(group, self.dictionary, None)
            found = (
                self._routes[group].evaluate(part.batch, NO_CONTEXT).everywhere(np.arange(len(part.batch)))
            )
            positions = found.events if part.positions is None else part.positions[found.events]
            known[streams, group] = Solutions(len(found), positions, found.columns)
        return known[streams, group]


def records(job: Job, all_asked: Iterable[KeyRequest], task: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, by its number."""
    for place, asked in enumerate(all_asked):
        yield _record(job, asked, task, place)


def end(job: Job, at: int | None) -> pa.RecordBatch:
    """Return the row that says how far an ended stream has come; with None, that all streams have ended."""
    return _heads(job, at, 0, 0, [(None, None, None, at is None, 0)])


def _record(job: Job, asked: KeyRequest, task: int, place: int) -> pa.RecordBatch:
    at = None if asked.newest is None else milliseconds(asked.newest, job.clock) * 1000
    rows: list[tuple[object, ...]] = [(asked.body, None, asked.over, False, asked.events)]
    rows += [(None, letter_line(letter, job.topics), None, False, 0) for letter in asked.letters]
    heads = _heads(job, at, task, place, rows)
    graph = np.repeat(list(asked.keys), list(map(len, asked.keys.values())))
    key = np.concatenate([_NO_KEYS, *asked.keys.values()])
    if not len(key):
        return heads
    columns = {
        "at": pa.array([at] * len(key), _ASKED.field("at").type),
        "slot": pa.array(np.full(len(key), heads.column("slot")[0].as_py(), dtype=np.int32)),
        "chunk": pa.array(np.full(len(key), heads.column("chunk")[0].as_py())),
        "graph": pa.array(graph.astype(np.int32)),
        "key": pa.array(key),
        "events": pa.array(np.zeros(len(key), dtype=np.int64)),
    }
    nulls = {field.name: pa.nulls(len(key), field.type) for field in _ASKED}
    asks = pa.RecordBatch.from_arrays([(nulls | columns)[name] for name in _ASKED.names], schema=_ASKED)
    return pa.concat_batches([heads, asks])


_NO_KEYS: Final[Ids] = np.zeros(0, dtype=np.int64)


def _heads(job: Job, at: int | None, task: int, place: int, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    """Return rows that ask for no key; their slots spread them over tasks."""
    assert job.joined is not None
    slot = job.joined.slots[(task + place) % len(job.joined.slots)]
    chunk = task << 32 | place
    whole = [(at, slot, chunk, NO_GRAPH, chunk, *row) for row in rows]
    arrays = [
        pa.array(column, field.type) for column, field in zip(zip(*whole, strict=True), _ASKED, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_ASKED)


# --- which rows of a background graph some events can need ---------------------------------------

#: Patterns without GRAPH, each of which an event must match.
Asked = tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """How the solutions of a GRAPH pattern are found: the sorted names of its key, and what binds them.

    ``asks``: for each GPM with this pattern, its name and the patterns beside it that events must match.
    """

    key: tuple[str, ...]
    asks: tuple[tuple[str, Group], ...]


def lookups(pattern: SequencePattern) -> dict[Graph, Lookup]:
    """Return the GRAPH patterns of a query that have a key; ``_background.asked_once`` gives the
    conditions.
    """
    found: dict[Graph, list[tuple[str, Asked]]] = {}
    for name, part in pattern.gpms.items():
        for graph, asked in _places(part.stateless, (), _ambient(part)):
            found.setdefault(graph, []).append((name, asked))
    keys = {
        graph: certain(graph).intersection(*(certain(Group(asked)) for _, asked in places))
        for graph, places in found.items()
    }
    return {
        graph: Lookup(
            tuple(sorted(keys[graph])), tuple(dict.fromkeys((name, Group(asked)) for name, asked in places))
        )
        for graph, places in found.items()
        if keys[graph]
    }


def without_graphs(part: GpmPart) -> Group:
    """Return what an event must match to be wanted by a GPM, whatever the background graphs contain."""
    return Group(_asked(part.stateless.elements, _ambient(part)))


def _ambient(part: GpmPart) -> frozenset[str]:
    """Return the variables that AT and AS bind, outside of the patterns."""
    return frozenset(variable.name for variable in (part.gpm.time, part.gpm.graph) if variable is not None)


def _places(group: Group, around: Asked, ambient: frozenset[str]) -> Iterator[tuple[Graph, Asked]]:
    """Yield each GRAPH in a group, and what the rows of an event that it is joined with must match.

    Joins commute, so all joined elements count. But OPTIONAL and MINUS apply to the rows of the elements
    before them.
    """
    joined = around + _asked(group.elements, ambient)
    for i, element in enumerate(group.elements):
        match element:
            case Graph():
                yield element, joined
            case Group():
                yield from _places(element, joined, ambient)
            case Union(branches):
                for branch in branches:
                    yield from _places(branch, joined, ambient)
            case Optional(inner) | Minus(inner):
                filters = tuple(e for e in group.elements[i:] if isinstance(e, Filter))
                yield from _places(inner, _asked((*group.elements[:i], *filters), ambient), ambient)
            case SubSelect():
                # A subquery does not see the patterns around it.
                yield from _places(element.pattern, (), frozenset())


def _asked(elements: Sequence[Pattern], ambient: frozenset[str]) -> Asked:
    """Return the elements of a group that an event must match by itself, with their filters."""
    own = tuple(element for element in elements if _is_alone(element, ambient))
    bound = certain(Group(own))
    return own + tuple(
        element
        for element in elements
        if isinstance(element, Filter)
        and mentioned(element.condition) <= bound
        and not exists_in(element.condition)
        and not volatile(element.condition)
    )


def _is_alone(element: Pattern, ambient: frozenset[str]) -> bool:
    """Return whether an element is joined with its neighbours, and means the same without them and GRAPH."""
    match element:
        case Triples() | Values():
            return True
        case Group() | Union() | SubSelect():
            return (
                not ambient & occurring(element)
                and not any(isinstance(inner, Graph) for inner in patterns(element))
                and not any(volatile(expression) for expression in expressions(element))
            )
    return False
