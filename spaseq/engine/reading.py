"""Sources: read in parallel to their end, or one by one as if their events were pushed."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Final

import numpy as np
import pyoxigraph as ox

from spaseq.connect import Live, LiveSource, Location, open_source, resolved
from spaseq.connect.again import Count, Place, resumed
from spaseq.engine.arguments import GivenTime, StreamName, stream_iri, time_given
from spaseq.engine.core import Core
from spaseq.errors import EngineError, SourceError
from spaseq.events import BEGINNING, Clock, EventBatch
from spaseq.excerpts import hide
from spaseq.interrupts import Pace
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources import open_source as read_source
from spaseq.sources.columns.table import Table

#: Unless a result is read, sources' events are processed when there are this many events and triples. The
#: number doubles for this many queries: each costs something per batch, however few of the events concern it.
ENOUGH: Final = 1 << 17
_MANY: Final = 16

#: A context in which interrupts are deferred.
Held = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Source:
    """A stream and where to read it.

    ``location``: a path, ``-`` for standard input, an open binary file, a table, or a live source, which may
    be given as its URL (see ``spaseq.connect``).
    """

    stream: StreamName
    location: Location
    options: SourceOptions = field(default_factory=SourceOptions)

    def __post_init__(self) -> None:
        """Raise ``SourceError`` for a location that cannot be read."""
        where = self.location
        if isinstance(where, str | PathLike | Table | LiveSource) or hasattr(where, "read"):
            return
        kind = type(where).__name__
        is_table = any(hasattr(where, name) for name in ("__arrow_c_stream__", "__dataframe__", "columns"))
        raise SourceError(
            f"<{self.stream}>: a {kind} is read as spaseq.table({kind}, time='COLUMN', template='TURTLE')"
            if is_table
            else f"<{self.stream}>: a source is a path, a URL, an open binary file, spaseq.table(…) or "
            f"spaseq.Source(…), not {where!r:.60}"
        )

    def __repr__(self) -> str:
        location = hide(self.location) if isinstance(self.location, str) else self.location
        return f"Source(stream={self.stream!r}, location={location!r}, options={self.options!r})"


class Steps(Iterator[None]):
    """Reads sources in parallel, step by step; any thread may ``close`` it.

    ``is_between``: it ended while no step was running, so that the engine is consistent. ``held`` makes the
    context that defers interrupts during a step. ``is_asked``: each step processes its events. Without it,
    events are processed after ``ENOUGH`` events and triples, or when results are read.
    """

    def __init__(
        self,
        core: Core,
        opened: Mapping[int, Iterator[EventBatch]],
        idle: timedelta | None,
        wall_clock: WallClock | None,
        is_asked: bool,
    ) -> None:
        self.is_between = True
        self.held: Held = nullcontext
        self._is_asked = is_asked
        self._core, self._opened, self._idle, self._wall_clock = core, opened, idle, wall_clock
        self._is_ended = False
        self._pace = Pace(ENOUGH // 4, most=2 * ENOUGH)
        # Live sources with batches that were taken, and with matches that may not have been.
        self._unacknowledged: list[Live] = []
        self._steps = self._run()

    def __next__(self) -> None:
        return next(self._steps)

    def close(self) -> None:
        """End the reading. What a live source delivers at this moment is left to the next run."""
        self._is_ended = True
        for source in self._opened.values():
            if isinstance(source, Live):
                source.close()
        with suppress(ValueError):  # a thread is in a step, and stops when its read returns
            self._steps.close()

    def _run(self) -> Generator[None, None, None]:
        core, state = self._core, self._core.state
        with core.turn.deferral, core.turn.lock:
            newest = self._newest()
            for stream in self._opened:
                core.dispatcher.hold(stream, True)
            if state is not None:
                state.on_commit.append(self._acknowledge)
        beats, idle = self._wall_clock is not None, self._idle
        steps = in_turn(self._opened, newest) if idle is None else with_idle(self._opened, idle, beats=beats)
        try:
            for stream, batch in steps:  # this may wait, and so has no turn
                if self._is_ended:
                    return
                core.turn.check()
                with core.turn.deferral, core.turn.lock, self.held():
                    core.check_open()
                    self.is_between = False
                    if isinstance(batch, EventBatch) and self._may_wait(stream, batch):
                        self._wait(stream, batch)
                    else:
                        core.perform(partial(self._step, stream, batch))
                    self.is_between = True
                    core.end()
                yield
                if state is None:
                    self._acknowledge()
                if core.dispatcher.is_over:
                    return
        finally:
            # However it ended: no thread and no connection outlives the reading.
            steps.close()
            for source in self._opened.values():
                close(source)
            if state is not None:
                state.on_commit.remove(self._acknowledge)

    def _may_wait(self, stream: int, batch: EventBatch) -> bool:
        """Return whether it cannot be observed if events are processed now or when a result is read."""
        core, dispatcher = self._core, self._core.dispatcher
        if self._is_asked or not len(batch) or core.turn.prompt or core.tasks or core.inbox.events:
            return False
        time = batch.time
        if (time[1:] < time[:-1]).any():
            return False
        before = [waiting.time.item(-1) for of, waiting in core.inbox.batches if of == stream]
        first = time.item(0)
        if first < max(before, default=first):
            return False
        # The first events determine the clock of all.
        is_first = dispatcher.is_new(stream) and all(of.clock is batch.clock for _, of in core.inbox.batches)
        return is_first or dispatcher.is_smooth(stream, batch.clock, first)

    def _wait(self, stream: int, batch: EventBatch) -> None:
        """Keep events until there are enough to process them."""
        core = self._core
        core.inbox.batches.append((stream, batch))
        core.turn.is_behind = True
        queries = sum(len(stream_set.members) for stream_set in core.dispatcher.stream_sets)
        enough = min(2 * ENOUGH if queries >= _MANY else ENOUGH, self._pace.size)
        if sum(len(waiting) + len(waiting.p) for _, waiting in core.inbox.batches) >= enough:
            begun = perf_counter()
            core.catch_up()
            self._pace.took(perf_counter() - begun)

    def _newest(self) -> dict[int, int]:
        """Return the times up to which streams were read before."""
        newest, state = dict.fromkeys(self._opened, BEGINNING), self._core.state
        if state is not None:
            for stream in newest:
                time = state.positions[self._core.dictionary.term(stream).value].newest
                newest[stream] = BEGINNING if time is None else time
        return newest

    def _acknowledge(self) -> None:
        """Acknowledge batches to live sources: their matches were taken; with a state, it has them."""
        for source in self._unacknowledged:
            source.acknowledge()
        self._unacknowledged = []

    def _step(self, stream: int, batch: EventBatch | object | None) -> None:
        """Handle a source's step: it brought events, went idle or ended."""
        core, clock = self._core, self._wall_clock
        if isinstance(batch, EventBatch):
            self._passed(stream, batch)
            if not len(batch):
                return
        core.dispatcher.hold(stream, isinstance(batch, EventBatch))
        if isinstance(batch, EventBatch):
            taken = core.dispatcher.admit(stream, batch)
            if clock is not None and len(taken):
                clock.saw(stream, taken)
        elif clock is not None and batch is IDLE and (time := clock.time(stream)) is not None:
            core.dispatcher.promise(*time, stream)
        else:
            core.dispatcher.move()

    def _passed(self, stream: int, batch: EventBatch) -> None:
        """Record how far the source has come with these events."""
        source, state, place = self._opened[stream], self._core.state, None
        if isinstance(source, Live):
            place = source.place()
            self._unacknowledged.append(source)
        if state is not None:
            state.positions[self._core.dictionary.term(stream).value].goes_on(batch, place)


