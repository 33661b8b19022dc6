"""From counts and a sample to the likeliest cause."""

from __future__ import annotations

from collections.abc import Set

from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Both,
    Chain,
    Either,
    Empty,
    Kleene,
    Maybe,
    Node,
    Within,
)
from spaseq.why.diagnosis import Diagnosis, plural
from spaseq.why.evidence import Evidence
from spaseq.why.filters import alone
from spaseq.why.patterns import reason
from spaseq.why.replay import Replays, plain
from spaseq.why.trials import Tried, try_out
from spaseq.why.vocabulary import missing


def diagnose(evidence: Evidence, seconds: float) -> Diagnosis:
    """Why the query found nothing; for one that found something, its counts."""
    parts = {name: evidence.pattern.gpms[name] for name in evidence.pattern.queried}
    counted = evidence.gpms
    absent = tuple(item for part in parts.values() for item in missing(evidence, part.gpm))
    filters = tuple(item for part in parts.values() for item in alone(evidence, part.gpm, part.stateless))
    lacking = unmatched(evidence.pattern.root, {name for name, gpm in counted.items() if gpm.matched})
    events = plural(evidence.events, "event")
    tried = Tried(None, None, (), ())
    if evidence.matches:
        cause = f"{events}, {evidence.matches:,} {'match' if evidence.matches == 1 else 'matches'}"
    elif not evidence.events:
        late = f": {plural(evidence.late, 'event')} came too late" if evidence.late else ""
        cause = f"no event came{late}"
    elif evidence.sample is None:
        cause = f"{events}, and the query ended early: nothing of it is kept to look at"
    elif lacking:
        name = next(name for name in parts if name in lacking)
        found = reason(
            evidence,
            parts[name],
            [item for item in absent if item.gpm == name],
            [item for item in filters if item.gpm == name],
        )
        cause = f"{events}, of which GPM {name} matched none: {found}"
    else:
        tried = try_out(evidence, Replays(evidence, seconds))
        cause = f"{events}, each GPM matched some"
        if tried.failing is not None:
            cause = f"{events}, all ended in {tried.failing}"
        if tried.cause is not None:
            cause += f": {tried.cause}"
    return Diagnosis(
        cause,
        evidence.events,
        evidence.matches,
        counted,
        evidence.sampled,
        absent,
        (*filters, *tried.filters),
        tried.failing,
        tried.trials,
        *Replays(evidence, seconds).traced(plain(evidence.query)),
    )


def unmatched(node: Node, matched: Set[str]) -> frozenset[str]:
    """The GPMs without which there is no match of a node, if only those in ``matched`` matched an event.

    Empty if there may be one.
    """
    none: frozenset[str] = frozenset()
    match node:
        case Atom(gpm=gpm):
            return none if gpm in matched else frozenset([gpm])
        case Chain(items=items) | Both(operands=items) | AnyOrder(operands=items):
            return none.union(*(unmatched(item, matched) for item in items))
        case Either(operands=operands):
            lacking = [unmatched(operand, matched) for operand in operands]
            return none.union(*lacking) if all(lacking) else none
        case Kleene(element=element) | Within(element=element):
            return unmatched(element, matched)
        case Maybe() | Absent() | Empty():
            return none
