"""Where reading of a source stopped, and how to skip what was read when it is read again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaseq.errors import SourceError
from spaseq.events import EventBatch

#: The position in a live source, as JSON. Its client defines it, except ``of``: what was being read.
Place = dict[str, Any]


@dataclass(slots=True)
class Count:
    """A number of events; ``times`` and ``sizes`` are checksums of their times and numbers of triples."""

    events: int = 0
    times: int = 0
    sizes: int = 0

    def took(self, batch: EventBatch) -> None:
        """Add the events of a batch."""
        if len(batch):
            self.events += len(batch)
            self.times = zlib.crc32(batch.time.tobytes(), self.times)
            self.sizes = zlib.crc32(np.diff(batch.offset).tobytes(), self.sizes)


def resumed(batches: Iterator[EventBatch], known: Count, name: str) -> Iterator[EventBatch]:
    """Yield the events after the known ones. Raises ``SourceError`` if the first events differ from these."""
    seen = Count()
    for batch in batches:
        left = known.events - seen.events
        if left <= 0:
            yield batch
            continue
        head = batch if len(batch) <= left else batch.take(np.arange(left))
        seen.took(head)
        if seen.events == known.events:
            if (seen.times, seen.sizes) != (known.times, known.sizes):
                raise SourceError(
                    f"{name}: its first {known.events} events are not those that were read before: the file "
                    "was changed. Put it back, or begin anew with another state file"
                )
            if len(head) < len(batch):
                yield batch.take(np.arange(left, len(batch)))
    if seen.events < known.events:
        raise SourceError(
            f"{name}: it has {seen.events} events, of which {known.events} were read before: the file was "
            "cut or replaced. Put it back, or begin anew with another state file"
        )


def same(known: Place, of: str, name: str) -> None:
    """Raise ``SourceError`` for a position in another source than the one read now."""
    if known.get("of") != of:
        raise SourceError(
            f"{name}: this stream was read of {known.get('of')} before, not of {of}: give the same source "
            "again, or begin anew with another state file"
        )
