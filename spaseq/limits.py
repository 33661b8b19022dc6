"""How much one query, and one term, may take before it is stopped rather than the process."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from time import monotonic
from typing import Final, NamedTuple

from spaseq.errors import EngineError, LimitError

#: Endings of a number on the command line.
_SCALES: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, each with a default that a sound query does not meet; ``None`` is no bound.

    ``partial_matches``: what a query keeps that is not a match yet. ``query_bytes``: the memory it keeps
    them in. ``pending_matches``: matches that nobody has asked for yet. ``held_events``: events that wait for
    a query's watermark. ``solutions``: the rows that a graph pattern, or a part of it, has in one event.
    ``event_seconds``: the time that one event may take. ``background_seconds``: the time that the solutions
    of a GRAPH pattern may take, which are found once. A query over one of them ends with a ``LimitError``;
    the others go on.

    ``callback_events``: events that callbacks push during one call. A ``push`` over it raises a
    ``LimitError`` in the callback.

    ``term_bytes``: the UTF-8 length of one RDF term; ``depth``: how deep triple terms, JSON and JSON-LD may
    be nested. An event over one of these is malformed; a query that computes such a term ends.

    ``query_characters``: the length of a query's text, which is told before the text is read.

    Raises ``EngineError`` for a bound that is no number above 0.
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
        """Those of so many queries together, each of which may keep as much as one."""
        partial, size = self.partial_matches, self.query_bytes
        return replace(
            self,
            partial_matches=None if partial is None else partial * count,
            query_bytes=None if size is None else size * count,
        )

    def beyond(self, name: str, what: str) -> str:
        """The message for ``what`` that goes over the limit of this name: which, and how to move it.

        >>> Limits(depth=7).beyond("depth", "a triple term of depth 8")
        'a triple term of depth 8 is over the limit depth=7: Limits(depth=…), or --limit depth=…, moves it'
        """
        return (
            f"{what} is over the limit {name}={getattr(self, name)}: "
            f"Limits({name}=…), or --limit {name.replace('_', '-')}=…, moves it"
        )

    def error(self, name: str, what: str) -> LimitError:
        """The same, to be raised."""
        return LimitError(self.beyond(name, what), limit=name)

    def check_text(self, length: int, what: str = "a text") -> None:
        """Raises ``LimitError`` if a computed text is to have so many characters, and that is too many."""
        if self.term_bytes is not None and length > self.term_bytes:
            raise self.error("term_bytes", f"computing {what} of {length} characters")

    def updated(self, assignment: str) -> Limits:
        """With one limit moved, as on the command line: ``partial-matches=5M``, ``query-bytes=none``.

        Raises EngineError for a name that no limit has, and for what is no number.

        >>> Limits().updated("query-bytes=4Gi").query_bytes
        4294967296
        """
        name, equals, text = assignment.partition("=")
        known = [item.name.replace("_", "-") for item in fields(self)]
        if not equals or name not in known:
            raise EngineError(
                f"{assignment!r} is no limit: write NAME=NUMBER, NAME one of {', '.join(known)}"
            )
        return replace(self, **{name.replace("-", "_"): _number(text, assignment)})


#: None of them: for hosts that bound what they run themselves, as Spark does.
UNLIMITED: Final = Limits(**{item.name: None for item in fields(Limits)})

#: The bytes of one value of a solution: a column's; dicts and tuples take more.
_VALUE_BYTES: Final = 8


def _most(limit: int | None) -> int:
    return sys.maxsize if limit is None else limit


class Spending:
    """What evaluating graph patterns takes of the event in hand, told while it is spent.

    Time is counted from the first ``check`` after ``restart``. ``most``: how many rows a pattern may have.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.most = _most(limits.solutions)
        self._seconds, self._name = limits.event_seconds, "event_seconds"
        self._end: float | None = None

    def restart(self) -> None:
        """Begin with another event, or another query."""
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
        """Return the error of an event that takes too long; the next one has all its time."""
        self.restart()
        what = "an event" if self._name == "event_seconds" else "a pattern of background graphs"
        return self._limits.error(self._name, f"{what} that takes more than {self._seconds} s")

    def rows(self, count: int, width: int = 1) -> None:
        """Raise ``LimitError`` for so many rows of ``width`` values, and if the event takes too long."""
        if count > self.most:
            raise self._limits.error("solutions", f"a graph pattern with {count} solutions in one event")
        self.size(count, width)
        self.check()

    def size(self, count: int, width: int) -> None:
        """Raise ``LimitError`` if so many rows of ``width`` values take more memory than a query may."""
        most, size = self._limits.query_bytes, count * max(width, 1) * _VALUE_BYTES
        if most is not None and size > most:
            raise self._limits.error("query_bytes", f"keeping {size} bytes of solutions")

    @contextmanager
    def background(self) -> Iterator[None]:
        """While a GRAPH pattern is evaluated: background graphs may be large, and are asked once."""
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
    """What one query keeps, against its ``limits``; each part of its memory says how large it is."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._sizes: dict[str, int] = {}
        self._partial = 0

    def partial(self, count: int) -> None:
        """So many partial matches are kept. Raises ``LimitError``."""
        self._partial = count
        most = self.limits.partial_matches
        if most is not None and count > most:
            raise self.limits.error("partial_matches", f"keeping {count} partial matches")

    def takes(self, part: str, size: int) -> None:
        """A part of the memory has, or is to have, so many bytes. Raises ``LimitError``."""
        self._sizes[part] = size
        most = self.limits.query_bytes
        if most is not None and (total := self.size) > most:
            raise self.limits.error("query_bytes", f"keeping {total} bytes for partial matches")

    @property
    def nearest(self) -> NearLimit | None:
        """Return the limit of which most is used; None if nothing is kept, or there is no limit."""
        used = {"partial_matches": self._partial, "query_bytes": self.size}
        most = {name: getattr(self.limits, name) for name in used}
        return max((NearLimit(used[n] / most[n], n) for n in used if used[n] and most[n]), default=None)

    @property
    def size(self) -> int:
        """How many bytes all parts take."""
        return sum(self._sizes.values())

    def but(self, part: str) -> int:
        """How many bytes the others take."""
        return self.size - self._sizes.get(part, 0)


def _number(text: str, assignment: str) -> int | None:
    if text == "none":
        return None
    digits = text.rstrip("".join(_SCALES))
    scale = text.removeprefix(digits)
    if not (digits.isascii() and digits.isdecimal()) or (scale and scale not in _SCALES):
        raise EngineError(f"{assignment!r}: a limit is a whole number, with {', '.join(_SCALES)} or none")
    return int(digits) * _SCALES.get(scale, 1)
