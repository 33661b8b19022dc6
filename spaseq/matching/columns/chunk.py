"""A batch of events with its solutions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spaseq.events import EventBatch
from spaseq.gpm.spectra.solutions import Solutions

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chunk:
    """A batch. ``last`` is its end on the axis; ``rows[g]`` where the rows of GPM g begin in each event.

    Without ``rows``, they are looked for. ``derived`` are further columns of its solutions, by GPM and name.
    Its terms are kept as long as it is referenced.
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
        """How many bytes the columns take, those of other queries' GPMs left out."""
        batch = self.batch
        rows = sum(len(table) * (len(table.columns) + 1) for table in self.solutions)
        rows += sum(map(len, self.derived.values()))
        return 8 * (3 * len(batch.s) + 5 * len(batch) + rows)

    def span(self, g: int, index: int) -> range:
        """The rows of a GPM in an event."""
        if self.rows is not None:
            return range(self.rows[g, index], self.rows[g, index + 1])
        begin, end = np.searchsorted(self.solutions[g].events, (index, index + 1)).tolist()
        return range(begin, end)

    def narrowed(self, span: range, g: int, keys: Sequence[str], key: Sequence[int]) -> Sequence[int]:
        """Those of some rows of a GPM that have these values of variables."""
        columns = self.solutions[g].columns
        listed = [columns[name][span.start : span.stop].tolist() for name in keys]
        wanted = tuple(key)
        return [row for row, *values in zip(span, *listed, strict=True) if tuple(values) == wanted]

    def begins(self, g: int) -> Ints:
        """Where the rows of a GPM begin in each event; shape ``(events + 1,)``."""
        if self.rows is not None:
            return np.asarray(self.rows[g])
        found = np.zeros(len(self.batch) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.solutions[g].events, minlength=len(self.batch)), out=found[1:])
        return found

    def live_ids(self) -> Iterable[Ints]:
        """The ids in the solutions, some of which may be in no event."""
        solutions = [column for table in self.solutions for column in table.columns.values()]
        return [*solutions, *self.derived.values()]

    def row(self, g: int, i: int) -> dict[str, int]:
        """A solution, without what is unbound."""
        row = {name: column.item(i) for name, column in self.solutions[g].columns.items()}
        return row if all(row.values()) else {name: term for name, term in row.items() if term}