class SourceReading:
    """Reads sources into an engine. ``idle`` and ``wall_clock`` as for an ``Engine``."""

    def __init__(self, core: Core, idle: timedelta | None, wall_clock: WallClock | None) -> None:
        self._core = core
        self._idle, self._wall_clock = idle, wall_clock

    # --- in parallel -----------------------------------------------------------------------------

    def feed(self, sources: Sequence[Source]) -> None:
        """See ``Engine.feed``."""
        core = self._core
        with closing(self._steps(sources, is_asked=False)) as steps:
            for _ in steps:
                pass
        with core.turn.deferral, core.turn.lock:
            core.catch_up()
            core.end()

    def pull(self, sources: Sequence[Source]) -> Steps:
        """See ``Engine.pull``."""
        return self._steps(sources, is_asked=True)

    def _steps(self, sources: Sequence[Source], *, is_asked: bool) -> Steps:
        """Return the steps. ``is_asked`` as for ``Steps``."""
        core = self._core
        core.turn.check()
        with core.turn.deferral, core.turn.lock:
            core.check_open()
            if core.is_working:
                raise EngineError("sources cannot be read inside a callback: push their events")
            core.catch_up()
            core.turn.used = True  # a child process has no reader threads
            opened: dict[int, Iterator[EventBatch]] = {}
            for source in sources:
                if not isinstance(source, Source):
                    raise EngineError(
                        f"{source!r:.60} has no stream: give spaseq.Source(STREAM, {source!r:.60})"
                    )
                stream = stream_iri(source.stream)
                identity = core.dictionary.pin(stream)
                if identity in opened:
                    raise EngineError(
                        f"two sources for stream {stream} in one call: feed one after the other"
                    )
                location, options = resolved(source.location, source.options)
                if options.context is not None:
                    core.contexts[stream] = options.context
                opened[identity] = self._open(location, options, stream)
        is_asked |= any(isinstance(source, Live) for source in opened.values())
        is_asked |= any(each is not None for each in (self._idle, core.state, core.dispatcher.seen))
        return Steps(core, opened, self._idle, self._wall_clock, is_asked)

    def _open(self, location: Location, options: SourceOptions, stream: ox.NamedNode) -> Iterator[EventBatch]:
        """Yield the new events of a source."""
        core = self._core

        def opened(
            refuse: Callable[[BadEvent], None], known: tuple[Count, Place | None]
        ) -> Iterator[EventBatch]:
            return open_source(
                location,
                stream,
                core.dictionary,
                options,
                on_bad=refuse,
                limits=core.limits,
                idle=None if self._wall_clock is None else self._idle,
                known=known,
            )

        if core.state is None:
            return opened(core.rejects.malformed, (Count(), None))
        from spaseq.engine.durable.replay import again, position

        known = position(core.state.positions, stream.value, location)
        before = replace(known)
        if isinstance(location, LiveSource):
            return opened(core.rejects.malformed, (before, before.live))
        batches = opened(again(core.rejects.malformed, known, core.rejects.still), (Count(), None))
        return resumed(batches, before, known.location) if before.events else batches

    # --- as if pushed -------------------------------------------------------------------------

    def take(
        self,
        source: Source,
        time: GivenTime | None,
        otherwise: GivenTime | None,
        whole: bool,
        refused: Callable[[str, BadEvent], None] | None,
    ) -> Iterator[int]:
        """See ``Engine.take``."""
        core = self._core
        stream = stream_iri(source.stream)
        if isinstance(source.location, LiveSource):
            raise EngineError(f"{source.location.address}: a live source is not taken, but fed: engine.feed")
        given = None if time is None else time_given(time)
        gone = 0

        def refuse(kind: str, letter: BadEvent) -> None:
            nonlocal gone
            gone += 1
            if refused is not None:
                refused(kind, letter)

        with core.turn.deferral, core.turn.lock:
            core.check_open()
            identity = core.dictionary.pin(stream)
            batches = read_source(
                source.location,
                stream,
                core.dictionary,
                source.options if given is None else replace(source.options, time="arrival"),
                on_bad=core.rejects.malformed,
                limits=core.limits,
                otherwise=None if otherwise is None else time_given(otherwise),
                whole=whole,
            )
        while True:
            with core.rejects.heard(refuse):
                batch = next(batches, None)
                if batch is None:
                    with core.turn.deferral, core.turn.lock:
                        core.end()
                    return
                if given is not None:
                    times = np.full(len(batch), given[1], dtype=np.int64)
                    batch = replace(batch, clock=given[0], time=times)
                gone = 0
                with core.turn.deferral, core.turn.lock:
                    core.check_open()
                    core.do(partial(core.dispatcher.arrive, identity, batch))
            yield len(batch) - gone


