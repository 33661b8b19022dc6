"""``spaseq context``: propose what lifts rows to RDF."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spaseq.cli.arguments import UsageError
from spaseq.cli.console import reporting, say, standard_output, warn
from spaseq.cli.options import OutputFile
from spaseq.errors import SourceError

if TYPE_CHECKING:
    from spaseq.sources.proposal import Proposal


def context(
    rows: Annotated[
        str,
        typer.Argument(metavar="ROWS", help="A CSV or NDJSON file, and ?option=value&…", show_default=False),
    ],
    out: OutputFile = None,
    query: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a query to begin with here, too.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="IRI", help="What the names of columns are put behind, to be predicates.")
    ] = "http://example.org/",
) -> None:
    """Propose a JSON-LD context that lifts the rows of a CSV or NDJSON file to RDF, and a query over them.

    What each column holds is guessed from the first 1,000 rows; guesses are printed on standard error.
    Both files are yours to edit: they are never overwritten.

    \b
    Examples:
      spaseq context trades.csv -o trades.jsonld --query trades.rq
      spaseq context 'trades.txt?format=csv&delimiter=;' --namespace https://example.org/trade#
    """
    with reporting():
        from spaseq.sources import parse_source
        from spaseq.sources.proposal import propose

        if ":" not in namespace or set(namespace) & set(' <>"{}|\\^`'):
            raise UsageError(f"--namespace {namespace!r} is not an IRI such as https://example.org/trade#")
        for path in filter(None, (out, query)):
            if path.exists():
                raise UsageError(f"{path} exists already and is not overwritten: name another file")
        try:
            location, options = parse_source(rows)
            found = propose(location, options, namespace)
        except SourceError as error:
            raise UsageError(str(error)) from None
        if out is None:
            standard_output()
            typer.echo(found.context(), nl=False)
        else:
            out.write_text(found.context(), encoding="utf-8")
        if query is not None:
            query.write_text(found.query(), encoding="utf-8")
        _explain(found, rows, out, query)


def _explain(found: Proposal, rows: str, out: Path | None, query: Path | None) -> None:
    """Print what was guessed, what is doubtful, and what to do next, on standard error."""
    for column in found.columns:
        role = {found.time: "the time", found.key: "the key", found.measure: "the number"}.get(column)
        say(f"{column.name}: {column.kind}, as {column.cells[0][:40]!r}{f' ({role})' if role else ''}")
    for warning in found.warnings:
        warn(warning)
    if found.readings:
        from spaseq.sources.guessed_times import shown

        warn(f"{found.refusal}: say which")
        for reading in found.readings:
            source = f"S={found.source(rows, out or Path('CONTEXT'), reading)}"
            run = shlex.join(["spaseq", "run", str(query or "QUERY"), "-s", source])
            say(f"next, if it is {shown(reading)}: {run}")
    elif found.remote:
        from spaseq.sources.formats.contexts import place_of

        for url in found.remote:
            say(f"the rows name the context {url}, which is not fetched: make a folder FOLDER for it, and")
            say(f"  {place_of(url)}")
        source = f"S={found.source(rows, out or Path('CONTEXT'))}"
        run = shlex.join(["spaseq", "run", str(query or "QUERY"), "-s", source])
        say(f"next, with that folder: {run}")
    elif found.items is not None:
        items = f"{rows}{'&' if '?' in rows else '?'}items={found.items}"
        say(f"next, if each is: {shlex.join(['spaseq', 'context', items])}")
    elif found.refusal is not None:
        warn(f"no run is proposed: {found.refusal}")
    elif query is not None and (out is not None or found.has_contexts):
        source = f"S={found.source(rows, out or Path('CONTEXT'))}"
        say(f"next: spaseq run {shlex.quote(str(query))} -s {shlex.quote(source)}")
    else:
        stem = Path(rows.partition("?")[0]).name.partition(".")[0] or "rows"
        files = [] if found.has_contexts else ["-o", str(out or f"{stem}.jsonld")]
        command = shlex.join(["spaseq", "context", rows, *files, "--query", str(query or f"{stem}.rq")])
        say(f"next: {command}, which writes {'it' if not files else 'both files'} and says how to run them")
