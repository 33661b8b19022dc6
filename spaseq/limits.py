"""Limits of what one query and one term may take, so that the query ends and not the process."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from time import monotonic
from typing import Final, NamedTuple

from spaseq.errors import EngineError, LimitError

#: Suffixes of a number on the command line.
_SCALES: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits. Ordinary queries stay below the defaults. ``None`` is no limit.

    A query over one of these ends with a ``LimitError``; other queries go on:

    - ``partial_matches``: the partial matches that a query keeps; ``query_bytes``: the memory they take.
    - ``pending_matches``: matches that have not been read yet.
    - ``held_events``: events that wait for a query's watermark.
    - ``solutions``: the solutions of a graph pattern, or of a part of it, in one event.
    - ``event_seconds``: the time for one event.
    - ``background_seconds``: the time to compute the solutions of a GRAPH pattern, which is done once.

    Others:

    - ``callback_events``: events that callbacks push during one call. A ``push`` over it raises a
      ``LimitError`` in the callback.
    - ``term_bytes``: the UTF-8 length of one RDF term. ``depth``: the nesting of triple terms, JSON and
      JSON-LD. An event over one of these is malformed; a query that computes such a term ends.
    - ``query_characters``: the length of a query's text, checked before the text is parsed.

    Raises ``EngineError`` for a limit that is not a number above 0.
    """

    partial_matches: int | None = 1_000_000
    query_bytes: int | None = 2**30
    pending_matches: int | None = 1_000_000
    held_events: int | None = 1_000_000
    callback_events: int | None = 100_000
    term_bytes: int | None = 2**20
    depth: int | None = 100
    solutions: int | None = 1_000_000
    event_seconds: int | None = 10
    background_seconds: int | None = 60
    query_characters: int | None = 2**20

    def __post_init__(self) -> None:
        for item in fields(self):
            most = getattr(self, item.name)
            if most is not None and (type(most) is not int or most < 1):
                raise EngineError(
                    f"{item.name}={most!r}: a limit is a whole number above 0, or None for none"
                )

    def times(self, count: int) -> Limits:
        """Return the limits of ``count`` queries together, if each may keep as much as these limits allow."""
        partial, size = self.partial_matches, self.query_bytes
        return replace(
            self,
            partial_matches=None if partial is None else partial * count,
            query_bytes=None if size is None else size * count,
        )

    def beyond(self, name: str, what: str) -> str:
        """Return the message for ``what``, which exceeds the limit of this name: the limit and how to move
        it.

        >>> Limits(depth=7).beyond("depth", "a triple term of depth 8")
        'a triple term of depth 8 is over the limit depth=7: Limits(depth=…), or --limit depth=…, moves it'
        """
        return (
            f"{what} is over the limit {name}={getattr(self, name)}: "
            f"Limits({name}=…), or --limit {name.replace('_', '-')}=…, moves it"
        )

    def error(self, name: str, what: str) -> LimitError:
        """Return the ``LimitError`` with the message of ``beyond``."""
        return LimitError(self.beyond(name, what), limit=name)

    def check_text(self, length: int, what: str = "a text") -> None:
        """Raise ``LimitError`` if a computed text of this many characters is too long."""
        if self.term_bytes is not None and length > self.term_bytes:
            raise self.error("term_bytes", f"computing {what} of {length} characters")

    def updated(self, assignment: str) -> Limits:
        """Return a copy with one limit changed, as on the command line: ``partial-matches=5M``,
        ``query-bytes=none``.

        Raises EngineError for an unknown name and for a value that is not a number.

        >>> Limits().updated("query-bytes=4Gi").query_bytes
        4294967296
        """
        name, equals, text = assignment.partition("=")
        known = [item.name.replace("_", "-") for item in fields(self)]
        if not equals or name not in known:
            raise EngineError(
                f"{assignment!r} is not a limit: write NAME=NUMBER, NAME one of {', '.join(known)}"
            )
        return replace(self, **{name.replace("-", "_"): _number(text, assignment)})


#: No limits: for hosts that limit what they run themselves, as Spark does.
UNLIMITED: Final = Limits(**{item.name: None for item in fields(Limits)})

#: The bytes of one value of a solution in a column; dicts and tuples take more.
_VALUE_BYTES: Final = 8


def _most(limit: int | None) -> int:
    return sys.maxsize if limit is None else limit


