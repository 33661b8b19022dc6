"""Why a GPM matched no event."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.automaton.pattern import GpmPart
from spaseq.language.syntax import Filter, Graph, Group, Pattern, Triples
from spaseq.language.syntax.printing import print_group
from spaseq.why.diagnosis import ROWS, FilterCount, Missing, plural, told
from spaseq.why.evidence import Evidence
from spaseq.why.filters import evaluator_of


def reason(
    evidence: Evidence, part: GpmPart, missing: Sequence[Missing], filters: Sequence[FilterCount]
) -> str:
    """Return the likeliest reason, in words, for a GPM that matched nothing."""
    streams = " or ".join(part.gpm.streams)
    if not evidence.gpms[part.name].events:
        return f"no event of stream {streams} came"
    if missing:
        return told(missing[0])
    asked = [item for item in filters if item.asked]
    if asked:
        return _filtered(asked)
    elements = [element for element in part.stateless.elements if not isinstance(element, Filter)]
    plain = [element for element in elements if not isinstance(element, Graph)]
    if len(plain) < len(elements) and _matches(evidence, part, plain):
        return "its events have no solution in common with the background graphs"
    return _triples(evidence, part, plain) or f"its pattern fits no event of stream {streams}"


def _filtered(filters: Sequence[FilterCount]) -> str:
    worst = min(filters, key=lambda item: item.held)
    first = f"in the first {ROWS:,} solutions " if worst.asked == ROWS else ""
    text = f"{first}FILTER({worst.text})"
    if worst.erred == worst.asked:
        return f"{text} erred {_times(worst.erred)}: {worst.error}"
    if not worst.held:
        errors = f", and erred {_times(worst.erred)}: {worst.error}" if worst.erred else ""
        return f"{text} failed {_times(worst.failed)}{errors}"
    return f"no event passes all of its FILTERs; {text} held {_times(worst.held)} of {worst.asked:,}"


def _times(count: int) -> str:
    return "once" if count == 1 else plural(count, "time")


def _triples(evidence: Evidence, part: GpmPart, elements: Sequence[Pattern]) -> str | None:
    """Return the first triple pattern that no event matches together with the patterns before it."""
    before: list[Pattern] = []
    for element in elements:
        steps = (
            [Triples((triple,)) for triple in element.patterns] if isinstance(element, Triples) else [element]
        )
        for step in steps:
            if not _matches(evidence, part, [*before, step]):
                after = " besides what is before it" if before else ""
                inner = print_group(Group((step,))).strip("{} \n")
                return f"no event has {' '.join(inner.split())}{after}"
            before.append(step)
    return None


def _matches(evidence: Evidence, part: GpmPart, elements: Sequence[Pattern]) -> bool:
    assert evidence.sample is not None
    found = evaluator_of(evidence, part.gpm, Group(tuple(elements))).evaluate(evidence.sample)
    return len(found) > 0
