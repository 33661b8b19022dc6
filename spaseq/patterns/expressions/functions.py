"""SPARQL's built-in functions (SPARQL 1.1, 17.4), on typed values.

Each is a function of ``Value``s that raises ``ExpressionError`` where SPARQL has an error. Dates, hashes and
regular expressions are delegated to Oxigraph (``delegated``).
"""

from __future__ import annotations

import hashlib
import math
import random
import re
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final
from urllib.parse import quote

from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.patterns.expressions.comparison import ExpressionError, delegated
from spaseq.terms.iris import resolve
from spaseq.terms.values import (
    BLANK,
    DATETIME_TYPE,
    DECIMAL,
    DOUBLE,
    EXACT,
    INTEGER,
    IRI,
    LANG,
    RDF,
    STRING,
    Value,
    boolean,
    decode,
    unsigned_zero,
)

Function = Callable[..., Value]

_LANG_STRING: Final = NamedNode(RDF + "langString")


def _string(text: str) -> Value:
    return Value(STRING, text)


def _characters(value: Value) -> str:
    """Return the text of a string literal, with or without a language."""
    if value.kind not in (STRING, LANG):
        raise ExpressionError(f"{value} is not a string")
    return str(value.data)


def _simple(value: Value) -> str:
    if value.kind != STRING:
        raise ExpressionError(f"{value} is not a simple string")
    return str(value.data)


def _language(value: Value) -> str | None:
    return value.term.language if isinstance(value.term, Literal) else None


def _like(text: str, model: Value) -> Value:
    """``text`` with the language of ``model``."""
    language = _language(model)
    return _string(text) if language is None else Value(LANG, text, Literal(text, language=language))


def _literal(value: Value) -> Literal:
    term = value.term
    if not isinstance(term, Literal):
        raise ExpressionError(f"{value} is not a literal")
    return term


def _compatible(a: Value, b: Value) -> tuple[str, str]:
    """Return the texts of two compatible arguments (SPARQL 1.1, 17.4.3.1.2).

    The second is a simple literal, or has the language of the first.
    """
    texts = _characters(a), _characters(b)
    if b.kind == LANG and _language(a) != _language(b):
        raise ExpressionError(f"{a} and {b} are of different languages")
    return texts


# --- terms ------------------------------------------------------------------------------------


def _str(value: Value) -> Value:
    if value.kind == BLANK:
        raise ExpressionError("a blank node has no text")
    return _string(value.text)


def _datatype(value: Value) -> Value:
    datatype = _LANG_STRING if value.kind == LANG else _literal(value).datatype
    return Value(IRI, datatype.value, datatype)


def _iri(value: Value, base: Value | None = None) -> Value:
    if value.kind == IRI:
        return value
    text = _simple(value)
    try:
        return decode(NamedNode(text) if base is None else resolve(base.text, text))
    except ValueError as error:
        raise ExpressionError(str(error)) from None


def new_seed() -> int:
    """Return a number that tells the blank nodes of one solution from those of all other solutions."""
    return uuid.uuid4().int


def labelled_node(label: Value, seed: int) -> Value:
    """Return the blank node of a label and a seed: always the same."""
    text = f"{seed} {_simple(label)}".encode(errors="surrogatepass")
    return decode(BlankNode(f"b{hashlib.blake2b(text, digest_size=16).hexdigest()}"))


def _strlang(text: Value, language: Value) -> Value:
    try:
        return decode(Literal(_simple(text), language=_simple(language)))
    except ValueError as error:
        raise ExpressionError(str(error)) from None


def _strdt(text: Value, datatype: Value) -> Value:
    if datatype.kind != IRI:
        raise ExpressionError(f"{datatype} is not an IRI")
    try:
        return decode(Literal(_simple(text), datatype=NamedNode(datatype.text)))
    except ValueError as error:  # rdf:langString needs a language
        raise ExpressionError(str(error)) from None


def _is_literal(value: Value) -> Value:
    return boolean(value.kind not in (IRI, BLANK))


# --- strings ----------------------------------------------------------------------------------


def _xpath_round(value: Value) -> float:
    rounded = _round(value).data
    return float(rounded)


