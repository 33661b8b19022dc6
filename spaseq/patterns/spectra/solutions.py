"""Solutions as columns, and the relational algebra on them (SPARQL 1.1, section 18.5).

Joins sort keys instead of nesting loops: O(n log n + results). Unbound values, which are compatible
with everything, are handled by splitting both sides by *which* shared variables they bind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.events import Ids
from spaseq.limits import Spending
from spaseq.patterns.spectra.lookup import Counted, RowIndex, spread, uncounted
from spaseq.terms.dictionary import UNBOUND

Mask = npt.NDArray[np.bool_]

_KEY_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Solutions:
    """A multiset of solutions per event of a batch.

    ``columns`` are term ids of shape ``(rows,)``, 0 where unbound; ``event`` is each row's event, a
    position in the batch. ``event`` is None for a table that is the same in every event: VALUES, the
    background knowledge base, the empty pattern.
    """

    size: int
    event: Ids | None
    columns: dict[str, Ids]
    _lookups: dict[tuple[str, ...], RowIndex] = field(default_factory=dict, compare=False, repr=False)
    _complete: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return self.size

    def take(self, rows: Ids | Mask) -> Solutions:
        """Return some rows, by position or by mask."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        event = None if self.event is None else self.event[rows]
        return Solutions(len(rows), event, {name: column[rows] for name, column in self.columns.items()})

    def by_time(self) -> Solutions:
        """Return the rows in the order of their events."""
        events = self.events
        if (events[1:] < events[:-1]).any():
            return self.take(np.argsort(events, kind="stable"))
        return self

    def by_key(self, names: Sequence[str]) -> Solutions:
        """Return the rows of each event sorted by some variables; events stay in order."""
        events = self.events
        if not (events[1:] == events[:-1]).any():
            return self
        return self.take(np.lexsort([*(self.column(name) for name in reversed(names)), events]))

    @property
    def events(self) -> Ids:
        """Each row's event; ValueError for a table that is the same in every event."""
        if self.event is None:
            raise ValueError("these solutions belong to no event")
        return self.event

    def column(self, name: str) -> Ids:
        """Return the ids of a variable; all unbound if it has no column."""
        found = self.columns.get(name)
        return np.zeros(self.size, dtype=np.int64) if found is None else found

    def binds(self, name: str) -> bool:
        """Return whether every row binds a variable; computed once per variable."""
        found = self._complete.get(name)
        if found is None:
            found = self._complete[name] = name in self.columns and bool(self.columns[name].all())
        return found

    def lookup(self, names: tuple[str, ...]) -> RowIndex:
        """Return an index by the values of variables that every row binds; made once."""
        found = self._lookups.get(names)
        if found is None:
            found = self._lookups[names] = RowIndex([self.columns[name] for name in names])
        return found

    def drop(self, names: Iterable[str]) -> Solutions:
        """Return all but these columns."""
        gone = set(names)
        kept = {name: column for name, column in self.columns.items() if name not in gone}
        return Solutions(self.size, self.event, kept)

    def project(self, names: Iterable[str]) -> Solutions:
        """Return these columns only, each of them present."""
        return Solutions(self.size, self.event, {name: self.column(name) for name in names})

    def extend(self, name: str, column: Ids) -> Solutions:
        """Return one column more."""
        return Solutions(self.size, self.event, {**self.columns, name: column})

    def everywhere(self, events: Ids, spending: Spending | None = None) -> Solutions:
        """Return a table that is the same in every event, repeated for each of ``events``."""
        if self.event is not None:
            return self
        _counted(spending, self)(self.size * len(events))
        rows = np.tile(np.arange(self.size), len(events))
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Solutions(len(rows), np.repeat(events, self.size), columns)

    def by_row(self) -> Iterator[dict[str, int]]:
        """Yield the solutions one by one, without what is unbound."""
        names = list(self.columns)
        if not names:
            yield from ({} for _ in range(self.size))
            return
        rows = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        if all(map(self.binds, names)):
            for values in rows:
                yield dict(zip(names, values, strict=True))
            return
        for values in rows:
            yield {name: value for name, value in zip(names, values, strict=True) if value}

    def by_event(self) -> dict[int, tuple[dict[str, int], ...]]:
        """Return the solutions of every event that has some, in the order of the rows."""
        found: dict[int, list[dict[str, int]]] = {}
        for event, solution in zip(self.events.tolist(), self.by_row(), strict=True):
            found.setdefault(event, []).append(solution)
        return {event: tuple(rows) for event, rows in found.items()}

    def rows(self, event: int) -> tuple[dict[str, int], ...]:
        """Return the solutions of one event."""
        return tuple(self.take(self.events == event).by_row())