#: What happened to one stream: a batch of its events, or None when it has ended, or IDLE.
Step = tuple[int, EventBatch | object | None]


def in_turn(
    sources: Mapping[int, Iterator[EventBatch]], newest: dict[int, int] | None = None
) -> Generator[Step, None, None]:
    """Yield batches of several sources, always from the source that is furthest behind in time.

    Sources are keyed by their stream; each ends with a ``None``. SourceReading waits for the source it needs.
    ``newest``: for each stream, the latest time of events that were read before.
    """
    newest = dict.fromkeys(sources, BEGINNING) if newest is None else newest
    while newest:
        stream = min(newest, key=newest.__getitem__)
        batch = next(sources[stream], None)
        if batch is None:
            del newest[stream]
        elif len(batch):
            newest[stream] = max(newest[stream], int(batch.time.max()))
        yield stream, batch


class _ReaderThread:
    """A source read by a thread of its own, a few batches ahead."""

    def __init__(self, source: Iterator[EventBatch]) -> None:
        self._source = source
        self._ready: queue.Queue[EventBatch | BaseException | None] = queue.Queue(maxsize=4)
        self._is_over = threading.Event()
        self.waiting_since = time.monotonic()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        last: BaseException | None = None
        try:
            for batch in self._source:
                self._put(batch)
                if self._is_over.is_set():
                    break
        except BaseException as error:  # raised again in the reading thread
            last = error
        finally:
            close(self._source)
        self._put(last)

    def _put(self, item: EventBatch | BaseException | None) -> None:
        while not self._is_over.is_set():
            with suppress(queue.Full):
                self._ready.put(item, timeout=0.1)
                return

    def take(self, patience: float) -> EventBatch | None:
        """Return the next batch, None at the end; ``queue.Empty`` if none comes within ``patience`` s."""
        item = self._ready.get(timeout=patience) if patience else self._ready.get_nowait()
        if not isinstance(item, EventBatch) or len(item):
            self.waiting_since = time.monotonic()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """End the thread: of a live source at once, of a file or a pipe after the current read."""
        self._is_over.set()
        if isinstance(self._source, Live):
            self._source.close()
            self._thread.join()


