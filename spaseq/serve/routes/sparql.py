"""``/sparql``: the SPARQL 1.1 Protocol over background graphs, a query's window, and matches of queries.

Oxigraph answers. What would reach the network is refused before; FROM names graphs that are there only.
"""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from functools import partial
from typing import IO, Annotated, Any, Final, cast
from urllib.parse import parse_qs, unquote

import pyoxigraph as ox
from fastapi import APIRouter, Query, Request, Response

from spaseq.language.reading.hints import nearest
from spaseq.serve.asking import asked, bounded, on_large_stack
from spaseq.serve.errors import ApiError, beyond, told
from spaseq.serve.routes.depends import Given, text_of
from spaseq.serve.routes.graphs import accepted
from spaseq.serve.service import Service
from spaseq.serve.sparql.dataset import SCHEME, SERVICES, Dataset, Matches
from spaseq.serve.sparql.text import Question, read
from spaseq.serve.sparql.window import Newest, in_window, newest

router = APIRouter(tags=["background graphs"])

_ROWS: Final = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "text/csv": ox.QueryResultsFormat.CSV,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
}
_TRIPLES: Final = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}

#: Where Oxigraph found an error.
_PLACE: Final = re.compile(r"error at (\d+):(\d+)")

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
    """Without a dataset, the default graph is the union of the background graphs. With `window`, the events
    in that query's window are named graphs, and the default graph says the time and the stream of each, too.
    `SERVICE <urn:x-spaseq:ID> {}` has the rows of a query's matches, and `?match`, which they describe."""
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
    """The body is the query, or a form with it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = await text_of(request, service.settings.limits.text_bytes, "a query")
    if kind == "application/sparql-query":
        return await _answer(request, service, text, default, named, window)
    if kind != "application/x-www-form-urlencoded":
        hint = "application/sparql-query, or a form with query="
        raise ApiError(400, "format", "the Content-Type is none of a SPARQL query", hint=hint)
    form = parse_qs(text, max_num_fields=100)
    if "update" in form:
        raise ApiError(403, "auth", "there are no updates", hint="PUT and POST /graphs change graphs")
    query = form.get("query", [None])[0]
    window = form.get("window", [window])[0]
    graphs = form.get("default-graph-uri"), form.get("named-graph-uri")
    return await _answer(request, service, query, *graphs, window)


async def _answer(
    request: Request,
    service: Service,
    query: str | None,
    default: list[str] | None,
    named: list[str] | None,
    window: str | None,
) -> Response:
    if not query:
        raise ApiError(400, "parameter", "query: there is none", hint="GET /sparql?query=ASK%20%7B%7D")
    if len(query) > (most := service.settings.limits.sparql_characters):
        raise beyond("sparql_characters", most, "a query of SPARQL that is longer could overflow a stack")
    question = read(query, partial(_asked, service))
    if len(question.services) > SERVICES:
        raise ApiError(413, "limit", f"a question asks {SERVICES} registered queries at most")
    if default or named:  # what the request says goes before what the text says
        question.default, question.named = default or [], named or []
    question.services = [await _with_matches(service, one) for one in question.services]
    seen = None if window is None else await newest(service, service.find(window))
    accept = request.headers.get("accept", "*/*")
    return await asked(service, lambda: on_large_stack(lambda: _evaluated(service, question, seen, accept)))


def _asked(service: Service, name: str, silent: bool) -> Matches | None:
    """A registered query that is asked; ``ApiError`` if there is none or it has failed, unless ``silent``."""
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


async def _with_matches(service: Service, asked: Matches) -> Matches:
    """With what the server keeps of its matches, those included that events before now have completed."""
    found = service.find(asked.id)
    await found.level()
    return replace(asked, kept=found.history.after(0, service.settings.limits.matches))


def _evaluated(service: Service, question: Question, seen: Newest | None, accept: str) -> Response:
    inside = None if seen is None else in_window(seen)
    events = None if seen is None or inside is None else (seen.found.id, inside.events)
    limits = service.settings.limits
    dataset, names, are_all = service.datasets.ready(service.kb, events, question.services, limits.seconds)
    graphs = _graphs(question, dataset, names, are_all, seen is not None)
    headers = {}
    if inside is not None:
        headers["Spaseq-Window"] = f"events={len(inside.events)}; whole={str(inside.whole).lower()}"
    try:
        found = dataset.store.query(question.text, **graphs)
    except SyntaxError as error:
        raise _misread(question, error) from None
    except (ValueError, OSError):
        raise ApiError(400, "meaning", "the query cannot be answered") from None
    if isinstance(found, ox.QueryTriples):
        kind = accepted(accept, tuple(_TRIPLES))
        text = ox.serialize(_most(service, list(bounded(service, found))), format=_TRIPLES[kind])
        return Response(text, media_type=kind, headers=headers)
    kind = accepted(accept, tuple(_ROWS))
    if isinstance(found, ox.QuerySolutions):
        with _Bounded(service) as answer:
            found.serialize(cast("IO[bytes]", answer), format=_ROWS[kind])
            return Response(b"".join(answer.parts), media_type=kind, headers=headers)
    return Response(found.serialize(format=_ROWS[kind]), media_type=kind, headers=headers)


def _misread(question: Question, error: SyntaxError) -> ApiError:
    """What is told of a question that Oxigraph cannot read: where, in the question as it was asked."""
    try:
        ox.Store().query(question.plain)
    except SyntaxError as as_asked:
        error = as_asked
    message = str(error.msg or error)
    place = _PLACE.search(message)
    line, column = (int(place[1]), int(place[2])) if place else (error.lineno, error.offset)
    return ApiError(400, "syntax", message, line=line, column=column)


def _graphs(
    question: Question, dataset: Dataset, names: list[Any], are_all: bool, has_window: bool
) -> dict[str, Any]:
    """The graphs that are asked, as Oxigraph wants them. Raises ``ApiError`` for one that is not there."""
    known = {name.value: name for name in names if isinstance(name, ox.NamedNode)}
    for iri in [*(question.default or ()), *(question.named or ())]:
        if iri not in known:
            message = f"there is no background graph <{iri[:200]}>, and no other can be read"
            raise ApiError(400, "meaning", message, hint="GET /graphs lists them")
    if question.default is None:
        default: list[Any] = [*dataset.background, *([ox.DefaultGraph()] if has_window else [])]
        # All of them if they are not said, which is faster where they are very many.
        return {"default_graph": default, "named_graphs": None if are_all else names}
    services = [graph for matches in question.services for graph in matches.graphs]
    return {
        "default_graph": [known[iri] for iri in question.default],
        "named_graphs": [known[iri] for iri in question.named or ()] + services,
    }


class _Bounded(io.RawIOBase):
    """Takes an answer, if it is neither too long nor too slow."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self._limits = service.settings.limits
        self._size = 0
        self._end = time.monotonic() + self._limits.seconds

    def write(self, data: Any) -> int:
        """One part more."""
        self.parts.append(bytes(data))
        self._size += len(data)
        if self._size > self._limits.body_bytes:
            raise beyond("body_bytes", self._limits.body_bytes, "the answer is too long; use LIMIT")
        if time.monotonic() > self._end:
            raise beyond("seconds", self._limits.seconds, "the question took too long", 503)
        return len(data)


def _most(service: Service, items: list[Any]) -> list[Any]:
    most = service.settings.limits.rows
    if len(items) > most:
        raise beyond("rows", most, "the answer is too long; use LIMIT")
    return items
