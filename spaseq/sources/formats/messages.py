"""RDF Messages (W3C RSP community group, draft): logs of atomic datasets with delimiters between.

A document begins with ``VERSION "1.2-messages"``, in TriG, Turtle, N-Quads or N-Triples; ``MESSAGE`` or
``@message .`` ends a message. Prefixes carry over, blank nodes do not. A message that does not parse is
one bad event; those after it are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from pyoxigraph import Quad

from spaseq.limits import Limits
from spaseq.sources._bytes import LONGEST
from spaseq.sources.assembly.sink import EventSink, add_dataset
from spaseq.sources.formats._parse import PieceError, Pieces
from spaseq.sources.formats.turtle import DIRECTIVES, OPAQUE

_VERSION: Final = rb"@?(?i:version)\s*+(?:\"[^\"\n]*-messages\"|'[^'\n]*-messages')[ \t]*\.?"
_ANNOUNCEMENT: Final = re.compile(DIRECTIVES + _VERSION)
_PROLOGUE: Final = re.compile(DIRECTIVES)
_DIRECTIVE_STARTS: Final = b"@#vVpPbB"
_VERSION_LINE: Final = re.compile(rb"^[ \t]*" + _VERSION, re.MULTILINE)

_DELIMITER: Final = rb"(?: (?i:message) (?=[\s\#]|\Z) | @message \s*+ (?: \. | \Z ) )"
_TO_DELIMITER: Final = re.compile(
    rb"""(?s:
      (?! """
    + _DELIMITER
    + rb""" ) [^<"'\#\\\s]++
    | \s++ | """
    + OPAQUE
    + rb"""
    )*+ (?P<stop> """
    + _DELIMITER
    + rb""" )?
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its number (from 1), its quads, its text; ``error`` if it could not be read."""

    number: int
    quads: list[Quad]
    text: bytes
    error: str = ""


def announces_messages(head: bytes) -> bool:
    """Whether a document that begins so is one of RDF Messages."""
    return _ANNOUNCEMENT.match(head) is not None


def peek(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """As much of the beginning as says whether it is of RDF Messages, and all blocks again."""
    head = b""
    for block in blocks:
        head += block
        prologue = _PROLOGUE.match(head)
        rest = head[prologue.end() :] if prologue else head
        if b"\n" in rest or (rest and rest[:1] not in _DIRECTIVE_STARTS) or len(head) > LONGEST:
            break
    return head, chain([head] if head else [], blocks)


def split_messages(form: str, blocks: Iterator[bytes], limits: Limits) -> Iterator[list[Message]]:
    """The messages that each block completes; empty ones too, but none after a trailing delimiter."""
    splitter = _Splitter(form, limits)
    for block in blocks:
        yield splitter.feed(block)
    yield splitter.end()


def read_messages(form: str, blocks: Iterator[bytes], sink: EventSink) -> Iterator[None]:
    """Messages to events (``add_dataset``); pause after each block."""
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
        self._text = b""
        self._announced: bool | None = None
        self._undelimited = True
        self._count = 0

    def feed(self, block: bytes) -> list[Message]:
        """The messages that end in this block."""
        self._text += block
        messages: list[Message] = []
        start = 0
        while True:
            found = _TO_DELIMITER.match(self._text, start)
            assert found is not None
            if not found["stop"] or found.end() == len(self._text):  # it may go on in the next block
                break
            messages.append(self._message(self._text[start : found.start("stop")], delimited=True))
            start = found.end()
        self._text = self._text[start:]
        if len(self._text) > LONGEST:
            self._text = b""
            self._count += 1
            messages.append(Message(self._count, [], b"", f"a message of more than {LONGEST} bytes"))
        return messages

    def end(self) -> list[Message]:
        """What is left: a last message without a delimiter, unless there is nothing in it."""
        messages: list[Message] = []
        found = _TO_DELIMITER.match(self._text)
        if found and found["stop"]:
            messages.append(self._message(self._text[: found.start("stop")], delimited=True))
            self._text = self._text[found.end() :]
        rest = self._message(self._text, delimited=False)
        return [*messages, rest] if rest.quads or rest.error else messages

    def _message(self, text: bytes, *, delimited: bool) -> Message:
        self._count += 1
        if self._announced is None:
            self._announced = announces_messages(text)
        if not self._announced and (delimited or not self._undelimited):
            self._undelimited = False
            return Message(
                self._count,
                [],
                text,
                'a delimiter, but the document does not begin with VERSION "1.2-messages"',
            )
        if self._is_lines:
            text = _VERSION_LINE.sub(b"", text)  # pyoxigraph knows it in the Turtle family only
        try:
            return Message(self._count, self._pieces.parse(text), text)
        except PieceError as bad:
            return Message(self._count, [], text, f"{bad.reason} (line {bad.line} of the message)")
