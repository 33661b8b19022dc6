"""Check how deeply a text is nested, before a recursive parser reads it.

pyoxigraph frees, compares and writes triple terms by recursion, and parses the values of JSON-LD by
recursion. Text that is nested deeply enough overflows the stack of the process, so every text is checked here
before it is parsed. Other nesting in Turtle (collections, blank nodes, annotations) needs no stack in the
parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import IO, Final

import numpy as np
from pyoxigraph import RdfFormat

from spaseq.limits import Limits

_OPENS: Final = b"<<"
_ENTITY: Final = b"<!ENTITY"

#: A harmless entity: each reference to it is replaced by a short plain text.
_PLAIN_ENTITY: Final = re.compile(
    rb"""<!ENTITY \s+ [^\s%&"'<>]+ \s+ (?: "[^"&%<]{0,256}" | '[^'&%<]{0,256}' ) \s* >""",
    re.VERBOSE,
)

#: Tokens that open or close a triple term or a reification, and tokens that may contain such bytes as text.
_TOKEN: Final = re.compile(
    rb"""(?s:
      (?P<open> << ) | (?P<close> >> )
    | <[^\x00-\x20<>"{}|^`]*+>
    | \"{3} (?: [^"\\] | \\. | "(?!"") )*+ \"{3} | '{3} (?: [^'\\] | \\. | '(?!'') )*+ '{3}
    | " (?: [^"\\\r\n] | \\. )*+ " | ' (?: [^'\\\r\n] | \\. )*+ '
    | \#[^\r\n]*+
    | \\.
    )""",
    re.VERBOSE,
)

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class NestingError(ValueError):
    """A text is nested too deeply, or could expand too much; with the line where that begins."""

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


def check_triple_terms(text: bytes, limits: Limits) -> None:
    """Raise NestingError for N-Quads, Turtle or TriG with triple terms nested beyond ``limits.depth``.

    >>> check_triple_terms(b"<a:> <b:> <<( <a:> <b:> <<( <a:> <b:> <c:> )>> )>> .", Limits(depth=2))
    >>> check_triple_terms(b"<a:> <b:> <<( <a:> <b:> <<( <a:> <b:> <c:> )>> )>> .", Limits(depth=1))
    Traceback (most recent call last):
    spaseq.nesting.NestingError: a triple term in a triple term … is over the limit depth=1: \
Limits(depth=…), or --limit depth=…, moves it
    """
    most = limits.depth
    if most is None or text.count(_OPENS) <= most:
        return
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["open"]:
            depth += 1
            if depth > most:
                reason = limits.beyond("depth", "a triple term in a triple term …")
                raise NestingError(reason, 1 + text.count(b"\n", 0, token.start()))
        elif token["close"]:
            depth = max(0, depth - 1)


def check_json(text: bytes, limits: Limits) -> None:
    """Raise NestingError for JSON with arrays and objects nested beyond ``limits.depth``.

    >>> check_json(b'{"a": [1, "[[["]}', Limits(depth=2))
    >>> check_json(b'{"a": [{}]}', Limits(depth=2))
    Traceback (most recent call last):
    spaseq.nesting.NestingError: JSON of depth 3 is over the limit depth=2: \
Limits(depth=…), or --limit depth=…, moves it
    """
    most = limits.depth
    if most is None or text.count(b"[") + text.count(b"{") <= most:
        return
    data = np.frombuffer(_STRING.sub(b'""', text), dtype=np.uint8)
    depth = int(np.cumsum(_STEPS[data], dtype=np.int64).max(initial=0))
    if depth > most:
        raise NestingError(limits.beyond("depth", f"JSON of depth {depth}"))


_STEPS: Final = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


def check_entities(text: bytes) -> None:
    """Raise NestingError for RDF/XML with an entity that could expand: only short plain text is allowed.

    >>> check_entities(b'<!DOCTYPE x [<!ENTITY e "http://example.org/">]>')
    >>> check_entities(b'<!DOCTYPE x [<!ENTITY e "&f;&f;">]>')
    Traceback (most recent call last):
    spaseq.nesting.NestingError: its DTD has an entity that is not short plain text: write it out in the text
    """
    if text.count(_ENTITY) != len(_PLAIN_ENTITY.findall(text)):
        raise NestingError("its DTD has an entity that is not short plain text: write it out in the text")


def check_document(text: bytes, form: RdfFormat, limits: Limits) -> None:
    """Raise NestingError for a document of this format that its parser must not read."""
    if form == RdfFormat.RDF_XML:
        check_entities(text)
    elif form in (RdfFormat.JSON_LD, RdfFormat.STREAMING_JSON_LD):
        check_json(text, limits)
    else:
        check_triple_terms(text, limits)


def too_long(error: MemoryError) -> str:
    """Return why a parser raised ``MemoryError`` for a text: the text, or a part of it, is too long."""
    _, told, size = str(error).partition(_BUFFER)
    if told:
        return f"a term of more than {size} bytes, which no parser here reads"
    return (
        "no memory was left to read it: make it smaller, or bound the terms of an event by "
        "Limits(term_bytes=…), or --limit term-bytes=…"
    )


class Guarded:
    """An open file for a parser: ``read`` raises NestingError before the parser gets a dangerous text.

    ``again`` returns the whole text once more. It is called only after so many signs of nesting that the text
    must be checked from its beginning.
    """

    def __init__(self, stream: IO[bytes], again: Callable[[], bytes], form: RdfFormat) -> None:
        self._stream = stream
        self._again = again
        self._form = form
        self._signs, self._few = _SIGNS.get(form, (_OPENS,)), 0 if form == RdfFormat.RDF_XML else _FEW
        self._seen = 0
        self._end = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the file."""
        block = self._stream.read(size)
        if self._seen <= self._few:
            text = self._end + block
            self._seen += sum(map(text.count, self._signs))
            self._end = text[1 - len(self._signs[0]) :] if len(self._signs[0]) > 1 else b""
            if self._seen > self._few:
                check_document(self._again(), self._form, _DEFAULT)
        return block


def whole(start: Callable[[], IO[bytes]]) -> bytes:
    """Return all bytes of the file that ``start`` opens."""
    with start() as stream:
        return stream.read()


#: The message of pyoxigraph for a token that is longer than its buffer.
_BUFFER: Final = "Reached the buffer maximal size of "

_DEFAULT: Final = Limits()
_FEW: Final = _DEFAULT.depth or 0
_SIGNS: Final = {
    RdfFormat.RDF_XML: (_ENTITY,),
    RdfFormat.JSON_LD: (b"[", b"{"),
    RdfFormat.STREAMING_JSON_LD: (b"[", b"{"),
}
