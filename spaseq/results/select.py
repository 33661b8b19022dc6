"""A match's solutions Ω → the rows of SELECT and the triples of CONSTRUCT (semantics, section 6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyoxigraph as ox

from spaseq.automaton.pattern import SequencePattern
from spaseq.language.rewrite import substitute
from spaseq.language.syntax import Aggregate, Construct, Expression, Select, TriplePattern, Var
from spaseq.language.syntax.printing import print_group
from spaseq.matching.context import Context
from spaseq.matching.model import Found, Row, Solution
from spaseq.patterns.expressions.comparison import sort_key
from spaseq.patterns.expressions.compiled import SEED, ExpressionError, compile_filter, compile_value
from spaseq.patterns.expressions.functions import new_seed
from spaseq.patterns.expressions.walk import labels
from spaseq.results.event import ConstructedTriple
from spaseq.terms.dictionary import Dictionary, Term


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression of SELECT, HAVING or ORDER BY, with variables in place of its aggregates."""

    evaluate: Callable[[Solution], int]
    aggregates: tuple[tuple[str, Callable[[Sequence[Row]], int]], ...]


class Projector:
    """SELECT, its aggregates and modifiers, or CONSTRUCT, applied to one match at a time."""

    def __init__(self, pattern: SequencePattern, context: Context, dictionary: Dictionary) -> None:
        query = pattern.query
        self._context = context
        self._dictionary = dictionary
        self._form = query.form
        self._modifiers = query.modifiers
        #: How many of the first rows of each match are left out.
        self.offset = query.modifiers.offset
        self._aggregates = 0
        self._labels = 0
        everything = bound_variables(pattern)
        select = query.form if isinstance(query.form, Select) else Select(None)
        self.variables = (
            everything if select.items is None else tuple(item.variable.name for item in select.items)
        )
        self._select = select
        self._computed = [
            (item.variable.name, self._value(item.expression))
            for item in select.items or ()
            if item.expression is not None
        ]
        self._keys = [
            (c.variable.name if c.variable else None, self._value(c.expression))
            for c in self._modifiers.group_by
        ]
        self._having = [self._test(condition) for condition in self._modifiers.having]
        self._order = [(self._value(c.expression), c.descending) for c in self._modifiers.order_by]
        self._grouped = bool(self._keys) or self._aggregates > 0
        unique = select.distinct or select.reduced
        #: Whether rows are exactly solutions of Ω: they have no new terms, and their number is known.
        self.is_plain = not (self._grouped or self._computed or self._having or self._order or unique)

    def rows(self, found: Found) -> list[Solution]:
        """Return the rows of one match after DISTINCT, ORDER BY and OFFSET, before LIMIT."""
        if self.is_plain:
            return [*found.project(self.variables)[self._modifiers.offset :]]
        groups = self._groups(found.rows) if self._grouped else [(row.binding, (row,)) for row in found.rows]
        extended: list[tuple[Solution, Sequence[Row]]] = []
        for binding, members in groups:
            solution = dict(binding)
            if self._labels:
                solution[SEED] = new_seed()
            for name, value in self._computed:
                term = self._evaluate(value, solution, members)
                if term is not None:
                    solution[name] = term
            if all(self._passes(value, test, solution, members) for value, test in self._having):
                extended.append((solution, members))
        for value, descending in reversed(self._order):
            extended.sort(key=partial(self._sort_key, value), reverse=descending)
        projected: list[Solution] = [{v: s[v] for v in self.variables if v in s} for s, _ in extended]
        if self._select.distinct or self._select.reduced:
            projected = list({tuple(sorted(row.items())): row for row in projected}.values())
        return projected[self._modifiers.offset :]

    def construct(self, found: Found) -> tuple[ConstructedTriple, ...]:
        """Return the triples of CONSTRUCT for one match, each once, without impossible ones."""
        if not isinstance(self._form, Construct):
            return ()
        triples: dict[ConstructedTriple, None] = {}
        for solution in self.rows(found):
            blank: dict[ox.BlankNode, ox.BlankNode] = {}
            for pattern in self._form.template:
                triple = self._instantiate(pattern, solution, blank)
                if triple is not None:
                    triples[triple] = None
        return tuple(triples)

    def _instantiate(
        self, pattern: TriplePattern, solution: Solution, blank: dict[ox.BlankNode, ox.BlankNode]
    ) -> ConstructedTriple | None:
        def fill(part: object) -> Term | None:
            if isinstance(part, Var):
                return self._dictionary.term(solution[part.name]) if part.name in solution else None
            if isinstance(part, ox.BlankNode):
                return blank.setdefault(part, ox.BlankNode())
            return part if isinstance(part, ox.NamedNode | ox.Literal) else None

        s, p, o = fill(pattern.subject), fill(pattern.predicate), fill(pattern.object)
        if s is None or o is None or isinstance(s, ox.Literal) or not isinstance(p, ox.NamedNode):
            return None
        return (s, p, o)

    def _groups(self, rows: Sequence[Row]) -> list[tuple[Solution, Sequence[Row]]]:
        """Return the groups of GROUP BY, or all rows as one group: the values of its keys, and its rows.

        Without GROUP BY, variables with one value in the whole match keep it.
        """
        if not self._keys:
            first, *others = (row.binding for row in rows)
            return [({v: t for v, t in first.items() if all(o.get(v) == t for o in others)}, rows)]
        groups: dict[tuple[int | None, ...], tuple[dict[str, int], list[Row]]] = {}
        for row in rows:
            values = [self._evaluate(value, row.binding, (row,)) for _, value in self._keys]
            key = tuple(values)
            if key not in groups:
                named = zip(self._key_names(), values, strict=True)
                groups[key] = ({name: v for name, v in named if name and v is not None}, [])
            groups[key][1].append(row)
        return list(groups.values())

    def _key_names(self) -> list[str | None]:
        plain = [
            c.expression.name if isinstance(c.expression, Var) else None for c in self._modifiers.group_by
        ]
        return [given or own for (given, _), own in zip(self._keys, plain, strict=True)]

    def _value(self, expression: Expression) -> _Value:
        plain, aggregates = self._take_out(expression)
        self._labels += labels(plain)
        return _Value(compile_value(plain, self._dictionary), aggregates)

    def _test(self, expression: Expression) -> tuple[_Value, Callable[[Solution], bool]]:
        plain, aggregates = self._take_out(expression)
        self._labels += labels(plain)
        return _Value(lambda _: 0, aggregates), compile_filter(plain, self._dictionary)

    def _take_out(
        self, expression: Expression
    ) -> tuple[Expression, tuple[tuple[str, Callable[[Sequence[Row]], int]], ...]]:
        aggregates: list[tuple[str, Callable[[Sequence[Row]], int]]] = []

        def replacement(node: Expression) -> Expression | None:
            if not isinstance(node, Aggregate):
                return None
            self._aggregates += 1
            aggregates.append((f" {self._aggregates}aggregate", self._context.summary(node)))
            return Var(aggregates[-1][0])

        return substitute(expression, replacement), tuple(aggregates)

    def _summarised(self, value: _Value, solution: Solution, members: Sequence[Row]) -> Solution:
        if not value.aggregates:
            return solution
        extended = dict(solution)
        for name, summary in value.aggregates:
            try:
                extended[name] = summary(members)
            except ExpressionError:
                continue
        return extended

    def _evaluate(self, value: _Value, solution: Solution, members: Sequence[Row]) -> int | None:
        try:
            return value.evaluate(self._summarised(value, solution, members))
        except ExpressionError:
            return None

    def _passes(
        self, value: _Value, test: Callable[[Solution], bool], solution: Solution, members: Sequence[Row]
    ) -> bool:
        return test(self._summarised(value, solution, members))

    def _sort_key(self, value: _Value, group: tuple[Solution, Sequence[Row]]) -> tuple[Any, ...]:
        term = self._evaluate(value, *group)
        return sort_key(None if term is None else self._dictionary.value(term))


def bound_variables(pattern: SequencePattern) -> tuple[str, ...]:
    """Return the variables of ``SELECT *``: those bound outside negations, in the order written."""
    names: dict[str, None] = {}
    for part in map(pattern.gpms.__getitem__, pattern.positive):
        written = re.findall(r"[?$](\w+)", print_group(part.gpm.pattern))
        extra = [v.name for v in (part.gpm.time, part.gpm.graph) if v is not None]
        names.update(dict.fromkeys(name for name in (*written, *extra) if name in part.variables))
    return tuple(names)
