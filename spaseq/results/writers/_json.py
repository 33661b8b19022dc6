"""SPARQL 1.1 Query Results JSON, and NDJSON with one match per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from rdflib.term import BNode, Literal, Node

from spaseq.language.syntax import Construct, Query, Select
from spaseq.results.writers._base import Cache, ResultWriter, RowFormat, columns, show_time
from spaseq.results.writers._graphs import graph_text

if TYPE_CHECKING:
    from spaseq.results.batch import Match, MatchBatch
    from spaseq.results.event import Event


class JsonRows(RowFormat):
    """https://www.w3.org/TR/sparql11-results-json/, one row per line."""

    holds_all = True

    def __init__(self, query: Query) -> None:
        self._names = columns(query)
        self._separator = "\n"
        self._terms = Cache()

    def answer(self, answer: bool) -> str:
        return dump({"head": {}, "boolean": answer}) + "\n"

    def head(self) -> str:
        return f'{{"head":{dump({"vars": self._names})},"results":{{"bindings":['

    def rows(self, match: Match) -> str:
        parts = []
        for row in rows_of(match):
            parts += [self._separator, row]
            self._separator = ",\n"
        return "".join(parts)

    def all_rows(self, batch: MatchBatch) -> memoryview:
        from spaseq.results.writers import _texts

        rows = _texts.json_rows(batch, self._terms, self._separator, ",\n")
        if len(rows):
            self._separator = ",\n"
        return rows

    def tail(self) -> str:
        return "\n]}}\n"


class NdjsonWriter(ResultWriter):
    """One match a line: ``start``, ``end``, ``partition``, ``events`` per GPM, and what the query asks for.

    That is ``bindings`` for SELECT, ``graph`` (N-Triples) for CONSTRUCT, and nothing more for ASK.
    Terms are those of SPARQL JSON; times are ``xsd:dateTime`` strings, or integers on streams of ticks.
    ``name``: the query's name, written as the first key ``query``.
    """

    holds_all = True

    def __init__(self, query: Query, out: IO[bytes], name: str | None = None) -> None:
        super().__init__(query, out)
        self._terms = Cache()
        self._begin = "{" if name is None else f'{{"query":{dump(name)},'

    def match(self, match: Match) -> None:
        self._write(self._begin + line_of(match)[1:] + "\n")

    def batch(self, batch: MatchBatch) -> None:
        lines = lines_of(batch, self._terms)
        if len(self._begin) > 1:
            # A line feed in JSON is the end of a line: strings escape theirs.
            begin = self._begin.encode()
            lines = memoryview(begin + bytes(lines)[1:].replace(b"\n{", b"\n" + begin))
        self._write_all("", lines)

    def close(self) -> None:
        """Do nothing: every line is complete."""


def line_of(match: Match) -> str:
    """Return a match as ``NdjsonWriter`` writes it, without the end of the line."""
    return dump(values_of(match))


def values_of(match: Match) -> dict[str, Any]:
    """Return the contents of a match's line, as plain values."""
    form = match.query.form
    parts: dict[str, Any] = {
        "start": show_time(match.start),
        "end": show_time(match.end),
        "partition": _bindings(match.partition),
        "events": {name: [_event(event) for event in events] for name, events in match.events.items()},
    }
    if isinstance(form, Select):
        parts["bindings"] = [_bindings(row) for row in match.bindings]
    elif isinstance(form, Construct):
        parts["graph"] = graph_text(match.constructed)
    return parts


def lines_of(batch: MatchBatch, terms: Cache) -> memoryview:
    """Return the lines of some matches, each with its end."""
    from spaseq.results.writers import _texts

    return _texts.json_lines(batch, terms)


def rows_of(match: Match) -> list[str]:
    """Return the rows of a match, each in SPARQL JSON."""
    return [dump(_bindings(row)) for row in match.bindings]


def _event(event: Event) -> dict[str, object]:
    return {
        "stream": str(event.stream),
        "graph": f"_:{event.graph}" if isinstance(event.graph, BNode) else event.graph,
        "time": show_time(event.time),
        "n": event.n,
    }


def _bindings(row: Mapping[str, Node]) -> dict[str, dict[str, str]]:
    return {name: json_term(term) for name, term in row.items()}


def json_term(term: Node) -> dict[str, str]:
    """Return a term in SPARQL JSON."""
    match term:
        case Literal():
            found = {"type": "literal", "value": str(term)}
            if term.language:
                found["xml:lang"] = term.language
            elif term.datatype is not None:
                found["datatype"] = str(term.datatype)
            return found
        case BNode():
            return {"type": "bnode", "value": str(term)}
    return {"type": "uri", "value": str(term)}


def dump(value: object) -> str:
    """Return a value as JSON, without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
