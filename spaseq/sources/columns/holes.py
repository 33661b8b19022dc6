"""Templates of triples with holes for the columns of a table: rows of an Arrow batch → terms.

``?column`` is replaced by a value as a literal, ``{column}`` inside an IRI by its text. A name that is not a
word is written ``?{my column}``. Terms are made one column at a time, as N-Triples; null makes no term.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from spaseq.errors import SourceError
from spaseq.limits import Limits
from spaseq.nesting import NestingError, check_triple_terms
from spaseq.terms.values import XSD

_PART: Final = re.compile(r"\{([^{}<>]+)\}")
_TOKEN: Final = re.compile(
    r"<(?:\{[^{}<>]*\}|[^<>\s])*>|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\#[^\n]*"
    r"|[?$](?:\w+(?:\.\w+)*|\{[^{}<>]+\})"
)

#: The scheme of the IRIs that stand for columns in a template.
_HOLE: Final = "x-column:"

#: Marks a column that begins an IRI, and therefore has its scheme.
_WHOLE: Final = "x-whole:"

#: Characters that an IRI must not contain.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20<>\"{}|\\^`]")

#: The same, and characters that N-Triples escapes in strings, as patterns of Arrow.
_NOT_IN_IRIS: Final = r'[\x00-\x20<>"{}|\\^`]'
_NOT_PLAIN: Final = r'[\x00-\x1f"\\\x7f\x{FFFE}\x{FFFF}]'
_NAME: Final = r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$"
_PROBES: Final = ("x", "-0", "a.b_")
_USUAL_DOUBLE: Final = r"^-?[0-9]+(\.[0-9]+)?$"
#: How many values are looked at to see whether most of a column repeat.
_FIRST: Final = 1024


@dataclass(frozen=True, slots=True)
class FixedTerm:
    """A term that is the same in each row, in N-Triples; a blank node is fresh in each row."""

    text: str

    @property
    def is_blank(self) -> bool:
        """Return whether it is a label of a blank node."""
        return self.text.startswith("_:")


class Coded(NamedTuple):
    """Terms in N-Triples, and the index of each row's term (None: one term per row); null for none."""

    texts: pa.Array
    which: pa.Array | None
    is_valid: bool


