"""How much one query, and one term, may take before it is stopped rather than the process."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from spaseq.errors import EngineError, LimitError

#: Endings of a number on the command line.
_SCALES: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, each with a default that a sound query does not meet; ``None`` is no bound.

    ``partial_matches``: what a query keeps that is not a match yet. ``query_bytes``: the memory it keeps
    them in. ``pending_matches``: matches that nobody has asked for yet. ``held_events``: events that wait for
    a query's watermark. A query over one of them ends with a ``LimitError``; the others go on.

    ``callback_events``: events that callbacks push during one call. A ``push`` over it raises a
    ``LimitError`` in the callback.

    ``term_bytes``: the UTF-8 length of one RDF term; ``depth``: how deep triple terms, JSON and JSON-LD may
    be nested. An event over one of these is malformed.

    Raises ``EngineError`` for a bound that is no number above 0.
    """

    partial_matches: int | None = 1_000_000
    query_bytes: int | None = 2**30
    pending_matches: int | None = 1_000_000
    held_events: int | None = 1_000_000
    callback_events: int | None = 100_000
    term_bytes: int | None = 2**20
    depth: int | None = 100

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

    def check_text(self, length: int) -> None:
        """Raises ``LimitError`` if a computed text is to have so many characters, and that is too many."""
        if self.term_bytes is not None and length > self.term_bytes:
            raise self.error("term_bytes", f"computing a text of {length} characters")

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


class Budget:
    """What one query keeps, against its ``limits``; each part of its memory says how large it is."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._sizes: dict[str, int] = {}

    def partial(self, count: int) -> None:
        """So many partial matches are kept. Raises ``LimitError``."""
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
