"""Sources that an engine reads: side by side to their end, or each as if its events were pushed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from spaseq.connect import Live, LiveSource, Location, open_source, resolved
from spaseq.engine.given import GivenTime, StreamName, stream_iri, time_given
from spaseq.engine.parts.core import Core
from spaseq.engine.parts.pull import IDLE, WallClock, close, in_turn, with_idle
from spaseq.engine.pipelines.order import BEGINNING
from spaseq.errors import EngineError
from spaseq.events import EventBatch
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources import open_source as read_source

if TYPE_CHECKING:
    from spaseq.engine.durable.resume import Position


@dataclass(frozen=True, slots=True)
class Source:
    """A stream and where to read it.

    ``location``: a path, ``-`` for standard input, an open binary file, a table, or a live source, which may
    be given as its URL (see ``spaseq.connect``).
    """

    stream: StreamName
    location: Location
    options: SourceOptions = field(default_factory=SourceOptions)


class Reading:
    """What an engine does with sources. ``idle`` and ``wall_clock`` as for an ``Engine``."""

    def __init__(self, core: Core, idle: timedelta | None, wall_clock: WallClock | None) -> None:
        self._core = core
        self._idle, self._wall_clock = idle, wall_clock

    # --- side by side -------------------------------------------------------------------------

    def pull(self, sources: Sequence[Source]) -> Iterator[None]:
        """See ``Engine.pull``."""
        core = self._core
        core.turn.check()
        with core.turn.lock:
            core.check_open()
            if core.is_working:
                raise EngineError("sources cannot be read inside a callback: push their events")
            core.catch_up()
            core.turn.used = True  # readers of a process are not in its children
            opened: dict[int, Iterator[EventBatch]] = {}
            for source in sources:
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
        return self._pull(opened)

    def _open(self, location: Location, options: SourceOptions, stream: ox.NamedNode) -> Iterator[EventBatch]:
        """The events of a source that are new."""
        core = self._core
        known: Position | None = None
        refuse: Callable[[BadEvent], None] = core.rejects.malformed
        if core.state is not None:
            from spaseq.engine.durable.resume import Position, again, check

            check(location)
            where = str(location) if isinstance(location, str | Path) else "table"
            known = core.state.positions.setdefault(stream.value, Position(where))
            refuse = again(refuse, known.bad)
        batches = open_source(
            location,
            stream,
            core.dictionary,
            options,
            on_bad=refuse,
            limits=core.limits,
            idle=None if self._wall_clock is None else self._idle,
        )
        if known is None or not known.events:
            return batches
        from spaseq.engine.durable.resume import resumed

        return resumed(batches, replace(known))

    def _pull(self, opened: Mapping[int, Iterator[EventBatch]]) -> Iterator[None]:
        core = self._core
        newest = dict.fromkeys(opened, BEGINNING)
        with core.turn.lock:
            for identity in opened:
                core.flow.hold(identity, True)
                if core.state is not None:
                    position = core.state.positions[core.dictionary.term(identity).value]
                    newest[identity] = BEGINNING if position.newest is None else position.newest
        beats = self._wall_clock is not None
        steps = in_turn(opened, newest) if self._idle is None else with_idle(opened, self._idle, beats=beats)
        try:
            for identity, batch in steps:  # which may wait, and so has no turn
                core.turn.check()
                with core.turn.lock:
                    core.check_open()
                    core.do(partial(self._step, identity, batch))
                    core.commit_if_due()
                yield
                source = opened[identity]
                if isinstance(source, Live) and isinstance(batch, EventBatch):
                    source.settle()  # its matches were taken, too
                if core.flow.is_over:
                    return
        finally:
            # Whatever ended it: no thread and no connection outlives the reading.
            steps.close()
            for source in opened.values():
                close(source)

    def _step(self, stream: int, batch: EventBatch | object | None) -> None:
        """What a source did: it brought events, went idle or ended."""
        core, clock = self._core, self._wall_clock
        core.flow.hold(stream, isinstance(batch, EventBatch))
        if isinstance(batch, EventBatch):
            if core.state is not None:
                core.state.positions[core.dictionary.term(stream).value].took(batch)
            if clock is not None and len(batch):
                clock.saw(stream, batch)
            core.flow.arrive(stream, batch)
        elif clock is not None and batch is IDLE and (time := clock.time(stream)) is not None:
            core.flow.promise(*time, stream)
        else:
            core.flow.move()

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

        with core.turn.lock:
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
                    return
                if given is not None:
                    times = np.full(len(batch), given[1], dtype=np.int64)
                    batch = replace(batch, clock=given[0], time=times)
                gone = 0
                with core.turn.lock:
                    core.check_open()
                    core.do(partial(core.flow.arrive, identity, batch))
                    core.commit_if_due()
            yield len(batch) - gone