#: The solutions of the empty pattern: one, which binds nothing.
UNIT = Solutions(1, None, {})

#: The solutions of a graph pattern that has none in any event.
NO_SOLUTIONS = Solutions(0, np.zeros(0, dtype=np.int64), {})
_FIRST: Final[Ids] = np.zeros(1, dtype=np.int64)


def table(names: Sequence[str], rows: Sequence[Sequence[int]]) -> Solutions:
    """Return rows of ids, the same in every event."""
    data = np.array(rows, dtype=np.int64).reshape(len(rows), len(names))
    return Solutions(len(rows), None, {name: data[:, i].copy() for i, name in enumerate(names)})


def from_rows(names: Sequence[str], by_event: Mapping[int, Sequence[Mapping[str, int]]]) -> Solutions:
    """Return the solutions of some events, in the order of the events, as columns."""
    rows = [row for found in by_event.values() for row in found]
    if len(rows) == 1 and 0 in by_event:
        # For a few rows, as of a pushed event: NumPy calls cost more than the values.
        values = np.array([rows[0].get(name, UNBOUND) for name in names], dtype=np.int64)
        return Solutions(1, _FIRST, {name: values[i : i + 1] for i, name in enumerate(names)})
    event = [event for event, found in by_event.items() for _ in found]
    columns = {name: np.array([row.get(name, UNBOUND) for row in rows], dtype=np.int64) for name in names}
    return Solutions(len(rows), np.array(event, dtype=np.int64), columns)


def group_codes(columns: Sequence[Ids]) -> Ids:
    """Return one integer per row, equal where the rows are equal; at least one column."""

    def combine(code: Ids, column: Ids) -> Ids:
        low, high = _range(column)
        if _range(code)[1] >= _KEY_LIMIT // (high - low + 1):
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            column, low = np.unique(column, return_inverse=True)[1].astype(np.int64), 0
            high = int(column.max(initial=0))
        return code * (high - low + 1) + (column - low)

    first, *others = columns
    return reduce(combine, others, first - _range(first)[0])


def _range(column: Ids) -> tuple[int, int]:
    return (int(column.min()), int(column.max())) if len(column) else (0, 0)


def _counted(spending: Spending | None, *sides: Solutions) -> Counted:
    """Return the callback that limits how many rows are made of those of ``sides``, before they are made."""
    if spending is None:
        return uncounted
    return partial(spending.rows, width=sum(len(side.columns) for side in sides))


def _matches(
    left: Sequence[Ids], right: Sequence[Ids], sizes: tuple[int, int], counted: Counted
) -> tuple[Ids, Ids]:
    """Return all pairs of rows with equal keys, ordered by left row, then right row."""
    n, m = sizes
    if not left:
        counted(n * m)
        return np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    codes = group_codes([np.concatenate(pair) for pair in zip(left, right, strict=True)])
    wanted, keys = codes[:n], codes[n:]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    start = np.searchsorted(keys, wanted, side="left")
    counts = np.searchsorted(keys, wanted, side="right") - start
    counted(int(counts.sum()))
    rows, positions = spread(start, counts)
    return rows, order[positions]


def _bound(solutions: Solutions, shared: Sequence[str]) -> Ids:
    """For each row, which of the shared variables it binds: one bit each."""
    mask = np.zeros(len(solutions), dtype=np.int64)
    for i, name in enumerate(shared):
        mask |= (solutions.columns[name] != UNBOUND).astype(np.int64) << i
    return mask


