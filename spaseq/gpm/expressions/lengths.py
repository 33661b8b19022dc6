"""How long the text is that a function of SPARQL makes, told before it is made."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from spaseq.gpm.expressions.functions import FUNCTIONS
from spaseq.terms.values import STRING, Value

#: What a replacement takes from the match, as Rust's regex reads it: ``$1``, ``${name}``; ``$$`` is a sign.
_REFERENCE: Final = re.compile(r"\$(?:[0-9A-Za-z_]+|\{[^}]*\}|\$)")

#: So many different references are looked at one by one; of more it is said how long they may be at most.
_REFERENCES: Final = 10

#: The bytes that ENCODE_FOR_URI keeps as they are; it writes three for each other.
_KEPT: Final = bytes(code for code in range(128) if quote(chr(code), safe="") == chr(code))


def _length(value: Value) -> int:
    """The characters of a text; 0 for what no function of texts takes."""
    return len(value.data) if isinstance(value.data, str) else 0


def _sum(*values: Value) -> int:
    return sum(map(_length, values))


def _encoded(value: Value) -> int:
    if not isinstance(value.data, str):
        return 0
    data = value.data.encode("utf-8", "surrogatepass")
    return len(data) + 2 * len(data.translate(None, _KEPT))


def _cased(change: Callable[[str], str]) -> Callable[[Value], int]:
    def length(value: Value) -> int:
        text = value.data
        return _length(value) if not isinstance(text, str) or text.isascii() else len(change(text))

    return length


def replaced_at_most(text: Value, pattern: Value, replacement: Value, *flags: Value) -> int:
    """No fewer characters than REPLACE makes: a match at each place, all of it where the text has ``$``."""
    del pattern, flags
    size, by = _length(text), _length(replacement)
    return size + (size + 1) * by + size * str(replacement.data).count("$")


def replaced(text: Value, pattern: Value, replacement: Value, *flags: Value) -> int:
    """How many characters REPLACE makes: asked by replacements that are short."""
    if not isinstance(replacement.data, str):
        return 0

    def length(by: str) -> int:
        found: Value = FUNCTIONS["REPLACE"](text, pattern, Value(STRING, by), *flags)
        return _length(found)

    left = length("")
    matches = length("x") - left
    references = Counter(_REFERENCE.findall(replacement.data))
    written = len(replacement.data) - sum(len(name) * count for name, count in references.items())
    if len(references) > _REFERENCES:
        taken = (_length(text) - left) * references.total()
    else:
        taken = sum((length(name) - left) * count for name, count in references.items())
    return left + matches * written + taken


#: Functions whose text may be longer than each of those it is made of.
LENGTHS: Final[dict[str, Callable[..., int]]] = {
    "CONCAT": _sum,
    "ENCODE_FOR_URI": _encoded,
    "LCASE": _cased(str.lower),
    "STRDT": _sum,
    "STRLANG": _sum,
    "UCASE": _cased(str.upper),
}
