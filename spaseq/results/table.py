"""Matches as an Arrow table, which pandas and polars read directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyoxigraph as ox

from spaseq.errors import EngineError
from spaseq.results.encoded import Bindings
from spaseq.terms.dictionary import Term

if TYPE_CHECKING:
    from spaseq.results.batch import MatchBatch


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _truth(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text]


#: Types of a column of terms: Arrow's type, and how the text of a term is read.
_TYPES: Final[dict[str, tuple[pa.DataType, Callable[[str], Any]]]] = {
    "bool": (pa.bool_(), _truth),
    "double": (pa.float64(), float),
    "int64": (pa.int64(), int),
    "string": (pa.string(), str),
    "timestamp": (pa.timestamp("us", tz="UTC"), _moment),
}


def to_arrow(batch: MatchBatch, columns: Mapping[str, str]) -> pa.Table:
    """Return a row for each row of each match: ``match`` (its index in the batch), ``start``, ``end``,
    variables.

    Variables of PARTITION BY precede those of SELECT. Terms are dictionary-encoded strings in N-Triples, null
    if unbound. ``columns`` gives some variables a type: ``double``, ``int64``, ``string`` (the text of a
    literal, an IRI), ``bool`` or ``timestamp`` (UTC); values of another type are null. A variable named like
    one of the first three columns replaces it.

    Raises ``EngineError`` for an unknown type or variable.
    """
    partition, bindings = batch.partition, batch.bindings
    known = {**partition.columns, **bindings.columns}
    for name, kind in columns.items():
        if name not in known:
            raise EngineError(f"columns: the matches have no variable ?{name}: they have {', '.join(known)}")
        if kind not in _TYPES:
            raise EngineError(f"columns: ?{name} cannot be {kind!r}: known are {', '.join(_TYPES)}")
    sizes = np.diff(bindings.offsets)
    match = np.repeat(np.arange(len(batch)), sizes)
    one_each = bool((sizes == 1).all())
    table: dict[str, pa.Array] = {"match": pa.array(match)}
    for name, times in (("start", batch.start), ("end", batch.end)):
        of_rows = times if one_each else times[match]
        array = pa.array(of_rows)
        table[name] = array.cast(pa.timestamp("us", tz="UTC")) if of_rows.dtype.kind == "M" else array
    terms = _Terms(partition)
    for name, numbers in partition.columns.items():
        table[name] = terms.column(numbers if one_each else numbers[match], columns.get(name))
    terms = _Terms(bindings)
    for name, numbers in bindings.columns.items():
        table[name] = terms.column(numbers, columns.get(name))
    return pa.table(table)


class _Terms:
    """The terms of some columns: each is read once, and only if a column needs it."""

    def __init__(self, bindings: Bindings) -> None:
        self._terms = bindings.terms
        self._strings: pa.Array | None = None

    def column(self, numbers: npt.NDArray[np.int32], kind: str | None) -> pa.Array:
        """Return a column of terms, as strings or of a type."""
        unbound = numbers < 0
        indices = pa.array(numbers, mask=unbound) if unbound.any() else pa.array(numbers)
        if kind is None:
            if self._strings is None:
                self._strings = pa.array(map(str, self._terms), pa.string())
            return pa.DictionaryArray.from_arrays(indices, self._strings)
        used = np.zeros(len(self._terms), dtype=np.bool_)
        used[numbers[~unbound]] = True
        type_, read = _TYPES[kind]
        values = [
            _read(term, read) if is_used else None
            for term, is_used in zip(self._terms, used.tolist(), strict=True)
        ]
        return pa.array(values, type_).take(indices)


def _read(term: Term, read: Callable[[str], Any]) -> Any:
    """Return the value of a term, None if it has another type."""
    if not isinstance(term, ox.Literal) and read is not str:
        return None
    try:
        return read(term.value)
    except (ValueError, KeyError):
        return None