class Spending:
    """The time and rows that graph patterns use for the current event, checked during evaluation.

    Time is counted from the first ``check`` after ``restart``. ``most``: how many rows a pattern may have.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.most = _most(limits.solutions)
        self._seconds, self._name = limits.event_seconds, "event_seconds"
        self._end: float | None = None

    def restart(self) -> None:
        """Start over for another event or another query."""
        self._end = None

    def check(self) -> None:
        """Raise ``LimitError`` if the event takes too long."""
        if self._seconds is not None and self.left() <= 0:
            raise self.late()

    def left(self) -> float:
        """Return how many seconds are left; infinity if there is no limit."""
        if self._seconds is None:
            return math.inf
        now = monotonic()
        if self._end is None:
            self._end = now + self._seconds
        return self._end - now

    def late(self) -> LimitError:
        """Return the error of an event that takes too long, and reset the time for the next one."""
        self.restart()
        what = "an event" if self._name == "event_seconds" else "a pattern of background graphs"
        return self._limits.error(self._name, f"{what} that takes more than {self._seconds} s")

    def rows(self, count: int, width: int = 1) -> None:
        """Raise ``LimitError`` for too many rows of ``width`` values, or if the event takes too long."""
        if count > self.most:
            raise self._limits.error("solutions", f"a graph pattern with {count} solutions in one event")
        self.size(count, width)
        self.check()

    def size(self, count: int, width: int) -> None:
        """Raise ``LimitError`` if ``count`` rows of ``width`` values take more memory than a query may."""
        most, size = self._limits.query_bytes, count * max(width, 1) * _VALUE_BYTES
        if most is not None and size > most:
            raise self._limits.error("query_bytes", f"keeping {size} bytes of solutions")

    @contextmanager
    def background(self) -> Iterator[None]:
        """Apply the time limit of background graphs, which may be large and are evaluated once."""
        kept = self.most, self._seconds, self._name, self._end
        self.most, self._end = sys.maxsize, None
        self._seconds, self._name = self._limits.background_seconds, "background_seconds"
        began = monotonic()
        try:
            yield
        finally:
            self.most, self._seconds, self._name, end = kept
            self._end = None if end is None else end + monotonic() - began


class NearLimit(NamedTuple):
    """How much of a limit a query uses: a share (at 1 the query ends), and the limit's name."""

    share: float
    name: str

    def __str__(self) -> str:
        return f"{self.name.replace('_', '-')}, {self.share:.0%} used"


class Budget:
    """What one query keeps, checked against its ``limits``. Each part of its memory reports its size."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._sizes: dict[str, int] = {}
        self._partial = 0

    def partial(self, count: int) -> None:
        """Set the number of partial matches kept. Raises ``LimitError``."""
        self._partial = count
        most = self.limits.partial_matches
        if most is not None and count > most:
            raise self.limits.error("partial_matches", f"keeping {count} partial matches")

    def takes(self, part: str, size: int) -> None:
        """Set the size in bytes of a part of the memory, before or after it grows. Raises ``LimitError``."""
        self._sizes[part] = size
        most = self.limits.query_bytes
        if most is not None and (total := self.size) > most:
            raise self.limits.error("query_bytes", f"keeping {total} bytes for partial matches")

    @property
    def nearest(self) -> NearLimit | None:
        """Return the limit that is used most; None if nothing is kept or there is no limit."""
        used = {"partial_matches": self._partial, "query_bytes": self.size}
        most = {name: getattr(self.limits, name) for name in used}
        return max((NearLimit(used[n] / most[n], n) for n in used if used[n] and most[n]), default=None)

    @property
    def size(self) -> int:
        """Return the bytes of all parts."""
        return sum(self._sizes.values())

    def but(self, part: str) -> int:
        """Return the bytes of all parts except ``part``."""
        return self.size - self._sizes.get(part, 0)


def _number(text: str, assignment: str) -> int | None:
    if text == "none":
        return None
    digits = text.rstrip("".join(_SCALES))
    scale = text.removeprefix(digits)
    if not (digits.isascii() and digits.isdecimal()) or (scale and scale not in _SCALES):
        raise EngineError(f"{assignment!r}: a limit is a whole number, with {', '.join(_SCALES)} or none")
    return int(digits) * _SCALES.get(scale, 1)
