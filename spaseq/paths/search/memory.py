"""What a query takes of the memory that it may (``Limits.query_bytes``), counted before it is taken."""

from __future__ import annotations

from typing import Final

from spaseq.errors import LimitError
from spaseq.limits import Limits
from spaseq.paths.language.expression import Expression

_UNLIMITED: Final = 1 << 62

#: The memory left is for this many threads of a query.
_THREADS: Final = 8

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class Memory:
    """The memory of one query, in bytes; ``left`` may still be taken."""

    __slots__ = ("_limits", "_query", "left", "taken")

    def __init__(self, limits: Limits, query: str | Expression) -> None:
        self._limits = limits
        self._query = query
        self.taken = 0
        self.left = _UNLIMITED if limits.query_bytes is None else limits.query_bytes

    def take(self, size: int, what: str) -> None:
        """Count so many bytes more, for what is said; LimitError if they are more than are left."""
        if size > self.left:
            raise self.error(size, what)
        self.taken += size
        self.left -= size

    def give(self, size: int) -> None:
        """So many of them are free again."""
        self.taken -= size
        self.left += size

    def share(self) -> Memory:
        """Return the memory of one of several threads of the query: a part of what is left."""
        shared = Memory(self._limits, self._query)
        shared.left = self.left // _THREADS
        return shared

    def error(self, size: int, what: str) -> LimitError:
        """The error if so many bytes are too many."""
        asked = (
            f"{in_bytes(self.taken + size)} of memory for {self._query}, {in_bytes(size)} of them for {what},"
        )
        return self._limits.error("query_bytes", asked)


def in_bytes(size: int) -> str:
    """A number of bytes for people.

    >>> in_bytes(900), in_bytes(3 << 29)
    ('900 bytes', '1.5 GiB')
    """
    scaled, unit = float(size), 0
    while scaled >= 1024 and unit + 1 < len(_UNITS):
        scaled, unit = scaled / 1024, unit + 1
    return f"{scaled:.1f} {_UNITS[unit]}" if unit else f"{size} bytes"
