"""Locations, recorded or live, → event batches."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import IO, Final, cast

from pyoxigraph import NamedNode

from spaseq import sources
from spaseq.connect.address import Address, is_bucket, is_url, options_of, parse_address
from spaseq.connect.again import Count, Place, resumed
from spaseq.connect.clients.follow import EndedError, Follower, check_followed
from spaseq.connect.clients.http import EVENT_STREAM, Body, HttpClient
from spaseq.connect.clients.ldes import LdesClient
from spaseq.connect.live import (
    STEP,
    Batches,
    Client,
    Ending,
    Live,
    PersistentClient,
    Placed,
    Resumable,
    batches_of,
)
from spaseq.connect.messages import Decoder, form_of
from spaseq.connect.reconnect import DisconnectedError, SilentError
from spaseq.connect.seam import Seam
from spaseq.errors import SourceError
from spaseq.events import EventBatch
from spaseq.limits import Limits
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources._options import MEDIA_TYPES, resolve_format
from spaseq.sources.columns.table import Table
from spaseq.terms.dictionary import Dictionary

#: The location of recorded events, see ``spaseq.sources``.
Recorded = str | Path | IO[bytes] | Table

#: Media types in which each line is a message.
_LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines")


@dataclass(frozen=True, slots=True)
class LiveSource:
    """An unopened live source: its address, how its events are read, and optionally its history."""

    address: Address
    options: SourceOptions = field(default_factory=SourceOptions)
    history: tuple[tuple[Recorded, SourceOptions], ...] = ()


Location = Recorded | LiveSource


def source(url: str, *, history: str | Path | None = None) -> LiveSource:
    """Return a live source by its URL, for ``Source``, ``spaseq.run`` and ``Engine.feed``; it is not opened
    yet.

    ``history``: a file, folder or pattern with options that holds the same stream up to now. Its events come
    first, and events that the live stream repeats are left out (see ``Seam``). Raises SourceError for an
    error in the URL.

    >>> source("mqtt://broker/sensors/+/state?format=ttl&time=arrival").address.hosts
    (('broker', 1883),)
    """
    location, options = parse_location(url)
    if not isinstance(location, LiveSource):
        raise SourceError(
            f"{location} is not a live source: a path is read to its end, unless ?follow is added"
        )
    if history is None:
        return location
    past, of_past = parse_location(str(history))
    return after(((past, of_past),), replace(location, options=options))


def after(history: tuple[tuple[Location, SourceOptions], ...], live: LiveSource) -> LiveSource:
    """Return a live source that continues a history. Raises SourceError if the history has no end."""
    recorded: list[tuple[Recorded, SourceOptions]] = []
    for location, options in history:
        if isinstance(location, LiveSource) or location == "-":
            raise SourceError("the history of a live stream is a file: it must have an end")
        recorded.append((location, options))
    return replace(live, history=tuple(recorded))


def parse_location(spec: str) -> tuple[Location, SourceOptions]:
    """Parse a location and its options, as on the command line: a URL, or a path with options."""
    if is_bucket(spec) or not is_url(spec):
        return sources.parse_source(spec)
    address, given, follows = parse_address(spec)
    options = options_of(given)
    if address.scheme == "file" and not follows:
        return address.path, options
    return LiveSource(address, options), options


def resolved(location: Location, options: SourceOptions) -> tuple[Location, SourceOptions]:
    """Return a location, parsed if it is the text of a URL, with the URL's options about events."""
    if isinstance(location, LiveSource):
        return location, location.options if options == SourceOptions() else options
    if not isinstance(location, str) or not is_url(location):
        return location, options
    address, given, follows = parse_address(location)
    options = replace(options, **given)  # type: ignore[arg-type]  # as read_option reads them
    if address.scheme == "file" and not follows:
        return address.path, options
    return LiveSource(address, options), options


