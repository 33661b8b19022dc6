"""What first events come to, learned from what they do: against what is known of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from spaseq.matching.shedding.skip import LEVELS, STEPS, Fates

_SIZE = 64
#: How often in a step a first event with such a value has its match.
_OFTEN = {0.0: 0.08, 1.0: 0.004}

Ints = npt.NDArray[np.int64]


def lived(fates: Fates, steps: int, patience: int = _SIZE, seed: int = 1) -> None:
    """A first event a step, of either value; who has waited so long without a match is shed."""
    rng = np.random.default_rng(seed)
    alive = dict[int, tuple[int, float]]()
    for now in range(steps):
        free = next(number for number in range(_SIZE + 1) if number not in alive)
        alive[free] = now, float(rng.integers(0, 2))
        numbers: Ints = np.array(list(alive), dtype=np.int64)
        begun: Ints = np.array([at for at, _ in alive.values()], dtype=np.int64)
        values = np.array([value for _, value in alive.values()])
        ones, zeros = np.ones_like(numbers), np.zeros_like(numbers)
        fates.see(numbers, begun, now - begun, ones, zeros, values, min(now, 1))
        for number, (at, value) in list(alive.items()):
            if now - at >= patience:
                if patience < _SIZE:
                    fates.let_go(np.array([number]))
                del alive[number]
            elif rng.random() < _OFTEN[value]:
                fates.win(number, at)
                del alive[number]


@pytest.mark.parametrize("patience", [_SIZE, 4])
def test_of_what_is_shed_midway_it_is_known_what_it_would_have_come_to(patience: int) -> None:
    fates = Fates(1, _SIZE)
    lived(fates, 600, patience)
    now = 600
    # Numbers beyond those there were; both at the begin of their window.
    seen = fates.see(
        np.array([100, 101]), np.array([now, now]), np.array([0, 0]), np.array([1, 1]), np.array([0, 0]),
        np.array([0.0, 1.0]), 0,
    )  # fmt: skip
    for chance, often in zip(seen.chances.tolist(), _OFTEN.values(), strict=True):
        assert chance == pytest.approx(1 - (1 - often) ** _SIZE, abs=0.12)
    # Each has one run, until its match or the end: what that is on average.
    for work, often in zip(seen.work.tolist(), _OFTEN.values(), strict=True):
        assert work == pytest.approx((1 - (1 - often) ** _SIZE) / often, rel=0.4)


def test_the_most_promising_run_tells_of_a_first_event_and_time_runs_out() -> None:
    fates = Fates(1, _SIZE)
    lived(fates, 600)
    seen = fates.see(
        np.array([100, 101, 102]), np.array([600, 600, 600]), np.array([0, 0, 60]), np.array([2, 1, 1]),
        np.array([0, 0, 0, 0]), np.array([1.0, 0.0, 1.0, 0.0]), 0,
    )  # fmt: skip
    best, worse, late = seen.chances.tolist()
    assert best > 3 * worse
    assert late < best / 2
    assert seen.left.tolist() == [STEPS - 1, STEPS - 1, 1]


def test_gates_beyond_those_told_apart_are_alike_and_values_that_are_none_have_a_level() -> None:
    fates = Fates(40, _SIZE)
    seen = fates.see(
        np.array([0, 1]), np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), np.array([39, 30]),
        np.array([np.nan, np.nan]), 0,
    )  # fmt: skip
    assert seen.gates.tolist() == [39, 30]
    assert seen.classes[0] == seen.classes[1]
    assert seen.classes[0] % LEVELS == 0
    assert ((fates.by_gate(seen.gates) >= 0) & (fates.by_gate(seen.gates) <= 1)).all()


def test_who_begins_and_has_its_match_between_two_looks_counts() -> None:
    """Else what is looked at seldom seems to come to nothing: of those that are seen few have a match."""
    fates, zero = Fates(1, _SIZE), np.zeros(1, dtype=np.int64)
    for now in range(0, 80 * _SIZE, _SIZE // 4):
        seen = fates.see(
            np.array([0]), np.array([now]), zero, zero + 1, zero, np.array([1.0]), min(now, _SIZE // 4)
        )
        for number in (1, 2, 3):  # as many again are seen, and have none
            fates.win(number, now + number)
    assert seen.chances[0] > 0.6
