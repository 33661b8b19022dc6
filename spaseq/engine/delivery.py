"""A query's matches, from found to read: answers are made, kept, and given to a callback or a reader.

Matches are enumerated as far as a callback or a reader takes them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, Protocol, TypeVar
from weakref import ref

from pyoxigraph import NamedNode

from spaseq.automaton.pattern import SequencePattern
from spaseq.engine.pipelines.cuts import Cuts, begins_anew
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.turn import Turn
from spaseq.errors import EngineError, LimitError, SpaseqError, warn
from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.language.syntax import Ask, Construct, Query, RegisterKind
from spaseq.limits import Limits
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import Unenumerated
from spaseq.matching.context import Context
from spaseq.matching.nfa.skip.preference import falls_back
from spaseq.results.batch import Match, MatchBatch, view
from spaseq.results.reading import Reader
from spaseq.results.select import Projector
from spaseq.terms.dictionary import Dictionary

_What = TypeVar("_What")

#: At least this many matches are enumerated before they are read.
AT_ONCE: Final = 1_000
#: Shared by queries without matches: a deque of its own would be a third of a handle's memory.
_NO_MATCHES: Final[deque[MatchBatch]] = deque(maxlen=0)


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
        # The clause, if it may fall back to a match's own first event.
        self._skip = query.skip if query.skip is not None and query.skip.gpm is not None else None
        self._only_first = isinstance(query.form, Ask)
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
        """Yield the answers of these matches; count them, and derive events from them."""
        clock, stats, skip = self.clock or Clock.INSTANTS, self._stats, self._skip
        if self.is_warming:
            for block in found:
                if self.output is not None:  # other queries may read it
                    for batch, _ in self._reader.batches(self.query, block, clock, None):
                        self._derive(self.output, batch)
            return
        for block in found if self.cuts is None else self.cuts.skipped(found):
            wanted = block.part(0, 1) if self._only_first else block
            for batch, rows in self._reader.batches(self.query, wanted, clock, self.left):
                count = len(batch)
                stats.matches += count
                stats.rows += rows
                shed = stats.shed
                if shed is not None and (shed.partial_matches or shed.events) and self.ends:
                    # Without a bound, shed matches might have come first.
                    shed.doubtful += count
                if self.left is not None:
                    self.left -= rows
                if self._only_first or self.left == 0:
                    self.is_over = True
                    self._end()
                if skip is not None:  # otherwise no match has to be made for this count
                    rank = self._context.rank
                    stats.unskipped += sum(falls_back(skip, wanted[i], rank) for i in range(count))
                if self.output is not None:
                    self._derive(self.output, batch)
                if count < len(wanted):
                    wanted = wanted.part(count, len(wanted))
                yield batch
                self._dictionary.spending.restart()  # the caller's time does not count as the query's
                if self.is_over:
                    return

    def _derive(self, output: NamedNode, batch: MatchBatch) -> None:
        """Derive events from matches."""
        if not isinstance(self.query.form, Construct):
            return
        if self._derived is None:
            self._derived = BatchBuilder(self._dictionary, output, self.clock or Clock.INSTANTS)
        graphs = batch.graphs
        self._derived.add_all(batch.spans[1], graphs.offsets, graphs.triples, graphs.terms)


class Undelivered:
    """Matches between being found and being read.

    ``size``: how many there are; ``delivered``: how many were read; ``again``: how many of the next ones were
    delivered before, by the process that this one continues; these are skipped.
    """

    __slots__ = ("_at", "_batches", "_before", "_end", "_given", "_now", "again", "delivered", "size")

    def __init__(self) -> None:
        # A batch of which the matches from ``_at`` to ``_end`` are left; then further batches, if any. Most
        # of a thousand queries have one batch, and creating a list takes longer than keeping that.
        self._now: MatchBatch | None = None
        self._batches = _NO_MATCHES
        self._at = self._end = self.size = self.delivered = self.again = 0
        # The last batch given out and the one before, if still referenced.
        self._given: ref[MatchBatch] | None = None
        self._before: ref[MatchBatch] | None = None

    @property
    def before_last(self) -> int:
        """How many there are without the last batch."""
        return self.size - len(self._batches[-1]) if self._batches else 0

    def add(self, batch: MatchBatch) -> int:
        """Keep matches until they are read; return their number."""
        if self.again:
            before = min(self.again, len(batch))
            if before == len(batch):
                self.again -= before
                return 0
            batch = batch.part(before, len(batch))
            self.again -= before
        count = len(batch)
        if not self.size:
            self._now, self._at, self._end, self.size = batch, 0, count, count
            return count
        if self._batches is _NO_MATCHES:
            self._batches = deque()
        self.size += count
        self._batches.append(batch)
        return count

    def next(self) -> Match:
        """Return the first match, which is then delivered."""
        batch, at, end = self._now, self._at, self._end
        if batch is None:
            batch = self._batches[0]
            at, end = 0, len(batch)
            self._now, self._at, self._end = batch, at, end
            self._batches.popleft()
        if not at and batch.is_of_columns:
            self._give(batch)
        match = view(batch, at)
        self._at = at + 1
        if at + 1 == end:
            self._now = None
        self.size -= 1
        self.delivered += 1
        return match

    def take(self, most: int) -> MatchBatch:
        """Return a batch of the first matches, at most ``most``; they are then delivered."""
        now, at, end = self._now, self._at, self._end
        if now is not None and end - at == self.size <= most:
            given = now.part(at, end) if at else now
            if given.is_of_columns:
                self._give(given)
            self.delivered += self.size
            self._now, self.size = None, 0
            return given
        parts: list[MatchBatch] = []
        count = whole = 0
        if now is not None:
            count = min(end - at, most)
            parts.append(now.part(at, at + count))
            at += count
            now = now if at < end else None
        for batch in self._batches:
            stop = min(len(batch), most - count)
            if count == most or (parts and stop < len(batch)):
                break
            parts.append(batch.part(0, stop))
            count += stop
            whole += 1
            if stop < len(batch):
                now, at, end = batch, stop, len(batch)
        given, left = MatchBatch.joined(parts), deque(islice(self._batches, whole, None))
        if given.is_of_columns:
            self._give(given)
        self._batches, self._now, self._at, self._end = left, now, at, end
        self.size -= count
        self.delivered += count
        return given

    def _give(self, batch: MatchBatch) -> None:
        """Note that a batch, or its first match, is given out; settle the last but one if it is still
        referenced.

        The last one may only be referenced by a loop's variable.
        """
        kept = None if self._before is None else self._before()
        self._before, self._given = self._given, ref(batch)
        if kept is not None:
            kept.settle()

    def give_back(self, batch: MatchBatch) -> None:
        """Put back the matches taken last, which reached no reader."""
        if self._batches is _NO_MATCHES:
            self._batches = deque()
        if self._now is not None:
            self._batches.appendleft(self._now.part(self._at, self._end))
            self._now = None
        self._batches.appendleft(batch)
        self.size += len(batch)
        self.delivered -= len(batch)

    def drop(self) -> None:
        """Discard all matches; they count as delivered."""
        self.delivered += self.size
        self.size = 0
        self._now, self._batches = None, _NO_MATCHES


class Unread:
    """The matches that a matcher has completed and not enumerated. More may be added during reading."""

    def __init__(self, found: Unenumerated, read: Callable[[Iterable[Block]], Iterator[MatchBatch]]) -> None:
        """``read`` turns blocks into batches."""
        self._found = found
        self._read = read
        # A block may be read in several batches.
        self._reading: Iterator[MatchBatch] | None = None

    def __len__(self) -> int:
        """Return the number of sets of matches, each of at least one match: their cost."""
        return self._found.waiting

    def next(self) -> MatchBatch | None:
        """Return some more matches, each once; None if there are no more."""
        if self._reading is None:
            self._reading = self._read_all()
        batch = next(self._reading, None)
        if batch is None:
            self._reading = None
        return batch

    def _read_all(self) -> Iterator[MatchBatch]:
        """Yield the matches, then those of another matcher that has replaced the first meanwhile."""
        found = None
        while found is not self._found:
            found = self._found
            yield from self._read(found.unread())

    def move(self, found: Unenumerated) -> None:
        """Continue with another matcher, which also has the matches not enumerated yet."""
        self._found = found

    def drop(self) -> None:
        """Discard all of them, without enumeration."""
        self._reading = None
        self._found.drop()


class Matching(Protocol):
    """What computes a query's matches: a ``Pipeline`` or a ``Subscription``.

    ``done``: no more matches are needed; then ``on_done`` is called. ``unread``: matches that are not
    enumerated, if they may stay so.
    """

    done: bool
    on_done: Callable[[], None]
    unread: Unread | None

    def drop(self) -> None:
        """Free the partial matches: the query is over."""
        ...


class Delivery:
    """A query's matches; to be used in the turn.

    ``coming``: found, and not enumerated yet; None if all are enumerated. ``is_over``: the query is over, as
    of the events processed.
    """

    __slots__ = (
        "_cancelled", "_error", "_found", "_is_prompt", "_limits", "_looking", "_on_match", "_pipeline",
        "_turn", "coming", "is_over", "on_found",
    )  # fmt: skip

    def __init__(
        self, pipeline: Matching, on_match: Callable[[Match], None] | None, limits: Limits, turn: Turn
    ) -> None:
        self._pipeline, self._on_match = pipeline, on_match
        self._limits, self._turn = limits, turn
        self._error: SpaseqError | None = None
        self._cancelled = self._looking = self._is_prompt = False
        self._found = Undelivered()
        self.coming: Iterator[MatchBatch] | None = None
        self.is_over = pipeline.done
        pipeline.on_done = self._end
        #: Called in the turn when there are matches or the query failed. It must neither wait nor raise.
        self.on_found: Callable[[], None] | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The query's name in messages."""

    @property
    @abstractmethod
    def is_asked(self) -> bool:
        """Whether matches, and the error, are given only to callers that read them."""

    def hurry(self) -> None:
        """Let no event wait until the query is over: a listener would observe the delay."""
        if not (self._is_prompt or self.is_over):
            self._is_prompt = True
            self._turn.prompt += 1

    def _end(self) -> None:
        """Note that the query is over."""
        self.is_over = True
        self._pipeline.on_done = nothing  # no cycle keeps the partial matches
        if self._is_prompt:
            self._is_prompt = False
            self._turn.prompt -= 1

    def add(self, matches: Iterator[MatchBatch], *, all_at_once: bool, after_all: bool) -> None:
        """Add matches. Unless ``all_at_once``, most of a large number are enumerated only when they are read.

        ``after_all``: they can be found only after all earlier matches. For a callback all are enumerated,
        unless an interrupt is noted: then the rest waits for the next call.
        """
        if after_all and self.coming is not None:
            if self._pipeline.unread is None:
                self._finish(is_whole=True)
            else:
                self._look(0)  # what the query set has found for it; the rest may stay there
            if self.is_over:  # ended by these matches
                return
        self.coming = matches if self.coming is None else chain(self.coming, matches)
        if all_at_once or self._on_match is not None:
            self._finish(is_whole=all_at_once)
        elif self._found.size < AT_ONCE or self._pipeline.unread is not None:
            # In the second case the events must be processed now, and most of their matches are not
            # enumerated.
            self._look(AT_ONCE - self._found.size)

    def receive(self, read: Callable[[_What], MatchBatch], what: _What) -> bool:
        """Take matches that can be read at once; do nothing and return False if more would be needed.

        As ``add`` for queries without a callback or a waiting reader: each of a thousand queries may have a
        few.
        """
        found = self._found
        if self._on_match is not None or self.coming is not None or found.size >= AT_ONCE:
            return False
        if self._looking or self._pipeline.unread is not None:
            return False
        try:
            if found.add(read(what)) and self.on_found is not None:
                self.on_found()
            self._check_pending(0)
        except Exception as error:
            self.fail(error)
        return True

    def deliver(self) -> None:
        """Give the callback the matches that an interrupt has left."""
        if self._on_match is not None:
            self._finish(is_whole=False)

    def _finish(self, *, is_whole: bool) -> None:
        """Enumerate all matches, and give them to the callback; its exceptions are raised at the end.

        Unless ``is_whole``, a noted interrupt leaves the rest.
        """
        deferral, found = self._turn.deferral, self._found
        while is_whole or deferral.noted is None or not deferral.is_due:
            if self._on_match is not None and found.size:
                match = found.next()
                if not self._cancelled:
                    try:
                        self._on_match(match)
                    except BaseException as error:  # SystemExit, too
                        self._turn.raised.add(error)
                continue
            if self._cancelled and self._on_match is not None:
                self.coming = None
            if not self._look(AT_ONCE if self._on_match is None else 1):
                break

    def _look(self, most: int) -> bool:
        """Enumerate this many matches or a few more; fewer if there are no more, or the rest is deferred.

        False if there are none, or if an enumeration is running.
        """
        if self._looking or (self.coming is None and self._pipeline.unread is None):
            return False
        found, count = self._found, 0
        self._looking = True
        try:
            for batch in self.coming or ():
                count += found.add(batch)
                # Otherwise the query set has found them already.
                if count >= most and self._pipeline.unread is None:
                    break
            else:
                self.coming = None
            unread = self._pipeline.unread
            if unread is not None and count < most and (left := unread.next()) is not None:
                # In growing batches, since matches may be long: few at first, then more each time.
                count += found.add(left)
            if count and self.on_found is not None:
                self.on_found()
            waiting = 0 if unread is None else len(unread)
            if waiting or found.size:  # else a callback got them
                self._check_pending(waiting)
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._looking = False
        return count > 0

    def _check_pending(self, waiting: int) -> None:
        """Raise ``LimitError`` if too many matches were not read, ``waiting`` ones of them not enumerated.

        Matches of the last batch may just have been read.
        """
        most, found = self._limits.pending_matches, self._found
        if most is not None and found.size > most - waiting and found.before_last > most - waiting:
            raise self._limits.error("pending_matches", f"keeping {found.size + waiting} matches")

    def fail(self, error: BaseException) -> None:
        """End the query because of an exception during an event; free its memory.

        Warn of it if the error will not be read.
        """
        if isinstance(error, LimitError):
            self._error = LimitError(f"query {self.name} is over: {error}", limit=error.limit)
        elif _is_of_memory(error):
            reason = (
                "no memory was left in the middle of an event. Bound what a query keeps: "
                "Limits(query_bytes=…), or --limit query-bytes=…"
            )
            self._error = LimitError(f"query {self.name} is over: {reason}", limit="query_bytes")
        else:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            reason = f"{what} came in the middle of an event, and its state cannot be trusted"
            self._error = EngineError(f"query {self.name} is over: {reason}. Register it anew")
        self.coming = None
        self._pipeline.drop()
        if self.on_found is not None:
            self.on_found()
        if not self.is_asked:
            try:
                warn(str(self._error))
            except Exception as raised:  # warnings are errors
                self._turn.raised.add(raised)


def _is_of_memory(error: BaseException) -> bool:
    """Return whether memory has run out; compiled code raises a SystemError caused by it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, MemoryError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def nothing() -> None:
    """Do nothing: there is no listener."""
