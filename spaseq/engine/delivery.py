"""Lazy delivery: matches are enumerated as far as a callback or a reader takes them, then kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, TypeVar

from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.subscription import Subscription
from spaseq.engine.turn import Turn
from spaseq.engine.undelivered import AT_ONCE, Undelivered
from spaseq.errors import EngineError, LimitError, SpaseqError
from spaseq.limits import Limits
from spaseq.results.batch import Match, MatchBatch

_What = TypeVar("_What")

#: No further matches: all were enumerated.
_NOTHING: Final[Iterator[MatchBatch]] = iter(())


class Delivery:
    """A query's matches; to be used in the turn. ``coming``: found, and not enumerated yet."""

    __slots__ = (
        "_cancelled", "_error", "_found", "_limits", "_looking", "_on_match", "_pipeline", "_turn",
        "coming", "on_found",
    )  # fmt: skip

    def __init__(
        self,
        pipeline: Pipeline | Subscription,
        on_match: Callable[[Match], None] | None,
        limits: Limits,
        turn: Turn,
    ) -> None:
        self._pipeline = pipeline
        self._on_match = on_match
        self._limits = limits
        self._turn = turn
        self._error: SpaseqError | None = None
        self._cancelled = False
        self._found = Undelivered()
        self.coming: Iterator[MatchBatch] = _NOTHING
        self._looking = False
        #: Called in the turn when there are matches or the query failed. It must neither wait nor raise.
        self.on_found: Callable[[], None] = nothing

    @property
    @abstractmethod
    def name(self) -> str:
        """The query's name in messages."""

    @property
    def failure(self) -> SpaseqError | None:
        """The error that has ended the query, as of the events processed."""
        return self._error

    @property
    def is_over(self) -> bool:
        """Whether the query is over, as of the events processed."""
        return self._cancelled or self._error is not None or self._pipeline.done

    def add(self, matches: Iterator[MatchBatch], *, all_at_once: bool, after_all: bool) -> None:
        """Add matches. Unless ``all_at_once``, most of a large number are enumerated only when they are read.

        ``after_all``: they can be found only after all earlier matches. For a callback all are enumerated,
        unless an interrupt is noted: then the rest waits for the next call.
        """
        if after_all and self.is_behind:
            if self._pipeline.unread is None:
                self._finish(is_whole=True)
            else:
                self._look(0)  # what the query set has found for it; the rest may stay there
            if self.is_over:  # ended by these matches
                return
        self.coming = chain(self.coming, matches)
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
        if self._on_match is not None or self.coming is not _NOTHING or found.size >= AT_ONCE:
            return False
        if self._looking or self._pipeline.unread is not None:
            return False
        try:
            if found.add(read(what)):
                self.on_found()
            pending = self._limits.pending_matches
            if pending is not None and found.size > pending and found.before_last > pending:
                raise self._limits.error("pending_matches", f"keeping {found.size} matches")
        except Exception as error:
            self.fail(error)
        return True

    @property
    def is_behind(self) -> bool:
        """Whether some matches were found but not enumerated."""
        return self.coming is not _NOTHING

    def deliver(self) -> None:
        """Give the callback the matches that an interrupt has left."""
        if self._on_match is not None:
            self._finish(is_whole=False)

    def _finish(self, *, is_whole: bool) -> None:
        """Enumerate all matches, and give them to the callback.

        Unless ``is_whole``, a noted interrupt leaves the rest.
        """
        if self._on_match is not None:
            self._deliver(self._on_match, is_whole=is_whole)
        deferral = self._turn.deferral
        while is_whole or deferral.noted is None or not deferral.is_due:
            if not self._look(AT_ONCE if self._on_match is None else 1):
                break
            if self._on_match is not None:
                self._deliver(self._on_match, is_whole=is_whole)
                if self._cancelled:
                    self.coming = _NOTHING

    def _deliver(self, on_match: Callable[[Match], None], *, is_whole: bool) -> None:
        """Give the callback the matches found; its exceptions are raised at the end of the call."""
        deferral = self._turn.deferral
        while self._found.size:
            if deferral.noted is not None and deferral.is_due and not is_whole:
                return
            match = self._found.next()
            if self._cancelled:
                continue
            try:
                on_match(match)
            except BaseException as error:  # SystemExit, too
                self._turn.raised.add(error)

    def _look(self, most: int) -> bool:
        """Enumerate this many matches or a few more; fewer if there are no more, or the rest is deferred.

        False if there are none, or if an enumeration is running.
        """
        if self._looking or (self.coming is _NOTHING and self._pipeline.unread is None):
            return False
        count = 0
        self._looking = True
        try:
            for batch in self.coming:
                count += self._keep(batch)
                # Otherwise the query set has found them already.
                if count >= most and self._pipeline.unread is None:
                    break
            else:
                self.coming = _NOTHING
            unread = self._pipeline.unread
            if unread is not None and count < most and (left := unread.next()) is not None:
                # In growing batches, since matches may be long: few at first, then more each time.
                count += self._keep(left)
            pending = self._limits.pending_matches
            # Matches of the last batch may just have been read.
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
        """Keep matches until they are read; return their number."""
        count = self._found.add(batch)
        if count:
            self.on_found()
        return count

    def fail(self, error: BaseException) -> None:
        """End the query because of an exception during an event; free its memory."""
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
        self.coming = _NOTHING
        self._pipeline.drop()
        self.on_found()


def _is_of_memory(error: BaseException) -> bool:
    """Return whether memory has run out; compiled code raises a SystemError caused by it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, MemoryError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def nothing() -> None:
    """Do nothing: there is no listener."""
