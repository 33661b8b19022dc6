"""The diagnosis of a query: plain values, and the same in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

#: A FILTER that one event decides is evaluated for at most this many solutions.
ROWS: Final = 10_000


@dataclass(slots=True)
class GpmStats:
    """Counts of a GPM so far: the ``events`` of its streams, the events that it ``matched``, and ``rows``,
    the solutions in these events.

    Filters that use other GPMs' variables are not evaluated here.
    """

    events: int = 0
    matched: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Missing:
    """A constant of a GPM's pattern that no event of its streams has in its place.

    ``role``: ``predicate``, ``class``, ``value`` or ``subject``. ``nearest`` is the most similar constant
    that ``events`` events have instead; None if none is similar. ``elsewhere`` names the other streams of the
    query with the constant in that place. ``instead``: the most frequent constants there. ``context``: the
    JSON-LD context that lifts the stream's rows, None if there is none. It makes this predicate from the
    column or JSON key ``key``, and ``nearest`` from ``nearest_key``; each is None if no column becomes it.
    """

    gpm: str
    role: str
    term: str
    nearest: str | None = None
    events: int = 0
    elsewhere: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    context: str | None = None
    key: str | None = None
    nearest_key: str | None = None


@dataclass(frozen=True, slots=True)
class FilterCount:
    """How often a FILTER was evaluated, with the results; ``gpm`` is None for a FILTER of WHERE.

    ``error``: the first error, in words.
    """

    gpm: str | None
    text: str
    held: int
    failed: int
    erred: int
    error: str | None

    @property
    def asked(self) -> int:
        """Return how often it was evaluated."""
        return self.held + self.failed + self.erred


@dataclass(frozen=True, slots=True)
class BranchCount:
    """An OPTIONAL or a side of a UNION in a GPM: ``rows`` solutions in ``events`` events.

    The solutions are joined with what precedes the branch in its group. ``kind``: ``OPTIONAL`` or ``UNION``.
    """

    gpm: str
    kind: str
    text: str
    events: int
    rows: int


@dataclass(frozen=True, slots=True)
class Trial:
    """A change to the query, in words, and whether the changed query has a match in the sample.

    ``matches`` is None if it took too long to find out.
    """

    change: str
    matches: bool | None


@dataclass(frozen=True, slots=True)
class StateCount:
    """A state of the automaton: how many partial matches ``came`` into it, and what became of them.

    State 0, where all partial matches begin, always has one.

    Partial matches ``went_on`` to another state or ``ended`` as a match, unless WHERE or a negation at either
    end prevented it. The others ``died``; the reason is what prevented progress last: ``filter`` or ``join``
    (the wanted event arrived, and a FILTER or another value of a variable rejected it), ``,`` or ``;``
    (another event came between), ``negation``, ``window``, or ``end of input``.
    """

    state: int
    came: int
    went_on: int
    ended: int
    died: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EdgeCount:
    """An edge of the automaton, and how often a partial match took it.

    ``operands``, for an ALL: how many matches each of its operands had on its own, over all partial matches.
    """

    source: int
    target: int
    label: str
    taken: int
    operands: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a query found no match, or how it found its matches.

    ``cause`` is the likeliest cause in one line. ``gpms`` counts all ``events``; the rest is computed from
    the first ``sampled`` events. ``failing``: the first step of the sequence that no partial match passed, as
    the sequence up to there; None if unknown. ``states`` and ``edges`` are those of the automaton without
    SKIP, CONSUME and LIMIT, in the order of their numbers. If time was short, ``failing`` and ``trials`` are
    about the first ``tried`` events, ``states`` and ``edges`` about the first ``traced``. ``failed_calls``:
    failed calls of the user's functions in the whole engine, by IRI.
    """

    cause: str
    events: int
    matches: int
    gpms: Mapping[str, GpmStats]
    sampled: int = 0
    missing: tuple[Missing, ...] = ()
    filters: tuple[FilterCount, ...] = ()
    failing: str | None = None
    trials: tuple[Trial, ...] = ()
    states: tuple[StateCount, ...] = ()
    edges: tuple[EdgeCount, ...] = ()
    branches: tuple[BranchCount, ...] = ()
    tried: int = 0
    traced: int = 0
    failed_calls: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the diagnosis as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.cause
        for name, gpm in self.gpms.items():
            yield f"GPM {name}: {gpm.matched:,} of {gpm.events:,} events, {gpm.rows:,} solutions"
        yield from failed_calls(self.failed_calls)
        if self.missing or self.filters or self.branches or self.failing or self.trials or self.states:
            whole = "" if self.sampled == self.events else f" of {self.events:,}"
            yield f"in the first {self.sampled:,} events{whole}:"
        for item in self.missing:
            yield f"    GPM {item.gpm}: {told(item)}"
        for filter_ in self.filters:
            yield f"    {counted(filter_)}"
        for branch in self.branches:
            found = f"in {plural(branch.events, 'event')}, {plural(branch.rows, 'solution')}"
            yield f"    GPM {branch.gpm}: {branch.kind} {branch.text} {found}"
        if self.states and self.traced < self.sampled:
            yield f"    in the first {self.traced:,} of them, for which there was time:"
        for state in self.states:
            yield f"    state {state.state}: {became(state)}"
            for edge in self.edges:
                if edge.source == state.state:
                    yield f"        {edge.source} → {edge.target}  {edge.label}: {taken(edge)}"
        if self.failing is not None:
            first = f" of the first {self.tried:,}" if self.tried < self.sampled else ""
            yield f"    all{first} ended in {self.failing}"
        for trial in self.trials:
            answer = {True: "a match", False: "no match", None: "not found out"}[trial.matches]
            yield f"    {trial.change}: {answer}"


