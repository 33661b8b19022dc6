"""A batch of events with its solutions; several batches as one, or under other names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from spaseq.events import EventBatch
from spaseq.matching.columns import _kernel_shares as k
from spaseq.matching.columns.blocks.values import zeros
from spaseq.patterns.spectra.solutions import Solutions

# A batch of events with its solutions.

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SolvedBatch:
    """A batch of events with its solutions. Its terms are kept as long as it is referenced.

    ``last`` is its end on the window's axis. ``rows[g]``: where the rows of GPM g begin in each event;
    without ``rows``, rows are found by search. ``derived``: further columns of its solutions, by GPM and
    name.
    """

    start: int
    batch: EventBatch
    solutions: tuple[Solutions, ...]
    last: int
    rows: Ints | None = None
    derived: Mapping[tuple[int, str], Ints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.batch.dictionary.hold(self)

    @property
    def size(self) -> int:
        """How many bytes the columns take, without those of other queries' GPMs."""
        batch = self.batch
        rows = sum(len(table) * (len(table.columns) + 1) for table in self.solutions)
        rows += sum(map(len, self.derived.values()))
        return 8 * (3 * len(batch.p) + 5 * len(batch) + rows)

    def span(self, g: int, index: int) -> range:
        """Return the rows of a GPM in an event."""
        if self.rows is not None:
            return range(self.rows[g, index], self.rows[g, index + 1])
        begin, end = np.searchsorted(self.solutions[g].events, (index, index + 1)).tolist()
        return range(begin, end)

    def narrowed(self, span: range, g: int, keys: Sequence[str], key: Sequence[int]) -> Sequence[int]:
        """Return the rows among some of a GPM's that have these values of variables."""
        columns = self.solutions[g].columns
        listed = [columns[name][span.start : span.stop].tolist() for name in keys]
        wanted = tuple(key)
        return [row for row, *values in zip(span, *listed, strict=True) if tuple(values) == wanted]

    def begins(self, g: int) -> Ints:
        """Return where the rows of a GPM begin in each event; shape ``(events + 1,)``."""
        if self.rows is not None:
            return np.asarray(self.rows[g])
        found = np.zeros(len(self.batch) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.solutions[g].events, minlength=len(self.batch)), out=found[1:])
        return found

    def live_ids(self) -> Iterable[Ints]:
        """Return the ids in the solutions: computed terms may be in no event."""
        solutions = [column for table in self.solutions for column in table.columns.values()]
        return [*solutions, *self.derived.values()]

    def time(self, position: int) -> int:
        """Return the time of the event at a position."""
        return self.batch.time.item(position - self.start)

    def event(self, position: int) -> tuple[EventBatch, int]:
        """Return the events, and the number of the one at a position."""
        return self.batch, position - self.start

    def row(self, g: int, i: int) -> dict[str, int]:
        """Return a solution without its unbound variables."""
        row = {name: column.item(i) for name, column in self.solutions[g].columns.items()}
        return row if all(row.values()) else {name: term for name, term in row.items() if term}


# Concatenated batches, in which matches name events by place; also under other names.

Ids = Ints | npt.NDArray[np.int32]

#: If there are this many times more events than needed, only the needed ones are searched.
_SPARSE: Final = 8


class MemberNames(NamedTuple):
    """A GPM with the same solutions elsewhere: its number there, and its variables' names there."""

    number: int
    variables: Mapping[str, str]


