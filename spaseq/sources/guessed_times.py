"""Guess from its cells how a column of times is written: the options that read it, and their results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from spaseq.events import Clock
from spaseq.sources._options import SourceOptions
from spaseq.sources.formats.row_times import RowTimes
from spaseq.sources.spans import epoch_of

_PARTS: Final = re.compile(
    r"(\d{1,4})([-/.])\d\d?\2(\d{1,4})(?:([ T])\d\d?:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm])?)?"
)


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """A way to read a column: its instants in ISO 8601, or ticks, and the options for it."""

    clock: Clock
    times: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)


def readings(name: str, kind: str, cells: Sequence[str], options: SourceOptions) -> list[ColumnReading]:
    """Return the ways to read a column's cells as times: none, one, or two if day and month are ambiguous.

    ``kind``: the type of all cells, by XML Schema's forms. ``options`` for this column take precedence.
    """
    if options.time == name:
        given = {"time": name, "time_format": options.time_format, "unit": options.unit}
        return [*_read(name, cells, options, {key: value for key, value in given.items() if value})]
    if kind in ("dateTime", "date"):
        return [ColumnReading(Clock.INSTANTS, tuple(cells))]
    if kind in ("integer", "decimal"):
        unit = epoch_of([str(int(float(cell))) for cell in cells])
        if unit is not None:
            return [*_read(name, cells, options, {"time": name, "unit": unit})]
        return [ColumnReading(Clock.TICKS, tuple(cells))] if kind == "integer" else []
    if kind != "text" or not all(map(_PARTS.fullmatch, cells)):
        return []
    as_they_are = [*_read(name, cells, options, {"time": name})]
    formats = () if as_they_are else _formats(cells[0])
    said = ({"time": name, "time_format": form} for form in formats)
    return as_they_are or [reading for each in said for reading in _read(name, cells, options, each)]


def shown(reading: ColumnReading) -> str:
    """Return the first time of a reading in words: ``4 June 2026``."""
    moment = datetime.fromisoformat(reading.times[0])
    return f"{moment.day} {moment:%B %Y}"


def _read(
    name: str, cells: Sequence[str], options: SourceOptions, said: dict[str, str]
) -> Iterator[ColumnReading]:
    options = replace(
        options, time_format=said.get("time_format", options.time_format), unit=said.get("unit", options.unit)
    )
    column = RowTimes(name, options)
    try:
        found = [column.read(cell) for cell in cells]
    except ValueError:
        return
    clock = found[0][0]
    texts = [
        str(time) if clock is Clock.TICKS else str(clock.show(time)).replace(" ", "T") for _, time in found
    ]
    yield ColumnReading(clock, tuple(texts), said)


def _formats(cell: str) -> Iterator[str]:
    """Yield the formats that a cell may have."""
    found = _PARTS.fullmatch(cell)
    assert found is not None
    first, sep, last, between, seconds, fraction, half = found.groups()
    clock = ""
    if between:
        clock = f"{between}{'%I' if half else '%H'}:%M{':%S' if seconds else ''}{'.%f' if fraction else ''}"
        clock += (" %p" if half.startswith(" ") else "%p") if half else ""
    if len(first) == 4:
        yield f"%Y{sep}%m{sep}%d{clock}"
        return
    year = "%Y" if len(last) == 4 else "%y"
    yield f"%d{sep}%m{sep}{year}{clock}"
    if sep != ".":  # with dots, the day is first
        yield f"%m{sep}%d{sep}{year}{clock}"
