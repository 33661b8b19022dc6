"""Casts to the datatypes of XML Schema (SPARQL 1.1, 17.5; XPath functions and operators, 17)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from pyoxigraph import Literal

from spaseq.patterns.expressions.comparison import ExpressionError, delegated
from spaseq.patterns.expressions.functions import FUNCTIONS, Function
from spaseq.terms.values import (
    BLANK,
    BOOLEAN,
    DATE,
    DATETIME,
    DATETIME_TYPE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    ILL_TYPED,
    INTEGER,
    IRI,
    LANG,
    STRING,
    XSD,
    Value,
    boolean,
    parse_boolean,
    parse_datetime,
    parse_decimal,
    parse_double,
    parse_float,
    parse_integer,
    plain,
    shortest,
    unsigned_zero,
)


def _source(value: Value) -> str | None:
    """Return the text that a cast reads; None if it converts the value instead."""
    if value.kind in (LANG, IRI, BLANK):
        raise ExpressionError(f"{value} cannot be cast")
    return value.text.strip(" \t\r\n") if value.kind == STRING else None


def _read(kind: int, parser: Callable[[str], object | None], text: str) -> Value:
    data = parser(text)
    if data is None:
        raise ExpressionError(f"{text!r} cannot be cast")
    return Value(kind, data)


def _to_string(value: Value) -> Value:
    if value.kind in (FLOAT, DOUBLE) and math.isfinite(value.data):
        if value.data == 0 or 1e-6 <= abs(value.data) < 1e6:
            sign = "-" if value.data == 0 and math.copysign(1, value.data) < 0 else ""
            return Value(STRING, sign + plain(shortest(value.kind, value.data)))
        return Value(STRING, Value(value.kind, value.data).text)
    if value.kind <= BOOLEAN:
        return Value(STRING, Value(value.kind, value.data).text)
    return FUNCTIONS["STR"](value)


def _to_boolean(value: Value) -> Value:
    if (text := _source(value)) is not None:
        return _read(BOOLEAN, parse_boolean, text)
    if value.kind > BOOLEAN:
        raise ExpressionError(f"{value} cannot be cast to a boolean")
    return boolean(bool(value.data == value.data and value.data != 0))


def _to_integer(value: Value) -> Value:
    if (text := _source(value)) is not None:
        return _read(INTEGER, parse_integer, text)
    if value.kind > BOOLEAN or not math.isfinite(value.data):
        raise ExpressionError(f"{value} cannot be cast to an integer")
    return Value(INTEGER, int(value.data))


def _to_decimal(value: Value) -> Value:
    if (text := _source(value)) is not None:
        return _read(DECIMAL, parse_decimal, text)
    if value.kind > BOOLEAN or (value.kind in (FLOAT, DOUBLE) and not math.isfinite(value.data)):
        raise ExpressionError(f"{value} cannot be cast to a decimal")
    if value.kind in (FLOAT, DOUBLE):
        # Decimal 0.1, not all digits of the binary double.
        return Value(DECIMAL, unsigned_zero(shortest(value.kind, value.data)))
    return Value(DECIMAL, Decimal(value.data))


def _to_floating(kind: int) -> Function:
    parser = parse_float if kind == FLOAT else parse_double

    def cast(value: Value) -> Value:
        if (text := _source(value)) is not None:
            return _read(kind, parser, text)
        if value.kind > BOOLEAN:
            raise ExpressionError(f"{value} cannot be cast to a number")
        if value.kind in (FLOAT, DOUBLE):
            text = {math.inf: "INF", -math.inf: "-INF"}.get(value.data, repr(value.data))
        else:
            text = str(Decimal(int(value.data) if value.kind == BOOLEAN else value.data))
        return _read(kind, parser, "NaN" if text == "nan" else text)

    return cast


def _to_datetime(value: Value) -> Value:
    if (text := _source(value)) is not None:
        moment = parse_datetime(text)
        if moment is None:
            raise ExpressionError(f"{text!r} cannot be cast to a dateTime")
        return Value(DATETIME, moment, Literal(text, datatype=DATETIME_TYPE))
    if value.kind == DATETIME:
        return value
    if value.kind == DATE:
        return delegated(f"<{DATETIME_TYPE.value}>({{}})", value)
    raise ExpressionError(f"{value} cannot be cast to a dateTime")


def _other_cast(name: str) -> Function:
    template = f"<{XSD}{name}>({{}})"

    def cast(value: Value) -> Value:
        if value.kind == ILL_TYPED:
            raise ExpressionError(f"{value} cannot be cast")
        return delegated(template, value)

    return cast


#: Casts, by the IRI of the type.
CASTS: Final[dict[str, Function]] = {
    XSD + "string": _to_string,
    XSD + "boolean": _to_boolean,
    XSD + "integer": _to_integer,
    XSD + "decimal": _to_decimal,
    XSD + "float": _to_floating(FLOAT),
    XSD + "double": _to_floating(DOUBLE),
    XSD + "dateTime": _to_datetime,
    **{
        XSD + name: _other_cast(name)
        for name in ("date", "time", "duration", "dayTimeDuration", "yearMonthDuration")
    },
}
