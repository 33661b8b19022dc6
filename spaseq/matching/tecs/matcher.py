"""Match by tECS: batches of solutions in, matches out, as lazily as they are asked for.

CORE (Bucchi, Grez, Quintana, Riveros, Vansummeren): the work for an event does not depend on the window or on
how many partial matches there are, and the matches that end with an event are enumerated with a delay that
depends on their own size alone.
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

    What ``process`` finds are roots, from which matches are enumerated when they are taken: then, or after
    any number of further batches.
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
        # There are none but those that were given away, whose nodes and events are kept, too.
        first = self.memory.begin(least)
        super().take(batch, start, solutions)
        self.memory.counters[counter.READ] = first

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``: the work of the events is done by the call, that of matches later."""
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
        # Those that were given away, ``take`` thinks of.
        if self._reading.least is not None or not self._alone.take(event, start):
            raise UnsolvedError
        return self._reading.waited() if self.memory.unread > before else None

    # --- matches --------------------------------------------------------------------------------

    def unread(self) -> Iterator[Block]:
        """The matches that nobody has taken; further ones that are found meanwhile, too."""
        return self._reading.unread()

    def divide(self, by_key: bool, keys: Collection[int] | None = None) -> Iterator[tuple[int, Portion]]:
        """Gives away the matches that nobody has taken: see ``rest.divided``."""
        return divided((self._reading,), by_key, keys)

    @property
    def waiting(self) -> int:
        """Of how many events the matches are not all taken, at least."""
        return self.memory.unread

    def drop(self) -> None:
        """Forgets the matches that nobody has taken."""
        self._reading.drop()

    def arrays(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[tuple[Ints, Ints, Ints]]:
        """The same as ``process``, as arrays: the positions of events, their labels, and where each match
        begins among them and the last ends.

        A label is a GPM's place in the query. EMIT is left to the caller.
        """
        self.take(batch, start, solutions)
        while (found := self._reading.next()) is not None:
            yield found.positions, found.all_labels, found.offsets

    def update(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> int:
        """Takes events and enumerates nothing; how many sets of matches they complete."""
        self.take(batch, start, solutions)
        count = self.memory.unread
        self.memory.forget_found()
        return count
