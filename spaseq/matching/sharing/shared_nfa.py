"""The kernel of queries with a common prefix: it passes runs on instead of making matches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from spaseq.alone import Single
from spaseq.events import EventBatch
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.history import History
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.host import Key
from spaseq.matching.nfa.exact import Path
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.nfa.matches import FoundRuns, unrolled
from spaseq.matching.nfa.records import gates, header, places
from spaseq.patterns.spectra.solutions import Solutions


class SharedNfa(NfaMatcher):
    """The kernel of a group: its matches go to the members."""

    def gathers(self, is_relevant: Callable[[Path, Path, Key], bool]) -> None:
        """Begin to gather runs for a group; ``is_relevant`` decides what the tables cannot."""
        self._asks = is_relevant
        self._runs: list[FoundRuns] = []
        self._is_plain = False  # no match is made here

    @property
    def taking(self) -> Taking:
        """The object that takes single events."""
        return self._columns.taking

    @property
    def history(self) -> History:
        """The events that runs may still have."""
        return self._columns.history

    def found_in(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> FoundRuns | None:
        """Process events; return the runs that they complete, if there are any; see ``process``."""
        return self._found_by(self.process(batch, start, solutions))

    def found_in_one(self, event: Single, start: int) -> FoundRuns | None:
        """Do what ``found_in`` does for a single event. Raises as ``take_single`` does."""
        self._runs = []
        looking = self.take_single(event, start)
        return None if looking is None else self._found_by(looking)

    def _found_by(self, looking: Iterable[Block]) -> FoundRuns | None:
        self._runs = []
        for _ in looking:
            pass
        return self.gathered()

    def gathered(self) -> FoundRuns | None:
        """Return the runs found since the last call, if there are any."""
        found, self._runs = self._runs, []
        return FoundRuns(*map(np.concatenate, zip(*found, strict=True))) if found else None

    def reach(self, limit: int) -> None:
        """Set the reach of runs from their first event on, on the window's axis."""
        self._tables[v.LIMIT] = limit

    def restrict(self, of_gates: Sequence[frozenset[int]], members: frozenset[int]) -> None:
        """Close the gates of other members; ``of_gates``: the members of each gate."""
        t = self._tables
        begin = int(t[t[v.START] + places.GATES])
        rows = t[begin : begin + len(of_gates) * gates.SIZE].reshape(-1, gates.SIZE)
        over = [number for number, of in enumerate(of_gates) if not of & members]
        rows[over, gates.CANDIDATES_END] = rows[over, gates.CANDIDATES]

    def _found(self) -> Iterator[Block]:
        m = self._memory.ints
        if m[header.FOUND_COUNT]:
            self._runs.append(unrolled(m, len(self._keys)))
        yield from ()

    def _is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        return self._asks(path, step, key)
