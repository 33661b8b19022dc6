"""RDF Messages (W3C RSP community group, draft): logs of atomic datasets with delimiters between.

A document begins with ``VERSION "1.2-messages"``, in TriG, Turtle, N-Quads or N-Triples; ``MESSAGE`` or
``@message .`` ends a message. Prefixes carry over, blank nodes do not. A message that does not parse is one
bad event; later messages are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, Final

from pyoxigraph import Quad, RdfFormat, serialize

from spaseq.limits import Limits
from spaseq.sources._bytes import LONGEST
from spaseq.sources.assembly.sink import EventSink, add_dataset
from spaseq.sources.formats._parse import PieceError, Pieces
from spaseq.sources.formats.delimiters import LAST_DELIMITER, OF_MESSAGES, Scanner
from spaseq.sources.formats.turtle import DIRECTIVES

_VERSION: Final = rb"@?(?i:version)\s*+(?:\"[^\"\n]*-messages\"|'[^'\n]*-messages')[ \t]*\.?"
_ANNOUNCEMENT: Final = re.compile(DIRECTIVES + _VERSION)
_VERSION_LINE: Final = re.compile(rb"^[ \t]*" + _VERSION, re.MULTILINE)

#: A complete directive or comment, or white space.
_OVER: Final = re.compile(
    rb"""\s++ | \#[^\n]*+\n
    | (?: (?i:@?prefix)\s[^<]* | (?i:@?base)\s* ) <[^>]*> [ \t]*+ (?: \. | (?=[^ \t.]) )""",
    re.VERBOSE,
)
#: An incomplete directive, comment, or announcement.
_UNFINISHED: Final = re.compile(
    rb"[@\#vVpPbB][^\n]*\Z | (?: (?i:@?prefix)\s[^<]* | (?i:@?base)\s* ) (?: <[^>]* (?: > [ \t]* )? )?\Z",
    re.VERBOSE,
)
#: The most bytes of an incomplete directive, which is scanned again when more arrives.
_LONGEST_DIRECTIVE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class QuadMessage:
    """One message: its number (from 1), its quads, its text; ``error`` if it could not be read."""

    number: int
    quads: list[Quad]
    text: bytes
    error: str = ""


def announces_messages(head: bytes) -> bool:
    """Return whether a document with this beginning is RDF Messages."""
    return _ANNOUNCEMENT.match(head) is not None


def peek(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return enough of the beginning to recognize RDF Messages, and all blocks again."""
    head = bytearray()
    at = 0
    for block in blocks:
        head += block
        while found := _OVER.match(head, at):
            at = found.end()
        unfinished = len(head) - at
        if unfinished > _LONGEST_DIRECTIVE or (unfinished and not _UNFINISHED.match(head, at)):
            break
    return bytes(head), chain([bytes(head)] if head else [], blocks)


def split_messages(form: str, blocks: Iterator[bytes], limits: Limits) -> Iterator[list[QuadMessage]]:
    """Yield the messages that each block completes, empty ones too, but none after a trailing delimiter."""
    splitter = _Splitter(form, limits)
    for block in blocks:
        yield splitter.feed(block)
    yield splitter.end()


def read_messages(form: str, blocks: Iterator[bytes], sink: EventSink) -> Iterator[None]:
    """Read messages as events (``add_dataset``); pause after each block."""
    for messages in split_messages(form, blocks, sink.limits):
        for message in messages:
            position = f"message {message.number}"
            if message.error:
                sink.bad(position, message.error, message.text.decode(errors="replace").strip())
            else:
                add_dataset(sink, message.quads, position)
        yield


class _Splitter:
    def __init__(self, form: str, limits: Limits) -> None:
        self._pieces = Pieces(form, limits)
        self._is_lines = form in ("nq", "nt")
        self._scanner = Scanner(OF_MESSAGES)
        self._skips = False  # inside a message that is too long
        self._announced: bool | None = None
        self._undelimited = True
        self._count = 0

    def feed(self, block: bytes) -> list[QuadMessage]:
        """Return the messages that end in this block."""
        messages: list[QuadMessage] = []
        stops = self._scanner.feed(block)
        text = self._scanner.take(stops[-1].end) if stops else b""
        start = 0
        for stop in stops:
            if not self._skips:
                messages.append(self._message(text[start : stop.start], delimited=True))
            self._skips = False
            start = stop.end
        if len(self._scanner) > LONGEST:
            if not self._skips:
                self._count += 1
                messages.append(QuadMessage(self._count, [], b"", f"a message of more than {LONGEST} bytes"))
            self._skips = True
            self._scanner.take()
        return messages

    def end(self) -> list[QuadMessage]:
        """Return the rest: a last message without a delimiter, unless it is empty."""
        if self._skips:
            return []
        begin = self._scanner.uncertain
        text = self._scanner.take()
        if LAST_DELIMITER.match(text, begin):
            return [self._message(text[:begin], delimited=True)]
        rest = self._message(text, delimited=False)
        return [rest] if rest.quads or rest.error else []

    def _message(self, text: bytes, *, delimited: bool) -> QuadMessage:
        self._count += 1
        if self._announced is None:
            self._announced = announces_messages(text)
        if not self._announced and (delimited or not self._undelimited):
            self._undelimited = False
            return QuadMessage(
                self._count,
                [],
                text,
                'a delimiter, but the document does not begin with VERSION "1.2-messages"',
            )
        if self._is_lines:
            text = _VERSION_LINE.sub(b"", text)  # pyoxigraph accepts VERSION in the Turtle family only
        try:
            return QuadMessage(self._count, self._pieces.parse(text), text)
        except PieceError as bad:
            return QuadMessage(self._count, [], text, f"{bad.reason} (line {bad.line} of the message)")


_SYNTAXES: Final = {"trig": RdfFormat.TRIG, "nq": RdfFormat.N_QUADS}


def write_messages(messages: Iterable[Iterable[Quad]], output: IO[bytes], syntax: str = "nq") -> None:
    """Write datasets as messages, each with a delimiter after it, in ``nq`` (default) or ``trig``.

    Each message is flushed, so that the reader of a pipe gets it at once.

    >>> from io import BytesIO
    >>> from pyoxigraph import NamedNode
    >>> out = BytesIO()
    >>> a = NamedNode("http://example.org/a")
    >>> write_messages([[Quad(a, a, a, a)]], out)
    >>> print(out.getvalue().decode(), end="")
    VERSION "1.2-messages"
    <http://example.org/a> <http://example.org/a> <http://example.org/a> <http://example.org/a> .
    MESSAGE
    """
    output.write(b'VERSION "1.2-messages"\n')
    for message in messages:
        serialize(message, output, format=_SYNTAXES[syntax])
        output.write(b"MESSAGE\n")
        output.flush()
