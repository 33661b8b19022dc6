"""The caller's handle of a registered query: its matches, its counts, and a way to end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from spaseq.engine.delivery import AT_ONCE, Delivery
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.query_set import Subscription
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.turn import Turn
from spaseq.errors import EngineError, SpaseqError
from spaseq.events import EventBatch
from spaseq.language.syntax import Ask, Query
from spaseq.language.syntax.printing import print_sequence
from spaseq.limits import Limits
from spaseq.results.batch import Match, MatchBatch, alone
from spaseq.terms.dictionary import Term
from spaseq.why.diagnosis import Diagnosis
from spaseq.why.evidence import Evidence

_Taken = TypeVar("_Taken", Match, MatchBatch)


class Handle(Delivery):
    """A query in an engine: ``matches`` yields what it has found, unless ``on_match`` gets the matches.

    Several threads may use a handle, also while others use the engine.
    """

    __slots__ = ("__weakref__", "_before", "_contexts", "on_cancel")

    _pipeline: Pipeline | Subscription

    def __init__(
        self,
        pipeline: Pipeline | Subscription,
        on_match: Callable[[Match], None] | None,
        turn: Turn,
        limits: Limits,
        contexts: Mapping[Term, Path],
        *,
        is_counted: bool = False,
    ) -> None:
        """``contexts``: by stream, the JSON-LD context that lifts its rows, for the sources read so far.

        ``is_counted``: every match is enumerated and counted, whether it is read or not.
        """
        super().__init__(pipeline, on_match, limits, turn)
        pipeline.may_leave = on_match is None and not is_counted
        if not isinstance(pipeline, Pipeline):
            pipeline.has(self._found)
        self._contexts = contexts
        # The counts of an earlier process.
        self._before: Stats | None = None
        #: Called when the query is removed.
        self.on_cancel: Callable[[], None] | None = None
        # Callbacks, and queries that read this one's stream, must get events at once. A query that ends by
        # itself counts the events up to that point.
        query = pipeline.query
        ends = query.modifiers.limit is not None or isinstance(query.form, Ask)
        if on_match is not None or query.register is not None or ends:
            self.hurry()

    def __repr__(self) -> str:
        self._turn.flush()
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
    def query(self) -> Query:
        """The query, as prepared."""
        return self._pipeline.query

    @property
    def name(self) -> str:
        """The query's name in messages: the IRI of its REGISTER, or else its sequence."""
        register = self.query.register
        return str(register.iri) if register is not None else f"SEQ({print_sequence(self.query.sequence)})"

    def sit(self, subscription: Subscription) -> None:
        """Run the query, which has seen no event yet, in a query set."""
        subscription.may_leave = self._pipeline.may_leave
        subscription.has(self._found)
        subscription.on_done = self._end
        self._pipeline = subscription

    @property
    def is_asked(self) -> bool:
        """Whether only callers that read them get its matches and its ``error``."""
        return self._on_match is None and self._pipeline.output is None

    @property
    def stats(self) -> Stats:
        """The query's counts so far."""
        self._turn.flush()
        lock = self._turn.lock
        # If another thread is working, its current task is not counted. So the caller does not wait for that
        # thread's callbacks.
        if lock.acquire(blocking=False):
            try:
                self._pipeline.count()
            finally:
                lock.release()
        stats = self._pipeline.stats
        return stats if self._before is None else stats.plus(self._before)

    @property
    def error(self) -> SpaseqError | None:
        """Why the query ended early; None if it did not.

        It exceeded one of the engine's ``Limits``, or an exception occurred while it processed an event.
        After an exception, its state cannot be trusted.
        """
        if self._turn.is_behind:
            self._turn.flush()
        return self._error

    @property
    def done(self) -> bool:
        """Whether the query is over: cancelled, failed, its LIMIT reached, or its ASK answered."""
        if self._turn.is_behind:
            self._turn.flush()
        return self.is_over

    # --- what outlives the process ----------------------------------------------------------------

    @property
    def is_cancelled(self) -> bool:
        """Whether it was removed from the engine."""
        return self._cancelled

    @property
    def is_taken(self) -> bool:
        """Whether a reader or a callback has taken every match so far."""
        return self.coming is None and not self._found.size

    @property
    def pipeline(self) -> Pipeline | Subscription:
        """The pipeline that computes its matches."""
        return self._pipeline

    @property
    def delivered(self) -> int:
        """How many matches were taken by readers or a callback."""
        return self._found.delivered

    def recount(self, delivered: int, again: int) -> None:
        """Set how many matches were taken before; the next ``again`` matches are among them."""
        self._found.delivered, self._found.again = delivered, again

    def resume(self, left: int | None, stats: Stats) -> None:
        """Continue after a restart: earlier matches are only counted, later ones are delivered."""
        while self._look(AT_ONCE):
            pass
        self._before = None
        self._before = stats.plus(self.stats, -1)
        self._pipeline.resume(left)

    def end(self, stats: Stats, reason: str | None) -> None:
        """Restore a query that was already over, with its counts; ``reason``: its error, if it had one."""
        self._pipeline.drop()
        self._before = stats.plus(self._pipeline.stats, -1)
        self._error = None if reason is None else EngineError(reason)

    def call(self, on_match: Callable[[Match], None] | None) -> None:
        """Give later matches to another callback; ``deliver`` gives it the matches not yet taken."""
        self._on_match = on_match
        if on_match is not None:
            self.hurry()

    def keep(self, events: int) -> None:
        """Keep this many of the next events for ``why``, instead of the first 2,000 events."""
        self._turn.check()
        with self._turn.deferral, self._turn.lock:
            self._turn.catch_up()
            self._pipeline.keep(events)

    def why(self, seconds: float = 3.0) -> Diagnosis:
        """Return why the query has found no match, as far as can be determined; or its counts if it has.

        Runs the query again on a sample, its first events, both unchanged and with changes, for about
        ``seconds`` of processor time. If that is too short for the whole sample, a smaller sample is used,
        and the answer says so.
        """
        from spaseq.why.diagnose import diagnose

        self._turn.check()
        with self._turn.deferral, self._turn.lock:
            evidence = self.evidence()
            try:
                return diagnose(evidence, seconds)
            finally:  # failed calls of the runs again are not counted
                evidence.dictionary.failed_calls.clear()
                evidence.dictionary.failed_calls.update(evidence.failed_calls)

    def evidence(self) -> Evidence:
        """Return the input of ``why`` as it is now: the query, its counts, and its first events."""
        self._turn.check()
        with self._turn.deferral, self._turn.lock:
            self._turn.catch_up()
            return replace(self._pipeline.evidence(), contexts=self._contexts)

    def matches(self) -> Iterator[Match]:
        """Yield the matches found since the last call, each once, in the order of delivery.

        If one event completes very many matches, most of them are enumerated only as they are read; no lock
        is held in between. If several threads read at the same time, each match goes to one of them. If the
        query has an ``error``, it is raised after the last match.
        """
        while (match := self._take(self._found.next, AT_ONCE, alone)) is not None:
            yield match
        if self._error is not None:
            raise self._error.with_traceback(None)

    def batches(self, max_rows: int = 65_536) -> Iterator[MatchBatch]:
        """Yield the matches found so far, in batches of at most ``max_rows``; do not wait for more.

        Raises EngineError if ``max_rows`` is below 1, and the query's error after its last match.
        """
        if max_rows < 1:
            raise EngineError(f"max_rows={max_rows}: a batch has a match at least")
        take = partial(self._found.take, max_rows)
        while (batch := self._take(take, max_rows, _itself)) is not None:
            yield batch
        if self._error is not None:
            raise self._error.with_traceback(None)

    def _take(
        self, take: Callable[[], _Taken], most: int, batch_of: Callable[[_Taken], MatchBatch]
    ) -> _Taken | None:
        """Return the result of ``take`` on the matches found; None if there are none.

        ``batch_of`` turns the result into a batch, to be put back if an interrupt is raised as the turn ends.
        """
        turn, found = self._turn, self._found
        taken: _Taken | None = None
        turn.check()
        try:
            with turn.deferral, turn.lock:
                if turn.is_behind:
                    turn.catch_up()
                if found.size or self._look(most):
                    taken = take()
        except BaseException:
            if taken is not None:
                with turn.deferral, turn.lock:
                    found.give_back(batch_of(taken))
            raise
        return taken

    def drop(self) -> None:
        """Discard the unread matches, without enumeration where possible.

        Later matches are found as usual.
        """
        self._turn.check()
        with self._turn.deferral, self._turn.lock:
            self._turn.catch_up()
            self._found.drop()
            if self._pipeline.unread is not None:
                self._pipeline.unread.drop()
            while self._look(AT_ONCE):
                self._found.drop()

    def cancel(self) -> None:
        """Remove the query from the engine; matches found so far can still be read.

        When this returns, no callback of the query is running in another thread, and none will.
        """
        self._turn.check()
        with self._turn.deferral, self._turn.lock:
            self._turn.catch_up()
            self._pipeline.leave()
            self._cancelled = True
            self._end()
            if self.on_cancel is not None:
                self.on_cancel()

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Call ``seen`` with the query's events from now on, in processing order, before their matches."""
        with self._turn.deferral, self._turn.lock:
            self._turn.catch_up()
            self.hurry()
            self._pipeline.follow(seen)

    @property
    def members(self) -> list[Handle]:
        """The handles of the queries that it stands for."""
        return [self]

    @property
    def live(self) -> int:
        """How many of the queries that it stands for are not over."""
        return int(not self.is_over)


def _itself(batch: MatchBatch) -> MatchBatch:
    return batch
