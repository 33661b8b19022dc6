"""The fast path for rows: columns of values → columns of ids, by the templates of a context.

The JSON-LD processor judges values that no template covers, once per value. Rows that it must see whole are
*odd* and left to the slow path, as are rows with a missing or invalid time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal

from spaseq.events import Clock, Ids
from spaseq.sources.assembly._kernel import INSTANT, TICK, UNREAD, read_times
from spaseq.sources.assembly.sink import EventSink
from spaseq.sources.columns.context import (
    PLAIN_TEXT,
    Column,
    Form,
    KeyGroup,
    Number,
    Role,
    Templates,
    Value,
    double,
)
from spaseq.sources.formats.row_times import RowTimes
from spaseq.sources.times import read_time
from spaseq.terms.dictionary import UNBOUND

Mask = npt.NDArray[np.bool_]

_ODD: Final = -1

#: The fewest rows with the same keys for which a template pays off.
FEW: Final = 8


class _Triples(NamedTuple):
    """Triples of rows: the row of each, and its terms."""

    row: Ids
    s: Ids
    p: Ids
    o: Ids


class FastRows:
    """Lifts rows as ``RowLifter`` does, if they are usual."""

    def __init__(self, context: str, sink: EventSink, times: RowTimes | None = None) -> None:
        self._templates = Templates(context)
        self._sink = sink
        self._column = times
        self._dictionary = sink.dictionary

    def deliver(
        self, count: int, groups: Sequence[KeyGroup], slowly: Callable[[Sequence[int]], None]
    ) -> None:
        """Deliver the events of ``count`` rows in order; ``slowly`` gets the numbers of odd rows."""
        with self._dictionary.lock:
            odd = np.ones(count, dtype=np.bool_)
            time_id = np.zeros(count, dtype=np.int64)
            found = [self._lift(group, odd, time_id) for group in groups]
            triples = _Triples(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
            size = np.bincount(triples.row, minlength=count)
            times = self._times(odd, time_id) if self._column is None else _cells(self._column, count, groups)
            status, time = times
            odd |= (size == 0) | ((status == UNREAD) & (not self._sink.is_arrival))
            keep = ~odd[triples.row]
            order = np.argsort(triples.row[keep], kind="stable")
            s, p, o = (column[keep][order] for column in triples[1:])
            size[odd] = 0
            offset = np.concatenate([[0], np.cumsum(size)])
            # The boundaries between odd rows, other rows, and rows on another clock.
            kind = np.where(odd, _ODD, status)
            starts = np.flatnonzero(np.diff(kind, prepend=_ODD - 1)).tolist()
            for start, stop in zip(starts, [*starts[1:], count], strict=True):
                rows = slice(start, stop)
                part = slice(offset[start], offset[stop])
                if odd[start] or not self._sink.extend(
                    np.zeros(stop - start, dtype=np.int64),
                    Clock.INSTANTS if status[start] == INSTANT else Clock.TICKS,
                    None if self._sink.is_arrival else time[rows],
                    offset[start : stop + 1] - offset[start],
                    (s[part], p[part], o[part]),
                ):
                    slowly(range(start, stop))

    def _lift(self, group: KeyGroup, odd: Mask, time_id: Ids) -> _Triples:
        """Return the triples of a group's rows; mark odd rows, and write the ids of their times."""
        count = len(group.rows)
        none = np.empty(0, dtype=np.int64)
        is_worth = count >= FEW or self._templates.know(group.keys)
        columns = self._templates.columns(group.keys) if is_worth else None
        if columns is None:
            return _Triples(none, none, none, none)
        subject = np.zeros(count, dtype=np.int64)
        time = np.zeros(count, dtype=np.int64)
        is_odd = np.zeros(count, dtype=np.bool_)
        properties: list[tuple[int, Ids]] = []
        for column, values in zip(columns, group.columns, strict=True):
            if column.role is Role.DROPPED:
                is_odd |= [isinstance(value, tuple | list) for value in values]
                continue
            ids = self._ids(column, values, group.skips_empty)
            is_odd |= ids == _ODD
            if column.role is Role.SUBJECT:
                subject = ids
                continue
            assert column.predicate is not None
            if column.has_false_decimals and any(
                "." in value for value in values if isinstance(value, Number)
            ):
                self._sink.warn_of_decimals(column.predicate)
            if column.predicate == self._sink.predicate:
                is_odd |= (time != ids) & (time != UNBOUND) & (ids != UNBOUND)
                time = np.where(ids == UNBOUND, time, ids)
            predicate = self._dictionary.intern(column.predicate)
            for other, known in properties:
                if other == predicate:
                    ids = np.where(ids == known, UNBOUND, ids)
            properties.append((predicate, ids))
        blank = subject == UNBOUND
        subject[blank] = self._dictionary.table().fresh(int(np.count_nonzero(blank)))
        rows = np.asarray(group.rows, dtype=np.int64)
        odd[rows] = is_odd
        time_id[rows] = np.where(is_odd, UNBOUND, time)
        if not properties:
            return _Triples(none, none, none, none)
        o = np.stack([ids for _, ids in properties], axis=1)
        o[is_odd] = UNBOUND
        where = o != UNBOUND
        p = np.broadcast_to(np.array([predicate for predicate, _ in properties], dtype=np.int64), o.shape)
        of = np.repeat(np.arange(count), np.count_nonzero(where, axis=1))
        return _Triples(rows[of], subject[of], p[where], o[where])

    def _times(self, odd: Mask, time_id: Ids) -> tuple[Ids, Ids]:
        """Return (status, time) of each row; ``UNREAD`` for a missing or unreadable time."""
        status, time = np.zeros((2, len(time_id)), dtype=np.int64)
        if self._sink.is_arrival:
            status[:] = TICK
            return status, time
        table = self._dictionary.table()
        read_times(table.terms, table.arena, time_id, status, time)
        left = np.flatnonzero((status == UNREAD) & (time_id != UNBOUND) & ~odd)
        for identifier in np.unique(time_id[left]).tolist():
            try:
                read = read_time(self._dictionary.term(identifier))
            except ValueError:
                continue
            if not read.doubtful or self._sink.has_warned:
                rows = left[time_id[left] == identifier]
                time[rows] = read.value
                status[rows] = TICK if read.clock is Clock.TICKS else INSTANT
        return status, time

    def _ids(self, column: Column, values: Sequence[Value], skips_empty: bool) -> Ids:
        """Return the term of each value: ``UNBOUND`` if there is none, ``_ODD`` if its row is odd."""
        table = self._dictionary.table()
        kinds = set(map(type, values))
        if len(kinds) == 1 and not (skips_empty and "" in values):
            for form in _forms(column, kinds.pop()):
                data = _joined(form, values, self._templates.names)
                if data is not None:
                    return table.enter(data, len(values))
        texts = self._texts(column, values, skips_empty)
        ids = table.enter("".join(f"{text or ''}\n" for text in texts).encode(), len(texts))
        ids[[text is None for text in texts]] = _ODD
        return ids

    def _texts(self, column: Column, values: Sequence[Value], skips_empty: bool) -> list[str | None]:
        """Return the term of each value in N-Triples: ``""`` if there is none, None if its row is odd."""
        known: dict[type, dict[Value, str | None]] = {}
        for kind in set(map(type, values)) - {tuple, list}:
            different = {value for value in values if type(value) is kind}
            found = {value: _text(column, value, self._templates.names) for value in different}
            asked = {value: _as_json(value) for value, text in found.items() if text is None}
            judged = self._templates.judge(column, asked.values())
            known[kind] = found | {value: judged[text] for value, text in asked.items()}
        if skips_empty and str in known:
            known[str][""] = ""
        return [known[type(value)][value] if type(value) in known else None for value in values]


