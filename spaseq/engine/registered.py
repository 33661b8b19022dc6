"""A query's place in an engine, and in which order queries are moved on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyoxigraph as ox

from spaseq.engine.handle import Handle
from spaseq.engine.order import BEGINNING, Reorder
from spaseq.engine.pipeline import Pipeline
from spaseq.errors import EngineError
from spaseq.terms import Dictionary


class Registered:
    """What orders a query's input, and what computes its matches.

    ``output``: the stream that it makes by REGISTER STREAM; ``settled``: up to where that is complete.
    ``is_closed``: its last window has ended.
    """

    def __init__(
        self, pipeline: Pipeline, handle: Handle, dictionary: Dictionary, lateness: timedelta
    ) -> None:
        self.pipeline = pipeline
        self.handle = handle
        self.settled = BEGINNING
        self.is_closed = False
        # Simultaneous events of different streams are processed in the order of the streams' IRIs.
        iris = sorted({declaration.iri.value for declaration in pipeline.query.streams})
        streams = {dictionary.pin(ox.NamedNode(iri)): rank for rank, iri in enumerate(iris)}
        self.order = Reorder(streams, lateness)
        self.output = dictionary.pin(pipeline.output) if pipeline.output is not None else None


def producers_first(queries: Sequence[Registered]) -> list[Registered]:
    """The queries so that each comes after those whose REGISTER STREAM it reads."""
    ordered: list[Registered] = []
    left = list(queries)
    while left:
        made = {q.output for q in left if q.output is not None}
        ready = [q for q in left if not made & q.order.clocks.keys()]
        if not ready:
            raise EngineError("a query's registered stream would feed itself, directly or through others")
        ordered += ready
        left = [q for q in left if q not in ready]
    return ordered
