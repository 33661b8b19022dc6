"""What the functions of all routes are given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from spaseq.serve.errors import ApiError, beyond
from spaseq.serve.service import Service


def service_of(request: Request) -> Service:
    """The service of the application."""
    service: Service = request.app.state.service
    service.requests += 1
    return service


Given = Annotated[Service, Depends(service_of)]


async def chunks_of(request: Request, most: int, what: str) -> AsyncIterator[bytes]:
    """The parts of a body as they come, unpacked; of so many bytes at most."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise beyond("body_bytes", most, f"{what} of {int(length):,} bytes is too long")
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise beyond("body_bytes", most, f"{what} is too long")
        if chunk:
            yield chunk


async def text_of(request: Request, most: int, what: str) -> str:
    """A body as text."""
    parts = [chunk async for chunk in chunks_of(request, most, what)]
    try:
        return b"".join(parts).decode()
    except UnicodeDecodeError as error:
        raise ApiError(400, "syntax", f"{what} is not UTF-8 text, from byte {error.start} on") from None
