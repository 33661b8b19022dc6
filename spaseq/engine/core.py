"""The inside of an engine: its tasks in order, one turn after the other, and its state on disk."""

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
from spaseq.errors import EngineError
from spaseq.events import BatchBuilder, Clock
from spaseq.limits import Limits
from spaseq.patterns.sharing import Sharing
from spaseq.terms.dictionary import Dictionary, Term

if TYPE_CHECKING:
    from spaseq.engine.durable.state import EngineState


#: Terms are swept only after this many new ones. (A push waits while this many are forgotten.)
_SWEEP_AFTER: Final = 10_000
#: The largest array (32 MiB minus a bit) for which glibc raises its threshold when it is freed.
_LARGE: Final = 31 << 20


@cache
def _keep_freed() -> None:
    """Make glibc keep some 62 MiB of freed memory, so that batches need not request it again.

    glibc's ``malloc`` raises its threshold to the largest array freed so far: arrays up to that size come
    from its heap, and at most twice that size stays unused at the heap's end (``mallopt(3)``,
    M_MMAP_THRESHOLD). An engine may reach that state by itself, or never. This array is never touched, so
    that it takes no memory. Other libraries are not affected.
    """
    with suppress(MemoryError):
        np.empty(_LARGE, dtype=np.int8)


class Core:
    """The engine's state that all calls go through. Its methods must be called in the turn.

    ``is_working``: a task is running, so that new tasks wait for its end. ``is_taking``: events are taken
    from an iterable, which may itself use the engine. ``contexts``: by stream, the JSON-LD context that lifts
    its rows, for the sources read so far. ``state``: what outlives the process.

    A call runs all its tasks in order, those of callbacks included; then it raises what was raised meanwhile.
    So no event and no match depends on exceptions of others. A noted interrupt leaves tasks and work that
    have not begun to the next call. An interrupt that could not be deferred ends all queries.
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
        #: The tasks to run, in order. Callbacks add to it meanwhile.
        self.tasks: deque[Callable[[], None]] = deque()
        #: Events that come before the tasks.
        self.inbox = Inbox(self.dictionary)
        #: After the inbox: events given so far to a call that still takes events.
        self.built: list[tuple[int, Clock, BatchBuilder]] = []
        # How many events callbacks have pushed since the engine was last idle.
        self._queued = 0
        self.turn.catch_up = self.catch_up
        self.state: EngineState | None = None
        self.is_working = self.is_taking = self.is_closed = self.is_closing = False

    # --- one turn -----------------------------------------------------------------------------

    def do(self, task: Callable[[], None], events: int = 1) -> None:
        """Run a task now, or inside a callback as soon as the current task is done.

        ``events``: how many events it adds.
        """
        self.perform(task, events)
        self.end()

    def perform(self, task: Callable[[], None], events: int = 1) -> None:
        """Do ``do``, but raise exceptions only at the ``end`` of the call."""
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

    def _abort(self, interrupt: BaseException) -> None:
        """End all queries: an interrupt that was not deferred left them inconsistent."""
        self.dispatcher.abort(interrupt)
        self.turn.raised.join(interrupt)

    def queue(self, task: Callable[[], None], events: int = 1) -> None:
        """Queue a callback's task; for any thread. Raises ``LimitError`` if callbacks go on pushing without
        end.
        """
        most, count = self.limits.callback_events, self._queued + events
        if most is not None and count > most:
            raise self.limits.error("callback_events", f"pushing {count} events inside callbacks of one call")
        self._queued = count
        self.tasks.append(task)

    def end(self) -> None:
        """End a call: commit if that is due, and raise the first exception since the call began."""
        if self.is_working or self.is_taking:
            return
        state = self.state
        if state is not None and state.is_due and not (self.is_closed or self.turn.deferral.is_due):
            self.perform(partial(self._commit, state, {}))
        if self.turn.raised.first is not None and (raised := self.turn.raised.take()) is not None:
            raise raised

    def _work_off(self) -> None:
        """Run the waiting tasks in order; after an interrupt, at most the first one."""
        while not self.turn.deferral.is_due:
            if not self.tasks:
                self._queued = 0
                return
            self.attempt(self.tasks.popleft())

    def attempt(self, task: Callable[[], None]) -> None:
        """Run a task; its exception is raised at the end of the call."""
        try:
            task()
        except Exception as error:
            self.turn.raised.add(error)

    def catch_up(self, *, is_asked: bool = True) -> None:
        """Process the events that have waited, unless a task is running; also deferred work if results are
        read.
        """
        inbox, dispatcher = self.inbox, self.dispatcher
        if self.is_working:
            return
        if self.built:
            self.arrive_built()
        if not self._is_behind:
            return
        pushed, arriving = inbox.size, inbox.take(dispatcher.arrivals)
        if pushed == len(arriving) == 1 and is_asked and not dispatcher.due:
            self._begin(partial(dispatcher.arrive, *arriving[0]))
            return
        dispatcher.is_asked = is_asked
        try:
            self._begin(partial(dispatcher.move, arriving))
        finally:
            dispatcher.is_asked = True

    @property
    def _is_behind(self) -> bool:
        """Whether work is deferred until results are read, or was left by an interrupt."""
        inbox = self.inbox
        return bool(inbox.events or inbox.batches or self.tasks or self.dispatcher.due)

    @property
    def waiting(self) -> int:
        """The number of events that have not arrived yet, since no result was read."""
        return self.inbox.size + sum(len(builder) for _, _, builder in self.built)

    def builder(self, stream: int, iri: ox.NamedNode, clock: Clock) -> BatchBuilder:
        """Return the builder for the next event of a call that takes several."""
        if not self.built or self.built[-1][:2] != (stream, clock):
            self.built.append((stream, clock, BatchBuilder(self.dictionary, iri, clock)))
            self.turn.is_behind = True
        return self.built[-1][2]

    def arrive_built(self) -> None:
        """Let the events arrive that such a call has been given so far."""
        built, self.built = self.built, []
        self.turn.is_behind = self._is_behind
        for stream, _, builder in built:
            if not self.is_closed:
                batch = builder.build()
                self.perform(partial(self.dispatcher.arrive, stream, batch), len(batch))

    def forget(self) -> None:
        """Forget the terms of past events, whenever there are twice as many terms as were needed."""
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

    def _commit(self, state: EngineState, outputs: Mapping[str, IO[Any]]) -> None:
        """Deliver matches that an interrupt has left, and commit."""
        with self.turn.deferral.held():
            if self.dispatcher.due:
                self.dispatcher.move()
            state.commit(outputs)

    # --- its end --------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise ``EngineError`` if the engine is closed or may not be used here."""
        self.turn.check()
        self.check_unclosed()

    def check_unclosed(self) -> None:
        """Raise ``EngineError`` if the engine is closed; for any thread."""
        if self.is_closed:
            raise EngineError("the engine is closed: make a new one")
        if self.is_closing:
            raise EngineError("the engine is being closed: nothing comes after that")

    def close(self) -> None:
        """Commit to the state, and end; see ``Engine.close``."""
        self._check_idle()
        assert self.state is not None
        try:
            with self.turn.deferral.held():
                self.perform(partial(self._commit, self.state, {}))
        finally:
            self.abandon()

    def finish(self) -> None:
        """End every window and deliver the matches; see ``Engine.finish``."""
        self._check_idle()
        with self.turn.deferral.held():
            self.perform(lambda: None)  # run waiting tasks
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
