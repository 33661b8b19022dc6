"""Parses text to a path expression.

    Expression ::= ( 'PREFIX' name ':' IRI | 'BASE' IRI )* Path
    Path       ::= Sequence ( '|' Sequence )*
    Sequence   ::= '^'? Element ( '/' '^'? Element )*
    Element    ::= Primary ( '*' | '+' | '?' | '{' n '}' | '{' n ',' '}' | '{' n ',' m '}' | '{' ',' m '}' )?
    Primary    ::= iri | 'a' | '.' | '!' Excluded | '!' '(' ( Excluded ( '|' Excluded )* )? ')'
                 | '[' Conditions ( ';' Conditions )* ']' | '(' Path ')'
    Excluded   ::= '^'? ( iri | 'a' )
    Conditions ::= '^'? ( iri | 'a' ) ( value ( ',' value )* | Order value )?
    Order      ::= '<' | '<=' | '=' | '!=' | '>=' | '>'

``iri`` is ``<…>`` or a prefixed name. ``value`` is an ``iri`` or a literal as in SPARQL, compared as a term
(``1999`` is not ``1999.0``). ``.`` is an edge with any predicate.

``[…]`` takes no edge: it passes nodes that have the triples of all conditions. A condition without a value
accepts any value. ``[:year > 1960]`` passes nodes with a value greater than 1960, as in a SPARQL filter.

``{n,m}`` counts iterations of its element. If all members of ``!(…)`` are forward, it takes edges forwards;
if all are inverse, backwards; with both kinds, either way (SPARQL 1.1, section 9.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from lark import Lark, Token
from pyoxigraph import NamedNode

from spaseq.errors import QuerySyntaxError
from spaseq.language.derivation import Derivation, Extent
from spaseq.language.reading.expressions import ExpressionBuilder
from spaseq.language.reading.parser import check_nesting
from spaseq.language.reading.source import QueryText
from spaseq.paths.language.expression import (
    Concatenation,
    Condition,
    Expression,
    NodeTest,
    Path,
    Repetition,
    Step,
    Verb,
    either,
    excluding,
    inverse,
)
from spaseq.paths.language.modes import MODE_WORDS
from spaseq.paths.language.quick import read_name_quickly, read_quickly
from spaseq.terms.dictionary import Term
from spaseq.terms.values import RDF_TYPE

_Start = Literal["expression", "term"]

_GRAMMAR: Final = "paths.lark"

#: The most digits of a count; Python does not read much longer numbers.
_MOST_DIGITS: Final = 1_000

_WORD: Final = re.compile(r"[^\W\d][\w-]*")


def parse(text: str, prefixes: Mapping[str, str] | None = None, filename: str = "<path>") -> Expression:
    """Parse a path expression. Raises QuerySyntaxError, with the place of the error.

    ``text`` may use ``prefixes`` and declare others; its own declarations take precedence.

    >>> str(parse("(:a/^:b){2,3}|!(:c|^:d)", {"": "http://example.org/"}))
    '(:a/^:b){2,3}|!(:c)|!(^:d)'
    """
    source = QueryText(text, filename)
    check_nesting(source)
    known = dict(prefixes or {})
    root = read_quickly(source, known)
    if root is None:
        builder = _Builder(source, known)
        root, known = _build(source, builder, "expression"), builder.declared
    return Expression(root, known, source)


def parse_term(text: str, prefixes: Mapping[str, str], filename: str = "<term>") -> Term:
    """Parse an IRI, a prefixed name or a literal.

    >>> parse_term(":a", {"": "http://example.org/"})
    <NamedNode value=http://example.org/a>
    """
    source = QueryText(text, filename)
    term: Term = read_name_quickly(source, prefixes) or _build(source, _Builder(source, prefixes), "term")
    return term


def _build(source: QueryText, builder: _Builder, start: _Start) -> Any:
    try:
        return _derivation().build((builder,), source, start)
    except QuerySyntaxError as error:
        raise _with_a_prefix(error, builder.declared) from None
    except RecursionError:
        raise source.error(QuerySyntaxError, "this is nested too deeply to be read", 0) from None


def _with_a_prefix(error: QuerySyntaxError, prefixes: Mapping[str, str]) -> QuerySyntaxError:
    """Return the error, with a hint if a bare word is where a name should be."""
    word = _WORD.match(error.text or "", error.offset - 1 if error.offset else 0)
    if word is not None and word[0] in MODE_WORDS:
        error.hint = "a mode is given apart from the expression, as in mode='ANY SHORTEST TRAIL' or --mode"
    elif error.hint is None and word is not None:
        prefix = "" if "" in prefixes else min(prefixes, default=None)
        name = f"<…{word[0]}>" if prefix is None else f"{prefix}:{word[0]}"
        error.hint = f"names are written with a prefix or as an IRI: {name}"
    return error


class _Builder(ExpressionBuilder):
    """Builds the tree; every method is named after a rule of the grammar."""

    def __init__(self, source: QueryText, prefixes: Mapping[str, str]) -> None:
        super().__init__(source)
        self.prefixes.update(prefixes)

    @property
    def declared(self) -> dict[str, str]:
        """All prefixes, given and declared."""
        return self.prefixes

    def expression(self, _place: Extent, children: list[Any]) -> Path:
        path: Path = children[1]
        return path

    def term(self, _place: Extent, children: list[Any]) -> Term:
        term: Term = children[1]
        return term

    def alternative(self, _place: Extent, children: list[Path]) -> Path:
        return either(children)

    def sequence(self, _place: Extent, children: list[Path]) -> Path:
        return Concatenation(tuple(children))

    def inverse(self, _place: Extent, children: list[Path]) -> Path:
        return inverse(children[0])

    def a(self, _place: Extent, _children: list[Token]) -> NamedNode:
        return RDF_TYPE

    def step(self, _place: Extent, children: list[NamedNode]) -> Path:
        return Step((children[0],))

    def wildcard(self, _place: Extent, _children: list[Token]) -> Path:
        return Step((), negated=True)

    def excluded_inverse(self, _place: Extent, children: list[NamedNode]) -> Verb:
        return children[0], True

    def negated(self, _place: Extent, children: list[NamedNode | Verb]) -> Path:
        return excluding(map(_verb, children))

    def repeat(self, place: Extent, children: list[Any]) -> Path:
        part, (minimum, maximum) = children
        if maximum is not None and maximum < minimum:
            message = f"a path cannot be repeated at least {minimum} and at most {maximum} times"
            raise self.error(message, place.start_pos, f"did you mean {{{maximum},{minimum}}}?")
        return Repetition(part, minimum, maximum, span=self.span(place))

    def one_or_more(self, _place: Extent, _children: list[Token]) -> tuple[int, int | None]:
        return 1, None

    def zero_or_more(self, _place: Extent, _children: list[Token]) -> tuple[int, int | None]:
        return 0, None

    def zero_or_one(self, _place: Extent, _children: list[Token]) -> tuple[int, int | None]:
        return 0, 1

    def exactly(self, _place: Extent, children: list[Token]) -> tuple[int, int | None]:
        count = self._count(children[0])
        return count, count

    def between(self, _place: Extent, children: list[Token | None]) -> tuple[int, int | None]:
        least, most = (None if child is None else self._count(child) for child in children)
        return least or 0, most

    def at_most(self, _place: Extent, children: list[Token]) -> tuple[int, int | None]:
        return 0, self._count(children[0])

    def _count(self, digits: Token) -> int:
        if len(digits) > _MOST_DIGITS:
            message = f"a path cannot be repeated so often: the number has {len(digits):,} digits"
            raise self.error(message, digits.start_pos or 0)
        return int(digits)

    def conditions(self, _place: Extent, children: list[Any]) -> list[Condition]:
        verb, *values = children
        predicate, backwards = _verb(verb)
        return [Condition(predicate, backwards, value) for value in values or [None]]

    def comparison(self, _place: Extent, children: list[Any]) -> list[Condition]:
        verb, operator, value = children
        predicate, backwards = _verb(verb)
        return [Condition(predicate, backwards, value, str(operator))]

    def node_test(self, _place: Extent, children: list[list[Condition]]) -> Path:
        return NodeTest(tuple(c for conditions in children for c in conditions))


def _verb(written: NamedNode | Verb) -> Verb:
    return written if isinstance(written, tuple) else (written, False)


@cache
def _derivation() -> Derivation:
    lark = Lark(
        files(__package__).joinpath(_GRAMMAR).read_text(encoding="utf-8"),
        parser="lalr",
        start=["expression", "term"],
        maybe_placeholders=True,
        import_paths=[str(files("spaseq.language.reading"))],
    )
    return Derivation(lark, _Builder)