def open_source(
    location: Location,
    stream: NamedNode,
    dictionary: Dictionary,
    options: SourceOptions,
    *,
    on_bad: Callable[[BadEvent], None],
    limits: Limits,
    idle: timedelta | None = None,
    known: tuple[Count, Place | None] = (Count(), None),
) -> Iterator[EventBatch]:
    """Open a source as ``sources.open_source`` does; a live one is a ``Live``, which must be closed.

    ``known``: what was read of a live source before: the events of its history, and its own position. Raises
    SourceError for a position in another source.
    """
    if not isinstance(location, LiveSource):
        return sources.open_source(
            location, stream, dictionary, options, on_bad=on_bad, limits=limits, idle=idle
        )
    live = replace(options, is_live=location.address.scheme != "file")
    opening = _Opening(location.address, stream, dictionary, live, on_bad, limits, idle)
    past = [
        sources.open_source(place, stream, dictionary, of, on_bad=on_bad, limits=limits)
        for place, of in location.history
    ]
    return Live(opening.batches(chain.from_iterable(past) if past else None, known))


@dataclass(frozen=True, slots=True)
class _Opening:
    """The arguments for opening a live source."""

    address: Address
    stream: NamedNode
    dictionary: Dictionary
    options: SourceOptions
    on_bad: Callable[[BadEvent], None]
    limits: Limits
    idle: timedelta | None

    def batches(self, past: Iterator[EventBatch] | None, known: tuple[Count, Place | None]) -> Batches:
        """Return the reader of the source after its history. Raises SourceError for errors known already."""
        seam = None if past is None else Seam()
        client: Client | None = None
        before, place = known
        if self.address.scheme == "file":
            check_followed(self.address.path, self.options)
            connection, live = None, self._followed(seam, place)
        else:
            if not self.address.scheme.endswith(("http", "https")):
                form_of(str(self.address), self.options)
            client = _client(self.address, self.options, self.limits)
            if place is not None:
                client.resume(place)
            connection = PersistentClient(self.address, client)
            live = self._read(connection, client, seam)
        if past is None or seam is None:
            return live
        new = resumed(_passing(past, seam), before, f"the history of {self.address}")
        return _joined(new, seam, connection, None if place is not None else client, live)

    def _read(self, connection: PersistentClient, client: Client, seam: Seam | None) -> Batches:
        def batches(ending: Ending, settled: Callable[[], int]) -> Generator[Placed, None, None]:
            try:
                connection.open(ending)
                if isinstance(client, HttpClient) and not self._is_of_messages(client.media):
                    for batch in self._documents(connection, client, ending):
                        yield batch, client.place
                else:
                    sieve = None if seam is None else seam.without_known
                    yield from batches_of(connection, self._decoder(client), ending, settled, sieve)
            finally:
                connection.close()

        return batches

    def _is_of_messages(self, media: str) -> bool:
        return media == EVENT_STREAM or media in _LINES or self.options.format in ("ndjson", "ndjsonld")

    def _decoder(self, client: Client) -> Decoder:
        options = client.of_members if isinstance(client, LdesClient) else self.options
        if options.format is None and isinstance(client, HttpClient) and client.media in _LINES:
            options = replace(options, format="ndjson")
        return Decoder(
            str(self.address), self.stream, self.dictionary, options, on_bad=self.on_bad, limits=self.limits
        )

    def _documents(
        self, connection: PersistentClient, client: HttpClient, ending: Ending
    ) -> Generator[EventBatch, None, None]:
        """Read a document, requested again if its server falls silent; repeated events are left out."""
        form = self.options.format or MEDIA_TYPES.get(client.media)
        options = replace(self.options, format=form)
        known, following = Seam(), 0
        while not ending.is_set:
            file = _BodyFile(str(self.address), client.body, ending)
            read, first = Seam(), following
            for batch in self._document(file, options):
                read.passed(batch)
                following = max(following, first + int(batch.n.max()) + 1)
                if first:
                    time = batch.time + first if options.time == "arrival" else batch.time
                    batch = known.without_known(replace(batch, n=batch.n + first, time=time))
                yield batch
            if not file.is_silent:
                return
            known = read if following > first else known
            connection.again(ending)

    def _document(self, file: _BodyFile, options: SourceOptions) -> Iterator[EventBatch]:
        """Return the events of one body."""
        body = cast("IO[bytes]", file)
        try:
            yield from sources.open_source(
                body, self.stream, self.dictionary, options, on_bad=self.on_bad, limits=self.limits
            )
        except EndedError:
            return

    def _followed(self, seam: Seam | None, place: Place | None) -> Batches:
        def batches(ending: Ending, _processed: Callable[[], int]) -> Generator[Placed, None, None]:
            path = self.address.path
            # Only N-Quads have events that are complete when nothing follows.
            pause = self.idle if resolve_format(path, self.options) == "nq" else None
            follower = Follower(path, ending, pause, place, self.on_bad)
            try:
                for blocks, before in follower.files():
                    read = sources.read_stream(
                        path,
                        blocks,
                        self.stream,
                        self.dictionary,
                        self.options,
                        on_bad=follower.refuse,
                        limits=self.limits,
                    )
                    for batch in resumed(read, before, path):
                        where = follower.took(batch)
                        yield batch if seam is None else seam.without_known(batch), where
            except EndedError:
                return
            finally:
                follower.close()

        return batches


