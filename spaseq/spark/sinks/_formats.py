"""Answers as files of results: lines of matches in the format that is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import IO, Final

from pyoxigraph import BlankNode

from spaseq.errors import FormatError
from spaseq.language.syntax import Construct, Query
from spaseq.results import writer
from spaseq.results.writers._graphs import event_quads
from spaseq.sources import write_messages
from spaseq.spark.sinks._lines import match_of


class Form(StrEnum):
    """What files of matches hold: a line of JSON each, or the events that CONSTRUCT makes of them."""

    NDJSON = "ndjson"
    NQUADS = "nquads"
    TRIG = "trig"
    MESSAGES = "messages"


#: The names of files end so, and are read as what they are.
EXTENSIONS: Final = {
    Form.NDJSON: "ndjson",
    Form.NQUADS: "nq",
    Form.TRIG: "trig",
    Form.MESSAGES: "messages",
}


def form_of(name: str, query: Query) -> Form:
    """The form of that name. Raises FormatError for an unknown one, and for graphs of what makes none."""
    if name not in tuple(Form):
        raise FormatError(
            f"unknown format {name!r} of files of matches: known are {', '.join(Form)}, parquet"
        )
    form = Form(name)
    if form is not Form.NDJSON and not isinstance(query.form, Construct):
        raise FormatError(f"{form} holds graphs, which only CONSTRUCT makes: use {Form.NDJSON}")
    return form


def write_lines(lines: Iterable[str], form: Form, query: Query | None, out: IO[bytes]) -> None:
    """Writes the matches of some lines as a file of that form; NDJSON, or dead letters, need no query."""
    if form is Form.NDJSON or query is None:
        out.writelines(f"{line}\n".encode() for line in lines)
    elif form is Form.MESSAGES:
        found = enumerate((match_of(line, query) for line in lines), 1)
        # In TriG, as a file of that name is read.
        write_messages((event_quads(match, BlankNode(f"match{n}")) for n, match in found), out, "trig")
    else:
        with writer(form, query, out) as writing:
            for line in lines:
                writing.match(match_of(line, query))
