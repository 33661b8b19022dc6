"""``/healthz`` and ``/metrics``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from spaseq.engine import Engine, Stats
from spaseq.serve.errors import ApiError
from spaseq.serve.routes.depends import Given
from spaseq.serve.service import Latency

router = APIRouter(tags=["health"])

#: Seconds without an answer after which the engine counts as unhealthy.
_PATIENCE = 20

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/healthz", summary="Whether the server lives")
async def healthz(service: Given) -> dict[str, str]:
    """Return status 200 if the server and the engine's thread answer, 503 if only the server does."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await service.engine.call(lambda _: None)
    except TimeoutError:
        raise ApiError(503, "busy", f"the engine has not answered for {_PATIENCE} s") from None
    return {"status": "ok"}


@router.get("/metrics", summary="Counts for Prometheus", response_class=PlainTextResponse)
async def metrics(service: Given) -> PlainTextResponse:
    """Return the metrics in Prometheus' text format."""
    streams = await service.streams()
    began = time.perf_counter()
    found = list(service.queries.values())

    def ask(engine: Engine) -> tuple[int, int, int, list[Stats]]:
        return engine.events, engine.bad, engine.late, [one.handle.handle.stats for one in found]

    events, bad, late, counts = await service.engine.call(ask)
    waited = time.perf_counter() - began
    letters, _ = service.letters.newest(0)
    lines = [
        *_metric("spaseq_events_total", "counter", "Events that arrived.", [("", events)]),
        *_metric("spaseq_bad_events_total", "counter", "Malformed events.", [("", bad)]),
        *_metric("spaseq_late_events_total", "counter", "Events after the watermark.", [("", late)]),
        *_metric("spaseq_dead_letters_total", "counter", "Dead letters.", [("", letters)]),
        *_metric("spaseq_queries", "gauge", "Registered queries.", [("", len(found))]),
        *_metric("spaseq_readers", "gauge", "Readers of matches.", [("", service.readers)]),
        *_metric("spaseq_readers_dropped_total", "counter", "Too slow readers.", [("", service.dropped)]),
        *_metric("spaseq_requests_total", "counter", "Requests that were let in.", [("", service.requests)]),
        *_metric("spaseq_engine_wait_seconds", "gauge", "How long this request waited.", [("", waited)]),
        *_histograms("spaseq_answer_seconds", "From a request to its answer's beginning.", service.latency),
        *_of_streams(streams),
        *_of_queries(
            [(_labels(query=q.name or q.id), stats) for q, stats in zip(found, counts, strict=True)]
        ),
    ]
    return PlainTextResponse("\n".join([*lines, ""]), media_type=_TEXT)


def _of_streams(streams: list[dict[str, Any]]) -> Iterator[str]:
    events = [(_labels(stream=s["iri"]), s["events"]) for s in streams]
    lags = [(_labels(stream=s["iri"]), s["lag"]) for s in streams if s["lag"] is not None]
    yield from _metric("spaseq_stream_events_total", "counter", "Events of a stream.", events)
    yield from _metric("spaseq_stream_lag_seconds", "gauge", "How far a stream is behind the clock.", lags)


def _of_queries(counts: list[tuple[str, Stats]]) -> Iterator[str]:
    shed = [(labels, stats.shed) for labels, stats in counts if stats.shed is not None]
    for name, kind, text, values in (
        ("matches_total", "counter", "Matches of a query.", [(q, stats.matches) for q, stats in counts]),
        (
            "shed_partial_matches_total",
            "counter",
            "Partial matches given up to keep a bound.",
            [(q, given.partial_matches) for q, given in shed],
        ),
        (
            "shed_passed_over_total",
            "counter",
            "How often a partial match was not shown an event, to keep a bound.",
            [(q, given.passed_over) for q, given in shed],
        ),
        (
            "shed_recall",
            "gauge",
            "Share of a query's matches that was found under its bound, by estimate.",
            [(q, given.recall) for q, given in shed if given.recall is not None],
        ),
    ):
        yield from _metric(f"spaseq_{name}", kind, text, values)


def _metric(name: str, kind: str, text: str, values: Sequence[tuple[str, float]]) -> Iterator[str]:
    if values:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} {kind}"
        for labels, value in values:
            yield f"{name}{labels} {value}"


def _histograms(name: str, text: str, of: Mapping[str, Latency]) -> Iterator[str]:
    if of:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} histogram"
    for route, latency in of.items():
        for bound, count in latency.up_to():
            yield f"{name}_bucket{_labels(route=route, le=bound)} {count}"
        yield f"{name}_sum{_labels(route=route)} {latency.total}"
        yield f"{name}_count{_labels(route=route)} {latency.count}"


def _labels(**labels: str) -> str:
    """Return labels, escaped."""
    escaped = {
        name: text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, text in labels.items()
    }
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped.items()) + "}"
