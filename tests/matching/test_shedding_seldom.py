"""Under a bound: what takes a while between events keeps nobody from looking at partial matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spaseq.matching.shedding.cost_model import CostModel
from tests.benchmarks import sharp
from tests.matching.kept import Kept
from tests.matching.test_shedding_compared import pattern

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")

_WINDOW = 400
#: Units that a plan takes; the bound is a hundredth of that.
_LONG = 4_000
_BOUND = 40.0


def long(what: Callable[..., Any]) -> Callable[..., Any]:
    """The same, which takes long."""

    def done(*given: Any, **named: Any) -> Any:
        clock = Kept.made._bound.clock
        clock.add(_LONG)  # type: ignore[attr-defined]
        return what(*given, **named)

    return done


@pytest.mark.slow
def test_looks_do_not_wait_for_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock a plan takes long: looks came five windows apart, and most partial matches came and went
    unseen.
    """
    looks = list[int]()

    class Looked(Kept):
        def _end_look(self, axis: int, time: int) -> None:
            looks.append(self._observed.given)
            super()._end_look(axis, time)

        def _load_passes(self) -> None:
            Kept.made = self
            super()._load_passes()

    monkeypatch.setattr(CostModel, "plan", long(CostModel.plan))
    monkeypatch.setattr(sharp, "pattern", lambda _: pattern("?bx > ?ax", "?cx > ?bx"))
    stream = sharp.Stream(_WINDOW, 6, seed=41)
    stream.kinds %= 3
    sharp.run("", stream, _BOUND, evaluated=Looked)
    assert Looked.made.shed.active
    assert np.diff(looks).max() < 0.6 * _WINDOW
