"""Server-sent events (WHATWG HTML, 9.2): bytes → messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spaseq.sources._bytes import LONGEST

_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?!\Z)")


class TooLongError(Exception):
    """An event of more than ``LONGEST`` bytes."""


@dataclass(frozen=True, slots=True)
class ServerSent:
    """An event: its data, and the last id given up to it."""

    data: bytes
    id: str


class Parser:
    """Bytes in order of arrival → events. ``id`` is the last one given.

    The server's ``retry`` is ignored: ``Retries`` decides waits.

    >>> parser = Parser()
    >>> list(parser.feed(b"id: 7\\ndata: one\\ndata: two\\n\\n: a comment\\ndata: half"))
    [ServerSent(data=b'one\\ntwo', id='7')]
    >>> list(parser.feed(b" an event\\n\\n"))
    [ServerSent(data=b'half an event', id='7')]
    """

    def __init__(self, last: str = "") -> None:
        self.id = last
        self._parts: list[bytes] = []
        self._held = 0
        self._ends_with_cr = False
        self._data: list[bytes] = []
        self._size = 0
        self._is_first = True

    def feed(self, block: bytes) -> Iterator[ServerSent]:
        """Yield the events that these bytes complete. Raises TooLongError, after which nothing may be fed."""
        # A long line arrives in many blocks, which are joined once.
        self._parts.append(block)
        self._held += len(block)
        if b"\n" in block or b"\r" in block or self._ends_with_cr:
            text = b"".join(self._parts)
            at = 0
            for end in _LINE_END.finditer(text):
                line, at = text[at : end.start()], end.end()
                if self._is_first:
                    line, self._is_first = line.removeprefix(b"\xef\xbb\xbf"), False
                if line:
                    self._field(line)
                elif self._data:
                    data, self._data, self._size = b"\n".join(self._data), [], 0
                    yield ServerSent(data, self.id)
            self._parts, self._held = [text[at:]], len(text) - at
            self._ends_with_cr = text.endswith(b"\r")
        if self._size + self._held > LONGEST:
            raise TooLongError(f"an event of more than {LONGEST} bytes")

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
        elif name == b"id" and b"\0" not in value:
            self.id = value.decode(errors="replace")
