"""Counts and a sample → the likeliest cause."""

from __future__ import annotations

import time
from collections.abc import Set
from typing import Final

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
from spaseq.why.filters import alone, branches, inside
from spaseq.why.patterns import reason
from spaseq.why.replay import Replays, plain
from spaseq.why.trials import Tried, tried_out
from spaseq.why.vocabulary import missing

#: The share of the time for trials; the rest is for counting by state.
_TRIALS: Final = 0.7


def diagnose(evidence: Evidence, seconds: float) -> Diagnosis:
    """Return why the query found nothing; for a query with matches, its counts."""
    end = time.thread_time() + seconds
    parts = {name: evidence.pattern.gpms[name] for name in evidence.pattern.queried}
    counted = evidence.gpms
    absent = tuple(item for part in parts.values() for item in missing(evidence, part.gpm))
    filters = tuple(item for part in parts.values() for item in alone(evidence, part.gpm, part.stateless))
    inner = tuple(item for part in parts.values() for item in inside(evidence, part.gpm, part.stateless))
    lacking = unmatched(evidence.pattern.root, {name for name, gpm in counted.items() if gpm.matched})
    events = plural(evidence.events, "event")
    tried = Tried()
    if evidence.matches:
        cause = f"{events}, {plural(evidence.matches, 'match')}"
    elif not evidence.events:
        late = f": {plural(evidence.late, 'event')} came too late" if evidence.late else ""
        cause = f"no event came{late}"
    elif evidence.sample is None:
        early = "the query ended early: " if evidence.ended else ""
        cause = f"{events}, and {early}nothing of it is kept to look at"
    elif lacking:
        name = next(name for name in parts if name in lacking)
        found = reason(
            evidence,
            parts[name],
            [item for item in absent if item.gpm == name],
            [item for item in filters if item.gpm == name],
        )
        # If the GPM's streams had no event, this holds for all events, not for the sample only.
        of_some = counted[name].events and evidence.sampled < evidence.events
        first = f"; in the first {evidence.sampled:,} of them" if of_some else ":"
        cause = f"{events}, of which GPM {name} matched none{first} {found}"
    else:
        tried = tried_out(evidence, seconds * _TRIALS)
        cause = _ended(evidence, tried, seconds)
    traced = Replays(evidence, end - time.thread_time()).traced(plain(evidence.query))
    return Diagnosis(
        cause,
        evidence.events,
        evidence.matches,
        counted,
        evidence.sampled,
        absent,
        (*filters, *inner, *tried.filters),
        tried.failing,
        tried.trials,
        traced.states,
        traced.edges,
        tuple(item for part in parts.values() for item in branches(evidence, part.gpm, part.stateless)),
        tried.events,
        traced.events,
        evidence.failed_calls,
    )


def _ended(evidence: Evidence, tried: Tried, seconds: float) -> str:
    """Return where all partial matches ended, and what would help."""
    events = plural(evidence.events, "event")
    all_matched = all(gpm.matched for gpm in evidence.gpms.values())
    cause = f"{events}, {'each GPM' if all_matched else 'each GPM that a match needs'} matched some"
    if tried.failing is not None:
        first = f"; in the first {tried.events:,} of them" if tried.events < evidence.events else ","
        cause = f"{events}{first} all ended in {tried.failing}"
    elif tried.undecided:
        cause += f"; to find out where all ended takes more than {seconds:g} s of the processor's time"
    elif evidence.sampled < evidence.events:
        cause += f", and the first {evidence.sampled:,} of them do not tell where all ended"
    if tried.cause is not None:
        cause += f": {tried.cause}"
    elif any(trial.matches is None for trial in tried.trials):
        cause += f"; to find out what would help takes more than {seconds:g} s of the processor's time"
    return cause


def unmatched(node: Node, matched: Set[str]) -> frozenset[str]:
    """Return the GPMs that prevent a match of a node, if only the GPMs in ``matched`` matched an event.

    Empty if there may be a match.
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
