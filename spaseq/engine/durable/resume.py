"""How far sources were read, and which of them can be read on from there."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from spaseq.connect import LiveSource, Location
from spaseq.connect.again import Count, Place
from spaseq.errors import EngineError
from spaseq.events import EventBatch
from spaseq.sources import BadEvent
from spaseq.sources.columns.table import Table


@dataclass(slots=True)
class Position(Count):
    """How far a source was read: good and bad events of what has an end, and the latest time.

    ``live``: the place behind which a live source goes on, when it has come so far; ``followed``: how many
    events came of that.
    """

    location: str = ""
    bad: int = 0
    newest: int | None = None
    live: Place | None = None
    followed: int = 0

    @classmethod
    def of(cls, text: str) -> Position:
        """What ``text`` gave."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def goes_on(self, batch: EventBatch, live: Place | None) -> None:
        """So many events more; ``live``: up to where, if they are of a live source."""
        if len(batch):
            newest = int(batch.time.max())
            self.newest = newest if self.newest is None else max(newest, self.newest)
        if live is None:
            self.took(batch)
        else:
            self.live = live
            self.followed += len(batch)


def where(location: Location) -> str:
    """A source as a state names it, without credentials."""
    if isinstance(location, LiveSource):
        return str(location.address)
    return str(location) if isinstance(location, str | Path) else "table"


def position(known: dict[str, Position], stream: str, location: Location) -> Position:
    """How far the source of a stream was read, of those that are ``known``.

    Raises ``EngineError`` for a source that cannot be read on, or was another kind of one.
    """
    check(location)
    found = known.setdefault(stream, Position(location=where(location)))
    # A history is read to its end before its live source; what is live has no end.
    if isinstance(location, LiveSource):
        is_other = found.live is None and bool(found.events) and not location.history
    else:
        is_other = found.live is not None
    if is_other:
        raise EngineError(
            f"{where(location)}: this stream was read of {found.location} before: give the same source "
            "again, or begin anew with another state file"
        )
    return found


def check(location: Location) -> None:
    """Raises ``EngineError`` for a source that cannot be read on by the next engine."""
    if isinstance(location, LiveSource):
        for past, _ in location.history:
            check(past)
        return
    why = None
    if not isinstance(location, str | Path | Table):
        why = "an open file"
    elif str(location) == "-":
        why = "standard input"
    elif isinstance(location, str | Path) and _is_special(Path(location)):
        why = "a pipe"
    if why is not None:
        raise EngineError(
            f"{location}: {why} cannot be read again from its start, as a restart must: with a state, give a "
            "file, a folder or a live URL, or push the events and go on after engine.arrived"
        )


def _is_special(path: Path) -> bool:
    return path.exists() and not (path.is_dir() or stat.S_ISREG(path.stat().st_mode))


def again(
    refuse: Callable[[BadEvent], None], position: Position, still: Callable[[], AbstractContextManager[None]]
) -> Callable[[BadEvent], None]:
    """Tells of bad events and counts them, but for the first ones, which were told before.

    ``still``: meanwhile no commit is made of the one without the other.
    """
    left = position.bad

    def tell(letter: BadEvent) -> None:
        nonlocal left
        if left:
            left -= 1
            return
        with still():
            refuse(letter)
            position.bad += 1

    return tell
