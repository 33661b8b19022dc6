"""The command line: ``spaseq run``, ``check``, ``explain``, ``context``, ``serve``, ``paths`` and others.

Results go to standard output, everything else to standard error. Exit status: 0, also when Ctrl-C ended an
endless stream or the reader of a pipe has gone; 1 for an error during a run (a source that cannot be read or
has only bad events; with ``--strict`` a bad or late event, or a match that the format cannot hold); 2 for a
wrong query or command line.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer

from spaseq.cli.console import reporting, warn, whole_streams
from spaseq.cli.context import context
from spaseq.cli.explain import explain
from spaseq.cli.graphs.commands import graph_commands, paths, retrieve
from spaseq.cli.mcp import mcp
from spaseq.cli.options import QueryFile
from spaseq.cli.queries import read
from spaseq.cli.running.command import run
from spaseq.cli.serve import serve
from spaseq.cli.states import state_commands
from spaseq.excerpts import AROUND, bounded
from spaseq.language.checking.advice import advise

app = typer.Typer(
    name="spaseq",
    help="Find sequences of graph patterns in streams of RDF graphs.",
    epilog="spaseq COMMAND --help has examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # keeps the line breaks of examples in the help
)


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


app.command()(run)


@app.command()
def check(query: QueryFile) -> None:
    """Say whether a query is well-formed, and what is doubtful about it.

    \b
    Example:
      spaseq check vshape.rq
    """
    with reporting():
        prepared = read(query)
        for warning in (*prepared.warnings, *advise(prepared)):
            warn(warning)
        typer.echo("ok")


app.command()(explain)
app.command()(serve)
app.command()(context)
app.command()(paths)
app.command()(retrieve)
app.command()(mcp)
app.add_typer(graph_commands, name="graph")
app.add_typer(state_commands, name="state")


def main() -> None:
    """Run the ``spaseq`` command."""
    whole_streams()
    try:
        status = app(standalone_mode=False)
    except typer.Abort:
        status = 1
    except Exception as raised:
        error: Any = raised
        if not hasattr(error, "format_message"):  # typer's usage errors; their class is not public
            raise
        if max(map(len, sys.argv)) > AROUND:
            error.message = bounded(error.message)
        error.show()
        status = error.exit_code
    sys.exit(status)
