"""Messages → events: each is an event, or an atomic dataset with events, in any format of the sources.

A message in Jelly or RDF Messages may hold several events, and so may one with several named graphs. An
invalid message is a dead letter that names the message's position.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.events import BatchBuilder, Clock, EventBatch, Ids, OfTriples
from spaseq.limits import Limits
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources._options import FORMATS, check_options
from spaseq.sources.assembly.sink import EventSink, Name, add_dataset
from spaseq.sources.assembly.subjects import assembler_of
from spaseq.sources.formats._parse import PieceError, Pieces
from spaseq.sources.formats.jsonld import add_document
from spaseq.sources.formats.messages import announces_messages, read_messages
from spaseq.sources.formats.rows import RowLifter, open_lifter, read_csv, read_ndjson
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.terms.identified import Row

_NOTHING: Final = "nothing is in it: a message is an event at least"
_TEXTS: Final = ("nq", "nt", "ttl", "trig")


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its bytes, its position in words, and its time of arrival in microseconds since 1970.

    ``problem``: why it cannot be read, if its client knows. ``token``: what the client needs back when the
    message is processed.
    """

    value: bytes
    place: str
    arrived: int
    problem: str = ""
    token: object = None


def now() -> int:
    """Return the current time in microseconds since 1970."""
    return time.time_ns() // 1_000


class _MessageSink(EventSink):
    """A sink that names the message in dead letters. The message's arrival may be the time of its events."""

    def __init__(
        self,
        stream: NamedNode,
        dictionary: Dictionary,
        options: SourceOptions,
        on_bad: Callable[[BadEvent], None],
        limits: Limits,
    ) -> None:
        super().__init__(stream, dictionary, options, on_bad, limits)
        self.place: Callable[[str], str] = str
        self.arrived = 0

    def bad(self, position: str, reason: str, payload: str = "") -> None:
        super().bad(self.place(position), reason, payload)

    def extend(self, graph: Ids, clock: Clock, time: Ids | None, offset: Ids, triples: OfTriples) -> bool:
        if time is not None:
            return super().extend(graph, clock, time, offset, triples)
        arrived = np.full(len(graph), self.arrived, dtype=np.int64)
        return super().extend(graph, Clock.INSTANTS, arrived, offset, triples)

    def _time(self, rows: Sequence[Row], graph: Name | None, times: Sequence[Term]) -> tuple[Clock, int]:
        if self.is_arrival:
            return Clock.INSTANTS, self.arrived
        return super()._time(rows, graph, times)


class Decoder:
    """Messages of one stream → event batches.

    With ``time="arrival"`` an event's time is the instant at which its message arrived. Raises SourceError
    for options that messages of the format do not have.
    """

    def __init__(
        self,
        name: str,
        stream: NamedNode,
        dictionary: Dictionary,
        options: SourceOptions,
        *,
        on_bad: Callable[[BadEvent], None],
        limits: Limits,
    ) -> None:
        self._form = form_of(name, options)
        self._dictionary, self._stream = dictionary, stream
        self._options = options
        self._limits = limits
        self._sink = _MessageSink(stream, dictionary, options, on_bad, limits)
        self._lifter: RowLifter | None = None
        if self._form in ("csv", "ndjson"):
            self._lifter = open_lifter(name, options, self._sink)

    @property
    def nothing(self) -> EventBatch:
        """Return an empty batch."""
        return BatchBuilder(self._dictionary, self._stream, Clock.TICKS).build()

    def read(self, messages: Sequence[Message]) -> EventBatch | None:
        """Return the events of some messages; None if there are none."""
        # Many rows are lifted at once, unless each has its own time of arrival.
        are_sound = not any(message.problem for message in messages)
        if self._form == "ndjson" and not self._sink.is_arrival and are_sound and len(messages) > 1:
            self._rows(messages)
        else:
            for message in messages:
                self._one(message)
        return self._sink.take()

    def _one(self, message: Message) -> None:
        sink, value, form = self._sink, message.value, self._form
        sink.arrived = max(sink.arrived, message.arrived)
        sink.place = lambda position: f"{message.place}, {position}" if position else message.place
        if message.problem:
            sink.bad("", message.problem, value.decode(errors="replace"))
        elif form == "messages" or (form in _TEXTS and announces_messages(value)):
            _drive(read_messages("messages" if form == "messages" else form, iter([value]), sink))
        elif form == "jelly":
            # Imported here: protobuf takes longer to import than everything else together.
            from spaseq.sources.formats.jelly import read_jelly

            _drive(read_jelly(iter([value]), sink, self._options.triples))
        elif form == "csv" and self._lifter is not None:
            try:
                _drive(read_csv(iter([value]), sink, self._lifter, self._options))
            except SourceError as error:  # each message has a header line of its own
                sink.bad("", str(error), value.decode(errors="replace"))
        elif form == "ndjson" and self._lifter is not None:
            _drive(read_ndjson(iter([value]), sink, self._lifter))
        else:
            sink.place = lambda _: message.place
            for text in value.splitlines() if form == "ndjsonld" else [value]:
                self._dataset(text)

    def _dataset(self, text: bytes) -> None:
        """Read a message that is one atomic dataset."""
        sink = self._sink
        if self._form not in _TEXTS:
            if not add_document(sink, text, ""):
                sink.bad("", _NOTHING, text.decode(errors="replace"))
            return
        try:
            quads = Pieces(self._form, self._limits).parse(text)
            if not quads:
                raise ValueError(_NOTHING)
        except (PieceError, ValueError) as error:
            reason = error.reason if isinstance(error, PieceError) else str(error)
            sink.bad("", reason, text.decode(errors="replace"))
        else:
            assembler = assembler_of(sink, None)
            if assembler is None:
                add_dataset(sink, quads, "")
            else:
                assembler.quads(quads)
                assembler.close()

    def _rows(self, messages: Sequence[Message]) -> None:
        """Read messages of rows as one text; line numbers identify the message."""
        assert self._lifter is not None
        parts = [message.value.removesuffix(b"\n") + b"\n" for message in messages]
        first, line = [], 1
        for part in parts:
            first.append(line)
            line += part.count(b"\n")

        def place(position: str) -> str:
            number = position.removeprefix("line ").partition(",")[0]
            of = bisect_right(first, int(number)) - 1 if number.isdecimal() else 0
            return messages[of].place

        self._sink.place = place
        _drive(read_ndjson(iter([b"".join(parts)]), self._sink, self._lifter))


def form_of(name: str, options: SourceOptions) -> str:
    """Return the format of messages. Raises SourceError without one, or for an option that does not fit."""
    form = options.format
    if form is None:
        raise SourceError(f"{name}: how are its messages written? Add ?format=, one of {', '.join(FORMATS)}")
    if options.order == "time":
        raise SourceError(f"{name}: order=time waits for the end, which a live stream has not")
    if options.triples is not None and form != "jelly":
        raise SourceError(f"{name}: a message is an event, whatever it has: leave triples= out")
    check_options(name, form, options)
    return form


def _drive(reader: Iterator[None]) -> None:
    for _ in reader:
        pass
