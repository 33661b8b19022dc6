"""CONSTRUCT as an event stream: TriG and N-Quads, one timestamped named graph a match."""

from __future__ import annotations

from itertools import count
from typing import IO, TYPE_CHECKING

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, serialize

from spaseq.language.syntax import Query
from spaseq.results.writers._base import ResultWriter, show_time
from spaseq.sources import GENERATED_AT
from spaseq.terms.interop import triples_of
from spaseq.terms.values import XSD

if TYPE_CHECKING:
    from spaseq.results.match import Match


class GraphWriter(ResultWriter):
    """Per match its graph, named by a blank node whose ``prov:generatedAtTime`` is the end of the match.

    The time comes first, so that a reader knows the event before the next one begins.
    """

    def __init__(self, query: Query, out: IO[bytes], *, prefixed: bool) -> None:
        super().__init__(query, out)
        self._format = RdfFormat.TRIG if prefixed else RdfFormat.N_QUADS
        self._prefixes = dict(query.prefixes) if prefixed else {}
        self._numbers = count(1)
        self._started = False

    def match(self, match: Match) -> None:
        quads = event_quads(match, BlankNode(f"match{next(self._numbers)}"))
        text = serialize(quads, format=self._format, prefixes=self._prefixes)
        assert text is not None  # it is None only when written to a file
        self._write(self._head_once() + _without_prefixes(text.decode()))

    def go_on(self, matches: int) -> None:
        self._numbers = count(matches + 1)
        self._started = True

    def close(self) -> None:
        self._write(self._head_once())

    def _head_once(self) -> str:
        if self._started:
            return ""
        self._started = True
        return "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in sorted(self._prefixes.items()))


def event_quads(match: Match, name: BlankNode) -> list[Quad]:
    """The event that a match of CONSTRUCT makes: its time, and its graph of that name."""
    time = show_time(match.end)
    kind = NamedNode(XSD + ("integer" if isinstance(time, int) else "dateTime"))
    quads = [Quad(name, GENERATED_AT, Literal(str(time), datatype=kind), DefaultGraph())]
    return quads + [Quad(t.subject, t.predicate, t.object, name) for t in triples_of(match.graph())]


def _without_prefixes(text: str) -> str:
    """The document without its head, which stands at the beginning of the stream once."""
    lines = text.splitlines(keepends=True)
    while lines and lines[0].startswith("@prefix "):
        del lines[0]
    return "".join(lines)
