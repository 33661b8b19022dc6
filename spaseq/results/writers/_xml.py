"""SPARQL Query Results XML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

from rdflib.term import BNode, Literal, Node, URIRef

from spaseq.errors import FormatError
from spaseq.language.syntax import Query
from spaseq.results.writers._base import DISTURBING, RowFormat, columns

if TYPE_CHECKING:
    from spaseq.results.batch import Match

_HEADER: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
)

#: Characters that XML 1.0 cannot represent, not even as a reference.
_IMPOSSIBLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class XmlRows(RowFormat):
    """https://www.w3.org/TR/rdf-sparql-XMLres/, one result per line."""

    def __init__(self, query: Query) -> None:
        self._names = columns(query)

    def answer(self, answer: bool) -> str:
        return f"{_HEADER}<head/>\n<boolean>{str(answer).lower()}</boolean>\n</sparql>\n"

    def head(self) -> str:
        names = "".join(f"<variable name={quoteattr(name)}/>" for name in self._names)
        return f"{_HEADER}<head>{names}</head>\n<results>\n"

    def rows(self, match: Match) -> str:
        lines = []
        for row in match.bindings:
            cells = (f"<binding name={quoteattr(n)}>{_term(term)}</binding>" for n, term in row.items())
            lines.append(f"<result>{''.join(cells)}</result>\n")
        return "".join(lines)

    def harmless(self, text: str) -> str:
        return DISTURBING.sub(lambda c: f"&#x{ord(c[0]):X};", text)

    def tail(self) -> str:
        return "</results>\n</sparql>\n"


def _term(term: Node) -> str:
    text = _escaped(str(term))
    match term:
        case URIRef():
            return f"<uri>{text}</uri>"
        case BNode():
            return f"<bnode>{text}</bnode>"
        case Literal() if term.language:
            return f"<literal xml:lang={quoteattr(term.language)}>{text}</literal>"
        case Literal() if term.datatype is not None:
            return f"<literal datatype={quoteattr(str(term.datatype))}>{text}</literal>"
    return f"<literal>{text}</literal>"


def _escaped(text: str) -> str:
    impossible = _IMPOSSIBLE.search(text)
    if impossible:
        raise FormatError(f"xml cannot represent U+{ord(impossible[0]):04X}, in {text!r}: use json")
    return escape(text, {"\r": "&#13;"})  # a parser would read a bare one as a line feed
