"""The command line: ``spaseq run``, ``check``, ``explain``, ``paths`` and ``retrieve``.

Results go to standard output, everything else to standard error. Exit status: 0, also when Ctrl-C ended
an endless stream or the reader of a pipe went away; 1 when something failed while running (a source that
cannot be read; with ``--strict`` a bad or late event); 2 when the query or the command line is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from spaseq._cli_arguments import (
    PathsEngine,
    PathsFormat,
    RetrieveFormat,
    RunEngine,
    UsageError,
    check_evaluator,
    duration,
    knowledge,
    stream_sources,
)
from spaseq._cli_console import complain, warn
from spaseq.errors import FormatError, QueryError, SpaseqError
from spaseq.language import prepare
from spaseq.language.syntax import Query
from spaseq.results import Format, check_format, writer

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
OutputFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here, not to standard output.")
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
    query: QueryFile,
    streams: Annotated[
        list[str] | None,
        typer.Option(
            "-s",
            "--stream",
            metavar="NAME_OR_IRI=SOURCE",
            help="Where a stream comes from: a file or - (standard input), and ?option=value&…",
        ),
    ] = None,
    kb: Annotated[
        list[str] | None, typer.Option(metavar="IRI=FILE", help="A background graph, in any RDF format.")
    ] = None,
    catalog: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A catalogue that says where the streams left out of -s come from."
        ),
    ] = None,
    format_: Annotated[
        Format, typer.Option("-f", "--format", help="How results are written.")
    ] = Format.TABLE,
    out: OutputFile = None,
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
    evaluator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What finds the matches, instead of what explain says."),
    ] = None,
) -> None:
    """Run a query over streams and write the matches as they are found.

    Ctrl-C and SIGTERM end it with what was found so far.

    \b
    Examples:
      spaseq run vshape.rq -s S1=ticks.trig
      spaseq run q.rq -s S1=a.nq.gz -s "S2=b.nt?triples=2" -f ndjson -o matches.ndjson
      sensors | spaseq run q.rq -s "S1=-?format=nq" --lateness 5s --dead-letters bad.ndjson
      spaseq run q.rq --catalog catalog.ttl --kb http://example.org/kb=kb.ttl -f json
      spaseq run q.rq -s S1=ticks/ --engine spark --checkpoint state
      spaseq run q.rq -s S1=ticks.trig --evaluator reference

    \b
    Source options (?option=value, joined by &):
      format     trig nq nt ttl messages jsonld ndjsonld jelly csv ndjson; else by extension
      time       the IRI of the time's predicate (prov:generatedAtTime), or arrival
      triples    triples per event, for files without named graphs
      context    the JSON-LD context that lifts csv or ndjson rows
      header, delimiter   for csv

    Durations are numbers with ms, s, m, h or d; on a stream of ticks a second is one tick.
    Evaluators are parameterized, enumeration, lazy, kernel, runs and reference; all find the same matches.
    SELECT and ASK go into table, json, xml, csv, tsv, ndjson; CONSTRUCT into trig, nquads, ndjson.
    Exit status: 0, 1 if the run failed, 2 if the query or the command line is wrong, 143 after SIGTERM.
    """
    with _reporting():
        prepared = _read(query)
        for warning in prepared.warnings:
            warn(warning)
        from spaseq._cli_cursor import Cursor, NotedWriter
        from spaseq._cli_run import Report, deliver, output
        from spaseq.engine import Source
        from spaseq.engine import run as start
        from spaseq.gpm.kb import KnowledgeBase
        from spaseq.sources.catalog import load_catalog

        sources = stream_sources(prepared, streams or (), load_catalog(catalog) if catalog else None)
        graphs = KnowledgeBase(knowledge(kb or ()))
        missing = graphs.missing(prepared)
        if missing:
            raise UsageError(f"no file for background graph {missing[0]}: give it with --kb IRI=FILE")

        try:
            check_format(format_, prepared)
        except FormatError as error:
            raise UsageError(f"-f {error}") from None
        if evaluator is not None:
            check_evaluator(evaluator, prepared, engine)
        report = Report(dead_letters)
        given = {iri: Source(iri, location, options) for iri, (location, options) in sources.items()}
        cursor = None
        if engine is RunEngine.SPARK:
            try:
                from spaseq._cli_spark import start as start_on_spark
            except ImportError as error:
                raise UsageError(
                    f"--engine spark needs PySpark ({error.name} is missing): pip install 'spaseq[spark]'"
                ) from None
            cursor = Cursor(checkpoint, out, format_) if checkpoint is not None else None
            matches = start_on_spark(
                prepared,
                given,
                graphs,
                checkpoint=checkpoint,
                cursor=cursor,
                lateness=lateness,
                idle=idle,
                strict=strict,
                dead_letters=dead_letters or report.refuse,
                progress=report.progress,
            )
        else:
            if checkpoint is not None:
                raise UsageError("--checkpoint is for --engine spark")
            matches = start(
                prepared,
                given,
                graphs,
                lateness=lateness,
                idle=idle,
                strict=strict,
                dead_letters=dead_letters or report.refuse,
                evaluator=evaluator,
                progress=report.progress,
            )
        with output(out, cursor) as file:
            results = writer(format_, prepared, file)
            deliver(matches, NotedWriter(results, cursor, file) if cursor else results, report)


@app.command()
def check(query: QueryFile) -> None:
    """Say whether a query is well-formed, and what is doubtful about it.

    \b
    Example:
      spaseq check vshape.rq
    """
    with _reporting():
        prepared = _read(query)
        for warning in prepared.warnings:
            warn(warning)
        typer.echo("ok")


@app.command()
def explain(
    query: QueryFile,
    format_: Annotated[
        Explanation, typer.Option("-f", "--format", help="Words, or a drawing of the automaton, or JSON.")
    ] = Explanation.TEXT,
    out: OutputFile = None,
) -> None:
    """Say how a query will be run: what is pushed where, the automaton, the evaluator and why.

    \b
    Examples:
      spaseq explain vshape.rq
      spaseq explain vshape.rq -f svg -o automaton.svg
    """
    with _reporting():
        text = _explained(_read(query), format_)
        if out is None:
            typer.echo(text)
        else:
            out.write_text(f"{text}\n", encoding="utf-8")


@app.command()
def paths(
    path: Annotated[
        str, typer.Argument(metavar="EXPR", help="A path expression, as in SPARQL.", show_default=False)
    ],
    graph: Annotated[
        Path | None, typer.Option("-g", "--graph", metavar="FILE", help="The graph, in any RDF format.")
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="TERM", help="Where paths begin; any node if not given."),
    ] = None,
    targets: Annotated[
        list[str] | None, typer.Option("--to", metavar="TERM", help="Where paths end; any node if not given.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(metavar="MODE", help="The paths themselves, and which: WALK, TRAIL, SIMPLE, ACYCLIC, …"),
    ] = None,
    shortest: Annotated[
        int | None, typer.Option(metavar="K", min=1, help="So many shortest paths for each pair of ends.")
    ] = None,
    most: Annotated[
        int | None, typer.Option("--max", metavar="N", min=0, help="At most so many answers.")
    ] = None,
    engine: Annotated[
        PathsEngine,
        typer.Option(help="What looks for them; spark and graphframes find pairs, of graphs that are large."),
    ] = PathsEngine.LOCAL,
    explained: Annotated[
        bool, typer.Option("--explain", help="Draw the automaton (-f text, dot, svg, json).")
    ] = False,
    format_: Annotated[
        PathsFormat | None, typer.Option("-f", "--format", help="How answers are written.")
    ] = None,
    out: OutputFile = None,
) -> None:
    """Ask a graph which nodes a path joins, or for the paths.

    Without --mode and --shortest the answers are pairs of nodes, else paths.

    \b
    Examples:
      spaseq paths ":knows+" -g kb.ttl --from :alice
      spaseq paths "(:starred_in|^:starred_in)/:release_year" -g kb.ttl -f csv
      spaseq paths ":knows*" -g kb.ttl --from :alice --to :bob --mode "ALL SHORTEST" -f nquads
      spaseq paths ":knows{1,3}" -g kb.ttl --from :alice --mode TRAIL -f svg -o paths.svg
      spaseq paths ":knows{1,3}/[a :Person]" --explain -f svg -g kb.ttl -o automaton.svg

    \b
    A path is made of predicates by / | * + ? ^ !(…) and (…), as in SPARQL, and
      {n,m} {n,} {n} {,m}   so many times
      .                     any predicate
      [a :Film ; :year 1999]   only at nodes that have these values
    --mode is GQL's: ALL, ANY, ANY SHORTEST, ALL SHORTEST or SHORTEST k, then WALK, TRAIL, SIMPLE or ACYCLIC.
    Prefixes are those of the graph's file, and of PREFIX at the beginning of EXPR.
    """
    with _reporting():
        from spaseq._cli_paths import answer_paths, explain_path

        if explained:
            explain_path(path, graph, format_, out)
        elif graph is None:
            raise UsageError("no graph: name its file with -g FILE")
        else:
            answer_paths(path, graph, sources, targets, mode, shortest, most, engine, format_, out)


@app.command()
def retrieve(
    expressions: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXPR", help="Path expressions, or lists of relation names as JSON."),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option("-g", "--graph", metavar="FILE", help="The graph, in any RDF format.")
    ] = None,
    topics: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TERM", help="Where paths begin; one or several.")
    ] = None,
    question: Annotated[
        str | None, typer.Option("-q", "--question", metavar="TEXT", help="What paths are ranked by.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--expressions", metavar="FILE", help="A JSON list of expressions; - is standard input."
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=0, help="At most so many paths.")] = 10,
    budget_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="At most so many words and punctuation marks.")
    ] = None,
    budget_paths: Annotated[
        int, typer.Option(metavar="N", min=0, help="At most so many paths are looked at.")
    ] = 10_000,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="WALK, TRAIL, SIMPLE or ACYCLIC paths.")
    ] = "TRAIL",
    returning: Annotated[
        bool, typer.Option("--returning", help="Also paths that come back to the topic.")
    ] = False,
    format_: Annotated[
        RetrieveFormat,
        typer.Option("-f", "--format", help="text: triples by their labels; table: scores, too."),
    ] = RetrieveFormat.TEXT,
    out: OutputFile = None,
) -> None:
    """Find what a graph says about a topic, along relation paths, for a language model to read.

    \b
    Examples:
      spaseq retrieve -g kb.ttl --topic :arnold "^:starred/:directed_by" "^:starred/:year" -k 5
      spaseq retrieve -g kb.ttl --topic :arnold -q "Who directed his films?" '["^starred", "directed by"]'
      llm "…" | spaseq retrieve -g kb.ttl --topic :arnold --expressions - --budget-tokens 500
      spaseq retrieve -g kb.ttl --topic :arnold "(.|^.){1,2}" -f svg -o arnold.svg

    \b
    EXPR is a path expression (see spaseq paths --help), or relation names as a language model writes them, a
    JSON list: ["^starred", "directed by"], ^ from object to subject. A file has a list of them, each with a
    weight or without: [["^starred", "directed by"], [":starred/:year", 0.5]].
    With a question, the paths most like it come first. Expressions that cannot be used are left out.
    """
    with _reporting():
        from spaseq._cli_retrieve import answer_retrieve
        from spaseq.paths import Budget

        if graph is None:
            raise UsageError("no graph: name its file with -g FILE")
        if not topics:
            raise UsageError("no topic: say where paths begin with --topic TERM")
        budget = Budget(paths=budget_paths, tokens=budget_tokens)
        answer_retrieve(
            expressions or [], file, graph, topics, question, k, budget, mode, returning, format_, out
        )


def main() -> None:
    """The entry point of the ``spaseq`` command."""
    app()


def _read(path: Path) -> Query:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the query {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the query {path} is not UTF-8 text") from None
    return prepare(text, str(path))


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


@contextmanager
def _reporting() -> Iterator[None]:
    """Errors as messages with an exit status; only a bug shows a traceback."""
    try:
        yield
    except (QueryError, UsageError) as error:
        complain(error)
        raise typer.Exit(2) from None
    except (SpaseqError, OSError) as error:
        complain(error)
        raise typer.Exit(1) from None
