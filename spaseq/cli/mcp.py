"""``spaseq mcp``: a graph and an engine as tools of language models, over standard input and output."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from spaseq.cli.arguments import UsageError, knowledge, limits
from spaseq.cli.console import reporting, say
from spaseq.cli.options import GraphFile, GraphFormat, LimitOptions

if TYPE_CHECKING:
    from spaseq.engine import Engine


_Events = Annotated[bool, typer.Option("--events", help="Also tools for queries over streams of events.")]
_Kb = Annotated[
    list[str] | None,
    typer.Option(metavar="IRI=FILE", help="With --events: a background graph, in any RDF format."),
]
_Rows = Annotated[int, typer.Option(metavar="N", min=1, help="At most so many answers of a call.")]
_Seconds = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="A call that reads takes at most so long.")
]
_Queries = Annotated[
    int, typer.Option(metavar="N", min=1, help="With --events: at most so many queries at a time.")
]


def mcp(
    graph: GraphFile = None,
    graph_format: GraphFormat = None,
    events: _Events = False,
    kb: _Kb = None,
    rows: _Rows = 100,
    seconds: _Seconds = 60.0,
    queries: _Queries = 50,
    limit: LimitOptions = None,
) -> None:
    """Serve a graph, or queries over events, as tools of an assistant (Model Context Protocol).

    The assistant starts this command, and speaks to it by standard input and output. Nothing is read but the
    files named here, and nothing is written. Ctrl-C, SIGTERM and the end of standard input end it.

    \b
    Examples:
      spaseq mcp -g films.ttl
      spaseq mcp -g films.spaseq --rows 50 --seconds 10
      spaseq mcp --events --kb http://example.org/kb=kb.ttl

    \b
    Tools over the graph: relations, paths, retrieve, explain.
    Tools over events:    check, register, push, matches, cancel.
    """
    with reporting():
        if graph is None and not events:
            raise UsageError("nothing to serve: name a graph with -g FILE, or say --events")
        if kb and not events:
            raise UsageError("--kb is for --events")
        try:
            from spaseq.mcp.serving import server
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.startswith("spaseq"):
                raise
            raise UsageError(
                f"spaseq mcp needs the package mcp ({error.name} is missing): pip install 'spaseq[mcp]'"
            ) from None
        from spaseq.mcp.bounds import Bounds
        from spaseq.mcp.stdio import serve
        from spaseq.paths import load

        bounds, kept = Bounds(rows, seconds, queries), limits(limit or ())
        engine: Engine | None = None
        if events:
            from spaseq.engine import Engine

            engine = Engine(knowledge(kb or ()), limits=kept)
        known = None if graph is None else load(graph, format=graph_format, limits=kept)
        made = server(known, engine, bounds)
        say("spaseq mcp: ready; end it with Ctrl-C")
        if serve(made.run) == signal.SIGTERM:
            raise typer.Exit(128 + signal.SIGTERM)
