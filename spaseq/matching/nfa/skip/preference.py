"""Preference under AFTER MATCH SKIP (semantics, 6): where a match may begin, and which is preferred."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Final

from spaseq.automaton.nfa import Action, Since, Until
from spaseq.automaton.pattern import Atom, Both, Either, Kleene, Node, SequencePattern, walk
from spaseq.events import Stamp
from spaseq.language import scope
from spaseq.language.syntax import Aggregate, Exists, Filter, Prev, Skip, SkipMode
from spaseq.matching.interpreter.absence import Path
from spaseq.matching.interpreter.program import Gate
from spaseq.matching.interpreter.state import ChoiceTrace, Wait
from spaseq.matching.model import Found

# Where the next match may begin (semantics, section 6, AFTER MATCH SKIP).

#: The place of an event in the order of all events: its time, its stream's rank by IRI, its number in the
#: stream.
Moment = tuple[float, ...]

#: Returns the rank of a stream, given by its id, in the order of IRIs.
Rank = Callable[[int], int]


def moment(stamp: Stamp, rank: Rank) -> Moment:
    """Return the place of an event in the order of all events."""
    return stamp.time, rank(stamp.stream), stamp.n


def resumed_at(skip: Skip, found: Found, rank: Rank) -> Moment:
    """Return the moment from which the next match may begin."""
    moments = sorted(moment(event.stamp, rank) for _, event in found.events)
    if skip.mode is SkipMode.PAST_LAST_EVENT:
        return _after(moments[-1])
    target = _target(skip, found, rank)
    if target is None or target == moments[0]:
        return _after(moments[0])
    return target


def falls_back(skip: Skip, found: Found, rank: Rank) -> bool:
    """Return whether SKIP TO names no event of a match, or the first one, with which no other match may
    begin.
    """
    if skip.gpm is None:
        return False
    first = min(moment(event.stamp, rank) for _, event in found.events)
    return _target(skip, found, rank) in (None, first)


def _target(skip: Skip, found: Found, rank: Rank) -> Moment | None:
    """Return the event that SKIP TO names."""
    moments = [moment(event.stamp, rank) for name, event in found.events if name == skip.gpm]
    if not moments:
        return None
    return min(moments) if skip.mode is SkipMode.TO_FIRST else max(moments)


def _after(earlier: Moment) -> Moment:
    """Return a bound after a moment and before all later ones."""
    return (*earlier, math.inf)


# A lower bound of a run's next choice among current events and a future one.
#
# A match is delivered as soon as no such choice is preferred to its own (semantics, section 6).

#: As ``interpreter.absence.Path``, with moments for events.
Chosen = tuple[object, ...]


def least(node: Node, old: Callable[[Atom], Moment | None], now: Moment) -> Chosen:
    """Return the least path with a future event (at ``now`` or later), for a GPM, or an ``&`` or ``|`` of
    GPMs.

    ``old`` returns the earliest current event that a GPM may take along with the future one; None if there is
    none.
    """
    return _least(node, old, now)[1]


def _least(node: Node, old: Callable[[Atom], Moment | None], now: Moment) -> tuple[Chosen | None, Chosen]:
    """Return the least path of current events only (None if there is none), and the least path with a future
    event.
    """
    match node:
        case Atom():
            moment = old(node)
            return None if moment is None else (moment,), (now,)
        case Either(operands=operands):
            pairs = [_least(operand, old, now) for operand in operands]
            olds: list[Chosen] = [
                (node.place(i), *path) for i, (path, _) in enumerate(pairs) if path is not None
            ]
            return _smallest(olds), min((node.place(i), *path) for i, (_, path) in enumerate(pairs))
        case Both(operands=operands):
            pairs = [_least(operand, old, now) for operand in operands]
            ways = product(*([(path, new) for new, path in enumerate(p) if path is not None] for p in pairs))
            found: tuple[list[Chosen], list[Chosen]] = ([], [])
            for way in ways:
                found[any(new for _, new in way)].append(tuple(item for path, _ in way for item in path))
            return _smallest(found[0]), min(found[1])
        case _:
            raise TypeError(f"not simultaneous: {node}")


def _smallest(paths: list[Chosen]) -> Chosen | None:
    return min(paths) if paths else None


def least_gathered(operands: Sequence[Sequence[tuple[Moment, Chosen]]], now: Moment) -> Chosen:
    """Return the least choice of an ``ALL`` of GPMs with a future event, not before ``now``.

    ``operands``: for each GPM, the moments of its matches so far, each with its choices. Of a future choice
    only the moment and the operand are known. They suffice, since no current choice has both of them.
    """
    olds = [min(found, default=None) for found in operands]
    ways = product(*([None] if old is None else [None, old] for old in olds))
    return min(
        tuple(sorted((now, i) if old is None else (old[0], i, old[1]) for i, old in enumerate(way)))
        for way in ways
        if None in way
    )


# Time bounds inside a sequence (``X WITHIN d``): which of them a run is in, at each gate.


def open_bounds(gates: Sequence[Gate]) -> dict[Gate, tuple[Until, ...]]:
    """Return, for each gate, the time bounds that are open in runs before it: each will end before it begins
    again.
    """
    found: dict[Gate, dict[int, Until]] = {gate: {} for gate in gates}

    def before(actions: Sequence[Action], after: dict[int, Until]) -> dict[int, Until]:
        opened = dict(after)
        for action in reversed(actions):
            if isinstance(action, Until):
                opened[action.within] = action
            elif isinstance(action, Since):
                opened.pop(action.within, None)
        return opened

    changed = True
    while changed:
        changed = False
        for gate in gates:
            opened = dict(found[gate])
            for way in gate.ways:
                after: dict[int, Until] = {}
                for ends in way.target.accepts:
                    after |= before(ends, {})
                for onward in way.target.gates:
                    after |= before(onward.ends, found[onward])
                opened |= before(way.begins, after)
            if opened != found[gate]:
                found[gate], changed = opened, True
    return {gate: tuple(opened.values()) for gate, opened in found.items()}


# Which of two runs is preferred (semantics, section 6, AFTER MATCH SKIP).
#
# A run is the list of its choices, compared from the start: the way through the sequence (``Accept.order``),
# then the event of the step. A choice is also used as a lower bound of what a run can still become.

_NEVER: Final[Moment] = (math.inf,)


class Preference:
    """Makes the choices of one query's runs; ``rank`` orders its streams by IRI."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def moment(self, stamp: Stamp) -> Moment:
        """Return the place of an event in the order of all events."""
        return moment(stamp, self._rank)

    def step(self, before: ChoiceTrace | None, order: tuple[int, ...], path: Path) -> ChoiceTrace:
        """Return the choices after a run has taken an event, or several at a time, see ``Path``."""
        chosen = tuple(self.moment(item) if isinstance(item, Stamp) else item for item in path)
        earliest = min(self.moment(item) for item in path if isinstance(item, Stamp))
        return ChoiceTrace(before, (order, chosen), earliest, _depth(before))

    def gathered(
        self, before: ChoiceTrace | None, order: tuple[int, ...], parts: Sequence[ChoiceTrace | None]
    ) -> ChoiceTrace:
        """Return the choices after a run has taken an ``ALL``: its operands' steps in time order, ties by
        operand.

        The decisions of an operand after a step, up to its next step, belong to the earlier step.
        """
        steps = sorted(
            (moment, operand, choice)
            for operand, part in enumerate(parts)
            for moment, choice in _decided_behind(_steps(part))
        )
        return ChoiceTrace(before, (order, tuple(steps)), steps[0][0], _depth(before))

    def ended(self, before: ChoiceTrace | None, order: tuple[int, ...]) -> ChoiceTrace:
        """Return the choices of a run that leaves the sequence, or an operand of an ``ALL``."""
        return ChoiceTrace(before, (order, ()), _NEVER, _depth(before))

    def bound(
        self, before: ChoiceTrace | None, order: tuple[int, ...], chosen: tuple[object, ...], now: Moment
    ) -> ChoiceTrace:
        """Return a lower bound of the choices of a run if its next step is at least ``chosen``."""
        return ChoiceTrace(before, (order, chosen), now, _depth(before))


