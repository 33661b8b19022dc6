"""``spaseq explain``: the plan of a query, and with ``--analyze`` what became of its events."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from spaseq.cli.arguments import UsageError
from spaseq.cli.console import reporting, standard_output
from spaseq.cli.options import Catalog, Graphs, OutputFile, QueryFiles, Streams
from spaseq.cli.queries import inputs, read_all
from spaseq.language.syntax import Query

if TYPE_CHECKING:
    from spaseq.engine import Source
    from spaseq.patterns.kb import KnowledgeBase


class ExplainFormat(StrEnum):
    """Output formats of ``explain``."""

    TEXT = "text"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


def explain(
    query: QueryFiles,
    analyzed: Annotated[
        bool, typer.Option("--analyze", help="Run it, too, and say what became of its events.")
    ] = False,
    streams: Streams = None,
    kb: Graphs = None,
    catalog: Catalog = None,
    format_: Annotated[
        ExplainFormat, typer.Option("-f", "--format", help="Words, or a drawing of the automaton, or JSON.")
    ] = ExplainFormat.TEXT,
    out: OutputFile = None,
) -> None:
    """Say how a query will be run: what is pushed where, the automaton, the matcher and why.

    For several queries, say what they share: which queries run as one over a table of their constants, and
    which share partial matches, with their common automaton and the queries at each state.

    With --analyze it is run as well: how many events each GPM matched, what the filters said, what became of
    partial matches in each state of the automaton, and why there is no match if there is none. What needs
    more than counting is found out from the first 20,000 events.

    \b
    Examples:
      spaseq explain vshape.rq
      spaseq explain vshape.rq -f svg -o automaton.svg
      spaseq explain vshape.rq --analyze -s S1=ticks.trig
      spaseq explain alerts/*.rq -f svg -o shared.svg
    """
    with reporting():
        queries = read_all(query)
        prepared, *others = queries.values()
        if analyzed:
            if others:
                raise UsageError("--analyze runs one query")
            text = _analyzed(prepared, format_, *inputs(queries, streams, kb, catalog))
        elif streams or kb or catalog:
            raise UsageError("--stream, --kb and --catalog are for --analyze")
        elif others:
            text = _explained_together(queries, format_)
        else:
            text = _explained(prepared, format_)
        if out is None:
            standard_output()
            typer.echo(text)
        else:
            out.write_text(f"{text}\n", encoding="utf-8")


def _analyzed(query: Query, form: ExplainFormat, given: dict[str, Source], graphs: KnowledgeBase) -> str:
    from spaseq.cli import analyze
    from spaseq.connect import LiveSource
    from spaseq.matching.plan import explain as plan

    if form is ExplainFormat.DOT:
        raise UsageError("--analyze writes text, svg or json")
    if any(isinstance(source.location, LiveSource) for source in given.values()):
        raise UsageError("--analyze reads its streams to their end, and a live source has no end")
    explanation, diagnosis = plan(query), analyze.analyze(query, given, graphs)
    match form:
        case ExplainFormat.SVG:
            return analyze.as_svg(explanation, diagnosis)
        case ExplainFormat.JSON:
            return analyze.as_json(explanation, diagnosis)
        case _:
            return analyze.as_text(explanation, diagnosis)


def _explained(query: Query, form: ExplainFormat) -> str:
    from spaseq.automaton import draw
    from spaseq.matching.plan import explain as plan

    plan_ = plan(query)
    match form:
        case ExplainFormat.TEXT:
            return str(plan_)
        case ExplainFormat.DOT:
            return draw.dot(plan_.nfa)
        case ExplainFormat.SVG:
            return draw.svg(plan_.nfa)
        case ExplainFormat.JSON:
            return json.dumps(plan_.as_json(), ensure_ascii=False, indent=2)


def _explained_together(queries: dict[str, Query], form: ExplainFormat) -> str:
    if form is ExplainFormat.DOT:
        raise UsageError("several queries are drawn as text, svg or json")
    from spaseq.matching.sharing.plan import explain_all

    plan = explain_all(queries)
    match form:
        case ExplainFormat.SVG:
            return plan.svg()
        case ExplainFormat.JSON:
            return json.dumps(plan.as_json(), ensure_ascii=False, indent=2)
        case _:
            return str(plan)
