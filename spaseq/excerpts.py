"""What messages show of what they were given: an excerpt, and of a URL no credentials."""

from __future__ import annotations

import re
from typing import Final

#: The most characters of a message; and of a longer one, how many are kept of its beginning and of its end,
#: where it says what to do.
LONGEST: Final = 1_000
_BEGINNING: Final = 200
_END: Final = 600

#: The most characters of a text that are shown on each side of a place in it.
_AROUND: Final = 100

#: Where a URL begins in a text, also one whose slashes are wrong.
_URL: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]*:/+|(?:kafka|mqtts?|wss?|https?):)", re.IGNORECASE
)
_NO_PORT: Final = re.compile(r":(?!\d{1,5}(?:[,/]|\Z))[^,/]*")
_OPTION: Final = re.compile(r"[A-Za-z][\w.-]{0,63}")


def bounded(message: str) -> str:
    """A message without most of what makes it longer than ``LONGEST``.

    >>> bounded("'" + 5_000 * "x" + "' is not a number")[-30:]
    "xxxxxxxxxxxxx' is not a number"
    """
    return message if len(message) <= LONGEST else f"{message[:_BEGINNING]} … {message[-_END:]}"


def excerpt(text: str, place: int = 0) -> str:
    """What is around a place in a text: all of it, unless it is long.

    >>> excerpt("abc"), len(excerpt(1_000 * "x")), len(excerpt(1_000 * "x", 500))
    ('abc', 201, 202)
    """
    begin = max(0, min(place, len(text)) - _AROUND)
    end = begin + 2 * _AROUND
    left, right = "…" if begin else "", "…" if end < len(text) else ""
    return f"{left}{text[begin:end]}{right}"


def hide(text: str) -> str:
    """Text that cites a URL, of which it shows the scheme, the host, the path, and the names of options.

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
    if not authority.startswith("["):  # an address of IPv6 has colons of its own
        authority = _NO_PORT.sub(":…", authority)
    options = "&".join(map(_named, query.split("&")))
    return f"{text[: found.end()]}{'…@' if at else ''}{authority}{slash}{path}{mark}{options}"


def _named(option: str) -> str:
    name, equals, _ = option.partition("=")
    shown = name if _OPTION.fullmatch(name) and (equals or name == "follow") else "…" if name else ""
    return f"{shown}=…" if equals else shown
