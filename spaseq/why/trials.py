"""What would have to be different for a match: tried out on the sample."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from spaseq.language.syntax import Query
from spaseq.language.syntax.durations import decimal
from spaseq.language.syntax.printing import print_sequence
from spaseq.results.match import Match
from spaseq.why.diagnosis import FilterCount, Trial, plural
from spaseq.why.evidence import Evidence
from spaseq.why.replay import Replays, plain
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
    return [variant.meaning] if found else []


def _longer(replays: Replays, query: Query, trials: list[Trial]) -> list[str]:
    """What it means if a longer window has a match."""
    window = query.window
    found: list[Match] | None = []
    variant: Variant | None = None
    for variant in longer(query):
        found = replays.matches(variant.query, _MATCHES)
        if found is None or found:
            break
    assert variant is not None
    trials.append(Trial(variant.change, None if found is None else bool(found)))
    if not found:
        return []
    span = min(match.end - match.start for match in found)  # type: ignore[operator]  # on one clock
    shortest = "" if window.unit == "EVENTS" else f" (the shortest spans {_span(span)})"
    size = f"{decimal(window.size)} {window.unit}"
    return [f"a window of {size} is too short: {variant.meaning}{shortest}"]


def _span(span: timedelta | int) -> str:
    return f"{span}" if isinstance(span, timedelta) else plural(span, "tick")
