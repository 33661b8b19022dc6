"""An interrupt at any call while queries are registered: those that are registered then find all."""

from __future__ import annotations

import pytest

from spaseq import Engine, Handle
from spaseq.errors import EngineError
from tests.attack.test_interrupts import STREAM, AtCall, event, query

#: Some run as one over a table of their constants, others alone.
TEXTS = tuple(query(sequence, f"FILTER(?a > {n})") for n in range(4) for sequence in ("A ; B", "A : B+"))


def pushed(engine: Engine, numbers: range) -> None:
    for number in numbers:
        engine.push(STREAM, event(number), number)


def found(at: AtCall | None) -> tuple[bool, list[int]]:
    """Whether it was interrupted, and the matches of a query from before, and of each of those after it."""
    engine = Engine()
    handles = [engine.register(TEXTS[0])]
    pushed(engine, range(4))
    hit = at is not None and at.during(lambda: [engine.register(text) for text in TEXTS] and None)
    handles += [engine.register(text) for text in TEXTS]
    pushed(engine, range(4, 16))
    return hit, list(map(count, handles))


def count(handle: Handle) -> int:
    """How many matches there are; -1 for a query that says it is over."""
    try:
        return len(list(handle.matches()))
    except EngineError:
        return -1


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize(
    "file",
    [
        "engine/engine.py",
        "engine/handle.py",
        "engine/registered.py",
        "engine/parts/registry.py",
        "engine/pipelines/asking.py",
        "engine/pipelines/intake.py",
        "engine/pipelines/pipeline.py",
        "engine/pipelines/places.py",
        "engine/pipelines/groups/crowd.py",
        "engine/pipelines/groups/seats.py",
    ],
)
def test_registering(file: str) -> None:
    _, expected = found(None)
    assert min(expected) > 0
    number = 1
    while True:
        hit, counts = found(AtCall(file, number))
        # What was pushed before is looked at first, and may be interrupted, too.
        if counts[0] == -1:
            counts[0] = expected[0]
        assert counts == expected, f"interrupted at call {number}"
        if not hit:
            break
        number += 1
    assert number > 5
