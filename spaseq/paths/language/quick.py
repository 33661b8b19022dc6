"""A fast parser for common path expressions.

Programs often query by new texts, and parsing one with the grammar takes longer than answering it. This
parser takes a fifteenth of the time. It reads all path operators, and names and strings without escapes. All
other texts, above all wrong ones, are left to the grammar, which defines what an expression is. This parser
returns the same tree as the grammar, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.language.reading.source import QueryText
from spaseq.paths.language.expression import (
    Concatenation,
    Condition,
    NodeTest,
    Path,
    Repetition,
    Step,
    Verb,
    either,
    excluding,
    inverse,
)
from spaseq.terms.dictionary import Term
from spaseq.terms.values import RDF_TYPE

# SPARQL's PN_CHARS_BASE, what a local name begins with, and PN_CHARS, inside of brackets.
_LETTER: Final = (
    r"A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F"
    r"\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_FIRST: Final = _LETTER + "_:0-9"
_CHAR: Final = _LETTER + r"_0-9\u00B7\u0300-\u036F\u203F-\u2040-"

#: A token, after white space and comments: a name, number, word, string, its tag, or a sign; last, nothing.
_TOKEN: Final = re.compile(
    rf"""(?:[ \t\r\n]+|\#[^\r\n]*)*
    ( <[^\x00-\x20<>"{{}}|^`\\]*>
    | (?:[{_LETTER}](?:[.{_CHAR}]*[{_CHAR}])?)?:(?:[{_FIRST}](?:[:.{_CHAR}]*[:{_CHAR}])?)?
    | [0-9]+ | \w+ | "(?!"")[^"\\\n\r]*" | '(?!'')[^'\\\n\r]*' | @[A-Za-z]+(?:-[A-Za-z0-9]+)* | . | \Z
    )""",
    re.DOTALL | re.VERBOSE,
)

#: Larger numbers are left to the grammar.
_NUMBER: Final = re.compile(r"[0-9]{1,9}")

_INTEGER: Final = NamedNode("http://www.w3.org/2001/XMLSchema#integer")

_QUOTES: Final = ("'", '"')

_SIGNS: Final = frozenset("(!.[")

_QUANTIFIERS: Final[Mapping[str, tuple[int, int | None]]] = {"+": (1, None), "*": (0, None), "?": (0, 1)}


def read_quickly(source: QueryText, prefixes: Mapping[str, str]) -> Path | None:
    """Parse a path expression; return None if it is wrong, or must be left to the grammar.

    >>> read_quickly(QueryText("^<urn:a>", "<path>"), {})
    Step(predicates=(<NamedNode value=urn:a>,), negated=False, inverse=True)
    >>> read_quickly(QueryText("BASE <urn:> <a>", "<path>"), {}) is None
    True
    """
    try:
        return _Descent(source, prefixes).whole()
    except (_OtherError, RecursionError):
        return None


def read_name_quickly(source: QueryText, prefixes: Mapping[str, str]) -> NamedNode | None:
    """Parse an IRI or a prefixed name; return None if the text is wrong, or anything else.

    >>> read_name_quickly(QueryText(":a", "<term>"), {"": "urn:"})
    <NamedNode value=urn:a>
    """
    try:
        return _Descent(source, prefixes).name()
    except _OtherError:
        return None


class _OtherError(Exception):
    """Raised if a text must be left to the grammar."""


class _Descent:
    """A recursive-descent parser. Each method begins at its first token and ends after its last one."""

    def __init__(self, source: QueryText, prefixes: Mapping[str, str]) -> None:
        self._source = source
        self._prefixes = prefixes
        self._texts: list[str] = _TOKEN.findall(source.expanded)
        self._at = 0
        self._known: dict[str, NamedNode] = {}

    def whole(self) -> Path:
        path = self._alternative()
        self._expect("")
        return path

    def name(self) -> NamedNode:
        name = self._iri()
        self._expect("")
        return name

    @cached_property
    def _places(self) -> list[int]:
        """Where the tokens begin."""
        return [match.start(1) for match in _TOKEN.finditer(self._source.expanded)]

    def _take(self, sign: str) -> bool:
        """Take the next token if it is ``sign``; return whether it was taken."""
        if self._texts[self._at] != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise _OtherError

    def _alternative(self) -> Path:
        first = self._sequence()
        if self._texts[self._at] != "|":
            return first
        parts = [first]
        while self._take("|"):
            parts.append(self._sequence())
        return either(parts)

    def _sequence(self) -> Path:
        first = self._part()
        if self._texts[self._at] != "/":
            return first
        parts = [first]
        while self._take("/"):
            parts.append(self._part())
        return Concatenation(tuple(parts))

    def _part(self) -> Path:
        if self._take("^"):
            return inverse(self._element())
        return self._element()

    def _element(self) -> Path:
        begin = self._at
        part = self._primary()
        sign = self._texts[self._at]
        if sign == "{":
            minimum, maximum = self._bounds()
        elif sign in _QUANTIFIERS:
            minimum, maximum = _QUANTIFIERS[sign]
        else:
            return part
        span = self._source.span(self._places[begin], self._places[self._at] + 1)
        self._at += 1
        return Repetition(part, minimum, maximum, span=span)

    def _bounds(self) -> tuple[int, int | None]:
        """Read ``{n}``, ``{n,}``, ``{,m}`` or ``{n,m}`` without the closing brace."""
        self._at += 1
        least = self._number()
        most = self._number() if self._take(",") else least
        if self._texts[self._at] != "}" or (least is None and most is None):
            raise _OtherError
        if most is not None and most < (least or 0):
            raise _OtherError
        return least or 0, most

    def _number(self) -> int | None:
        text = self._texts[self._at]
        if not _NUMBER.fullmatch(text):
            return None
        self._at += 1
        return int(text)

    def _primary(self) -> Path:
        sign = self._texts[self._at]
        if sign in _SIGNS:
            self._at += 1
            if sign == "(":
                path = self._alternative()
                self._expect(")")
                return path
            if sign == "!":
                return self._negated()
            if sign == ".":
                return Step((), negated=True)
            return self._node_test()
        return Step((self._predicate(),))

    def _negated(self) -> Path:
        if not self._take("("):
            return excluding([self._verb()])
        excluded = []
        if not self._take(")"):
            excluded.append(self._verb())
            while self._take("|"):
                excluded.append(self._verb())
            self._expect(")")
        return excluding(excluded)

    def _node_test(self) -> Path:
        conditions = [*self._conditions()]
        while self._take(";"):
            conditions += self._conditions()
        self._expect("]")
        return NodeTest(tuple(conditions))

    def _conditions(self) -> Iterator[Condition]:
        predicate, backwards = self._verb()
        if self._texts[self._at] in (";", "]"):
            yield Condition(predicate, backwards, None)
            return
        yield Condition(predicate, backwards, self._value())
        while self._take(","):
            yield Condition(predicate, backwards, self._value())

    def _value(self) -> Term:
        text = self._texts[self._at]
        if text[:1] in _QUOTES and len(text) > 1:
            self._at += 1
            return self._string(text[1:-1])
        if _NUMBER.fullmatch(text):
            self._at += 1
            return Literal(text, datatype=_INTEGER)
        return self._iri()

    def _string(self, value: str) -> Literal:
        tag = self._texts[self._at]
        if not tag.startswith("@"):
            return Literal(value)
        self._at += 1
        try:
            return Literal(value, language=tag[1:])
        except ValueError:
            raise _OtherError from None

    def _verb(self) -> Verb:
        backwards = self._take("^")
        return self._predicate(), backwards

    def _predicate(self) -> NamedNode:
        if self._take("a"):
            return RDF_TYPE
        return self._iri()

    def _iri(self) -> NamedNode:
        text = self._texts[self._at]
        self._at += 1
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._named(text)
        return found

    def _named(self, text: str) -> NamedNode:
        if text.startswith("<"):
            iri = text[1:-1]
        else:
            prefix, colon, local = text.partition(":")
            namespace = self._prefixes.get(prefix)
            if not colon or namespace is None:
                raise _OtherError
            iri = namespace + local
        try:
            return NamedNode(iri)
        except ValueError:
            raise _OtherError from None