class Stretch:
    """Some consecutive batches as one: matches name the events by their places in it.

    Its columns are joined when they are first read. It keeps the batches, and so their terms.
    """

    def __init__(self, chunks: Sequence[SolvedBatch]) -> None:
        self._chunks = chunks
        # The number of events for which the solutions of a GPM were searched.
        self._asked: dict[int, int] = {}
        #: Where each batch begins.
        self.begins = np.cumsum([0, *(len(chunk.batch) for chunk in chunks)])
        self._known: dict[object, npt.NDArray[Any]] = {}

    def __len__(self) -> int:
        return int(self.begins[-1])

    @property
    def chunks(self) -> Sequence[SolvedBatch]:
        """The batches."""
        return self._chunks

    @cached_property
    def starts(self) -> list[int]:
        """The positions of the first events of the batches."""
        return [chunk.start for chunk in self.chunks]

    def where(self, places: Ints) -> Ints:
        """Return the numbers of the batches that contain places."""
        if len(self.chunks) == 1:
            return np.zeros(len(places), dtype=np.int64)
        return np.searchsorted(self.begins, places, side="right") - 1

    def events(self, column: str) -> Ints:
        """Return a column of all events: ``time``, ``stream``, ``graph`` or ``n``."""
        return self._whole(column, lambda chunk: getattr(chunk.batch, column))

    @property
    def is_counted(self) -> bool:
        """Whether the arrival numbers of all events (at least one) are consecutive."""
        if "counted" not in self._known:
            only = self.chunks[0].batch if len(self.chunks) == 1 else None
            counted = _are_counted(self.events("n")) if only is None else _looked_at(only).are_counted
            self._known["counted"] = np.array(counted)
        return bool(self._known["counted"])

    def first_rows(self, g: int) -> Ints:
        """Return the first solution of each event for a GPM, among those of all events."""
        if ("first", g) not in self._known:
            before = self.rows_before(g)
            parts = [chunk.begins(g)[:-1] + before[i] for i, chunk in enumerate(self.chunks)]
            self._known["first", g] = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return self._known["first", g]

    def counts(self, g: int) -> Ints:
        """Return how many solutions of a GPM each event has."""
        return self._whole(("count", g), lambda chunk: np.diff(chunk.begins(g)))

    def is_several(self, g: int) -> bool:
        """Return whether some event has more than one solution of a GPM."""
        if ("several", g) not in self._known:
            tables = [chunk.solutions[g].events for chunk in self.chunks]
            several = any(bool((events[1:] == events[:-1]).any()) for events in tables)
            self._known["several", g] = np.array(several)
        return bool(self._known["several", g])

    def is_single(self, g: int) -> bool:
        """Return whether each event has exactly one solution of a GPM."""
        if ("single", g) not in self._known:
            count = sum(len(chunk.solutions[g]) for chunk in self.chunks)
            self._known["single", g] = np.array(count == len(self) and not self.is_several(g))
        return bool(self._known["single", g])

    def is_worth_all(self, g: int, count: int) -> bool:
        """Return whether to compute the solutions of a GPM for all events, not only for ``count`` events.

        That is so when enough were needed, earlier calls included.
        """
        asked = self._asked[g] = self._asked.get(g, 0) + count
        return asked * _SPARSE >= len(self)

    def rows_at(self, g: int, places: Ints) -> Ints:
        """Return the first solution of a GPM for events that have some, among those of all events."""
        if self.is_worth_all(g, len(places)):
            return self.first_rows(g)[places]
        if ("events", g) not in self._known:
            parts = [chunk.solutions[g].events + self.begins[i] for i, chunk in enumerate(self.chunks)]
            self._known["events", g] = np.concatenate(parts)
        rows = np.empty(len(places), dtype=np.int64)
        k.find_rows(self._known["events", g], np.ascontiguousarray(places), rows)
        return rows

    def column(self, g: int, name: str) -> Ints | None:
        """Return the ids of a variable in all solutions of a GPM; None if it has no such column."""
        if not any(name in chunk.solutions[g].columns for chunk in self.chunks):
            return None
        return self._whole((g, name), lambda chunk: chunk.solutions[g].column(name))

    def of_events(self, g: int, name: str) -> Ids | None:
        """Return, for each event, the variable in its first solution of a GPM; any value if it has none."""
        column = self.column(g, name)
        if column is None or not len(column) or self.is_single(g):
            return column
        if ("of", g, name) not in self._known:
            # Many matches are looked up in it: short numbers need half of the memory bandwidth.
            if int(column.max()) <= np.iinfo(np.int32).max:
                column = column.astype(np.int32)
            rows = np.minimum(self.first_rows(g), len(column) - 1)
            self._known["of", g, name] = column[rows]
        return self._known["of", g, name]

    def is_bound(self, g: int, name: str) -> bool:
        """Return whether all solutions of a GPM bind a variable."""
        tables = (chunk.solutions[g] for chunk in self.chunks)
        return all(table.binds(name) for table in tables if len(table))

    def streams(self) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Return the ids of the events' streams, and the index among these for each event."""
        if "streams" not in self._known:
            of_all = self.events("stream")
            only = self.chunks[0].batch if len(self.chunks) == 1 else None
            are_alike = _are_alike(of_all) if only is None else _looked_at(only).are_of_one
            self._known["streams"] = of_all[:1] if are_alike else np.unique(of_all)
        if "codes" not in self._known:
            ids, of_all = self._known["streams"], self.events("stream")
            several = len(ids) > 1
            self._known["codes"] = (
                np.searchsorted(ids, of_all).astype(np.int32) if several else zeros(len(of_all))
            )
        return self._known["streams"], self._known["codes"]

    def rows_before(self, g: int) -> Ints:
        """Return how many solutions of a GPM precede each batch."""
        return np.cumsum([0, *(len(chunk.solutions[g]) for chunk in self.chunks)])

    def _whole(self, key: object, part: Callable[[SolvedBatch], Ints]) -> Ints:
        if key not in self._known:
            parts = [part(chunk) for chunk in self.chunks]
            self._known[key] = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return self._known[key]


