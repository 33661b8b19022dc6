"""Variables of a pattern, an expression or a GPM.

In-scope variables are SPARQL 1.1's (section 18.2.1). *Certain* variables are bound in every solution; in
doubt a variable is not certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from spaseq.language import syntax as s

_NONE: frozenset[str] = frozenset()


def variables(pattern: s.Pattern) -> frozenset[str]:
    """Return the in-scope names of ``pattern``, which its solutions may bind."""
    match pattern:
        case s.Triples(patterns):
            return _names(t for triple in patterns for t in (triple.subject, triple.predicate, triple.object))
        case s.Group(elements) | s.Union(elements):
            return _join(variables(element) for element in elements)
        case s.Optional(inner):
            return variables(inner)
        case s.Graph(name, inner) | s.ServicePattern(name, inner):
            return _names([name]) | variables(inner)
        case s.Bind(_, variable):
            return frozenset([variable.name])
        case s.Values(columns):
            return frozenset(v.name for v in columns)
        case s.SubSelect():
            if pattern.select.items is not None:
                return frozenset(item.variable.name for item in pattern.select.items)
            return variables(pattern.pattern) | (variables(pattern.values) if pattern.values else _NONE)
        case s.Filter() | s.Minus():
            return _NONE


def certain(pattern: s.Pattern) -> frozenset[str]:
    """Return the names that every solution of ``pattern`` binds.

    Not certain are variables of OPTIONAL, of only some UNION branches, of a VALUES column with UNDEF, of BIND
    and of a subquery's expressions (both may be errors), and of SERVICE SILENT.
    """
    match pattern:
        case s.Triples():
            return variables(pattern)
        case s.Group(elements):
            return _join(certain(element) for element in elements)
        case s.Union(branches):
            first, *others = (certain(branch) for branch in branches)
            return first.intersection(*others)
        case s.Graph(name, inner):
            return _names([name]) | certain(inner)
        case s.ServicePattern(name, inner, silent):
            return _NONE if silent else _names([name]) | certain(inner)
        case s.Values(columns, rows):
            return frozenset(v.name for i, v in enumerate(columns) if all(row[i] is not None for row in rows))
        case s.SubSelect():
            inside = certain(pattern.pattern) | (certain(pattern.values) if pattern.values else _NONE)
            if pattern.select.items is None:
                return inside
            return inside & {item.variable.name for item in pattern.select.items if item.expression is None}
        case s.Filter() | s.Bind() | s.Optional() | s.Minus():
            return _NONE


def mentioned(expression: s.Expression, exists: bool = True) -> frozenset[str]:
    """Return the names that ``expression`` uses, including PREV and aggregates.

    For an EXISTS, these are the names in its pattern that are visible from outside (``occurring``), or no
    names if ``exists`` is false.
    """
    match expression:
        case s.Var(name):
            return frozenset([name])
        case s.Prev(variable):
            return frozenset([variable.name])
        case s.Exists(pattern):
            return occurring(pattern) if exists else _NONE
        case _:
            return _join(mentioned(operand, exists) for operand in operands(expression))


def occurring(pattern: s.Pattern) -> frozenset[str]:
    """Return the names in ``pattern`` that a value from outside could replace.

    These are the names in scope, and those in FILTER, BIND and MINUS. A subquery exposes only what it
    projects.
    """
    match pattern:
        case s.Filter(condition):
            return mentioned(condition)
        case s.Bind(expression, variable):
            return mentioned(expression) | {variable.name}
        case s.Group(elements) | s.Union(elements):
            return _join(occurring(element) for element in elements)
        case s.Optional(inner) | s.Minus(inner):
            return occurring(inner)
        case s.Graph(name, inner) | s.ServicePattern(name, inner):
            return _names([name]) | occurring(inner)
        case s.Triples() | s.Values() | s.SubSelect():
            return variables(pattern)


def operands(expression: s.Expression) -> tuple[s.Expression, ...]:
    """Return the expressions directly inside ``expression``, without the pattern of an EXISTS."""
    match expression:
        case s.Unary(_, operand):
            return (operand,)
        case s.Binary(_, left, right):
            return (left, right)
        case s.In(operand, items):
            return (operand, *items)
        case s.Call(_, arguments) | s.FunctionCall(_, arguments):
            return arguments
        case s.Aggregate(_, argument):
            return () if argument is None else (argument,)
        case s.Var() | s.Constant() | s.Exists() | s.Prev():
            return ()


def walk(expression: s.Expression) -> Iterator[s.Expression]:
    """Yield ``expression`` and all expressions inside, outermost first, without the patterns of EXISTS."""
    yield expression
    for operand in operands(expression):
        yield from walk(operand)


def plain_variables(expression: s.Expression) -> Iterator[s.Var]:
    """Yield the variables of an expression outside aggregates and PREV."""
    if isinstance(expression, s.Var):
        yield expression
    elif not isinstance(expression, s.Aggregate):
        for operand in operands(expression):
            yield from plain_variables(operand)


def conjuncts(expression: s.Expression) -> Iterator[s.Expression]:
    """Yield the operands of the outermost ``&&``: filtering by it is filtering by each operand."""
    if isinstance(expression, s.Binary) and expression.operator == "&&":
        yield from conjuncts(expression.left)
        yield from conjuncts(expression.right)
    else:
        yield expression


def gpm_variables(gpm: s.Gpm) -> frozenset[str]:
    """Return the names that the GPM may bind: those of its pattern, of AT and of AS."""
    return variables(gpm.pattern) | _event_variables(gpm)


def group_variables(query: s.Query) -> list[tuple[s.Repeat, frozenset[str]]]:
    """Return the repetitions of SEQ, outermost first, each with its group variables in some alternative.

    A variable is a group variable of a repetition if, for some choice of a side of every ``|``, the rest of
    the sequence does not bind it. Partition variables are no group variables: they have one value.
    """
    bound = {gpm.name: gpm_variables(gpm) for gpm in query.gpms}
    single = frozenset(variable.name for variable in query.partition)
    return list(_groups(query.sequence, _NONE, bound, single))


def _groups(
    seq: s.Seq, outside: frozenset[str], bound: Mapping[str, frozenset[str]], single: frozenset[str]
) -> Iterator[tuple[s.Repeat, frozenset[str]]]:
    if isinstance(seq, s.Repeat) and not (seq.optional and seq.maximum == 1):
        inside = _join(bound.get(ref.name, _NONE) for ref, _ in references(seq))
        yield seq, inside - outside - single
    inner = parts(seq)
    for i, part in enumerate(inner):
        if isinstance(part, s.Ref):
            continue  # repeats nothing: a long sequence is not compared pairwise
        beside = () if isinstance(seq, s.Disjunction) else (p for j, p in enumerate(inner) if j != i)
        others = _join(_surely(p, bound) for p in beside if not _repeats(part, p))
        yield from _groups(part, outside | others, bound, single)


def _surely(seq: s.Seq, bound: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the names that are bound or joined in a sequence whichever alternatives are taken."""
    match seq:
        case s.Ref(name):
            return bound.get(name, _NONE)
        case s.Disjunction(operands):
            first, *others = (_surely(operand, bound) for operand in operands)
            return first.intersection(*others)
        case _:
            return _join(_surely(part, bound) for part in parts(seq))