def _cells(column: RowTimes, count: int, groups: Sequence[KeyGroup]) -> tuple[Ids, Ids]:
    """Return (status, time) of each row, by its cell in a column."""
    status, time = np.zeros((2, count), dtype=np.int64)
    for group in groups:
        if column.name in group.keys:
            rows = np.asarray(group.rows, dtype=np.int64)
            cells = group.columns[group.keys.index(column.name)]
            found = [_status(time) for time in column.read_all(cells)]
            status[rows], time[rows] = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return status, time


def _status(time: tuple[Clock, int] | None) -> tuple[int, int]:
    return (UNREAD, 0) if time is None else (TICK if time[0] is Clock.TICKS else INSTANT, time[1])


def _as_json(value: Value) -> str:
    return value if isinstance(value, Number) else json.dumps(value)


def _forms(column: Column, kind: type) -> Sequence[Form]:
    """Return the forms that a column's values of a kind may have."""
    if kind is Number:
        return column.numbers
    return (column.text,) if kind is str and column.text is not None else ()


def _text(column: Column, value: Value, names: frozenset[str]) -> str | None:
    """Return the term of a value by the column's forms, in N-Triples; None if no form applies."""
    for form in _forms(column, type(value)):
        assert isinstance(value, str)
        if form.plain.fullmatch(value) and value not in names and "\n" not in value:
            return f"{form.start}{double(value) if form.is_double else value}{form.end}"
        if form.plain is PLAIN_TEXT:
            try:
                return f"{str(Literal(value))[:-1]}{form.end}"
            except ValueError:  # an unpaired surrogate
                return None
    return None


def _joined(form: Form, values: Sequence[Any], names: frozenset[str]) -> bytes | None:
    """Return values that are all plain as terms in N-Triples, one per line; None if not all are plain."""
    text = "\n".join(values)
    if form.plain.fullmatch(text) is None or text.count("\n") != len(values) - 1:
        return None
    if form.start[0] == "<" and not names.isdisjoint(values):
        return None
    if form.is_double:
        doubles = {value: double(value) for value in set(values)}
        text = "\n".join(map(doubles.__getitem__, values))
    return f"{form.start}{text.replace(chr(10), f'{form.end}{chr(10)}{form.start}')}{form.end}\n".encode()
