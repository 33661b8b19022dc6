"""RDF terms ⇄ texts. Terms are kept as texts, which the garbage collector does not traverse.

The text of an IRI is its characters. The text of a literal or a blank node is its N-Triples form, so that the
first character gives the kind. Equal terms have equal texts.
"""

from __future__ import annotations

import re
from typing import Final

from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

#: The most datatypes that are remembered, each by its text.
_MOST: Final = 1_024
_datatypes: Final[dict[str, NamedNode]] = {}


def text_of(term: NamedNode | BlankNode | Literal) -> str:
    """Return the text of a term.

    >>> text_of(NamedNode("urn:a")), text_of(Literal("a", language="en"))
    ('urn:a', '"a"@en')
    """
    return term.value if type(term) is NamedNode else str(term)


def term_of(text: str) -> NamedNode | BlankNode | Literal:
    """Return the term of a text.

    >>> term_of("urn:a"), term_of('"a"')
    (<NamedNode value=urn:a>, <Literal value=a datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>)
    """
    first = text[0]
    if first == '"':
        return _literal(text)
    return BlankNode(text[2:]) if first == "_" else NamedNode(text)


def ntriples(text: str) -> str:
    """Return the N-Triples form of the term of a text."""
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
    """Return the character that an escape stands for."""
    short, long, letter = escape.groups()
    return _ESCAPED.get(letter, letter) if letter else chr(int(short or long, 16))


def _datatype(rest: str) -> NamedNode:
    if len(_datatypes) >= _MOST:
        _datatypes.clear()
    datatype = _datatypes[rest] = NamedNode(rest[3:-1])
    return datatype
