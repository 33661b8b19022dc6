"""What first events come to: their runs come in, the chance of a match and the work until then go out.

A first event is of a *class*: the gate and the value of that run of it which promises most. It is counted how
often one of a class goes on to another or has its match, for how long it was of the class, and how many runs
it had. From these rates follows what is to be expected of it in the rest of its window. What is shed tells of
the time before it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Levels of a value that are told apart; the first is of what is no number.
LEVELS: Final = 9
#: So many gates are told apart, those further on are alike.
_MOST_GATES: Final = 12
#: Edges between levels are learned from so many values on, at least so many a level, and anew when so many
#: times as many have come. So many of the latest are kept.
_FEW: Final = 8
_EACH: Final = 4
_AGAIN: Final = 2
_RING: Final = 256
#: A class is thought to be as its gate is, until so many first events have left it.
_PRIOR: Final = 0.5
#: So much less a level is thought to be as the next but one than as the next.
_NEAR: Final = 0.25
#: In so many windows it is forgotten to a half what was counted.
_HALVED: Final = 2.0
#: The rest of a window is looked at in so many steps, each made by so many doublings of a smaller one.
STEPS: Final = 32
_DOUBLINGS: Final = 4
#: Of a class such a share leaves it in the smallest step, at most.
_AT_ONCE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Seen:
    """First events at one time: of each its number and class, and the gate of the run that promises most.

    And the steps left of its window, the chance of a match, and the work until then, in runs times time.
    """

    numbers: Ints
    classes: Ints
    gates: Ints
    left: Ints
    chances: Floats
    work: Floats


class Fates:
    """Learns what becomes of the first events of a query with so many ``gates``, in windows of ``size``.

    Time is that of the windows: the stream's, or a count of events.
    """

    def __init__(self, gates: int, size: int) -> None:
        self._reach = max(1, size)
        self._gates = min(gates, _MOST_GATES)
        self.size = size = self._gates * LEVELS
        # From class to class, and last to a match; for how many events, and with how many runs, on the whole.
        self._moves: Floats = np.zeros((size, size + 1))
        self._lived: Floats = np.zeros(size)
        self._work: Floats = np.zeros(size)
        self._edges: list[Floats] = [np.zeros(0)] * self._gates
        self._values: list[list[float]] = [[] for _ in range(self._gates)]
        self._due = [_FEW] * self._gates
        self._come = [0] * self._gates
        # By a first event's number: its position, -1 if there is none, its class, and how many runs it has.
        self._positions: Ints = np.zeros(0, dtype=np.int64)
        self._classes: Ints = np.zeros(0, dtype=np.int64)
        self._runs: Ints = np.zeros(0, dtype=np.int64)
        # The class, and how many runs there were, of those that had their match since the last time.
        self._won: list[tuple[int, int]] = []
        # By class, how many were seen for the first time; how many had their match since the last time that
        # were never seen.
        self._new: Floats = np.zeros(size)
        self._unseen = 0
        #: By steps left and class.
        self.chances: Floats = np.full((STEPS + 1, size), 0.5)
        self._to_come: Floats = np.ones((STEPS + 1, size))
        self._unsolved = self._reach

    def see(
        self, numbers: Ints, positions: Ints, ages: Ints, runs: Ints, gates: Ints, values: Floats,
        passed: int,
    ) -> Seen:  # fmt: skip
        """Learns from the first events there are, when such a time has passed since the last time.

        ``ages`` says how much of its window each has behind it, ``runs`` how many it has, whose are ``gates``
        and ``values``.
        """
        self._forget(passed)
        self._room(numbers)
        kinds = np.minimum(gates, self._gates - 1)
        owners = np.repeat(np.arange(len(numbers)), runs)
        left = np.clip(STEPS - 1 - ages * STEPS // self._reach, 0, STEPS - 1)
        strange = self._positions[numbers] != positions
        self._learn_edges(kinds, values, strange[owners])
        of_runs = kinds * LEVELS + self._levels(kinds, values)
        classes, best = np.zeros((2, len(numbers)), dtype=np.int64)
        # The last to be written is the most promising.
        order = np.argsort(self.chances[left[owners], of_runs], kind="stable")
        classes[owners[order]], best[owners[order]] = of_runs[order], gates[order]
        self._count(numbers, classes, runs, strange, passed)
        self._positions[:] = -1
        some = runs > 0
        self._positions[numbers[some]] = positions[some]
        self._classes[numbers[some]], self._runs[numbers[some]] = classes[some], runs[some]
        self._unsolved += passed
        if self._unsolved * STEPS >= self._reach:
            self._solve()
        return Seen(numbers, classes, best, left, self.chances[left, classes], self._to_come[left, classes])

    def win(self, number: int, position: int) -> None:
        """A first event has its match."""
        if number < len(self._positions) and self._positions[number] == position:
            self._moves[self._classes[number], self.size] += 1.0
            self._positions[number] = -1
            self._won.append((int(self._classes[number]), int(self._runs[number])))
        else:
            self._unseen += 1

    def let_go(self, numbers: Ints) -> None:
        """First events are shed: nobody will know what they had come to."""
        self._positions[numbers] = -1

    def _count(self, numbers: Ints, classes: Ints, runs: Ints, strange: Bools, passed: int) -> None:
        old = np.flatnonzero(~strange & (runs > 0))
        before = self._classes[numbers[old]]
        moved = before != classes[old]
        np.add.at(self._moves, (before[moved], classes[old][moved]), 1.0)
        self._live(before, runs[old], float(passed))
        # Who has had its match meanwhile lived through half of that time.
        won: Ints = np.array(self._won, dtype=np.int64).reshape(-1, 2)
        self._live(won[:, 0], won[:, 1], passed / 2)
        self._won.clear()
        self._new += np.bincount(classes[strange & (runs > 0)], minlength=self.size)
        if self._unseen and (new := self._new.sum()):
            # They are thought to have been as those are that are seen, and to have lived as long as who wins.
            share = self._unseen * self._new / new
            self._moves[:, -1] += share
            self._lived += passed / 2 * share
            self._work += passed / 2 * share
            self._unseen = 0

    def _live(self, classes: Ints, runs: Ints, passed: float) -> None:
        self._lived += passed * np.bincount(classes, minlength=self.size)
        self._work += passed * np.bincount(classes, runs, minlength=self.size)

    def by_gate(self, gates: Ints) -> Floats:
        """The chance that is known of gates alone."""
        lived = (self._lived + 1e-9).reshape(-1, LEVELS)
        chances = (self.chances[STEPS].reshape(-1, LEVELS) * lived).sum(axis=1) / lived.sum(axis=1)
        return np.asarray(chances[np.minimum(gates, self._gates - 1)])

    def _forget(self, passed: int) -> None:
        keep = 0.5 ** (passed / (_HALVED * self._reach))
        self._moves *= keep
        self._lived *= keep
        self._work *= keep
        self._new *= keep

    def _room(self, numbers: Ints) -> None:
        if len(numbers) and (most := int(numbers.max())) >= len(self._positions):
            more = np.full(2 * most + 64 - len(self._positions), -1, dtype=np.int64)
            self._positions = np.concatenate([self._positions, more])
            self._classes = np.concatenate([self._classes, more])
            self._runs = np.concatenate([self._runs, more])

    # --- levels -----------------------------------------------------------------------------------

    def _levels(self, gates: Ints, values: Floats) -> Ints:
        levels = np.zeros(len(gates), dtype=np.int64)
        for gate in range(self._gates):
            own = (gates == gate) & ~np.isnan(values)
            levels[own] = 1 + np.searchsorted(self._edges[gate], values[own])
        return levels

    def _learn_edges(self, gates: Ints, values: Floats, new: Bools) -> None:
        for gate in range(self._gates):
            brought = values[(gates == gate) & ~np.isnan(values) & (new | (gate > 0))]
            if not len(brought):
                continue
            kept = self._values[gate]
            kept.extend(brought[-_RING:].tolist())
            del kept[:-_RING]
            self._come[gate] += len(brought)
            if self._come[gate] >= self._due[gate]:
                self._due[gate] = _AGAIN * self._come[gate]
                self._cut(gate, np.array(kept))

    def _cut(self, gate: int, values: Floats) -> None:
        """Learns the edges of a gate anew; what was counted goes to where most of its values are now."""
        parts = int(np.clip(len(values) // _EACH, 1, LEVELS - 1))
        edges = np.unique(np.quantile(values, np.linspace(0, 1, parts + 1)[1:-1], method="lower"))
        before = 1 + np.searchsorted(self._edges[gate], values)
        after = 1 + np.searchsorted(edges, values)
        self._edges[gate] = edges
        moved = np.zeros((LEVELS, LEVELS))
        np.add.at(moved, (before, after), 1.0)
        empty = np.flatnonzero(moved.sum(axis=1) == 0)
        moved[empty, empty] = 1.0
        moved /= moved.sum(axis=1, keepdims=True)
        own = slice(gate * LEVELS, (gate + 1) * LEVELS)
        self._moves[own] = moved.T @ self._moves[own]
        self._lived[own] = moved.T @ self._lived[own]
        self._work[own] = moved.T @ self._work[own]
        self._new[own] = moved.T @ self._new[own]
        self._moves[:, own] = self._moves[:, own] @ moved
        some = (self._positions >= 0) & (self._classes // LEVELS == gate)
        levels = self._classes[some] % LEVELS
        self._classes[some] += np.argmax(moved, axis=1)[levels] - levels
        self._unsolved = self._reach

    # --- chances ----------------------------------------------------------------------------------

    def _solve(self) -> None:
        """What each class comes to in each rest of a window, by all that was counted."""
        self._unsolved = 0
        rates, runs = self._rates()
        size = self.size
        # What comes of a class: classes, a match, and work. Who leaves faster than that leaves at once.
        small = self._reach / STEPS / (1 << _DOUBLINGS)
        quick = np.minimum(small, _AT_ONCE / np.maximum(rates.sum(axis=1), 1e-12))
        step = np.eye(size + 2)
        step[:size, : size + 1] += rates * quick[:, None]
        step[np.arange(size), np.arange(size)] -= rates.sum(axis=1) * quick
        step[:size, size + 1] = runs * small
        for _ in range(_DOUBLINGS):
            step = step @ step
        on, won, work = step[:size, :size], step[:size, size], step[:size, size + 1]
        self.chances[0], self._to_come[0] = 0.0, 0.0
        for i in range(STEPS):
            self.chances[i + 1] = on @ self.chances[i] + won
            self._to_come[i + 1] = on @ self._to_come[i] + work

    def _rates(self) -> tuple[Floats, Floats]:
        """How often in a unit of time a class goes on to each, and to a match; and how many runs it has."""
        size, gates = self.size, self._gates
        # From level to level is not what others of the gate do.
        moves = self._moves.reshape(gates, LEVELS, size + 1).copy()
        for gate in range(gates):
            moves[gate, :, gate * LEVELS : (gate + 1) * LEVELS] = 0.0
        near = _NEAR ** np.abs(np.subtract.outer(np.arange(LEVELS), np.arange(LEVELS)))
        lived = self._lived.reshape(gates, LEVELS) @ near + 1.0
        usual = np.einsum("kl,glt->gkt", near, moves) / lived[:, :, None]
        usual_runs = (self._work.reshape(gates, LEVELS) @ near + 1.0) / lived
        # As much time as it takes so many of those nearby to leave it.
        time = (_PRIOR / np.maximum(usual.sum(axis=2), _PRIOR / self._reach)).ravel()
        whole = (self._lived + time)[:, None]
        rates = (self._moves + time[:, None] * usual.reshape(size, -1)) / whole
        runs = (self._work + time * usual_runs.ravel()) / whole[:, 0]
        return rates, runs
