"""Under a bound: what partial matches are worth, and what is said of those that were shed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from math import factorial
from typing import Any

import numpy as np
import pytest

from spaseq import Engine
from spaseq.effort import Shed, WorkClock
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.shedding import looking
from spaseq.matching.shedding.compiled._kernel_known import AGES, COUNTS, LIVED
from spaseq.matching.shedding.learned import rehearsal
from spaseq.matching.shedding.learned.forgone import Forgone, ended
from spaseq.matching.shedding.learned.rates import Rates, by_show
from spaseq.matching.shedding.learned.sketch import Sketch
from tests.benchmarks import sharp
from tests.matching import kept
from tests.matching.plain_rates import rest
from tests.matching.test_shedding_compared import pattern
from tests.matching.test_shedding_shared import events, query

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")


_BY_NUMBER = """PREFIX : <http://example.org/>
    SELECT ?a ?b ?c WITHIN 200 EVENTS SLIDING FROM STREAM S <http://example.org/s>
    WHERE { SEQ(A : B : C)
      DEFINE GPM A ON S { ?a :a ?k ; :v ?x }
      DEFINE GPM B ON S { ?b :b ?k ; :v ?y . FILTER(?y > ?x) }
      DEFINE GPM C ON S { ?c :c ?k ; :v ?z . FILTER(?z > ?x + ?y) } }"""


def rows(count: int, seed: int) -> list[tuple[str, int]]:
    """Events for it."""
    rng = random.Random(seed)
    return [
        (
            f"<urn:{t}> <http://example.org/{rng.choice('abc')}> {rng.randint(1, 2)} ; "
            f"<http://example.org/v> {rng.randint(0, 100)} .",
            t,
        )
        for t in range(count)
    ]


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


def forgone(of: Sketch, shed: dict[int, int], age: int = 0) -> Forgone:
    """So many partial matches of some classes were shed, at an age."""
    counts = np.zeros((of.features.classes, AGES), dtype=np.int64)
    for number, count in shed.items():
        counts[number, age] = count
    of.forgone = Forgone(of.features, of.gates)
    of.forgone.add(counts.ravel())
    return of.forgone


def test_what_was_shed_is_worth_what_is_known_now() -> None:
    """What was thought of it when it was shed, and little was known, was said of it ever after."""
    of = sketch("Q3")
    gone, worth = forgone(of, {1: 10}), np.zeros((of.features.classes, AGES))
    assert gone.missed == 0.0
    gone.pass_by(6.0, worth)
    assert gone.missed == 0.0
    worth[1, 0] = 2.0
    gone.pass_by(3.0, worth)
    assert gone.missed == pytest.approx(20.0)


def test_most_matches_of_many_steps_come_when_a_window_is_nearly_over() -> None:
    said = []
    # Before B, and before G: six events are left, and one.
    for number in (1, -1):
        of = sketch("Q3")
        gone = forgone(of, {number: 10})
        gone.pass_by(4.0, np.ones((of.features.classes, AGES)))
        said.append(gone.missed)
        gone.pass_by(5.0, np.ones((of.features.classes, AGES)))
        assert gone.missed == pytest.approx(10.0)
    assert said[0] < 1.0 < 3.0 < said[1] < 7.0


def test_something_is_missed_soon_after_it_was_shed() -> None:
    """Who ends in the first eighth of a window does not say that all was found."""
    of = sketch("Q3")
    gone = forgone(of, {-1: 10}, age=6)
    gone.pass_by(0.5, np.ones((of.features.classes, AGES)))
    assert 0.5 < gone.missed < 5.0


def test_of_who_was_not_shown_an_event_what_that_would_have_made_is_missed() -> None:
    """Before G, the match, which is missed at once; before B, what follows, which comes late in a window."""
    of = sketch("Q3")
    shape = of.features.classes, AGES
    for number, soon in ((-1, 10.0), (1, 0.0)):
        gone, cells = Forgone(of.features, of.gates), np.zeros(shape, dtype=np.int64)
        cells[number, 0] = 10
        gone.pass_over(cells.ravel())
        worth = np.stack([np.full(shape, 7.0), np.ones(shape)])
        gone.pass_by(0.5, worth)
        assert gone.missed == pytest.approx(soon, abs=1e-3)
        gone.pass_by(9.0, worth)
        assert gone.missed == pytest.approx(10.0)


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


def test_the_worth_of_long_ago_is_settled() -> None:
    """What is learned after a drift may not be true of what was shed before it."""
    of = sketch("Q3")
    gone, worth = forgone(of, {1: 10}), np.ones((of.features.classes, AGES))
    gone.pass_by(8.0, worth)
    for _ in range(8 * AGES):
        gone.pass_by(1.0, worth)
    for _ in range(8):
        gone.pass_by(1.0, worth * 0)
    assert 9.0 < gone.missed <= 10.0


def test_what_was_shed_stays_what_it_was_when_quantiles_are_others() -> None:
    """What is shed is the worst: of all codes alike it was said to be three times as much."""
    of = sketch("Q3")
    place = of.features.places[1]
    ring = of.quantiles.rings[place.begin * 513 :][:513]

    def come(values: list[float]) -> None:
        ring[1 : 1 + len(values)] = values
        ring[0] += len(values)

    come([float(x) for x in range(100)])
    assert of.quantiles.learn(place.begin, None)
    begin = int(of.features.bases[place.gates[0]])
    least, most = 1 + np.searchsorted(of.quantiles.own(place.begin), [2.0, 50.0])
    gone = forgone(of, {begin + int(least): 10, begin + int(most): 1})
    # Most values that come later are greater, but some are as before.
    come([float(x) for x in range(100)] + [1_000.0 + x for x in range(412)])
    ring[0] = 10_000.0  # so that it is due
    assert of.quantiles.learn(place.begin, None)
    gone.recode(place, place.begin, of.quantiles.moved)
    lowest, highest = 1 + np.searchsorted(of.quantiles.own(place.begin), [2.0, 50.0])
    shed = gone._lately[0, 0, begin : begin + place.size, 0]
    assert shed.sum() == pytest.approx(11.0)
    assert lowest < highest
    assert shed[lowest] == pytest.approx(10.0)
    assert shed[highest] == pytest.approx(1.0)


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


@pytest.mark.slow
def test_recall_is_not_said_to_be_too_low() -> None:
    """At half of the work of these streams it was said to be 13 points less than it was, on average.

    It was 8.5 while what was passed over was judged by what makes one worth keeping, which is too high.
    """
    off = []
    for seed in range(1, 13):
        stream = sharp.Stream(1_000, 2.5, seed=seed)
        every = sharp.run("Q4", stream, None)
        ours = sharp.run("Q4", stream, 0.5 * float(every.latency.mean()))
        assert ours.recall is not None
        off.append(ours.recall - len(ours.matches) / len(every.matches))
    assert -0.065 < np.mean(off) < 0.05


@pytest.mark.slow
def test_nor_is_that_of_a_kleene() -> None:
    """It was 7.6 points too low, with two steps of B and more: what was not seen to live until its window
    ended seemed to go on more often than it does, each time.
    """
    off = []
    for name, seed in product(("Q1", "Q2"), range(1, 33)):
        stream = sharp.Stream(100, 2.5, seed=seed)
        every = sharp.run(name, stream, None)
        ours = sharp.run(name, stream, 0.5 * float(every.latency.mean()))
        assert ours.recall is not None
        off.append(ours.recall - len(ours.matches) / len(every.matches))
    assert -0.05 < np.mean(off) < 0.05


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
    assert (shed.recall, shed.error) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("window", ["EVENTS SLIDING", "EVENTS TUMBLING", "SECONDS TUMBLING"])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_in_a_window_that_hardly_begins_it_is_known_what_is_missed(window: str, share: float) -> None:
    """It was said to be nothing, of 49 and 3 % found: what was missed was counted by parts of a window."""
    text = query("A : B : C", window="1000000000 EVENTS").replace("EVENTS SLIDING", window)

    def ran(units: float) -> tuple[int, Shed, float]:
        clock = WorkClock()
        engine = Engine(evaluator="kernel", latency=timedelta(microseconds=units), clock=clock)
        handle = engine.register(text)
        for event, t in events(600, seed=5):
            engine.push("http://example.org/s", event, t)
        engine.close()
        assert handle.stats.shed is not None
        return len(list(handle.matches())), handle.stats.shed, clock.units / 600

    every, _, mean = ran(1e12)
    some, shed, _ = ran(share * mean)
    assert shed.recall is not None
    assert some < every
    assert shed.recall == pytest.approx(some / every, abs=0.12)


@pytest.mark.slow
def test_what_a_sample_of_few_rows_says_by_lazy_is_within_its_error() -> None:
    """Of what is shed at first a few rows are kept, to see what comes of it, and each is in many matches.

    As if each stood for one match, 1 ± 0.15 was said of a quarter, and 0.4 ± 0.33 of 0.78: a third of these
    readings was off by more than was said.
    """
    readings = beyond = 0
    for seed in (3, 7, 8):
        pushed, ends = rows(800, seed=seed), range(50, 801, 50)
        every = found_by(pushed, ends)
        bounded = found_by(pushed, ends, latency=timedelta(microseconds=60), clock=WorkClock(1e-6))
        for (some, shed), (most, _) in zip(bounded, every, strict=True):
            if most:
                assert shed is not None
                readings += 1
                beyond += abs(some / most - shed[0]) > shed[1]
    assert readings > 40
    assert beyond <= readings / 10


def found_by(
    pushed: list[tuple[str, int]], ends: range, **bounds: Any
) -> list[tuple[int, tuple[float, float] | None]]:
    """How many matches have come after so many events, by lazy; what is said of recall, and its error."""
    engine = Engine(evaluator="lazy", **bounds)
    handle = engine.register(_BY_NUMBER)
    found, told = 0, list[tuple[int, tuple[float, float] | None]]()
    for at in range(0, len(pushed), 5):
        engine.push_many("http://example.org/s", pushed[at : at + 5])
        found += sum(len(batch) for batch in handle.batches())
        if at + 5 in ends:
            shed = handle.stats.shed
            told.append((found, None if shed is None else (shed.recall or 0.0, shed.error or 0.0)))
    return told


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