@dataclass(frozen=True, slots=True)
class ColumnLiteral:
    """A column's value as a literal."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that it uses."""
        return (self.column,)

    def texts(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the term of each row in N-Triples; null for none."""
        return literals(batch.column(self.column))

    def coded(self, batch: pa.RecordBatch) -> Coded:
        """Return the distinct terms, and the index of each row's term."""
        values = _encoded(batch.column(self.column))
        return Coded(literals(values.dictionary), values.indices, True)


@dataclass(frozen=True, slots=True)
class Iri:
    """An IRI with columns inside: alternating text and columns."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Iri:
        """Parse text with ``{column}`` in it."""
        return cls(tuple(_PART.split(text)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that it uses."""
        return self.parts[1::2]

    def texts(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the term of each row in N-Triples; null for none. It may be invalid."""
        parts = [_escaped(batch.column(p)) if i % 2 else p for i, p in enumerate(self.parts)]
        return _joined("<", *parts, ">")

    def coded(self, batch: pa.RecordBatch) -> Coded:
        """Return the distinct terms, and the index of each row's term."""
        if len(self.columns) == 1:
            values = _encoded(batch.column(self.columns[0]))
            different = pa.record_batch([values.dictionary], names=list(self.columns))
            return Coded(self.texts(different), values.indices, self._is_plain(different))
        if self._is_plain(batch):
            return Coded(self.texts(batch), None, True)
        texts = self.texts(batch).dictionary_encode()
        return Coded(texts.dictionary, texts.indices, False)

    def certain(self, batch: pa.RecordBatch, most: int | None) -> pa.RecordBatch | None:
        """Return its columns as texts, if a quick check shows that each row has a valid IRI of at most
        ``most`` bytes.

        None if this is not certain. Also None if values repeat: the few distinct terms are then made at once.
        """
        columns = {name: batch.column(name) for name in self.columns}
        if any(column.null_count or _repeats(column) for column in columns.values()):
            return None
        if not self._is_plain(batch):
            return None
        texts = {name: pc.cast(column, pa.string()) for name, column in columns.items()}
        if most is not None:
            longest = {name: pc.max(pc.binary_length(column)).as_py() or 0 for name, column in texts.items()}
            fixed = len("".join(self.parts[::2]).encode()) + len("<>")
            if fixed + sum(longest[name] for name in self.columns) > most:
                return None
        return pa.record_batch(texts)

    def _is_plain(self, batch: pa.RecordBatch) -> bool:
        """Return whether every IRI is certainly valid: values are simple names, where a name may stand."""
        if ":" not in self.parts[0] or not all(
            is_valid(f"<{probe.join(self.parts[::2])}>") for probe in _PROBES
        ):
            return False
        return all(_are_names(batch.column(column)) for column in self.columns)


Slot = FixedTerm | ColumnLiteral | Iri


class Template:
    """The triples that each row makes. Raises SourceError for an invalid template or an unknown column."""

    def __init__(self, text: str, known: Collection[str], graph: str | None = None) -> None:
        self.triples = [tuple(map(_slot, triple)) for triple in _triples(text, known)]
        self.graph = None if graph is None else Iri.of(graph)
        for column in self.graph.columns if self.graph else ():
            _check(column, known)

    @property
    def columns(self) -> set[str]:
        """Return the columns that it uses."""
        slots = [slot for triple in self.triples for slot in triple] + ([self.graph] if self.graph else [])
        return {column for slot in slots if not isinstance(slot, FixedTerm) for column in slot.columns}


def _triples(template: str, known: Collection[str]) -> list[tuple[str, str, str]]:
    """Return the triples of a template in N-Triples, with holes in them."""

    def hollow(token: re.Match[str]) -> str:
        text = token[0]
        if text[0] in "?$":
            column, rest = _named(text[1:], known)
            return f"<{_HOLE}{quote(column, safe='')}>{rest}"
        if text[0] == "<":
            for column in _PART.findall(text):
                _check(column, known)
            whole = f"<{_WHOLE}" if text.startswith("<{") else "<"
            return whole + _PART.sub(lambda part: f"%7B{quote(part[1], safe='')}%7D{_HOLE}", text[1:])
        return text

    text = _TOKEN.sub(hollow, template)
    try:
        check_triple_terms(text.encode(), Limits())
        quads = list(parse(text, format=RdfFormat.TURTLE))
    except (SyntaxError, NestingError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise SourceError(f"the template is not Turtle with ?column and {{column}}: {reason}") from None
    if not quads:
        raise SourceError("the template has no triple")
    found = [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]
    for s, p, _ in found:
        wrong = next((term for term in (s, p) if term.startswith(f"<{_HOLE}")), None)
        if wrong is not None:
            column = unquote(wrong[len(_HOLE) + 1 : -1])
            raise SourceError(
                f"?{column} is a literal, and only an object can be one: write <urn:{{{column}}}> for an IRI"
            )
    return found


def _named(text: str, known: Collection[str]) -> tuple[str, str]:
    """Return the column that ``?text`` names, and what follows it: the dot of ``?a.b`` may end a triple."""
    if text.startswith("{"):
        column, rest = text[1:-1], ""
    else:
        words = text.split(".")
        count = next((n for n in range(len(words), 0, -1) if ".".join(words[:n]) in known), 1)
        column, rest = ".".join(words[:count]), "".join(f".{word}" for word in words[count:])
    _check(column, known)
    return column, rest


def _check(column: str, known: Collection[str]) -> None:
    if column not in known:
        raise SourceError(f"the template names a column {column!r}: there are {', '.join(sorted(known))}")


def _slot(text: str) -> Slot:
    """Return a term with its holes."""
    if text.startswith(f"<{_HOLE}"):
        return ColumnLiteral(unquote(text[len(_HOLE) + 1 : -1]))
    if f"%7D{_HOLE}" in text:
        filled = re.sub(rf"%7B((?:(?!%7[BD]).)+)%7D{_HOLE}", lambda part: f"{{{unquote(part[1])}}}", text)
        return Iri.of(filled[1:-1].removeprefix(_WHOLE))
    return FixedTerm(text)


def check_types(template: Template, schema: pa.Schema) -> None:
    """Raise SourceError for a column of a type that has no form as a term."""
    types = pa.types
    for column in sorted(template.columns):
        kind = schema.field(column).type
        if types.is_nested(kind):
            raise SourceError(
                f"?{column} is a column of {kind}, and a term has one value: make a column of each part"
            )
    for slot in (slot for triple in template.triples for slot in triple):
        if isinstance(slot, ColumnLiteral):
            kind = schema.field(slot.column).type
            plain = kind.value_type if types.is_dictionary(kind) else kind
            numbers = types.is_integer(plain) or types.is_floating(plain) or types.is_decimal(plain)
            times = types.is_date(plain) or types.is_timestamp(plain)
            if not (numbers or times or types.is_boolean(plain) or types.is_null(plain) or _is_text(plain)):
                raise SourceError(
                    f"?{slot.column} is a column of {kind}, which has no form as a literal: cast it"
                )


# --- values -------------------------------------------------------------------------------------


def literals(values: pa.Array) -> pa.Array:
    """Return each value as a literal in N-Triples.

    Null stays null. Raises SourceError for a type that has no form as a literal.
    """
    if pa.types.is_dictionary(values.type):
        return literals(values.dictionary).take(values.indices)
    if pa.types.is_integer(values.type):
        return _typed(pc.cast(values, pa.string()), "integer")
    if pa.types.is_boolean(values.type):
        return _typed(pc.cast(values, pa.string()), "boolean")
    if pa.types.is_date32(values.type):
        return _typed(pc.cast(values, pa.string()), "date")
    if pa.types.is_floating(values.type):
        texts = pc.cast(pc.cast(values, pa.float64()), pa.string())
        return _usually(values, pc.match_substring_regex(texts, _USUAL_DOUBLE), _typed(texts, "double"))
    if pa.types.is_timestamp(values.type) and values.type.unit in ("us", "ns"):
        # In UTC; a fraction only if it is not 0; nanoseconds are cut off, as in a time.
        counts = pc.cast(values, pa.int64()) if values.type.unit == "us" else _microseconds(values)
        moments = pc.cast(counts.cast(pa.timestamp("us")), pa.string())
        texts = pc.utf8_replace_slice(pc.replace_substring_regex(moments, r"\.000000$", ""), 10, 11, "T")
        return _joined('"', texts, f'Z"^^<{XSD}dateTime>')
    if _is_text(values.type):
        texts = pc.cast(values, pa.string())
        is_plain = pc.invert(pc.match_substring_regex(texts, _NOT_PLAIN))
        return _usually(values, is_plain, _joined('"', texts, '"'))
    return pa.array(map(_literal, values.to_pylist()), pa.string())


def _are_names(values: pa.Array) -> bool:
    if pa.types.is_integer(values.type):
        return True
    if not _is_text(values.type):
        return False
    return pc.all(pc.match_substring_regex(pc.cast(values, pa.string()), _NAME)).as_py() in (True, None)


def _encoded(values: pa.Array) -> pa.DictionaryArray:
    if pa.types.is_dictionary(values.type):
        return values
    return (pc.cast(values, pa.string()) if _is_text(values.type) else values).dictionary_encode()


def _repeats(values: pa.Array) -> bool:
    """Return whether most of the first values occur more than once."""
    first = _encoded(values.slice(0, _FIRST))
    return pa.types.is_dictionary(values.type) or 2 * len(first.dictionary) < len(first)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def _microseconds(values: pa.Array) -> pa.Array:
    nanoseconds = pc.fill_null(pc.cast(values, pa.int64()), 0).to_numpy(zero_copy_only=False)
    return pc.if_else(values.is_null(), None, pa.array(nanoseconds // 1000))


def _typed(texts: pa.Array, datatype: str) -> pa.Array:
    return _joined('"', texts, f'"^^<{XSD}{datatype}>')


def _usually(values: pa.Array, is_usual: pa.Array, usual: pa.Array) -> pa.Array:
    """Return ``usual`` where ``is_usual`` is true, and convert other values one by one."""
    if pc.all(is_usual).as_py() in (True, None):
        return usual
    others = pc.invert(is_usual)
    made = pa.array(map(_literal, pc.filter(values, others).to_pylist()), pa.string())
    return pc.replace_with_mask(usual, pc.fill_null(others, False), made)


def _escaped(values: pa.Array) -> pa.Array:
    """Return each value as text that may stand in an IRI."""
    if pa.types.is_dictionary(values.type):
        return _escaped(values.dictionary).take(values.indices)
    if pa.types.is_integer(values.type) or _is_text(values.type):
        texts = pc.cast(values, pa.string())
    else:
        texts = pa.array([None if v is None else str(v) for v in values.to_pylist()], pa.string())
    if not pc.any(pc.match_substring_regex(texts, _NOT_IN_IRIS)).as_py():
        return texts
    escaped = [None if t is None else _FORBIDDEN.sub(_percent, t) for t in texts.to_pylist()]
    return pa.array(escaped, pa.string())


def _percent(character: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in character[0].encode())


def _joined(*parts: pa.Array | str) -> pa.Array:
    """Concatenate texts; null where one of them is null."""
    return pc.binary_join_element_wise(*(pa.scalar(p) if isinstance(p, str) else p for p in parts), "")


def _literal(value: Any) -> str | None:
    """Return a value as a literal; None for null."""
    match value:
        case None:
            return None
        case bool():
            return str(Literal(value))
        case Decimal():
            return str(Literal(f"{value:f}", datatype=NamedNode(XSD + "decimal")))
        case datetime():
            moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
            text = moment.isoformat().replace("+00:00", "Z")
            return str(Literal(text, datatype=NamedNode(XSD + "dateTime")))
        case date():
            return str(Literal(value.isoformat(), datatype=NamedNode(XSD + "date")))
        case int() | float() | str():
            return str(Literal(value))
    raise SourceError(f"a column of {type(value).__name__} cannot be a literal: cast it")


def is_valid(text: str) -> bool:
    """Return whether an IRI in N-Triples is valid."""
    try:
        NamedNode(text[1:-1])
    except ValueError:
        return False
    return True


def constant_term(text: str) -> NamedNode | BlankNode | Literal:
    """Return the term of a ``FixedTerm``."""
    (quad,) = parse(f"<x:x> <x:x> {text} .", format=RdfFormat.N_TRIPLES)
    assert isinstance(quad.object, NamedNode | BlankNode | Literal)
    return quad.object
