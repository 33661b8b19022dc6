"""Events that are given as plain text, as most are: IRIs, simple literals and numbers, with no prefix.

A parser takes longer to begin than to read an event of few triples. What is not read here is for the parser,
what is wrong among it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pyoxigraph import NamedNode

from spaseq.terms.dictionary import Dictionary
from spaseq.terms.identified import different
from spaseq.terms.values import XSD

_SPACE: Final = r"[ \t\r\n]*"
#: One begins with a letter, as no other term's text does.
_IRI: Final = r'<([A-Za-z][^<>"{}|^`\\\x00-\x20]*)>'
_STRING: Final = r'"([ !#-\[\]-~]*)"'
#: A triple of Turtle that needs no parser. A number ends with a space here: its dot could be the triple's.
_TRIPLE: Final = re.compile(
    rf"{_SPACE}{_IRI}{_SPACE}{_IRI}{_SPACE}"
    rf"(?:{_IRI}|{_STRING}(?:\^\^{_IRI})?|([+-]?[0-9]+)(\.[0-9]+)?(?=[ \t\r\n])){_SPACE}\.{_SPACE}"
)
#: The datatype that N-Triples does not write.
_PLAIN: Final = XSD + "string"

#: What a literal with a datatype cannot have: there is a language, then.
_OF_LANGUAGES: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

#: So many datatypes are remembered.
_MOST: Final = 1_024


class Plain:
    """Reads such texts. For who has the dictionary's lock."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._datatypes: set[str] = set()

    def read(self, text: str, enter: Callable[[str], int]) -> tuple[int, ...] | None:
        """The terms of the different triples, one after the other; None for a text that needs a parser.

        ``enter`` gives the ids of terms that Python has not seen, by their texts, and may raise.
        """
        known, match, at, end = self._dictionary.known, _TRIPLE.match, 0, len(text)
        found: list[int] = []
        while at < end:
            part = match(text, at)
            if part is None:
                return None
            at = part.end()
            s, p, iri, string, datatype, whole, fraction = part.groups()
            try:
                subject, predicate = known(s) or _iri(s, enter), known(p) or _iri(p, enter)
                if iri is not None:
                    object_ = known(iri) or _iri(iri, enter)
                else:
                    if whole is None:
                        literal = f'"{string}"'
                        if datatype is not None:
                            literal += self._datatype(datatype)
                    elif fraction is None:
                        literal = f'"{whole}"^^<{XSD}integer>'
                    else:
                        literal = f'"{whole}{fraction}"^^<{XSD}decimal>'
                    object_ = known(literal) or enter(literal)
            except _NoIriError:
                return None
            found += (subject, predicate, object_)
        return different(tuple(found))

    def _datatype(self, text: str) -> str:
        """What follows the characters of a literal."""
        if text not in self._datatypes:
            if text.startswith(_OF_LANGUAGES):
                raise _NoIriError
            _check(text)
            if len(self._datatypes) >= _MOST:
                self._datatypes.clear()
            self._datatypes.add(text)
        return "" if text == _PLAIN else f"^^<{text}>"


class _NoIriError(Exception):
    """What stands where an IRI should be is none, or is none here; the parser says why."""


def _iri(text: str, enter: Callable[[str], int]) -> int:
    _check(text)
    return enter(text)


def _check(text: str) -> None:
    try:
        NamedNode(text)
    except ValueError:
        raise _NoIriError from None
