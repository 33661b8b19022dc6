"""What queries that begin alike have found by ``tecs`` is walked at once, as far as there is room."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.matching.sharing import by_tecs
from spaseq.matching.tecs import walking
from spaseq.matching.tecs.memory import Roots
from spaseq.matching.tecs.walking import WalkedRoots
from tests.conftest import examples
from tests.engine.test_shared_prefixes import check_against_each_alone
from tests.streams import NS, letters, query

Ints = npt.NDArray[np.int64]

#: Room for matches of a root, for matches at first, events a match, matches of all, nodes on a way.
_ROOMS = [
    (8, 1 << 14, 4, 1 << 20, 64),
    (1, 2, 1, 1 << 20, 64),
    (2, 5, 3, 12, 64),
    (8, 1 << 14, 4, 1 << 20, 3),
]


@settings(max_examples=examples(60), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
@pytest.mark.slow
def test_as_if_each_were_alone(seed: int) -> None:
    names = ("_OF_A_ROOT", "_MOST_AT_FIRST", "_EVENTS", "_MOST_TOGETHER", "_DEEP")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_tecs, "_WORTH", 1)
        for name, size in zip(names, random.Random(seed).choice(_ROOMS), strict=True):
            patch.setattr(walking, name, size)
        check_against_each_alone("tecs", seed)


class _Counted:
    """What is walked at once, counted: of whom it is known, and of how many roots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.known: list[list[int]] = []
        monkeypatch.setattr(by_tecs, "_WORTH", 1)
        monkeypatch.setattr(by_tecs, "walked_together", self)

    def __call__(self, memory: Roots, found: Sequence[Ints]) -> list[tuple[WalkedRoots, int] | None]:
        given = walking.walked_together(memory, found)
        self.known.append([0 if one is None else one[1] for one in given])
        return given


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> _Counted:
    return _Counted(monkeypatch)


def _pushed(engine: spaseq.Engine, events: str) -> None:
    """Events in one batch."""
    engine.push_many(f"{NS}S", [(each.turtle, each.time, f"{NS}{each.name}") for each in letters(events)])


def test_what_there_is_no_room_for_is_walked_later(
    counted: _Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each C has four matches, of which there is room for six."""
    monkeypatch.setattr(walking, "_OF_A_ROOT", 3)
    engine = spaseq.Engine()
    texts = [query("A : B : C"), query("A : B : D")]
    first, second = (engine.register(text) for text in texts)
    _pushed(engine, "a1 a2 b3 b4 c5 c6 d7")
    assert counted.known == [[1, 0]]
    assert [len(list(handle.matches())) for handle in (first, second)] == [8, 4]


def test_who_does_not_read_is_walked_for_once(counted: _Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each C and D has 820 matches; of a thousand that nobody has read no more are looked for."""
    monkeypatch.setattr(walking, "_OF_A_ROOT", 1_000)
    engine = spaseq.Engine()
    first, second = (engine.register(query(f"A : B : {name}", "1000 SECONDS")) for name in "CD")
    _pushed(engine, " ".join(f"{'ab'[i % 2]}{i}" for i in range(80)))
    for time in (80, 90, 100):
        _pushed(engine, f"c{time} d{time + 1} c{time + 2} d{time + 3}")
        assert sum(map(len, second.batches())) == 2 * 820
    assert counted.known == [[2, 2], [2, 2]]
    assert sum(map(len, first.batches())) == 6 * 820


@pytest.mark.slow
def test_there_is_no_more_room_than_for_so_many(counted: _Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first has room for all of its matches, eight of two roots, and leaves none for the second."""
    monkeypatch.setattr(walking, "_MOST_TOGETHER", 12)
    engine = spaseq.Engine()
    texts = [query("A : B : C"), query("A : B : D")]
    first, second = (engine.register(text) for text in texts)
    _pushed(engine, "a1 a2 b3 b4 c5 c6 d7")
    assert counted.known == [[2, 0]]
    assert [len(list(handle.matches())) for handle in (first, second)] == [8, 4]
