"""Sources that are read on: from the start again, up to where they were, and from there as new."""

from __future__ import annotations

import json
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from spaseq.connect import LiveSource, Location
from spaseq.errors import EngineError, SourceError
from spaseq.events import EventBatch
from spaseq.sources import BadEvent
from spaseq.sources.columns.table import Table


@dataclass(slots=True)
class Position:
    """How far a source was read: good and bad events, and the latest time.

    ``times`` and ``sizes`` are checksums of the times and the numbers of triples of the good ones.
    """

    location: str
    events: int = 0
    bad: int = 0
    newest: int | None = None
    times: int = 0
    sizes: int = 0

    @classmethod
    def of(cls, text: str) -> Position:
        """What ``text`` gave."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def took(self, batch: EventBatch) -> None:
        """So many events more."""
        if len(batch):
            newest = int(batch.time.max())
            self.events += len(batch)
            self.newest = newest if self.newest is None else max(newest, self.newest)
            self.times = zlib.crc32(batch.time.tobytes(), self.times)
            self.sizes = zlib.crc32(np.diff(batch.offset).tobytes(), self.sizes)


def check(location: Location) -> None:
    """Raises ``EngineError`` for a source that cannot be read again from its start."""
    why = None
    if isinstance(location, LiveSource):
        why = "a live source"
    elif not isinstance(location, str | Path | Table):
        why = "an open file"
    elif str(location) == "-":
        why = "standard input"
    elif isinstance(location, str | Path) and _is_special(Path(location)):
        why = "a pipe"
    if why is not None:
        raise EngineError(
            f"{location}: {why} cannot be read again from its start, as a restart must: with a state, give a "
            "file or a folder, or push the events and go on after engine.arrived"
        )


def _is_special(path: Path) -> bool:
    return path.exists() and not (path.is_dir() or stat.S_ISREG(path.stat().st_mode))


def resumed(batches: Iterator[EventBatch], known: Position) -> Iterator[EventBatch]:
    """The events of a source behind those that are known; raises ``SourceError`` if these are others now."""
    seen = Position(known.location)
    for batch in batches:
        left = known.events - seen.events
        if left <= 0:
            yield batch
            continue
        head = batch if len(batch) <= left else batch.take(np.arange(left))
        seen.took(head)
        if seen.events == known.events:
            _compare(seen, known)
            if len(head) < len(batch):
                yield batch.take(np.arange(left, len(batch)))
    if seen.events < known.events:
        raise SourceError(
            f"{known.location}: it has {seen.events} events, of which {known.events} were read before: the "
            "file was cut or replaced. Put it back, or begin anew with another state file"
        )


def again(refuse: Callable[[BadEvent], None], known: int) -> Callable[[BadEvent], None]:
    """Tells of bad events, but for the first ones, which were told before."""
    left = known

    def tell(letter: BadEvent) -> None:
        nonlocal left
        if left:
            left -= 1
        else:
            refuse(letter)

    return tell


def _compare(seen: Position, known: Position) -> None:
    if (seen.times, seen.sizes) != (known.times, known.sizes):
        raise SourceError(
            f"{known.location}: its first {known.events} events are not those that were read before: the "
            "file was changed. Put it back, or begin anew with another state file"
        )
