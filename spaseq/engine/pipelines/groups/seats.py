"""What single queries have of a group that runs them as one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spaseq.automaton.normal import normalise
from spaseq.engine.delivered.unread import Unread
from spaseq.engine.pipelines.groups.group import Group, Row
from spaseq.engine.pipelines.stats import Seat as Place
from spaseq.engine.pipelines.stats import Stats
from spaseq.errors import SpaseqError
from spaseq.events import EventBatch
from spaseq.gpm.kb import KnowledgeBase
from spaseq.gpm.sharing import Sharing
from spaseq.language.syntax import Ask, Query
from spaseq.limits import Limits
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.ordered.skipping import falls_back
from spaseq.results.batch import MatchBatch
from spaseq.results.reading import Reader
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.why.diagnosis import GpmStats
from spaseq.why.evidence import Evidence
from spaseq.why.sample import Sample

if TYPE_CHECKING:
    from spaseq.engine.handle import Handle
    from spaseq.matching.enumeration.rest import Portion, Rest


class Seat:
    """What one query has of a group: its LIMIT, its counts, its form of answers.

    It does for a ``Handle`` what a ``Pipeline`` of the query's own would do, ``may_leave`` and ``unread`` as
    there. ``rank``: its place among the others.
    """

    __slots__ = (
        "_crowd", "_group", "_left", "_over", "_reader", "_rest", "_row", "_sample", "_seen", "_stats",
        "done", "may_leave", "query", "rank", "unread",
    )  # fmt: skip

    def __init__(self, crowd: Crowd, query: Query, rank: int) -> None:
        self.query = query
        self.rank = rank
        self.done = query.modifiers.limit == 0
        self._crowd = crowd
        self._left = query.modifiers.limit
        # Made when something is counted, or somebody asks.
        self._stats: Stats | None = None
        self._seen: Callable[[EventBatch], None] | None = None
        self._sample: Sample | None = None
        self._group: Group | None = None
        self._row: Row | None = None
        self._over = self.done
        self._reader: Reader | None = None
        self.may_leave = False
        self.unread: Unread | None = None
        # What the group has found for it, and not enumerated.
        self._rest: Rest | None = None

    def count(self) -> None:
        """Its group counts each event at once."""

    @property
    def output(self) -> None:
        """No query that makes a stream has a seat."""

    @property
    def stats(self) -> Stats:
        """What the query has seen and done."""
        stats = self._counts()
        if not self._over:
            self._crowd.refresh(stats)
            if self._group is not None and self._row is not None:
                self._group.counted(self._row, stats)
        return stats

    def _counts(self) -> Stats:
        if self._stats is None:
            self._stats = Stats(gpms={gpm.name: GpmStats() for gpm in self.query.gpms})
        return self._stats

    @property
    def has_left(self) -> bool:
        """Whether the query is over, as it is for those around it."""
        return self._over

    @property
    def beginning(self) -> int | None:
        """When the first window began."""
        return None if self._group is None else self._group.beginning

    @property
    def left(self) -> int | None:
        """How many rows its LIMIT leaves."""
        return self._left

    def resume(self, left: int | None) -> None:
        """What comes from now on is its own; ``left`` as its LIMIT left it."""
        self._left = left
        if self._group is not None:
            self._group.is_warming = False

    def sit(self, group: Group, row: Row) -> None:
        """The query has its row from now on."""
        self._group, self._row = group, row
        row.seats.append(self)

    def begin(self) -> None:
        """The first events are about to come."""
        if self._group is not None:
            if self._sample is not None:
                self._group.sampled(self._sample)
            if self._seen is not None:
                self._group.follow_too(self._seen)

    def leave_to(self, portion: Portion) -> None:
        """It is to enumerate these itself, behind all that was found before."""
        from spaseq.matching.enumeration.rest import Rest

        if self._rest is None:
            self._rest = Rest()
            # LIMIT and ASK are over as matches are looked for.
            if self.may_leave and self._left is None and not isinstance(self.query.form, Ask):
                self.unread = Unread(self._rest, self._of_rest)
        self._rest.add(portion)

    @property
    def is_behind(self) -> bool:
        """Whether there are matches that it is to enumerate."""
        return self._rest is not None and self._rest.waiting > 0

    def _of_rest(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        assert self._group is not None
        return self._answers(self._group.own(found))

    def answers(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        """Its matches, of those of its row."""
        yield from self._answers(found)
        if self._rest is not None and self.unread is None:
            yield from self._of_rest(self._rest.unread())

    def _answers(self, found: Iterable[Block]) -> Iterator[MatchBatch]:
        group, stats, skip = self._group, self._counts(), self.query.skip
        assert group is not None
        if self._reader is None:
            self._reader = group.reader.of(self.query)
        only_first = isinstance(self.query.form, Ask)
        for block in found:
            wanted = block.part(0, 1) if only_first else block
            for batch, rows in self._reader.batches(wanted, group.clock, self._left):
                stats.matches += len(batch)
                stats.rows += rows
                if skip is not None and skip.gpm is not None:  # else no match has to be made for that
                    stats.unskipped += sum(falls_back(skip, wanted[i], group.rank) for i in range(len(batch)))
                if len(batch) < len(wanted):
                    wanted = wanted.part(len(batch), len(wanted))
                if self._left is not None:
                    self._left -= rows
                if only_first or self._left == 0:
                    self._rest = None
                    self.leave()
                    self.done = True
                yield batch
                if self.done:
                    return

    def leave(self) -> None:
        """The query is over: what comes is not counted, and costs nothing."""
        group, row = self._group, self._row
        if self._over:
            return
        stats = self.stats
        stats.shared_with, stats.shared = 0, ()
        self._over = True
        if group is None:
            self._crowd.left()
        elif row is not None:
            sample = self._sample or group.sample
            self._sample = None if sample is None else sample.copy()
            self._row = None
            if self._rest is not None and self.is_behind:
                self._rest.keep()
            group.remove(row, self)

    def drop(self) -> None:
        """Forgets all that is not yet a match: the query is over."""
        self._rest = self.unread = None
        self.leave()
        self.done = True
        self._sample = None

    def keep(self, events: int) -> None:
        """Keeps so many of the events to come as a sample."""
        self._sample = Sample(events, 10 * events)
        if self._group is not None and self._row is not None:
            self._group.sampled(self._sample)

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Calls ``seen`` with the events to come, which are all that there are."""
        self._seen = seen
        if self._group is not None and self._row is not None:
            self._group.follow_too(seen)

    def evidence(self) -> Evidence:
        """What is known of the query, for a diagnosis."""
        stats, group = self.stats, self._group
        sample = self._sample or (None if group is None or self._row is None else group.sample)
        return Evidence(
            pattern=normalise(self.query),
            events=stats.events,
            matches=stats.matches,
            late=stats.late,
            gpms={name: replace(counted) for name, counted in stats.gpms.items()},
            sample=None if sample is None else sample.batch(),
            begin=None if group is None else group.beginning,
            dictionary=self._crowd.dictionary,
            kb=self._crowd.kb,
            ended=self._over and self._sample is None,
        )


