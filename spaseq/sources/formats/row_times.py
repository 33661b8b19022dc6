"""Times of rows in a column: read from the cell, not from the row's triples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.errors import SourceError
from spaseq.events import Clock, microseconds
from spaseq.sources._options import SourceOptions
from spaseq.sources.spans import epoch_of
from spaseq.sources.times import read_time

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_DATE: Final = NamedNode(_XSD + "date")
_DATETIME: Final = NamedNode(_XSD + "dateTime")
_WRITTEN: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?)?[ ]?(Z|[+-]\d\d(?::?\d\d)?)?"
)
_NUMBER: Final = re.compile(r"[+-]?\d{1,24}(?:\.\d*)?(?:[eE][+-]?\d\d?)?")

#: Microseconds per unit; nanoseconds are left out.
_MICROSECONDS: Final = {
    "seconds": Decimal(10**6), "milliseconds": Decimal(1_000), "microseconds": Decimal(1),
    "nanoseconds": Decimal("0.001"),
}  # fmt: skip
#: The microseconds of the years 1 to 9999.
_FIRST: Final = -62_135_596_800_000_000
_LAST: Final = 253_402_300_799_999_999


class RowTimes:
    """The column of a stream's times. Its first number decides the unit of all numbers."""

    def __init__(self, name: str, options: SourceOptions) -> None:
        self.name = name
        self._format = options.time_format
        self._unit = options.unit
        self._is_in_all = False

    def check(self, names: Iterable[str]) -> None:
        """Raise SourceError if the column is not among the columns that all rows have."""
        if self.name not in (known := [*names]):
            raise SourceError(f"time={self.name!r}: {_missing(self.name, known)}")
        self._is_in_all = True

    def of(self, row: Mapping[str, object]) -> tuple[Clock, int]:
        """Return the time of a row, given without its empty cells. Raises ValueError if it has none."""
        if self.name not in row and not self._is_in_all:
            raise ValueError(f"no time: {self.name!r}: {_missing(self.name, list(row))}")
        return self.read(row.get(self.name))

    def read(self, cell: object) -> tuple[Clock, int]:
        """Return the time in a cell. Raises ValueError with the reason for an invalid one."""
        if not isinstance(cell, str) or not (text := cell.strip()):
            raise ValueError(f"no time: {self.name!r} is {cell if cell not in (None, '') else 'empty'}")
        if self._format is not None:
            return Clock.INSTANTS, self._formatted(text, self._format)
        if _NUMBER.fullmatch(text):
            return self._counted(text)
        if self._unit is None and (found := _WRITTEN.fullmatch(text)) is not None:
            if found[4] in (None, "Z") and found[2] != "24:00":
                with suppress(ValueError):  # ten times as fast; errors are reported below
                    moment = datetime.fromisoformat(text)
                    return Clock.INSTANTS, microseconds(moment.replace(tzinfo=UTC))
            time = read_time(_literal(found))
            return time.clock, time.value
        if self._unit is not None:
            raise ValueError(f"its time is ill-formed: {text[:60]!r} is not a number of {self._unit}")
        raise ValueError(
            f"its time is ill-formed: {text[:60]!r}; it is written like 2008-02-01 09:13:00, or time_format= "
            "says how, as in %d/%m/%Y %H:%M:%S"
        )

    def read_all(self, cells: Sequence[object]) -> list[tuple[Clock, int] | None]:
        """Return the time of each cell; None for an invalid one."""
        known: dict[object, tuple[Clock, int]] = {}
        for cell in dict.fromkeys(cell for cell in cells if isinstance(cell, str)):
            with suppress(ValueError):
                known[cell] = self.read(cell)
        return [known.get(cell) if isinstance(cell, str) else None for cell in cells]

    def _formatted(self, text: str, form: str) -> int:
        try:
            moment = datetime.strptime(text, form)
            return microseconds((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC))
        except (ValueError, OverflowError):
            raise ValueError(
                f"its time is ill-formed: {text[:60]!r} does not match time_format={form}"
            ) from None

    def _counted(self, text: str) -> tuple[Clock, int]:
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise ValueError(f"its time is not a number: {text[:60]!r}") from None
        if self._unit is None:
            self._unit = epoch_of([str(int(number))]) or "ticks"
        if self._unit == "ticks":
            if number != int(number) or not -(2**63) <= number < 2**63:
                raise ValueError(
                    f"its time is not an integer of 64 bits: {text[:60]!r}; unit= says what it counts"
                )
            return Clock.TICKS, int(number)
        value = int((number * _MICROSECONDS[self._unit]).to_integral_value("ROUND_FLOOR"))
        if not _FIRST <= value <= _LAST:
            raise ValueError(
                f"its time is outside the years 1 to 9999: {text[:60]!r} {self._unit} since 1970; unit= says "
                "what it counts"
            )
        return Clock.INSTANTS, value


def _missing(name: str, known: Sequence[str]) -> str:
    """Return a message about a missing column: the most similar name, and all columns."""
    by_lower = {other.lower(): other for other in known}
    alike = get_close_matches(name.lower(), by_lower, n=1)
    hint = f"did you mean {by_lower[alike[0]]!r}? " if alike else ""
    return f"there is no such column; {hint}there are {', '.join(map(repr, known)) or 'none'}"


def _literal(found: re.Match[str]) -> Literal:
    """Return the cell as a literal of XML Schema."""
    date, clock, seconds, zone = found.groups(default="")
    if zone not in ("", "Z"):
        zone = f"{zone[:3]}:{zone[3:].lstrip(':') or '00'}"
    if not clock:
        return Literal(date + zone, datatype=_DATE)
    return Literal(f"{date}T{clock}{seconds or ':00'}{zone}", datatype=_DATETIME)
