"""Counts over the first and the newest events of a query, computed outside the engine's turns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyoxigraph as ox

from spaseq.automaton.normal import normalise
from spaseq.events import BatchBuilder, EventBatch, concatenate
from spaseq.language.syntax import Query
from spaseq.patterns.kb import KnowledgeBase
from spaseq.serve.newest.recent import EVENTS, KeptEvent, in_order
from spaseq.terms.dictionary import Dictionary
from spaseq.why.evidence import Evidence
from spaseq.why.replay import Traced, trace_newest

#: The most triples of the newest events that are used.
TRIPLES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Counted:
    """The last counts of a query, and how many events it had had then."""

    events: int
    traced: Traced


def count(
    query: Query,
    events: dict[str, list[EventBatch]],
    kb: KnowledgeBase,
    *,
    seen: int,
    begin: int | None,
    seconds: float,
) -> Traced:
    """Count what became of partial matches over the newest of the events that a query has seen.

    ``seen``: how many events the query has seen; earlier events of its streams are left out. ``begin``: when
    its first window began, on the clock of its streams. ``seconds`` are CPU time of this thread. Terms go
    into a separate dictionary, so that the engine may continue meanwhile.
    """
    newest = in_order(events)[-min(seen, EVENTS) :] if seen else []
    triples = np.cumsum([kept.triples for kept in reversed(newest)], dtype=np.int64)
    fitting = max(1, int(np.searchsorted(triples, TRIPLES, side="right")))
    dictionary = Dictionary()
    evidence = Evidence(
        pattern=normalise(query),
        events=seen,
        matches=0,
        late=0,
        gpms={},
        sample=_copied(dictionary, newest[-fitting:]),
        begin=begin,
        dictionary=dictionary,
        kb=kb,
    )
    return trace_newest(evidence, seconds)


def apart(evidence: Evidence, kb: KnowledgeBase) -> Evidence:
    """Return the evidence for another thread: with its own dictionary, and ``kb`` as background graphs."""
    sample, term, dictionary = evidence.sample, evidence.dictionary.term, Dictionary()
    events: list[KeptEvent] = []
    if sample is not None:
        streams = {stream: term(stream).value for stream in np.unique(sample.stream).tolist()}
        events = [KeptEvent(streams[stream], sample, i) for i, stream in enumerate(sample.stream.tolist())]
    return replace(evidence, sample=_copied(dictionary, events), dictionary=dictionary, kb=kb)


def _copied(dictionary: Dictionary, events: list[KeptEvent]) -> EventBatch | None:
    """Return events in order, with ids of another dictionary."""
    if not events:
        return None
    builders: dict[str, BatchBuilder] = {}
    for event in events:
        stream = event.stream
        if stream not in builders:
            builders[stream] = BatchBuilder(dictionary, ox.NamedNode(stream), event.batch.clock)
        time, number = event.time, len(builders[stream])
        builders[stream].add(time, number, event.terms(), event.name)
    batch = concatenate(builder.build() for builder in builders.values())
    # Each builder has its events in order, one builder after the other.
    place = {stream: number for number, stream in enumerate(builders)}
    order = np.argsort(np.array([place[event.stream] for event in events]), kind="stable")
    return batch.take(np.argsort(order, kind="stable"))