def _all_bound(
    left: Solutions, right: Solutions, shared: tuple[str, ...], overlap: bool, counted: Counted
) -> tuple[Ids, Ids]:
    """Do ``compatible`` where every row binds all shared variables: the usual case."""
    if overlap and not shared:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    left_keys = [left.columns[name] for name in shared]
    right_keys = [right.columns[name] for name in shared]
    if left.event is None or right.event is None:
        if shared and right.event is None and len(right) > len(left):
            return right.lookup(shared).pairs(left_keys, counted)
        if shared and left.event is None and len(left) > len(right):
            j, i = left.lookup(shared).pairs(right_keys, counted)
            order = np.argsort(i, kind="stable")
            return i[order], j[order]
        return _matches(left_keys, right_keys, (len(left), len(right)), counted)
    if _increasing(right.event):
        return _one_each(left.event, right.event, left_keys, right_keys)
    if _increasing(left.event):
        j, i = _one_each(right.event, left.event, right_keys, left_keys)
        order = np.argsort(i, kind="stable")
        return i[order], j[order]
    sizes = len(left), len(right)
    return _matches([left.event, *left_keys], [right.event, *right_keys], sizes, counted)


def _increasing(events: Ids) -> bool:
    return bool((events[1:] > events[:-1]).all())


def _one_each(left: Ids, right: Ids, left_keys: Sequence[Ids], right_keys: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Return the pairs of rows of the same event and equal keys, if no event has two rows on the right."""
    if not len(left) or not len(right):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    row_of = np.full(int(max(left.max(), right[-1])) + 1, -1, dtype=np.int64)
    row_of[right] = np.arange(len(right))
    rows = row_of[left]
    same = rows >= 0
    for a, b in zip(left_keys, right_keys, strict=True):
        same &= a == b[rows]
    found = np.flatnonzero(same)
    return found, rows[found]


def compatible(
    left: Solutions, right: Solutions, overlap: bool = False, spending: Spending | None = None
) -> tuple[Ids, Ids]:
    """Return the pairs of compatible rows of the same event, ordered by left row, then right row.

    With ``overlap``, only pairs that bind some variable in common, as MINUS needs. ``spending`` is called
    with their number before they are made, here and below.
    """
    counted = _counted(spending, left, right)
    shared = sorted(left.columns.keys() & right.columns.keys())
    by_event = left.event is not None and right.event is not None
    if all(left.binds(name) and right.binds(name) for name in shared):
        return _all_bound(left, right, tuple(shared), overlap, counted)
    found: list[tuple[Ids, Ids]] = []
    left_bound, right_bound = _bound(left, shared), _bound(right, shared)
    for a in np.unique(left_bound).tolist():
        left_rows = np.flatnonzero(left_bound == a)
        for b in np.unique(right_bound).tolist():
            if overlap and not a & b:
                continue
            right_rows = np.flatnonzero(right_bound == b)
            names = [name for i, name in enumerate(shared) if a & b & 1 << i]
            left_keys = [left.columns[name][left_rows] for name in names]
            right_keys = [right.columns[name][right_rows] for name in names]
            if by_event:
                assert left.event is not None
                assert right.event is not None
                left_keys.insert(0, left.event[left_rows])
                right_keys.insert(0, right.event[right_rows])
            i, j = _matches(left_keys, right_keys, (len(left_rows), len(right_rows)), counted)
            found.append((left_rows[i], right_rows[j]))
    if len(found) == 1:
        return found[0]
    none = np.zeros(0, dtype=np.int64)
    rows = np.concatenate([none, *(pair[0] for pair in found)])
    others = np.concatenate([none, *(pair[1] for pair in found)])
    order = np.lexsort((others, rows))
    return rows[order], others[order]


def _merge(left: Solutions, right: Solutions, i: Ids, j: Ids) -> Solutions:
    """Return rows ``i`` of left united with rows ``j`` of right, pair by pair."""
    if len(i) == len(left) and (i == np.arange(len(left))).all():
        columns = left.columns.copy()  # each row once: ``column[i]`` in each of many joins would be slow
    else:
        columns = {name: column[i] for name, column in left.columns.items()}
    for name, column in right.columns.items():
        if name in columns and left.binds(name):
            continue
        values = column[j]
        known = columns.get(name)
        columns[name] = values if known is None else np.where(known == UNBOUND, values, known)
    event = right.event[j] if left.event is None and right.event is not None else None
    return Solutions(len(i), event if left.event is None else left.event[i], columns)


def join(left: Solutions, right: Solutions, spending: Spending | None = None) -> Solutions:
    """``left ⋈ right``, per event."""
    if left is UNIT:
        return right
    if right is UNIT:
        return left
    return _merge(left, right, *compatible(left, right, spending=spending))


def left_join(
    left: Solutions,
    right: Solutions,
    events: Ids,
    condition: Callable[[Solutions], Mask] | None = None,
    spending: Spending | None = None,
) -> Solutions:
    """``left ⟕ right``: OPTIONAL, with the filters of its group as ``condition`` on the joined rows."""
    if right.event is not None:
        left = left.everywhere(events, spending)
    i, j = compatible(left, right, spending=spending)
    joined = _merge(left, right, i, j)
    if condition is not None:
        keep = condition(joined)
        i, joined = i[keep], joined.take(keep)
    alone = np.ones(len(left), dtype=np.bool_)
    alone[i] = False
    if not alone.any():
        return joined
    rest = np.flatnonzero(alone)
    both = union([joined, left.take(rest)], events, spending)
    return both.take(np.argsort(np.concatenate([i, rest]), kind="stable"))


def minus(left: Solutions, right: Solutions, events: Ids, spending: Spending | None = None) -> Solutions:
    """Return the rows of ``left`` with no compatible row of ``right`` that shares a bound variable."""
    if right.event is not None and left.columns.keys() & right.columns.keys():
        left = left.everywhere(events, spending)
    keep = np.ones(len(left), dtype=np.bool_)
    keep[compatible(left, right, overlap=True, spending=spending)[0]] = False
    return left.take(keep)


def union(parts: Sequence[Solutions], events: Ids, spending: Spending | None = None) -> Solutions:
    """Return the rows of all parts, one part after the other."""
    if any(part.event is not None for part in parts):
        parts = [part.everywhere(events, spending) for part in parts]
    if spending is not None:
        spending.rows(sum(map(len, parts)))
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    columns = {name: np.concatenate([part.column(name) for part in parts]) for name in names}
    found = [part.event for part in parts if part.event is not None]
    return Solutions(sum(map(len, parts)), np.concatenate(found) if found else None, columns)


def substituted(solutions: Solutions, context: Mapping[str, int]) -> Solutions:
    """Return the rows that agree with ``context``, without its variables: what replacing them would give."""
    for name in solutions.columns.keys() & context.keys():
        column = solutions.columns[name]
        solutions = solutions.take((column == context[name]) | (column == UNBOUND))
    return solutions.drop(context)


def distinct(solutions: Solutions) -> Solutions:
    """Return each solution once per event, at its first place."""
    columns = list(solutions.columns.values())
    if solutions.event is not None:
        columns.insert(0, solutions.event)
    if not columns:
        return solutions.take(np.arange(min(len(solutions), 1)))
    first = np.unique(group_codes(columns), return_index=True)[1]
    return solutions.take(np.sort(first))


def per_distinct(
    solutions: Solutions,
    names: Iterable[str],
    function: Callable[[Mapping[str, int]], int],
    context: Mapping[str, int],
    *,
    repeatable: bool = True,
    spending: Spending | None = None,
) -> Ids:
    """Return the value of ``function`` for every row.

    It gets the variables that it depends on, and ``context``. It is called once for equal values of these
    variables; if it is not ``repeatable``, as ``RAND()`` is not, once for each row.
    """

    def call(row: Mapping[str, int]) -> int:
        if spending is not None:
            spending.check()
        return function({**context, **row})

    used = [name for name in names if name in solutions.columns]
    if not repeatable:
        calls = [call(row) for row in solutions.project(used).by_row()]
        return np.array(calls, dtype=np.int64)
    if not used:
        value = call({}) if len(solutions) else 0
        return np.full(len(solutions), value, dtype=np.int64)
    codes = group_codes([solutions.columns[name] for name in used])
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rows = solutions.project(used).take(first).by_row()
    answers = np.array([call(row) for row in rows], dtype=np.int64)
    return answers[inverse]
