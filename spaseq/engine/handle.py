"""What a caller holds of a registered query: its matches, its state, a way to end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.turn import Turn
from spaseq.engine.undelivered import Undelivered
from spaseq.errors import EngineError, LimitError, SpaseqError
from spaseq.events import EventBatch
from spaseq.language.syntax import Ask, Query
from spaseq.language.syntax.printing import print_sequence
from spaseq.limits import Limits
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match
from spaseq.terms.dictionary import Term
from spaseq.why.diagnosis import Diagnosis
from spaseq.why.evidence import Evidence

if TYPE_CHECKING:
    from spaseq.engine.pipelines.seats import Seat

#: So many matches are made before anybody asks for them, at least.
_AT_ONCE: Final = 1_000
#: What is left of matches that were looked for to the end.
_NOTHING: Final[Iterator[MatchBatch]] = iter(())


class Handle:
    """A query in an engine. ``matches`` drains what it has found, if ``on_match`` does not get it.

    Several threads may use it, beside those that use the engine.
    """

    __slots__ = (
        "__weakref__", "_before", "_cancelled", "_coming", "_contexts", "_error", "_found", "_limits",
        "_looking", "_on_match", "_pipeline", "_turn", "on_cancel", "on_found", "taken",
    )  # fmt: skip

    def __init__(
        self,
        pipeline: Pipeline | Seat,
        on_match: Callable[[Match], None] | None,
        turn: Turn,
        limits: Limits,
        contexts: Mapping[Term, Path],
        *,
        is_counted: bool = False,
    ) -> None:
        """``contexts``: by stream, the JSON-LD context that lifts its rows, of the sources read so far.

        ``is_counted``: every match is found and counted, whether somebody asks for it or not.
        """
        self._error: SpaseqError | None = None
        self._pipeline = pipeline
        if isinstance(pipeline, Pipeline):
            pipeline.may_leave = on_match is None and not is_counted
        self._on_match = on_match
        self._turn = turn
        self._limits = limits
        self._contexts = contexts
        self._found = Undelivered()
        # What was counted before, by another process.
        self._before: Stats | None = None
        #: Called when the query is taken out.
        self.on_cancel: Callable[[], None] = _nothing
        self._coming: Iterator[MatchBatch] = _NOTHING
        self.taken: object = None
        self._cancelled = False
        self._looking = False
        #: Told, in the turn, that matches are there or that the query failed. It must neither wait nor raise.
        self.on_found: Callable[[], None] = _nothing
        # Callbacks, and queries that read what it makes, hear of events at once; and one that ends by itself
        # counts the events up to there.
        query = pipeline.query
        ends = query.modifiers.limit is not None or isinstance(query.form, Ask)
        if on_match is not None or query.register is not None or ends:
            turn.prompts(lambda: self.is_over)

    def __repr__(self) -> str:
        self._turn.settle()
        state = (
            "failed"
            if self._error
            else "cancelled"
            if self._cancelled
            else "done"
            if self.done
            else "running"
        )
        return f"<Handle {self.name}: {state}, {self.stats.matches} matches>"

    @property
    def name(self) -> str:
        """What messages call the query: the IRI of its REGISTER, or else its sequence."""
        register = self.query.register
        return str(register.iri) if register is not None else f"SEQ({print_sequence(self.query.sequence)})"

    def sit(self, seat: Seat) -> None:
        """The query, which has not begun, is to run as one with others."""
        self._pipeline = seat

    @property
    def seat(self) -> Seat:
        """The place of a query that runs as one with others."""
        assert not isinstance(self._pipeline, Pipeline)
        return self._pipeline

    @property
    def is_asked(self) -> bool:
        """Whether somebody has to ask it for matches, and so hears of its ``error``."""
        return self._on_match is None and self._pipeline.output is None

    @property
    def query(self) -> Query:
        """The query, as prepared."""
        return self._pipeline.query

    @property
    def stats(self) -> Stats:
        """What the query has seen and found so far."""
        self._turn.settle()
        lock = self._turn.lock
        # While another thread works, what it is at is left out: who asks waits for no callback.
        if lock.acquire(blocking=False):
            try:
                self._pipeline.count()
            finally:
                lock.release()
        stats = self._pipeline.stats
        return stats if self._before is None else stats.plus(self._before)

    @property
    def error(self) -> SpaseqError | None:
        """Why the query ended early, as long as all is well None.

        It met one of the engine's ``Limits``, or something was raised in the middle of an event, after which
        its state cannot be trusted.
        """
        if self._turn.is_behind:
            self._turn.settle()
        return self._error

    @property
    def done(self) -> bool:
        """Whether the query is over: cancelled, failed, its LIMIT reached, or its ASK answered."""
        if self._turn.is_behind:
            self._turn.settle()
        return self.is_over

    @property
    def is_over(self) -> bool:
        """The same, as far as the query has come."""
        return self._cancelled or self._error is not None or self._pipeline.done

    # --- what outlives the process ----------------------------------------------------------------

    @property
    def is_cancelled(self) -> bool:
        """Whether it was taken out of the engine."""
        return self._cancelled

    @property
    def is_taken(self) -> bool:
        """Whether every match that there is was taken."""
        return not self.is_behind and not self._found.size

    @property
    def pipeline(self) -> Pipeline | Seat:
        """What computes its matches."""
        return self._pipeline

    @property
    def delivered(self) -> int:
        """How many matches were taken, by somebody or a callback."""
        return self._found.delivered

    def recount(self, delivered: int, again: int) -> None:
        """So many matches were taken before, and the first of those to come are among them."""
        self._found.delivered, self._found.again = delivered, again

    def resume(self, left: int | None, stats: Stats) -> None:
        """What was before is over, with these counts: matches from now on are its own."""
        while self._look(_AT_ONCE):
            pass
        self._before = None
        self._before = stats.plus(self.stats, -1)
        self._pipeline.resume(left)

    def end(self, stats: Stats, reason: str | None) -> None:
        """It was over before, as its counts say; ``reason``: why, if that was an error."""
        self._pipeline.drop()
        self._before = stats.plus(self._pipeline.stats, -1)
        self._error = None if reason is None else EngineError(reason)

    def call(self, on_match: Callable[[Match], None] | None) -> None:
        """Gives matches to another callback from now on, and those that nobody has taken."""
        self._on_match = on_match
        if on_match is not None:
            self._turn.prompts(lambda: self.is_over)
            self._deliver(on_match)
            self.deliver()

    def keep(self, events: int) -> None:
        """Keeps so many of the events to come for ``why``, instead of the first 2,000."""
        self._turn.check()
        with self._turn.lock:
            self._turn.catch_up()
            self._pipeline.keep(events)

    def why(self, seconds: float = 3.0) -> Diagnosis:
        """Why the query has found no match, as far as that can be told; its counts if it has.

        Looks closer at a sample, the first events of the query, which are run again, as the query stands and
        with changes, for about so many ``seconds`` of the processor's time. Where they do not last for the
        whole sample, less of it is looked at, and the answer says so.
        """
        from spaseq.why.diagnose import diagnose

        self._turn.check()
        with self._turn.lock:
            return diagnose(self.evidence(), seconds)

    def evidence(self) -> Evidence:
        """What ``why`` looks at, as it is now: the query, its counts, and its first events."""
        self._turn.check()
        with self._turn.lock:
            self._turn.catch_up()
            return replace(self._pipeline.evidence(), contexts=self._contexts)

    def matches(self) -> Iterator[Match]:
        """The matches found since they were last asked for, each once, in the order of delivery.

        Where one event completes very many, those beyond the first are found as they are asked for; no
        lock is held between two of them. Of threads that drain at the same time each gets some. Raises
        ``error`` after the last one if there is one.
        """
        turn, found = self._turn, self._found
        while True:
            turn.check()
            with turn.lock:
                if not found.size:
                    turn.catch_up()
                    if not found.size and not self._look(_AT_ONCE):
                        break
                match = found.next()
            yield match
        if self._error is not None:
            raise self._error.with_traceback(None)

    def batches(self, max_rows: int = 65_536) -> Iterator[MatchBatch]:
        """The same matches as columns, of so many matches each at most: what there is, without waiting.

        Raises EngineError for less than one, and what the query failed with, behind its last matches.
        """
        if max_rows < 1:
            raise EngineError(f"max_rows={max_rows}: a batch has a match at least")
        while True:
            self._turn.check()
            batch: MatchBatch | None = None
            try:
                with self._turn.lock:
                    self._turn.catch_up()
                    if not self._found.size and not self._look(max_rows):
                        break
                    batch = self._found.take(max_rows)
            except BaseException:
                if batch is not None:  # an interrupt, when the lock was let go
                    with self._turn.lock:
                        self._found.give_back(batch)
                raise
            yield batch
        if self._error is not None:
            raise self._error.with_traceback(None)

    def drop(self) -> None:
        """Forgets the matches that nobody has asked for so far, without looking for those that it can leave.

        Further ones are found as ever.
        """
        self._turn.check()
        with self._turn.lock:
            self._turn.catch_up()
            self._found.drop()
            if self._pipeline.unread is not None:
                self._pipeline.unread.drop()
            while self._look(_AT_ONCE):
                self._found.drop()

    def cancel(self) -> None:
        """Takes the query out of the engine; what it has found can still be drained.

        When this returns, no callback of the query is running in another thread, and none will.
        """
        self._turn.check()
        with self._turn.lock:
            self._turn.catch_up()
            self._pipeline.leave()
            self._cancelled = True
            self.on_cancel()

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Calls ``seen`` with the query's events from now on, in processing order, before their matches."""
        self._turn.settle()
        self._turn.prompts(lambda: self.is_over)
        self._pipeline.follow(seen)

    def add(
        self, matches: Iterator[MatchBatch], *, all_at_once: bool, after_all: bool, visit: object = None
    ) -> None:
        """Further matches; unless they are wanted all at once, most of very many wait to be asked for.

        ``after_all``: they can be found only when all before them are. ``visit``: whose they are, which is
        ``taken`` from then on.
        """
        if after_all and self.is_behind:
            self._finish()
            if self.is_over:  # with what was found just now
                return
        coming = chain(self._coming, matches)
        # No interrupt comes between the two: that takes a call, or a loop.
        self.taken = visit or self.taken
        self._coming = coming
        if all_at_once or self._on_match is not None:
            self._finish()
        elif self._found.size < _AT_ONCE or self._pipeline.unread is not None:
            # In the second case the events must be taken now, and most of what they complete is left.
            self._look(_AT_ONCE - self._found.size)

    def take(
        self,
        visit: object,
        take: Callable[[EventBatch, int], Iterator[MatchBatch] | None],
        event: EventBatch,
        position: int,
    ) -> bool:
        """Takes a visit of one event, when it is not behind; whether matches are to be looked for."""
        try:
            # Whatever interrupts what comes now ends the query.
            self.taken = visit
            coming = take(event, position)
            if coming is None:
                return False
            self._coming = coming
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise
            return False
        return True

    @property
    def is_behind(self) -> bool:
        """Whether some of its matches were not even looked for."""
        return self._coming is not _NOTHING

    def deliver(self) -> None:
        """Gives the callback what it did not get because it raised something."""
        if self._on_match is not None:
            self._finish()

    def _finish(self) -> None:
        """Finds all there are; first the callback gets those that it was not given when it raised."""
        if self._on_match is not None:
            self._deliver(self._on_match)
        while self._look(_AT_ONCE if self._on_match is None else 1):
            if self._on_match is not None:
                self._deliver(self._on_match)
                if self._cancelled:
                    self._coming = _NOTHING

    def _deliver(self, on_match: Callable[[Match], None]) -> None:
        """Gives what was found to the callback; what that raises is the caller's, and spoils nothing."""
        while self._found.size:
            match = self._found.next()
            if not self._cancelled:
                on_match(match)

    def _look(self, most: int) -> bool:
        """Finds so many matches, or some more; fewer where they were left, or where there are no more.

        False if there are none, or if one is just looking.
        """
        if self._looking:
            return False
        count = 0
        self._looking = True
        try:
            for batch in self._coming:
                count += self._keep(batch)
                if count >= most:
                    break
            else:
                self._coming = _NOTHING
            unread = self._pipeline.unread
            if unread is not None and count < most and (left := unread.next()) is not None:
                # As many as come at once, since matches may be long: few at first, and more each time.
                count += self._keep(left)
            pending = self._limits.pending_matches
            # Those of the last batch may have been asked for just now.
            waiting = 0 if unread is None else len(unread)
            if pending is not None and self._found.before_last + waiting > pending:
                what = f"keeping {self._found.size + waiting} matches"
                raise self._limits.error("pending_matches", what)
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._looking = False
        return count > 0

    def _keep(self, batch: MatchBatch) -> int:
        """Keeps matches until somebody asks for them; how many they are."""
        count = self._found.add(batch)
        if count:
            self.on_found()
        return count

    @property
    def members(self) -> list[Handle]:
        """The queries it stands for."""
        return [self]

    @property
    def live(self) -> int:
        """How many queries it stands for that are not over."""
        return int(not self.is_over)

    def failed(self) -> list[Handle]:
        """The handles of the queries that failed, when it did."""
        return [self]

    def fail(self, error: BaseException) -> None:
        """Ends the query because of what was raised in the middle of an event; frees what it kept."""
        if isinstance(error, LimitError):
            self._error = LimitError(f"query {self.name} is over: {error}", limit=error.limit)
        else:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            reason = f"{what} came in the middle of an event, and its state cannot be trusted"
            self._error = EngineError(f"query {self.name} is over: {reason}. Register it anew")
        self._coming = _NOTHING
        self._pipeline.drop()
        self.on_found()


def _nothing() -> None:
    """Where nobody is to be told."""
