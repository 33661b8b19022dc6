"""Under a bound: where all partial matches are worth the same, none is shed for a burst alone."""

from __future__ import annotations

import numpy as np
import pytest

from spaseq.matching.shedding.burst import BurstFilter
from spaseq.matching.shedding.cost_model import evenness
from spaseq.matching.shedding.matcher import SheddingNfa, due
from spaseq.matching.shedding.overload import Overload
from tests.benchmarks import sharp


@pytest.mark.parametrize(
    ("value", "cost", "even"),
    [
        ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0], 1.0),
        ([1.0, 0.0], [1.0, 1.0], 0.0),
        ([1.0, 0.5, 0.0], [1.0, 1.0, 0.0], 0.585),  # the worse half brings two thirds of what it would
        ([0.0, 0.0], [1.0, 1.0], 0.0),
        ([], [], 0.0),
    ],
)
def test_it_is_even_where_as_much_comes_of_the_work_of_all(
    value: list[float], cost: list[float], even: float
) -> None:
    assert evenness(np.array(value), np.array(cost)) == pytest.approx(even, abs=0.01)


def _taking(even: float, slow: float = 1.0) -> Overload:
    """What events take in turns; ``slow``: every other time a unit of work takes so many times as long."""
    overload = Overload(10.0)
    overload.even = even
    for i in range(1_000):
        load = 8.0 if i // 64 % 2 else 1.0
        units = 1.0 + load * (1.5 if i // 32 % 2 else 0.5)
        overload.measure(1, units * (slow if i // 100 % 2 else 1.0), load, units)
    return overload


def test_where_all_is_worth_the_same_less_of_the_bound_is_left_free() -> None:
    assert _taking(1.0).most > _taking(0.5).most > _taking(0.0).most


def test_but_not_less_than_for_what_a_unit_of_work_takes_more_at_times() -> None:
    assert _taking(1.0, slow=3.0).most < 0.9 * _taking(1.0).most


def test_where_all_is_worth_the_same_it_is_shed_for_the_load_that_lasts() -> None:
    burst = 1_000.0
    assert _taking(0.0).share(_taking(0.0).lasting(burst)) < 0.1
    assert _taking(1.0).share(_taking(1.0).lasting(burst)) == 1.0


@pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")
@pytest.mark.parametrize(("name", "all_may_be"), [("Q5", True), ("Q3", False)])
@pytest.mark.few(1)
def test_where_all_is_worth_the_same_half_is_not_shown_whatever_it_takes(
    monkeypatch: pytest.MonkeyPatch, name: str, all_may_be: bool
) -> None:
    """Of Q5 what a D is shown promises the most, so that it was never passed over: 1.43 of the bound."""
    shown, least = [1.0], BurstFilter._least

    def noted(self: BurstFilter, share: float) -> float:
        shown.append(share)
        return least(self, share)

    monkeypatch.setattr(BurstFilter, "_least", noted)
    stream = sharp.Stream(1_000, 2.5, seed=8)
    sharp.run(name, stream, {"Q5": 5.5, "Q3": 25.0}[name])
    assert (min(shown) < 0.3) == all_may_be


def _always(even: float) -> property:
    return property(lambda _: even, lambda *_: None)


@pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")
@pytest.mark.slow
def test_where_all_is_worth_the_same_it_is_looked_half_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks were a sixteenth of the work of Q5, of which nothing was learned that mattered."""
    looks, look = 0, SheddingNfa._end_look

    def noted(self: SheddingNfa, axis: int, time: int) -> None:
        nonlocal looks
        looks += 1
        look(self, axis, time)

    monkeypatch.setattr(SheddingNfa, "_end_look", noted)
    stream = sharp.Stream(1_000, 1.5, seed=8)
    often = list[int]()
    for even in (0.0, 0.5, 1.0):
        monkeypatch.setattr(Overload, "even", _always(even), raising=False)
        looks = 0
        sharp.run("Q5", stream, 1e9)
        often.append(looks)
    assert often[0] > 20
    assert [count / often[0] for count in often] == pytest.approx([1.0, 2 / 3, 1 / 2], abs=0.1)


@pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")
@pytest.mark.slow
def test_a_look_waits_while_events_take_all_that_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """In windows of 4,000 it took a seventh of what 64 events may: of those that broke it most had one."""
    look, count, soon = SheddingNfa._look, 0, 0

    def noted(self: SheddingNfa, axis: int, time: int, most: int) -> None:
        nonlocal count, soon
        if not self._observed.hand and self._passing is not None and self._overload is not None:
            count += 1
            waits = not self._passing.leaves(self._pause)
            soon += waits and self._spent < due(self._pause, self._overload.even, waits=True)
        look(self, axis, time, most)

    monkeypatch.setattr(SheddingNfa, "_look", noted)
    sharp.run("Q5", sharp.Stream(1_000, 4, seed=8), 3.0)
    assert count > 50
    assert not soon


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")
@pytest.mark.parametrize(("name", "least"), [("Q5", 0.8), ("Q6", 0.85)])
def test_of_row_patterns_half_of_the_work_finds_most(name: str, least: float) -> None:
    """Before, it found 66 % of Q5 and 74 % of Q6: lots do as well."""
    shares, late = list[float](), list[float]()
    for seed in range(1, 5):
        stream = sharp.Stream(1_000, 2.5, seed=seed)
        whole = sharp.run(name, stream, None)
        bound = 0.5 * float(whole.latency.mean())
        some = sharp.run(name, stream, bound)
        assert some.matches <= whole.matches
        shares.append(len(some.matches) / len(whole.matches))
        late.append(float(np.quantile(some.latency, 0.99)) / bound)
    assert np.mean(shares) > least
    assert np.mean(late) <= 1.1
