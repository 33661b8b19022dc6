"""The typed value of a term: the meaning of a literal, and the literal of a value.

Numbers are exact: integers of any size, ``xsd:decimal`` as ``Decimal``; an ``xsd:float`` is a Python float
that single precision can hold. Lexical and value spaces are those of XSD 1.1, part 2.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterable
from datetime import date
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from math import isfinite
from typing import Any, Final, NamedTuple

from pyoxigraph import BlankNode, Literal, NamedNode

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

#: The predicate that ``a`` stands for.
RDF_TYPE: Final = NamedNode(RDF + "type")

# Kinds of values. Plain integers, because filters compare them millions of times; the numeric ones
# come first, in the order of XPath's promotion.
INTEGER: Final = 0
DECIMAL: Final = 1
FLOAT: Final = 2
DOUBLE: Final = 3
BOOLEAN: Final = 4
STRING: Final = 5
LANG: Final = 6
DATETIME: Final = 7
DATE: Final = 8
TEMPORAL: Final = 9  # times, durations and gregorian parts: `data` is the text
UNKNOWN: Final = 10  # a datatype that is not known here: `data` is the text
ILL_TYPED: Final = 11  # text outside of its datatype's lexical space: `data` is the text
IRI: Final = 12
BLANK: Final = 13

# What a column of doubles holds of a term; see ``Dictionary.numbers`` in ``spaseq.terms.dictionary``.
NO_NUMBER: Final = 0
EXACT_ORDER: Final = 1
IS_DOUBLE: Final = 2

STRING_TYPE: Final = NamedNode(XSD + "string")
BOOLEAN_TYPE: Final = NamedNode(XSD + "boolean")
DATETIME_TYPE: Final = NamedNode(XSD + "dateTime")
_NUMERIC_TYPES: Final = tuple(NamedNode(XSD + name) for name in ("integer", "decimal", "float", "double"))

#: Decimal arithmetic that never rounds (additions and multiplications only).
EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)

_BOUNDS: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}
_TEMPORAL: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        "time": r"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?|24:00:00(\.0+)?)(Z|[+-]\d\d:\d\d)?",
        "duration": r"-?P(?=.)(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?",
        "dayTimeDuration": r"-?P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?",
        "yearMonthDuration": r"-?P(?=.)(\d+Y)?(\d+M)?",
        "gYear": r"-?([1-9]\d{3,}|0\d{3})(Z|[+-]\d\d:\d\d)?",
        "gYearMonth": r"-?([1-9]\d{3,}|0\d{3})-(0[1-9]|1[0-2])(Z|[+-]\d\d:\d\d)?",
        "gMonthDay": r"--(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(Z|[+-]\d\d:\d\d)?",
        "gMonth": r"--(0[1-9]|1[0-2])(Z|[+-]\d\d:\d\d)?",
        "gDay": r"---(0[1-9]|[12]\d|3[01])(Z|[+-]\d\d:\d\d)?",
    }.items()
}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_DATE: Final = r"(-?(?:[1-9]\d{3,}|0\d{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_ZONE: Final = r"(Z|[+-](?:0\d|1[0-3]):[0-5]\d|[+-]14:00)?"
_DATE_ONLY: Final = re.compile(_DATE + _ZONE, re.ASCII)
_DATETIME: Final = re.compile(
    _DATE + r"T(?:([01]\d|2[0-3]):([0-5]\d):([0-5]\d(?:\.\d+)?)|(24):(00):(00(?:\.0+)?))" + _ZONE, re.ASCII
)
_LONG_INTEGER: Final = 4000  # int() and str() refuse longer ones (CVE-2020-10735); Decimal does not
_LARGE: Final = 10**_LONG_INTEGER
_FEW_BITS: Final = 2048
_TWO: Final = Decimal(2)


class Moment(NamedTuple):
    """A date or dateTime: seconds since 1970 on its own clock, and the clock's offset to UTC.

    ``offset`` is None without a timezone; with one, ``seconds`` are those of UTC.
    """

    seconds: Decimal
    offset: int | None


class Value:
    """A typed value: its ``kind``, the Python object ``data``, and the term it is or becomes.

    ``data`` is an int, Decimal, float, bool, ``Moment`` or str, as the kind says; for a STRING, LANG,
    UNKNOWN or ILL_TYPED value it is the text, for an IRI its characters, for a blank node its label.
    """

    __slots__ = ("_term", "data", "kind")

    def __init__(self, kind: int, data: Any, term: NamedNode | BlankNode | Literal | None = None) -> None:
        self.kind = kind
        self.data = data
        self._term = term

    @property
    def term(self) -> NamedNode | BlankNode | Literal:
        """Return the RDF term that was decoded; for a computed value, its canonical literal."""
        if self._term is None:
            self._term = _encode(self.kind, self.data)
        return self._term

    @property
    def text(self) -> str:
        """Return the characters of the term: lexical form, IRI or label."""
        return self.term.value

    def __str__(self) -> str:
        """Return the term as a query would write it."""
        if isinstance(self.term, Literal) and self.kind in (INTEGER, DECIMAL, BOOLEAN):
            return self.text
        start, typed, datatype = str(self.term).rpartition(f"^^<{XSD}")
        return f"{start}^^xsd:{datatype[:-1]}" if typed else str(self.term)

    def __repr__(self) -> str:
        return f"Value({self.term})"


def decode(term: NamedNode | BlankNode | Literal) -> Value:
    """Return the value of a term. Never fails: unreadable literals are ILL_TYPED, unknown datatypes UNKNOWN.

    >>> decode(Literal("1e3", datatype=NamedNode(XSD + "double"))).data
    1000.0
    >>> decode(Literal("x", datatype=NamedNode(XSD + "integer"))).kind == ILL_TYPED
    True
    """
    if isinstance(term, NamedNode):
        return Value(IRI, term.value, term)
    if isinstance(term, BlankNode):
        return Value(BLANK, term.value, term)
    text = term.value
    if term.language is not None:
        return Value(LANG, text, term)
    datatype = term.datatype.value
    if not datatype.startswith(XSD):
        return Value(UNKNOWN, text, term)
    name = datatype[len(XSD) :]
    if name == "string":
        return Value(STRING, text, term)
    read = _parse(name, text)
    return Value(UNKNOWN, text, term) if read is None else Value(*read, term)


def _parse(name: str, text: str) -> tuple[int, Any] | None:
    """Return the kind and data of a literal of the XSD type ``name``; None if that type is unknown."""
    if name in _BOUNDS:
        low, high = _BOUNDS[name]
        number = parse_integer(text)
        if number is None or (low is not None and number < low) or (high is not None and number > high):
            return ILL_TYPED, text
        return INTEGER, number
    if name in _TEMPORAL:
        return (TEMPORAL if _TEMPORAL[name].fullmatch(text) else ILL_TYPED), text
    readers = {
        "decimal": (DECIMAL, parse_decimal),
        "float": (FLOAT, parse_float),
        "double": (DOUBLE, parse_double),
        "boolean": (BOOLEAN, parse_boolean),
        "dateTime": (DATETIME, parse_datetime),
        "dateTimeStamp": (DATETIME, parse_datetime),
        "date": (DATE, parse_date),
    }
    if name not in readers:
        return None
    kind, reader = readers[name]
    data = reader(text)
    if data is None or (name == "dateTimeStamp" and isinstance(data, Moment) and data.offset is None):
        return ILL_TYPED, text
    return kind, data


def parse_integer(text: str) -> int | None:
    """Return the integer that ``text`` writes, of any length; None if it does not."""
    if not _INTEGER.fullmatch(text):
        return None
    if len(text) < _LONG_INTEGER:
        return int(text)
    number = _joined(text.lstrip("+-"))
    return -number if text[0] == "-" else number


def _joined(digits: str) -> int:
    """Return the integer that the digits write, joined from two halves: ``int`` takes quadratic time."""
    if len(digits) < _LONG_INTEGER:
        return int(digits)
    lower = len(digits) // 2
    shift: int = 10**lower
    return _joined(digits[:-lower]) * shift + _joined(digits[-lower:])


def _written(number: int) -> str:
    """Return the digits of a non-negative integer faster than ``str``, which takes quadratic time."""
    if number < _LARGE:
        return str(number)
    return format(as_decimal(number), "f")


def as_decimal(number: int) -> Decimal:
    """Return an integer as a decimal faster than ``Decimal``, which takes quadratic time.

    >>> as_decimal(-7)
    Decimal('-7')
    """
    bits = number.bit_length()
    if bits <= _FEW_BITS:
        return Decimal(number)
    return _as_decimal(number, bits) if number > 0 else EXACT.minus(_as_decimal(-number, bits))


def _as_decimal(number: int, bits: int) -> Decimal:
    """Return a positive integer below ``2**bits`` as a decimal, joined from two halves.

    Multiplying long decimals is fast.
    """
    if bits <= _FEW_BITS:
        return Decimal(number)
    lower = bits // 2
    high = number >> lower
    both = EXACT.multiply(_as_decimal(high, bits - lower), EXACT.power(_TWO, lower))
    return EXACT.add(both, _as_decimal(number - (high << lower), lower))


def parse_decimal(text: str) -> Decimal | None:
    """Return the exact decimal that ``text`` writes."""
    return unsigned_zero(Decimal(text)) if _DECIMAL.fullmatch(text) else None


def unsigned_zero(number: Decimal) -> Decimal:
    """Return the decimal without the sign of a zero: XSD's decimals have one zero, doubles have two.

    >>> unsigned_zero(Decimal("-0.0"))
    Decimal('0.0')
    """
    return number if number else number.copy_abs()


def parse_double(text: str) -> float | None:
    """Return the double nearest to what ``text`` writes."""
    return float(text) if _DOUBLE.fullmatch(text) else None


def parse_float(text: str) -> float | None:
    """Return the single-precision number nearest to what ``text`` writes."""
    number = parse_double(text)
    return None if number is None else single(number)


def parse_boolean(text: str) -> bool | None:
    """Return the value of ``true``, ``false``, ``1`` or ``0``."""
    return {"true": True, "1": True, "false": False, "0": False}.get(text)


def parse_datetime(text: str) -> Moment | None:
    """Return an ``xsd:dateTime``, with any fraction of a second; 24:00:00 is midnight of the next day."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = match[4] or match[7], match[5] or match[8], match[6] or match[9]
    clock = EXACT.add(Decimal(int(hour) * 3600 + int(minute) * 60), Decimal(second))
    return _moment(match[1], match[2], match[3], clock, match[10])


