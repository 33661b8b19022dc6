"""Under a bound: what kernels expect of partial matches is what plain Python does."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from spaseq.matching.shedding import _kernel_known as k
from spaseq.matching.shedding.cost_model import CostModel
from spaseq.matching.shedding.rates import shrunk
from tests.benchmarks import sharp
from tests.matching import kept
from tests.matching import plain_rates as plain

#: How many times what comes may be what is foreseen, or the other way round.
STEADY: Final = {"Q3": 1.4, "Q4": 1.4, "Q5": 1.25, "Q6": 1.25}
#: The same where much is shed, of which nothing is learned.
SHED: Final = {"Q3": 1.7, "Q4": 1.7, "Q5": 1.4, "Q6": 1.4}

pytestmark = pytest.mark.filterwarnings("ignore:(SEQ|ROWS).*:spaseq.errors.SpaseqWarning")


def sketch(name: str) -> CostModel:
    """The sketch of a query that has shed for two windows."""
    return kept.sketch(name, sharp.Stream(200, 1.5, seed=5), 8.0)


@pytest.mark.parametrize("name", sharp.QUERIES)
def test_what_follows_is_what_plain_python_says(name: str) -> None:
    of = sketch(name)
    of.plan(np.inf)
    prices = set()
    for most in (np.inf, 0.3 * of.coming, 0.1 * of.coming, 0.0):
        of.plan(most)
        prices.add(of.price)
        rates = plain.rates(of)
        np.testing.assert_allclose(
            (of._ahead.value, of._ahead.cost), plain.follow(of, rates, of.price), rtol=1e-9
        )
        for found, expected in zip(of.at_once(), plain.at_once(of, rates, of._ahead.value), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert len(prices) > 1


def counted(of: CostModel) -> float:
    """The units of work that an event was of late, if none was passed over."""
    counts = of.counts.reshape(-1, k.COUNTS)
    of_all = of.shows.sum() + of.steps.sum() + counts[:, k.MATCHED].sum()
    return float(1 + of_all / counts[of.features.bases[0], k.LIVED])


@pytest.mark.parametrize(("name", "off"), STEADY.items())
@pytest.mark.few(1, ci=2)
def test_what_events_take_is_foreseen(name: str, off: float) -> None:
    """Half of it was, so that work had no price where there was twice too much of it."""
    of = kept.sketch(name, sharp.Stream(500, 4, seed=12), 1e9)
    of.plan(np.inf)
    assert 1 / off < of.coming / counted(of) < off


@pytest.mark.few(0, ci=2)
@pytest.mark.parametrize(("name", "off"), SHED.items())
def test_what_they_would_take_is_foreseen_though_much_is_shed(name: str, off: float) -> None:
    """A third of it was, or a half."""
    stream = sharp.Stream(500, 4, seed=12)
    usual = counted(kept.sketch(name, stream, 1e9))
    of = kept.sketch(name, stream, usual / 2)
    of.plan(usual / 4)
    assert 1 / off < of.coming / usual < off
    assert of.price > 0


def test_a_class_of_which_little_is_known_goes_on_as_all_of_its_gate() -> None:
    went = np.array([[200.0], [0.0], [30.0], [1.0]])
    lived = np.array([1_000.0, 1_000.0, 1_000.0, 1.0])
    usual, never, seldom, unknown = shrunk(went, lived, 0.01)[:, 0]
    assert usual == pytest.approx(0.2, rel=0.05)
    assert never < 0.01
    assert seldom == pytest.approx(0.03, rel=0.1)
    assert 0.05 < unknown < 0.15