def close(source: Iterator[EventBatch]) -> None:
    """End a source that is no longer read, and close what it has opened."""
    if isinstance(source, Live | Generator):
        with suppress(ValueError):  # a thread waits inside for a pipe or a file, and ends it then
            source.close()


#: Marks a stream that has gone idle, until its next batch.
IDLE = object()


def with_idle(
    sources: Mapping[int, Iterator[EventBatch]], idle: timedelta, *, beats: bool
) -> Generator[Step, None, None]:
    """Do ``in_turn``, but a source without events for ``idle`` does not hold the others back.

    For such a source, ``(stream, IDLE)`` is yielded once, or with ``beats`` repeatedly, until its next batch.
    """
    limit = idle.total_seconds()
    readers = {stream: _ReaderThread(source) for stream, source in sources.items()}
    newest = dict.fromkeys(sources, BEGINNING)
    resting: set[int] = set()
    try:
        while newest:
            # Idle streams are polled without waiting; among the others, the one furthest behind is read.
            active = [stream for stream in newest if stream not in resting]
            turn = [*resting, min(active, key=newest.__getitem__)] if active else list(resting)
            for stream in turn:
                reader = readers[stream]
                patience = 0.0 if stream in resting and active else 0.05
                try:
                    batch = reader.take(patience)
                except queue.Empty:
                    if stream not in resting and time.monotonic() - reader.waiting_since >= limit:
                        resting.add(stream)
                        yield stream, IDLE
                    elif beats and stream in resting:
                        yield stream, IDLE
                    continue
                if batch is None or len(batch):
                    resting.discard(stream)
                if batch is None:
                    del newest[stream]
                elif len(batch):
                    newest[stream] = max(newest[stream], int(batch.time.max()))
                yield stream, batch
    finally:
        for reader in readers.values():
            reader.close()


class WallClock:
    """The times of idle streams: they advance from the newest events at the pace of a clock in seconds."""

    def __init__(self, now: Callable[[], float], lateness: timedelta) -> None:
        self._now = now
        self._lateness = lateness
        # Per stream, its newest time, and when that arrived.
        self._seen: dict[int, tuple[Clock, int, float]] = {}

    def saw(self, stream: int, batch: EventBatch) -> None:
        """Record that a stream brought events."""
        newest = int(batch.time.max())
        before = self._seen.get(stream)
        if before is None or newest >= before[1]:
            self._seen[stream] = batch.clock, newest, self._now()

    def time(self, stream: int) -> tuple[Clock, int] | None:
        """Return the time before which an idle stream's events are late; None if it had no event yet."""
        if stream not in self._seen:
            return None
        clock, newest, at = self._seen[stream]
        gone = timedelta(seconds=max(0.0, self._now() - at))
        return clock, max(clock.least, newest + (gone - self._lateness) // clock.unit)
