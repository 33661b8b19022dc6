"""Grammar rules → syntax tree: the query, its sequence, its modifiers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lark import Token
from pyoxigraph import NamedNode

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.derivation import Extent
from spaseq.language.reading import shared
from spaseq.language.reading.expressions import MOST
from spaseq.language.reading.patterns import PatternBuilder

#: Least and most iterations, and whether zero iterations are SPARQL's left join.
_Quantifier = tuple[int, int | None, bool]


@dataclass(frozen=True, slots=True)
class _Seq:
    """The contents of ``SEQ(…)``, and where SEQ begins."""

    seq: s.Seq
    start: int


@dataclass(frozen=True, slots=True)
class _Clause:
    """EMIT, CONSUME or AFTER MATCH SKIP, and where it begins."""

    word: str
    value: s.Emit | s.Consume | s.Skip
    start: int


@dataclass(frozen=True, slots=True)
class _Where:
    """The contents of WHERE."""

    sequence: s.Seq
    gpms: tuple[s.Gpm, ...]
    filters: tuple[s.Filter, ...]


class QueryBuilder:
    """Builds a query, its sequence and its clauses; ``patterns`` builds what is in them."""

    def __init__(self, patterns: PatternBuilder) -> None:
        self._text = patterns

    def query(self, _place: Extent, children: list[Any]) -> s.Query:
        _, register, form, window, partition, *rest, modifiers = children
        sources = [item for item in rest if isinstance(item, s.StreamDeclaration | NamedNode)]
        where, *clauses = rest[len(sources) :]
        chosen = self._clauses(clauses)
        return s.Query(
            form=form,
            window=window,
            streams=tuple(item for item in sources if isinstance(item, s.StreamDeclaration)),
            sequence=where.sequence,
            gpms=where.gpms,
            partition=partition or (),
            knowledge=tuple(item for item in sources if isinstance(item, NamedNode)),
            filters=where.filters,
            emit=chosen.get(s.Emit, s.Emit.ALL),
            consume=chosen.get(s.Consume, s.Consume.NONE),
            skip=chosen.get(s.Skip),
            modifiers=modifiers,
            register=register,
            prefixes=shared.prefixes(tuple(self._text.prefixes.items())),
            text=self._text.source.text,
            filename=self._text.source.filename,
        )

    def bare_group(self, _place: Extent, children: list[Any]) -> s.Group:
        group: s.Group = children[1]
        return group

    # --- the parts of a query

    def register(self, place: Extent, children: list[Any]) -> s.Register:
        kind, iri = children
        return s.Register(s.RegisterKind(kind.upper()), iri, span=self._text.span(place))

    def select(self, place: Extent, children: list[Any]) -> s.Select:
        how, *items = children
        star = isinstance(items[0], Token)
        word = "" if how is None else how.upper()
        span = self._text.span(place)
        return s.Select(None if star else tuple(items), word == "DISTINCT", word == "REDUCED", span=span)

    def select_item(self, _place: Extent, children: list[Any]) -> s.Projection:
        *expression, variable = children
        return s.Projection(self._text.variable(variable), *expression)

    def ask(self, place: Extent, _children: list[Token]) -> s.Ask:
        return s.Ask(span=self._text.span(place))

    def construct(self, place: Extent, children: list[s.Triples | None]) -> s.Construct:
        (triples,) = children
        template = () if triples is None else triples.patterns
        for triple in template:
            if not isinstance(triple.predicate, s.Var | NamedNode):
                start = 0 if triple.span is None else triple.span.start
                message = "a template cannot have a property path: which triples would it build?"
                raise self._text.source.error(QuerySyntaxError, message, start)
        return s.Construct(template, span=self._text.span(place))

    def within(self, place: Extent, children: list[Any]) -> s.Window:
        size, unit, kind = children
        how = s.WindowKind(kind.upper()) if kind else s.WindowKind.TUMBLING
        return s.Window(*self._length(size, unit), how, span=self._text.span(place))

    def _length(self, size: Token, unit: Token) -> tuple[int | Fraction, str]:
        """Return a number and its unit, checked to fit 64 bits in microseconds, or in events."""
        plural = shared.name(unit.upper().removesuffix("S") + "S")
        exact = Fraction(size)
        if exact * (s.UNITS[plural] or 1) > MOST:
            what = "events" if s.UNITS[plural] is None else "microseconds"
            hint = f"the most is {MOST} {what}"
            raise self._text.error(f"{size} {unit} is beyond 64 bits", size.start_pos or 0, hint)
        if exact.denominator > 1 and s.UNITS[plural] is None:
            raise self._text.error(f"{size} {unit}: events are counted in whole numbers", size.start_pos or 0)
        return (exact.numerator if exact.denominator == 1 else exact), plural

    def partition(self, _place: Extent, children: list[Token]) -> tuple[s.Var, ...]:
        return tuple(self._text.variable(token) for token in children)

    def from_stream(self, place: Extent, children: list[Any]) -> s.StreamDeclaration:
        name, iri = children
        return shared.declaration(str(name), iri, self._text.span(place))

    def from_named(self, _place: Extent, children: list[NamedNode]) -> NamedNode:
        return children[0]

    def _clauses(self, clauses: list[_Clause]) -> dict[type, Any]:
        """Return EMIT, CONSUME and AFTER MATCH SKIP by type.

        Each may occur once, and AFTER MATCH SKIP only without the others.
        """
        chosen: dict[type, Any] = {}
        for clause in clauses:
            if type(clause.value) in chosen:
                raise self._text.error(f"a second {clause.word}", clause.start, "say it once")
            if chosen and s.Skip in (*chosen, type(clause.value)):
                hint = "SKIP keeps one match of each first event, and says which; leave the other out"
                raise self._text.error("AFTER MATCH SKIP stands without EMIT and CONSUME", clause.start, hint)
            chosen[type(clause.value)] = clause.value
        return chosen

    def emit(self, place: Extent, children: list[Token]) -> _Clause:
        return _Clause("EMIT", s.Emit(children[0].upper()), place.start_pos)

    def consume(self, place: Extent, children: list[Token]) -> _Clause:
        return _Clause("CONSUME", s.Consume(children[0].upper()), place.start_pos)

    def skip(self, place: Extent, children: list[s.Skip]) -> _Clause:
        return _Clause("AFTER MATCH SKIP", replace(children[0], span=self._text.span(place)), place.start_pos)

    def past_last_event(self, _place: Extent, _children: list[Token]) -> s.Skip:
        return s.Skip(s.SkipMode.PAST_LAST_EVENT)

    def to_next_event(self, _place: Extent, _children: list[Token]) -> s.Skip:
        return s.Skip(s.SkipMode.TO_NEXT_EVENT)

    def to_first(self, _place: Extent, children: list[Token]) -> s.Skip:
        return s.Skip(s.SkipMode.TO_FIRST, str(children[0]))

    def to_last(self, _place: Extent, children: list[Token]) -> s.Skip:
        return s.Skip(s.SkipMode.TO_LAST, str(children[0]))

    def where(self, place: Extent, children: list[Any]) -> _Where:
        sequences = [child for child in children[:2] if child is not None]
        if not sequences:
            hint = "say in which order the GPMs match: WHERE { SEQ(A ; B) DEFINE GPM A … }"
            raise self._text.error("this WHERE has no SEQ", place.start_pos, hint)
        if len(sequences) > 1:
            raise self._text.error("a second SEQ: a query has exactly one", sequences[1].start)
        return _Where(
            sequence=sequences[0].seq,
            gpms=tuple(child for child in children if isinstance(child, s.Gpm)),
            filters=tuple(child for child in children if isinstance(child, s.Filter)),
        )

    def gpm(self, place: Extent, children: list[Any]) -> s.Gpm:
        name, streams, time, graph, pattern = children
        return s.Gpm(
            shared.name(name),
            streams,
            pattern,
            time=None if time is None else self._text.variable(time),
            graph=None if graph is None else self._text.variable(graph),
            span=self._text.span(place),
        )

    def gpm_streams(self, _place: Extent, children: list[Token]) -> tuple[str, ...]:
        return shared.names(tuple(map(str, children)))

    # --- sequences

    def seq(self, place: Extent, children: list[s.Seq]) -> _Seq:
        return _Seq(children[0], place.start_pos)

    def disjunction(self, place: Extent, children: list[s.Seq]) -> s.Seq:
        return s.Disjunction(tuple(children), span=self._text.span(place))

    def conjunction(self, place: Extent, children: list[s.Seq]) -> s.Seq:
        return s.Conjunction(tuple(children), span=self._text.span(place))

    def sequence(self, place: Extent, children: list[Any]) -> s.Seq:
        if len(children) == 1:
            element: s.Seq = children[0]
            return element
        operators = tuple(s.Strategy(str(sign)) for sign in children[1::2])
        return s.Sequence(tuple(children[::2]), operators, span=self._text.span(place))

    def any_order(self, place: Extent, children: list[s.Seq]) -> s.Seq:
        return s.All(tuple(children), span=self._text.span(place))

    def negation(self, place: Extent, children: list[Any]) -> s.Seq:
        (seq,) = (child for child in children if not isinstance(child, Token))
        for _ in range(len(children) - 1):
            seq = s.Not(seq, span=self._text.span(place))
        negated: s.Seq = seq
        return negated

    def repeat(self, place: Extent, children: list[Any]) -> s.Seq:
        element, (minimum, maximum, optional), second, sign = children
        strategy = s.Strategy.NEXT if sign is None else s.Strategy(str(sign))
        span = self._text.span(place)
        return s.Repeat(element, minimum, maximum, strategy, second is not None, optional, span=span)

    def bounded(self, place: Extent, children: list[Any]) -> s.Seq:
        element, size, unit = children
        exact, plural = self._length(size, unit)
        if s.UNITS[plural] is None:
            hint = "an element is bounded in time: WITHIN 5 SECONDS; the query's own WITHIN may count events"
            raise self._text.error("WITHIN … EVENTS on an element", size.start_pos or 0, hint)
        said = self._text.source.span(size.start_pos or 0, unit.end_pos or 0)
        return s.Bounded(element, s.Duration(exact, plural, span=said), span=self._text.span(place))

    def one_or_more(self, _place: Extent, _children: list[Token]) -> _Quantifier:
        return 1, None, False

    def zero_or_more(self, _place: Extent, _children: list[Token]) -> _Quantifier:
        return 0, None, True

    def zero_or_one(self, _place: Extent, _children: list[Token]) -> _Quantifier:
        return 0, 1, True

    def exactly(self, _place: Extent, children: list[Token]) -> _Quantifier:
        number = self._text.integer(children[0])
        return number, number, False

    def between(self, _place: Extent, children: list[Token | None]) -> _Quantifier:
        least, most = (None if token is None else self._text.integer(token) for token in children)
        return least or 0, most, False

    def ref(self, place: Extent, children: list[Token]) -> s.Seq:
        return shared.ref(str(children[0]), self._text.span(place))

    # --- subqueries and solution modifiers

    def sub_select(self, place: Extent, children: list[Any]) -> s.SubSelect:
        select, pattern, modifiers, values = children
        return s.SubSelect(select, pattern, modifiers, values, span=self._text.span(place))

    def modifiers(self, _place: Extent, children: list[tuple[str, Any]]) -> s.Modifiers:
        return s.Modifiers(**dict(children))

    def group_by(self, _place: Extent, children: list[s.GroupCondition]) -> tuple[str, Any]:
        return "group_by", tuple(children)

    def group_condition(self, _place: Extent, children: list[Any]) -> s.GroupCondition:
        expression, *names = children
        variable = self._text.variable(names[0]) if names and names[0] is not None else None
        return s.GroupCondition(expression, variable)

    def having(self, _place: Extent, children: list[s.Expression]) -> tuple[str, Any]:
        return "having", tuple(children)

    def order_by(self, _place: Extent, children: list[s.OrderCondition]) -> tuple[str, Any]:
        return "order_by", tuple(children)

    def order_condition(self, _place: Extent, children: list[Any]) -> s.OrderCondition:
        *direction, expression = children
        return s.OrderCondition(expression, bool(direction) and direction[0].upper() == "DESC")

    def limit(self, _place: Extent, children: list[Token]) -> tuple[str, Any]:
        return "limit", self._text.integer(children[0])

    def offset(self, _place: Extent, children: list[Token]) -> tuple[str, Any]:
        return "offset", self._text.integer(children[0])
