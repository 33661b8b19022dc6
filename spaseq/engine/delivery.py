"""Matches on demand: looked for as far as a query's callback, or who asks for them, wants them; then kept."""

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
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match

_What = TypeVar("_What")

#: What is left of matches that were looked for to the end.
_NOTHING: Final[Iterator[MatchBatch]] = iter(())


class Delivery:
    """What a query completes, for who has the turn. ``coming``: what was found, and not yet looked at."""

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
        #: Told, in the turn, that matches are there or that the query failed. It must neither wait nor raise.
        self.on_found: Callable[[], None] = nothing

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call the query."""

    @property
    def failure(self) -> SpaseqError | None:
        """What has ended the query, as far as it has come."""
        return self._error

    @property
    def is_over(self) -> bool:
        """Whether the query is over, as far as it has come."""
        return self._cancelled or self._error is not None or self._pipeline.done

    def add(self, matches: Iterator[MatchBatch], *, all_at_once: bool, after_all: bool) -> None:
        """Further matches; unless they are wanted all at once, most of very many wait to be asked for.

        ``after_all``: they can be found only when all before them are. For a callback all are looked for,
        unless an interrupt is noted: then the rest waits for the next call.
        """
        if after_all and self.is_behind:
            if self._pipeline.unread is None:
                self._finish(is_whole=True)
            else:
                self._look(0)  # what a group has found for it; the rest may stay where it is
            if self.is_over:  # with what was found just now
                return
        self.coming = chain(self.coming, matches)
        if all_at_once or self._on_match is not None:
            self._finish(is_whole=all_at_once)
        elif self._found.size < AT_ONCE or self._pipeline.unread is not None:
            # In the second case the events must be taken now, and most of what they complete is left.
            self._look(AT_ONCE - self._found.size)

    def receive(self, read: Callable[[_What], MatchBatch], what: _What) -> bool:
        """Takes matches that are there, and read at once; false, and nothing done, if that is not all to do.

        As ``add`` for who has no callback, and does not wait for a reader: of a thousand queries each may
        have a few.
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
        """Whether some of its matches were not even looked for."""
        return self.coming is not _NOTHING

    def deliver(self) -> None:
        """Gives the callback what it did not get because of an interrupt."""
        if self._on_match is not None:
            self._finish(is_whole=False)

    def _finish(self, *, is_whole: bool) -> None:
        """Find all there are, and give them to the callback.

        Unless it ``is_whole``, an interrupt that is noted leaves the rest where it is.
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
        """Give the callback what was found; what it raises comes out at the end of the call."""
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
        """Finds so many matches, or some more; fewer where they were left, or where there are no more.

        False if there are none, or if one is just looking.
        """
        if self._looking or (self.coming is _NOTHING and self._pipeline.unread is None):
            return False
        count = 0
        self._looking = True
        try:
            for batch in self.coming:
                count += self._keep(batch)
                # Otherwise it is what a group has found, and is there.
                if count >= most and self._pipeline.unread is None:
                    break
            else:
                self.coming = _NOTHING
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

    def fail(self, error: BaseException) -> None:
        """Ends the query because of what was raised in the middle of an event; frees what it kept."""
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
    """Whether memory has run out; compiled code makes a SystemError of that, whose cause it is."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, MemoryError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def nothing() -> None:
    """Where nobody is to be told."""
