"""``spaseq explain --analyze``: a query's plan, and what became of its events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from spaseq.automaton import draw
from spaseq.cli.console import warnings_on_stderr
from spaseq.cli.running.report import Report
from spaseq.engine import Handle, Source
from spaseq.engine import run as start
from spaseq.language.syntax import Query
from spaseq.matching.plan import Explanation
from spaseq.patterns.kb import KnowledgeBase
from spaseq.why import Diagnosis
from spaseq.why.diagnosis import became, taken

#: The most events analyzed, and about how many CPU seconds.
EVENTS = 20_000
SECONDS = 20.0


def analyze(query: Query, sources: Mapping[str, Source], kb: KnowledgeBase) -> Diagnosis:
    """Run a query to the end of its streams, or to Ctrl-C."""
    report = Report(None, strict=False)
    handles: list[Handle] = []

    def started(handle: Handle) -> None:
        handle.keep(EVENTS)
        handles.append(handle)

    matches = start(query, sources, kb, dead_letters=report.refuse, progress=report.progress, started=started)
    with warnings_on_stderr(report.status), suppress(KeyboardInterrupt):
        try:
            for _ in matches:
                pass
        finally:
            report.close()
    report.summarise()
    return handles[0].why(SECONDS)


def as_text(plan: Explanation, diagnosis: Diagnosis) -> str:
    """Return plan and diagnosis in words."""
    return f"{plan}\n\n{diagnosis}"


def as_json(plan: Explanation, diagnosis: Diagnosis) -> str:
    """Return plan and diagnosis as JSON."""
    return json.dumps({**plan.as_json(), "analysis": diagnosis.as_json()}, ensure_ascii=False, indent=2)


def as_svg(plan: Explanation, diagnosis: Diagnosis) -> str:
    """Return the automaton with counts on its states and edges, if there are any."""
    if not diagnosis.states:
        return draw.svg(plan.nfa)
    edges = [taken(edge) for edge in diagnosis.edges]
    states = ["" if state.state == 0 else became(state) for state in diagnosis.states]
    return draw.svg(plan.nfa, draw.Notes(edges, states))
