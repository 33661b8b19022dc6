"""What becomes of a query's matches: batches for who reads them, counts, events of a stream that it makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyoxigraph import NamedNode

from spaseq.engine.pipelines.asking import Asking
from spaseq.engine.pipelines.cuts import Cuts, begins_anew
from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.sharing import Sharing
from spaseq.language.syntax import Ask, Construct, Query, RegisterKind
from spaseq.limits import Limits
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.context import Context
from spaseq.matching.ordered.skipping import falls_back
from spaseq.results.batch import MatchBatch
from spaseq.results.reading import Reader
from spaseq.results.select import Projector
from spaseq.terms.dictionary import Dictionary


class Delivering(Asking):
    """What is found comes out here, as far as LIMIT and ASK let it; ``done`` says that no more is wanted."""

    def __init__(
        self, query: Query, dictionary: Dictionary, kb: KnowledgeBase, sharing: Sharing, limits: Limits
    ) -> None:
        super().__init__(query, dictionary, kb, sharing)
        #: Whether it just gets to know what was before: matches of that are not its own.
        self.is_warming = False
        #: Where its partitions began anew, if that outlives the process.
        self.cuts: Cuts | None = None
        self._context = self._make_context(limits)
        self._reader = Reader(self.pattern, Projector(self.pattern, self._context, dictionary), dictionary)
        self._only_first = isinstance(query.form, Ask)
        self._is_limited = self._only_first or query.modifiers.limit is not None
        self._clock: Clock | None = None
        self._left = query.modifiers.limit
        self.done = self._left == 0
        register = query.register
        is_stream = register is not None and register.kind is RegisterKind.STREAM
        self.output = register.iri if register is not None and is_stream else None
        self._derived: BatchBuilder | None = None

    @abstractmethod
    def leave(self) -> None:
        """It is over: what comes is not counted."""

    def _make_context(self, limits: Limits) -> Context:
        """The operations on the rows of its matches."""
        return Context(self.pattern, self._dictionary, self._exists, limits)

    @property
    def left(self) -> int | None:
        """How many rows its LIMIT leaves."""
        return self._left

    def outlive(self) -> None:
        """It is to be brought back by the events of its last windows."""
        if begins_anew(self.query):
            self.cuts = Cuts(self.pattern, self._context.rank, self._dictionary)

    def warm(self, cuts: Sequence[Any]) -> None:
        """Those events come, which it knows already; ``cuts`` as the last engine's ``cuts`` said."""
        self.is_warming = True
        if self.cuts is not None:
            self.cuts.restore(cuts)

    def resume(self, left: int | None) -> None:
        """What comes from now on is its own; ``left`` as its LIMIT left it."""
        self.is_warming, self._left = False, left
        if self.cuts is not None:
            self.cuts.records = True

    def derived(self) -> EventBatch | None:
        """The events of REGISTER STREAM since the last call."""
        return self._derived.build() if self._derived is not None and len(self._derived) else None

    def _matches(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        clock = self._clock or Clock.INSTANTS
        if self.is_warming:
            for block in found:
                if self.output is not None:  # others may read that
                    for batch, _ in self._reader.batches(self.query, block, clock, None):
                        self._derive(self.output, batch)
            return
        for block in found if self.cuts is None else self.cuts.skipped(found):
            wanted = block.part(0, 1) if self._only_first else block
            for batch, rows in self._reader.batches(self.query, wanted, clock, self._left):
                self._notice(wanted, batch, rows)
                if len(batch) < len(wanted):
                    wanted = wanted.part(len(batch), len(wanted))
                yield batch
                self._spending.restart()  # the time of who took it is not the query's
                if self.done:
                    return

    def _notice(self, block: Block, batch: MatchBatch, rows: int) -> None:
        """Counts the matches of a batch, which are the first of a block, and derives events from them."""
        self._stats.matches += len(batch)
        self._stats.rows += rows
        shed = self._stats.shed
        if shed is not None and (shed.partial_matches or shed.events) and self._is_limited:
            # Without a bound, those that were shed might have come first.
            shed.doubtful += len(batch)
        if self._left is not None:
            self._left -= rows
        if self._only_first or self._left == 0:
            self.leave()
            self.done = True
        skip = self.query.skip
        if skip is not None and skip.gpm is not None:  # else no match has to be made for that
            for i in range(len(batch)):
                self._stats.unskipped += falls_back(skip, block[i], self._context.rank)
        if self.output is not None:
            self._derive(self.output, batch)

    def _derive(self, output: NamedNode, batch: MatchBatch) -> None:
        """Makes events of matches."""
        if not isinstance(self.query.form, Construct):
            return
        if self._derived is None:
            self._derived = BatchBuilder(self._dictionary, output, self._clock or Clock.INSTANTS)
        graphs = batch.graphs
        self._derived.add_all(batch.spans[1], graphs.offsets, graphs.triples, graphs.terms)
