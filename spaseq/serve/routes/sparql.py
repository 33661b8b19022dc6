"""``/sparql``: the SPARQL 1.1 Protocol over the background graphs.

Oxigraph answers. What would reach the network (SERVICE) is refused before; FROM names background graphs only.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from typing import IO, Annotated, Any, Final, cast
from urllib.parse import parse_qs

import pyoxigraph as ox
from fastapi import APIRouter, Query, Request, Response

from spaseq.serve.asking import asked, bounded, kept, on_large_stack
from spaseq.serve.errors import ApiError, beyond
from spaseq.serve.routes.depends import Given, text_of
from spaseq.serve.routes.graphs import accepted
from spaseq.serve.service import Service

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

#: Strings, comments and IRIs, in which a word means nothing; then words, with what makes them names.
_TOKEN: Final = re.compile(
    r"""\"\"\"(?:[^\\]|\\.)*?\"\"\"|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'"""
    r"""|<(?P<iri>[^<>"{}|^`\x00-\x20]*)>|\#[^\n\r]*|(?P<word>[?$@]?[\w.:%-]+)|."""
    "",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")

_Query = Annotated[str | None, Query(description="SELECT, ASK, CONSTRUCT or DESCRIBE.")]
_Graphs = Annotated[list[str] | None, Query(alias="default-graph-uri")]
_Named = Annotated[list[str] | None, Query(alias="named-graph-uri")]

_BODY: dict[str, Any] = {
    "requestBody": {"content": {"application/sparql-query": {"schema": {"type": "string"}}}, "required": True}
}


@router.get("/sparql", summary="Ask the background graphs", response_class=Response)
async def get(
    request: Request, service: Given, query: _Query = None, default: _Graphs = None, named: _Named = None
) -> Response:
    """Without a dataset, the default graph is the union of all."""
    return await _answer(request, service, query, default, named)


@router.post("/sparql", summary="Ask the background graphs", response_class=Response, openapi_extra=_BODY)
async def post(request: Request, service: Given, default: _Graphs = None, named: _Named = None) -> Response:
    """The body is the query, or a form with it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = await text_of(request, service.settings.limits.text_bytes, "a query")
    if kind == "application/sparql-query":
        return await _answer(request, service, text, default, named)
    if kind != "application/x-www-form-urlencoded":
        hint = "application/sparql-query, or a form with query="
        raise ApiError(400, "format", "the Content-Type is none of a SPARQL query", hint=hint)
    form = parse_qs(text, max_num_fields=100)
    if "update" in form:
        raise ApiError(403, "auth", "there are no updates", hint="PUT and POST /graphs change graphs")
    query = form.get("query", [None])[0]
    return await _answer(request, service, query, form.get("default-graph-uri"), form.get("named-graph-uri"))


async def _answer(
    request: Request, service: Service, query: str | None, default: list[str] | None, named: list[str] | None
) -> Response:
    if not query:
        raise ApiError(400, "parameter", "query: there is none", hint="GET /sparql?query=ASK%20%7B%7D")
    if len(query) > (most := service.settings.limits.sparql_characters):
        raise beyond("sparql_characters", most, "a query of SPARQL that is longer could overflow a stack")
    for iri in [*_checked(query), *(default or ()), *(named or ())]:
        if not any(name.value == iri for name in service.kb.graphs):
            message = f"there is no background graph <{iri[:200]}>, and no other can be read"
            raise ApiError(400, "meaning", message, hint="GET /graphs lists them")
    accept = request.headers.get("accept", "*/*")
    return await asked(
        service, lambda: on_large_stack(lambda: _evaluated(service, query, accept, default, named))
    )


def _checked(query: str) -> Iterator[str]:
    """The IRIs of FROM and FROM NAMED. Raises ``ApiError`` where there may be a SERVICE.

    Some queries without one are refused, too: those with a prefix that has ``service`` in its name.
    """
    # Whether escapes stand for what they say before strings and IRIs are looked for, or after: both are read.
    for text in dict.fromkeys((query, _ESCAPE.sub(_unescaped, query))):
        before = ""
        for token in _TOKEN.finditer(text):
            word = (token["word"] or "").lower()
            # A keyword may follow a number without a space, and a name without a prefix may follow it.
            if not word.startswith(("?", "$")) and "service" in word.partition(":")[0]:
                raise ApiError(403, "auth", "SERVICE would ask another server: it is refused here")
            if token["iri"] is not None and before in ("from", "named"):
                yield token["iri"]
            if word or token["iri"] is not None:
                before = word


def _unescaped(found: re.Match[str]) -> str:
    number = int(found[1] or found[2], 16)
    return chr(number) if number < 0x110000 else "\ufffd"


def _evaluated(
    service: Service, query: str, accept: str, default: list[str] | None, named: list[str] | None
) -> Response:
    store: ox.Store = kept(service, "store", lambda: _store(service))
    graphs: dict[str, Any] = {"use_default_graph_as_union": not default}
    if default:
        graphs["default_graph"] = [ox.NamedNode(iri) for iri in default]
    if named:
        graphs["named_graphs"] = [ox.NamedNode(iri) for iri in named]
    try:
        found = store.query(query, **graphs)
    except SyntaxError as error:
        raise ApiError(
            400, "syntax", str(error.msg or error), line=error.lineno, column=error.offset
        ) from None
    except (ValueError, OSError):
        raise ApiError(400, "meaning", "the query cannot be answered") from None
    if isinstance(found, ox.QueryTriples):
        kind = accepted(accept, tuple(_TRIPLES))
        text = ox.serialize(_most(service, list(bounded(service, found))), format=_TRIPLES[kind])
        return Response(text, media_type=kind)
    kind = accepted(accept, tuple(_ROWS))
    if isinstance(found, ox.QuerySolutions):
        with _Bounded(service) as answer:
            found.serialize(cast("IO[bytes]", answer), format=_ROWS[kind])
            return Response(b"".join(answer.parts), media_type=kind)
    return Response(found.serialize(format=_ROWS[kind]), media_type=kind)


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


def _store(service: Service) -> ox.Store:
    store = ox.Store()
    for name, triples in service.kb.graphs.items():
        store.add_graph(name)
        store.bulk_extend(
            ox.Quad(triple.subject, triple.predicate, triple.object, name) for triple in triples
        )
    return store