def parse_date(text: str) -> Moment | None:
    """Return an ``xsd:date``, as the moment it starts."""
    match = _DATE_ONLY.fullmatch(text)
    return None if match is None else _moment(match[1], match[2], match[3], Decimal(0), match[4])


def _moment(year: str, month: str, day: str, clock: Decimal, zone: str | None) -> Moment | None:
    # The Gregorian calendar repeats every 400 years (146,097 days): Python's years 1 to 9999 cover one
    # period.
    number, shift = int(year), 0
    if not 1 <= number <= 9999:
        shift, number = number // 400 - 5, number % 400 + 2000
    try:
        days = date(number, int(month), int(day)).toordinal() - 719_163 + shift * 146_097
    except ValueError:  # 30 February
        return None
    seconds = EXACT.add(Decimal(days * 86_400), clock)
    if zone is None:
        return Moment(seconds, None)
    offset = 0
    if zone != "Z":
        offset = int(zone[1:3]) * 60 + int(zone[4:6])
        offset = -offset if zone[0] == "-" else offset
    return Moment(EXACT.subtract(seconds, Decimal(offset * 60)), offset)


def single(number: float) -> float:
    """Return the nearest single-precision number."""
    return ctypes.c_float(number).value


def _encode(kind: int, data: Any) -> Literal:
    if kind <= DOUBLE:
        return Literal(_canonical(kind, data), datatype=_NUMERIC_TYPES[kind])
    if kind == BOOLEAN:
        return Literal("true" if data else "false", datatype=BOOLEAN_TYPE)
    if kind == STRING:
        return Literal(data)
    raise ValueError(f"a value of kind {kind} is made from its term")


