"""A query's answers: matches → batches, up to LIMIT and ASK, and the events of REGISTER STREAM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyoxigraph import NamedNode

from spaseq.automaton.pattern import SequencePattern
from spaseq.engine.pipelines.cuts import Cuts, begins_anew
from spaseq.engine.pipelines.stats import Stats
from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.language.syntax import Ask, Construct, Query, RegisterKind
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.context import Context
from spaseq.matching.nfa.skip.preference import falls_back
from spaseq.results.batch import MatchBatch
from spaseq.results.reading import Reader
from spaseq.results.select import Projector
from spaseq.terms.dictionary import Dictionary


class Answers:
    """Turns a query's matches into its answers.

    ``left``: how many rows its LIMIT leaves; ``is_over``: no more answers are needed. ``is_warming``: the
    query is being restored from its last events (their matches were delivered before). ``cuts``: where its
    partitions began anew, if that outlives the process. ``output``: the stream that it makes.
    """

    def __init__(
        self,
        query: Query,
        pattern: SequencePattern,
        context: Context,
        stats: Stats,
        dictionary: Dictionary,
        end: Callable[[], None],
    ) -> None:
        """``end`` is called when no more answers are needed."""
        self.query, self._pattern, self._context, self._stats = query, pattern, context, stats
        self._dictionary, self._end = dictionary, end
        self.is_warming = False
        self.cuts: Cuts | None = None
        self._reader = Reader(pattern, Projector(pattern, context, dictionary), dictionary)
        self._only_first = isinstance(query.form, Ask)
        self._is_limited = self._only_first or query.modifiers.limit is not None
        self.clock: Clock | None = None
        self.left = query.modifiers.limit
        self.is_over = self.left == 0
        register = query.register
        is_stream = register is not None and register.kind is RegisterKind.STREAM
        self.output = register.iri if register is not None and is_stream else None
        self._derived: BatchBuilder | None = None

    @property
    def ends(self) -> bool:
        """Whether LIMIT or ASK may end the query."""
        return self.left is not None or self._only_first

    def outlive(self) -> None:
        """Record what a restart needs to restore the query from the events of its last windows."""
        if begins_anew(self.query):
            self.cuts = Cuts(self._pattern, self._context.rank, self._dictionary)

    def warm(self, cuts: Sequence[Any]) -> None:
        """Restore: the next events are known already; ``cuts`` are from the last engine."""
        self.is_warming = True
        if self.cuts is not None:
            self.cuts.restore(cuts)

    def resume(self, left: int | None) -> None:
        """End restoring: matches from now on are new; ``left`` as its LIMIT left it."""
        self.is_warming, self.left = False, left
        if self.cuts is not None:
            self.cuts.records = True

    def derived(self) -> EventBatch | None:
        """Return the events of REGISTER STREAM since the last call."""
        return self._derived.build() if self._derived is not None and len(self._derived) else None

    def drop(self) -> None:
        """Discard what the query has made: it is over."""
        self._derived, self.is_over = None, True

    def read(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        """Yield the answers of these matches."""
        clock = self.clock or Clock.INSTANTS
        if self.is_warming:
            for block in found:
                if self.output is not None:  # other queries may read it
                    for batch, _ in self._reader.batches(self.query, block, clock, None):
                        self._derive(self.output, batch)
            return
        for block in found if self.cuts is None else self.cuts.skipped(found):
            wanted = block.part(0, 1) if self._only_first else block
            for batch, rows in self._reader.batches(self.query, wanted, clock, self.left):
                self._notice(wanted, batch, rows)
                if len(batch) < len(wanted):
                    wanted = wanted.part(len(batch), len(wanted))
                yield batch
                self._dictionary.spending.restart()  # the caller's time does not count as the query's
                if self.is_over:
                    return

    def _notice(self, block: Block, batch: MatchBatch, rows: int) -> None:
        """Count the matches of a batch, which are the first of a block, and derive events from them."""
        self._stats.matches += len(batch)
        self._stats.rows += rows
        shed = self._stats.shed
        if shed is not None and (shed.partial_matches or shed.events) and self._is_limited:
            # Without a bound, shed matches might have come first.
            shed.doubtful += len(batch)
        if self.left is not None:
            self.left -= rows
        if self._only_first or self.left == 0:
            self.is_over = True
            self._end()
        skip = self.query.skip
        if skip is not None and skip.gpm is not None:  # otherwise no match has to be made for this count
            for i in range(len(batch)):
                self._stats.unskipped += falls_back(skip, block[i], self._context.rank)
        if self.output is not None:
            self._derive(self.output, batch)

    def _derive(self, output: NamedNode, batch: MatchBatch) -> None:
        """Derive events from matches."""
        if not isinstance(self.query.form, Construct):
            return
        if self._derived is None:
            self._derived = BatchBuilder(self._dictionary, output, self.clock or Clock.INSTANTS)
        graphs = batch.graphs
        self._derived.add_all(batch.spans[1], graphs.offsets, graphs.triples, graphs.terms)
