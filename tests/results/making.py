"""Queries and matches made by hand: writers need no engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from io import BytesIO

import pyoxigraph as ox
from rdflib.term import URIRef

from spaseq.events import BatchBuilder, Clock, microseconds
from spaseq.language import syntax as s
from spaseq.results import writer
from spaseq.results.batch import Match
from spaseq.results.event import Event, TermView, event
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.interop import RdflibTerm, from_rdflib

EX = "http://example.org/"
STREAM = ox.NamedNode(EX + "stream")
SUBJECT, TIME = s.Var("s"), s.Var("t")
PATTERN = s.Group((s.Triples((s.TriplePattern(SUBJECT, ox.NamedNode(EX + "p"), s.Var("o")),)),))


def select(*names: str) -> s.Select:
    return s.Select(tuple(s.Projection(s.Var(name)) for name in names))


def query(form: s.Select | s.Ask | s.Construct, prefixes: Mapping[str, str] | None = None) -> s.Query:
    return s.Query(
        form=form,
        window=s.Window(10, "SECONDS"),
        streams=(s.StreamDeclaration("S", STREAM),),
        sequence=s.Ref("A"),
        gpms=(s.Gpm("A", ("S",), PATTERN, time=TIME),),
        prefixes=tuple((prefixes or {}).items()),
    )


def events(*times: datetime | int, graph: ox.NamedNode | ox.BlankNode | None = None) -> list[Event]:
    """Events of the stream at these times, each with one triple."""
    ticks = isinstance(times[0], int)
    builder = BatchBuilder(Dictionary(), STREAM, Clock.TICKS if ticks else Clock.INSTANTS)
    for n, time in enumerate(times):
        triple = (ox.NamedNode(EX + f"e{n}"), ox.NamedNode(EX + "p"), ox.Literal(n))
        builder.add(time if isinstance(time, int) else microseconds(time), n, [triple], graph)
    batch = builder.build()
    return [event(batch, index, TermView(batch.dictionary)) for index in range(len(times))]


def match(
    of: s.Query,
    rows: Iterable[Mapping[str, RdflibTerm]] = (),
    *,
    start: datetime | int = 1,
    end: datetime | int = 2,
    chosen: Mapping[str, list[Event]] | None = None,
    partition: Mapping[str, RdflibTerm] | None = None,
    triples: Iterable[tuple[RdflibTerm, URIRef, RdflibTerm]] = (),
) -> Match:
    bindings = [dict(row) for row in rows]
    return Match(
        query=of,
        start=start,
        end=end,
        events=dict(chosen or {}),
        variables=tuple(dict.fromkeys(name for row in bindings for name in row)),
        bindings=bindings,
        partition=dict(partition or {}),
        constructed=[tuple(map(from_rdflib, triple)) for triple in triples],  # type: ignore[misc]  # three terms each
    )


def written(name: str, of: s.Query, *matches: Match) -> bytes:
    """What a writer makes of these matches."""
    out = BytesIO()
    with writer(name, of, out) as results:
        for item in matches:
            results.match(item)
    return out.getvalue()
