"""The exact time of an event: literals → microseconds or ticks (semantics, section 1)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, NamedTuple

from pyoxigraph import Literal

from spaseq.events import Clock, microseconds
from spaseq.terms.dictionary import Term
from spaseq.terms.values import XSD

_INTEGERS: Final = frozenset(
    XSD + name
    for name in (
        "integer", "long", "int", "short", "byte",
        "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
        "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
    )
)  # fmt: skip
_STRING: Final = XSD + "string"
_DATE: Final = XSD + "date"
#: The datatypes of instants.
MOMENTS: Final = frozenset((XSD + "dateTime", XSD + "dateTimeStamp", _DATE))

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_ZONE: Final = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_DAY: Final = r"(?P<year>-?[0-9]{4,})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_CLOCK: Final = r"T(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
_DATE_FORM: Final = re.compile(_DAY + _ZONE)
_DATETIME_FORM: Final = re.compile(_DAY + _CLOCK + _ZONE)
_SHOWN: Final = "2008-02-01T09:13:00Z"
_SPACE: Final = " \t\r\n"


class Time(NamedTuple):
    """A point on a clock. ``doubtful``: an ill-typed date, which was read as a number of ticks."""

    clock: Clock
    value: int
    doubtful: bool = False


def read_time(term: Term) -> Time:
    """Return the time of a literal. Raises ValueError with the reason if it has none.

    ``xsd:dateTime``, ``xsd:dateTimeStamp`` and ``xsd:date`` (its first moment) are instants, in UTC if
    without a timezone; digits beyond microseconds are cut off. Integers are ticks, and so is an ill-typed
    ``"10"^^xsd:date``, as in the files of the original engine, but no ill-typed dateTime.

    >>> xsd = "http://www.w3.org/2001/XMLSchema#"
    >>> from pyoxigraph import NamedNode
    >>> read_time(Literal("1970-01-01T01:00:00.5+01:00", datatype=NamedNode(xsd + "dateTime"))).value
    500000
    >>> read_time(Literal("10", datatype=NamedNode(xsd + "date")))
    Time(clock=<Clock.TICKS: 'ticks'>, value=10, doubtful=True)
    """
    if not isinstance(term, Literal):
        raise ValueError(f"its time is not a literal: {term}")
    datatype = term.datatype.value
    text = term.value.strip(_SPACE)
    if datatype in _INTEGERS or datatype in MOMENTS:
        if _INTEGER.fullmatch(text):
            if datatype in MOMENTS and datatype != _DATE:
                raise ValueError(
                    f"its time is ill-formed: {text[:60]!r} is not valid as {datatype.removeprefix(XSD)}, "
                    f"which is written like {_SHOWN} (ticks are of type xsd:integer)"
                )
            return Time(Clock.TICKS, _tick(text), doubtful=datatype == _DATE)
        if datatype in MOMENTS:
            return Time(Clock.INSTANTS, _instant(text, _DATE_FORM if datatype == _DATE else _DATETIME_FORM))
    hint = "" if datatype != _STRING else '; a JSON-LD context says so by {"@type": "xsd:dateTime"}'
    raise ValueError(f"its time is neither an xsd:dateTime, an xsd:date nor an integer: {term}{hint}")


def latest(ahead: timedelta) -> int:
    """Return the last instant, in microseconds, that is at most ``ahead`` of the wall clock."""
    return time.time_ns() // 1_000 + ahead // timedelta(microseconds=1)


def far_off(value: int, ahead: timedelta) -> str:
    """Return why an event at this instant is refused: it is more than ``ahead`` of the wall clock."""
    return f"its time {Clock.INSTANTS.show(value)} is more than {ahead} ahead of the wall clock (max_ahead)"


def _tick(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"its time does not fit into 64 bits: {text[:40]}")
    return int(text)


def _instant(text: str, form: re.Pattern[str]) -> int:
    found = form.fullmatch(text)
    if found is None:
        shown = "2008-02-01" if form is _DATE_FORM else _SHOWN
        raise ValueError(f"its time is ill-formed: {text[:60]!r}; it is written like {shown}")
    part = found.groupdict()
    if len(part["year"]) > 4 or part["year"] == "0000":
        raise ValueError(f"its time is outside the years 1 to 9999: {text[:60]!r}")
    hour, minute, second = (int(part.get(name) or 0) for name in ("hour", "minute", "second"))
    fraction = int(((part.get("fraction") or "") + "000000")[:6])
    end_of_day = hour == 24
    if end_of_day and (minute or second or (part.get("fraction") or "").strip("0")):
        raise ValueError(f"its time is ill-formed: {text[:60]!r}, only 24:00:00 ends a day")
    try:
        moment = datetime(
            int(part["year"]), int(part["month"]), int(part["day"]),
            0 if end_of_day else hour, minute, second, fraction, tzinfo=_zone(part["zone"]),
        )  # fmt: skip
        if end_of_day:
            moment += timedelta(days=1)
        return microseconds(moment.astimezone(UTC))
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"its time cannot be read: {text[:60]!r}: {error}; it is written like {_SHOWN}"
        ) from None


def _zone(text: str | None) -> timezone:
    if text in (None, "Z"):
        return UTC
    assert text is not None
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    if offset > timedelta(hours=14) or int(text[4:6]) > 59:
        raise ValueError("timezones lie between -14:00 and +14:00")
    return timezone(-offset if text[0] == "-" else offset)
