"""Ticks that look like milliseconds, microseconds or nanoseconds since the epoch: a warning, once a query."""

from __future__ import annotations

import warnings

import pytest

import spaseq
from tests.streams import NS, query

NOW = 1_522_540_831


def said(time: int, window: str) -> list[str]:
    """The warnings when two events are pushed."""
    engine = spaseq.Engine()
    engine.register(query("A ; B", window))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for tick in (time, time + 1):
            engine.push(NS + "S", f"<urn:{tick}> a <{NS}a> ; <{NS}v> 1 .", tick)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("per_second", "unit", "instead"),
    [
        (10**3, "milliseconds", "WITHIN 300000 SECONDS SLIDING"),
        (10**6, "microseconds", "WITHIN 300000000 SECONDS SLIDING"),
        (10**9, "nanoseconds", "WITHIN 300000000000 SECONDS SLIDING"),
    ],
)
def test_what_to_write_instead(per_second: int, unit: str, instead: str) -> None:
    time = NOW * per_second
    (shown,) = said(time, "5 MINUTES SLIDING")
    assert f"times such as {time} look like {unit} since the epoch, but a tick counts as a second" in shown
    assert f"WITHIN 5 MINUTES is 300 ticks; write {instead}, or give the times as xsd:dateTime" in shown
    assert said(time, instead.removeprefix("WITHIN ")) == []


@pytest.mark.parametrize(
    ("time", "window"),
    [(5, "5 MINUTES"), (NOW, "5 MINUTES"), (NOW * 1000, "100 EVENTS"), (-NOW * 1000, "5 MINUTES")],
)
def test_of_what_nothing_is_said(time: int, window: str) -> None:
    assert said(time, window) == []
