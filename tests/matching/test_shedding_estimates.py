"""Under a bound: what partial matches are worth, and what is said of those that were shed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from spaseq import Engine
from spaseq.bounds import Policy, WorkClock
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.shedding import matcher
from spaseq.matching.shedding._kernel_known import AGES, COUNTS, LIVED
from spaseq.matching.shedding.account import Account
from spaseq.matching.shedding.cost_model import CostModel, ended
from spaseq.matching.shedding.rates import Rates, by_show
from tests.benchmarks import sharp
from tests.matching import kept
from tests.matching.test_shedding_compared import pattern
from tests.matching.test_shedding_shared import events, query

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")


def sketch(name: str) -> CostModel:
    """The sketch of a query of which nothing was seen."""
    return kept.sketch(name, sharp.Stream(100, 0.01, seed=1), 1e9)


@pytest.mark.parametrize("events", [1, 10, 16, 40, 200])
def test_what_its_window_ends_for_has_lived_until_then(events: int) -> None:
    """Of each event that comes, those of all ages are as likely to be the last that one lives through."""
    left = np.arange(16 * AGES) + 0.5
    lived = np.where(left < events, left, 0.0).reshape(AGES, 16).mean(axis=1)[::-1]
    assert ended(events, 16.0).tolist() == pytest.approx(lived.tolist(), abs=0.01)


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


def test_who_sheds_and_finds_nothing_does_not_say_that_nothing_was_missed() -> None:
    """What was shed came to nothing, by all that was known: 1.0 was said, off by 0.0, of 0 matches of 40."""
    bound = timedelta(microseconds=1)  # no more than an event takes by itself
    engine = Engine(matcher="nfa", latency=bound, clock=WorkClock(), policy="random-state")
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
            runs = self._observed
            now = np.zeros_like(runs.model.alive)
            runs.visit(now, runs.instant(*runs.place), 0, 1_000_000, counted=False)
            alive[:] += np.bincount(runs.model.gates, now.reshape(-1, AGES).sum(axis=1))

    monkeypatch.setattr(matcher, "_BRIEF", brief)
    monkeypatch.setattr(CostModel, "decay", lambda *_: None)
    monkeypatch.setattr(CostModel, "learn", lambda _: False)
    stream = sharp.Stream(400, 4, seed=41)
    stream.kinds %= 3
    monkeypatch.setattr(sharp, "pattern", lambda _: pattern("?bx > ?ax", "?cx > ?bx"))
    sharp.run("", stream, 1e9, evaluated=Counted)
    of = kept.Kept.made._observed.model
    lived = np.bincount(of.gates, of.counts.reshape(-1, COUNTS)[:, LIVED])
    assert (lived / np.maximum(alive, 1))[1:].tolist() == pytest.approx([1.0, 1.0], abs=0.03)


def test_what_is_shed_misses_no_more_matches_than_as_much_of_the_rest_finds() -> None:
    """Where an element repeats, the cost model expects many times too much of what is shed."""
    of = sketch("Q3")
    of.expected[:] = 5.0
    account = Account(
        "SEQ(A)", [str(gate) for gate in range(len(of.features.bases))], Policy.SHARP, is_chosen=False
    )
    account.make(100)
    account.find(10)
    shed = np.zeros_like(of.alive)
    shed[-1] = 20
    account.add(shed, of)
    account.estimate()
    assert account.shed.recall == pytest.approx(0.8)
