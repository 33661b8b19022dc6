"""``spaseq explain``: queries → how they will be run, and what became of their events (``--analyze``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, assert_never

from spaseq.automaton import draw
from spaseq.cli.arguments import Explanation, UsageError
from spaseq.cli.console import warnings_on_stderr
from spaseq.cli.running.run import Report
from spaseq.connect import LiveSource
from spaseq.engine import Engine, Handle, Source
from spaseq.engine.running import run_all
from spaseq.gpm.kb import KnowledgeBase
from spaseq.language.syntax import Query
from spaseq.matching.plan import explain
from spaseq.matching.sharing.plan import explain_all
from spaseq.why import Diagnosis
from spaseq.why.diagnosis import became, taken

#: So many events are looked at of each query, for about so many seconds of the processor's time of all.
EVENTS = 20_000
SECONDS = 20.0


def explained(queries: Mapping[str, Query], form: Explanation) -> str:
    """How queries will be run; of several, what they share."""
    prepared, *others = queries.values()
    if others:
        shared = explain_all(queries)
        return _several(form, str(shared), shared.as_json(), shared.drawings())
    plan = explain(prepared)
    return _one(form, str(plan), plan.as_json(), draw.Titled([], plan.nfa))


def analyzed(
    queries: Mapping[str, Query], form: Explanation, sources: Mapping[str, Source], kb: KnowledgeBase
) -> str:
    """The same, and what became of the events when they ran together over their streams."""
    if any(isinstance(source.location, LiveSource) for source in sources.values()):
        raise UsageError("--analyze reads its streams to their end, which a live source has not")
    found = _diagnoses(queries, sources, kb)
    prepared, *others = queries.values()
    if others:
        shared = explain_all(queries)
        text = "\n\n".join([str(shared), *(_under(name, str(each)) for name, each in found.items())])
        values = {**shared.as_json(), "analysis": {name: each.as_json() for name, each in found.items()}}
        drawings = [
            draw.Titled([f"{name}: what became of its events"], explain(queries[name]).nfa, _notes(each))
            for name, each in found.items()
        ]
        return _several(form, text, values, [*shared.drawings(), *drawings])
    plan = explain(prepared)
    (diagnosis,) = found.values()
    values = {**plan.as_json(), "analysis": diagnosis.as_json()}
    return _one(form, f"{plan}\n\n{diagnosis}", values, draw.Titled([], plan.nfa, _notes(diagnosis)))


def _diagnoses(
    queries: Mapping[str, Query], sources: Mapping[str, Source], kb: KnowledgeBase
) -> dict[str, Diagnosis]:
    """Runs queries to the end of their streams, or to Ctrl-C."""
    report = Report(None, strict=False)
    handles: dict[str, Handle] = {}

    def started(begun: Mapping[str, Handle]) -> None:
        handles.update(begun)
        for handle in begun.values():
            handle.keep(EVENTS)

    engine = Engine(kb, dead_letters=report.refuse)
    matches = run_all(engine, queries, sources.values(), progress=report.progress, started=started)
    with warnings_on_stderr(report.status), suppress(KeyboardInterrupt):
        try:
            for _ in matches:
                pass
        finally:
            report.close()
    report.summarise()
    return {name: handle.why(SECONDS / len(handles)) for name, handle in handles.items()}


def _notes(diagnosis: Diagnosis) -> draw.Notes | None:
    """The numbers for the states and edges of a drawing, if there are any."""
    if not diagnosis.states:
        return None
    edges = [taken(edge) for edge in diagnosis.edges]
    return draw.Notes(edges, ["" if state.state == 0 else became(state) for state in diagnosis.states])


def _under(name: str, text: str) -> str:
    return "\n".join([f"{name}:", *(f"    {line}" for line in text.splitlines())])


def _one(form: Explanation, text: str, values: dict[str, Any], drawing: draw.Titled) -> str:
    match form:
        case Explanation.TEXT:
            return text
        case Explanation.DOT:
            return draw.dot(drawing.nfa, drawing.notes)
        case Explanation.SVG:
            return draw.svg(drawing.nfa, drawing.notes)
        case Explanation.JSON:
            return json.dumps(values, ensure_ascii=False, indent=2)
        case _:
            assert_never(form)


def _several(form: Explanation, text: str, values: dict[str, Any], drawings: list[draw.Titled]) -> str:
    match form:
        case Explanation.TEXT:
            return text
        case Explanation.DOT:
            return draw.dot_all(drawings)
        case Explanation.SVG:
            return draw.svg_all(drawings)
        case Explanation.JSON:
            return json.dumps(values, ensure_ascii=False, indent=2)
        case _:
            assert_never(form)
