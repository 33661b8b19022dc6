"""Events that are given as plain text, as most are: IRIs, simple literals and numbers, with no prefix.

A parser takes longer to begin than to read an event of few triples. What is not read here is for the parser,
what is wrong among it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal, NamedNode

from spaseq.events import different
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.terms.values import XSD

_SPACE: Final = r"[ \t\r\n]*"
_IRI: Final = r'<([^<>"{}|^`\\\x00-\x20]+)>'
_STRING: Final = r'"([ !#-\[\]-~]*)"'
#: A triple of Turtle that needs no parser. A number ends with a space here: its dot could be the triple's.
_TRIPLE: Final = re.compile(
    rf"{_SPACE}{_IRI}{_SPACE}{_IRI}{_SPACE}"
    rf"(?:{_IRI}|{_STRING}(?:\^\^{_IRI})?|([+-]?[0-9]+)(\.[0-9]+)?(?=[ \t\r\n])){_SPACE}\.{_SPACE}"
)
_INTEGER: Final = NamedNode(XSD + "integer")
_DECIMAL: Final = NamedNode(XSD + "decimal")

#: What a literal with a datatype cannot have: there is a language, then.
_OF_LANGUAGES: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

#: So many datatypes are remembered.
_MOST: Final = 1_024


class Plain:
    """Reads such texts; a dictionary has one (``of``). For who has the dictionary's lock."""

    @classmethod
    def of(cls, dictionary: Dictionary) -> Plain:
        """That of a dictionary."""
        return dictionary.beside(cls)

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._iris: dict[str, int] = {}
        self._datatypes: dict[str, NamedNode] = {}

    def read(self, text: str, intern: Callable[[Term], int]) -> tuple[int, ...] | None:
        """The terms of the different triples, one after the other; None for a text that needs a parser.

        ``intern`` gives the ids of terms that were never seen as Python objects, and may raise.
        """
        iris, known, match, at, end = self._iris, self._dictionary.known, _TRIPLE.match, 0, len(text)
        found: list[int] = []
        while at < end:
            part = match(text, at)
            if part is None:
                return None
            at = part.end()
            s, p, iri, string, datatype, whole, fraction = part.groups()
            try:
                subject, predicate = iris.get(s) or self._iri(s, intern), iris.get(p) or self._iri(p, intern)
                if iri is not None:
                    object_ = iris.get(iri) or self._iri(iri, intern)
                else:
                    if whole is None:
                        literal = Literal(
                            string, datatype=None if datatype is None else self._datatype(datatype)
                        )
                    elif fraction is None:
                        literal = Literal(whole, datatype=_INTEGER)
                    else:
                        literal = Literal(whole + fraction, datatype=_DECIMAL)
                    object_ = known(literal) or intern(literal)
            except _NoIriError:
                return None
            found += (subject, predicate, object_)
        return different(tuple(found))

    def _iri(self, text: str, intern: Callable[[Term], int]) -> int:
        node = _node(text)
        identifier = self._iris[text] = self._dictionary.known(node) or intern(node)
        return identifier

    def _datatype(self, text: str) -> NamedNode:
        known = self._datatypes.get(text)
        if known is None:
            if text.startswith(_OF_LANGUAGES):
                raise _NoIriError
            if len(self._datatypes) >= _MOST:
                self._datatypes.clear()
            known = self._datatypes[text] = _node(text)
        return known

    def forget_all_but(self, kept: npt.NDArray[np.bool_]) -> None:
        """See ``Beside.forget_all_but``."""
        self._iris = {text: identifier for text, identifier in self._iris.items() if kept[identifier]}


class _NoIriError(Exception):
    """What stands where an IRI should be is none, or is none here; the parser says why."""


def _node(text: str) -> NamedNode:
    try:
        return NamedNode(text)
    except ValueError:
        raise _NoIriError from None
