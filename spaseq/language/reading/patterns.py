"""Grammar rules → syntax tree: triples, property paths, graph patterns.

``expressions`` says how these methods are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lark import Token
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.derivation import Extent
from spaseq.language.reading import shared
from spaseq.language.reading.expressions import ExpressionBuilder
from spaseq.language.reading.source import QueryText
from spaseq.terms.dictionary import Term
from spaseq.terms.values import RDF, RDF_TYPE

RDF_FIRST: Final = NamedNode(RDF + "first")
RDF_REST: Final = NamedNode(RDF + "rest")
RDF_NIL: Final = NamedNode(RDF + "nil")


@dataclass(frozen=True, slots=True)
class _Node:
    """A subject or object as written: its term, and the triples of ``[]`` and ``()``."""

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


class PatternBuilder(ExpressionBuilder):
    """Builds graph patterns."""

    def __init__(
        self, source: QueryText, prefixes: Mapping[str, str] | None = None, base: str | None = None
    ) -> None:
        super().__init__(source, prefixes, base)
        self._written_labels = set(re.findall(r"_:([\w.·-]+)", source.expanded))
        self._fresh_labels = 0

    # --- blank nodes and collections

    def _fresh(self) -> BlankNode:
        while True:
            label = f"b{self._fresh_labels}"
            self._fresh_labels += 1
            if label not in self._written_labels:
                return BlankNode(label)

    def blank_node(self, _place: Extent, children: list[Token]) -> BlankNode:
        return BlankNode(children[0][2:])

    def anonymous(self, _place: Extent, _children: list[Token]) -> BlankNode:
        return self._fresh()

    def nil(self, _place: Extent, _children: list[Token]) -> NamedNode:
        return RDF_NIL

    def graph_node(self, place: Extent, children: list[Term | s.Var | _Node]) -> _Node:
        return self._node(children[0], place)

    def _node(self, written: Term | s.Var | _Node, place: Extent) -> _Node:
        return written if isinstance(written, _Node) else _Node(written, (), place.start_pos, place.end_pos)

    def collection(self, place: Extent, children: list[_Node]) -> _Node:
        cells = [self._fresh() for _ in children]
        rests: list[BlankNode | NamedNode] = [*cells[1:], RDF_NIL]
        triples: list[s.TriplePattern] = []
        for cell, rest, node in zip(cells, rests, children, strict=True):
            span = self.source.span(node.start, node.end)
            triples.append(s.TriplePattern(cell, RDF_FIRST, node.term, span=span))
            triples += node.triples
            triples.append(s.TriplePattern(cell, RDF_REST, rest, span=span))
        return _Node(cells[0], tuple(triples), place.start_pos, place.end_pos)

    def blank_properties(self, place: Extent, children: list[list[_Property]]) -> _Node:
        subject = _Node(self._fresh(), (), place.start_pos, place.end_pos)
        return replace(subject, triples=tuple(self._triples(subject, children[0])))

    # --- triples

    def verb_objects(self, place: Extent, children: list[Any]) -> list[_Property]:
        verb, *objects = children
        return [_Property(verb, node, node.start if i else place.start_pos) for i, node in enumerate(objects)]

    def property_list(self, _place: Extent, children: list[list[_Property] | None]) -> list[_Property]:
        return [item for items in children if items is not None for item in items]

    def _triples(self, subject: _Node, properties: Iterable[_Property]) -> list[s.TriplePattern]:
        triples: list[s.TriplePattern] = []
        for item in properties:
            span = self.source.span(item.start, item.object.end)
            triples.append(s.TriplePattern(subject.term, item.verb, item.object.term, span=span))
            triples += item.object.triples
        return triples

    def same_subject(self, place: Extent, children: list[Any]) -> list[s.TriplePattern]:
        written, properties = children
        subject = self._node(written, place)
        triples = self._triples(subject, properties or ())
        if triples and triples[0].span is not None:
            whole = self.source.span(place.start_pos, place.end_pos)
            said = shared.span(whole.start, triples[0].span.end, whole.line, whole.column)
            triples[0] = replace(triples[0], span=said)
        return [*subject.triples, *triples]

    def triples(self, place: Extent, children: list[list[s.TriplePattern]]) -> s.Triples:
        return s.Triples(tuple(t for triples in children for t in triples), span=self.span(place))

    # --- paths

    def a(self, _place: Extent, _children: list[Token]) -> NamedNode:
        return RDF_TYPE

    def path_alternative(self, _place: Extent, children: list[s.Path]) -> s.Path:
        return s.PathAlternative(tuple(children))

    def path_sequence(self, _place: Extent, children: list[s.Path]) -> s.Path:
        return s.PathSequence(tuple(children))

    def path_inverse(self, _place: Extent, children: list[s.Path]) -> s.Path:
        return s.PathInverse(children[0])

    def path_repeat(self, _place: Extent, children: list[Any]) -> s.Path:
        path, sign = children
        minimum, maximum = {"+": (1, None), "*": (0, None), "?": (0, 1)}[sign]
        return s.PathRepeat(path, minimum, maximum)

    def path_inverse_excluded(self, _place: Extent, children: list[NamedNode]) -> s.Path:
        return s.PathInverse(children[0])

    def path_negated(self, _place: Extent, children: list[NamedNode | s.PathInverse]) -> s.Path:
        forward = tuple(p for p in children if isinstance(p, NamedNode))
        inverse = tuple(p.path for p in children if isinstance(p, s.PathInverse))
        return s.PathNegated(forward, tuple(p for p in inverse if isinstance(p, NamedNode)))

    # --- groups

    def group(self, place: Extent, children: list[s.Pattern | None]) -> s.Group:
        written = [child for child in children if child is not None]
        return s.Group(tuple(_join_triples(written)), span=self.span(place))

    def union(self, place: Extent, children: list[s.Group]) -> s.Pattern:
        return children[0] if len(children) == 1 else s.Union(tuple(children), span=self.span(place))

    def optional(self, place: Extent, children: list[s.Group]) -> s.Pattern:
        return s.Optional(children[0], span=self.span(place))

    def minus(self, place: Extent, children: list[s.Group]) -> s.Pattern:
        return s.Minus(children[0], span=self.span(place))

    def graph(self, place: Extent, children: list[Any]) -> s.Pattern:
        name, pattern = children
        return s.Graph(name, pattern, span=self.span(place))

    def service(self, place: Extent, children: list[Any]) -> s.Pattern:
        silent, name, pattern = children
        return s.ServicePattern(name, pattern, silent is not None, span=self.span(place))

    def filter(self, place: Extent, children: list[s.Expression]) -> s.Filter:
        return s.Filter(children[0], span=self.span(place))

    def bind(self, place: Extent, children: list[Any]) -> s.Pattern:
        expression, variable = children
        return s.Bind(expression, self.variable(variable), span=self.span(place))

    def undef(self, _place: Extent, _children: list[Token]) -> None:
        """Return None, which is UNDEF in a row."""

    def single_values(self, _place: Extent, children: list[Any]) -> tuple[list[s.Var], list[_Row]]:
        variable, *terms = children
        var = self.variable(variable)
        if var.span is None:
            raise TypeError(var)
        return [var], [_Row((term,), var.span) for term in terms]

    def value_row(self, place: Extent, children: list[Any]) -> _Row:
        return _Row(tuple(children), self.span(place))

    def row_values(self, _place: Extent, children: list[Any]) -> tuple[list[s.Var], list[_Row]]:
        columns = [self.variable(child) for child in children if isinstance(child, Token)]
        return columns, [child for child in children if isinstance(child, _Row)]

    def values(self, place: Extent, children: list[tuple[list[s.Var], list[_Row]]]) -> s.Values:
        columns, rows = children[0]
        for row in rows:
            if len(row.terms) != len(columns):
                message = f"a row needs a value for each of {len(columns)} variables, not {len(row.terms)}"
                raise self.source.error(QuerySyntaxError, message, row.span.start)
        return s.Values(tuple(columns), tuple(row.terms for row in rows), span=self.span(place))


def _join_triples(elements: Sequence[s.Pattern]) -> list[s.Pattern]:
    """Merge ``Triples`` that only FILTERs separate: they are one basic graph pattern."""
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
