"""Dependencies of all routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from difflib import get_close_matches
from typing import Annotated

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant

from spaseq.serve.errors import ApiError, beyond
from spaseq.serve.service import ServerState


def service_of(request: Request) -> ServerState:
    """Return the service of the application."""
    service: ServerState = request.app.state.service
    service.requests += 1
    _check_parameters(request)
    return service


def _check_parameters(request: Request) -> None:
    """Raise ``ApiError`` for an unknown parameter, which would have no effect."""
    route = request.scope["route"]
    if route.path == "/sparql":
        return  # clients of the SPARQL protocol send parameters that are for other servers
    known = _parameters(route.dependant)
    for name in request.query_params:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}=?" if near else f"one of {', '.join(sorted(known))}"
            message = f"{name[:100]}: there is no such parameter here"
            raise ApiError(400, "parameter", message, hint=hint if known else None)


def _parameters(of: Dependant) -> set[str]:
    found = {field.alias for field in of.query_params}
    return found.union(*map(_parameters, of.dependencies))


Given = Annotated[ServerState, Depends(service_of)]


async def chunks_of(
    request: Request, most: int, what: str, limit: str = "body_bytes"
) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they arrive, unpacked; at most ``most`` bytes, see ``limit``."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise beyond(limit, most, f"{what} of {int(length):,} bytes is too long")
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise beyond(limit, most, f"{what} is too long")
        if chunk:
            yield chunk


async def text_of(request: Request, most: int, what: str) -> str:
    """Return a body as text."""
    parts = [chunk async for chunk in chunks_of(request, most, what, "text_bytes")]
    try:
        return b"".join(parts).decode()
    except UnicodeDecodeError as error:
        raise ApiError(400, "syntax", f"{what} is not UTF-8 text, from byte {error.start} on") from None
