"""Matches and dead letters as lines of JSON, and lines as matches again.

Dead letters of messages name the topic, partition and offset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache
from typing import Any, Final

import pyoxigraph as ox
from rdflib import BNode, Literal, URIRef

from spaseq.events import BatchBuilder, Clock, EventBatch, Ids
from spaseq.language.syntax import Construct, Query
from spaseq.results.batch import Match
from spaseq.results.event import Event
from spaseq.sources import BadEvent
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.interop import RdflibTerm

#: The topic of each stream, by its IRI.
Topics = tuple[tuple[str, str], ...]

#: Widths of fields in arrival numbers: from high to low bits the message's offset, its partition, and the
#: number of the event in the message.
_PARTITION_BITS: Final = 12
_EVENT_BITS: Final = 10

#: The most events of a message, and the most partitions of a topic.
MOST_EVENTS: Final = 1 << _EVENT_BITS
MOST_PARTITIONS: Final = 1 << _PARTITION_BITS


def arrival_numbers(offset: Ids, partition: Ids) -> Ids:
    """Return the arrival numbers of the first events of messages."""
    return ((offset << _PARTITION_BITS) | partition) << _EVENT_BITS


def place_of(topic: str, number: int) -> str:
    """Return where the message of an arrival number is.

    >>> place_of("trades", (7 << 12 | 3) << 10 | 5)
    'topic trades, partition 3, offset 7'
    """
    offset, partition = divmod(number >> _EVENT_BITS, MOST_PARTITIONS)
    return f"topic {topic}, partition {partition}, offset {offset}"


def addressed(letter: BadEvent, topics: Topics) -> BadEvent:
    """Return the dead letter with the place of its message, if its stream is a topic."""
    topic = dict(topics).get(letter.stream)
    word, _, number = letter.position.partition(" ")
    if topic is None or word != "event" or not number.isdigit():
        return letter
    # Letters count from 1.
    return replace(letter, position=place_of(topic, int(number) - 1))


#: Kinds of lines: a match, a late event, a malformed event, or what a bucket shed under a bound.
MATCH: Final = "match"
LATE: Final = "late"
BAD: Final = "bad"
SHED: Final = "shed"

#: A kind of line for the bucket's worker only: which calls of the user's functions failed.
FAILED: Final = "failed"


def letter_line(letter: BadEvent, topics: Topics = ()) -> str:
    """Return a dead letter as one line of JSON; a letter of a topic names its place there."""
    return json.dumps(asdict(addressed(letter, topics)), ensure_ascii=False)


def letter_of_line(line: str) -> BadEvent:
    """Return the dead letter that a line contains."""
    return BadEvent(**json.loads(line))


def match_of(line: str, query: Query) -> Match:
    """Return the match that a line contains. Its events have no triples, since the line has none."""
    data = json.loads(line)
    rows = [_row(row) for row in data.get("bindings", ())]
    constructed = []
    if isinstance(query.form, Construct):
        parsed = ox.parse(data["graph"].encode(), format=ox.RdfFormat.N_TRIPLES)
        constructed = [(t.subject, t.predicate, t.object) for t in (quad.triple for quad in parsed)]
    from spaseq.results.writers._base import columns

    return Match(
        query=query,
        start=_time(data["start"]),
        end=_time(data["end"]),
        events={name: [_event(event) for event in events] for name, events in data["events"].items()},
        variables=tuple(columns(query)),
        bindings=rows,
        partition=_row(data["partition"]),
        constructed=constructed,
    )


def _row(row: Mapping[str, dict[str, str]]) -> dict[str, RdflibTerm]:
    return {name: _term(term) for name, term in row.items()}


def _term(term: Mapping[str, str]) -> RdflibTerm:
    match term["type"]:
        case "uri":
            return URIRef(term["value"])
        case "bnode":
            return BNode(term["value"])
    datatype = term.get("datatype")
    return Literal(
        term["value"],
        lang=term.get("xml:lang"),
        datatype=URIRef(datatype) if datatype else None,
        normalize=False,
    )


def _time(time: str | int) -> datetime | int:
    return time if isinstance(time, int) else datetime.fromisoformat(time)


def _event(event: Mapping[str, Any]) -> Event:
    graph = event["graph"]
    name: RdflibTerm | None = None
    if graph is not None:
        name = BNode(graph[2:]) if graph.startswith("_:") else URIRef(graph)
    return Event(
        stream=URIRef(event["stream"]),
        graph=name,
        time=_time(event["time"]),
        n=event["n"],
        _at=(_no_triples(), 0),
    )


@cache
def _no_triples() -> EventBatch:
    builder = BatchBuilder(Dictionary(), ox.NamedNode("urn:spaseq:none"), Clock.TICKS)
    builder.add(0, 0, [])
    return builder.build()
