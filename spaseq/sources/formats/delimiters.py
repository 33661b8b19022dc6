"""Finds delimiters in streamed text of the Turtle family; each byte is scanned once.

The scanner remembers which kind of token is open at the end of a piece, and does not rescan it. The work is
linear in the length of the text, however it is cut into pieces.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: A language tag, which may directly follow a string.
_TAG: Final = rb"(?: @[A-Za-z0-9-]*+ )?+"
_IRI: Final = rb"""[^\x00-\x20<>"{}|^`]"""
_BODY2: Final = rb"""[^"\\\r\n]*+ (?: \\. [^"\\\r\n]*+ )*+"""
_BODY1: Final = rb"""[^'\\\r\n]*+ (?: \\. [^'\\\r\n]*+ )*+"""

#: Tokens in which a delimiter has no meaning, each with one byte after it, without which its end is not
#: certain. A quote or a ``<`` that begins no such token stands for itself.
_WHOLE: Final = (
    rb"< " + _IRI + rb"*+ > | < (?= " + _IRI + rb"*+ . )"
    rb"""
    | \"{3} (?: [^"\\]++ | \\. | "(?!"") )*+ \"{3} """ + _TAG + rb""" (?=.)
    | '{3}  (?: [^'\\]++ | \\. | '(?!'') )*+ '{3} """ + _TAG + rb""" (?=.)
    | "(?!"") (?: """ + _BODY2 + rb""" " """ + _TAG + rb""" (?=.) | (?= """ + _BODY2 + rb""" [\r\n] ) )
    | '(?!'') (?: """ + _BODY1 + rb""" ' """ + _TAG + rb""" (?=.) | (?= """ + _BODY1 + rb""" [\r\n] ) )
    | \#[^\r\n]*+ (?=.)
    | \\.
"""
)  # fmt: skip

#: The beginnings of these tokens, for a token that is still open at the end of the text.
_BEGUN: Final = rb"""
    (?P<long2>\"{3}) | (?P<long1>'{3}) | (?P<short2>"(?!"?\Z)) | (?P<short1>'(?!'?\Z)) | (?P<iri><)
  | (?P<comment>\#)
"""

#: How each token continues: to its end (``done``), to where it proves to be another token (``broken``), or as
#: far as is certain. The end of a message may contain white space.
_GOES_ON: Final = {
    kind: re.compile(rb"(?s:" + pattern + rb")", re.VERBOSE)
    for kind, pattern in {
        "long2": rb"""(?: [^"\\]++ | \\. | "(?!""|"?\Z) )*+ (?P<done>\"{3})?""",
        "long1": rb"""(?: [^'\\]++ | \\. | '(?!''|'?\Z) )*+ (?P<done>'{3})?""",
        "short2": _BODY2 + rb"""(?: (?P<done>") | (?P<broken>(?=[\r\n])) )?""",
        "short1": _BODY1 + rb"""(?: (?P<done>') | (?P<broken>(?=[\r\n])) )?""",
        "closed": rb"(?: (?P<tag>@) | (?P<done>(?=.)) )?",
        "tag": rb"[A-Za-z0-9-]*+ (?P<done>(?=.))?",
        "iri": _IRI + rb"*+ (?: (?P<done>>) | (?P<broken>(?=.)) )?",
        "comment": rb"[^\r\n]*+ (?P<done>(?=.))?",
        "word": rb"""[^<"'\#\\\s]*+ (?P<done>(?=.))?""",
        "delimiter": rb"\s*+ (?: (?P<stop>\.) | (?P<broken>(?=.)) )?",
    }.items()
}
_STRINGS: Final = ("long2", "long1", "short2", "short1")


class Delimiters(NamedTuple):
    """A kind of delimiter: a pattern up to the next delimiter, and one for an open token at the end of the
    text.
    """

    to_next: re.Pattern[bytes]
    begun: re.Pattern[bytes]


#: The full stops and braces that end statements.
OF_STATEMENTS: Final = Delimiters(
    re.compile(
        rb"(?s: [^<\"'\#\\.{}]++ | " + _WHOLE
        + rb"""
        | \.(?=[^\s\#])            # inside a number or a name
        | \{\| | (?<=\|)\}         # an annotation of RDF 1.2
        )*+ (?s: (?P<stop> \.(?=.) | \{(?=.) | \} ) )?
        """,
        re.VERBOSE,
    ),
    re.compile(_BEGUN, re.VERBOSE),
)  # fmt: skip

#: ``MESSAGE`` and ``@message .``, between RDF Messages.
OF_MESSAGES: Final = Delimiters(
    re.compile(
        rb"""(?s:
          (?! (?i:message) (?=[\s\#]|\Z) | @message \s*+ (?: \. | \Z ) ) [^<"'\#\\\s]++ (?=.)
        | \s++ | """ + _WHOLE
        + rb""")*+ (?P<stop> (?i:message) (?=[\s\#]) | @message \s*+ \. )?""",
        re.VERBOSE,
    ),
    # A short word may become a delimiter.
    re.compile(
        _BEGUN + rb"""| (?P<delimiter>@message(?=\s)) | (?! [^<"'\#\\\s]{1,8} \Z ) (?P<word>[^<"'\#\\\s])""",
        re.VERBOSE,
    ),
)  # fmt: skip

#: A delimiter of messages at the end of the text.
LAST_DELIMITER: Final = re.compile(rb"(?: (?i:message) | @message \s*+ )\Z", re.VERBOSE)


class Delimiter(NamedTuple):
    """A delimiter, and its place in the text that is held."""

    delimiter: bytes
    start: int
    end: int


class Scanner:
    """Finds delimiters in a text that arrives in pieces; holds the text until it is taken.

    >>> scanner = Scanner(OF_STATEMENTS)
    >>> scanner.feed(b"<a:> <b:> '}")
    []
    >>> scanner.feed(b"' . <c:>")
    [Delimiter(delimiter=b'.', start=14, end=15)]
    >>> scanner.take(15), scanner.take()
    (b"<a:> <b:> '}' .", b' <c:>')
    """

    def __init__(self, delimiters: Delimiters) -> None:
        self._delimiters = delimiters
        self._text = bytearray()
        self._at = 0  # the text is scanned up to here
        # The kind of the open token, where it begins, and where to continue if it proves to be another.
        self._kind = ""
        self._begin = self._instead = 0

    def __len__(self) -> int:
        return len(self._text)

    def feed(self, block: bytes) -> list[Delimiter]:
        """Append bytes; return the delimiters that are certain now."""
        self._text += block
        stops: list[Delimiter] = []
        while self._go_on(stops) if self._kind else self._next(stops):
            pass
        return stops

    @property
    def uncertain(self) -> int:
        """Return where the text begins that may or may not be a delimiter."""
        return self._begin if self._kind else self._at

    def take(self, end: int | None = None) -> bytes:
        """Remove and return the text up to ``end``, or all of it."""
        end = len(self._text) if end is None else end
        with memoryview(self._text) as view:
            taken = bytes(view[:end])
        del self._text[:end]
        self._at, self._begin, self._instead = (
            max(0, place - end) for place in (self._at, self._begin, self._instead)
        )
        return taken

    def _next(self, stops: list[Delimiter]) -> bool:
        """Scan up to the next delimiter, or an open token; return whether there is one."""
        found = self._delimiters.to_next.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        if found["stop"]:
            stops.append(Delimiter(found["stop"], found.start("stop"), found.end()))
            return True
        begun = self._delimiters.begun.match(self._text, self._at)
        if begun is None or begun.lastgroup is None:
            return False
        self._kind, self._begin, self._instead = begun.lastgroup, begun.start(), begun.end()
        self._at = self._instead
        return True

    def _go_on(self, stops: list[Delimiter]) -> bool:
        """Scan the open token; return whether it ends."""
        found = _GOES_ON[self._kind].match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        kind, self._kind = self._kind, ""
        match found.lastgroup:
            case None:
                self._kind = kind
                return False
            case "done" if kind in _STRINGS:
                self._kind = "closed"
            case "tag":
                self._kind = "tag"
            case "broken":
                self._at = self._instead
            case "stop":
                stops.append(Delimiter(bytes(self._text[self._begin : self._at]), self._begin, self._at))
        return True
