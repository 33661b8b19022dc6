"""Bodies with events: read as they arrive, in the formats of sources."""

from __future__ import annotations

import asyncio
import io
import queue
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Final, cast

from fastapi import Request

from spaseq.engine import Engine, Source
from spaseq.engine.arguments import GivenTime
from spaseq.engine.asynchronous import Worker
from spaseq.errors import SourceError
from spaseq.serve.errors import ApiError, beyond
from spaseq.serve.routes.depends import chunks_of
from spaseq.serve.service import ServerState
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources._bytes import GATHERED

#: Formats by their media types.
FORMATS: Final = {
    "application/trig": "trig",
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "text/turtle": "ttl",
    "application/ld+json": "jsonld",
    "application/x-ndjson": "ndjsonld",
    "application/ndjson": "ndjsonld",
    "application/jsonl": "ndjsonld",
    "application/x-jelly-rdf": "jelly",
    "application/rdf-messages": "messages",
}

#: Up to this size a body is read first, and then processed at once.
_SMALL: Final = 1 << 20

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"

#: Bytes that are unpacked at once.
_PART: Final = 1 << 18

#: Packed bytes that the decompressor gets at once.
_SLICE: Final = 1 << 14

#: The most parts of a body that wait.
_WAITING: Final = 16


@dataclass(frozen=True, slots=True)
class Way:
    """Options for the events of a body; see ``Engine.take``."""

    stream: str
    options: SourceOptions
    time: GivenTime | None
    otherwise: GivenTime | None


@dataclass(slots=True)
class Taken:
    """Counts of the events of a body so far. ``first``: the first one that was refused."""

    events: int = 0
    bad: int = 0
    late: int = 0
    first: BadEvent | None = field(default=None)

    def refuse(self, kind: str, letter: BadEvent) -> None:
        """Count a ``bad`` or ``late`` event."""
        self.first = self.first or letter
        if kind == "late":
            self.late += 1
        else:
            self.bad += 1

    def counts(self) -> dict[str, int]:
        """Return the counts for the response."""
        return {"events": self.events, "bad": self.bad, "late": self.late}


