"""Under a bound, what is swept: seldom for matches alone, and into memory that was in use before."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.effort import Effort, WorkClock
from spaseq.matching.kernel import memory as kernel_memory
from spaseq.matching.kernel import sizing
from spaseq.matching.shedding import observed
from spaseq.matching.shedding.evaluator import Shedding
from spaseq.matching.shedding.fits import obstacles
from tests.benchmarks import sharp
from tests.conftest import examples
from tests.matching.random_sequences import random_query, random_sample
from tests.matching.test_shedding import shedding

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")


class Sweeping(Shedding):
    """Counts how often something had no room, and notes which memory there was."""

    no_room = 0
    memories: list[Any]

    def _make_room(self, columns: Any, decided: int) -> None:
        type(self).no_room += 1
        super()._make_room(columns, decided)

    def _sweep(self, *given: Any, **named: Any) -> None:
        super()._sweep(*given, **named)
        self.memories.append(self._memory.ints)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sweeping, "no_room", 0)
    monkeypatch.setattr(Sweeping, "memories", [], raising=False)


def test_what_was_swept_for_matches_keeps_room_for_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look sweeps, too, when there are no matches: the next event that completes many had no room again."""
    monkeypatch.setattr(sizing, "ENOUGH", kernel_memory.Room(1 << 12, 1 << 12, 1, 1 << 12))
    stream = sharp.Stream(100, 5.0, seed=1)
    sharp.run("Q1", stream, 400.0, evaluated=Sweeping)
    often = Sweeping.no_room
    monkeypatch.setattr(observed, "_KEPT", 0.0)
    sharp.run("Q1", stream, 400.0, evaluated=Sweeping)
    assert Sweeping.no_room - often > 2 * often


def test_two_memories_are_used_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = sharp.Stream(100, 5.0, seed=1)
    monkeypatch.setattr(observed, "_IN_TURNS", range(0))
    found = sharp.run("Q1", stream, 400.0, evaluated=Sweeping).matches
    assert not any(map(np.shares_memory, Sweeping.memories, Sweeping.memories[2:]))
    Sweeping.memories.clear()
    monkeypatch.setattr(observed, "_IN_TURNS", range(1 << 40))
    assert sharp.run("Q1", stream, 400.0, evaluated=Sweeping).matches == found
    again = list(map(np.shares_memory, Sweeping.memories, Sweeping.memories[2:]))
    assert sum(again) > len(again) // 2
    assert not any(map(np.shares_memory, Sweeping.memories, Sweeping.memories[1:]))


@settings(max_examples=examples(60))
@given(st.integers(0, 2**64 - 1))
def test_what_was_in_a_memory_before_is_nowhere(seed: int) -> None:
    """Which queries these are is left to chance: negations, Kleenes, partitions, keys that are asked for."""
    rng = random.Random(seed)
    for _ in range(20):
        query = random_query(rng, alls=False, kernel=rng.random() < 0.5)
        if not query.misfit and not any(obstacles(query.pattern)):
            break
    else:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizing, "ENOUGH", kernel_memory.Room(1, 1, 1, 1))
        sample = random_sample(rng, query, 9)
        bound = rng.choice([1e3, 8.0])
        fresh = shedding(sample, Effort(bound, clock=WorkClock(1.0)))
        patch.setattr(observed, "_IN_TURNS", range(1 << 40))
        assert shedding(sample, Effort(bound, clock=WorkClock(1.0))) == fresh
