"""Changes to a query that would give it a match, tried on the sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from rdflib import BNode

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import Absent, walk
from spaseq.language.syntax import Query
from spaseq.language.syntax.printing import print_sequence
from spaseq.results.batch import Match
from spaseq.why.diagnosis import FilterCount, Trial, plural
from spaseq.why.evidence import Evidence
from spaseq.why.replay import Replays, plain, shrinking
from spaseq.why.variants import PartialQuery, Variant, joined_alone, longer, sliding, steps, variants

#: If a longer window has fewer matches than this, the span of the shortest is reported.
_MATCHES = 100


@dataclass(frozen=True, slots=True)
class Tried:
    """The first step that no partial match passed (``failing``), and the changes tried there.

    ``failing`` is the sequence up to this step. ``cause`` is the likeliest cause, in words. ``filters`` are
    the counts of filters that need more than one event. ``undecided``: there was no time to find the step, or
    it cannot be found. ``events``: how many were used.
    """

    failing: str | None = None
    cause: str | None = None
    trials: tuple[Trial, ...] = ()
    filters: tuple[FilterCount, ...] = ()
    undecided: bool = False
    events: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether more time could decide more."""
        no_time = any(trial.matches is None for trial in self.trials)
        return self.undecided or (self.failing is not None and self.cause is None and no_time)

    def with_fewer(self, fewer: Tried) -> Tried:
        """Return this result with the causes found with fewer events: a match in them is a match in all."""
        if self.undecided:
            return fewer
        if fewer.failing != self.failing or fewer.cause is None:
            return self
        found = [trial for trial in fewer.trials if trial.matches]
        told = {trial.change for trial in found}
        others = [trial for trial in self.trials if trial.change not in told]
        return replace(self, cause=fewer.cause, trials=(*others, *found))


def tried_out(evidence: Evidence, seconds: float) -> Tried:
    """Find the failing step and its cause on the whole sample, or, if time is short, on its first events."""
    tried = Tried(undecided=True)
    for replays in shrinking(evidence, seconds):
        tried = tried.with_fewer(replace(try_out(evidence, replays), events=replays.events))
        if not tried.is_open:
            break
    errs = [item for item in tried.filters if item.erred and item.erred == item.asked]
    if tried.failing is not None and errs:
        text = f"FILTER({errs[0].text}) of {_place(errs[0])} always errs: {errs[0].error}"
        return replace(tried, cause=text)
    return tried


def try_out(evidence: Evidence, replays: Replays) -> Tried:
    """Find the first step that no partial match passes, then changes that help there."""
    filters: tuple[FilterCount, ...] = ()
    for step in steps(plain(evidence.query)):
        found, filters = replays.watched(step.query)
        if found is None:
            return Tried(filters=filters, undecided=True)
        if not found:
            return _changed(replays, step, filters)
    return Tried(filters=filters)


class _Trials:
    """The changes tried at a step and their meaning; changes that give the whole query a match come first."""

    def __init__(self, replays: Replays, step: PartialQuery) -> None:
        self._replays, self._step = replays, step
        self.trials: list[Trial] = []
        self._causes: list[tuple[bool, str]] = []

    @property
    def is_found(self) -> bool:
        """Return whether a change to the whole query has a match."""
        return any(trial.matches for trial in self.trials)

    @property
    def cause(self) -> str | None:
        """Return the likeliest cause."""
        return min(self._causes, key=lambda cause: not cause[0])[1] if self._causes else None

    def add(self, variant: Variant) -> None:
        """Try a variant: first up to the step, which is faster, then the whole query."""
        short = self._step.of(variant.query)
        if short is None:
            return
        found = self._replays.matches(short)
        whole = found if short == variant.query or not found else self._replays.matches(variant.query)
        self._tell(variant, whole)
        if found and not self._is_partitioned(variant):
            self._explain(variant, found, whole)

    def longer(self) -> None:
        """Try longer windows: for a match of the whole query, or else of the step."""
        variant, found = self._shortest(self._step.whole)
        if variant is None:
            return
        self._tell(variant, found)
        if not found and self._step.count is not None:
            variant, short = self._shortest(self._step.query)
            if variant is not None and short:
                self._explain(variant, short, found, f" up to there{_shortest_span(short)}")
        elif found:
            self._explain(variant, found, found, _shortest_span(found))

    def _tell(self, variant: Variant, found: list[Match] | None) -> None:
        self.trials.append(Trial(variant.change, None if found is None else bool(found)))

    def _explain(
        self, variant: Variant, found: list[Match], whole: list[Match] | None, more: str = ""
    ) -> None:
        """Note the meaning of a variant that has matches up to the step, and perhaps as a whole."""
        text = variant.reason
        if variant.advice is None:
            if variant.joined is not None and _is_blank(variant.joined, found):
                text += ": it is a blank node, and no two events have the same"
        elif whole:
            text += f": {variant.advice} there is a match{more}"
        else:
            text += f": {variant.advice} there is a match{more or ' up to there'}"
            text += "; the rest is not found out" if whole is None else ", but none of the whole sequence"
        self._causes.append((bool(whole), text))

    def _is_partitioned(self, variant: Variant) -> bool:
        """Return whether a variable is not the cause: a partition by it has events of all its GPMs."""
        query = self._step.query
        if variant.joined not in [variable.name for variable in query.partition]:
            return False
        return _forbids(query) or self._replays.matches(joined_alone(query)) != []

    def _shortest(self, query: Query) -> tuple[Variant | None, list[Match] | None]:
        """Return the first longer window with a match, and its matches; or the last one tried, and none."""
        windows = list(longer(query))
        if not windows:
            return None, None
        # A longer window has all matches of a shorter one, unless there is a negation: if the longest has
        # none, the others need not be tried.
        if not _forbids(query) and self._replays.matches(windows[-1].query) == []:
            return windows[-1], []
        for variant in windows:
            found = self._replays.matches(variant.query, _MATCHES)
            if found is None or found:
                break
        return variant, found


def _changed(replays: Replays, step: PartialQuery, filters: tuple[FilterCount, ...]) -> Tried:
    tried = _Trials(replays, step)
    for variant in sliding(step.whole):
        tried.add(variant)
    if not tried.is_found:
        tried.longer()
        for variant in variants(step.whole):
            tried.add(variant)
    failing = f"SEQ({print_sequence(step.query.sequence)})"
    return Tried(failing, tried.cause, tuple(tried.trials), filters)


def _place(item: FilterCount) -> str:
    return "WHERE" if item.gpm is None else f"GPM {item.gpm}"


def _is_blank(name: str, found: list[Match]) -> bool:
    return any(isinstance(row.get(name), BNode) for row in found[0].bindings)


def _forbids(query: Query) -> bool:
    return any(isinstance(node, Absent) for node in walk(normalise(query).root))


def _shortest_span(found: list[Match]) -> str:
    """Return in words the span of the shortest match of a longer window; empty unless all were found."""
    if len(found) == _MATCHES:
        return ""
    span = min(match.end - match.start for match in found)  # type: ignore[operator]  # on one clock
    return f" (the shortest spans {span if isinstance(span, timedelta) else plural(span, 'tick')})"