def format_of(content_type: str | None) -> str:
    """Return the format of a body. Raises ``ApiError`` for an unknown one."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    found = FORMATS.get(kind)
    if found is None:
        what = f"the Content-Type {kind!r} is none" if kind else "there is no Content-Type"
        raise ApiError(
            400, "format", f"{what} that events come in", hint=f"one of {', '.join(FORMATS)}; gzip is fine"
        )
    return found


async def take_body(request: Request, service: ServerState, way: Way, taken: Taken) -> None:
    """Process the events of a body. Events before an error were taken, see ``taken``."""
    most = service.settings.limits.body_bytes
    chunks = aiter(chunks_of(request, most, "a body"))
    head = bytearray()
    async for chunk in chunks:
        head += chunk
        if len(head) > _SMALL:
            break
    else:
        unpacked = await asyncio.to_thread(_unpacked, request, bytes(head), most)
        await service.engine.call(partial(_take, body=io.BytesIO(unpacked), way=way, taken=taken))
        return
    limits = service.settings.limits
    if service.uploads >= limits.uploads:
        raise beyond("uploads", limits.uploads, "too many long bodies at a time", 429)
    service.uploads += 1
    request.scope["spaseq.lasts"]()
    try:
        await _take_long(bytes(head), chunks, service, request, way, taken)
    finally:
        service.uploads -= 1


async def _take_long(
    head: bytes, chunks: AsyncIterator[bytes], service: ServerState, request: Request, way: Way, taken: Taken
) -> None:
    """Process the events in a thread as the body arrives, with backpressure."""
    pipe = _Pipe()
    unpack = _Unpacker(request, service.settings.limits.body_bytes, head)
    engine = await service.engine.call(lambda engine: engine)
    worker = Worker(lambda: None)
    taking = asyncio.ensure_future(worker.awaited(lambda: _take(engine, pipe.file, way, taken)))
    try:
        for data in unpack(head):
            await pipe.put(data, taking)
        while True:
            async with asyncio.timeout(service.settings.limits.pause):
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            for data in unpack(chunk):
                await pipe.put(data, taking)
        unpack.end()
        await pipe.put(b"", taking)
    except TimeoutError:
        pause = service.settings.limits.pause
        raise beyond("pause", pause, "the body stopped arriving", 408) from None
    finally:
        pipe.break_off()
        worker.end()
        await asyncio.wait({taking})
        if not taking.cancelled():
            taking.exception()  # retrieved, so that asyncio does not log it
    await taking


class _Pipe:
    """A bounded pipe from the event loop to a reading thread, closed from either side."""

    def __init__(self) -> None:
        self._parts: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self._is_ended = False
        self.file = cast("IO[bytes]", _Readable(self._parts))

    async def put(self, data: bytes, reading: asyncio.Future[None]) -> None:
        """Add a part; wait while too many wait and the reader runs."""
        while not reading.done():
            try:
                self._parts.put_nowait(data)
            except queue.Full:
                await asyncio.wait({reading}, timeout=0.005)
            else:
                self._is_ended = not data
                return

    def break_off(self) -> None:
        """End the pipe before the end of the body: waiting parts may be lost. Does nothing after the end."""
        while not self._is_ended:
            try:
                self._parts.put_nowait(None)
            except queue.Full:
                try:
                    self._parts.get_nowait()
                except queue.Empty:
                    continue
            else:
                return


class _Readable:
    """The reading end of a pipe, as a file."""

    name = "the body"

    def __init__(self, parts: queue.Queue[bytes | None]) -> None:
        self._parts = parts
        self._ended = self._broken = False

    def read(self, _: int = -1) -> bytes:
        """Return what has arrived, waiting for the first of it; empty at the end.

        Raises if the body was broken off: half an event must not count as an event.
        """
        parts: list[bytes] = []
        held = 0
        while not self._ended and held < GATHERED:
            try:
                part = self._parts.get(block=not parts)
            except queue.Empty:
                break
            if part is None:
                self._broken = True
            self._ended = not part
            parts.append(part or b"")
            held += len(part or b"")
        text = b"".join(parts)
        if self._broken and not text:
            raise SourceError("the body was broken off")
        return text


def _take(engine: Engine, body: IO[bytes], way: Way, taken: Taken) -> None:
    source = Source(way.stream, body, way.options)
    steps = engine.take(source, time=way.time, otherwise=way.otherwise, whole=True, refused=taken.refuse)
    for count in steps:
        taken.events += count


# --- compression --------------------------------------------------------------------------------


class _Unpacker:
    """Unpacks the parts of a gzip body. Raises ``ApiError`` if they are too large or damaged."""

    def __init__(self, request: Request, most: int, head: bytes) -> None:
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", "gzip", "x-gzip") or head.startswith(_ZSTD):
            raise ApiError(400, "format", "the body is packed in an unknown way", hint="gzip is known")
        self._packed = coding != "identity" or head.startswith(_GZIP)
        self._most = most
        self._size = 0
        self._member = zlib.decompressobj(wbits=31)
        self._is_full = False

    def __call__(self, data: bytes) -> Iterator[bytes]:
        """Yield the contents of a part."""
        if not self._packed:
            if data:
                yield data
            return
        # In small slices, since the rest of a slice is copied at the end of each member.
        for begin in range(0, len(data), _SLICE):
            yield from self._members(data[begin : begin + _SLICE])

    def _members(self, data: bytes) -> Iterator[bytes]:
        while data or self._is_full:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            try:
                part = self._member.decompress(data, _PART)
            except zlib.error as error:
                raise ApiError(400, "bad-event", f"the body is not gzip: {error}") from None
            self._size += len(part)
            if self._size > self._most:
                raise beyond("body_bytes", self._most, "the unpacked body is too long")
            if part:
                yield part
            # A full part may have a rest, even if all input is used.
            self._is_full = len(part) == _PART and not self._member.eof
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def end(self) -> None:
        """Check that the body is complete."""
        if self._packed and not self._member.eof:
            raise ApiError(400, "bad-event", "the body is a gzip that ends too early")


def _unpacked(request: Request, body: bytes, most: int) -> bytes:
    unpack = _Unpacker(request, most, body)
    found = b"".join(unpack(body))
    unpack.end()
    return found