class Crowd:
    """The handles of queries that run as one; it does for the engine what the ``Handle`` of one would do.

    ``error`` is the newest of theirs.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        kb: KnowledgeBase,
        sharing: Sharing,
        limits: Limits,
        place: Place,
        start: int | None = None,
    ) -> None:
        """``place``: the one that the queries have together; ``start``: when their first window begins."""
        self._start = start
        self.dictionary = dictionary
        self.kb = kb
        self.error: SpaseqError | None = None
        self.taken: object = None
        self.refresh = place.refresh
        self._place = place
        self._sharing = sharing
        self._limits = limits
        # Who has a seat, by rank, and the constants of each, as long as they are no group.
        self._seated: list[tuple[Handle, Sequence[Term]]] = []
        # Of them, those who are not over, and perhaps some who are.
        self._live: list[Handle] = []
        self._group: Group | None = None
        self._failed: list[Handle] = []
        # What was found, and not yet handed on.
        self._due: deque[tuple[Handle, Iterator[MatchBatch]]] = deque()

    def seat(self, query: Query) -> Seat:
        """A seat for one query more; ``join`` says who has its handle."""
        return Seat(self, query, len(self._seated))

    def join(self, handle: Handle, constants: Sequence[Term]) -> None:
        """The handle of the query that got the last seat, and its constants."""
        # After an interrupt between these, the handle is cancelled: who is over counts nowhere.
        self._seated.append((handle, constants))
        self._live.append(handle)

    def left(self) -> None:
        """One of them is over, and none has begun."""
        while self._live and self._live[-1].seat.has_left:
            self._live.pop()
        if not self._live:
            self._place.leave()

    def gather(self) -> Group | None:
        """Makes those who are there one; None if they are so already, or all gone."""
        if self._group is not None:
            return None
        live = [(handle, constants) for handle, constants in self._seated if not handle.is_over]
        if not live:
            return None
        first = live[0][1]
        varying = [place for place in range(len(first)) if any(c[place] != first[place] for _, c in live)]
        seats = [(handle.seat, constants) for handle, constants in live]
        self._seated = [(handle, ()) for handle, _ in self._seated]
        self._group = Group(
            seats, varying, self.dictionary, self.kb, self._sharing, self._limits, self._start
        )
        return self._group

    def begin(self) -> None:
        """The group has its place."""
        for handle in self._live:
            handle.seat.begin()

    @property
    def is_over(self) -> bool:
        """Whether all are."""
        while self._live and self._live[-1].is_over:
            self._live.pop()
        return not self._live

    @property
    def members(self) -> list[Handle]:
        """Those who have a seat and are not over."""
        return [handle for handle in self._live if not handle.is_over]

    @property
    def live(self) -> int:
        """How many are not over."""
        return sum(not handle.is_over for handle in self._live)

    @property
    def is_behind(self) -> bool:
        """Whether matches were not even looked for: all are, at once."""
        return False

    def add(
        self,
        matches: Iterator[MatchBatch],
        *,
        all_at_once: bool,  # noqa: ARG002  # as a handle's
        after_all: bool,  # noqa: ARG002
        visit: object = None,
    ) -> None:
        """Looks for further matches, all at once, and hands them on; see ``Handle.add``."""
        self._hand_on()
        self.taken = visit or self.taken
        try:
            for _ in matches:
                pass
            if self._group is not None:
                found = self._group.take()
                # Last: an interrupt before it ends the queries, one behind it finds all in their places.
                self._due.extend([(self._seated[seat.rank][0], seat.answers(of)) for seat, of in found])
        except BaseException as error:
            self.fail(error)
            if not isinstance(error, Exception):
                raise
        self._hand_on()

    def deliver(self) -> None:
        """Gives callbacks what they did not get because something was raised."""
        raised: Exception | None = None
        for handle in list(self._live):
            try:
                handle.deliver()
            except Exception as error:
                raised = raised or error
        self._hand_on(raised)

    def _hand_on(self, raised: Exception | None = None) -> None:
        """Gives matches to their handles; what callbacks raise is for the end."""
        while self._due:
            # They stay there until the handle has them: an interrupt that comes before must not lose them.
            due = self._due[0]
            handle, matches = due
            if not handle.is_over and handle.taken is not due:
                before = handle.error
                try:
                    handle.add(matches, all_at_once=False, after_all=True, visit=due)
                except Exception as error:
                    raised = raised or error
                finally:
                    if handle.error is not before:
                        self._note(handle)
            del self._due[0]
            handle.taken = None
        if raised is not None:
            raise raised

    def _note(self, handle: Handle) -> None:
        self.error = handle.error
        self._failed.append(handle)

    def fail(self, error: BaseException) -> None:
        """Ends all queries because of what was raised in the middle of an event."""
        for handle in self._live:
            if not handle.is_over:
                handle.fail(error)
                self._note(handle)

    def failed(self) -> list[Handle]:
        """Those that failed since this was last asked."""
        failed, self._failed = self._failed, []
        return failed