def _substr(text: Value, start: Value, length: Value | None = None) -> Value:
    """XPath's fn:substring: positions count from 1, and may lie outside."""
    characters = _characters(text)
    first = _xpath_round(start)
    last = math.inf if length is None else first + _xpath_round(length)
    if math.isnan(first) or math.isnan(last):
        return _like("", text)
    begin = max(int(min(max(first, 1), len(characters) + 1)) - 1, 0)
    end = max(int(min(max(last, 1), len(characters) + 1)) - 1, begin)
    return _like(characters[begin:end], text)


def _string_test(test: Callable[[str, str], bool]) -> Function:
    return lambda a, b: boolean(test(*_compatible(a, b)))


def _before(text: Value, part: Value) -> Value:
    whole, piece = _compatible(text, part)
    head, found, _ = whole.partition(piece) if piece else ("", True, whole)
    return _like(head, text) if found or not piece else _string("")


def _after(text: Value, part: Value) -> Value:
    whole, piece = _compatible(text, part)
    if not piece:
        return _like(whole, text)
    _, found, tail = whole.partition(piece)
    return _like(tail, text) if found else _string("")


def _concat(*parts: Value) -> Value:
    text = "".join(map(_characters, parts))
    languages = {_language(part) for part in parts}
    return _like(text, parts[0]) if len(languages) == 1 else _string(text)


def _lang_matches(language: Value, wanted: Value) -> Value:
    tag, pattern = _simple(language).lower(), _simple(wanted).lower()
    if pattern == "*":
        return boolean(tag != "")
    return boolean(tag == pattern or tag.startswith(pattern + "-"))


def _regex(text: Value, pattern: Value, *flags: Value) -> Value:
    _characters(text)
    return delegated("REGEX({}, {}" + ", {}" * len(flags) + ")", text, pattern, *flags)


def _replace(text: Value, *rest: Value) -> Value:
    _characters(text)
    return delegated("REPLACE({}" + ", {}" * len(rest) + ")", text, *rest)


# --- numbers ----------------------------------------------------------------------------------


def _number(value: Value) -> Value:
    if value.kind > DOUBLE:
        raise ExpressionError(f"{value} is not a number")
    return value


def _abs(value: Value) -> Value:
    data = _number(value).data
    return Value(value.kind, EXACT.abs(data) if value.kind == DECIMAL else abs(data))


def _to_integral(value: Value, rounding: str, shift: Decimal = Decimal(0)) -> Value:
    data = _number(value).data
    if value.kind == INTEGER:
        return Value(INTEGER, data)
    if value.kind == DECIMAL:
        return Value(DECIMAL, unsigned_zero(EXACT.add(data, shift).to_integral_value(rounding)))
    if not math.isfinite(data):
        return value
    result = float(EXACT.add(Decimal(data), shift).to_integral_value(rounding))
    return Value(value.kind, math.copysign(result, data) if result == 0 else result)


def _round(value: Value) -> Value:
    """Round to the nearest integer; a tie rounds towards positive infinity."""
    return _to_integral(value, ROUND_FLOOR, Decimal("0.5"))


# --- other sources ----------------------------------------------------------------------------


def _now() -> Value:
    return decode(Literal(datetime.now(UTC).isoformat().replace("+00:00", "Z"), datatype=DATETIME_TYPE))


def _delegated_by_name(name: str) -> Function:
    template = name + "({})"
    return lambda value: delegated(template, value)


