"""SPARQL's operators on values: equality, order, effective boolean value, arithmetic.

What is rare is delegated to Oxigraph: dates, durations, regular expressions, hashes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import cache, lru_cache
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store, Triple

from spaseq.terms.values import (
    BLANK,
    BOOLEAN,
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    EXACT,
    FLOAT,
    ILL_TYPED,
    INTEGER,
    IRI,
    LANG,
    STRING,
    TEMPORAL,
    UNKNOWN,
    Moment,
    Value,
    as_decimal,
    decode,
    single,
    unsigned_zero,
)

# Rarely used operations, which are delegated to Oxigraph: dates, durations, regular expressions, hashes.
#
# Arguments are written into ``SELECT (f(…) AS ?r) {}``, asked of an empty store. Answers are kept for
# the short terms asked last, since events repeat them.

#: Answers are kept for arguments of up to this many characters. (REPLACE makes at most some 4,000 of them.)
_BRIEF: Final = 128


_Arguments = tuple[NamedNode | Literal, ...]


class ExpressionError(Exception):
    """SPARQL's type error: the expression has no value. A filter then rejects the solution."""


@cache
def _store() -> Store:
    return Store()


def _ask(template: str, arguments: _Arguments) -> NamedNode | BlankNode | Literal | None:
    expression = template.format(*map(str, arguments))
    answers = _store().query(f"SELECT ({expression} AS ?r) {{}}")
    assert isinstance(answers, QuerySolutions)
    for answer in answers:
        term = answer["r"]
        return None if isinstance(term, Triple) else term
    return None


@lru_cache(maxsize=1 << 14)
def _kept(template: str, arguments: _Arguments) -> NamedNode | BlankNode | Literal | None:
    return _ask(template, arguments)


def delegated(template: str, *arguments: Value) -> Value:
    """Return the value of an expression over values, which stand in ``template`` as ``{}``.

    Raises ``ExpressionError`` where SPARQL has an error.

    >>> delegated("YEAR({})", decode(Literal("2024-05-01", datatype=NamedNode(
    ...     "http://www.w3.org/2001/XMLSchema#date")))).data
    2024
    """
    terms: list[NamedNode | Literal] = []
    for argument in arguments:
        term = argument.term
        if isinstance(term, BlankNode):
            raise ExpressionError("a blank node has no such value")
        terms.append(term)
    ask = _kept if sum(len(term.value) for term in terms) <= _BRIEF else _ask
    answer = ask(template, tuple(terms))
    if answer is None:
        raise ExpressionError(f"no value: {template} of {terms}")
    return decode(answer)


# SPARQL's operators on values: equality, order, effective boolean value, arithmetic.
#
# SPARQL 1.1, sections 15.1, 17.2.2 and 17.3; numeric promotion and arithmetic as in XPath 2.0.

Comparison = Callable[[Value, Value], bool]

_FOURTEEN_HOURS: Final = 14 * 3600
_DIVISION_DIGITS: Final = 18

#: Numbers of up to this many digits are multiplied without a check of the result's length.
_SHORT_DIGITS: Final = 100
_SHORT: Final = 10**_SHORT_DIGITS
#: The size of a decimal of few digits.
_SMALL: Final = Decimal(1).__sizeof__()
_DIGITS_A_BIT: Final = math.log10(2)


