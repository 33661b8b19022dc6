"""``/streams``: send events, advance time, list streams; ``/letters``: refused events."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Header, Query, Request
from pyoxigraph import Literal, NamedNode

from spaseq.errors import SourceError, SpaseqError
from spaseq.serve.errors import ApiError, told
from spaseq.serve.routes.bodies import FORMATS, Taken, Way, format_of, take_body
from spaseq.serve.routes.depends import Given
from spaseq.sources import SourceOptions
from spaseq.sources._options import read_option
from spaseq.sources.time_option import TimePath, read_time_option
from spaseq.sources.times import read_time
from spaseq.terms.values import XSD

router = APIRouter(tags=["streams"])

_BODY: dict[str, Any] = {
    "requestBody": {"content": {kind: {"schema": {"type": "string"}} for kind in FORMATS}, "required": True}
}

_TIME = "An xsd:dateTime, a number (a tick), or `arrival`: now"


@router.get("/streams", summary="All streams")
async def streams(service: Given) -> dict[str, list[dict[str, Any]]]:
    """Return the streams that have events or that a query reads. Each has its events per second over the last
    seconds, and the lag of its newest event behind the clock, in seconds.
    """
    return {"streams": await service.streams()}


@router.post("/streams/{iri:path}/watermark", summary="Move time on")
async def watermark(
    request: Request,
    service: Given,
    iri: str,
    time: Annotated[str | None, Query(description="No event of the stream before that will come.")] = None,
) -> dict[str, Any]:
    """Advance the time of a stream. Windows that have ended by this `time` are completed. Events that arrive
    afterwards with an earlier time are late."""
    if not bytes(request.scope.get("raw_path", b"/watermark")).endswith(b"/watermark"):
        kind = request.headers.get("content-type")  # the IRI of a stream may end with /watermark
        return await send(request, service, f"{iri}/watermark", time=time, content_type=kind)
    if time is None:
        raise ApiError(400, "parameter", "time: there is none", hint=_TIME)
    stream, moment = _stream(iri), _moment(time)
    await service.engine.advance(moment, stream)
    return {"stream": stream, "watermark": time}


@router.post("/streams/{iri:path}", summary="Send events", openapi_extra=_BODY)
async def send(
    request: Request,
    service: Given,
    iri: str,
    time: Annotated[str | None, Query(description=f"The time of all events. {_TIME}.")] = None,
    event_time: Annotated[str | None, Header(description=f"The same. {_TIME}.")] = None,
    predicate: Annotated[str | None, Query(description="Of an event's time, in the data; or a path.")] = None,
    triples: Annotated[int | None, Query(ge=1, description="So many make an event.")] = None,
    by: Annotated[str | None, Query(description="Where an event ends: subject, message or an IRI.")] = None,
    content_type: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Send events to a stream; its IRI is percent-encoded. Turtle and N-Triples are one event; in TriG and
    N-Quads each named graph is an event. Times are in the data (`prov:generatedAtTime`), unless given."""
    given = time if time is not None else event_time
    options = SourceOptions(format=format_of(content_type), triples=triples, is_live=True)
    if predicate is not None:
        options = replace(options, time=_time(predicate))
    if by is not None:
        try:
            options = replace(options, by=read_option("by", by))  # type: ignore[arg-type]  # as it reads them
        except SourceError as error:
            raise ApiError(400, "parameter", str(error)) from None
    way = Way(
        _stream(iri),
        options,
        None if given is None else _moment(given),
        datetime.now(UTC) if service.settings.wall_clock else None,
    )
    taken = Taken()
    try:
        await take_body(request, service, way, taken)
    except ApiError as error:
        error.more |= taken.counts()
        raise
    except SpaseqError as error:
        refused = told(error)
        refused.more |= taken.counts()
        raise refused from None
    if taken.bad and not taken.events and not taken.late:
        first = taken.first
        reason = "all events are bad" if first is None else f"{first.position}: {first.reason}"
        raise ApiError(400, "bad-event", reason, hint="GET /letters has them", more=taken.counts())
    return taken.counts()


@router.get("/letters", summary="Dead letters")
async def letters(service: Given, limit: Annotated[int, Query(ge=0)] = 100) -> dict[str, Any]:
    """Return the newest events that were bad or late, the newest first, and how many there were."""
    count, newest = service.letters.newest(limit)
    return {"count": count, "letters": newest}


def _stream(iri: str) -> str:
    return _iri(iri, "stream").value


def _iri(text: str, what: str) -> NamedNode:
    text = unquote(text) if "%" in text and ":" not in text else text
    if ":" not in text:
        raise ApiError(400, "parameter", f"the {what} {text[:100]!r} is no IRI", hint="percent-encode an IRI")
    try:
        return NamedNode(text)
    except ValueError as error:
        raise ApiError(400, "parameter", f"the {what} {text[:100]!r} is no IRI: {error}") from None


def _time(text: str) -> NamedNode | TimePath:
    """Return a predicate, or a path of predicates."""
    try:
        found = read_time_option(text)
    except SourceError as error:
        raise ApiError(400, "parameter", str(error)) from None
    return _iri(text, "predicate") if isinstance(found, str) else found


def _moment(text: str) -> datetime | int:
    """Return the time in a parameter."""
    text = text.strip().replace(" ", "+")  # the plus sign of a time zone, not percent-encoded
    if text == "arrival":
        return datetime.now(UTC)
    is_tick = text.lstrip("+-").isdecimal() and text.isascii()
    kind = "integer" if is_tick else "dateTime" if "T" in text else "date"
    try:
        found = read_time(Literal(text, datatype=NamedNode(XSD + kind)))
    except ValueError as error:
        raise ApiError(400, "parameter", f"time: {error}", hint=_TIME) from None
    return found.clock.show(found.value)
