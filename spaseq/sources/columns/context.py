"""Templates for columns of rows, derived from what the JSON-LD processor makes of probes.

A *flat* context maps each column by itself: to the row's subject, to one triple about it, or to nothing. For
most values of such a column a template gives the term; the processor judges other values, once each. The
processor defines what a context means: a template is made only if several probes agree, and only of contexts
in which no column changes the meaning of another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.sources.formats._lift import lift
from spaseq.terms.identified import Row

#: A value of a row: a JSON string, true, false, null, or a number as written.
Value = object


class Number(str):
    """A JSON number, as written."""

    __slots__ = ()


class KeyGroup(NamedTuple):
    """Rows of a block with the same keys: their numbers in the block, and a column of values for each key.

    With ``skips_empty``, an empty string counts as no value.
    """

    keys: tuple[str, ...]
    rows: Sequence[int]
    columns: Sequence[Sequence[Value]]
    skips_empty: bool


class Role(Enum):
    """What a column is mapped to."""

    SUBJECT = "subject"
    PROPERTY = "property"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Form:
    """A term in N-Triples: a prefix, a text that matches ``plain``, and a suffix.

    ``plain`` matches one or more such texts, with line feeds between. ``is_double``: the text is a number
    that JSON-LD writes as a double.
    """

    start: str
    end: str
    plain: re.Pattern[str]
    is_double: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """The mapping of a column: its predicate if it is a property, and the forms of its strings and numbers.

    ``judged`` caches the terms of other values, by their JSON: ``""`` for none, None if the processor must
    see the whole row.
    """

    key: str
    role: Role
    predicate: NamedNode | None
    text: Form | None = None
    numbers: tuple[Form, ...] = ()
    judged: dict[str, str | None] = field(default_factory=dict, compare=False)

    @property
    def has_false_decimals(self) -> bool:
        """Return whether numbers with a fraction are typed as decimals, but written as doubles."""
        return any(form.is_double and form.end == f'"^^{DECIMAL}' for form in self.numbers)


def _lines(one: str) -> re.Pattern[str]:
    return re.compile(rf"{one}(?:\n{one})*+")


#: Strings that canonical N-Triples writes without escapes.
PLAIN_TEXT: Final = re.compile(r'[^\x00-\x09\x0b-\x1f"\\\x7f\ud800-\udfff\ufffe\uffff]*+')
#: What may follow any IRI that ends like a namespace, without changing the IRI's structure.
_SEGMENT: Final = _lines(r"[A-Za-z0-9_-][A-Za-z0-9._-]*+")
_INTEGER: Final = _lines(r"(?:0|-?[1-9][0-9]{0,14}+)(?![0-9])")
_FRACTION: Final = _lines(r"-?(?:0|[1-9][0-9]{0,7})\.[0-9]{0,6}[1-9](?![0-9])")

_PROPERTY: Final = "urn:x-spaseq:probe"
_SEGMENTS: Final = ("probe", "Probe-2.x_y")
_STRINGS: Final = (
    *_SEGMENTS,
    'a "quoted" \\ text: é,\n_:b @c',
    "http://example.org/probe",
    "_:probe",
    "12",
    "",
)
_INTEGERS: Final = ("5", "-120", "0", "123456789012345")
_FRACTIONS: Final = ("1.5", "-0.0025", "12000.25")
_OTHERS: Final = ("true", "false", "null", "1e30", "2.0")

#: Keywords that a context may use; with others, a column may change the meaning of another.
_SETTINGS: Final = frozenset(
    {"@base", "@container", "@context", "@id", "@language", "@prefix", "@protected", "@type", "@version"}
    | {"@vocab"}
)
_VALUES: Final = frozenset({"@id", "@none", "@set", "@type", "@vocab"})

DECIMAL: Final = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
#: The most judged values cached for a column, and the longest of them.
_REMEMBERED: Final = 1 << 14
_LONGEST: Final = 1 << 8


class Templates:
    """The columns of a context, made on first use."""

    def __init__(self, context: str) -> None:
        self._context = context
        keys, values = _words(json.loads(context))
        keywords = {word for word in keys if word.startswith("@")}
        used = {word for word in values if word.startswith("@")}
        self._is_flat = keywords <= _SETTINGS and used <= _VALUES
        self._is_scoped = _is_scoped(json.loads(context))
        #: Names that may have another meaning as values, too.
        self.names = frozenset(keys)
        self._columns: dict[str, Column | None] = {}
        self._rows: dict[tuple[str, ...], list[Column] | None] = {}

    def columns(self, keys: tuple[str, ...]) -> list[Column] | None:
        """Return the columns of rows with these keys; None if the processor must see each row."""
        if keys not in self._rows:
            if len(self._rows) >= _REMEMBERED:
                self._rows.clear()
            self._rows[keys] = self._together(keys) if self._is_flat else None
        return self._rows[keys]

    def know(self, keys: tuple[str, ...]) -> bool:
        """Return whether ``columns`` was called for these keys."""
        return keys in self._rows

    def judge(self, column: Column, values: Iterable[str]) -> dict[str, str | None]:
        """Return the terms of values, given as JSON, by the processor; see ``Column.judged``."""
        values = list(dict.fromkeys(values))
        short = [value for value in values if len(value) <= _LONGEST and value not in column.judged]
        if len(column.judged) + len(short) > _REMEMBERED:
            column.judged.clear()
            short = [value for value in values if len(value) <= _LONGEST]
        for value, seen in zip(short, self._probe(column.key, short), strict=True):
            column.judged[value] = _judgement(column, seen)
        return {value: column.judged.get(value) for value in values}

    def _together(self, keys: tuple[str, ...]) -> list[Column] | None:
        """Return the columns, if each is flat, and a probe with all of them confirms it."""
        if len(set(keys)) < len(keys) or any(key[:1] == "@" and key not in ("@id", "@type") for key in keys):
            return None
        columns = [column for column in map(self._column, keys) if column is not None]
        predicates = {column.predicate for column in columns}
        roles = [column.role for column in columns]
        if (
            len(columns) < len(keys)
            or roles.count(Role.SUBJECT) > 1
            or (self._is_scoped and _TYPE in predicates)
        ):
            return None
        for probe in ('"http://example.org/probe"', '"probe"', "5", "1.5", "true"):
            expected = self._composed(columns, probe)
            row = ",".join(f"{json.dumps(key)}:{probe}" for key in keys)
            (found,) = lift([f"{{{row}}}"], self._context)
            if expected is not None and (isinstance(found, ValueError) or _shown(found) != expected):
                return None
        return columns

    def _composed(self, columns: Sequence[Column], probe: str) -> set[tuple[str, str, str]] | None:
        """Return the triples of a row with the value ``probe`` in each column.

        None if the processor must see the whole row for some column.
        """
        terms = [self.judge(column, [probe])[probe] for column in columns]
        if None in terms:
            return None
        subjects = [t for t, c in zip(terms, columns, strict=True) if c.role is Role.SUBJECT]
        subject = subjects[0] if subjects and subjects[0] else "_:"
        return {
            (subject, str(column.predicate), term)
            for column, term in zip(columns, terms, strict=True)
            if column.role is Role.PROPERTY and term
        }

    def _column(self, key: str) -> Column | None:
        if key not in self._columns:
            if len(self._columns) >= _REMEMBERED:
                self._columns.clear()
            self._columns[key] = self._derive(key)
        return self._columns[key]

    def _derive(self, key: str) -> Column | None:
        """Return the column of a key; None if the key is not flat."""
        strings = [json.dumps(text) for text in _STRINGS]
        probes = [*strings, *_INTEGERS, *_FRACTIONS, *_OTHERS]
        seen = dict(zip(probes, self._probe(key, probes), strict=True))
        facts = [fact for fact in seen.values() if fact is not None]
        predicates = {predicate for _, predicate, _ in facts if predicate is not None}
        named = any(isinstance(subject, NamedNode) for subject, _, _ in facts)
        if len(predicates) > 1 or (predicates and named):
            return None
        role = Role.PROPERTY if predicates else Role.SUBJECT if named else Role.DROPPED
        if role is Role.DROPPED and len(facts) < len(probes):
            return None
        predicate = next(iter(predicates), None)
        found = Column(key, role, predicate)

        def terms(texts: Sequence[str]) -> list[str]:
            return [_judgement(found, seen[text]) or "" for text in texts]

        if role is Role.DROPPED:
            return found
        numbers = (
            _number_form(_INTEGERS, terms(_INTEGERS), _INTEGER),
            _number_form(_FRACTIONS, terms(_FRACTIONS), _FRACTION),
        )
        text = _string_form(terms(strings)) or _segment_form(terms(strings))
        return Column(key, role, predicate, text, tuple(form for form in numbers if form is not None))

    def _probe(self, key: str, values: Sequence[str]) -> Iterator[tuple[Any, Any, Any] | None]:
        """Yield for each value in a row of its own: subject, predicate and object; None for any other result.

        Predicate and object are None if the value is in no triple.
        """
        name = json.dumps(key)
        for found in lift([f'{{{name}:{value},"{_PROPERTY}":"x"}}' for value in values], self._context):
            yield None if isinstance(found, ValueError) else _fact(found)


def _fact(triples: list[Row]) -> tuple[Any, Any, Any] | None:
    known = [s for s, p, _ in triples if p == NamedNode(_PROPERTY)]
    others = [row for row in triples if row[1] != NamedNode(_PROPERTY)]
    if len(known) != 1 or len(others) > 1 or any(s != known[0] for s, _, _ in others):
        return None
    if not others:
        return known[0], None, None
    return known[0], others[0][1], others[0][2]


def _judgement(column: Column, seen: tuple[Any, Any, Any] | None) -> str | None:
    """Return the term that a probe shows for a column; see ``Column.judged``."""
    if seen is None:
        return None
    subject, predicate, term = seen
    if column.role is Role.SUBJECT:
        return str(subject) if isinstance(subject, NamedNode) and predicate is None else None
    if not isinstance(subject, BlankNode):
        return None
    if predicate is None:
        return ""
    return str(term) if predicate == column.predicate and isinstance(term, NamedNode | Literal) else None


def _string_form(terms: Sequence[str]) -> Form | None:
    """Return the form of strings as literals, if all of them are literals."""
    end = terms[0][len(_STRINGS[0]) + 1 :]
    expected = [f"{str(Literal(text))[:-1]}{end}" for text in _STRINGS]
    return Form('"', end, PLAIN_TEXT) if end[:1] == '"' and expected == list(terms) else None


def _segment_form(terms: Sequence[str]) -> Form | None:
    """Return the form of simple names as IRIs, if they all follow the same namespace."""
    start = terms[0].removesuffix(f"{_SEGMENTS[0]}>")
    expected = [f"{start}{segment}>" for segment in _SEGMENTS]
    return (
        Form(start, ">", _SEGMENT) if start[:1] == "<" and expected == list(terms[: len(expected)]) else None
    )


def _number_form(probes: Sequence[str], terms: Sequence[str], plain: re.Pattern[str]) -> Form | None:
    """Return the form of numbers, if they stay as they are or all become doubles."""
    end = terms[0][terms[0].rfind('"') :]
    for is_double in (False, True):
        texts = [double(text) for text in probes] if is_double else probes
        if terms[0][:1] == '"' and [f'"{text}{end}' for text in texts] == list(terms):
            return Form('"', end, plain, is_double)
    return None


def double(text: str) -> str:
    """Write a number as JSON-LD writes doubles; it has no exponent and no zeros at the end of a fraction.

    >>> double("-120"), double("27.85"), double("0.0025"), double("0")
    ('-1.2E2', '2.785E1', '2.5E-3', '0.0E0')
    """
    sign = "-" if text[0] == "-" else ""
    whole, _, fraction = text[len(sign) :].partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0.0E0"
    exponent = len(digits) - len(fraction) - 1
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shown(triples: list[Row]) -> set[tuple[str, str, str]]:
    return {("_:" if isinstance(s, BlankNode) else str(s), str(p), str(o)) for s, p, o in triples}


def _words(context: object) -> tuple[set[str], set[str]]:
    """Return the keys and the strings of a context, at any depth."""
    keys: set[str] = set()
    values: set[str] = set()
    if isinstance(context, str):
        values.add(context)
    elif isinstance(context, dict | list):
        if isinstance(context, dict):
            keys.update(context)
        for part in context.values() if isinstance(context, dict) else context:
            more, others = _words(part)
            keys |= more
            values |= others
    return keys, values


def _is_scoped(context: object) -> bool:
    """Return whether a term has a context of its own."""
    keys, _ = _words(context)
    return "@context" in keys
