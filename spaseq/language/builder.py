"""From lark's parse tree to the syntax tree: the query itself, its sequence, its modifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, v_args
from lark.tree import Meta
from pyoxigraph import NamedNode

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.patterns import PatternBuilder


@dataclass(frozen=True, slots=True)
class _Seq:
    """What stands in ``SEQ(…)``, and where SEQ begins."""

    seq: s.Seq
    start: int


@dataclass(frozen=True, slots=True)
class _Where:
    """What WHERE holds."""

    sequence: s.Seq
    gpms: tuple[s.Gpm, ...]
    filters: tuple[s.Filter, ...]


@v_args(meta=True)
class QueryBuilder(PatternBuilder):
    """Builds a whole query, or a single group that follows a prologue."""

    def query(self, _meta: Meta, children: list[Any]) -> s.Query:
        _, register, form, window, partition, *sources = children[:-4]
        where, emit, consume, modifiers = children[-4:]
        return s.Query(
            form=form,
            window=window,
            streams=tuple(item for item in sources if isinstance(item, s.StreamDeclaration)),
            sequence=where.sequence,
            gpms=where.gpms,
            partition=partition or (),
            knowledge=tuple(item for item in sources if isinstance(item, NamedNode)),
            filters=where.filters,
            emit=emit or s.Emit.ALL,
            consume=consume or s.Consume.NONE,
            modifiers=modifiers,
            register=register,
            prefixes=tuple(self._prefixes.items()),
            text=self._source.text,
            filename=self._source.filename,
        )

    def bare_group(self, _meta: Meta, children: list[Any]) -> s.Group:
        group: s.Group = children[1]
        return group

    # --- the parts of a query

    def register(self, meta: Meta, children: list[Any]) -> s.Register:
        kind, iri = children
        return s.Register(s.RegisterKind(kind.upper()), iri, span=self._span(meta))

    def select(self, meta: Meta, children: list[Any]) -> s.Select:
        how, *items = children
        star = isinstance(items[0], Token)
        word = "" if how is None else how.upper()
        span = self._span(meta)
        return s.Select(None if star else tuple(items), word == "DISTINCT", word == "REDUCED", span=span)

    def select_item(self, _meta: Meta, children: list[Any]) -> s.Projection:
        *expression, variable = children
        return s.Projection(self._var(variable), *expression)

    def ask(self, meta: Meta, _children: list[Token]) -> s.Ask:
        return s.Ask(span=self._span(meta))

    def construct(self, meta: Meta, children: list[s.Triples | None]) -> s.Construct:
        (triples,) = children
        template = () if triples is None else triples.patterns
        for triple in template:
            if not isinstance(triple.predicate, s.Var | NamedNode):
                start = 0 if triple.span is None else triple.span.start
                message = "a template cannot have a property path: which triples would it build?"
                raise self._source.error(QuerySyntaxError, message, start)
        return s.Construct(template, span=self._span(meta))

    def within(self, meta: Meta, children: list[Any]) -> s.Window:
        size, unit, kind = children
        plural = unit.upper().removesuffix("S") + "S"
        how = s.WindowKind(kind.upper()) if kind else s.WindowKind.TUMBLING
        return s.Window(int(size), plural, how, span=self._span(meta))

    def partition(self, _meta: Meta, children: list[Token]) -> tuple[s.Var, ...]:
        return tuple(self._var(token) for token in children)

    def from_stream(self, meta: Meta, children: list[Any]) -> s.StreamDeclaration:
        name, iri = children
        return s.StreamDeclaration(str(name), iri, span=self._span(meta))

    def from_named(self, _meta: Meta, children: list[NamedNode]) -> NamedNode:
        return children[0]

    def emit(self, _meta: Meta, children: list[Token]) -> s.Emit:
        return s.Emit(children[0].upper())

    def consume(self, _meta: Meta, children: list[Token]) -> s.Consume:
        return s.Consume(children[0].upper())

    def where(self, meta: Meta, children: list[Any]) -> _Where:
        sequences = [child for child in children[:2] if child is not None]
        if not sequences:
            hint = "say in which order the GPMs match: WHERE { SEQ(A ; B) DEFINE GPM A … }"
            raise self._error("this WHERE has no SEQ", meta.start_pos, hint)
        if len(sequences) > 1:
            raise self._error("a second SEQ: a query has exactly one", sequences[1].start)
        return _Where(
            sequence=sequences[0].seq,
            gpms=tuple(child for child in children if isinstance(child, s.Gpm)),
            filters=tuple(child for child in children if isinstance(child, s.Filter)),
        )

    def gpm(self, meta: Meta, children: list[Any]) -> s.Gpm:
        name, streams, time, graph, pattern = children
        return s.Gpm(
            str(name),
            streams,
            pattern,
            time=None if time is None else self._var(time),
            graph=None if graph is None else self._var(graph),
            span=self._span(meta),
        )

    def gpm_streams(self, _meta: Meta, children: list[Token]) -> tuple[str, ...]:
        return tuple(str(name) for name in children)

    # --- sequences

    def seq(self, meta: Meta, children: list[s.Seq]) -> _Seq:
        return _Seq(children[0], meta.start_pos)

    def disjunction(self, meta: Meta, children: list[s.Seq]) -> s.Seq:
        return s.Disjunction(tuple(children), span=self._span(meta))

    def conjunction(self, meta: Meta, children: list[s.Seq]) -> s.Seq:
        return s.Conjunction(tuple(children), span=self._span(meta))

    def sequence(self, meta: Meta, children: list[Any]) -> s.Seq:
        if len(children) == 1:
            element: s.Seq = children[0]
            return element
        operators = tuple(s.Strategy(str(sign)) for sign in children[1::2])
        return s.Sequence(tuple(children[::2]), operators, span=self._span(meta))

    def any_order(self, meta: Meta, children: list[s.Seq]) -> s.Seq:
        return s.All(tuple(children), span=self._span(meta))

    def negation(self, meta: Meta, children: list[Any]) -> s.Seq:
        (seq,) = (child for child in children if not isinstance(child, Token))
        for _ in range(len(children) - 1):
            seq = s.Not(seq, span=self._span(meta))
        negated: s.Seq = seq
        return negated

    def repeat(self, meta: Meta, children: list[Any]) -> s.Seq:
        element, (minimum, maximum), sign = children
        strategy = s.Strategy.NEXT if sign is None else s.Strategy(str(sign))
        return s.Repeat(element, minimum, maximum, strategy, span=self._span(meta))

    def one_or_more(self, _meta: Meta, _children: list[Token]) -> tuple[int, int | None]:
        return 1, None

    def zero_or_more(self, _meta: Meta, _children: list[Token]) -> tuple[int, int | None]:
        return 0, None

    def zero_or_one(self, _meta: Meta, _children: list[Token]) -> tuple[int, int | None]:
        return 0, 1

    def exactly(self, _meta: Meta, children: list[Token]) -> tuple[int, int | None]:
        return int(children[0]), int(children[0])

    def between(self, _meta: Meta, children: list[Token | None]) -> tuple[int, int | None]:
        least, most = children
        return int(least or 0), None if most is None else int(most)

    def ref(self, meta: Meta, children: list[Token]) -> s.Seq:
        return s.Ref(str(children[0]), span=self._span(meta))

    # --- subqueries and solution modifiers

    def sub_select(self, meta: Meta, children: list[Any]) -> s.SubSelect:
        select, pattern, modifiers, values = children
        return s.SubSelect(select, pattern, modifiers, values, span=self._span(meta))

    def modifiers(self, _meta: Meta, children: list[tuple[str, Any]]) -> s.Modifiers:
        return s.Modifiers(**dict(children))

    def group_by(self, _meta: Meta, children: list[s.GroupCondition]) -> tuple[str, Any]:
        return "group_by", tuple(children)

    def group_condition(self, _meta: Meta, children: list[Any]) -> s.GroupCondition:
        expression, *names = children
        variable = self._var(names[0]) if names and names[0] is not None else None
        return s.GroupCondition(expression, variable)

    def having(self, _meta: Meta, children: list[s.Expression]) -> tuple[str, Any]:
        return "having", tuple(children)

    def order_by(self, _meta: Meta, children: list[s.OrderCondition]) -> tuple[str, Any]:
        return "order_by", tuple(children)

    def order_condition(self, _meta: Meta, children: list[Any]) -> s.OrderCondition:
        *direction, expression = children
        return s.OrderCondition(expression, bool(direction) and direction[0].upper() == "DESC")

    def limit(self, _meta: Meta, children: list[Token]) -> tuple[str, Any]:
        return "limit", int(children[0])

    def offset(self, _meta: Meta, children: list[Token]) -> tuple[str, Any]:
        return "offset", int(children[0])
