"""SPARQL's syntax rules that a grammar cannot express (SPARQL 1.1, notes to section 19.8, and 18.2.4).

A blank node label stays within one basic graph pattern. BIND and AS name new variables. A query that
aggregates projects only what it groups by. Aggregates do not nest, and need a group; SPAseq also allows them
in the FILTERs of a GPM. Every function that a query calls must be known.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import BlankNode

from spaseq.errors import QueryMeaningError, QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.functions import wrong_call
from spaseq.language.reading.source import QueryText
from spaseq.language.scope import gpm_variables, operands, plain_variables, variables, walk


def check_rules(query: s.Query, source: QueryText) -> None:
    """Raise QuerySyntaxError at the first place where the query breaks a rule.

    Raises QueryMeaningError where it calls an unknown function.
    """
    rules = _Rules(source, functions=True)
    for gpm in query.gpms:
        rules.group(gpm.pattern, aggregates=True)
    for condition in query.filters:
        rules.expression(condition.condition, aggregates=True)
    in_scope = frozenset[str]().union(*map(gpm_variables, query.gpms))
    if isinstance(query.form, s.Select):
        rules.select(query.form, query.modifiers, in_scope, implicit=False)
    else:
        rules.modifiers(query.modifiers, in_scope)


def check_group_rules(group: s.Group, source: QueryText) -> None:
    """Check a group by plain SPARQL's rules: an unknown function is an error only when it is called."""
    _Rules(source, functions=False).group(group)


