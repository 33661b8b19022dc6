"""``GET /queries/{id}/matches``: a stream of matches, as server-sent events or NDJSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from spaseq.serve.errors import ApiError, beyond
from spaseq.serve.newest.history import MatchHistory
from spaseq.serve.routes.depends import Given
from spaseq.serve.service import ServerState

router = APIRouter(tags=["queries"])

#: The most matches of one write.
_AT_ONCE: Final = 64

#: Seconds between heartbeats.
_BEAT: Final = 15.0

SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"


@router.get(
    "/queries/{key}/matches",
    summary="The matches of a query as they come",
    response_class=Response,
    responses={
        200: {
            "description": "A match each: a server-sent event `match`, or a line. `lost`, `dropped` and "
            "`end` are events of their own, or lines with that one key.",
            "content": {SSE: {}, NDJSON: {}},
        }
    },
)
async def matches(
    request: Request,
    service: Given,
    key: str,
    since: Annotated[int | None, Query(ge=0, description="The last match that you have.")] = None,
    format: Annotated[Literal["sse", "ndjson"] | None, Query()] = None,  # noqa: A002  # its name in the URL
    follow: Annotated[bool, Query(description="Wait for more; 0 ends with what is there.")] = True,
    events: Annotated[bool, Query(description="With the events behind each match.")] = False,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> Response:
    """Send the matches of a query as a stream. They are numbered from 1. `since`, or the header
    `Last-Event-ID`, resumes after a match; without it, the stream begins with the first match that is kept.
    Matches that are no longer kept are reported as `lost`. A reader that is too slow and misses matches gets
    `dropped`, and can resume.
    """
    found = service.find(key)
    history = found.history
    limits = service.settings.limits
    if service.readers >= limits.readers:
        raise beyond("readers", limits.readers, "too many readers at a time", 429)
    place = last_event_id if last_event_id is not None else since
    if place is not None and place > history.count:
        raise ApiError(
            400,
            "parameter",
            f"there is no match {place} yet: the newest is {history.count}",
            hint="another query may have had this id; begin without since",
        )
    if not follow:
        await found.level()
    form = format or _accepted(request.headers.get("accept", ""))
    request.scope["spaseq.lasts"]()
    return _HistoryReader(service, history, place, form, follow, events)


def _accepted(accept: str) -> Literal["sse", "ndjson"]:
    """Return the format that a client names first; NDJSON if it accepts anything."""
    for part in accept.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind == SSE:
            return "sse"
        if kind in (NDJSON, "application/ndjson", "application/jsonl", "*/*", "application/*", ""):
            return "ndjson"
    raise ApiError(406, "format", f"matches come as {SSE} or {NDJSON}", hint="send one of them in Accept")


class _HistoryReader(StreamingResponse):
    """One reader of a history, at its own pace."""

    def __init__(
        self,
        service: ServerState,
        history: MatchHistory,
        place: int | None,
        form: Literal["sse", "ndjson"],
        follow: bool,
        events: bool,
    ) -> None:
        super().__init__(iter(()), media_type=SSE if form == "sse" else NDJSON)
        self.headers["X-Accel-Buffering"] = "no"
        self._service = service
        self._history = history
        self._place = place
        self._follow = follow
        self._events = events
        self._told: Callable[[str, dict[str, Any], int | None], str] = _event if form == "sse" else _line
        self._one: Callable[[int, str], str] = _match_event if form == "sse" else _match_line
        self._beat = ": \n\n" if form == "sse" else "\n"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI
        self._service.readers += 1
        gone = asyncio.ensure_future(_gone(receive))
        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            await self._write(_Sender(send, self._service.settings.limits.pause), gone)
        except (TimeoutError, OSError):  # a client that accepts nothing cannot get a message either
            self._service.dropped += 1
        finally:
            self._service.readers -= 1
            gone.cancel()

    async def _write(self, send: _Sender, gone: asyncio.Future[None]) -> None:
        history = self._history
        place = history.first - 1 if self._place is None else self._place
        if place < history.first - 1:
            lost = {"from": place + 1, "to": history.first - 1}
            place = history.first - 1
            await send(self._told("lost", lost, place))
        while not gone.done():
            news = history.news
            if place < history.first - 1:
                self._service.dropped += 1
                reason = f"you were too slow: matches {place + 1} to {history.first - 1} are no longer kept"
                await send(self._told("dropped", {"reason": reason, "since": place}, None), last=True)
                return
            if found := history.after(place, _AT_ONCE):
                place = found[-1].number
                await send("".join(self._one(one.number, one.text(self._events)) for one in found))
                await asyncio.sleep(0)
            elif history.end is not None or not self._follow:
                end = history.end if self._follow else None
                await send("" if end is None else self._told("end", end, None), last=True)
                return
            else:
                await asyncio.wait({news, gone}, timeout=_BEAT, return_when=asyncio.FIRST_COMPLETED)
                if not news.done() and not gone.done():
                    await send(self._beat)


class _Sender:
    """Sends parts of a response. Raises TimeoutError if a part is not accepted in time."""

    def __init__(self, send: Send, pause: float) -> None:
        self._send = send
        self._pause = pause

    async def __call__(self, text: str, *, last: bool = False) -> None:
        message = {"type": "http.response.body", "body": text.encode(), "more_body": not last}
        async with asyncio.timeout(self._pause):
            await self._send(message)


async def _gone(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(kind: str, value: dict[str, Any], number: int | None) -> str:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n"


def _line(kind: str, value: dict[str, Any], _: int | None) -> str:
    return json.dumps({kind: value}, ensure_ascii=False) + "\n"


def _match_event(number: int, text: str) -> str:
    return f"id: {number}\nevent: match\ndata: {text}\n\n"


def _match_line(_: int, text: str) -> str:
    return f"{text}\n"
