"""RDF terms ⇄ texts, which are what is kept of terms: nothing in them is for the garbage collector.

The text of an IRI are its characters; that of a literal, or a blank node, is what N-Triples writes, so that
its first character says what it is. Equal terms have equal texts.
"""

from __future__ import annotations

import re
from typing import Final

from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

#: So many datatypes are remembered, each by its text.
_MOST: Final = 1_024
_datatypes: Final[dict[str, NamedNode]] = {}


def text_of(term: NamedNode | BlankNode | Literal) -> str:
    """The text of a term.

    >>> text_of(NamedNode("urn:a")), text_of(Literal("a", language="en"))
    ('urn:a', '"a"@en')
    """
    return term.value if type(term) is NamedNode else str(term)


def term_of(text: str) -> NamedNode | BlankNode | Literal:
    """The term of a text.

    >>> term_of("urn:a"), term_of('"a"')
    (<NamedNode value=urn:a>, <Literal value=a datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>)
    """
    first = text[0]
    if first == '"':
        return _literal(text)
    return BlankNode(text[2:]) if first == "_" else NamedNode(text)


def ntriples(text: str) -> str:
    """What N-Triples writes for the term of a text."""
    return text if text[0] in '"_' else f"<{text}>"


def _literal(text: str) -> Literal:
    quote = text.rindex('"')
    value, rest = text[1:quote], text[quote + 1 :]
    if "\\" in value:
        value = _ESCAPE.sub(_meant, value)
    if not rest:
        return Literal(value)
    if rest[0] == "^":
        return Literal(value, datatype=_datatypes.get(rest) or _datatype(rest))
    language, _, direction = rest[1:].partition("--")
    if direction:
        return Literal(value, language=language, direction=BaseDirection(direction))
    return Literal(value, language=language)


def _meant(escape: re.Match[str]) -> str:
    """The character of an escape."""
    short, long, letter = escape.groups()
    return _ESCAPED.get(letter, letter) if letter else chr(int(short or long, 16))


def _datatype(rest: str) -> NamedNode:
    if len(_datatypes) >= _MOST:
        _datatypes.clear()
    datatype = _datatypes[rest] = NamedNode(rest[3:-1])
    return datatype