class _Rules:
    def __init__(self, source: QueryText, functions: bool) -> None:
        self._source = source
        self._functions = functions
        self._basic_patterns: dict[str, s.Triples] = {}  # by the blank node labels in them

    def _error(self, message: str, span: s.Span | None, hint: str | None = None) -> QuerySyntaxError:
        return self._source.error(QuerySyntaxError, message, span.start if span else 0, hint)

    # --- patterns

    def group(self, group: s.Group, aggregates: bool = False) -> None:
        seen: frozenset[str] = frozenset()
        for element in group.elements:
            if isinstance(element, s.Bind) and element.variable.name in seen:
                hint = "BIND names a new variable; to compare, write FILTER"
                raise self._error(
                    f"{element.variable} has a value already before this BIND", element.variable.span, hint
                )
            if isinstance(element, s.Filter):
                self.expression(element.condition, aggregates)
            else:
                self._pattern(element)
            seen |= variables(element)

    def _pattern(self, pattern: s.Pattern) -> None:
        match pattern:
            case s.Triples():
                self._blank_nodes(pattern)
            case s.Group():
                self.group(pattern)
            case s.Union(branches):
                for branch in branches:
                    self.group(branch)
            case s.Optional(inner) | s.Minus(inner) | s.Graph(_, inner) | s.ServicePattern(_, inner):
                self.group(inner)
            case s.Bind(expression):
                self.expression(expression)
            case s.SubSelect():
                self.group(pattern.pattern)
                in_scope = variables(pattern.pattern)
                if pattern.values is not None:  # joined before SELECT's expressions (18.2.4.3)
                    in_scope |= variables(pattern.values)
                self.select(pattern.select, pattern.modifiers, in_scope)

    def _blank_nodes(self, triples: s.Triples) -> None:
        for triple in triples.patterns:
            for term in (triple.subject, triple.object):
                if not isinstance(term, BlankNode):
                    continue
                if self._basic_patterns.setdefault(term.value, triples) is not triples:
                    hint = "a blank node belongs to one basic graph pattern; use a variable to join two"
                    raise self._error(
                        f"{term} stands for another blank node already", self._label(term, triple), hint
                    )

    def _label(self, term: BlankNode, triple: s.TriplePattern) -> s.Span | None:
        if triple.span is None:
            return None
        found = self._source.text.find(str(term), triple.span.start, triple.span.end)
        if found < 0:
            return triple.span
        return s.Span(found, found + len(str(term)), *self._source.place(found))

    # --- expressions

    def expression(self, expression: s.Expression, aggregates: bool = False) -> None:
        for part in walk(expression):
            if isinstance(part, s.Exists):
                self.group(part.pattern)
            elif isinstance(part, s.Aggregate):
                if not aggregates:
                    raise self._error(f"{part.name} cannot stand here: there are no groups", part.span)
                self._not_nested(part)
            elif isinstance(part, s.FunctionCall) and self._functions:
                wrong = wrong_call(part.function.value, len(part.arguments))
                if wrong is not None:
                    start = part.span.start if part.span else 0
                    raise self._source.error(QueryMeaningError, wrong[0], start, wrong[1])

    def _not_nested(self, aggregate: s.Aggregate) -> None:
        for operand in operands(aggregate):
            for part in walk(operand):
                if isinstance(part, s.Aggregate):
                    inner = f"PREV({part.name}(…))" if part.before else part.name
                    raise self._error(f"{inner} inside {aggregate.name}: aggregates do not nest", part.span)

    # --- SELECT and the modifiers

    def modifiers(self, modifiers: s.Modifiers, in_scope: frozenset[str]) -> None:
        for condition in modifiers.group_by:
            self.expression(condition.expression)
            if condition.variable is not None:
                self._fresh(condition.variable, in_scope)
        for expression in (*modifiers.having, *(order.expression for order in modifiers.order_by)):
            self.expression(expression, aggregates=True)

    def select(
        self, select: s.Select, modifiers: s.Modifiers, in_scope: frozenset[str], implicit: bool = True
    ) -> None:
        """Check SELECT. With ``implicit``, aggregates without GROUP BY form one group of all rows, which
        hides variables.

        A SPAseq query needs no implicit group: the match is the row (semantics, section 6).
        """
        self.modifiers(modifiers, in_scope)
        groups = bool(modifiers.group_by) or _aggregates(select, modifiers)
        if select.items is None:
            if groups:
                hint = "name what the groups have: SELECT ?key (COUNT(*) AS ?n)"
                raise self._error("SELECT * cannot be grouped", select.span, hint)
            return
        grouped = set(_group_names(modifiers))
        taken = in_scope | grouped
        projected: set[str] = set()
        for item in select.items:
            if item.variable.name in projected and item.expression is None:
                raise self._error(f"{item.variable} is selected twice", item.variable.span)
            projected.add(item.variable.name)
            if item.expression is not None:
                self.expression(item.expression, aggregates=True)
                self._fresh(item.variable, taken)
            if modifiers.group_by or (groups and implicit):
                self._grouped(item.variable if item.expression is None else item.expression, grouped)
            if item.expression is not None:
                grouped.add(item.variable.name)
            taken |= {item.variable.name}

    def _fresh(self, variable: s.Var, taken: Iterable[str]) -> None:
        if variable.name in taken:
            hint = "AS names a new variable: choose another name"
            raise self._error(f"{variable} is defined already", variable.span, hint)

    def _grouped(self, expression: s.Expression, grouped: Iterable[str]) -> None:
        for variable in plain_variables(expression):
            if variable.name not in grouped:
                hint = f"add GROUP BY {variable}, or take SAMPLE({variable})"
                raise self._error(f"{variable} is neither grouped nor aggregated", variable.span, hint)


def _aggregates(select: s.Select, modifiers: s.Modifiers) -> bool:
    projected = [item.expression for item in select.items or () if item.expression is not None]
    ordered = [order.expression for order in modifiers.order_by]
    parts = (part for e in (*projected, *modifiers.having, *ordered) for part in walk(e))
    return any(isinstance(part, s.Aggregate) for part in parts)


def _group_names(modifiers: s.Modifiers) -> Iterable[str]:
    for condition in modifiers.group_by:
        if condition.variable is not None:
            yield condition.variable.name
        elif isinstance(condition.expression, s.Var):
            yield condition.expression.name
