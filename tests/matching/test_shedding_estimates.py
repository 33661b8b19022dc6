"""Under a bound: what partial matches are worth, and what is said of those that were shed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from math import factorial
from typing import Any

import numpy as np
import pytest

from spaseq import Engine
from spaseq.effort import WorkClock
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.shedding import looking
from spaseq.matching.shedding.compiled._kernel_known import AGES, COUNTS, LIVED
from spaseq.matching.shedding.learned import rehearsal
from spaseq.matching.shedding.learned.rates import Rates, by_show
from spaseq.matching.shedding.learned.sketch import Sketch, ended
from tests.benchmarks import sharp
from tests.matching import kept
from tests.matching.plain_rates import rest
from tests.matching.test_shedding_compared import pattern
from tests.matching.test_shedding_shared import events, query

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")


def sketch(name: str) -> Sketch:
    """The sketch of a query of which nothing was seen."""
    return kept.sketch(name, sharp.Stream(100, 0.01, seed=1), 1e9)


@pytest.mark.parametrize("events", [1, 10, 16, 40, 200])
def test_what_its_window_ends_for_has_lived_until_then(events: int) -> None:
    """Of each event that comes, those of all ages are as likely to be the last that one lives through."""
    left = np.arange(16 * AGES) + 0.5
    lived = np.where(left < events, left, 0.0).reshape(AGES, 16).mean(axis=1)[::-1]
    assert ended(events, 16.0).tolist() == pytest.approx(lived.tolist(), abs=0.01)


@pytest.mark.parametrize("steps", range(1, 5))
def test_what_follows_late_in_an_age_has_less_time(steps: int) -> None:
    """Of six events in what was left of a window, all were taken to have half of the last eighth, each."""
    still = np.zeros(1)
    rate, always = np.ones((1, 2, 1, AGES)), np.ones((1, 1))
    for _ in range(steps):
        rate = rest(rate, always, still, 1.0)
        always = np.zeros((1, 1))
    ends = np.arange(AGES, -1, -1)
    exact = -np.diff(ends.astype(float) ** (steps + 1)) / factorial(steps + 1)
    assert rate[0, 0, 0].tolist() == pytest.approx(exact.tolist(), rel=0.2)
    assert rate[0, 0, 0, :-1].tolist() == pytest.approx(exact[:-1].tolist(), rel=0.01)
    assert rate[0, 1, 0].tolist() == pytest.approx((ends[:-1] ** steps / factorial(steps)).tolist(), rel=0.01)


def test_what_an_event_brings_is_of_those_that_it_is_shown_to() -> None:
    """Half of all events are shown to those before B, so that each brings twice what one does on average."""
    of = sketch("Q3")
    rates, load = Rates(of.features, of.queries), np.zeros(of.features.classes)
    value = np.full((of.features.classes, AGES), 3.0)
    number, goes = (
        int(of.features.bases[1]),
        np.zeros(of.features.block(of.steps, of.features.steps[1]).shape),
    )
    rates.matched[number], load[number], goes[0, 0] = 0.25, 0.5, 0.125
    rates.set(1, goes)
    gain, work = rates.at_once(load, value)
    assert gain[number].tolist() == [0.25 + 0.125 * 3.0] * AGES
    assert work[number] == 0.5 + 0.25 + 0.125
    shown = by_show(gain, load)
    assert shown[number].tolist() == [2 * (0.25 + 0.125 * 3.0)] * AGES
    assert shown.sum() == shown[number].sum()


def test_a_kleene_of_few_events_is_not_overrated() -> None:
    """A rate squared is too much, on average, if few events told it: of ten, five B are 0.3 of that."""
    of = sketch("Q1")
    again = [i for i, step in enumerate(of.features.steps) if step.round]
    assert [(s.gpm, s.round, s.before) for s in of.features.steps if s.round] == [("B", 1, 2)]
    of.came["B"] = 10.0
    of._rate(is_fair=True)
    (i,) = again
    sizes = [of.features.size(step.source) for step in of.features.steps]
    scales = np.split(of._rates.scales, np.cumsum(sizes)[:-1])
    by_depth = scales[i].reshape(of.features.places[of.features.steps[i].source].depths, -1)[:, 0]
    # A run of A and one B has two events.
    assert by_depth[2:6].tolist() == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert all((scale == 1).all() for j, scale in enumerate(scales) if j != i)


def test_what_no_event_can_reach_is_not_worth_a_little() -> None:
    values = np.linspace(0.0, 99.0, 100)
    left = np.array([-1e6, 50.5, 99.5, 1e6])
    always, half, beyond, never = rehearsal._expected_of("<", left, values, False).tolist()
    assert half == pytest.approx(0.485, abs=0.01)
    # A little above the greatest of a hundred, the next one may be above it.
    assert 0.002 < beyond < 0.005
    assert never < 1e-6
    assert always > 1 - 1e-6
    assert rehearsal._expected_of("<", left, values, True)[3] == pytest.approx(0.5 / 101)
    # Of a single value nothing is known but what is equal.
    assert rehearsal._expected_of("<", np.array([1.0, 2.0]), np.array([1.0]), False).tolist() == [0.25, 0.0]


def test_who_sheds_and_finds_nothing_does_not_say_that_nothing_was_missed() -> None:
    """What was shed came to nothing, by all that was known: 1.0 was said, off by 0.0, of 0 matches of 40."""
    bound = timedelta(microseconds=1)  # no more than an event takes by itself
    engine = Engine(evaluator="kernel", latency=bound, clock=WorkClock(), policy="random-state")
    handle = engine.register(query("A : B{2}"))
    engine.push_many("http://example.org/s", events(300, seed=5))
    engine.close()
    assert not list(handle.matches())
    shed = handle.stats.shed
    assert shed is not None
    assert shed.partial_matches > 0
    assert shed.recall == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("brief", [8.0, -1.0])
def test_what_partial_matches_live_through_is_counted_once(
    brief: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a look is spread over events, each partial match seemed to live through a tenth more of them."""
    alive = np.zeros(3)

    class Counted(kept.Kept):
        def process(self, *given: Any) -> Iterator[Block]:
            yield from super().process(*given)
            now = np.zeros_like(self._sketch.alive)
            self._visit(now, *self._place, 0, 1_000_000, 0, False)
            alive[:] += np.bincount(self._sketch.gates, now.reshape(-1, AGES).sum(axis=1))

    monkeypatch.setattr(looking, "_BRIEF", brief)
    monkeypatch.setattr(Sketch, "decay", lambda *_: None)
    monkeypatch.setattr(Sketch, "learn", lambda _: False)
    stream = sharp.Stream(400, 4, seed=41)
    stream.kinds %= 3
    monkeypatch.setattr(sharp, "pattern", lambda _: pattern("?bx > ?ax", "?cx > ?bx"))
    sharp.run("", stream, 1e9, evaluated=Counted)
    of = kept.Kept.made._sketch
    lived = np.bincount(of.gates, of.counts.reshape(-1, COUNTS)[:, LIVED])
    assert (lived / np.maximum(alive, 1))[1:].tolist() == pytest.approx([1.0, 1.0], abs=0.03)
