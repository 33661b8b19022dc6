"""Durations read from text, and a first window (WITHIN) for the rows of a file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import median_low
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.sources.times import read_time

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"

#: Round durations in seconds. Longer ones are whole days.
_ROUND: Final = {
    size * seconds: f"{size} {unit}"
    for unit, seconds, sizes in (
        ("SECONDS", 1, (1, 2, 5, 10, 20, 30)),
        ("MINUTES", 60, (1, 2, 5, 10, 20, 30)),
        ("HOURS", 3_600, (1, 2, 6, 12)),
    )
    for size in sizes
}
_DAY: Final = 86_400

#: The default window of instants, days and ticks, in seconds and as text, if it holds ``_FEW`` gaps between
#: events of a key. Otherwise the window is one that holds ``_MANY``.
_USUAL: Final = {"dateTime": (3_600, "1 HOURS"), "date": (7 * _DAY, "7 DAYS"), "integer": (10, "10 SECONDS")}
_FEW: Final = 2
_MANY: Final = 10

#: Units of a number that stands for a time between 1973 and 2128: how many of them are a second.
_EPOCHS: Final = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
#: Units of a duration: as in WITHIN, or abbreviated.
_UNITS: Final = {
    "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days",
    "microsecond": "microseconds", "millisecond": "milliseconds", "second": "seconds",
    "minute": "minutes", "hour": "hours", "day": "days",
}  # fmt: skip


def read_duration(text: str) -> timedelta:
    """Return a duration such as ``5s`` or ``1 DAYS``. Raises ValueError for other texts.

    >>> read_duration("1.5m"), read_duration("250ms"), read_duration("1 DAYS")
    (datetime.timedelta(seconds=90), datetime.timedelta(microseconds=250000), datetime.timedelta(days=1))
    """
    found = _DURATION.fullmatch(text.strip())
    unit = found[2].lower() if found else ""
    if found is None or (unit not in _UNITS and unit.removesuffix("s") not in _UNITS):
        raise ValueError(f"{text!r} is not a duration: write a number and ms, s, m, h or d, as in 5s")
    try:
        return timedelta(**{_UNITS.get(unit) or _UNITS[unit.removesuffix("s")]: float(found[1])})
    except OverflowError:
        raise ValueError(f"{text!r} is too long a duration") from None


def epoch_of(times: Sequence[str]) -> str | None:
    """Return the unit of integers since 1970, by their size: a key of ``_EPOCHS``; None for ticks.

    >>> epoch_of(["1700000000000", "1700000060000"]), epoch_of(["1", "2"])
    ('milliseconds', None)
    """
    middle = median_low(map(int, times))
    return next((unit for unit, n in _EPOCHS.items() if 10**8 * n <= middle < 5 * 10**9 * n), None)


def window_of(kind: str, times: Sequence[str], keys: Sequence[Hashable]) -> str:
    """Return a window, as WITHIN has it, that holds several events of a key. ``kind``: a key of ``_USUAL``.

    If there are fewer keys than times, not every row has one, and all rows count as one key.

    >>> window_of("integer", ["1700000000", "1700000060", "1700000120"], ["a", "a", "a"])
    '10 MINUTES'
    >>> window_of("integer", ["1700000000000", "1700000060000"], ["a", "a"])
    '1000000 SECONDS'
    >>> window_of("dateTime", ["2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"], [])
    '1 HOURS'
    """
    seconds, usual = _USUAL[kind]
    gaps = list(_gaps(kind, times, keys if len(keys) == len(times) else [None] * len(times)))
    gap = median_low(gaps) if gaps else 0
    if _FEW * gap <= seconds:
        return usual
    if kind == "integer" and epoch_of(times) != "seconds":
        return f"{_whole(_MANY * gap)} SECONDS"
    rounded = next((text for size, text in _ROUND.items() if size >= _MANY * gap), None)
    return rounded or f"{_whole(-(-_MANY * gap // _DAY))} DAYS"


def _gaps(kind: str, times: Sequence[str], keys: Sequence[Hashable]) -> Iterator[int]:
    """Yield the seconds from each event to the next of its key, except between events at the same time."""
    of: dict[Hashable, list[int]] = {}
    for text, key in zip(times, keys, strict=True):
        try:
            time = read_time(Literal(text, datatype=NamedNode(_XSD + kind)))
        except ValueError:
            continue  # the row will be a bad event
        of.setdefault(key, []).append(time.value)
    unit = 1 if kind == "integer" else 1_000_000
    for values in of.values():
        yield from (-(-(after - before) // unit) for before, after in pairwise(sorted(set(values))))


def _whole(least: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, … that is not below ``least``."""
    power = 1
    while 5 * power < least:
        power *= 10
    return next(n * power for n in (1, 2, 5) if n * power >= least)
