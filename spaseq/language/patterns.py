"""From lark's parse tree to the syntax tree: terms, paths, graph patterns, expressions.

Every method is named after a rule of ``spaseq.lark`` and gets the rule's place and its children,
which are already built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lark import Token, Transformer, v_args
from lark.tree import Meta
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat
from pyoxigraph import parse as parse_rdf

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.hints import undeclared_prefix
from spaseq.language.source import Source
from spaseq.terms import Term

_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE: Final = NamedNode(_RDF + "type")
RDF_FIRST: Final = NamedNode(_RDF + "first")
RDF_REST: Final = NamedNode(_RDF + "rest")
RDF_NIL: Final = NamedNode(_RDF + "nil")

_CHARACTER_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

#: Other spellings of built-in functions.
_SYNONYMS: Final = {"URI": "IRI", "ISURI": "ISIRI"}

#: How many arguments a built-in function takes, where it is not exactly one; None: any number.
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


@dataclass(frozen=True, slots=True)
class _Node:
    """A subject or object as written: its term, and the triples that ``[]`` and ``()`` stand for."""

    term: Term | s.Var
    triples: tuple[s.TriplePattern, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Property:
    """One ``verb object`` of a property list."""

    verb: s.Path | s.Var
    object: _Node
    start: int


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of VALUES, and its place."""

    terms: tuple[NamedNode | Literal | None, ...]
    span: s.Span