def told(item: Missing) -> str:
    """Return what is missing, in words."""
    what = f"no event has {item.role} {item.term}"
    if item.context is not None:
        what += f", which {item.context} makes of {item.key or 'nothing'}"
    if item.elsewhere:
        return f"{what}, but those of stream {' and '.join(item.elsewhere)} have: is it ON the wrong stream?"
    if item.nearest is not None:
        made = "" if item.nearest_key is None else f", made of {item.nearest_key}"
        return f"{what}; did you mean {item.nearest} ({plural(item.events, 'event')}{made})?"
    return f"{what}; they have {', '.join(item.instead)}" if item.instead else what


def counted(item: FilterCount) -> str:
    """Return a filter's counts, in words."""
    where = "WHERE" if item.gpm is None else f"GPM {item.gpm}"
    first = f" ({item.error})" if item.error is not None else ""
    most = f", of the first {ROWS:,} solutions" if item.asked == ROWS else ""
    return (
        f"{where}: FILTER({item.text}) held {item.held:,}×, failed {item.failed:,}×, "
        f"erred {item.erred:,}×{first}{most}"
    )


def failed_calls(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield failed calls of the user's functions, in words."""
    for iri, count in counts.items():
        yield f"{plural(count, 'call')} of <{iri}> failed"


def became(item: StateCount) -> str:
    """Return what became of the partial matches in a state, in words."""
    parts = [f"{item.came:,} came"]
    if item.went_on:
        parts.append(f"{item.went_on:,} went on")
    if item.ended:
        parts.append(f"{item.ended:,} ended")
    if item.died:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(item.died.items()))
        parts.append(f"{sum(item.died.values()):,} died ({reasons})")
    return ", ".join(parts)


def taken(item: EdgeCount) -> str:
    """Return how often an edge was taken, in words."""
    operands = ", ".join(f"{count:,}×" for count in item.operands)
    return f"{item.taken:,}×" + (f" (operands: {operands})" if operands else "")


def plural(count: int, noun: str) -> str:
    """Return a count and its noun.

    >>> plural(1234, "event"), plural(1, "event"), plural(2, "match")
    ('1,234 events', '1 event', '2 matches')
    """
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"
