"""``/sparql``: the SPARQL 1.1 Protocol over background graphs, a query's window, and matches of queries.

Oxigraph answers, in a process of its own. Queries that would use the network are refused; FROM only selects
graphs that exist.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import parse_qs, unquote

from fastapi import APIRouter, Query, Request, Response

from spaseq.language.reading.hints import nearest
from spaseq.serve.asking import asked
from spaseq.serve.errors import ApiError, beyond, told
from spaseq.serve.routes.depends import Given, text_of
from spaseq.serve.routes.graphs import accepted, unacceptable
from spaseq.serve.service import ServerState
from spaseq.serve.settings import ServeLimits
from spaseq.serve.sparql.dataset import SCHEME, SERVICES, Matches
from spaseq.serve.sparql.text import PlainQuery, read
from spaseq.serve.sparql.window import Newest, in_window, newest
from spaseq.serve.sparql.worker import ROWS, TRIPLES, DatasetQuery, Refusal

router = APIRouter(tags=["background graphs"])

_LOG: Final = logging.getLogger("spaseq.serve")

_Query = Annotated[str | None, Query(description="SELECT, ASK, CONSTRUCT or DESCRIBE.")]
_Graphs = Annotated[list[str] | None, Query(alias="default-graph-uri")]
_Named = Annotated[list[str] | None, Query(alias="named-graph-uri")]
_Window = Annotated[str | None, Query(description="The id or name of a query, whose window is asked, too.")]

_BODY: dict[str, Any] = {
    "requestBody": {"content": {"application/sparql-query": {"schema": {"type": "string"}}}, "required": True}
}


@router.get("/sparql", summary="Ask background graphs, a window, and matches", response_class=Response)
async def get(
    request: Request,
    service: Given,
    query: _Query = None,
    default: _Graphs = None,
    named: _Named = None,
    window: _Window = None,
) -> Response:
    """Answer a SPARQL query. If it names no dataset, the default graph is the union of the background graphs.
    With `window`, the events in that query's window are named graphs, and the default graph also has the time
    and the stream of each. `SERVICE <urn:x-spaseq:ID> {}` returns the rows of a query's matches, with the
    match of each row as `?match`."""
    return await _answer(request, service, query, default, named, window)


@router.post(
    "/sparql",
    summary="Ask background graphs, a window, and matches",
    response_class=Response,
    openapi_extra=_BODY,
)
async def post(
    request: Request,
    service: Given,
    default: _Graphs = None,
    named: _Named = None,
    window: _Window = None,
) -> Response:
    """Answer a SPARQL query. The body is the query, or a form that contains it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = await text_of(request, service.settings.limits.text_bytes, "a query")
    if kind == "application/sparql-query":
        return await _answer(request, service, text, default, named, window)
    if kind != "application/x-www-form-urlencoded":
        hint = "application/sparql-query, or a form with query="
        raise ApiError(400, "format", "the Content-Type is not one of a SPARQL query", hint=hint)
    form = parse_qs(text, max_num_fields=100)
    if "update" in form:
        raise ApiError(403, "auth", "there are no updates", hint="PUT and POST /graphs change graphs")
    query = form.get("query", [None])[0]
    window = form.get("window", [window])[0]
    graphs = form.get("default-graph-uri"), form.get("named-graph-uri")
    return await _answer(request, service, query, *graphs, window)


async def _answer(
    request: Request,
    service: ServerState,
    query: str | None,
    default: list[str] | None,
    named: list[str] | None,
    window: str | None,
) -> Response:
    if not query:
        raise ApiError(400, "parameter", "query: there is none", hint="GET /sparql?query=ASK%20%7B%7D")
    if len(query) > (most := service.settings.limits.sparql_characters):
        raise beyond("sparql_characters", most, "a longer SPARQL query could overflow the stack")
    question = read(query, partial(_asked, service))
    if len(question.services) > SERVICES:
        raise ApiError(413, "limit", f"a question asks {SERVICES} registered queries at most")
    if default or named:  # the request's dataset overrides the query's
        question.default, question.named = default or [], named or []
    question.services = [await _with_matches(service, one) for one in question.services]
    seen = None if window is None else await newest(service, service.find(window))
    accept = request.headers.get("accept", "*/*")
    end: float = request.scope["spaseq.end"]
    return await asked(service, lambda: _evaluated(service, question, seen, accept, end))


def _asked(service: ServerState, name: str, silent: bool) -> Matches | None:
    """Return a registered query. Raises ``ApiError`` for an unknown or failed one, unless ``silent``."""
    found = service.known(name) or service.known(unquote(name))
    if found is None:
        if silent:
            return None
        message = f"no query is registered for SERVICE <{SCHEME}{name[:200]}>"
        meant = nearest(name, (one.name or one.id for one in service.queries.values()))
        hint = "GET /queries lists them" if meant is None else f"did you mean <{SCHEME}{meant}>?"
        raise ApiError(400, "meaning", message, hint=hint)
    error = found.handle.handle.error
    if error is not None and not silent:
        message = f"query {name[:200]!r} has failed, so that its matches are not all: "
        message += str(told(error).error["message"])
        raise ApiError(409, "failed", message, hint="SERVICE SILENT asks those that there are")
    return Matches(found.id, found.name or found.id, found.handle.query)


async def _with_matches(service: ServerState, asked: Matches) -> Matches:
    """Add the kept matches of a query, including matches that earlier events have completed."""
    found = service.find(asked.id)
    await found.level()
    return replace(asked, kept=found.history.after(0, service.settings.limits.matches))


def _evaluated(
    service: ServerState, question: PlainQuery, seen: Newest | None, accept: str, end: float
) -> Response:
    inside = None if seen is None else in_window(seen)
    headers = {}
    if inside is not None:
        headers["Spaseq-Window"] = f"events={len(inside.events)}; whole={str(inside.whole).lower()}"
    limits = service.settings.limits
    ask = DatasetQuery(
        dataset=None if seen is None else seen.found.id,
        text=question.text,
        plain=question.plain,
        default=question.default,
        named=question.named,
        services=[graph.value for matches in question.services for graph in matches.graphs],
        are_all=False,
        rows=_accepted(accept, ROWS),
        triples=_accepted(accept, TRIPLES),
        most_rows=limits.rows,
        most_bytes=limits.body_bytes,
        memory=limits.sparql_bytes,
    )
    events = [] if inside is None else inside.events
    found = service.sparql.ask(service.kb, events, question.services, ask, end)
    if isinstance(found, Refusal):
        raise _refused(found, limits)
    return Response(found.body, media_type=found.media_type, headers=headers)


def _accepted(accept: str, kinds: Iterable[str]) -> str | None:
    try:
        return accepted(accept, tuple(kinds))
    except ApiError:  # does not matter if the result has the other form
        return None


def _refused(found: Refusal, limits: ServeLimits) -> ApiError:
    if found.kind == "unacceptable":
        kinds = ROWS if found.message == "rows" else TRIPLES
        return unacceptable(tuple(kinds))
    if found.limit is not None:
        return beyond(found.limit, getattr(limits, found.limit), found.message)
    if found.kind == "internal":
        _LOG.error("a SPARQL query failed: %s", found.message)
        return ApiError(500, "internal", "the server failed; its log says more")
    place = {"line": found.line, "column": found.column}
    return ApiError(400, found.kind, found.message, place=place, hint=found.hint)
