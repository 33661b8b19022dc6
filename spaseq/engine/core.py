"""The inside of an engine: what is to be done, in order, one turn after the other, and what outlives it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import pyoxigraph as ox

from spaseq.engine.inbox import Inbox
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.engine.rejects import DeadLetters, Rejects
from spaseq.engine.turn import Turn
from spaseq.errors import EngineError, warn
from spaseq.events import BatchBuilder, Clock
from spaseq.limits import Limits
from spaseq.patterns.sharing import Sharing
from spaseq.terms.dictionary import Dictionary, Term

if TYPE_CHECKING:
    from spaseq.engine.durable.state import State


#: So many new terms are not worth looking for old ones. A push waits while that many are forgotten.
_SWEEP_AFTER: Final = 10_000
#: An array just below the most (32 MiB) up to which glibc adapts to what is freed.
_LARGE: Final = 31 << 20


@cache
def _keep_freed() -> None:
    """Has glibc keep some 62 MiB of what batches give back, so that the next one need not ask for it again.

    glibc's ``malloc`` takes arrays as large as the largest that was freed so far from its heap from then on,
    and gives back of the heap's end what is beyond twice that (``mallopt(3)``, M_MMAP_THRESHOLD). An engine
    comes there by itself, sooner or later, or never, as it happens. This array is never touched, so that it
    takes no memory; elsewhere it changes nothing.
    """
    with suppress(MemoryError):
        np.empty(_LARGE, dtype=np.int8)


class Core:
    """What all that an engine does goes through. Its methods are for who has the turn.

    ``is_working``: something is in hand, so that what comes now waits for its end. ``is_taking``: events are
    taken from an iterable, which may use the engine, too. ``contexts``: by stream, the JSON-LD context that
    lifts its rows, of the sources read so far. ``state``: what outlives the process.

    A call does all that it has to do, in order, what callbacks ask for included; then it raises what was
    raised meanwhile. So no event and no match depends on what others raise. An interrupt that is noted
    meanwhile leaves tasks and jobs that have not begun to the next call. One that could not be deferred
    ends all queries.
    """

    def __init__(
        self, limits: Limits, lateness: timedelta, dead_letters: DeadLetters | str | Path | None, strict: bool
    ) -> None:
        _keep_freed()
        self.limits = limits
        self.turn = Turn()
        self.contexts: dict[Term, Path] = {}
        self.rejects = Rejects(dead_letters, strict, self.turn)
        self.dictionary = Dictionary(limits)
        self.sharing = Sharing()
        self.dispatcher = Dispatcher(self.dictionary, self.sharing, self.rejects, self.turn, limits, lateness)
        #: What is still to be done, in order: callbacks add to it while it is worked on.
        self.tasks: deque[Callable[[], None]] = deque()
        #: What comes before them.
        self.inbox = Inbox(self.dictionary)
        #: Behind it, what a call has been given that still takes events.
        self.built: list[tuple[int, Clock, BatchBuilder]] = []
        # How many events callbacks have given since nothing was in hand.
        self._queued = 0
        self.turn.catch_up = self.catch_up
        self.state: State | None = None
        self.is_working = self.is_taking = self.is_closed = self.is_closing = False

    # --- one turn -----------------------------------------------------------------------------

    def do(self, task: Callable[[], None], events: int = 1) -> None:
        """Does something now or, inside a callback, as soon as what is in hand is done with.

        ``events``: how many it brings.
        """
        self.perform(task, events)
        self.end()

    def perform(self, task: Callable[[], None], events: int = 1) -> None:
        """As ``do``, but what is raised meanwhile comes out at the ``end`` of the call."""
        self.turn.used = True
        if self.built:
            self.arrive_built()
        if self.is_working:
            self.queue(task, events)
            return
        if self.turn.is_behind or self.tasks:
            self.catch_up()
        if self.tasks:  # an interrupt has left them
            self.tasks.append(task)
            task = self.tasks.popleft()
        self._begin(task)

    def _begin(self, task: Callable[[], None]) -> None:
        """Do a task, and then what waits, to its end; what they raise is for the end of the call."""
        self.is_working = True
        try:
            try:
                task()
            except Exception as error:
                self.turn.raised.add(error)
            if self.tasks:
                self._work_off()
            if self.dictionary.unswept > _SWEEP_AFTER:
                self.forget()
        except BaseException as interrupt:
            self._abort(interrupt)
            raise
        finally:
            self.is_working = False
        self.turn.is_behind = self._is_behind
        if self.dispatcher.jobs.failures:
            self._tell()

    def _abort(self, interrupt: BaseException) -> None:
        """End all queries: what was not deferred came in the middle of something."""
        self.dispatcher.abort(interrupt)
        self.turn.raised.join(interrupt)

    def queue(self, task: Callable[[], None], events: int = 1) -> None:
        """Something that a callback asks for; for any thread. Raises ``LimitError`` where that never ends."""
        most, count = self.limits.callback_events, self._queued + events
        if most is not None and count > most:
            raise self.limits.error("callback_events", f"pushing {count} events inside callbacks of one call")
        self._queued = count
        self.tasks.append(task)

    def end(self) -> None:
        """The end of a call: commits if that is due, and raises what was raised since the call began."""
        if self.is_working or self.is_taking:
            return
        state = self.state
        if state is not None and state.is_due and not (self.is_closed or self.turn.deferral.is_due):
            self.perform(partial(self._commit, state, {}))
        if self.turn.raised.first is not None and (raised := self.turn.raised.take()) is not None:
            raise raised

    def _work_off(self) -> None:
        """Do what waits, in its order, until an interrupt is noted."""
        while not self.turn.deferral.is_due:
            if not self.tasks:
                self._queued = 0
                return
            self.attempt(self.tasks.popleft())

    def attempt(self, task: Callable[[], None]) -> None:
        """Does something; what it raises is for the end of the call."""
        try:
            task()
        except Exception as error:
            self.turn.raised.add(error)

    def _tell(self) -> None:
        """Warns of queries that failed, where nobody will ask their handles."""
        for handle in self.dispatcher.jobs.failed():
            if not handle.is_asked:
                self.attempt(partial(warn, str(handle.error)))

    def catch_up(self, *, is_asked: bool = True) -> None:
        """What has waited arrives, unless something is in hand; all of it if somebody asks."""
        inbox, dispatcher = self.inbox, self.dispatcher
        if self.is_working:
            return
        if self.built:
            self.arrive_built()
        if not self._is_behind:
            return
        arriving, is_one = inbox.batches(dispatcher.arrived), inbox.size == 1
        inbox.events, inbox.size = [], 0
        if is_one and is_asked and not dispatcher.is_behind:
            self._begin(partial(dispatcher.arrive, *arriving[0]))
            return
        dispatcher.arriving = [*dispatcher.arriving, *arriving]
        dispatcher.jobs.is_asked = is_asked
        try:
            self._begin(dispatcher.move)
        finally:
            dispatcher.jobs.is_asked = True

    @property
    def _is_behind(self) -> bool:
        """Whether work is deferred until results are read, or was left by an interrupt."""
        dispatcher = self.dispatcher
        return bool(self.inbox.events or self.tasks or dispatcher.arriving or dispatcher.jobs.queue)

    @property
    def waiting(self) -> int:
        """How many events have not arrived yet, since nobody has asked for them."""
        return self.inbox.size + sum(len(builder) for _, _, builder in self.built)

    def builder(self, stream: int, iri: ox.NamedNode, clock: Clock) -> BatchBuilder:
        """Where the next event of a call that takes several goes to."""
        if not self.built or self.built[-1][:2] != (stream, clock):
            self.built.append((stream, clock, BatchBuilder(self.dictionary, iri, clock)))
            self.turn.is_behind = True
        return self.built[-1][2]

    def arrive_built(self) -> None:
        """What such a call has been given so far arrives."""
        built, self.built = self.built, []
        self.turn.is_behind = self._is_behind
        for stream, _, builder in built:
            if not self.is_closed:
                batch = builder.build()
                self.perform(partial(self.dispatcher.arrive, stream, batch), len(batch))

    def forget(self) -> None:
        """Forgets the terms of events that are gone, whenever there are twice as many as were needed."""
        terms = self.dictionary
        if (new := terms.unswept) > _SWEEP_AFTER and new > len(terms) // 2:
            terms.sweep()

    # --- what outlives the process --------------------------------------------------------------

    def commit(self, outputs: Mapping[str, IO[Any]]) -> None:
        """See ``Engine.commit``."""
        if self.state is None:
            raise EngineError("there is nothing to commit to: Engine(state=FILE)")
        self.check_open()
        self.do(partial(self._commit, self.state, outputs))

    def _commit(self, state: State, outputs: Mapping[str, IO[Any]]) -> None:
        """Deliver what an interrupt has left, and commit."""
        with self.turn.deferral.held():
            if self.dispatcher.is_behind:
                self.dispatcher.move()
            state.commit(outputs)

    # --- its end --------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises ``EngineError`` if nothing may come any more."""
        self.turn.check()
        self.check_unclosed()

    def check_unclosed(self) -> None:
        """The same, wherever it is called."""
        if self.is_closed:
            raise EngineError("the engine is closed: make a new one")
        if self.is_closing:
            raise EngineError("the engine is being closed: nothing comes after that")

    def close(self) -> None:
        """Commits what there is to the state, and ends; see ``Engine.close``."""
        self._check_idle()
        assert self.state is not None
        try:
            with self.turn.deferral.held():
                self.perform(partial(self._commit, self.state, {}))
        finally:
            self.abandon()

    def finish(self) -> None:
        """Ends every window, and delivers what that completes; see ``Engine.finish``."""
        self._check_idle()
        with self.turn.deferral.held():
            self.perform(lambda: None)  # what waits
            self.is_closing = True
            self._begin(self.dispatcher.close)
        self.abandon()

    def _check_idle(self) -> None:
        if self.is_working:
            raise EngineError("the engine cannot be closed inside a callback: close it after the push")

    def abandon(self) -> None:
        """See ``Engine.abandon``; for any thread, with the turn or without."""
        self.is_closed = True
        self.rejects.close()
        if self.state is not None:
            with self.turn.deferral, self.turn.lock:
                self.state.close()
