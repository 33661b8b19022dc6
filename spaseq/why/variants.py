"""Variants of a query, each weaker in one respect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.normal import normalise
from spaseq.events import LATEST
from spaseq.language.scope import gpm_variables, mentioned, references
from spaseq.language.syntax import (
    UNITS,
    All,
    Bounded,
    Conjunction,
    Disjunction,
    Filter,
    Gpm,
    Not,
    Query,
    Ref,
    Repeat,
    Seq,
    Strategy,
    Var,
    Window,
    WindowKind,
)
from spaseq.language.syntax import (
    Sequence as Elements,
)
from spaseq.language.syntax.printing import print_expression, print_sequence
from spaseq.language.syntax.terms import decimal


@dataclass(frozen=True, slots=True)
class Variant:
    """A query that differs from a given one in one respect (``change``), and why it may have a match.

    ``reason``: what holds for the given query if only the variant has a match. ``advice``: what to write
    then; None if ``reason`` is sufficient. ``joined``: the variable that GPMs share in the given query, but
    not in this one.
    """

    query: Query
    change: str
    reason: str
    advice: str | None = None
    joined: str | None = None


@dataclass(frozen=True, slots=True)
class PartialQuery:
    """A query up to the first ``count`` elements of its sequence; all of it if None."""

    whole: Query
    count: int | None = None

    @property
    def query(self) -> Query:
        """Return the query cut short."""
        return self._cut(self.whole)

    def of(self, variant: Query) -> Query | None:
        """Return a variant of the query cut short at the same step; None if nothing differs up to there."""
        if self.count is None:
            return variant
        before, after = self.whole.sequence, variant.sequence
        assert isinstance(before, Elements)
        if after == before:
            return self._cut(variant)
        if not isinstance(after, Elements):
            return variant
        if _cut(after, range(min(self.count, len(after.elements)))) == _cut(before, range(self.count)):
            return None  # a later element differs
        return replace(self, count=self.count - len(before.elements) + len(after.elements))._cut(variant)

    def _cut(self, query: Query) -> Query:
        sequence = query.sequence
        if self.count is None or not isinstance(sequence, Elements):
            return query
        return with_sequence(query, _cut(sequence, range(self.count)))


def steps(query: Query) -> Iterator[PartialQuery]:
    """Yield the query up to the first element of its sequence, up to the second, and so on; then all of it.

    Does not cut after a negation, which depends on what follows it.
    """
    sequence = query.sequence
    if isinstance(sequence, Elements):
        for count in range(1, len(sequence.elements)):
            if not _is_negation(sequence.elements[count - 1]):
                yield PartialQuery(query, count)
    yield PartialQuery(query)


def with_sequence(query: Query, sequence: Seq) -> Query:
    """Return the query with another sequence, without filters on variables that it does not bind.

    Unused GPMs stay: their solutions are in the partitions.
    """
    named = {ref.name for ref, _ in references(sequence)}
    bound = frozenset().union(*(gpm_variables(gpm) for gpm in query.gpms if gpm.name in named))
    filters = tuple(item for item in query.filters if mentioned(item.condition) <= bound)
    return replace(query, sequence=sequence, filters=filters)


def sliding(query: Query) -> Iterator[Variant]:
    """Yield the query with SLIDING windows instead of TUMBLING ones."""
    window = query.window
    size = f"{decimal(window.size)} {window.unit}"
    if window.kind is WindowKind.TUMBLING:
        yield Variant(
            replace(query, window=replace(window, kind=WindowKind.SLIDING)),
            f"WITHIN {size} SLIDING",
            f"windows of {size} TUMBLING cut it",
            "with SLIDING",
        )


def variants(query: Query) -> Iterator[Variant]:
    """Yield weaker variants with the same window, the likeliest mistake first."""
    yield from _sequences(query, _without_negation, "something negated comes in between")
    yield from _sequences(query, _without_bound, "WITHIN inside of the sequence is too short")
    yield from _joined(query)
    yield from _sequences(
        query,
        lambda seq: _with_operators(seq, Strategy.STRICT, Strategy.NEXT),
        "other events come in between",
    )
    yield from _sequences(
        query,
        lambda seq: _with_operators(_both(seq), Strategy.NEXT, Strategy.ANY),
        "a relevant event comes too early, and ; may not skip it",
    )
    yield from _sequences(query, _once, "there are too few iterations")
    yield from _without_filters(query)


def longer(query: Query) -> Iterator[Variant]:
    """Yield SLIDING windows of twice the size, four times the size, and so on, up to 64 bits."""
    window = query.window
    given = f"{decimal(window.size)} {window.unit}"
    for power in range(1, 11):
        size = window.size * 2**power
        if size * (UNITS[window.unit] or 1) > LATEST:
            return
        text = f"{decimal(size)} {window.unit}"
        # Name the kind that was tried: a TUMBLING window of that size may cut the match.
        kind = " SLIDING" if window.kind is WindowKind.TUMBLING else ""
        wider = Window(size, window.unit, WindowKind.SLIDING, span=window.span)
        changed = replace(query, window=wider)
        reason = f"a window of {given} is too short"
        yield Variant(changed, f"WITHIN {text} SLIDING", reason, f"with {text}{kind}")


def joined_alone(query: Query) -> Query:
    """Return a query that requires of its GPMs' events only their order and their shared variables.

    It skips any events, has no FILTER in WHERE or at the top of a GPM, and the longest ``longer`` window.
    """
    longest = [query, *(variant.query for variant in longer(query))][-1]
    gpms = []
    for gpm in query.gpms:
        kept = tuple(element for element in gpm.pattern.elements if not isinstance(element, Filter))
        gpms.append(replace(gpm, pattern=replace(gpm.pattern, elements=kept)))
    sequence = _with_operators(_both(query.sequence), Strategy.NEXT, Strategy.ANY)
    return replace(longest, sequence=sequence, gpms=tuple(gpms), filters=())


def _sequences(query: Query, change: Callable[[Seq], Iterator[Seq] | Seq], reason: str) -> Iterator[Variant]:
    changed = change(query.sequence)
    for sequence in [changed] if isinstance(changed, Seq) else changed:
        if sequence != query.sequence:
            text = f"SEQ({print_sequence(sequence)})"
            yield Variant(with_sequence(query, sequence), text, reason, f"with {text}")


def _joined(query: Query) -> Iterator[Variant]:
    """Yield variants for each variable that GPMs share: with PARTITION BY it, and without sharing it."""
    strict = print_sequence(_with_operators(query.sequence, Strategy.STRICT, Strategy.NEXT))
    if not query.partition and strict != print_sequence(query.sequence):
        for name in compile_pattern(normalise(query)).shared:
            text = f"PARTITION BY ?{name}"
            yield Variant(
                replace(query, partition=(Var(name),)),
                text,
                f"events of another ?{name} come in between",
                f"with {text}",
            )
    negated = {ref.name for ref, inside in references(query.sequence) if inside}
    gpms = [gpm for gpm in query.gpms if gpm.name not in negated]
    for name in sorted(frozenset().union(*map(gpm_variables, gpms))):
        sharing = [gpm for gpm in gpms if name in gpm_variables(gpm)]
        if len(sharing) < 2:
            continue
        apart = {gpm.name: renamed(gpm, name, f"{name}_{gpm.name}") for gpm in sharing[1:]}
        names = " and ".join(gpm.name for gpm in sharing)
        yield Variant(
            replace(
                query,
                gpms=tuple(apart.get(gpm.name, gpm) for gpm in query.gpms),
                partition=tuple(variable for variable in query.partition if variable.name != name),
            ),
            f"?{name} of {names} need not be the same",
            f"{names} never have the same ?{name} where it is wanted",
            joined=name,
        )


def _without_filters(query: Query) -> Iterator[Variant]:
    for gpm in query.gpms:
        elements = gpm.pattern.elements
        for number, element in enumerate(elements):
            if isinstance(element, Filter):
                rest = replace(gpm.pattern, elements=elements[:number] + elements[number + 1 :])
                changed = replace(gpm, pattern=rest)
                gpms = tuple(changed if other is gpm else other for other in query.gpms)
                yield _without(replace(query, gpms=gpms), element, f"GPM {gpm.name}")
    for number, item in enumerate(query.filters):
        others = query.filters[:number] + query.filters[number + 1 :]
        yield _without(replace(query, filters=others), item, "WHERE")


def _without(query: Query, item: Filter, where: str) -> Variant:
    text = f"FILTER({print_expression(item.condition)})"
    return Variant(query, f"{where} without {text}", f"{text} of {where} never holds where it is wanted")


# --- sequences


def _children(seq: Seq) -> tuple[Seq, ...]:
    match seq:
        case Elements(parts) | Conjunction(parts) | Disjunction(parts) | All(parts):
            return parts
        case Repeat(element) | Not(element) | Bounded(element):
            return (element,)
        case Ref():
            return ()


def _with(seq: Seq, number: int, child: Seq) -> Seq:
    """Return a sequence with another one as its ``number``-th part."""
    match seq:
        case Elements(elements):
            return replace(seq, elements=(*elements[:number], child, *elements[number + 1 :]))
        case Conjunction(parts) | Disjunction(parts) | All(parts):
            return replace(seq, operands=(*parts[:number], child, *parts[number + 1 :]))
        case Repeat() | Not() | Bounded():
            return replace(seq, element=child)
        case Ref():
            return seq


def _everywhere(seq: Seq, change: Callable[[Seq], Iterator[Seq]]) -> Iterator[Seq]:
    """Yield a sequence with a change at one place, for every place and every change there."""
    yield from change(seq)
    for number, child in enumerate(_children(seq)):
        for changed in _everywhere(child, change):
            yield _with(seq, number, changed)


def _without_negation(seq: Seq) -> Iterator[Seq]:
    def change(node: Seq) -> Iterator[Seq]:
        if isinstance(node, Elements):
            for number, element in enumerate(node.elements):
                kept = [n for n in range(len(node.elements)) if n != number]
                if _is_negation(element) and kept:
                    yield _cut(node, kept)

    return _everywhere(seq, change)


def _without_bound(seq: Seq) -> Iterator[Seq]:
    def change(node: Seq) -> Iterator[Seq]:
        if isinstance(node, Bounded) and not _is_negation(node):
            yield node.element

    return _everywhere(seq, change)


def _once(seq: Seq) -> Iterator[Seq]:
    def change(node: Seq) -> Iterator[Seq]:
        if isinstance(node, Repeat) and node.minimum > 1:
            yield replace(node, minimum=1)

    return _everywhere(seq, change)


def _with_operators(seq: Seq, old: Strategy, new: Strategy) -> Seq:
    """Return the sequence with one operator replaced by another everywhere."""
    for number, child in enumerate(_children(seq)):
        seq = _with(seq, number, _with_operators(child, old, new))
    if isinstance(seq, Elements):
        return replace(seq, operators=tuple(new if op is old else op for op in seq.operators))
    if isinstance(seq, Repeat) and seq.strategy is old:
        return replace(seq, strategy=new)
    return seq


def _both(seq: Seq) -> Seq:
    return _with_operators(seq, Strategy.STRICT, Strategy.NEXT)


def _is_negation(seq: Seq) -> bool:
    return isinstance(seq.element if isinstance(seq, Bounded) else seq, Not)


def _cut(seq: Elements, kept: Sequence[int]) -> Seq:
    """Return some elements of a sequence, each with the operator before it."""
    elements = tuple(seq.elements[number] for number in kept)
    if len(elements) == 1:
        return elements[0]
    operators = tuple(seq.operators[number - 1] for number in kept[1:])
    return replace(seq, elements=elements, operators=operators)


def renamed(gpm: Gpm, old: str, new: str) -> Gpm:
    """Return a GPM with a variable renamed."""

    def change(part: Any) -> Any:
        if isinstance(part, Var):
            return replace(part, name=new) if part.name == old else part
        if isinstance(part, tuple):
            return tuple(map(change, part))
        if is_dataclass(part) and not isinstance(part, type):
            return replace(part, **{f.name: change(getattr(part, f.name)) for f in fields(part) if f.compare})
        return part

    changed: Gpm = change(gpm)
    return changed
