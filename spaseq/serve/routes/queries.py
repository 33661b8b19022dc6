"""``/queries``: register, list, explain and end queries."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import JSONResponse, PlainTextResponse

from spaseq.automaton import draw
from spaseq.automaton.normal import normalise
from spaseq.engine import Engine
from spaseq.events import EventBatch
from spaseq.language import prepare
from spaseq.language.syntax import Query as Prepared
from spaseq.matching.plan import explain as plan
from spaseq.matching.planner import chosen
from spaseq.patterns.kb import KnowledgeBase
from spaseq.serve.counting import Counted, apart, count
from spaseq.serve.errors import told
from spaseq.serve.newest.recent import now
from spaseq.serve.routes.depends import Given, text_of
from spaseq.serve.service import RegisteredQuery, ServerState, check_name, described
from spaseq.why import Diagnosis
from spaseq.why.diagnose import diagnose
from spaseq.why.diagnosis import became, taken
from spaseq.why.replay import Traced

router = APIRouter(tags=["queries"])

#: A diagnosis uses the first events of a query, and does not change once these have arrived.
_SAMPLED = 2_000

#: An SVG has only its own style.
_DRAWN = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'"
}

TEXT_BODY = {"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}, "required": True}}


@router.post("/queries", status_code=201, summary="Register a query", openapi_extra=TEXT_BODY)
async def register(
    request: Request,
    service: Given,
    name: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    dry: Annotated[bool, Query(description="Only check it.")] = False,
) -> JSONResponse:
    """Register the query in the body. It sees the events that come from now on."""
    text = await text_of(request, service.settings.limits.text_bytes, "a query")
    query = await asyncio.to_thread(_prepared, text)
    if dry:
        check_name(name)
        service.kb.require(query)
        return JSONResponse({"id": None, **described(query, name, text)})
    found = await service.register(query, name)
    location = f"{request.scope.get('root_path', '')}/queries/{quote(found.id)}"
    return JSONResponse(found.as_json(), 201, {"Location": location})


def _prepared(text: str) -> Prepared:
    """Return a query with its matcher chosen, so that the engine's thread need not do it."""
    query = prepare(text)
    chosen(normalise(query))
    return query


@router.get("/queries", summary="All queries")
async def queries(service: Given) -> dict[str, Any]:
    """Return each query with its number of matches, and whether it has ended. `run` is a new value after each
    start of the server.
    """
    return {"queries": await _states(service, list(service.queries.values())), "run": service.run}


@router.get("/queries/{key}", summary="A query")
async def query(service: Given, key: str) -> dict[str, Any]:
    """Return the query with this id or name."""
    (state,) = await _states(service, [service.find(key)])
    return state


@router.delete("/queries/{key}", status_code=204, summary="End a query")
async def delete(service: Given, key: str) -> Response:
    """Remove the query and its matches, and notify its readers."""
    await service.remove(service.find(key))
    return Response(status_code=204)


@router.get("/queries/{key}/stats", summary="What a query has seen and found")
async def stats(service: Given, key: str) -> dict[str, Any]:
    """Return the counts of `Stats`, and how many matches of the query the server keeps."""
    found = service.find(key)
    counts = asdict(await found.handle.stats())
    counts["kept"] = {"from": found.history.first, "to": found.history.count}
    return counts


@router.get("/queries/{key}/why", summary="Why a query has found no match")
async def why(service: Given, key: str) -> dict[str, Any]:
    """Return the likeliest cause in words, and the counts behind it, from the first events of the query."""
    found = service.find(key)
    diagnosis = await _diagnosis(service, found)
    return {**diagnosis.as_json(), "text": str(diagnosis)}


@router.get(
    "/queries/{key}/explain",
    summary="How a query is run",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}, "image/svg+xml": {}, "application/json": {}}}},
)
async def explain(
    service: Given,
    key: str,
    format: Annotated[Literal["text", "svg", "json"], Query()] = "text",  # noqa: A002  # its name in the URL
) -> Response:
    """Return the plan as text, or the automaton as a drawing or as JSON. The automaton has counts of states
    and edges over the newest events: as many as the server keeps and has time for.
    """
    found = service.find(key)
    explanation = await asyncio.to_thread(plan, found.handle.query)
    if format == "text":
        return PlainTextResponse(f"{explanation}\n")
    traced = await _traced(service, found)
    if format == "json":
        counts = await found.handle.stats()
        return JSONResponse(_automaton(explanation.as_json(), traced, asdict(counts)))
    notes = None
    if traced.states:
        states = ["" if state.state == 0 else became(state) for state in traced.states]
        notes = draw.Notes([taken(edge) for edge in traced.edges], states)
    drawing = await asyncio.to_thread(draw.svg, explanation.nfa, notes)
    return Response(drawing, media_type="image/svg+xml", headers=_DRAWN)