@v_args(meta=True)
class PatternBuilder(Transformer[Token, Any]):
    """Builds graph patterns and expressions."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._prefixes: dict[str, str] = {}
        self._base: str | None = None
        self._written_labels = set(re.findall(r"_:([\w.·-]+)", source.expanded))
        self._fresh_labels = 0

    # --- places and errors

    def _span(self, meta: Meta) -> s.Span:
        return self._source.span(meta.start_pos, meta.end_pos)

    def _error(self, message: str, start: int, hint: str | None = None) -> QuerySyntaxError:
        return self._source.error(QuerySyntaxError, message, self._source.origin(start), hint)

    # --- prologue and names

    def base(self, _meta: Meta, children: list[Token]) -> None:
        self._base = self._resolve(children[0])

    def prefix(self, _meta: Meta, children: list[Token]) -> None:
        name, iri = children
        self._prefixes[name[:-1]] = self._resolve(iri)

    def prologue(self, _meta: Meta, _children: list[None]) -> None:
        """Kept in ``_prefixes`` and ``_base``: it stands before all that needs it."""

    def _resolve(self, token: Token) -> str:
        return self._absolute(token[1:-1], _start(token))

    def _absolute(self, iri: str, start: int) -> str:
        try:
            return NamedNode(iri).value
        except ValueError as problem:
            if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", iri):
                raise self._error(f"<{iri}> is not an IRI: {problem}", start) from None
        if self._base is None:
            hint = "write the whole IRI, or say BASE <…> before the query"
            raise self._error(f"<{iri}> is relative, and the query has no BASE", start, hint)
        try:
            # pyoxigraph has no function for RFC 3986's resolution; its parser does it.
            document = f"<{iri}> a <> ."
            subject = next(iter(parse_rdf(document, RdfFormat.TURTLE, base_iri=self._base))).subject
        except SyntaxError as problem:
            raise self._error(f"<{iri}> is not an IRI reference: {problem}", start) from None
        if not isinstance(subject, NamedNode):
            raise TypeError(subject)
        return subject.value

    def iri(self, _meta: Meta, children: list[Token]) -> NamedNode:
        (token,) = children
        if token.type == "IRIREF":
            return NamedNode(self._resolve(token))
        name, local = token.split(":", 1)
        if name not in self._prefixes:
            hint = undeclared_prefix(name, self._prefixes)
            raise self._error(f"the prefix '{name}:' is not declared", _start(token), hint)
        return NamedNode(self._absolute(self._prefixes[name] + re.sub(r"\\(.)", r"\1", local), _start(token)))

    def var(self, _meta: Meta, children: list[Token]) -> s.Var:
        return self._var(children[0])

    def _var(self, token: Token) -> s.Var:
        start = _start(token)
        return s.Var(token[1:], span=self._source.span(start, start + len(token)))

    # --- literals

    def string(self, _meta: Meta, children: list[Token]) -> str:
        token = children[0]
        quotes = 3 if token.startswith(('"""', "'''")) else 1
        return re.sub(
            r"\\(.)", lambda m: _CHARACTER_ESCAPES.get(m[1], m[1]), token[quotes:-quotes], flags=re.DOTALL
        )

    def plain_literal(self, _meta: Meta, children: list[str]) -> Literal:
        value, *tags = children
        if not tags:
            return Literal(value)
        try:
            return Literal(value, language=tags[0][1:])
        except ValueError as problem:
            raise self._error(f"{tags[0]} is not a language tag: {problem}", _start(tags[0])) from None

    def typed_literal(self, _meta: Meta, children: list[Any]) -> Literal:
        value, datatype = children
        return Literal(value, datatype=datatype)

    def number(self, _meta: Meta, children: list[Token]) -> Literal:
        text = str(children[0])
        name = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
        return Literal(text, datatype=NamedNode(_XSD + name))

    signed_number = number

    def boolean(self, _meta: Meta, children: list[Token]) -> Literal:
        return Literal(children[0].lower(), datatype=NamedNode(_XSD + "boolean"))

    # --- blank nodes and collections

    def _fresh(self) -> BlankNode:
        while True:
            label = f"b{self._fresh_labels}"
            self._fresh_labels += 1
            if label not in self._written_labels:
                return BlankNode(label)

    def blank_node(self, _meta: Meta, children: list[Token]) -> BlankNode:
        return BlankNode(children[0][2:])

    def anonymous(self, _meta: Meta, _children: list[Token]) -> BlankNode:
        return self._fresh()

    def nil(self, _meta: Meta, _children: list[Token]) -> NamedNode:
        return RDF_NIL

    def graph_node(self, meta: Meta, children: list[Term | s.Var | _Node]) -> _Node:
        return self._node(children[0], meta)

    def _node(self, written: Term | s.Var | _Node, meta: Meta) -> _Node:
        return written if isinstance(written, _Node) else _Node(written, (), meta.start_pos, meta.end_pos)

    def collection(self, meta: Meta, children: list[_Node]) -> _Node:
        cells = [self._fresh() for _ in children]
        rests: list[BlankNode | NamedNode] = [*cells[1:], RDF_NIL]
        triples: list[s.TriplePattern] = []
        for cell, rest, node in zip(cells, rests, children, strict=True):
            span = self._source.span(node.start, node.end)
            triples.append(s.TriplePattern(cell, RDF_FIRST, node.term, span=span))
            triples += node.triples
            triples.append(s.TriplePattern(cell, RDF_REST, rest, span=span))
        return _Node(cells[0], tuple(triples), meta.start_pos, meta.end_pos)

    def blank_properties(self, meta: Meta, children: list[list[_Property]]) -> _Node:
        subject = _Node(self._fresh(), (), meta.start_pos, meta.end_pos)
        return replace(subject, triples=tuple(self._triples(subject, children[0])))

    # --- triples

    def verb_objects(self, meta: Meta, children: list[Any]) -> list[_Property]:
        verb, *objects = children
        return [_Property(verb, node, node.start if i else meta.start_pos) for i, node in enumerate(objects)]

    def property_list(self, _meta: Meta, children: list[list[_Property] | None]) -> list[_Property]:
        return [item for items in children if items is not None for item in items]

    def _triples(self, subject: _Node, properties: Iterable[_Property]) -> list[s.TriplePattern]:
        triples: list[s.TriplePattern] = []
        for item in properties:
            span = self._source.span(item.start, item.object.end)
            triples.append(s.TriplePattern(subject.term, item.verb, item.object.term, span=span))
            triples += item.object.triples
        return triples

    def same_subject(self, meta: Meta, children: list[Any]) -> list[s.TriplePattern]:
        written, properties = children
        subject = self._node(written, meta)
        triples = self._triples(subject, properties or ())
        if triples and triples[0].span is not None:
            whole = self._source.span(meta.start_pos, meta.end_pos)
            triples[0] = replace(triples[0], span=replace(whole, end=triples[0].span.end))
        return [*subject.triples, *triples]

    def triples(self, meta: Meta, children: list[list[s.TriplePattern]]) -> s.Triples:
        return s.Triples(tuple(t for triples in children for t in triples), span=self._span(meta))

    # --- paths

    def a(self, _meta: Meta, _children: list[Token]) -> NamedNode:
        return RDF_TYPE

    def path_alternative(self, _meta: Meta, children: list[s.Path]) -> s.Path:
        return s.PathAlternative(tuple(children))

    def path_sequence(self, _meta: Meta, children: list[s.Path]) -> s.Path:
        return s.PathSequence(tuple(children))

    def path_inverse(self, _meta: Meta, children: list[s.Path]) -> s.Path:
        return s.PathInverse(children[0])

    def path_repeat(self, _meta: Meta, children: list[Any]) -> s.Path:
        path, sign = children
        minimum, maximum = {"+": (1, None), "*": (0, None), "?": (0, 1)}[sign]
        return s.PathRepeat(path, minimum, maximum)

    def path_inverse_excluded(self, _meta: Meta, children: list[NamedNode]) -> s.Path:
        return s.PathInverse(children[0])

    def path_negated(self, _meta: Meta, children: list[NamedNode | s.PathInverse]) -> s.Path:
        forward = tuple(p for p in children if isinstance(p, NamedNode))
        inverse = tuple(p.path for p in children if isinstance(p, s.PathInverse))
        return s.PathNegated(forward, tuple(p for p in inverse if isinstance(p, NamedNode)))

    # --- groups

    def group(self, meta: Meta, children: list[s.Pattern | None]) -> s.Group:
        written = [child for child in children if child is not None]
        return s.Group(tuple(_join_triples(written)), span=self._span(meta))

    def union(self, meta: Meta, children: list[s.Group]) -> s.Pattern:
        return children[0] if len(children) == 1 else s.Union(tuple(children), span=self._span(meta))

    def optional(self, meta: Meta, children: list[s.Group]) -> s.Pattern:
        return s.Optional(children[0], span=self._span(meta))

    def minus(self, meta: Meta, children: list[s.Group]) -> s.Pattern:
        return s.Minus(children[0], span=self._span(meta))

    def graph(self, meta: Meta, children: list[Any]) -> s.Pattern:
        name, pattern = children
        return s.Graph(name, pattern, span=self._span(meta))

    def service(self, meta: Meta, children: list[Any]) -> s.Pattern:
        silent, name, pattern = children
        return s.Service(name, pattern, silent is not None, span=self._span(meta))

    def filter(self, meta: Meta, children: list[s.Expression]) -> s.Filter:
        return s.Filter(children[0], span=self._span(meta))

    def bind(self, meta: Meta, children: list[Any]) -> s.Pattern:
        expression, variable = children
        return s.Bind(expression, self._var(variable), span=self._span(meta))

    def undef(self, _meta: Meta, _children: list[Token]) -> None:
        """UNDEF is None in a row."""

    def single_values(self, _meta: Meta, children: list[Any]) -> tuple[list[s.Var], list[_Row]]:
        variable, *terms = children
        var = self._var(variable)
        if var.span is None:
            raise TypeError(var)
        return [var], [_Row((term,), var.span) for term in terms]

    def value_row(self, meta: Meta, children: list[Any]) -> _Row:
        return _Row(tuple(children), self._span(meta))

    def row_values(self, _meta: Meta, children: list[Any]) -> tuple[list[s.Var], list[_Row]]:
        columns = [self._var(child) for child in children if isinstance(child, Token)]
        return columns, [child for child in children if isinstance(child, _Row)]

    def values(self, meta: Meta, children: list[tuple[list[s.Var], list[_Row]]]) -> s.Values:
        columns, rows = children[0]
        for row in rows:
            if len(row.terms) != len(columns):
                message = f"a row needs a value for each of {len(columns)} variables, not {len(row.terms)}"
                raise self._source.error(QuerySyntaxError, message, row.span.start)
        return s.Values(tuple(columns), tuple(row.terms for row in rows), span=self._span(meta))

    # --- expressions

    def expression_variable(self, _meta: Meta, children: list[Token]) -> s.Var:
        return self._var(children[0])

    def constant(self, meta: Meta, children: list[NamedNode | Literal]) -> s.Expression:
        return s.Constant(children[0], span=self._span(meta))

    def binary(self, meta: Meta, children: list[Any]) -> s.Expression:
        left, operator, right = children
        return s.Binary(str(operator), left, right, span=self._span(meta))

    def unary(self, meta: Meta, children: list[Any]) -> s.Expression:
        operator, operand = children
        return s.Unary(str(operator), operand, span=self._span(meta))

    def signed_sum(self, meta: Meta, children: list[s.Expression]) -> s.Expression:
        """``?x -1 * 2`` is ``?x - 1 * 2``: SPARQL reads the sign as part of the number."""
        left, product = children
        sign, unsigned = _take_sign(product)
        return s.Binary(sign, left, unsigned, span=self._span(meta))

    def expression_list(self, _meta: Meta, children: list[s.Expression | None]) -> list[s.Expression]:
        return [child for child in children if child is not None]

    def is_in(self, meta: Meta, children: list[Any]) -> s.Expression:
        operand, items = children
        return s.In(operand, tuple(items), negated=False, span=self._span(meta))

    def is_not_in(self, meta: Meta, children: list[Any]) -> s.Expression:
        operand, items = children
        return s.In(operand, tuple(items), negated=True, span=self._span(meta))

    def function_call(self, meta: Meta, children: list[Any]) -> s.Expression:
        function, *rest = children
        distinct = bool(rest) and isinstance(rest[0], Token)
        return s.FunctionCall(function, tuple(rest[distinct:]), distinct, span=self._span(meta))

    def builtin(self, meta: Meta, children: list[Any]) -> s.Expression:
        written, arguments = children
        name = written.upper()
        least, most = _ARITIES.get(name, (1, 1))
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = _arity_text(least, most)
            raise self._error(f"{name} takes {wanted}, not {len(arguments)}", meta.start_pos)
        if name == "BOUND" and not isinstance(arguments[0], s.Var):
            raise self._error("BOUND takes a variable, nothing else", meta.start_pos)
        return s.Call(_SYNONYMS.get(name, name), tuple(arguments), span=self._span(meta))

    def aggregate(self, meta: Meta, children: list[Any]) -> s.Expression:
        name, distinct, argument = children
        counted = None if isinstance(argument, Token) else argument
        return s.Aggregate(name.upper(), counted, distinct is not None, span=self._span(meta))

    def group_concat(self, meta: Meta, children: list[Any]) -> s.Expression:
        name, distinct, argument, separator = children
        return s.Aggregate(name.upper(), argument, distinct is not None, separator, span=self._span(meta))

    def prev(self, meta: Meta, children: list[Token]) -> s.Expression:
        return s.Prev(self._var(children[0]), span=self._span(meta))

    def exists(self, meta: Meta, children: list[s.Group]) -> s.Expression:
        return s.Exists(children[0], negated=False, span=self._span(meta))

    def not_exists(self, meta: Meta, children: list[s.Group]) -> s.Expression:
        return s.Exists(children[0], negated=True, span=self._span(meta))


def _start(token: Token | str) -> int:
    """Where a token begins; lark sets it on every token that it reads from a text."""
    if not isinstance(token, Token) or token.start_pos is None:
        raise TypeError(token)
    return token.start_pos


def _join_triples(elements: Sequence[s.Pattern]) -> list[s.Pattern]:
    """Make one ``Triples`` of those with only FILTERs between: they are one basic graph pattern."""
    joined: list[s.Pattern] = []
    current: int | None = None
    for element in elements:
        if isinstance(element, s.Triples) and current is not None:
            first = joined[current]
            if isinstance(first, s.Triples):
                joined[current] = replace(first, patterns=first.patterns + element.patterns)
            continue
        if isinstance(element, s.Triples):
            current = len(joined)
        elif not isinstance(element, s.Filter):
            current = None
        joined.append(element)
    return joined


def _take_sign(product: s.Expression) -> tuple[str, s.Expression]:
    """Take the sign off the number that a product begins with."""
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
