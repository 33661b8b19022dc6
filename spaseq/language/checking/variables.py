"""Static checks of variables: where they are bound, which are group variables, where they may be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spaseq.language import syntax as s
from spaseq.language.checking.findings import Findings
from spaseq.language.checking.reach import Reached, needed, reached
from spaseq.language.reading.hints import nearest
from spaseq.language.scope import (
    gpm_certain,
    gpm_variables,
    group_variables,
    mentioned,
    operands,
    parts,
    plain_variables,
    references,
    variables,
    walk,
)
from spaseq.language.syntax.printing import print_sequence

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Kleene:
    """A repetition in SEQ: the GPMs in it, and the variables that every iteration binds anew."""

    node: s.Repeat
    gpms: frozenset[str]
    own: frozenset[str]


class VariableChecks:
    """All checks of a query's variables; every method raises QueryMeaningError or warns."""

    def __init__(self, query: s.Query, findings: Findings) -> None:
        self._query = query
        self._findings = findings
        self._bound: Mapping[str, frozenset[str]] = {gpm.name: gpm_variables(gpm) for gpm in query.gpms}
        refs = list(references(query.sequence))
        self._positive = {ref.name for ref, negated in refs if not negated}
        self._negated = {ref.name for ref, negated in refs if negated} - self._positive
        #: The variables that a match binds and that are visible everywhere.
        self._visible = self._of(self._positive)
        self._kleenes = [
            _Kleene(node, frozenset(ref.name for ref, _ in references(node)), own)
            for node, own in group_variables(query)
        ]

    def check(self) -> None:
        """Run all checks, in the order of the text."""
        computed = self._form()
        self._partition()
        for gpm in self._query.gpms:
            self._gpm(gpm)
        for condition in self._query.filters:
            self._filter(condition.condition, None)
            self._no_event(condition.condition)
        self._modifiers(computed)
        self._reach()

    def _reach(self) -> None:
        """Warn of filters that need values which are never bound before them."""
        places: dict[str, list[Reached]] = {}
        for place in reached(self._query, self._bound):
            places.setdefault(place[0].name, []).append(place)
        for gpm in self._query.gpms:
            here = places.get(gpm.name, [])
            if not here:
                continue
            known = self._bound[gpm.name].union(*(before for *_, before in here))
            for element in gpm.pattern.elements:
                if isinstance(element, s.Filter):
                    for name in sorted((needed(element.condition) & self._visible) - known):
                        self._never(gpm, element, name, negated=all(negated for _, negated, _ in here))

    def _never(self, gpm: s.Gpm, condition: s.Filter, name: str, negated: bool) -> None:
        found = (p for p in plain_variables(condition.condition) if p.name == name)
        binder = next(g.name for g in self._query.gpms if name in self._bound[g.name] and g.name != gpm.name)
        span = next((variable.span for variable in found), condition.span)
        if negated:
            message = f"?{name} is bound only after what follows !{gpm.name}, by {binder}: it bars nothing"
        else:
            message = f"?{name} is bound only after {gpm.name}, by {binder}: this filter never holds"
        self._findings.warn(f"{message}; ask it in {binder}, or in WHERE", span)

    def _of(self, names: Iterable[str]) -> frozenset[str]:
        return _NONE.union(*(self._bound[name] for name in names))

    # --- where a variable is bound

    def _known(self, variable: s.Var, names: frozenset[str]) -> None:
        if variable.name in names:
            return
        binder = next((gpm for gpm in sorted(self._negated) if variable.name in self._bound[gpm]), None)
        if binder is not None:
            hint = "what is not there has no values; only the negated GPM's own filters see them"
            raise self._findings.error(
                f"{variable} is bound only inside a negation, by {binder}", variable.span, hint
            )
        binder = next((gpm for gpm in sorted(self._bound) if variable.name in self._bound[gpm]), None)
        if binder is not None:
            hint = f"use {binder} in SEQ"
            raise self._findings.error(
                f"{variable} is bound only by {binder}, which SEQ does not use", variable.span, hint
            )
        alike = nearest(variable.name, names)
        raise self._findings.error(
            f"no GPM binds {variable}", variable.span, f"did you mean ?{alike}?" if alike else None
        )

    def _all_known(self, expression: s.Expression, names: frozenset[str]) -> None:
        for part in walk(expression):
            if isinstance(part, s.Var):
                self._known(part, names)
            elif isinstance(part, s.Prev):
                self._known(part.variable, names)
            elif isinstance(part, s.Exists):
                self._pattern(part.pattern, names, None)

    # --- the parts of a query

    def _form(self) -> frozenset[str]:
        """Check the query form; return the names that it computes."""
        form = self._query.form
        computed = frozenset(c.variable.name for c in self._query.modifiers.group_by if c.variable)
        if isinstance(form, s.Construct):
            for triple in form.template:
                for term in (triple.subject, triple.predicate, triple.object):
                    if isinstance(term, s.Var):
                        self._known(term, self._visible | computed)
        elif isinstance(form, s.Select):
            for item in form.items or ():
                asked = item.variable if item.expression is None else item.expression
                self._answer(asked, self._visible | computed)
                if item.expression is not None:
                    computed |= {item.variable.name}
            self._one_row(form)
        return computed

    def _one_row(self, form: s.Select) -> None:
        """Check aggregates without GROUP BY: a match is one row, but a group variable has many values."""
        computed = [item.expression for item in form.items or () if item.expression is not None]
        if self._query.modifiers.group_by or not any(
            isinstance(part, s.Aggregate) for expression in computed for part in walk(expression)
        ):
            return
        for item in form.items or ():
            for variable in plain_variables(item.variable if item.expression is None else item.expression):
                if any(variable.name in kleene.own for kleene in self._kleenes):
                    hint = f"take LAST({variable}), MIN, MAX…, or GROUP BY {variable}"
                    raise self._findings.error(
                        f"{variable} has one value per iteration, and the match is one row",
                        variable.span,
                        hint,
                    )

    def _answer(self, expression: s.Expression, names: frozenset[str]) -> None:
        self._all_known(expression, names)
        for part in walk(expression):
            if isinstance(part, s.Aggregate):
                self._aggregate(part)
        self._no_event(expression)

    def _no_event(self, expression: s.Expression) -> None:
        """Reject what needs an event in an expression that belongs to no GPM."""
        for part in _outside_aggregates(expression):
            if _looks_back(part):
                self._misplaced_prev(part)
        for part in walk(expression):
            if isinstance(part, s.Exists) and not _only_knowledge(part.pattern):
                hint = "move it into a GPM, or ask the background: EXISTS { GRAPH <…> { … } }"
                raise self._findings.error("EXISTS has no event to look into here", part.span, hint)

    def _modifiers(self, computed: frozenset[str]) -> None:
        names = self._visible | computed
        modifiers = self._query.modifiers
        for condition in modifiers.group_by:
            self._answer(condition.expression, self._visible)
        for expression in (*modifiers.having, *(order.expression for order in modifiers.order_by)):
            self._answer(expression, names)

    def _partition(self) -> None:
        for variable in self._query.partition:
            self._known(variable, self._visible)
            for gpm in self._query.gpms:
                if gpm.name in self._positive and variable.name not in gpm_certain(gpm):
                    how = "does not always bind" if variable.name in gpm_variables(gpm) else "does not bind"
                    hint = "every GPM outside a negation must tell which partition its events belong to"
                    place = self._findings.word(gpm.name, gpm.span, after="GPM")
                    message = f"GPM {gpm.name} {how} the partition variable {variable}"
                    raise self._findings.error(message, place, hint)

    # --- inside a GPM

    def _gpm(self, gpm: s.Gpm) -> None:
        self._event_variables(gpm)
        names = self._visible | gpm_variables(gpm)
        for element in gpm.pattern.elements:
            if isinstance(element, s.Filter):
                self._filter(element.condition, gpm)
            else:
                self._pattern(element, names, gpm)

    def _event_variables(self, gpm: s.Gpm) -> None:
        taken = variables(gpm.pattern)
        for word, variable in (("AT", gpm.time), ("AS", gpm.graph)):
            if variable is None:
                continue
            if variable.name in taken:
                hint = "choose a name of its own, and compare in a FILTER"
                raise self._findings.error(
                    f"{word} {variable}, and the pattern binds {variable} too", variable.span, hint
                )
            taken |= {variable.name}

    def _pattern(self, pattern: s.Pattern, names: frozenset[str], gpm: s.Gpm | None) -> None:
        """Check a pattern inside a GPM; ``names`` are known there.

        With ``gpm``, warn of variables of other GPMs, which only its top-level FILTERs see.
        """
        match pattern:
            case s.Filter(condition):
                self._inner(condition, names, gpm)
            case s.Bind(expression):
                self._inner(expression, names, gpm)
            case s.Group(elements) | s.Union(elements):
                inside = names | variables(pattern)
                for element in elements:
                    self._pattern(element, inside, gpm)
            case s.Optional(inner) | s.Minus(inner) | s.Graph(_, inner):
                self._pattern(inner, names | variables(inner), gpm)
            case s.ServicePattern():
                hint = "a query reads its streams and its background graphs, nothing else"
                raise self._findings.error("SERVICE would reach the network", pattern.span, hint)
            case s.SubSelect():
                self._sub_select(pattern, names, gpm)
            case s.Triples() | s.Values():
                pass

    def _inner(self, expression: s.Expression, names: frozenset[str], gpm: s.Gpm | None) -> None:
        """Check an expression that is not a top-level FILTER: it has SPARQL's meaning, within the event."""
        self._all_known(expression, names)
        foreign = self._visible - gpm_variables(gpm) if gpm else _NONE
        for part in walk(expression):
            if isinstance(part, s.Prev):
                self._misplaced_prev(part)
            if isinstance(part, s.Var) and part.name in foreign:
                self._findings.warn(
                    f"{part} is never bound here: only a FILTER directly in the {{ … }} of the GPM "
                    "sees values of other GPMs",
                    part.span,
                )

    def _sub_select(self, query: s.SubSelect, outside: frozenset[str], gpm: s.Gpm | None) -> None:
        inner = variables(query.pattern) | (variables(query.values) if query.values else _NONE)
        self._pattern(query.pattern, outside | inner, gpm)
        inner |= {c.variable.name for c in query.modifiers.group_by if c.variable}
        names = outside | inner
        asked: list[s.Expression] = [c.expression for c in query.modifiers.group_by]
        for item in query.select.items or ():
            if item.expression is not None:
                asked.append(item.expression)
            elif item.variable.name not in inner:
                alike = nearest(item.variable.name, inner)
                hint = f"did you mean ?{alike}?" if alike else None
                message = f"this subquery does not bind {item.variable}"
                raise self._findings.error(message, item.variable.span, hint)
        after = [*query.modifiers.having, *(order.expression for order in query.modifiers.order_by)]
        computed = {item.variable.name for item in query.select.items or () if item.expression is not None}
        for expression in (*asked, *after):
            self._all_known(expression, names | computed)
            for part in walk(expression):
                if _looks_back(part):
                    self._misplaced_prev(part)
                if isinstance(part, s.Aggregate) and part.name in ("FIRST", "LAST"):
                    hint = "a subquery has no iterations; use MIN, MAX or ORDER BY … LIMIT 1"
                    raise self._findings.error(f"{part.name} in a subquery", part.span, hint)

    # --- filters that look at the match

    def _filter(self, condition: s.Expression, gpm: s.Gpm | None) -> None:
        """Check a FILTER directly in a GPM, or in WHERE (``gpm`` is None)."""
        own = gpm_variables(gpm) if gpm else _NONE
        self._all_known(condition, self._visible | own)
        for part in walk(condition):
            if isinstance(part, s.Aggregate):
                if not mentioned(part):
                    hint = "count a variable of the repeated GPM: COUNT(?v)"
                    raise self._findings.error(f"{part.name} is not of a group variable", part.span, hint)
                self._aggregate(part)
        for part in _outside_aggregates(condition):
            if gpm is not None and _looks_back(part):
                self._prev(part, gpm)
        for variable in plain_variables(condition):
            for kleene in self._kleenes:
                if variable.name in kleene.own and (gpm is None or gpm.name not in kleene.gpms):
                    self._findings.warn(
                        f"{variable} has a value per iteration of {print_sequence(kleene.node)}: "
                        f"this asks for some iteration; say LAST({variable}), MIN({variable}) or "
                        f"MAX({variable}) for one",
                        variable.span,
                    )

    def _aggregate(self, aggregate: s.Aggregate) -> None:
        """Reject what an aggregate over iterations cannot contain."""
        for part in walk(aggregate):
            if isinstance(part, s.Exists):
                hint = "EXISTS asks the event at hand, and an aggregate is over values of all iterations"
                raise self._findings.error(f"EXISTS inside {aggregate.name}", part.span, hint)
            if isinstance(part, s.Prev):
                self._repeated(part)
        loops = {name: found for name in mentioned(aggregate) if (found := self._loops(name))}
        if loops and not frozenset[int]().union(*loops.values()).intersection(*loops.values()):
            names = " and ".join(f"?{name}" for name in sorted(loops))
            hint = "an aggregate is over the iterations of one loop: take one aggregate for each"
            raise self._findings.error(
                f"{names} are bound by different loops, in one {aggregate.name}", aggregate.span, hint
            )

    def _loops(self, name: str) -> frozenset[int]:
        """Return the innermost loops that bind a variable anew, in any alternative, by their places."""
        owners = {id(kleene.node): i for i, kleene in enumerate(self._kleenes) if name in kleene.own}
        return frozenset(
            i
            for i in owners.values()
            if not any(id(inner) in owners for inner in _inside(self._kleenes[i].node))
        )

    def _repeated(self, part: s.Prev | s.Aggregate) -> list[_Kleene]:
        """Return the loops that bind PREV's variable. Reject PREV of a variable that no loop binds anew."""
        names = mentioned(part)
        owners = [kleene for kleene in self._kleenes if names & kleene.own]
        if not owners:
            hint = "PREV takes a variable that each iteration of A+ or (A ; B)+ binds, and nothing else does"
            if isinstance(part, s.Prev):
                raise self._findings.error(
                    f"{part.variable} is not a group variable", part.variable.span, hint
                )
            raise self._findings.error(f"{part.name} is not of a group variable", part.span, hint)
        return owners

    def _prev(self, part: s.Expression, gpm: s.Gpm) -> None:
        assert isinstance(part, s.Prev | s.Aggregate)
        owners = self._repeated(part)
        if not any(gpm.name in kleene.gpms for kleene in owners):
            inner = print_sequence(owners[-1].node)
            instead = f"LAST({part.variable}) is its last" if isinstance(part, s.Prev) else "leave PREV out"
            hint = f"only the GPMs of {inner} have an iteration before; {instead}"
            raise self._findings.error(f"PREV outside of {inner}", part.span, hint)

    def _misplaced_prev(self, part: s.Expression) -> None:
        hint = "PREV stands in a FILTER directly in the { … } of a repeated GPM, or inside an aggregate"
        raise self._findings.error("PREV cannot stand here", part.span, hint)


def _looks_back(part: s.Expression) -> bool:
    """Return whether a part of an expression is PREV, of a variable or of an aggregate."""
    return isinstance(part, s.Prev) or (isinstance(part, s.Aggregate) and part.before)


def _outside_aggregates(expression: s.Expression) -> Iterator[s.Expression]:
    """Yield the parts of an expression that are not inside an aggregate."""
    yield expression
    if not isinstance(expression, s.Aggregate):
        for operand in operands(expression):
            yield from _outside_aggregates(operand)


def _inside(seq: s.Seq) -> Iterator[s.Seq]:
    """Yield all sequences inside ``seq``."""
    for part in parts(seq):
        yield part
        yield from _inside(part)


def _only_knowledge(pattern: s.Group) -> bool:
    return all(isinstance(element, s.Graph | s.Filter | s.Values | s.Bind) for element in pattern.elements)
