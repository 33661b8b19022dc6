"""Matches on demand: looked for as far as a query's callback, or who asks for them, wants them; then kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from spaseq.engine.delivered.raised import Raised
from spaseq.engine.delivered.undelivered import Undelivered
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.errors import EngineError, LimitError, SpaseqError
from spaseq.events import EventBatch
from spaseq.limits import Limits
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match

if TYPE_CHECKING:
    from spaseq.engine.pipelines.groups.seats import Seat

_What = TypeVar("_What")

#: So many matches are made before anybody asks for them, at least.
AT_ONCE: Final = 1_000
#: What is left of matches that were looked for to the end.
_NOTHING: Final[Iterator[MatchBatch]] = iter(())


class Given(Protocol):
    """What brings matches: an interrupt may come before it is done with, and after the query has them."""

    is_taken: bool


class OnDemand:
    """What a query completes, for who has the turn. ``coming``: what was found, and not yet looked at."""

    __slots__ = (
        "_cancelled", "_error", "_found", "_limits", "_looking", "_on_match", "_pipeline", "_raised",
        "coming", "on_found",
    )  # fmt: skip

    def __init__(
        self,
        pipeline: Pipeline | Seat,
        on_match: Callable[[Match], None] | None,
        limits: Limits,
        raised: Raised,
    ) -> None:
        self._pipeline = pipeline
        self._on_match = on_match
        self._limits = limits
        self._raised = raised
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

    def add(
        self, matches: Iterator[MatchBatch], *, all_at_once: bool, after_all: bool, visit: Given | None = None
    ) -> None:
        """Further matches; unless they are wanted all at once, most of very many wait to be asked for.

        ``after_all``: they can be found only when all before them are. ``visit``: what brings them, and is
        taken from then on.
        """
        if after_all and self.is_behind:
            if self._pipeline.unread is None:
                self._finish()
            else:
                self._look(0)  # what a group has found for it; the rest may stay where it is
            if self.is_over:  # with what was found just now
                return
        coming = chain(self.coming, matches)
        # No interrupt comes between these: that takes a call, or a loop.
        if visit is not None:
            visit.is_taken = True
        self.coming = coming
        if all_at_once or self._on_match is not None:
            self._finish()
        elif self._found.size < AT_ONCE or self._pipeline.unread is not None:
            # In the second case the events must be taken now, and most of what they complete is left.
            self._look(AT_ONCE - self._found.size)

    def receive(self, visit: Given, read: Callable[[_What], MatchBatch], what: _What) -> bool:
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
            # Whatever interrupts what comes now ends the query.
            visit.is_taken = True
            if found.add(read(what)):
                self.on_found()
            pending = self._limits.pending_matches
            if pending is not None and found.size > pending and found.before_last > pending:
                raise self._limits.error("pending_matches", f"keeping {found.size} matches")
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise
        return True

    def take(
        self,
        visit: Given,
        take: Callable[[EventBatch, int], Iterator[MatchBatch] | None],
        event: EventBatch,
        position: int,
    ) -> bool:
        """Takes a visit of one event, when it is not behind; whether matches are to be looked for."""
        try:
            # Whatever interrupts what comes now ends the query.
            visit.is_taken = True
            coming = take(event, position)
            if coming is None:
                return False
            self.coming = coming
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise
            return False
        return True

    @property
    def is_behind(self) -> bool:
        """Whether some of its matches were not even looked for."""
        return self.coming is not _NOTHING

    def deliver(self) -> None:
        """Gives the callback what it did not get because of an interrupt."""
        if self._on_match is not None:
            self._finish()

    def _finish(self) -> None:
        """Finds all there are, and gives them to the callback."""
        if self._on_match is not None:
            self._deliver(self._on_match)
        while self._look(AT_ONCE if self._on_match is None else 1):
            if self._on_match is not None:
                self._deliver(self._on_match)
                if self._cancelled:
                    self.coming = _NOTHING

    def _deliver(self, on_match: Callable[[Match], None]) -> None:
        """Gives the callback all that was found; what it raises comes out at the end of the call."""
        while self._found.size:
            match = self._found.next()
            if self._cancelled:
                continue
            try:
                on_match(match)
            except BaseException as error:  # an interrupt, too
                self._raised.add(error)

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
