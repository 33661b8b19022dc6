"""What there was of an engine's streams: events, late and malformed ones, how far their time has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyoxigraph as ox

from spaseq.engine.parts.core import Core
from spaseq.errors import SourceError
from spaseq.events import Clock


@dataclass(frozen=True, slots=True)
class StreamStats:
    """What there was of a stream: its ``events``, late ones included, malformed ones, late ones.

    ``watermark``: before that, a UTC datetime or a tick, an event would be late; None if nobody knows.
    """

    events: int
    bad: int
    late: int
    watermark: datetime | int | None


class Streams:
    """The streams that came or that a query reads, for who has the turn."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def stats(self) -> Mapping[str, StreamStats]:
        """The streams that came or that a query reads, by IRI, and what there was of each."""
        found: dict[str, StreamStats] = {}
        for stream, (clock, time) in self._core.flow.streams().items():
            iri = self._core.dictionary.term(stream).value
            watermark = None if time is None or clock is None else clock.show(time)
            found[iri] = StreamStats(self._core.flow.arrived(stream), *self._core.rejects.of(iri), watermark)
        return found

    def arrived(self) -> Mapping[str, int]:
        """How many events of each stream came so far, late and malformed ones included."""
        counts = self._core.rejects.unnumbered()
        counts.update({self._core.dictionary.term(s).value: n for s, n in self._core.flow.arrivals.items()})
        return dict(+counts)

    def watermark(self) -> datetime | int | None:
        """Up to where time is complete for the slowest query; None before the first event."""
        reached = [(intake.order.time, intake.order.clock) for intake in self._core.flow.intakes]
        known = [(time, clock) for time, clock in reached if time is not None]
        if not known:
            return None
        time, clock = min(known, key=lambda pair: pair[0])
        return (clock or Clock.TICKS).show(time)

    def check_read(self) -> None:
        """Raises ``SourceError`` if there is a stream of which all events were malformed."""
        for stream, (count, letter) in self._core.rejects.first_bad().items():
            if not self._core.flow.arrived(self._core.dictionary.pin(ox.NamedNode(stream))):
                many = f"all {count} events are malformed, first" if count > 1 else "its only event,"
                raise SourceError(
                    f"nothing of <{stream}> could be read: {many} {letter.position}: {letter.reason}"
                )
