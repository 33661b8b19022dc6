"""The enumerating matcher: batches of solutions in, matches out, as lazily as they are read.

CORE (Bucchi, Grez, Quintana, Riveros, Vansummeren): the work for an event depends neither on the window nor
on the number of partial matches. The matches that end with an event are enumerated with a delay that depends
only on their own size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import Immediate, PushedPattern, UnsolvedError
from spaseq.matching.context import Context
from spaseq.matching.interpreter.program import RunsProgram
from spaseq.matching.model import StreamWindow
from spaseq.matching.tecs.automaton import DeterministicAutomaton, sites
from spaseq.matching.tecs.fits import keys
from spaseq.matching.tecs.reading import Portion, RootReading, divided
from spaseq.matching.tecs.records import counter
from spaseq.matching.tecs.update import SingleUpdate, Update
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


class TecsMatcher(Update, Immediate):
    """The matches of one query over all its partitions, those with the same last event in any order.

    ``process`` finds roots, from which matches are enumerated when they are read: at once, or after any
    number of further batches.
    """

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, context: Context, window: StreamWindow
    ) -> None:
        program, told_apart_by = RunsProgram(compile_pattern(pattern)), keys(pattern)
        gpms = tuple(pattern.gpms)
        automaton = DeterministicAutomaton(program.start, gpms)
        super().__init__(pattern, told_apart_by, automaton, window, context.budget, dictionary, context.apart)
        self._reading = RootReading(
            pattern, sites(pattern, program.start), lambda: DeterministicAutomaton(program.start, gpms),
            told_apart_by, context, self.history, self.memory,
        )  # fmt: skip
        self._alone = SingleUpdate(pattern, dictionary, window, self)

    def take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """See ``Update.take``."""
        least = self._reading.least
        if least is None:
            super().take(batch, start, solutions)
            return
        # All unread roots were given away; their nodes and events must be kept, too.
        first = self.memory.begin(least)
        super().take(batch, start, solutions)
        self.memory.counters[counter.READ] = first

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``: the call processes the events, and matches are enumerated later."""
        self.take(batch, start, solutions)
        return self.unread()

    # --- events that come alone -----------------------------------------------------------------

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``."""
        return self._alone.taking.expect(asked)

    def counts(self) -> Counts | None:
        """See ``Quick.counts``."""
        return self._alone.taking.counts()

    def take_single(self, event: Single, start: int) -> Iterator[Block] | None:
        """See ``Quick.take_single``."""
        before = self.memory.unread
        # ``take`` handles roots that were given away.
        if self._reading.least is not None or not self._alone.take(event, start):
            raise UnsolvedError
        return self._reading.waited() if self.memory.unread > before else None

    # --- matches --------------------------------------------------------------------------------

    def unread(self) -> Iterator[Block]:
        """Return the unread matches, including matches found meanwhile."""
        return self._reading.unread()

    def divide(self, by_key: bool, keys: Collection[int] | None = None) -> Iterator[tuple[int, Portion]]:
        """Give away the unread matches: see ``reading.divided``."""
        return divided((self._reading,), by_key, keys)

    @property
    def waiting(self) -> int:
        """The least number of events with unread matches."""
        return self.memory.unread

    def drop(self) -> None:
        """Discard the unread matches."""
        self._reading.drop()

    def arrays(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the matches that ``process`` finds, as arrays: the positions of events, their labels, and
        where each match begins among them and the last one ends.

        A label is a GPM's place in the query. EMIT is left to the caller.
        """
        self.take(batch, start, solutions)
        while (found := self._reading.next()) is not None:
            yield found.positions, found.all_labels, found.offsets

    def update(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> int:
        """Process events without enumeration; return how many sets of matches they complete."""
        self.take(batch, start, solutions)
        count = self.memory.unread
        self.memory.forget_found()
        return count
