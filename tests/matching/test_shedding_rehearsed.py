"""Under a bound: what would become of partial matches is known of all events, whatever is shed."""

from __future__ import annotations

import operator
import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq import Engine
from spaseq.bounds import WorkClock
from spaseq.events import EventBatch
from spaseq.matching.shedding import _kernel_rehearsed as k
from spaseq.matching.shedding import rates
from spaseq.matching.shedding.features import latest
from spaseq.matching.shedding.rates import Rehearsal
from spaseq.patterns.spectra.solutions import Solutions
from tests.benchmarks import sharp
from tests.matching.kept import Kept

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")

S: Final = "http://example.org/s"
_COMPARED: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def rehearsed() -> Rehearsal:
    """What was learned of all events, whatever was shed."""
    found = Kept.made._observed.model.rehearsal
    assert found is not None
    return found


class Blind(Kept):
    """Whose partial matches that wait for an E, or what comes after it, are all gone before it comes."""

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Any:
        gates = self._observed.model.gates
        kept = np.ones((len(gates), 8))
        kept[gates >= 4] = 0.0
        if self._mark(kept.ravel(), 0, 0):
            self._sweep(0, 0, 0)
        return super()._take(batch, start, solutions)


def shares(rehearsal: Rehearsal) -> list[float]:
    """Of each step, the share of trials that went on."""
    steps = rehearsal._features.steps
    went = [rehearsal._features.block(rehearsal._went, step).sum() for step in steps]
    return [float(count / rehearsal._trials(i).sum()) for i, count in enumerate(went)]


def test_what_no_partial_match_comes_to_is_known_too() -> None:
    """They were taken to come to nothing, as the few before them did; all were shed, so that none came."""
    found = sharp.run("Q3", sharp.Stream(1_000, 2, seed=26), 1e9, evaluated=Blind)
    assert not found.matches
    a, b, c, d, e, f, g = shares(rehearsed())
    assert [a, c, e, g] == pytest.approx([1.0, 1.0, 1.0, 1.0])
    # Half of them are above another one, a sixth above the sum of two; the globe is wide.
    assert 0.35 < b < 0.65
    assert 0.03 < d < 0.3
    assert 0.0 < f < 0.15


def test_how_often_a_comparison_is_true_is_known_by_the_values_of_events() -> None:
    sharp.run("Q3", sharp.Stream(1_000, 2, seed=26), 1e9, evaluated=Kept)
    rehearsal = rehearsed()
    assert rehearsal._own.signs == (None, "<", None, "<", None, "<=", None)
    for step, place in ((1, 1), (3, 3)):
        feature = rehearsal._features.places[place].feature
        edges = rehearsal._quantiles.own(feature)
        met = rehearsal._met("<", latest(rehearsal._values, step), feature)
        assert len(edges) > 11
        # V is uniform up to 3,000,000, and what it is compared with lies anywhere between two edges.
        assert np.abs(met[2 : 1 + len(edges)] - (1 - (edges[1:] + edges[:-1]) / 6e6)).max() < 0.2


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(_COMPARED)))
def test_the_share_of_true_comparisons(seed: int, sign: str) -> None:
    rng = random.Random(seed)
    left, right = (np.array([rng.randrange(8) / 2 for _ in range(rng.randrange(1, 9))]) for _ in range(2))
    expected = [np.mean([_COMPARED[sign](x, y) for y in right]) for x in left]
    assert rates._share_of(sign, left, right).tolist() == pytest.approx(expected)


def test_numbers_without_end_are_compared_without_a_warning() -> None:
    """Numpy warned, which a program that takes warnings for errors has as the end of its query."""
    values = np.array([-np.inf, -1.7e308, 0.0, 1.7e308, np.inf])
    for right in (values, values[:1], values[2:3], values[3:], values[1:4]):
        found = rates._expected_of("<", values, right)
        assert found.tolist() == sorted(found.tolist(), reverse=True)
        assert 0.0 <= found.min() <= found.max() <= 1.0


@pytest.mark.slow
def test_no_more_than_a_part_of_the_work_is_for_trials() -> None:
    """A tenth of the work of Q3 is three units an event: of these a thirty-second is an eighth of a trial."""
    tried: list[int] = []

    class Counted(Kept):
        def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Any:
            before = self._observed._trials
            columns = super()._take(batch, start, solutions)
            tried.append(int(before - self._observed._trials))
            return columns

    ran = sharp.run("Q3", sharp.Stream(1_000, 1.5, seed=21), 3.0, evaluated=Counted)
    assert 0 < sum(tried) / 8 <= ran.units.sum() / 32


@pytest.mark.slow
def test_of_what_is_negated_repeated_or_gathered_nothing_is_rehearsed() -> None:
    stream = sharp.Stream(100, 0.5, seed=1)
    for name in ("Q1", "Q2", "Q5", "Q6"):
        sharp.run(name, stream, 1e9, evaluated=Kept)
        assert Kept.made._observed.model.rehearsal is None


def test_ghosts_of_terms_that_are_gone_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their ids are given to other terms, and what stands there may be no number any more."""
    forgotten: list[int] = []
    forget = Rehearsal.forget

    def noted(self: Rehearsal) -> None:
        forgotten.append(int(self._ghosts[:: k.FIRST + k.GHOSTS * self._own.slots].sum()))
        forget(self)
        assert not self._ghosts.any()

    monkeypatch.setattr(Rehearsal, "forget", noted)
    found = []
    for latency in (timedelta(microseconds=4), None):
        rng = random.Random(1)
        engine = Engine(latency=latency, clock=WorkClock(1e-6), matcher="nfa")
        handle = engine.register(
            f"""PREFIX : <http://example.org/> SELECT ?a ?b ?c WITHIN 20 EVENTS SLIDING FROM STREAM S <{S}>
            WHERE {{ SEQ(A : B : C) DEFINE GPM A ON S {{ ?a :a ?x }}
            DEFINE GPM B ON S {{ ?b :b ?y . FILTER(?x < ?y) }}
            DEFINE GPM C ON S {{ ?c :c ?z . FILTER(?x + ?y < ?z) }} }}""",
        )
        for i in range(400):
            number = rng.random() * (1 + i % 3)
            engine.push(S, f"<urn:{i}> <http://example.org/{'abc'[i % 3]}> {number} .", i)
            if i % 50 == 49:
                engine._dictionary.sweep()
        found.append({str(match.bindings) for match in handle.matches()})
    assert set() < found[0] < found[1]
    assert max(forgotten) > 0