def _canonical(kind: int, data: Any) -> str:
    """Return the canonical lexical form of XSD 1.1: ``12``, ``1.5``, ``1.5E10``."""
    if kind == INTEGER:
        return f"-{_written(-data)}" if data < 0 else _written(data)
    if kind == DECIMAL:
        return plain(data)
    if math.isnan(data):
        return "NaN"
    if math.isinf(data):
        return "INF" if data > 0 else "-INF"
    sign, digits, exponent = shortest(kind, data).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).rstrip("0") or "0"
    exponent = exponent + len(digits) - 1 if written != "0" else 0
    return f"{'-' if sign else ''}{written[0]}.{written[1:] or '0'}E{exponent}"


def plain(number: Decimal) -> str:
    """Return a decimal without an exponent and superfluous zeros: ``-0.5``, ``100``."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def shortest(kind: int, number: float) -> Decimal:
    """Return the shortest decimal that reads back as this FLOAT or DOUBLE."""
    if kind == DOUBLE:
        return Decimal(repr(number))
    return next(
        Decimal(text) for text in (f"{number:.{n}g}" for n in range(1, 18)) if single(float(text)) == number
    )


def boolean(truth: bool) -> Value:
    """Return ``true`` or ``false``."""
    return TRUE if truth else FALSE


TRUE: Final = Value(BOOLEAN, True)
FALSE: Final = Value(BOOLEAN, False)

# Many doubles as literals in canonical lexical form (XSD 1.1), as ``values`` writes them one by one.


def double_literals(numbers: Iterable[float]) -> list[str]:
    """Return these numbers as ``xsd:double`` in N-Triples.

    >>> double_literals([-1234.5])
    ['"-1.2345E3"^^<http://www.w3.org/2001/XMLSchema#double>']
    """
    return [f'"{_canonical_double(number)}"^^<{XSD}double>' for number in numbers]


def _canonical_double(number: float) -> str:
    """Return a double as ``Value.term`` writes it, in a third of the time: the digits are those
    of ``repr``.
    """
    if not isfinite(number):
        return Value(DOUBLE, number).text
    written = repr(number)
    sign = "-" if written[0] == "-" else ""
    digits, _, exponent = written.lstrip("-").partition("e")
    before, _, after = digits.partition(".")
    if before != "0":
        power, digits = len(before) - 1, (before + after).rstrip("0")
    else:
        digits = after.lstrip("0")
        power = len(digits) - len(after) - 1
    power += int(exponent or 0)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}" if digits else Value(DOUBLE, number).text
