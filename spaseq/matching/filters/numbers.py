"""The kernel's knowledge of terms: a double and a code for each id, see ``_kernel_values``."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from decimal import Decimal
from typing import Final
from weakref import ref

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal, NamedNode

from spaseq.matching.filters import _kernel_values as v
from spaseq.terms._numbers_kernel import distinct_with, first_with
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.values import (
    BLANK,
    BOOLEAN,
    DATETIME,
    DECIMAL,
    DOUBLE,
    EXACT,
    EXACT_ORDER,
    INTEGER,
    IRI,
    IS_DOUBLE,
    NO_NUMBER,
    STRING,
    TEMPORAL,
    XSD,
    Value,
)

Ids = npt.NDArray[np.int64]

#: Decimals of up to this many digits are identified by their doubles.
_DIGITS: Final = 15
_UNKNOWN: Final = -1
_MILLION: Final = Decimal(10**6)
_WHOLE: Final = 2**53
_DURATION: Final = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)

#: Columns of at least this many ids are remembered as read; and how many such columns.
_LARGE: Final = 1 << 10
_MOST_SEEN: Final = 64

#: Texts of numbers with surely no more digits.
_SHORT: Final = re.compile(
    rf'"(?:([+-]?[0-9]{{1,15}})"\^\^<{XSD}integer>|([+-]?[0-9]{{1,7}}(?:\.[0-9]{{1,7}})?)"\^\^<{XSD}decimal>)'
)

#: Stands for an error. (A term, so that it can be in a column and in a slot.)
ERROR: Final = NamedNode("urn:x-spaseq:no-value")
#: Stands for an error that makes an aggregate over it an error.
FAULT: Final = NamedNode("urn:x-spaseq:no-value-at-all")
#: Stands for a value that programs do not know.
OPEN: Final = NamedNode("urn:x-spaseq:unknown")
#: Stands for an error only for want of an earlier iteration.
EARLY: Final = NamedNode("urn:x-spaseq:no-value-yet")


class Numbers:
    """The id table: ``numbers`` and ``codes``, by id. A dictionary has one, for all queries (``of``)."""

    @classmethod
    def of(cls, dictionary: Dictionary) -> Numbers:
        """Return the table of a dictionary."""
        return dictionary.beside(cls)

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._error, self._early = dictionary.pin(ERROR), dictionary.pin(EARLY)
        self._fault, self._open = dictionary.pin(FAULT), dictionary.pin(OPEN)
        self.numbers: npt.NDArray[np.float64] = np.zeros(0)
        self.codes: npt.NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self._ranks: npt.NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        # The codes as a memoryview, for reading few.
        self._codes = self.codes.data
        # The columns read so far: many queries share them.
        self._seen: dict[int, ref[Ids]] = {}
        self._make_room()

    def cover(self, ids: Ids) -> None:
        """Read the terms that are not in the table yet."""
        with self._dictionary.lock:
            seen = self._seen.get(id(ids))
            if seen is not None and seen() is ids:
                return
            self._look_at(ids)
            if len(ids) >= _LARGE:
                if len(self._seen) >= _MOST_SEEN:
                    self._seen.clear()
                self._seen[id(ids)] = ref(ids)

    def _look_at(self, ids: Ids) -> None:
        self._make_room()
        first = first_with(_UNKNOWN, ids, self.codes)
        if first == len(ids):
            return
        limit = len(self.codes)
        most = min(len(ids) - first, limit)
        new, seen = np.empty(most + 1, dtype=np.int64), np.zeros(limit, dtype=np.bool_)
        count = distinct_with(_UNKNOWN, ids[first:], self.codes, seen, new)
        for identifier in self._usual(new[:count]).tolist():
            known = _short(self._dictionary.written(identifier)) or _look(self._dictionary.value(identifier))
            self.codes[identifier], self.numbers[identifier] = known

    def cover_few(self, ids: Collection[int]) -> None:
        """Do what ``cover`` does without arrays, as for a single event."""
        codes, limit = self._codes, len(self._codes)
        new = [identifier for identifier in ids if identifier >= limit or codes[identifier] == _UNKNOWN]
        if not new:
            return
        dictionary = self._dictionary
        with dictionary.lock:
            self._make_room()
            for identifier in new:
                known = _short(dictionary.written(identifier)) or _look(dictionary.value(identifier))
                # The code is written last, since it says that the number is there.
                self.numbers[identifier], self._codes[identifier] = known[1], known[0]

    def note(self, identifier: int, text: str) -> None:
        """Read a new term if that is cheap; otherwise it is read when it is needed."""
        known = _short(text)
        if known is not None:
            if identifier >= len(self._codes):
                self._make_room()
            self.numbers[identifier], self._codes[identifier] = known[1], known[0]

    def _make_room(self) -> None:
        limit = self._dictionary.limit
        if len(self.codes) < limit:
            room = 2 * limit - len(self.codes)
            numbers = np.concatenate([self.numbers, np.zeros(room)])
            codes = np.concatenate([self.codes, np.full(room, _UNKNOWN, dtype=np.int8)])
            # Unused ids, and the terms that stand for errors, need not be read.
            codes[0] = codes[self._error] = v.NOTHING
            codes[self._early], codes[self._fault] = v.MISSING, v.FAULT
            codes[self._open] = v.BEYOND
            few = codes.data
            # No interrupt can occur between these statements: that needs a call, or a loop.
            self.numbers, self.codes, self._codes = numbers, codes, few

    def _usual(self, new: Ids) -> Ids:
        """Enter the numbers that the dictionary reads without a Python object; return the other ids."""
        if len(self._ranks) < len(self.codes):
            self._ranks = np.zeros(len(self.codes), dtype=np.int8)
        self._ranks[new] = NO_NUMBER
        self._dictionary.usual(new, self.numbers, self._ranks)
        ranks = self._ranks[new]
        self.codes[new[ranks == EXACT_ORDER]] = v.SHORT
        self.codes[new[ranks == IS_DOUBLE]] = v.DOUBLE
        others: Ids = new[ranks == NO_NUMBER]
        return others

    def forget_all_but(self, kept: npt.NDArray[np.bool_]) -> None:
        """See ``Beside.forget_all_but``."""
        self._seen.clear()
        forgotten = np.flatnonzero(~kept[: len(self.codes)])
        self.codes[forgotten[forgotten > 0]] = _UNKNOWN


def _short(text: str) -> tuple[int, float] | None:
    """Return what ``_look`` does, for the text of a short integer or decimal; None for other texts."""
    number = _SHORT.fullmatch(text)
    if number is None:
        return None
    return v.SHORT, float(number[number.lastindex or 0]) or 0.0  # not a zero with a sign


def _look(value: Value) -> tuple[int, float]:
    """Return the code and number of a value."""
    match value.kind:
        case kind if kind == INTEGER:
            number = value.data
            if -(10**_DIGITS) < number < 10**_DIGITS:
                return v.SHORT, float(number)
            try:
                return v.LONG, float(number)
            except OverflowError:
                return v.BEYOND, 0.0
        case kind if kind == DECIMAL:
            if not value.data:
                return v.SHORT, 0.0
            _, digits, exponent = value.data.as_tuple()
            if not -300 < exponent + len(digits) < 300:
                return v.BEYOND, 0.0
            return (v.SHORT if len(digits) <= _DIGITS else v.LONG), float(value.data)
        case kind if kind == DOUBLE:
            return (v.BEYOND, 0.0) if math.isnan(value.data) else (v.DOUBLE, value.data)
        case kind if kind in (IRI, BLANK):
            return v.NODE, 0.0
        case kind if kind == DATETIME and value.data.offset is not None:
            return _moment(value.data.seconds)
        case kind if kind == STRING:
            return v.STRING, float(bool(value.data))
        case kind if kind == BOOLEAN:
            return v.BOOLEAN, float(value.data)
        case kind if kind == TEMPORAL:
            return _duration(value)
        case _:
            return v.BEYOND, 0.0


def _moment(seconds: Decimal) -> tuple[int, float]:
    """Return a dateTime with a zone."""
    return _micros(v.MOMENT, seconds)


def _duration(value: Value) -> tuple[int, float]:
    """Return a duration of days and less."""
    assert isinstance(value.term, Literal)
    match = _DURATION.fullmatch(value.text)
    if value.term.datatype.value not in (XSD + "dayTimeDuration", XSD + "duration") or match is None:
        return v.BEYOND, 0.0
    sign, *parts = match.groups()
    seconds = Decimal(0)
    for length, count in zip((86_400, 3_600, 60, 1), parts, strict=True):
        seconds = EXACT.add(seconds, EXACT.multiply(Decimal(length), Decimal(count or 0)))
    return _micros(v.DURATION, -seconds if sign else seconds)


def _micros(code: int, seconds: Decimal) -> tuple[int, float]:
    """Return microseconds, if a double is exact for them."""
    micros = EXACT.multiply(seconds, _MILLION)
    if abs(micros) < _WHOLE and micros == micros.to_integral_value():
        return code, float(micros)
    return v.BEYOND, 0.0