def _automaton(explained: dict[str, Any], traced: Traced, counts: dict[str, Any]) -> dict[str, Any]:
    """Return states and edges with their counts; ``counted`` says over which events."""
    automaton = explained["automaton"]
    came = {state.state: state for state in traced.states}
    accepting = {end["state"]: end["if"] for end in automaton["accepting"]}
    states = []
    for state in range(automaton["states"]):
        label = "start" if state == 0 else f"{state}"
        entry: dict[str, Any] = {"id": state, "label": label, "accepting": state in accepting}
        if accepting.get(state):
            entry["if"] = accepting[state]
        if (counted := came.get(state)) is not None:
            entry["partial_matches"] = counted.came
            entry |= {"went_on": counted.went_on, "ended": counted.ended, "died": dict(counted.died)}
        states.append(entry)
    gpms = counts["gpms"]
    edges = []
    for number, edge in enumerate(automaton["edges"]):
        entry = {"from": edge["from"], "to": edge["to"], "label": edge["label"]}
        if edge["pattern"] in gpms:
            entry["gpm"] = edge["pattern"]
            entry["matched"] = gpms[edge["pattern"]]["matched"]
        if number < len(traced.edges):
            entry["count"] = traced.edges[number].taken
        edges.append(entry)
    return {
        "sequence": automaton["sequence"],
        "states": states,
        "edges": edges,
        "counted": {"events": traced.events, "of": counts["events"], "matches": counts["matches"]},
        "plan": explained,
    }


async def _diagnosis(service: ServerState, found: RegisteredQuery) -> Diagnosis:
    """Diagnose a query by its first events, outside the engine's turns.

    Concurrent requests for the same query share one diagnosis.
    """
    async with found.lock:
        evidence, kb = await service.engine.call(
            lambda engine: (found.handle.handle.evidence(), engine.kb.unshared())
        )
        events = min(evidence.events, _SAMPLED)
        if found.diagnosed is None or found.diagnosed[0] != events:
            seconds = service.settings.limits.why_seconds
            found.diagnosed = events, await asyncio.to_thread(lambda: diagnose(apart(evidence, kb), seconds))
        diagnosed: Diagnosis = found.diagnosed[1]
        return diagnosed


async def _traced(service: ServerState, found: RegisteredQuery) -> Traced:
    """Count over the newest events, outside the engine's turns, one query at a time."""
    async with service.counting:
        query = found.handle.query
        names = [stream.iri.value for stream in query.streams]

        def ask(engine: Engine) -> tuple[int, int | None, dict[str, list[EventBatch]], KnowledgeBase]:
            events, kb = now(engine, service.recent, names)
            evidence = found.handle.handle.pipeline.evidence()
            return evidence.events, evidence.begin, events, kb

        seen, begin, events, kb = await service.engine.call(ask)
        if found.counted is None or found.counted.events != seen:
            seconds = service.settings.limits.why_seconds
            traced = await asyncio.to_thread(
                count, query, events, kb, seen=seen, begin=begin, seconds=seconds
            )
            found.counted = Counted(seen, traced)
        return found.counted.traced


async def _states(service: ServerState, found: list[RegisteredQuery]) -> list[dict[str, Any]]:
    """Return the state of queries, all at one time."""

    def ask(_: Engine) -> list[dict[str, Any]]:
        states = []
        for one in found:
            handle = one.handle.handle
            stats, error = handle.stats, handle.error
            states.append(
                {
                    "matches": stats.matches,
                    "events": stats.events,
                    "done": handle.done,
                    "error": None if error is None else told(error).error,
                }
            )
        return states

    states = await service.engine.call(ask)
    return [{**one.as_json(), **state} for one, state in zip(found, states, strict=True)]