def _repeats(kleene: s.Seq, negation: s.Seq) -> bool:
    """Return whether ``negation`` negates the single GPM that ``kleene`` repeats. It then joins nothing."""
    while isinstance(negation, s.Bounded):
        negation = negation.element
    while isinstance(kleene, s.Bounded):
        kleene = kleene.element
    return (
        isinstance(negation, s.Not)
        and isinstance(kleene, s.Repeat)
        and isinstance(kleene.element, s.Ref)
        and negation.element == kleene.element
    )


def parts(seq: s.Seq) -> tuple[s.Seq, ...]:
    """Return the sequences directly inside ``seq``."""
    match seq:
        case s.Ref():
            return ()
        case s.Not(element) | s.Repeat(element) | s.Bounded(element):
            return (element,)
        case s.Sequence(elements):
            return elements
        case s.Conjunction(operands) | s.Disjunction(operands) | s.All(operands):
            return operands


def gpm_certain(gpm: s.Gpm) -> frozenset[str]:
    """Return the names that the GPM binds in every solution: those of its pattern, of AT and of AS."""
    return certain(gpm.pattern) | _event_variables(gpm)


def references(seq: s.Seq) -> Iterator[tuple[s.Ref, bool]]:
    """Yield every name in SEQ, from left to right, and whether it is negated."""
    match seq:
        case s.Ref():
            yield seq, False
        case s.Not(element):
            yield from ((ref, True) for ref, _ in references(element))
        case s.Repeat(element) | s.Bounded(element):
            yield from references(element)
        case s.Sequence(parts) | s.Conjunction(parts) | s.Disjunction(parts) | s.All(parts):
            for part in parts:
                yield from references(part)


def split(gpm: s.Gpm, elsewhere: frozenset[str]) -> tuple[s.Group, tuple[s.Filter, ...]]:
    """Return the stateless part of the GPM's pattern, and its correlated filters (semantics, section 3).

    A top-level FILTER is correlated if it has an aggregate or PREV, or if it mentions (also inside EXISTS) a
    name that the GPM does not certainly bind and that is in ``elsewhere``, the names that other GPMs bind.
    The operands of an ``&&`` are split, so that only correlated ones count.
    """
    foreign = elsewhere - gpm_certain(gpm)
    kept: list[s.Pattern] = []
    correlated: list[s.Filter] = []
    for element in gpm.pattern.elements:
        if isinstance(element, s.Filter):
            own, others = _split_filter(element, foreign)
            kept += own
            correlated += others
        else:
            kept.append(element)
    return s.Group(tuple(kept), span=gpm.pattern.span), tuple(correlated)


def _split_filter(found: s.Filter, foreign: frozenset[str]) -> tuple[list[s.Filter], list[s.Filter]]:
    # The other operands stay together with it: beside an aggregate they decide which solutions it sees, and
    # beside PREV they apply only from the second iteration on, like PREV itself.
    if any(isinstance(part, s.Aggregate | s.Prev) for part in walk(found.condition)):
        return [], [found]
    parts = list(conjuncts(found.condition))
    apart = [not foreign.isdisjoint(mentioned(part)) for part in parts]
    if all(apart):
        return [], [found]
    if not any(apart):
        return [found], []
    filters = [s.Filter(part, span=found.span) for part in parts]
    return [f for f, a in zip(filters, apart, strict=True) if not a], [
        f for f, a in zip(filters, apart, strict=True) if a
    ]


def _event_variables(gpm: s.Gpm) -> frozenset[str]:
    return _names([gpm.time, gpm.graph])


def _names(terms: Iterable[object]) -> frozenset[str]:
    return frozenset(term.name for term in terms if isinstance(term, s.Var))


def _join(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return _NONE.union(*sets)
