"""Error responses: one form for all, without paths or tracebacks."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from spaseq.errors import (
    EngineError,
    FormatError,
    KnowledgeError,
    LimitError,
    PatternError,
    QueryError,
    QuerySyntaxError,
    SourceError,
    SpaseqError,
)
from spaseq.excerpts import bounded

_LOG = logging.getLogger("spaseq.serve")


class ApiError(Exception):
    """A refused request: a status, a kind, and what to do.

    ``place``: the line, column and caret of an error in a text. ``more`` is added beside the error.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        place: dict[str, Any] | None = None,
        hint: str | None = None,
        more: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        found = {
            "kind": kind,
            "message": bounded(message),
            **(place or {}),
            "hint": None if hint is None else bounded(hint),
        }
        self.error = {key: value for key, value in found.items() if value is not None}
        self.more = more or {}
        self.headers = headers

    def response(self) -> JSONResponse:
        """Return the response."""
        return JSONResponse({"error": self.error, **self.more}, self.status, self.headers)


def beyond(name: str, most: int, what: str, status: int = 413) -> ApiError:
    """Return the error of a request over a limit of the server."""
    return ApiError(status, "limit", f"{what}: the server's limit {name} is {most:,}")


def told(error: SpaseqError) -> ApiError:
    """Return the response for an error of spaseq."""
    match error:
        case QueryError():
            kind = "syntax" if isinstance(error, QuerySyntaxError) else "meaning"
            shown = [line for line in str(error).splitlines()[1:3] if error.text]
            caret = "\n".join(line.removeprefix("    ") for line in shown) or None
            place = {"line": error.lineno, "column": error.offset, "caret": caret}
            return ApiError(400, kind, error.msg, place=place, hint=error.hint)
        case LimitError():
            return ApiError(413, "limit", str(error))
        case KnowledgeError() | PatternError():
            return ApiError(400, "meaning", str(error))
        case SourceError():
            return ApiError(400, "bad-event", str(error))
        case FormatError():
            return ApiError(400, "format", str(error))
        case EngineError():
            return ApiError(409, "conflict", str(error))
    return ApiError(400, "failed", str(error))


_KINDS = {401: "auth", 403: "auth", 404: "not-found", 405: "method", 413: "limit", 429: "limit", 503: "limit"}


def add_handlers(app: FastAPI) -> None:
    """Register handlers that give all error responses the same form."""

    @app.exception_handler(ApiError)
    async def refused(_: Request, error: ApiError) -> JSONResponse:
        return error.response()

    @app.exception_handler(SpaseqError)
    async def failed(_: Request, error: SpaseqError) -> JSONResponse:
        return told(error).response()

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return ApiError(400, "parameter", f"{name}: {first['msg']}").response()

    @app.exception_handler(HTTPException)
    async def none_such(request: Request, error: HTTPException) -> JSONResponse:
        hint = "GET /openapi.json lists what there is" if error.status_code in (404, 405) else None
        message = f"{request.method} {request.url.path}: {error.detail}"
        kind = _KINDS.get(error.status_code, "failed")
        headers = dict(error.headers) if error.headers else None
        return ApiError(error.status_code, kind, message, hint=hint, headers=headers).response()

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        _LOG.error("a request failed", exc_info=error)
        return ApiError(500, "internal", "the server failed; its log says more").response()
