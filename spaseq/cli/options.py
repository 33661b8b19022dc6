"""The options that several commands have: queries, streams, outputs, limits and bounds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from spaseq.bounds import Policy
from spaseq.cli.arguments import duration, latency, often, size

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

Shapes = Annotated[
    Path | None,
    typer.Option(
        "--shapes",
        metavar="FILE",
        help="SHACL shapes: an event that does not conform goes to the dead letters, with the reason.",
    ),
]

OutputPlace = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE_OR_URL",
        help="Write here, not to standard output: a file, or kafka://, mqtt:// or http:// URL.",
    ),
]

OutputFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here, not to standard output.")
]

LimitOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER",
        help="Move a limit on what may be kept, such as partial-matches=5M, query-bytes=4Gi, depth=none.",
    ),
]

CommitOption = Annotated[
    Any,
    typer.Option(
        metavar="DURATION|EVENTS",
        parser=often,
        help="With --state: how often that is written, if not each second.",
    ),
]
LatencyOption = Annotated[
    timedelta | None,
    typer.Option(
        metavar="DURATION",
        parser=latency,
        help="What an event may take, on average: beyond it, partial matches that matter least are shed.",
    ),
]
MemoryOption = Annotated[
    int | None,
    typer.Option(metavar="SIZE", parser=size, help="What partial matches may take, before some are shed."),
]
PolicyOption = Annotated[
    Policy, typer.Option(help="What is shed first; all but sharp are there to compare with it.")
]

Returning = Annotated[
    bool, typer.Option("--returning/--no-returning", help="Whether paths may come back to the topic.")
]

GraphFile = Annotated[
    Path | None,
    typer.Option("-g", "--graph", metavar="FILE", help="The graph, in any RDF format, or built."),
]

SearchLatency = Annotated[
    timedelta | None,
    typer.Option(
        "--latency", metavar="DURATION", parser=latency, help="What it may take, loading apart: best effort."
    ),
]

SearchMemory = Annotated[
    int | None, typer.Option(metavar="SIZE", parser=size, help="What its paths may take: best effort.")
]

Lateness = Annotated[
    timedelta,
    typer.Option(metavar="DURATION", parser=duration, help="How late an event may come and still count."),
]

DeadLetters = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Append bad and late events here, one JSON object a line."),
]

GraphFormat = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="The format of the graph's file: nt, ttl, …; else by its extension."),
]