#: Functions that need a value for each argument, by name.
FUNCTIONS: Final[dict[str, Function]] = {
    "STR": _str,
    "LANG": lambda value: _string(_literal(value).language or ""),
    "LANGMATCHES": _lang_matches,
    "DATATYPE": _datatype,
    "IRI": _iri,
    "URI": _iri,
    "BNODE": lambda: decode(BlankNode()),
    "RAND": lambda: Value(DOUBLE, random.random()),
    "ABS": _abs,
    "CEIL": lambda value: _to_integral(value, ROUND_CEILING),
    "FLOOR": lambda value: _to_integral(value, ROUND_FLOOR),
    "ROUND": _round,
    "CONCAT": _concat,
    "STRLEN": lambda value: Value(INTEGER, len(_characters(value))),
    "UCASE": lambda value: _like(_characters(value).upper(), value),
    "LCASE": lambda value: _like(_characters(value).lower(), value),
    "ENCODE_FOR_URI": lambda value: _string(quote(_characters(value), safe="")),
    "CONTAINS": _string_test(str.__contains__),
    "STRSTARTS": _string_test(str.startswith),
    "STRENDS": _string_test(str.endswith),
    "STRBEFORE": _before,
    "STRAFTER": _after,
    "SUBSTR": _substr,
    "REPLACE": _replace,
    "REGEX": _regex,
    "NOW": _now,
    "UUID": lambda: decode(NamedNode(f"urn:uuid:{uuid.uuid4()}")),
    "STRUUID": lambda: _string(str(uuid.uuid4())),
    "STRLANG": _strlang,
    "STRDT": _strdt,
    "SAMETERM": lambda a, b: boolean(a.term == b.term),
    "ISIRI": lambda value: boolean(value.kind == IRI),
    "ISURI": lambda value: boolean(value.kind == IRI),
    "ISBLANK": lambda value: boolean(value.kind == BLANK),
    "ISLITERAL": _is_literal,
    "ISNUMERIC": lambda value: boolean(value.kind <= DOUBLE),
    **{
        name: _delegated_by_name(name)
        for name in (
            *("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"),
            *("MD5", "SHA1", "SHA256", "SHA384", "SHA512"),
        )
    },
}

# The length of the text that a function of SPARQL makes, computed before the text is made.

#: A reference in a replacement, as Rust's regex reads it: ``$1``, ``${name}``; ``$$`` is a dollar sign.
_REFERENCE: Final = re.compile(r"\$(?:[0-9A-Za-z_]+|\{[^}]*\}|\$)")

#: Up to this many distinct references are measured one by one; for more, an upper bound is used.
_REFERENCES: Final = 10

#: The bytes that ENCODE_FOR_URI keeps; each other byte becomes three.
_KEPT: Final = bytes(code for code in range(128) if quote(chr(code), safe="") == chr(code))


def _length(value: Value) -> int:
    """Return the characters of a text; 0 for values that no text function takes."""
    return len(value.data) if isinstance(value.data, str) else 0


def _sum(*values: Value) -> int:
    return sum(map(_length, values))


def _encoded(value: Value) -> int:
    if not isinstance(value.data, str):
        return 0
    data = value.data.encode("utf-8", "surrogatepass")
    return len(data) + 2 * len(data.translate(None, _KEPT))


def _cased(change: Callable[[str], str]) -> Callable[[Value], int]:
    def length(value: Value) -> int:
        text = value.data
        return _length(value) if not isinstance(text, str) or text.isascii() else len(change(text))

    return length


def replaced_at_most(text: Value, pattern: Value, replacement: Value, *flags: Value) -> int:
    """Return an upper bound of the characters that REPLACE makes: a match at each place, ``$`` takes all of
    it.
    """
    del pattern, flags
    size, by = _length(text), _length(replacement)
    return size + (size + 1) * by + size * str(replacement.data).count("$")


def replaced(text: Value, pattern: Value, replacement: Value, *flags: Value) -> int:
    """Return the number of characters that REPLACE makes, from calls with short replacements."""
    if not isinstance(replacement.data, str):
        return 0

    def length(by: str) -> int:
        found: Value = FUNCTIONS["REPLACE"](text, pattern, Value(STRING, by), *flags)
        return _length(found)

    left = length("")
    matches = length("x") - left
    references = Counter(_REFERENCE.findall(replacement.data))
    written = len(replacement.data) - sum(len(name) * count for name, count in references.items())
    if len(references) > _REFERENCES:
        taken = (_length(text) - left) * references.total()
    else:
        taken = sum((length(name) - left) * count for name, count in references.items())
    return left + matches * written + taken


#: Functions that may make a text longer than each argument.
LENGTHS: Final[dict[str, Callable[..., int]]] = {
    "CONCAT": _sum,
    "ENCODE_FOR_URI": _encoded,
    "LCASE": _cased(str.lower),
    "STRDT": _sum,
    "STRLANG": _sum,
    "UCASE": _cased(str.upper),
}
