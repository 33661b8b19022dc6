"""Serializers of results for rdflib: ``ndjson``, ``messages`` and ``tsv``.

rdflib itself writes JSON, XML, CSV and a table; of TSV it has the parser only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import pyoxigraph as ox
from rdflib.query import Result, ResultSerializer
from rdflib.term import BNode

from spaseq.errors import FormatError
from spaseq.language.syntax import Construct
from spaseq.rdf.description import about_match
from spaseq.rdf.result import SpaseqResult
from spaseq.results import writer
from spaseq.results.batch import Match
from spaseq.results.writers._graphs import by_text
from spaseq.sources import write_messages
from spaseq.terms.interop import from_rdflib, to_triple


class NdjsonSerializer(ResultSerializer):
    """One match per line: its times, partition and events, and its bindings or graph."""

    def serialize(self, stream: IO[bytes], encoding: str = "utf-8", **_: Any) -> None:
        """Write the matches. Raises FormatError for a result without matches."""
        result = _of_matches(self.result, "ndjson", encoding)
        with writer("ndjson", result.query, stream) as out:
            for match in result.matches:
                out.match(match)


class MessagesSerializer(ResultSerializer):
    """RDF Messages: for each match of CONSTRUCT a dataset with its graph, its time and its events."""

    def serialize(self, stream: IO[bytes], encoding: str = "utf-8", **_: Any) -> None:
        """Write the matches. Raises FormatError for a result without matches that are graphs."""
        result = _of_matches(self.result, "messages", encoding)
        if not isinstance(result.query.form, Construct):
            raise FormatError("messages hold graphs: only CONSTRUCT gives any; use ndjson")
        messages = (_message(match, BNode(f"match{n}")) for n, match in enumerate(result.matches, 1))
        write_messages(messages, stream, "trig")  # files with this extension are read as TriG


class TsvSerializer(ResultSerializer):
    """https://www.w3.org/TR/sparql11-results-csv-tsv/, for rows of any query processor."""

    def serialize(self, stream: IO[bytes], encoding: str = "utf-8", **_: Any) -> None:
        """Write the rows. Raises FormatError for a result without rows."""
        if self.result.type != "SELECT":
            raise FormatError(f"tsv cannot hold the results of {self.result.type}")
        names = self.result.vars or []
        lines = ["\t".join(f"?{name}" for name in names)]
        for row in self.result.bindings:
            terms = (row.get(name) for name in names)
            lines.append("\t".join("" if term is None else str(from_rdflib(term)) for term in terms))
        stream.write("".join(f"{line}\n" for line in lines).encode(encoding))


def _of_matches(result: Result, form: str, encoding: str) -> SpaseqResult:
    if not isinstance(result, SpaseqResult):
        raise FormatError(f"{form} holds matches: query with processor='spaseq', result='spaseq'")
    if encoding.lower().replace("-", "") != "utf8":
        raise FormatError(f"{form} is always in UTF-8")
    return result


def _message(match: Match, name: BNode) -> Iterator[ox.Quad]:
    for s, p, o in map(to_triple, about_match(match, name)):
        yield ox.Quad(s, p, o, ox.DefaultGraph())
    for s, p, o in by_text(match.constructed):
        yield ox.Quad(s, p, o, ox.BlankNode(name))
