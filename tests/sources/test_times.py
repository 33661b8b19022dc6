"""Literals to times, exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.events import Clock
from spaseq.sources.times import read_time

from .reading import XSD

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def typed(text: str, kind: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + kind))


@given(
    st.datetimes(
        datetime(2, 1, 1),
        datetime(9998, 1, 1),
        timezones=st.none() | st.integers(-840, 840).map(lambda m: timezone(timedelta(minutes=m))),
    )
)
def test_agrees_with_datetime(moment: datetime) -> None:
    text = moment.isoformat()
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    expected = (aware - _EPOCH) // timedelta(microseconds=1)
    assert read_time(typed(text, "dateTime")) == (Clock.INSTANTS, expected, False)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("1970-01-01T00:00:00Z", "dateTime", 0),
        ("1970-01-01T00:00:00", "dateTime", 0),
        (" 1970-01-01T00:00:00Z\n", "dateTime", 0),
        ("1970-01-01T00:00:00-14:00", "dateTimeStamp", 14 * 3600 * 10**6),
        ("1970-01-01T00:00:00.1Z", "dateTime", 100_000),
        ("1970-01-01T00:00:00.000001Z", "dateTime", 1),
        ("1970-01-01T00:00:00.0000019999Z", "dateTime", 1),
        ("1969-12-31T23:59:59.999999Z", "dateTime", -1),
        ("1969-12-31T24:00:00Z", "dateTime", 0),
        ("1969-12-31T24:00:00.000Z", "dateTime", 0),
        ("1970-01-02", "date", 86_400 * 10**6),
        ("1970-01-01+01:00", "date", -3600 * 10**6),
        ("2000-02-29Z", "date", 951_782_400 * 10**6),
    ],
)
def test_instants(text: str, kind: str, expected: int) -> None:
    assert read_time(typed(text, kind)) == (Clock.INSTANTS, expected, False)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("7", "integer"), ("+7", "long"), ("007", "unsignedByte"), (" 7 ", "int"), ("7", "positiveInteger")],
)
def test_ticks(text: str, kind: str) -> None:
    assert read_time(typed(text, kind)) == (Clock.TICKS, 7, False)


def test_ill_typed_dates_are_doubtful_ticks() -> None:
    assert read_time(typed("-10", "date")) == (Clock.TICKS, -10, True)


@pytest.mark.parametrize("kind", ["dateTime", "dateTimeStamp"])
@pytest.mark.parametrize("text", ["200802010913", "-10", " 7 "])
def test_no_datetime_is_a_tick(text: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"ill-formed: .* is not valid as {kind}"):
        read_time(typed(text, kind))


def test_ticks_have_64_bits() -> None:
    assert read_time(typed(str(2**63 - 1), "integer")).value == 2**63 - 1
    assert read_time(typed(str(-(2**63)), "integer")).value == -(2**63)
    for text in (str(2**63), str(-(2**63) - 1), "9" * 5000):
        with pytest.raises(ValueError, match="64 bits"):
            read_time(typed(text, "integer"))


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("2020-02-30T00:00:00Z", "dateTime", "day"),
        ("2020-13-01", "date", "month"),
        ("2020-01-01T25:00:00Z", "dateTime", "hour"),
        ("2020-01-01T24:00:01Z", "dateTime", "24:00:00"),
        ("2020-01-01T24:00:00.0000001Z", "dateTime", "24:00:00"),
        ("2020-01-01T23:59:60Z", "dateTime", "second"),
        ("2020-01-01T00:00:00+14:01", "dateTime", "timezones"),
        ("2020-01-01T00:00:00+00:60", "dateTime", "timezones"),
        ("-0044-03-15T12:00:00Z", "dateTime", "years 1 to 9999"),
        ("0000-01-01", "date", "years 1 to 9999"),
        ("12020-01-01T00:00:00Z", "dateTime", "years 1 to 9999"),
        ("0001-01-01T00:00:00+01:00", "dateTime", "its time cannot be read"),
        ("9999-12-31T24:00:00Z", "dateTime", "its time cannot be read"),
        ("2020-01-01 00:00:00", "dateTime", "ill-formed"),
        ("2020-01-01", "dateTime", "ill-formed"),
        ("2020-01-01T00:00:00Z", "date", "ill-formed"),
        ("2020-1-1", "date", "ill-formed"),
        ("٢٠٢٠-01-01", "date", "ill-formed"),
        ("", "dateTime", "ill-formed"),
        ("7", "string", "neither"),
        ("7.0", "decimal", "neither"),
        ("2020", "gYear", "neither"),
        ("seven", "integer", "neither"),
    ],
)
def test_no_times(text: str, kind: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_time(typed(text, kind))


@pytest.mark.parametrize("term", [NamedNode("http://example.org/now"), BlankNode()])
def test_times_are_literals(term: NamedNode | BlankNode) -> None:
    with pytest.raises(ValueError, match="not a literal"):
        read_time(term)
