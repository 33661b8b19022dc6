"""Typed values: exact, and written back canonically."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.terms.dictionary import Dictionary
from spaseq.terms.values import (
    BLANK,
    BOOLEAN,
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    EXACT_ORDER,
    FLOAT,
    ILL_TYPED,
    INTEGER,
    IRI,
    IS_DOUBLE,
    LANG,
    NO_NUMBER,
    STRING,
    TEMPORAL,
    UNKNOWN,
    XSD,
    Moment,
    Value,
    decode,
    single,
)


def xsd(text: str, name: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + name))


def _seconds(day: str) -> Decimal:
    return Decimal(int(np.datetime64(day, "s").astype(np.int64)))


@pytest.mark.parametrize(
    ("term", "kind", "data"),
    [
        (xsd("007", "integer"), INTEGER, 7),
        (xsd("9" * 30, "integer"), INTEGER, int("9" * 30)),
        (xsd("-128", "byte"), INTEGER, -128),
        (xsd("0.10", "decimal"), DECIMAL, Decimal("0.10")),
        (xsd(".5", "decimal"), DECIMAL, Decimal("0.5")),
        (xsd("0.1", "float"), FLOAT, single(0.1)),
        (xsd("1e400", "double"), DOUBLE, math.inf),
        (xsd("-INF", "double"), DOUBLE, -math.inf),
        (xsd("1", "boolean"), BOOLEAN, True),
        (Literal("x"), STRING, "x"),
        (Literal("x", language="en"), LANG, "x"),
        (xsd("1970-01-02T00:00:00.5Z", "dateTime"), DATETIME, Moment(Decimal("86400.5"), 0)),
        (xsd("1970-01-01T00:00:00+01:00", "dateTime"), DATETIME, Moment(Decimal(-3600), 60)),
        (xsd("1969-12-31T24:00:00", "dateTime"), DATETIME, Moment(Decimal(0), None)),
        (xsd("1970-01-02", "date"), DATE, Moment(Decimal(86400), None)),
        (xsd("12000-03-01", "date"), DATE, Moment(_seconds("12000-03-01"), None)),
        (xsd("-0400-03-01", "date"), DATE, Moment(_seconds("-0400-03-01"), None)),
        (xsd("P1DT2H", "dayTimeDuration"), TEMPORAL, "P1DT2H"),
        (Literal("x", datatype=NamedNode("http://e.org/t")), UNKNOWN, "x"),
        (NamedNode("http://e.org/a"), IRI, "http://e.org/a"),
        (BlankNode("b"), BLANK, "b"),
    ],
)
def test_decoding(term: NamedNode | BlankNode | Literal, kind: int, data: object) -> None:
    value = decode(term)
    assert (value.kind, value.data) == (kind, data)
    assert value.term is term


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1.0", "integer"),
        (" 1", "integer"),
        ("١", "integer"),
        ("128", "byte"),
        ("-1", "unsignedInt"),
        ("1e3", "decimal"),
        ("inf", "double"),
        ("TRUE", "boolean"),
        ("2024-02-30", "date"),
        ("2024-01-01T25:00:00", "dateTime"),
        ("2024-01-01T00:00:00", "dateTimeStamp"),
        ("24-01-01", "date"),
        ("P", "duration"),
        ("P1Y", "dayTimeDuration"),
    ],
)
def test_what_is_ill_typed(text: str, name: str) -> None:
    assert decode(xsd(text, name)).kind == ILL_TYPED


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (DECIMAL, Decimal("1E+3"), "1000"),
        (DECIMAL, Decimal("-0.500"), "-0.5"),
        (DOUBLE, 100.0, "1.0E2"),
        (DOUBLE, -0.0, "-0.0E0"),
        (DOUBLE, 5e-324, "5.0E-324"),
        (FLOAT, single(0.1), "1.0E-1"),
        (DOUBLE, math.nan, "NaN"),
        (BOOLEAN, False, "false"),
    ],
)
def test_canonical_text(kind: int, data: object, text: str) -> None:
    assert Value(kind, data).text == text


def test_integers_longer_than_python_reads() -> None:
    value = decode(xsd("1" + "0" * 5000, "integer"))
    assert value.data == 10**5000
    assert Value(INTEGER, value.data).text == "1" + "0" * 5000


@given(
    st.one_of(
        st.tuples(st.just(INTEGER), st.integers()),
        st.tuples(st.just(DECIMAL), st.decimals(allow_nan=False, allow_infinity=False)),
        st.tuples(st.just(DOUBLE), st.floats(allow_nan=False)),
        st.tuples(st.just(FLOAT), st.floats(width=32, allow_nan=False)),
    )
)
def test_written_numbers_read_back(number: tuple[int, object]) -> None:
    value = decode(Value(*number).term)
    assert (value.kind, value.data) == number


@given(st.datetimes())
def test_datetimes_are_exact_microseconds(moment: object) -> None:
    value = decode(xsd(moment.isoformat(), "dateTime"))  # type: ignore[attr-defined]
    text = np.datetime64(moment, "us")  # type: ignore[call-overload]
    assert value.data.seconds * 1_000_000 == int(text.astype(np.int64))


def test_dictionary_decodes_once_and_gives_columns_of_numbers() -> None:
    dictionary = Dictionary()
    terms = [
        xsd("3", "integer"),
        xsd("0.1", "decimal"),
        xsd("1e0", "double"),
        xsd("1", "float"),
        Literal("x"),
    ]
    ids = np.array([0, *map(dictionary.intern, terms)])
    assert dictionary.value(1) is dictionary.value(1)
    numbers, rank = dictionary.numbers(ids)
    assert rank.tolist() == [NO_NUMBER, EXACT_ORDER, EXACT_ORDER, IS_DOUBLE, NO_NUMBER, NO_NUMBER]
    assert numbers[1:4].tolist() == [3.0, 0.1, 1.0]
    later = dictionary.intern(xsd("1" + "0" * 400, "integer"))
    assert dictionary.numbers(np.array([later]))[1].tolist() == [NO_NUMBER]
