"""The command line: ``spaseq run``, ``check``, ``explain``, ``context``, ``serve``, ``paths`` and others.

Results go to standard output, everything else to standard error. Exit status: 0, also when Ctrl-C ended
an endless stream or the reader of a pipe went away; 1 when something failed while running (a source that
cannot be read, or all of whose events are bad; with ``--strict`` a bad or late event, or a match that the
format cannot hold); 2 when the query or the command line is wrong.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import timedelta
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spaseq.cli.arguments import (
    CommitOption,
    LatencyOption,
    LimitOptions,
    MemoryOption,
    OutputFile,
    OutputPlace,
    PolicyOption,
    RunEngine,
    UsageError,
    check_evaluator,
    duration,
    limits,
)
from spaseq.cli.console import reporting, standard_output, warn, whole_streams
from spaseq.cli.context import context
from spaseq.cli.graphs.commands import graph_commands, paths, retrieve
from spaseq.cli.mcp import mcp
from spaseq.cli.queries import inputs, read, read_all
from spaseq.cli.serve import serve
from spaseq.cli.states import state_commands
from spaseq.effort import Policy
from spaseq.errors import FormatError
from spaseq.language.syntax import Query
from spaseq.results import Format, check_format, writer

if TYPE_CHECKING:
    from spaseq.cli.running.run import Found
    from spaseq.engine import Source
    from spaseq.gpm.kb import KnowledgeBase

app = typer.Typer(
    name="spaseq",
    help="Find sequences of graph patterns in streams of RDF graphs.",
    epilog="spaseq COMMAND --help has examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the examples in the help keep their lines
)


class Explanation(StrEnum):
    """How ``explain`` answers."""

    TEXT = "text"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


QueryFile = Annotated[
    Path, typer.Argument(metavar="QUERY", help="A file with a SPAseq query.", show_default=False)
]

QueryFiles = Annotated[
    list[Path], typer.Argument(metavar="QUERY...", help="Files with a SPAseq query each.", show_default=False)
]

Streams = Annotated[
    list[str] | None,
    typer.Option(
        "-s",
        "--stream",
        metavar="NAME_OR_IRI=SOURCE",
        help="Where a stream comes from: a file or - (standard input), and ?option=value&…",
    ),
]

Graphs = Annotated[
    list[str] | None, typer.Option(metavar="IRI=FILE", help="A background graph, in any RDF format.")
]

Catalog = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A catalogue that says where the streams left out of -s come from."),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spaseq {version('spaseq')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    query: QueryFiles,
    streams: Streams = None,
    kb: Graphs = None,
    catalog: Catalog = None,
    format_: Annotated[
        Format | None,
        typer.Option("-f", "--format", help="How results are written: a table, to a URL as ndjson."),
    ] = None,
    out: OutputPlace = None,
    lateness: Annotated[
        timedelta,
        typer.Option(metavar="DURATION", parser=duration, help="How late an event may come and still count."),
    ] = "0s",  # type: ignore[assignment]  # typer parses it as if it was given
    idle: Annotated[
        timedelta | None,
        typer.Option(
            metavar="DURATION",
            parser=duration,
            help="A stream silent for so long no longer holds the others back.",
        ),
    ] = None,
    wall_clock: Annotated[
        bool,
        typer.Option("--wall-clock", help="With --idle: the time of silent streams goes on with the clock."),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad or late event.")] = False,
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append bad and late events here, one JSON object a line."),
    ] = None,
    engine: Annotated[RunEngine, typer.Option("--engine", help="What runs the query.")] = RunEngine.LOCAL,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --engine spark: read bit by bit, and go on from here when started again.",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="With --checkpoint: wait for new files, and do not end.")
    ] = False,
    evaluator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What finds the matches, instead of what explain says."),
    ] = None,
    limit: LimitOptions = None,
    latency: LatencyOption = None,
    memory: MemoryOption = None,
    policy: PolicyOption = Policy.SHARP,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep there how far it is, and go on from there when started again."
        ),
    ] = None,
    commit_every: CommitOption = "1s",
    no_why: Annotated[
        bool, typer.Option("--no-why", help="Where there is no match, do not look for the reason.")
    ] = False,
) -> None:
    """Run a query over streams and write the matches as they are found.

    Several queries run as far as they can as one, and the streams are read once. Each match says which query
    it is of, or goes to a file of its query's own: {query} in -o is the name of the query's file without its
    extension.

    Ctrl-C and SIGTERM end it with what was found so far.

    \b
    Examples:
      spaseq run vshape.rq -s S1=ticks.trig
      spaseq run q.rq -s S1=a.nq.gz -s "S2=b.nt?triples=2" -f ndjson -o matches.ndjson
      sensors | spaseq run q.rq -s "S1=-?format=nq" --lateness 5s --dead-letters bad.ndjson
      spaseq run q.rq --catalog catalog.ttl --kb http://example.org/kb=kb.ttl -f json
      spaseq run q.rq -s S1=ticks/ --engine spark --checkpoint state
      spaseq run q.rq -s S1=ticks.trig --evaluator reference
      sensors | spaseq run q.rq -s "S1=-?format=nq" --latency 50ms --memory 2GB
      spaseq run alerts/*.rq -s S1=ticks.trig -f ndjson
      spaseq run alerts/*.rq -s S1=ticks.trig -f csv -o 'found/{query}.csv'
      spaseq run q.rq -s "S1=kafka://broker/ticks?format=nq" -o kafka://broker/matches
      spaseq run q.rq -s S1=past.nq.gz -s "S1=mqtt://broker/ticks/#?format=nq"
      spaseq run q.rq -s S1=ticks/ --state q.state -f ndjson -o matches.ndjson

    \b
    Source options (?option=value, joined by &):
      format     trig nq nt ttl messages jsonld ndjsonld jelly csv ndjson; else by extension
      time       the IRI of the time's predicate (prov:generatedAtTime), or arrival
      triples    triples per event, for files without named graphs
      context    the JSON-LD context that lifts csv or ndjson rows
      header, delimiter   for csv
    Live sources are URLs: kafka, mqtt, mqtts, ws, wss, http, https, and file:PATH?follow.

    Durations are numbers with ms, s, m, h or d; on a stream of ticks a second is one tick.
    Limits are partial-matches, query-bytes, pending-matches, held-events, term-bytes and depth.
    Evaluators are parameterized, enumeration, lazy, tree, kernel, runs and reference: all find the same.
    SELECT and ASK go into table, json, xml, csv, tsv, ndjson; CONSTRUCT into trig, nquads, ndjson;
    count, the number of matches, is for all.
    Exit status: 0, 1 if the run failed or a stream had bad events only, 2 if the query or the command
    line is wrong, 143 after SIGTERM.
    """
    with reporting():
        queries = read_all(query)
        for warning in dict.fromkeys(w for prepared in queries.values() for w in prepared.warnings):
            warn(warning)
        from spaseq.cli.running.cursor import Cursor, NotedWriter
        from spaseq.cli.running.run import (
            Report,
            check_outputs,
            check_records,
            deliver,
            filled,
            is_pattern,
            of_one,
            output,
            outputs,
            url_outputs,
        )
        from spaseq.connect import LiveSource, is_url
        from spaseq.engine import Engine
        from spaseq.engine.running import run_all

        first, *others = queries.items()
        given, graphs = inputs(queries, streams, kb, catalog)
        to_url = out is not None and is_url(out)
        file = None if out is None or to_url else Path(out)
        form = format_ or (Format.NDJSON if to_url else Format.TABLE)
        if to_url:
            check_records(form, queries)
        elif others:
            check_outputs(file, form, queries)
        else:
            if file is not None and is_pattern(file):
                file = filled(file, first[0])
            try:
                check_format(form, first[1])
            except FormatError as error:
                raise UsageError(f"-f {error}") from None
        if evaluator is not None:
            for name, prepared in queries.items():
                check_evaluator(evaluator, prepared, engine, name if others else None)
        report = Report(dead_letters, strict, why=not no_why)
        cursor = kept = None
        if engine is RunEngine.SPARK:
            if state is not None:
                raise UsageError("--state is for --engine local: --checkpoint DIR is for --engine spark")
            if latency is not None or memory is not None:
                raise UsageError("--latency and --memory are for --engine local: on Spark no query sheds yet")
            if others:
                raise UsageError("--engine spark runs one query: start it for each")
            if to_url or any(isinstance(source.location, LiveSource) for source in given.values()):
                raise UsageError("--engine spark reads and writes files; spaseq.spark has Kafka, too")
            try:
                from spaseq.cli.running.spark import start as start_on_spark
            except ImportError as error:
                raise UsageError(
                    f"--engine spark needs PySpark ({error.name} is missing): pip install 'spaseq[spark]'"
                ) from None
            cursor = Cursor(checkpoint, file, form) if checkpoint is not None else None
            matches: Found = of_one(
                first[0],
                start_on_spark(
                    first[1],
                    given,
                    graphs,
                    checkpoint=checkpoint,
                    cursor=cursor,
                    follow=follow,
                    lateness=lateness,
                    idle=idle,
                    strict=strict,
                    dead_letters=report.refuse,
                    progress=report.progress,
                ),
            )
        else:
            from spaseq.cli.running.state import Kept, check_state

            if checkpoint is not None:
                raise UsageError("--checkpoint is for --engine spark: --state FILE is for --engine local")
            if follow:
                raise UsageError("--follow is for --engine spark")
            if wall_clock and idle is None:
                raise UsageError("--wall-clock moves the time of idle streams on: say --idle DURATION, too")
            if state is not None:
                check_state(state, out if to_url else file, form, given.values())
            one_engine = Engine(
                graphs,
                lateness=lateness,
                idle=idle,
                wall_clock=time.monotonic if wall_clock else None,
                strict=strict,
                dead_letters=report.refuse,
                evaluator=evaluator,
                limits=limits(limit or ()),
                latency=latency,
                memory=memory,
                policy=policy,
                state=state,
                commit_every=None,
            )
            kept = None if state is None else Kept(one_engine, queries, commit_every, report)
            matches = run_all(
                one_engine,
                queries,
                given.values(),
                progress=report.progress,
                started=report.watch,
                failed=report.fail if others else None,
                settled=None if kept is None else kept.settled,
                # What has gone to a URL cannot be taken back when the sources go on.
                ends=kept is None or not to_url,
            )
        if to_url or others:
            to = url_outputs(out or "", form, queries, kept) if to_url else None
            places = to or outputs(file, form, queries, kept)
            with closing(matches), places as (results, documents):
                deliver(matches, results, documents, report)
            return
        with output(file, cursor or kept) as opened:
            single = writer(form, first[1], opened)
            if kept is not None:
                kept.go_on(first[0], single)
            noted = NotedWriter(single, cursor, opened) if cursor else single
            deliver(matches, {first[0]: noted}, [noted], report)


@app.command()
def check(query: QueryFile) -> None:
    """Say whether a query is well-formed, and what is doubtful about it.

    \b
    Example:
      spaseq check vshape.rq
    """
    with reporting():
        prepared = read(query)
        for warning in prepared.warnings:
            warn(warning)
        typer.echo("ok")


@app.command()
def explain(
    query: QueryFiles,
    analyzed: Annotated[
        bool, typer.Option("--analyze", help="Run it, too, and say what became of its events.")
    ] = False,
    streams: Streams = None,
    kb: Graphs = None,
    catalog: Catalog = None,
    format_: Annotated[
        Explanation, typer.Option("-f", "--format", help="Words, or a drawing of the automaton, or JSON.")
    ] = Explanation.TEXT,
    out: OutputFile = None,
) -> None:
    """Say how a query will be run: what is pushed where, the automaton, the evaluator and why.

    Of several queries, what they share: those that run as one over a table of their constants, and those that
    share partial matches, with the automaton of them all and, at each state, the queries that want it.

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


app.command()(serve)
app.command()(context)
app.command()(paths)
app.command()(retrieve)
app.command()(mcp)
app.add_typer(graph_commands, name="graph")
app.add_typer(state_commands, name="state")


def main() -> None:
    """The entry point of the ``spaseq`` command."""
    whole_streams()
    app()


def _analyzed(query: Query, form: Explanation, given: dict[str, Source], graphs: KnowledgeBase) -> str:
    from spaseq.cli import analyze
    from spaseq.connect import LiveSource
    from spaseq.matching.plan import explain as plan

    if form is Explanation.DOT:
        raise UsageError("--analyze writes text, svg or json")
    if any(isinstance(source.location, LiveSource) for source in given.values()):
        raise UsageError("--analyze reads its streams to their end, which a live source has not")
    explanation, diagnosis = plan(query), analyze.analyze(query, given, graphs)
    match form:
        case Explanation.SVG:
            return analyze.as_svg(explanation, diagnosis)
        case Explanation.JSON:
            return analyze.as_json(explanation, diagnosis)
        case _:
            return analyze.as_text(explanation, diagnosis)


def _explained(query: Query, form: Explanation) -> str:
    from spaseq.automaton import draw
    from spaseq.matching.plan import explain as plan

    plan_ = plan(query)
    match form:
        case Explanation.TEXT:
            return str(plan_)
        case Explanation.DOT:
            return draw.dot(plan_.nfa)
        case Explanation.SVG:
            return draw.svg(plan_.nfa)
        case Explanation.JSON:
            return json.dumps(plan_.as_json(), ensure_ascii=False, indent=2)


def _explained_together(queries: dict[str, Query], form: Explanation) -> str:
    if form is Explanation.DOT:
        raise UsageError("several queries are drawn as text, svg or json")
    from spaseq.matching.sharing.plan import explain_all

    plan = explain_all(queries)
    match form:
        case Explanation.SVG:
            return plan.svg()
        case Explanation.JSON:
            return json.dumps(plan.as_json(), ensure_ascii=False, indent=2)
        case _:
            return str(plan)
