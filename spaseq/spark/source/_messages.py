"""Messages of a broker → events, a batch of payloads at once.

N-Quads are parsed together, as lines of one text; the position of a quad's line identifies its message. The
embedded engine's reader (``spaseq.connect.messages``) reads other formats, and messages that do not state one
graph and its time exactly once, message by message. A batch with a payload that does not parse is halved
until that payload stands alone, so that few bad messages cost little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import NamedNode

from spaseq.chunks import Mask
from spaseq.connect.messages import Decoder, Message
from spaseq.errors import SourceError
from spaseq.events import Clock, EventBatch, Ids, batch_of, concatenate
from spaseq.limits import Limits
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources.assembly._kernel import INSTANT, TICK, UNREAD, read_times
from spaseq.sources.scan.fast import Quads
from spaseq.spark.sinks._lines import MOST_EVENTS, MOST_PARTITIONS, arrival_numbers, place_of
from spaseq.spark.source._rows import integers, scoped, without_repeated
from spaseq.terms._table_kernel import IRI, KIND
from spaseq.terms.dictionary import Dictionary

#: So few messages are not worth to be read together.
_FEW: Final = 4


@dataclass(frozen=True, slots=True)
class MessageReading:
    """How messages become events; picklable. ``streams``: topic → IRI of its stream."""

    streams: Mapping[str, str]
    options: SourceOptions

    def read(
        self, rows: pa.RecordBatch, dictionary: Dictionary, letters: list[BadEvent]
    ) -> Iterator[EventBatch]:
        """Yield the events of messages, like ``_rows.read_rows``.

        The messages' columns: ``topic``, ``value``, ``offset``, ``partition``, ``micros``.
        """
        for topic in pc.unique(rows.column("topic")).to_pylist():
            own = rows.filter(pc.equal(rows.column("topic"), topic))
            yield from _Messages(topic, self.streams[topic], self.options, own, dictionary).read(letters)


class _Messages:
    """Some messages of one topic."""

    def __init__(
        self, topic: str, stream: str, options: SourceOptions, rows: pa.RecordBatch, dictionary: Dictionary
    ) -> None:
        self._topic, self._stream, self._options = topic, NamedNode(stream), options
        self._rows = rows
        self._dictionary = dictionary
        self._stream_id = dictionary.pin(self._stream)
        self._predicate = dictionary.pin(options.time) if isinstance(options.time, NamedNode) else 0
        # What the kernels know.
        is_timed = self._predicate != 0 or options.time == "arrival"
        self._is_plain = options.format == "nq" and is_timed and options.by is None
        offset, partition = (integers(rows, name) for name in ("offset", "partition"))
        if partition.max(initial=0) >= MOST_PARTITIONS:
            raise SourceError(
                f"topic {topic}: it has more than {MOST_PARTITIONS:,} partitions: use several topics"
            )
        self._n = arrival_numbers(offset, partition)
        self._micros = integers(rows, "micros")
        # A line ends where its message does.
        self._texts = pc.binary_join_element_wise(rows.column("value"), b"\n", b"")

    def read(self, letters: list[BadEvent]) -> Iterator[EventBatch]:
        """Yield their events; malformed messages go to ``letters``."""
        spans = [(0, len(self._rows))]
        while spans:
            begin, end = spans.pop()
            found = None
            if end - begin > _FEW and self._is_plain:
                found = self._together(begin, end)
                if found is None:
                    middle = (begin + end) // 2
                    spans += [(middle, end), (begin, middle)]
                    continue
            batches, left = ([], range(begin, end)) if found is None else found
            yield from batches
            alone = [event for event in (self._alone(index, letters) for index in left) if event is not None]
            for clock in Clock:
                if some := [event for event in alone if event.clock is clock]:
                    yield concatenate(some)

    def _together(self, begin: int, end: int) -> tuple[list[EventBatch], list[int]] | None:
        """Return the events of plain messages, and the numbers of the others; None if any cannot be
        parsed.
        """
        texts = self._texts.slice(begin, end - begin)
        lengths = pc.fill_null(pc.binary_length(texts), 0).to_numpy().astype(np.int64)
        dictionary = self._dictionary
        with dictionary.lock:
            quads = Quads("nq", dictionary, Limits())
            if not quads.read(b"".join(text for text in texts.to_pylist() if text is not None)):
                return None
            s, p, o, g, starts, _ = quads.rows[:, : quads.count]
            message = np.searchsorted(np.cumsum(lengths), starts, side="right")
            events = self._judged(end - begin, message, s, p, o, g)
            own = events.rows
            s, p, o, message = s[own], p[own], o[own], message[own]
            s, o = scoped(dictionary, message, s, o)
            triples = without_repeated(message, s, p, o)
            clocks = ((Clock.INSTANTS, INSTANT), (Clock.TICKS, TICK))
            batches = [self._batch(clock, begin, events, events.status == status, triples)
                       for clock, status in clocks if (events.status == status).any()]  # fmt: skip
        return batches, (np.flatnonzero(events.status == UNREAD) + begin).tolist()

    def _batch(
        self, clock: Clock, begin: int, events: _Events, chosen: Mask, triples: tuple[Ids, Ids, Ids, Ids]
    ) -> EventBatch:
        """Return the chosen messages as events on one clock; ``begin``: the number of the first message."""
        message, s, p, o = triples
        if not chosen.all():
            own = chosen[message]
            message, s, p, o = message[own], s[own], p[own], o[own]
        which = np.flatnonzero(chosen)
        time = events.time[which] if self._predicate else self._micros[begin + which]
        stream = np.full(len(which), self._stream_id, dtype=np.int64)
        offset = np.append(0, np.searchsorted(message, which, side="right")).astype(np.int64)
        of_events = stream, events.graph[which], time, self._n[begin + which], offset
        return batch_of(self._dictionary, clock, of_events, (s, p, o))

    def _judged(self, count: int, message: Ids, s: Ids, p: Ids, o: Ids, g: Ids) -> _Events:
        """Return which messages are events, and their times."""
        table = self._dictionary.table()
        named = (g != 0) & (s >= 0)
        graph = np.zeros(count, dtype=np.int64)
        graph[message[named][::-1]] = g[named][::-1]  # the first one counts
        plain = table.terms[graph, KIND] == IRI
        plain[message[(s < 0) | (named & (g != graph[message]))]] = False
        status, time = np.full(count, INSTANT, dtype=np.int64), np.zeros(count, dtype=np.int64)
        if self._predicate:
            says = (p == self._predicate) & (s >= 0)
            outside = says & (g == 0) & (s == graph[message])
            plain[message[(g == 0) & ~outside]] = False
            # A time inside the graph counts only if there is none outside.
            told = np.bincount(message[outside], minlength=count)
            says = outside | (says & named & (told[message] == 0))
            plain &= np.bincount(message[says], minlength=count) == 1
            ids = np.zeros(count, dtype=np.int64)
            ids[message[says]] = o[says]
            ids[~plain] = 0
            read_times(table.terms, table.arena, ids, status, time)
        status[~plain] = UNREAD
        return _Events(status, time, graph, np.flatnonzero(named & (status != UNREAD)[message]))

    def _alone(self, index: int, letters: list[BadEvent]) -> EventBatch | None:
        """Yield a message's events, read by the embedded engine's reader; malformed ones are added to
        ``letters``.
        """
        value = self._rows.column("value")[index].as_py()
        place = place_of(self._topic, int(self._n[index]))
        problem = "the message has no value" if value is None else ""
        message = Message(value or b"", place, int(self._micros[index]), problem)
        # One decoder for each message: its first event decides its clock.
        decoder = Decoder(
            self._topic, self._stream, self._dictionary, self._options, on_bad=letters.append, limits=Limits()
        )
        found = decoder.read([message])
        if found is not None and len(found) > MOST_EVENTS:
            reason = f"a message has at most {MOST_EVENTS:,} events on Spark, and this one {len(found):,}"
            letters.append(
                BadEvent(self._stream.value, place, reason, message.value.decode(errors="replace"))
            )
            return None
        return None if found is None else replace(found, n=self._n[index] + found.n)


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of messages, by number: ``status`` and ``time`` as returned by ``read_times``, ``graph``;
    ``rows`` are the quads of the messages that are events.
    """

    status: Ids
    time: Ids
    graph: Ids
    rows: Ids
