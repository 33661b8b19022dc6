"""CONSTRUCT as an event stream: TriG and N-Quads, one timestamped named graph per match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import count
from typing import IO, TYPE_CHECKING

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, serialize

from spaseq.language.syntax import Query
from spaseq.results.writers._base import ResultWriter, show_time
from spaseq.sources import GENERATED_AT
from spaseq.terms.values import XSD

if TYPE_CHECKING:
    from spaseq.results.batch import Match, MatchBatch
    from spaseq.results.event import ConstructedTriple


class GraphWriter(ResultWriter):
    """Writes per match its graph, named by a blank node with the end of the match as
    ``prov:generatedAtTime``.

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

    def batch(self, batch: MatchBatch) -> None:
        names = [f"match{next(self._numbers)}" for _ in range(len(batch))]
        if self._format is RdfFormat.N_QUADS:
            self._write("".join(_lines(batch, names)))
            return
        quads = [
            quad
            for match, name in zip(batch, names, strict=True)
            for quad in event_quads(match, BlankNode(name))
        ]
        text = serialize(quads, format=self._format, prefixes=self._prefixes)
        assert text is not None  # as above
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


def _lines(batch: MatchBatch, names: Sequence[str]) -> Iterator[str]:
    """Yield the quads of ``event_quads`` for matches, in N-Quads."""
    times = {end: str(_time(batch.clock.show(end))) for end in set(batch.spans[1].tolist())}
    for name, end, triples in zip(names, batch.spans[1].tolist(), batch.graphs.lines(), strict=True):
        yield f"_:{name} {GENERATED_AT} {times[end]} .\n"
        for triple in triples:
            yield f"{triple} _:{name} .\n"


def event_quads(match: Match, name: BlankNode) -> list[Quad]:
    """Return the event that a match of CONSTRUCT makes: its time, and its graph of that name."""
    quads = [Quad(name, GENERATED_AT, _time(match.end), DefaultGraph())]
    return quads + [Quad(s, p, o, name) for s, p, o in by_text(match.constructed)]


def _time(time: datetime | int) -> Literal:
    shown = show_time(time)
    return Literal(
        str(shown), datatype=NamedNode(XSD + ("integer" if isinstance(shown, int) else "dateTime"))
    )


def by_text(graph: Iterable[ConstructedTriple]) -> list[ConstructedTriple]:
    """Return the triples of a graph, sorted by text."""
    return sorted(graph, key=lambda triple: " ".join(map(str, triple)))


def graph_text(graph: Iterable[ConstructedTriple]) -> str:
    """Return a graph in N-Triples, with sorted lines."""
    return "".join(f"{s} {p} {o} .\n" for s, p, o in by_text(graph))


def _without_prefixes(text: str) -> str:
    """Return the document without its prefixes, which the stream has once at its beginning."""
    lines = text.splitlines(keepends=True)
    while lines and lines[0].startswith("@prefix "):
        del lines[0]
    return "".join(lines)