def preferred(one: ChoiceTrace, other: ChoiceTrace) -> bool:
    """Return whether a run is preferred to another one of the same first event.

    Equal choices may have been made separately; the first different choice decides.
    """
    x, y = one, other
    while x.depth > y.depth and x.before is not None:
        x = x.before
    while y.depth > x.depth and y.before is not None:
        y = y.before
    parted: tuple[ChoiceTrace, ChoiceTrace] | None = None
    while x is not y:
        if x.choice != y.choice:
            parted = x, y
        if x.before is None or y.before is None:
            break
        x, y = x.before, y.before
    # Only the first different choices are comparable; later ones may be of different things.
    return one.depth < other.depth if parted is None else parted[0].choice < parted[1].choice


def _depth(before: ChoiceTrace | None) -> int:
    return 1 if before is None else before.depth + 1


def _steps(trace: ChoiceTrace | None) -> list[ChoiceTrace]:
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.before
    return found[::-1]


def _decided_behind(steps: Sequence[ChoiceTrace]) -> Iterator[tuple[Moment, tuple[object, ...]]]:
    """Yield the time of each step of an operand, and its choices: the way to it, the event, the way on from
    there.
    """
    for i, (step, after) in enumerate(pairwise(steps)):
        order, chosen = step.choice
        yield step.moment, (order if i == 0 else (), chosen, after.choice[0])


