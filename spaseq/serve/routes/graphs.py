"""``/graphs``: background graphs, by the SPARQL 1.1 Graph Store HTTP Protocol."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import pyoxigraph as ox
from fastapi import APIRouter, Query, Request, Response
from starlette.responses import JSONResponse

from spaseq.engine import Engine
from spaseq.patterns.kb import triples_in
from spaseq.serve.errors import ApiError
from spaseq.serve.routes.depends import Given, chunks_of
from spaseq.serve.service import ServerState

router = APIRouter(tags=["background graphs"])

_FORMATS: Final = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}

_BODY: dict[str, Any] = {
    "requestBody": {"content": {kind: {"schema": {"type": "string"}} for kind in _FORMATS}, "required": True}
}

_Graph = Annotated[str | None, Query(description="The IRI of the graph.")]
_Default = Annotated[str | None, Query(description="The default graph, which there is not.")]


@router.get("/graphs", summary="A background graph, or the names of all", response_class=Response)
@router.head("/graphs", include_in_schema=False)
async def get(request: Request, service: Given, graph: _Graph = None, default: _Default = None) -> Response:
    """Return a graph as Turtle, N-Triples, RDF/XML or JSON-LD, as `Accept` says; without a name, the list of
    graphs."""
    graphs = service.kb.graphs
    if graph is None and default is None:
        return JSONResponse({"graphs": [{"iri": n.value, "triples": len(t)} for n, t in graphs.items()]})
    name = _name(graph, default)
    triples = graphs.get(name)
    if triples is None:
        raise _missing(name)
    media = accepted(request.headers.get("accept", "*/*"), tuple(_FORMATS))
    text = await asyncio.to_thread(ox.serialize, triples, format=_FORMATS[media])
    return Response(text, media_type=media)


@router.put("/graphs", status_code=204, summary="Replace a background graph", openapi_extra=_BODY)
async def put(request: Request, service: Given, graph: _Graph = None, default: _Default = None) -> Response:
    """Replace the graph by the body. Events that come from now on are matched with the new version."""
    return await _write(request, service, _name(graph, default), keep=False)


@router.post("/graphs", status_code=204, summary="Add to a background graph", openapi_extra=_BODY)
async def post(request: Request, service: Given, graph: _Graph = None, default: _Default = None) -> Response:
    """Add the triples of the body to the graph."""
    return await _write(request, service, _name(graph, default), keep=True)


@router.delete("/graphs", status_code=204, summary="Take a background graph away")
async def delete(service: Given, graph: _Graph = None, default: _Default = None) -> Response:
    """Remove the graph. Queries with a GRAPH pattern on it go on, and find nothing there."""
    _check_writing(service)
    name = _name(graph, default)

    def remove(engine: Engine) -> bool:
        found = name in engine.kb.graphs
        if found:
            engine.change(name.value, None)
            _keep(engine)
        return found

    if not await service.engine.call(remove):
        raise _missing(name)
    return Response(status_code=204)


async def _write(request: Request, service: ServerState, name: ox.NamedNode, *, keep: bool) -> Response:
    _check_writing(service)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = _FORMATS.get(kind)
    if form is None:
        what = f"the Content-Type {kind!r} is none" if kind else "there is no Content-Type"
        raise ApiError(400, "format", f"{what} of a graph", hint=f"one of {', '.join(_FORMATS)}")
    limits = service.settings.limits
    body = b"".join([chunk async for chunk in chunks_of(request, limits.body_bytes, "a graph")])
    triples = await asyncio.to_thread(triples_in, name, body, form, "the body")

    def change(engine: Engine) -> bool:
        before = engine.kb.graphs.get(name)
        known = before or () if keep else ()
        engine.change(name.value, list(dict.fromkeys([*known, *triples])))
        _keep(engine)
        return before is None

    return Response(status_code=201 if await service.engine.call(change) else 204)


def _keep(engine: Engine) -> None:
    """Make the change durable before the response, if there is a state."""
    if engine.is_durable:
        engine.commit()


def _check_writing(service: ServerState) -> None:
    if not service.settings.allow_write:
        raise ApiError(
            403, "auth", "background graphs may not be changed", hint="the server needs --allow-write"
        )


def _name(graph: str | None, default: str | None) -> ox.NamedNode:
    if default is not None:
        raise ApiError(404, "not-found", "there is no default graph: background graphs have names")
    try:
        return ox.NamedNode(graph or "")
    except ValueError as error:
        raise ApiError(400, "parameter", f"graph: {(graph or '')[:100]!r} is no IRI: {error}") from None


def _missing(name: ox.NamedNode) -> ApiError:
    return ApiError(404, "not-found", f"there is no background graph {name}", hint="GET /graphs lists them")


def accepted(accept: str, kinds: tuple[str, ...]) -> str:
    """Return the media type that a client prefers. Raises ``ApiError`` if it accepts none of them."""
    best: tuple[float, int, str] | None = None
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                try:
                    weight = float(value)
                except ValueError:
                    weight = 0.0
        for rank, kind in enumerate(kinds):
            fits = name.lower() in (kind, "*/*", kind.partition("/")[0] + "/*")
            if fits and weight > 0 and (best is None or (weight, -rank) > best[:2]):
                best = (weight, -rank, kind)
    if best is None:
        raise unacceptable(kinds)
    return best[2]


def unacceptable(kinds: tuple[str, ...]) -> ApiError:
    """Return the error for a client that accepts none of some media types."""
    return ApiError(406, "format", f"the answer comes as {', '.join(kinds)}", hint="send one in Accept")
