"""Advice of ``spaseq check``: valid queries that may find other matches than intended, or too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from spaseq.language import syntax as s
from spaseq.language.checking.findings import Findings
from spaseq.language.checking.sequences import inside
from spaseq.language.reading.source import QueryText
from spaseq.language.scope import conjuncts, gpm_variables, mentioned, references
from spaseq.language.syntax.printing import print_sequence

#: Windows from this length on may hold many events: microseconds, and EVENTS. Guesses.
_LONG: Final = 60_000_000
_MANY: Final = 100


def advise(query: s.Query) -> tuple[str, ...]:
    """Return advice about a checked query, each with its place.

    Advice is weaker than the warnings of ``check``: ``prepare`` issues the warnings, but not the advice.
    """
    findings = Findings(QueryText(query.text, query.filename))
    if query.skip is not None:
        for loop, following in _runs_over(query.sequence):
            shown, end = print_sequence(loop), print_sequence(following)
            findings.warn(
                f"{shown} can run over an event of {end} and end at a later one, since SKIP prefers more "
                f"iterations; {print_sequence(_until(loop, following))} stops at the first",
                loop.span,
            )
    if _combines(query) and _is_long(query.window) and not _has_key(query):
        findings.warn(
            f"{print_sequence(query.sequence)} has a match for each combination of events in a window, which "
            "may be very many; PARTITION BY a key, share a variable between the GPMs, or write ';' for ':'",
            query.sequence.span,
        )
    return findings.warnings


def _runs_over(sequence: s.Seq) -> Iterator[tuple[s.Repeat, s.Ref | s.Disjunction]]:
    """Yield the loops that may continue past an event that fits the next step, each with that step."""
    for node in inside(sequence):
        if not isinstance(node, s.Sequence):
            continue
        for loop, following in zip(node.elements, node.elements[1:], strict=False):
            if (
                isinstance(loop, s.Repeat)
                and loop.repeats
                and not loop.reluctant
                and loop.strategy is not s.Strategy.STRICT
                and isinstance(following, s.Ref | s.Disjunction)
                and _names(following).isdisjoint(_names(loop))
            ):
                yield loop, following


def _names(seq: s.Seq) -> set[str]:
    return {ref.name for ref, _ in references(seq)}


def _until(loop: s.Repeat, following: s.Seq) -> s.Repeat:
    """Return the loop with a negation in it: no event of the next step may occur between iterations."""
    body = loop.element
    elements, operators = (body.elements, body.operators) if isinstance(body, s.Sequence) else ((body,), ())
    stop = s.Sequence((*elements, s.Not(following)), (*operators, s.Strategy.NEXT))
    return replace(loop, element=stop)


def _combines(query: s.Query) -> bool:
    """Return whether three or more events are joined by ``:`` alone and all their matches are wanted."""
    any_later = sum(
        node.operators.count(s.Strategy.ANY)
        for node in inside(query.sequence)
        if isinstance(node, s.Sequence)
    )
    wants_all = (
        query.emit is s.Emit.ALL
        and query.consume is s.Consume.NONE
        and query.skip is None
        and query.modifiers.limit is None
        and not isinstance(query.form, s.Ask)
    )
    return any_later >= 2 and wants_all


def _is_long(window: s.Window) -> bool:
    if s.UNITS[window.unit] is None:
        return window.size >= _MANY
    return s.Duration(window.size, window.unit).microseconds >= _LONG


def _has_key(query: s.Query) -> bool:
    """Return whether a partition, a shared variable or an equality joins the events of a match."""
    bound = {gpm.name: gpm_variables(gpm) for gpm in query.gpms}
    shared = Counter(name for ref, _ in references(query.sequence) for name in bound[ref.name])
    filters = [
        *query.filters,
        *(e for g in query.gpms for e in g.pattern.elements if isinstance(e, s.Filter)),
    ]
    equal = any(
        isinstance(part, s.Binary) and part.operator == "=" and len(mentioned(part)) > 1
        for found in filters
        for part in conjuncts(found.condition)
    )
    return bool(query.partition) or equal or max(shared.values(), default=0) > 1
