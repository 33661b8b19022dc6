"""What would have to be different for a match: tried out on the sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from rdflib import BNode

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import Absent, walk
from spaseq.language.syntax import Query
from spaseq.language.syntax.durations import decimal
from spaseq.language.syntax.printing import print_sequence
from spaseq.results.match import Match
from spaseq.why.diagnosis import FilterCount, Trial, plural
from spaseq.why.evidence import Evidence
from spaseq.why.replay import Replays, plain, shrinking
from spaseq.why.variants import Variant, longer, prefixes, sliding, variants

#: Of so many matches in a longer window the shortest is told.
_MATCHES = 100


@dataclass(frozen=True, slots=True)
class Tried:
    """The first step at which all ended, as the sequence up to there; the changes that were tried there.

    ``cause`` is the likeliest, in words; ``filters`` are those that need more than one event. ``undecided``:
    there was no time to find the step, or it cannot be found. ``events``: so many were looked at.
    """

    failing: str | None = None
    cause: str | None = None
    trials: tuple[Trial, ...] = ()
    filters: tuple[FilterCount, ...] = ()
    undecided: bool = False
    events: int = 0

    @property
    def is_open(self) -> bool:
        """Whether more time would tell more."""
        no_time = any(trial.matches is None for trial in self.trials)
        return self.undecided or (self.failing is not None and self.cause is None and no_time)

    def with_fewer(self, fewer: Tried) -> Tried:
        """The same, where fewer of the first events told more: what has a match in these has one in all."""
        if self.undecided:
            return fewer
        if fewer.failing != self.failing or fewer.cause is None:
            return self
        found = [trial for trial in fewer.trials if trial.matches]
        told = {trial.change for trial in found}
        others = [trial for trial in self.trials if trial.change not in told]
        return replace(self, cause=fewer.cause, trials=(*others, *found))


def tried_out(evidence: Evidence, seconds: float) -> Tried:
    """What is found out in so many seconds, of all of the sample, or else of its first events."""
    tried = Tried(undecided=True)
    for replays in shrinking(evidence, seconds):
        tried = tried.with_fewer(replace(try_out(evidence, replays), events=replays.events))
        if not tried.is_open:
            break
    return tried


def try_out(evidence: Evidence, replays: Replays) -> Tried:
    """Looks for the first step at which all ends, then for what would have helped there."""
    filters: tuple[FilterCount, ...] = ()
    for query in prefixes(plain(evidence.query)):
        found, filters = replays.watched(query)
        if found is None:
            return Tried(filters=filters, undecided=True)
        if not found:
            return _changed(replays, query, filters)
    return Tried(filters=filters)


def _changed(replays: Replays, query: Query, filters: tuple[FilterCount, ...]) -> Tried:
    failing = f"SEQ({print_sequence(query.sequence)})"
    trials: list[Trial] = []
    causes = [
        f"FILTER({item.text}) of {_place(item)} always errs: {item.error}"
        for item in filters
        if item.erred and item.erred == item.asked
    ]
    for variant in sliding(query):
        causes += _try(replays, variant, trials)
    if not any(trial.matches for trial in trials):
        causes += _longer(replays, query, trials)
        for variant in variants(query):
            causes += _try(replays, variant, trials)
    return Tried(failing, causes[0] if causes else None, tuple(trials), filters)


def _place(item: FilterCount) -> str:
    return "WHERE" if item.gpm is None else f"GPM {item.gpm}"


def _try(replays: Replays, variant: Variant, trials: list[Trial]) -> list[str]:
    """What it means if a variant has a match."""
    found = replays.matches(variant.query)
    trials.append(Trial(variant.change, None if found is None else bool(found)))
    if not found:
        return []
    joined = variant.joined
    if joined is not None and any(isinstance(row.get(joined), BNode) for row in found[0].bindings):
        return [f"{variant.meaning}: it is a blank node, and no two events have the same"]
    return [variant.meaning]


def _longer(replays: Replays, query: Query, trials: list[Trial]) -> list[str]:
    """What it means if a longer window has a match."""
    window = query.window
    found: list[Match] | None = []
    windows = list(longer(query))
    variant = windows[-1]
    # A longer window has all that a shorter one has, unless something must not come: the longest says whether
    # there is any sense in the others.
    if _forbids(query) or (found := replays.matches(variant.query)) != []:
        for variant in windows:
            found = replays.matches(variant.query, _MATCHES)
            if found is None or found:
                break
    trials.append(Trial(variant.change, None if found is None else bool(found)))
    if not found:
        return []
    span = min(match.end - match.start for match in found)  # type: ignore[operator]  # on one clock
    shortest = "" if window.unit == "EVENTS" else f" (the shortest spans {_span(span)})"
    size = f"{decimal(window.size)} {window.unit}"
    return [f"a window of {size} is too short: {variant.meaning}{shortest}"]


def _forbids(query: Query) -> bool:
    return any(isinstance(node, Absent) for node in walk(normalise(query).root))


def _span(span: timedelta | int) -> str:
    return f"{span}" if isinstance(span, timedelta) else plural(span, "tick")