def gathered(part: ChoiceTrace | None) -> tuple[Moment, tuple[object, ...]]:
    """Return the time of the only step of an ``ALL``'s operand, and its choices, see
    ``Preference.gathered``.
    """
    return next(_decided_behind(_steps(part)))


# Runs with the same future: they agree in everything that the rest of a sequence may read.


class Merging:
    """Decides in what runs of one first event must agree to have the same future.

    This is possible only if filters and joins read plain variables: values of past iterations are not
    compared.
    """

    def __init__(self, pattern: SequencePattern) -> None:
        nodes = list(walk(pattern.root))
        kleenes = {node.id: node for node in nodes if isinstance(node, Kleene)}
        # By Kleene: from this many iterations on, all numbers of iterations are equivalent.
        self._limits = {k: n.minimum if n.maximum is None else n.maximum for k, n in kleenes.items()}
        self._single = len(set(pattern.streams)) == 1
        conditions = [item.condition for item in _filters(pattern)]
        uses = Counter(
            name for node in nodes if isinstance(node, Atom) for name in pattern.gpms[node.gpm].variables
        )
        own = frozenset[str]().union(*(node.own for node in kleenes.values()))
        repeated = {
            name
            for kleene in kleenes.values()
            for node in walk(kleene)
            if isinstance(node, Atom)
            for name in pattern.gpms[node.gpm].variables - own
        }
        joined = {name for name, count in uses.items() if count > 1} | repeated
        self._read = joined.union(*map(scope.mentioned, conditions))
        reads_past = any(
            isinstance(part, Aggregate | Prev | Exists)
            for condition in conditions
            for part in scope.walk(condition)
        )
        self._possible = not reads_past and not self._read & own

    def key(self, wait: Wait) -> object:
        """Return a key that is equal for runs with the same future; None if that is unknown."""
        run = wait.run
        if not self._possible or run.home or run.gaps or run.leading or wait.blockers:
            return None
        counts = tuple(sorted((k, min(n, self._limits[k])) for k, n in run.counts.items()))
        # With one stream, every future event is later than all events taken.
        frontier = None if self._single and wait.gate.plain else run.frontier
        rows = frozenset(
            (frozenset((v, t) for v, t in row.binding.items() if v in self._read), row.origin)
            for row in wait.rows
        )
        return id(wait.gate), counts, frontier, rows, frozenset(run.since.items())


def _filters(pattern: SequencePattern) -> Iterator[Filter]:
    """Yield the filters that are evaluated while a match is in progress."""
    yield from pattern.where
    for node in walk(pattern.root):
        if isinstance(node, Atom):
            yield from node.filters
        elif isinstance(node, Both):
            yield from node.deferred
