"""``spaseq state``: show, export and import state files."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spaseq.cli.console import reporting, say

if TYPE_CHECKING:
    from spaseq.engine.durable import Summary

state_commands = typer.Typer(
    name="state",
    help="Look at the state file of a run or an engine, copy it, and put a copy in place.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class StateFormat(StrEnum):
    """Output formats of ``show``."""

    TABLE = "table"
    JSON = "json"


StateFile = Annotated[Path, typer.Argument(metavar="FILE", help="A state file.", show_default=False)]
CopyFile = Annotated[Path, typer.Argument(metavar="COPY", help="A copy of one.", show_default=False)]


@state_commands.command()
def show(
    file: StateFile,
    format_: Annotated[StateFormat, typer.Option("-f", "--format", help="A table, or JSON.")] = (
        StateFormat.TABLE
    ),
) -> None:
    """Say what is in a state file: queries, how far its sources are read, and how large it is.

    It may be in use.

    \b
    Example:
      spaseq state show alerts.state
    """
    from spaseq.engine.durable import summary

    with reporting():
        found = summary(file)
        if format_ is StateFormat.JSON:
            typer.echo(json.dumps(asdict(found), ensure_ascii=False, indent=2))
        else:
            typer.echo("\n".join(_lines(found)))


@state_commands.command()
def export(file: StateFile, copy: CopyFile) -> None:
    """Copy a state file, as it is at one moment. It may be in use.

    \b
    Example:
      spaseq state export alerts.state alerts-monday.state
    """
    from spaseq.engine.durable import copy as copied

    with reporting():
        copied(file, copy)
        say(f"{copy} is a copy of {file}")


@state_commands.command(name="import")
def import_(copy: CopyFile, file: StateFile) -> None:
    """Make a state file from a copy of one. FILE must not exist yet.

    \b
    Example:
      spaseq state import alerts-monday.state alerts.state
    """
    from spaseq.engine.durable import copy as copied

    with reporting():
        copied(copy, file)
        say(f"{file} is a copy of {copy}")


def _lines(found: Summary) -> list[str]:
    lines = [
        f"{found.path}: {found.size:,} bytes",
        f"events   {found.events:,} arrived, {found.kept:,} kept in {found.log_bytes:,} bytes, "
        f"{found.bad:,} bad, {found.late:,} late",
    ]
    for query in found.queries:
        kept = f"keeps all events: {query.keeps}" if query.keeps else "keeps its window"
        lines.append(f"query    {query.name}: {query.taken:,} matches taken; {kept}")
    for source in found.sources:
        lines.append(
            f"source   {source.location} of <{source.stream}>: {source.events:,} events read, "
            f"{source.bad:,} bad"
        )
    for path, size in found.outputs.items():
        lines.append(f"output   {path}: {size:,} {'records' if '://' in path else 'bytes'}")
    return lines
