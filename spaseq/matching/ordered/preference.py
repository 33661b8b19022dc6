"""Which of two runs is preferred (semantics, section 6, AFTER MATCH SKIP).

A run is the list of its choices, compared from the start: which way the sequence goes (``Accept.order``),
then which event takes the step. What a run can still become has a choice as its lower bound, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from spaseq.events import Stamp
from spaseq.matching.ordered.skipping import Moment, Rank, moment
from spaseq.matching.runs.memory import Path
from spaseq.matching.runs.state import Trace

_NEVER: Final[Moment] = (math.inf,)


class Preference:
    """Makes the choices of one query's runs; ``rank`` orders its streams by their IRIs."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def moment(self, stamp: Stamp) -> Moment:
        """Where an event stands in the order of all events."""
        return moment(stamp, self._rank)

    def step(self, before: Trace | None, order: tuple[int, ...], path: Path) -> Trace:
        """A run takes an event, or several at a time, see ``Path``."""
        chosen = tuple(self.moment(item) if isinstance(item, Stamp) else item for item in path)
        earliest = min(self.moment(item) for item in path if isinstance(item, Stamp))
        return Trace(before, (order, chosen), earliest, _depth(before))

    def gathered(self, before: Trace | None, order: tuple[int, ...], parts: Sequence[Trace | None]) -> Trace:
        """A run takes what an ``ALL`` gathered: the steps of its operands in time order, ties by operand.

        What an operand decides behind a step, up to its next one, belongs to that step.
        """
        steps = sorted(
            (moment, operand, choice)
            for operand, part in enumerate(parts)
            for moment, choice in _decided_behind(_steps(part))
        )
        return Trace(before, (order, tuple(steps)), steps[0][0], _depth(before))

    def ended(self, before: Trace | None, order: tuple[int, ...]) -> Trace:
        """A run leaves the sequence, or an operand of an ``ALL``."""
        return Trace(before, (order, ()), _NEVER, _depth(before))

    def bound(
        self, before: Trace | None, order: tuple[int, ...], chosen: tuple[object, ...], now: Moment
    ) -> Trace:
        """No choice is less of a run that still takes its next step, which is ``chosen`` at least."""
        return Trace(before, (order, chosen), now, _depth(before))


def preferred(one: Trace, other: Trace) -> bool:
    """Whether a run is preferred to another one of the same first event.

    Two runs may have made equal choices apart: where they part first, by what they chose, decides.
    """
    x, y = one, other
    while x.depth > y.depth and x.before is not None:
        x = x.before
    while y.depth > x.depth and y.before is not None:
        y = y.before
    parted: tuple[Trace, Trace] | None = None
    while x is not y:
        if x.choice != y.choice:
            parted = x, y
        if x.before is None or y.before is None:
            break
        x, y = x.before, y.before
    # Only there are their choices of the same things: behind it they may not even be comparable.
    return one.depth < other.depth if parted is None else parted[0].choice < parted[1].choice


def _depth(before: Trace | None) -> int:
    return 1 if before is None else before.depth + 1


def _steps(trace: Trace | None) -> list[Trace]:
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.before
    return found[::-1]


def _decided_behind(steps: Sequence[Trace]) -> Iterator[tuple[Moment, tuple[object, ...]]]:
    """When each step of an operand is, and its choices: the way to it, the event, the way on from there."""
    for i, (step, after) in enumerate(pairwise(steps)):
        order, chosen = step.choice
        yield step.moment, (order if i == 0 else (), chosen, after.choice[0])


def gathered(part: Trace | None) -> tuple[Moment, tuple[object, ...]]:
    """When the one step of an operand of an ``ALL`` is, and its choices, see ``Preference.gathered``."""
    return next(_decided_behind(_steps(part)))
