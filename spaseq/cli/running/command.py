"""``spaseq run``: its options and their help."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from spaseq.bounds import Policy
from spaseq.cli.arguments import RunEngine, duration, limits
from spaseq.cli.console import reporting
from spaseq.cli.options import (
    Catalog,
    CommitOption,
    DeadLetters,
    Graphs,
    LatencyOption,
    Lateness,
    LimitOptions,
    MemoryOption,
    OutputPlace,
    PolicyOption,
    QueryFiles,
    Shapes,
    Streams,
)
from spaseq.cli.queries import inputs, read_warned
from spaseq.results import Format

_Format = Annotated[
    Format | None,
    typer.Option("-f", "--format", help="How results are written: a table, to a URL as ndjson."),
]
_Idle = Annotated[
    timedelta | None,
    typer.Option(
        metavar="DURATION",
        parser=duration,
        help="A stream silent for so long no longer holds the others back.",
    ),
]
_WallClock = Annotated[
    bool,
    typer.Option("--wall-clock", help="With --idle: the time of silent streams goes on with the clock."),
]
_Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad or late event.")]
_Engine = Annotated[RunEngine, typer.Option("--engine", help="What runs the query.")]
_Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="With --engine spark: read bit by bit, and go on from here when started again.",
    ),
]
_Follow = Annotated[
    bool, typer.Option("--follow", help="With --checkpoint: wait for new files, and do not end.")
]
_Matcher = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What finds the matches, instead of what explain says."),
]
_State = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keep there how far it is, and go on from there when started again."),
]
_NoWhy = Annotated[
    bool, typer.Option("--no-why", help="Where there is no match, do not look for the reason.")
]


def run(
    query: QueryFiles,
    streams: Streams = None,
    kb: Graphs = None,
    catalog: Catalog = None,
    format_: _Format = None,
    out: OutputPlace = None,
    lateness: Lateness = "0s",  # type: ignore[assignment]  # typer parses it as if it was given
    idle: _Idle = None,
    wall_clock: _WallClock = False,
    strict: _Strict = False,
    dead_letters: DeadLetters = None,
    shapes: Shapes = None,
    engine: _Engine = RunEngine.LOCAL,
    checkpoint: _Checkpoint = None,
    follow: _Follow = False,
    matcher: _Matcher = None,
    limit: LimitOptions = None,
    latency: LatencyOption = None,
    memory: MemoryOption = None,
    policy: PolicyOption = Policy.SHARP,
    state: _State = None,
    commit_every: CommitOption = "1s",
    no_why: _NoWhy = False,
) -> None:
    """Run a query over streams and write the matches as they are found.

    Several queries share their work where possible, and the streams are read once. Each match names its
    query. With {query} in -o, each query has a file of its own for its matches: {query} is the name of the
    query's file without its extension.

    Ctrl-C and SIGTERM end the run; the matches found so far are written.

    \b
    Examples:
      spaseq run vshape.rq -s S1=ticks.trig
      spaseq run q.rq -s S1=a.nq.gz -s "S2=b.nt?triples=2" -f ndjson -o matches.ndjson
      sensors | spaseq run q.rq -s "S1=-?format=nq" --lateness 5s --dead-letters bad.ndjson
      spaseq run q.rq -s S1=ticks.trig --shapes shapes.ttl --dead-letters bad.ndjson
      spaseq run q.rq --catalog catalog.ttl --kb http://example.org/kb=kb.ttl -f json
      spaseq run q.rq -s S1=ticks/ --engine spark --checkpoint state
      spaseq run q.rq -s S1=ticks.trig --matcher reference
      sensors | spaseq run q.rq -s "S1=-?format=nq" --latency 50ms --memory 2GB
      spaseq run alerts/*.rq -s S1=ticks.trig -f ndjson
      spaseq run alerts/*.rq -s S1=ticks.trig -f csv -o 'found/{query}.csv'
      spaseq run q.rq -s "S1=kafka://broker/ticks?format=nq" -o kafka://broker/matches
      spaseq run q.rq -s S1=past.nq.gz -s "S1=mqtt://broker/ticks/#?format=nq"
      spaseq run q.rq -s S1=ticks/ --state q.state -f ndjson -o matches.ndjson

    \b
    Source options (?option=value, joined by &):
      format     trig nq nt ttl messages jsonld ndjsonld jelly csv ndjson; else by extension
      time       arrival, a column of rows, a path (<IRI>/<IRI>), or a predicate (prov:generatedAtTime)
      time_format, unit   how a column of times is written: %d/%m/%Y %H:%M:%S, or milliseconds
      triples    triples per event, for files without named graphs
      by         where else an event ends: subject, message, or the IRI of a predicate
      context    the JSON-LD context that lifts csv or ndjson rows
      contexts   a folder, or a map, of local copies of contexts that JSON-LD names by URL
      items      the path of an array in JSON: each element is an event
      header, delimiter   for csv
    Live sources are URLs: kafka, mqtt, mqtts, ws, wss, http, https, file:PATH?follow, and
    ldes+http, ldes+https for a Linked Data Event Stream.

    Durations are numbers with ms, s, m, h or d; on a stream of ticks a second is one tick.
    Limits are partial-matches, query-bytes, pending-matches, held-events, term-bytes, depth, solutions,
    event-seconds, background-seconds and query-characters.
    Matchers are kmp, tecs, lazy, tree, nfa, interpreter and reference: all find the same matches.
    SELECT and ASK go into table, json, xml, csv, tsv, ndjson; CONSTRUCT into trig, nquads, ndjson;
    count, the number of matches, is for all.
    Exit status: 0, 1 if the run failed or a stream had bad events only, 2 if the query or the command
    line is wrong, 143 after SIGTERM.
    """
    with reporting():
        queries = read_warned(query, limits(limit or ()))
        # Imported here: it loads the engine.
        from spaseq.cli.running.execution import RunRequest, execute

        sources, graphs = inputs(queries, streams, kb, catalog)
        execute(
            RunRequest(
                queries=queries,
                sources=sources,
                graphs=graphs,
                out=out,
                form=format_,
                lateness=lateness,
                idle=idle,
                wall_clock=wall_clock,
                strict=strict,
                dead_letters=dead_letters,
                shapes=shapes,
                engine=engine,
                checkpoint=checkpoint,
                follow=follow,
                matcher=matcher,
                limits=limit or (),
                latency=latency,
                memory=memory,
                policy=policy,
                state=state,
                commit_every=commit_every,
                why=not no_why,
            )
        )