class _Looks(NamedTuple):
    """Whether a batch's events are of one stream, and whether their arrival numbers are consecutive."""

    are_of_one: bool
    are_counted: bool


#: Results for batches, which many queries share.
_SEEN: Final = WeakKeyDictionary[EventBatch, _Looks]()


def _looked_at(batch: EventBatch) -> _Looks:
    found = _SEEN.get(batch)
    if found is None:
        found = _SEEN[batch] = _Looks(_are_alike(batch.stream), _are_counted(batch.n))
    return found


def _are_alike(streams: Ints) -> bool:
    # Mostly they are: this test is faster than sorting.
    return bool((streams == streams[:1]).all())


def _are_counted(n: Ints) -> bool:
    return bool((n[1:] - n[:-1] == 1).all())


class Renamed(Stretch):
    """The events and solutions of another query, under the names of this one; the other computes the columns.

    ``gpms``: for each GPM its number in the other query, and its variables' names there. ``rename`` returns a
    batch under the names here, for events that are read singly.
    """

    def __init__(
        self, whole: Stretch, gpms: Sequence[MemberNames], rename: Callable[[SolvedBatch], SolvedBatch]
    ) -> None:
        self.whole = whole
        self.begins = whole.begins
        self._gpms = gpms
        self._rename = rename

    @cached_property
    def chunks(self) -> Sequence[SolvedBatch]:
        return [self._rename(chunk) for chunk in self.whole.chunks]

    @cached_property
    def starts(self) -> list[int]:
        return self.whole.starts

    def where(self, places: Ints) -> Ints:
        return self.whole.where(places)

    def events(self, column: str) -> Ints:
        return self.whole.events(column)

    @property
    def is_counted(self) -> bool:
        return self.whole.is_counted

    def first_rows(self, g: int) -> Ints:
        return self.whole.first_rows(self._gpms[g].number)

    def counts(self, g: int) -> Ints:
        return self.whole.counts(self._gpms[g].number)

    def is_several(self, g: int) -> bool:
        return self.whole.is_several(self._gpms[g].number)

    def is_single(self, g: int) -> bool:
        return self.whole.is_single(self._gpms[g].number)

    def is_worth_all(self, g: int, count: int) -> bool:
        return self.whole.is_worth_all(self._gpms[g].number, count)

    def rows_at(self, g: int, places: Ints) -> Ints:
        return self.whole.rows_at(self._gpms[g].number, places)

    def column(self, g: int, name: str) -> Ints | None:
        number, names = self._gpms[g]
        return self.whole.column(number, names[name]) if name in names else None

    def of_events(self, g: int, name: str) -> Ids | None:
        number, names = self._gpms[g]
        return self.whole.of_events(number, names[name]) if name in names else None

    def is_bound(self, g: int, name: str) -> bool:
        number, names = self._gpms[g]
        return name in names and self.whole.is_bound(number, names[name])

    def streams(self) -> tuple[Ints, npt.NDArray[np.int32]]:
        return self.whole.streams()

    def rows_before(self, g: int) -> Ints:
        return self.whole.rows_before(self._gpms[g].number)
