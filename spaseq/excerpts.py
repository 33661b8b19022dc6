"""Shorten what messages quote: long text to an excerpt, URLs without credentials."""

from __future__ import annotations

import re
from typing import Final

#: The most characters shown on each side of a place in a text.
AROUND: Final = 100

#: The most characters of a message. Of a longer message this many are kept of the end, which says what to do.
LONGEST: Final = 1_000
_END: Final = 600

#: A word longer than an excerpt.
_WORD: Final = re.compile(rf"\S{{{2 * AROUND + 1},}}")

#: The beginning of a URL in a text, including URLs with wrong slashes.
_URL: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]*:/+|(?:kafka|mqtts?|wss?|(?:ldes\+)?https?):)",
    re.IGNORECASE,
)
_NO_PORT: Final = re.compile(r":(?!\d{1,5}(?:[,/]|\Z))[^,/]*")
_OPTION: Final = re.compile(r"[A-Za-z][\w.-]{0,63}")


def bounded(message: str) -> str:
    """Return a message in which no quoted word is longer than an excerpt.

    >>> bounded(f"'{1_000 * 'x'}' is not a number") == f"'{99 * 'x'}…{99 * 'x'}' is not a number"
    True
    """
    if len(message) <= 2 * AROUND:
        return message
    message = _WORD.sub(lambda found: f"{found[0][:AROUND]}…{found[0][-AROUND:]}", message)
    return message if len(message) <= LONGEST else f"{message[: 2 * AROUND]} … {message[-_END:]}"


def excerpt(text: str, place: int = 0) -> tuple[str, str]:
    """Return the text around a place, and its part before the place. A short text is returned whole.

    >>> excerpt("abc def", 4), [len(part) for part in excerpt(1_000 * "x", 500)]
    (('abc def', 'abc '), [202, 101])
    """
    begin, end = max(0, place - AROUND), place + AROUND
    left, right = "…" if begin else "", "…" if end < len(text) else ""
    before = left + text[begin:place]
    return f"{before}{text[place:end]}{right}", before


def hide(text: str) -> str:
    """Hide credentials: of a URL in the text keep the scheme, the host, the path, and the names of options.

    >>> hide("-s S=kafka://me:secret@broker/t?sasl.password=x&group=g")
    '-s S=kafka://…@broker/t?sasl.password=…&group=…'
    >>> hide("ticks.nt?triples=2")
    'ticks.nt?triples=2'
    """
    found = _URL.search(text)
    if found is None:
        return text
    place, mark, query = text[found.end() :].partition("?")
    _, at, place = place.rpartition("@")
    authority, slash, path = place.partition("/")
    if not authority.startswith("["):  # an IPv6 address contains colons
        authority = _NO_PORT.sub(":…", authority)
    options = "&".join(map(_named, query.split("&")))
    return f"{text[: found.end()]}{'…@' if at else ''}{authority}{slash}{path}{mark}{options}"


def _named(option: str) -> str:
    name, equals, _ = option.partition("=")
    shown = name if _OPTION.fullmatch(name) and (equals or name == "follow") else "…" if name else ""
    return f"{shown}=…" if equals else shown