def double(number: Any) -> float:
    """Return an integer or decimal as the nearest double; infinite beyond them."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _decimal(number: int | Decimal) -> Decimal:
    return as_decimal(number) if isinstance(number, int) else number


def promote(a: Value, b: Value) -> tuple[int, Any, Any]:
    """Return two numbers as numbers of one kind: integer, decimal, float, double, the greater of the two."""
    kind, x, y = max(a.kind, b.kind), a.data, b.data
    if a.kind != b.kind and kind > INTEGER:
        if kind == DECIMAL:
            x, y = _decimal(x), _decimal(y)
        elif kind == DOUBLE:
            x, y = double(x), double(y)
        else:
            x, y = single(double(x)), single(double(y))
    return kind, x, y


def _moments(a: Moment, b: Moment) -> tuple[Any, Any]:
    if (a.offset is None) != (b.offset is None) and abs(a.seconds - b.seconds) <= _FOURTEEN_HOURS:
        raise ExpressionError("with and without a timezone, and less than 14 hours apart")
    return a.seconds, b.seconds


def _ordered(a: Value, b: Value) -> tuple[Any, Any]:
    """Return Python objects that compare as ``a`` and ``b`` do."""
    if a.kind <= DOUBLE and b.kind <= DOUBLE:
        return promote(a, b)[1:]
    if a.kind == b.kind:
        if a.kind in (STRING, BOOLEAN):
            return a.data, b.data
        if a.kind in (DATETIME, DATE):
            return _moments(a.data, b.data)
    raise ExpressionError(f"no order between {a} and {b}")


def equal(a: Value, b: Value) -> bool:
    """Return ``a = b``. Literals of unknown value are equal only as terms; otherwise it is an error."""
    first, second = a.kind, b.kind
    if first <= DOUBLE and second <= DOUBLE:
        _, x, y = promote(a, b)
        return bool(x == y)
    if first == second:
        if first in (STRING, BOOLEAN):
            return bool(a.data == b.data)
        if first in (IRI, BLANK, LANG):
            return a.term == b.term
        if first in (DATETIME, DATE):
            x, y = _moments(a.data, b.data)
            return bool(x == y)
        if a.term == b.term:
            return True
        if first == TEMPORAL:
            return bool(delegated("{} = {}", a, b).data)
        raise ExpressionError(f"cannot tell whether {a} and {b} are equal")
    kinds = {first, second}
    if kinds & {IRI, BLANK, LANG}:  # no other datatype has values with a language
        return False
    if kinds & {UNKNOWN, ILL_TYPED}:
        raise ExpressionError(f"cannot tell whether {a} and {b} are equal")
    return False


def _order(symbol: str) -> Comparison:
    template, compare = f"{{}} {symbol} {{}}", NUMERIC[symbol]

    def comparison(a: Value, b: Value) -> bool:
        if a.kind == b.kind == TEMPORAL:
            return bool(delegated(template, a, b).data)
        return compare(*_ordered(a, b))

    return comparison


#: The same operators on two numbers of one kind.
NUMERIC: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}

#: The operators that compare; each raises ``ExpressionError`` where SPARQL has a type error.
COMPARISONS: Final[dict[str, Comparison]] = {
    "=": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": _order("<"),
    ">": _order(">"),
    "<=": _order("<="),
    ">=": _order(">="),
}


def truth(value: Value) -> bool:
    """Return the effective boolean value (SPARQL 1.1, 17.2.2)."""
    kind = value.kind
    if kind == BOOLEAN:
        return bool(value.data)
    if kind <= DOUBLE:
        return bool(value.data == value.data and value.data != 0)
    if kind in (STRING, LANG):
        return bool(value.data)
    if kind == ILL_TYPED and _is_number_or_boolean(value):
        return False
    raise ExpressionError(f"{value} is neither true nor false")


def _is_number_or_boolean(value: Value) -> bool:
    # All ill-typed literals are false here, except dates, times and durations.
    name = value.term.datatype.value  # type: ignore[union-attr]  # an ill-typed value is a literal
    return not ("date" in name or "time" in name.lower() or "uration" in name or "#g" in name)


def negative(value: Value) -> Value:
    """``-value``"""
    if value.kind > DOUBLE:
        raise ExpressionError(f"{value} is not a number")
    return Value(value.kind, EXACT.minus(value.data) if value.kind == DECIMAL else -value.data)


def arithmetic(symbol: str, a: Value, b: Value) -> Value:
    """``a + b`` and so on: exact for integers and decimals, but for ``/`` (18 digits and more)."""
    if a.kind > DOUBLE or b.kind > DOUBLE:
        if symbol == "+":
            if a.kind == TEMPORAL and b.kind in (DATETIME, DATE):
                a, b = b, a
            if a.kind in (DATETIME, DATE) and b.kind == TEMPORAL:
                # Oxigraph subtracts durations from moments but does not add them.
                return delegated("{} - {}", a, _opposite(b))
        if {a.kind, b.kind} & {DATETIME, DATE, TEMPORAL}:
            return delegated(f"{{}} {symbol} {{}}", a, b)
        raise ExpressionError(f"no {symbol} for {a} and {b}")
    kind, x, y = promote(a, b)
    if symbol == "/" and kind <= DECIMAL:
        return Value(DECIMAL, _divide(_decimal(x), _decimal(y)))
    if kind == DECIMAL:
        return Value(kind, unsigned_zero(_DECIMAL[symbol](x, y)))
    result = _ratio(x, y) if symbol == "/" else _PLAIN[symbol](x, y)
    return Value(kind, single(result) if kind == FLOAT else result)


def is_short(number: Value) -> bool:
    """Return whether an integer or decimal is so short that one operation cannot make it too long."""
    data = number.data
    if number.kind == INTEGER:
        return bool(-_SHORT < data < _SHORT)
    return bool(data.__sizeof__() <= _SMALL and abs(data.adjusted()) < _SHORT_DIGITS)


def digits_of(symbol: str, a: Value, b: Value) -> int:
    """Return an upper bound of the digits of ``a + b`` and so on, for integers and decimals."""
    (whole, fraction), (other_whole, other_fraction) = _digits(a), _digits(b)
    if symbol == "*":
        return whole + other_whole + fraction + other_fraction
    if symbol == "/":
        return whole + fraction + other_whole + other_fraction + _DIVISION_DIGITS
    return max(whole, other_whole) + max(fraction, other_fraction) + 1


def _digits(number: Value) -> tuple[int, int]:
    """Return upper bounds of the digits of a number before and after its point."""
    if number.kind == INTEGER:
        return math.ceil(number.data.bit_length() * _DIGITS_A_BIT) + 1, 0
    _, digits, exponent = number.data.as_tuple()
    return max(len(digits) + exponent, 1), max(-exponent, 0)


def _opposite(duration: Value) -> Value:
    text, term = duration.text, duration.term
    assert isinstance(term, Literal)
    return decode(Literal(text[1:] if text.startswith("-") else f"-{text}", datatype=term.datatype))


_PLAIN: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_DECIMAL: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
}


def _divide(x: Decimal, y: Decimal) -> Decimal:
    if y == 0:
        raise ExpressionError("division by zero")
    digits = max(x.adjusted() - y.adjusted() + 1, 0) + _DIVISION_DIGITS
    return unsigned_zero(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN).divide(x, y))


def _ratio(x: float, y: float) -> float:
    """IEEE 754 division."""
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1, y)


def sort_key(value: Value | None) -> tuple[Any, ...]:
    """Return a key for ORDER BY, MIN and MAX (SPARQL 1.1, 15.1): unbound, blank nodes, IRIs, literals.

    A total order: numbers by value, then other kinds of literals, each by value where there is one.
    """
    if value is None:
        return (0,)
    kind = value.kind
    if kind == BLANK:
        return (1, value.text)
    if kind == IRI:
        return (2, value.text)
    if kind <= DOUBLE:
        known = value.data == value.data
        return (3, 0, known, value.data if known else 0, str(value.term))
    data = value.data.seconds if kind in (DATETIME, DATE) else value.data
    return (3, kind, data, str(value.term))
