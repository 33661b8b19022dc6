"""Grammar rules → syntax tree: names, IRIs, literals, expressions.

Every method is named after a rule of ``spaseq.lark`` and gets the rule's place and its children, which are
already built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from lark import Token
from pyoxigraph import Literal, NamedNode

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.derivation import Extent
from spaseq.language.functions import own_function
from spaseq.language.reading import shared
from spaseq.language.reading.hints import undeclared_prefix
from spaseq.language.reading.source import QueryText
from spaseq.terms.iris import resolve
from spaseq.terms.values import XSD

_CHARACTER_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

#: The largest number that a query can count with, and a number of digits that is certainly too large for it.
MOST: Final = 2**63 - 1
_DIGITS: Final = 20

#: Other spellings of built-in functions.
_SYNONYMS: Final = {"URI": "IRI", "ISURI": "ISIRI"}

#: How many arguments a built-in function takes, if not exactly one; None: any number.
_ARITIES: Final[dict[str, tuple[int, int | None]]] = {
    **dict.fromkeys(("NOW", "RAND", "STRUUID", "UUID"), (0, 0)),
    **dict.fromkeys(("CONTAINS", "LANGMATCHES", "SAMETERM", "STRAFTER", "STRBEFORE"), (2, 2)),
    **dict.fromkeys(("STRDT", "STRENDS", "STRLANG", "STRSTARTS"), (2, 2)),
    **dict.fromkeys(("COALESCE", "CONCAT"), (0, None)),
    "BNODE": (0, 1),
    "IF": (3, 3),
    "REGEX": (2, 3),
    "REPLACE": (3, 4),
    "SUBSTR": (2, 3),
}


class ExpressionBuilder:
    """Builds expressions and their parts."""

    def __init__(
        self, source: QueryText, prefixes: Mapping[str, str] | None = None, base: str | None = None
    ) -> None:
        self.source = source
        self.prefixes: dict[str, str] = dict(prefixes or {})
        self._base = base

    # --- places and errors

    def span(self, place: Extent) -> s.Span:
        """Return where a rule's text stands."""
        return self.source.span(place.start_pos, place.end_pos)

    def error(self, message: str, start: int, hint: str | None = None) -> QuerySyntaxError:
        """Return an error that points at an offset in the expanded text."""
        return self.source.error(QuerySyntaxError, message, self.source.origin(start), hint)

    def integer(self, token: Token) -> int:
        """Return a number. Raises QuerySyntaxError for one beyond 64 bits."""
        number = int(token) if len(token.lstrip("0")) < _DIGITS else MOST + 1
        if number > MOST:
            raise self.error(f"{token} is beyond 64 bits", token.start_pos or 0, f"the most is {MOST}")
        return number

    # --- prologue and names

    def base(self, _place: Extent, children: list[Token]) -> None:
        self._base = self._resolve(children[0])

    def prefix(self, _place: Extent, children: list[Token]) -> None:
        name, iri = children
        self.prefixes[name[:-1]] = self._resolve(iri)

    def prologue(self, _place: Extent, _children: list[None]) -> None:
        """Do nothing: ``_prefixes`` and ``_base`` hold the prologue, which precedes all its uses."""

    def _resolve(self, token: Token) -> str:
        return self._absolute(token[1:-1], _start(token))

    def _absolute(self, iri: str, start: int) -> str:
        try:
            return shared.named_node(iri).value
        except ValueError as problem:
            if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", iri):
                raise self.error(f"<{iri}> is not an IRI: {problem}", start) from None
        if self._base is None:
            hint = "write the whole IRI, or say BASE <…> before the query"
            raise self.error(f"<{iri}> is relative, and the query has no BASE", start, hint)
        try:
            return resolve(self._base, iri).value
        except ValueError as problem:
            raise self.error(f"<{iri}> is not an IRI reference: {problem}", start) from None

    def iri(self, _place: Extent, children: list[Token]) -> NamedNode:
        (token,) = children
        if token.type == "IRIREF":
            return shared.named_node(self._resolve(token))
        name, local = token.split(":", 1)
        if name not in self.prefixes:
            hint = undeclared_prefix(name, self.prefixes)
            raise self.error(f"the prefix '{name}:' is not declared", _start(token), hint)
        return shared.named_node(
            self._absolute(self.prefixes[name] + re.sub(r"\\(.)", r"\1", local), _start(token))
        )

    def var(self, _place: Extent, children: list[Token]) -> s.Var:
        return self.variable(children[0])

    def variable(self, token: Token) -> s.Var:
        """Return the variable of a token."""
        start = _start(token)
        return shared.variable(token[1:], self.source.span(start, start + len(token)))

    # --- literals

    def string(self, _place: Extent, children: list[Token]) -> str:
        token = children[0]
        quotes = 3 if token.startswith(('"""', "'''")) else 1
        return re.sub(
            r"\\(.)", lambda m: _CHARACTER_ESCAPES.get(m[1], m[1]), token[quotes:-quotes], flags=re.DOTALL
        )

    def plain_literal(self, _place: Extent, children: list[str]) -> Literal:
        value, *tags = children
        if not tags:
            return Literal(value)
        try:
            return Literal(value, language=tags[0][1:])
        except ValueError as problem:
            raise self.error(f"{tags[0]} is not a language tag: {problem}", _start(tags[0])) from None

    def typed_literal(self, _place: Extent, children: list[Any]) -> Literal:
        value, datatype = children
        return shared.literal(value, datatype)

    def number(self, _place: Extent, children: list[Token]) -> Literal:
        text = str(children[0])
        name = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
        return shared.literal(text, shared.named_node(XSD + name))

    signed_number = number

    def boolean(self, _place: Extent, children: list[Token]) -> Literal:
        return shared.literal(children[0].lower(), shared.named_node(XSD + "boolean"))

    # --- expressions

    def expression_variable(self, _place: Extent, children: list[Token]) -> s.Var:
        return self.variable(children[0])

    def constant(self, place: Extent, children: list[NamedNode | Literal]) -> s.Expression:
        return shared.constant(children[0], self.span(place))

    def binary(self, place: Extent, children: list[Any]) -> s.Expression:
        left, operator, right = children
        return s.Binary(shared.name(operator), left, right, span=self.span(place))

    def unary(self, place: Extent, children: list[Any]) -> s.Expression:
        operator, operand = children
        return s.Unary(str(operator), operand, span=self.span(place))

    def signed_sum(self, place: Extent, children: list[s.Expression]) -> s.Expression:
        """Build ``?x -1 * 2`` as ``?x - 1 * 2``: SPARQL reads the sign as part of the number."""
        left, product = children
        sign, unsigned = _take_sign(product)
        return s.Binary(sign, left, unsigned, span=self.span(place))

    def expression_list(self, _place: Extent, children: list[s.Expression | None]) -> list[s.Expression]:
        return [child for child in children if child is not None]

    def is_in(self, place: Extent, children: list[Any]) -> s.Expression:
        operand, items = children
        return s.In(operand, tuple(items), negated=False, span=self.span(place))

    def is_not_in(self, place: Extent, children: list[Any]) -> s.Expression:
        operand, items = children
        return s.In(operand, tuple(items), negated=True, span=self.span(place))

    def function_call(self, place: Extent, children: list[Any]) -> s.Expression:
        function, *rest = children
        distinct = bool(rest) and isinstance(rest[0], Token)
        own = own_function(function.value)
        return s.FunctionCall(function, tuple(rest[distinct:]), distinct, own, span=self.span(place))

    def builtin(self, place: Extent, children: list[Any]) -> s.Expression:
        written, arguments = children
        name = written.upper()
        least, most = _ARITIES.get(name, (1, 1))
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = _arity_text(least, most)
            raise self.error(f"{name} takes {wanted}, not {len(arguments)}", place.start_pos)
        if name == "BOUND" and not isinstance(arguments[0], s.Var):
            raise self.error("BOUND takes a variable, nothing else", place.start_pos)
        name = _SYNONYMS.get(name, name)
        if name == "IRI" and self._base is not None:
            return self._iri_of(arguments[0], self._base, self.span(place))
        return s.Call(name, tuple(arguments), span=self.span(place))

    def _iri_of(self, argument: s.Expression, base: str, span: s.Span) -> s.Expression:
        """Resolve ``IRI(x)`` against BASE: for a constant, return the IRI itself."""
        if isinstance(argument, s.Constant):
            text = argument.term.value
            if isinstance(argument.term, NamedNode):
                return shared.constant(argument.term, span)
            with suppress(ValueError):
                if argument.term == Literal(text):
                    return shared.constant(resolve(base, text), span)
        return s.Call("IRI", (argument, s.Constant(shared.named_node(base))), span=span)

    def aggregate(self, place: Extent, children: list[Any]) -> s.Expression:
        name, distinct, argument, *offset = children
        counted = None if isinstance(argument, Token) else argument
        further = 0
        if offset and offset[0] is not None:
            if name.upper() not in ("FIRST", "LAST"):
                hint = "FIRST(?v, 2) and LAST(?v, 2) count 2 further in"
                raise self.error(f"{name.upper()} takes no number", _start(offset[0]), hint)
            further = self.integer(offset[0])
        span = self.span(place)
        return s.Aggregate(name.upper(), counted, distinct is not None, offset=further, span=span)

    def group_concat(self, place: Extent, children: list[Any]) -> s.Expression:
        name, distinct, argument, separator = children
        return s.Aggregate(name.upper(), argument, distinct is not None, separator, span=self.span(place))

    def prev(self, place: Extent, children: list[Any]) -> s.Expression:
        variable, back = children
        offset = 1 if back is None else self.integer(back)
        if not offset:
            hint = f"{variable} itself is the value of this iteration"
            raise self.error("PREV looks back: at least 1", _start(back), hint)
        return s.Prev(self.variable(variable), offset, span=self.span(place))

    def prev_aggregate(self, place: Extent, children: list[Any]) -> s.Expression:
        aggregate, back = children
        if back is not None:
            hint = f"PREV({aggregate.name}(…)) is over all iterations before this one"
            raise self.error("PREV of an aggregate takes no number", _start(back), hint)
        before: s.Aggregate = replace(aggregate, before=True, span=self.span(place))
        return before

    def exists(self, place: Extent, children: list[s.Group]) -> s.Expression:
        return s.Exists(children[0], negated=False, span=self.span(place))

    def not_exists(self, place: Extent, children: list[s.Group]) -> s.Expression:
        return s.Exists(children[0], negated=True, span=self.span(place))


def _start(token: Token | str) -> int:
    """Return where a token begins; every token that is read from a text has a place."""
    if not isinstance(token, Token) or token.start_pos is None:
        raise TypeError(token)
    return token.start_pos


def _take_sign(product: s.Expression) -> tuple[str, s.Expression]:
    """Split the sign off the number that a product begins with."""
    if isinstance(product, s.Binary):
        sign, left = _take_sign(product.left)
        return sign, replace(product, left=left)
    if not isinstance(product, s.Constant) or not isinstance(product.term, Literal):
        raise TypeError(product)
    text = product.term.value
    return text[0], replace(product, term=Literal(text[1:], datatype=product.term.datatype))


def _arity_text(least: int, most: int | None) -> str:
    if most == least:
        return "no argument" if not least else "one argument" if least == 1 else f"{least} arguments"
    return f"{least} to {most} arguments"