class _BodyFile:
    """The body of a response as a file that is read once."""

    def __init__(self, name: str, body: Body, ending: Ending) -> None:
        self.name = name
        self._body = body
        self._ending = ending
        self._count = 0
        #: Whether it ended because nothing arrived for a while.
        self.is_silent = False

    def read1(self, _size: int) -> bytes:
        """Return the available bytes; b"" at the end. Raises SourceError if the connection is lost."""
        while not self._ending.is_set:
            try:
                block = self._body.take(STEP)
            except SilentError:
                self.is_silent = True
                return b""
            except DisconnectedError as lost:
                raise SourceError(
                    f"{self.name}: the connection was lost after {self._count} bytes ({lost}), and nothing "
                    "goes on with a document: server-sent events and NDJSON do"
                ) from None
            if block is None:
                return b""
            if block:
                self._count += len(block)
                return block
        raise EndedError

    read = read1


def _client(address: Address, options: SourceOptions, limits: Limits) -> Client:
    """Return the client for a URL. Raises SourceError if it is not installed."""
    # Imported on first use, each with its library.
    match address.scheme:
        case "kafka":
            from spaseq.connect.clients.kafka import KafkaClient

            return KafkaClient(address)
        case "mqtt" | "mqtts":
            from spaseq.connect.clients.mqtt import MqttClient

            return MqttClient(address)
        case "ws" | "wss":
            from spaseq.connect.clients.websocket import WebSocketClient

            return WebSocketClient(address)
        case "ldes+http" | "ldes+https":
            return LdesClient(address, options, limits)
        case _:
            return HttpClient(address)


def _passing(past: Iterator[EventBatch], seam: Seam) -> Iterator[EventBatch]:
    for batch in past:
        seam.passed(batch)
        yield batch


def _joined(
    past: Iterator[EventBatch],
    seam: Seam,
    connection: PersistentClient | None,
    client: Client | None,
    live: Batches,
) -> Batches:
    """Return a reader of a history followed by the live stream.

    Kafka keeps messages while the history is read. It is then read from the history's newest time on, unless
    its position is known from an earlier run: ``client`` is None in that case. Other sources connect before
    the history is read.
    """

    def batches(ending: Ending, settled: Callable[[], int]) -> Generator[Placed, None, None]:
        count = 0
        try:
            if connection is not None and not isinstance(client, Resumable):
                connection.open(ending)
            for batch in past:
                if ending.is_set:
                    return
                count += 1
                yield batch, None
            if isinstance(client, Resumable):
                client.since = seam.since
            yield from live(ending, lambda: settled() - count)
        finally:
            if connection is not None:
                connection.close()

    return batches
