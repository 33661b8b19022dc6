"""2,400 random queries with their matches by an independent brute force, on the second judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.judge.solve import solve
from tests.judge.vectors import read


def differences(path: Path, every: int) -> list[int]:
    """The seeds of the vectors that the second judge answers otherwise, of every so many."""
    cases = json.loads(path.read_text())["cases"]
    assert len(cases) == 2_400
    wrong = []
    for case in cases[::every]:
        found = sorted(sorted((g, e.i) for g, e in m.events) for _, m in solve(*read(case)))
        if found != sorted(sorted((g, i) for g, i in match) for match in case["matches"]):
            wrong.append(case["seed"])
    return wrong


def test_some_vectors(shared: Callable[[str], Path]) -> None:
    assert differences(shared("seq-vectors") / "vectors-2.json", 12) == []


@pytest.mark.long
def test_all_vectors(shared: Callable[[str], Path]) -> None:
    assert differences(shared("seq-vectors") / "vectors-2.json", 1) == []
