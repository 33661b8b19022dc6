"""The engine for asyncio: every call is awaited, and matches arrive as they are found.

A thread runs an engine's calls in order, so that the event loop never waits. No asyncio task runs in the
background, so that an event loop may end at any time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final, Generic, Self, TypeVar
from weakref import WeakSet, finalize

from spaseq.engine.arguments import EventGraph, GivenEvent, GivenTime, GraphName, StreamName
from spaseq.engine.engine import Engine
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.reading import Source
from spaseq.errors import EngineError
from spaseq.language.syntax import Query
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.batch import Match, MatchBatch, view
from spaseq.why.diagnosis import Diagnosis

T = TypeVar("T")

#: The most matches that are taken from the engine at once; the others still count for its limits.
_AT_ONCE: Final = 1_024


class AsyncEngine:
    """An ``Engine`` with awaitable calls; a thread of its own runs them one after the other.

    Do not use ``engine`` directly, except inside ``call``. Each ``await`` returns when the call is done,
    which gives producers backpressure, and raises what the call raises. A call that is cancelled before its
    turn does nothing; a call that has begun is completed.

    >>> import asyncio
    >>> async def falls() -> list[object]:
    ...     async with AsyncEngine() as engine:
    ...         handle = await engine.register('''
    ...             SELECT ?x WITHIN 10 SECONDS FROM STREAM S <http://example.org/s>
    ...             WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example.org/v> 1 } }''')
    ...         await engine.push("http://example.org/s", "<urn:a> <http://example.org/v> 1 .", 7)
    ...     return [match.start async for match in handle]
    >>> asyncio.run(falls())
    [7]
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self._engine = engine or Engine()
        self._handles: WeakSet[AsyncHandle] = WeakSet()
        self._worker = Worker(partial(_bring_up_to_date, self._engine, self._handles))
        finalize(self, self._worker.end)

    @property
    def kb(self) -> KnowledgeBase:
        """The background graphs as they are now."""
        return self._engine.kb

    # --- the calls of an engine -------------------------------------------------------------------

    async def register(
        self,
        query: Query | str,
        *,
        name: str | None = None,
        replace: bool = False,
        latency: timedelta | None = None,
        weight: float = 1.0,
    ) -> AsyncHandle:
        """Add a query; it sees the events from now on. See ``Engine.register``."""

        def register(engine: Engine) -> AsyncHandle:
            found = engine.register(query, name=name, replace=replace, latency=latency, weight=weight)
            return self._of(found)

        return await self.call(register, undo=lambda handle: handle.handle.cancel())

    async def queries(self) -> dict[str, AsyncHandle]:
        """Return the queries registered under a name, by name; with a ``state``, also its queries."""
        return await self.call(
            lambda engine: {name: self._of(handle) for name, handle in engine.queries.items()}
        )

    async def commit(self) -> None:
        """Make all that has happened so far part of the engine's ``state``. See ``Engine.commit``."""
        await self.call(Engine.commit)

    async def push(
        self, stream: StreamName, graph: EventGraph, time: GivenTime, name: GraphName = None
    ) -> None:
        """Add one event. See ``Engine.push``."""
        await self.call(lambda engine: engine.push(stream, graph, time, name))

    async def push_many(
        self,
        stream: StreamName,
        events: Iterable[GivenEvent],
    ) -> None:
        """Add events of a stream, faster than one by one. See ``Engine.push_many``."""
        await self.call(lambda engine: engine.push_many(stream, events))

    async def advance(self, time: GivenTime, stream: StreamName | None = None) -> None:
        """Declare that no event before ``time`` will come. See ``Engine.advance``."""
        await self.call(lambda engine: engine.advance(time, stream))

    async def feed(self, *sources: Source) -> None:
        """Read sources to their end, while other calls go on. See ``Engine.feed``.

        If cancelled, it stops after the current batch, or at once for live sources. A read that waits does
        not delay this.
        """

        def read() -> None:
            for _ in steps:
                pass

        steps = await self.call(lambda engine: engine.pull(*sources))
        reader = Worker(_nothing)
        try:
            await reader.awaited(read)
        finally:
            steps.close()
            reader.end()

    async def close(self) -> None:
        """End all windows, as no event will come. The matches found can still be taken."""
        await self._end(Engine.close)

    async def abandon(self) -> None:
        """Close the engine as it is: matches that wait for a window's end are not delivered."""
        await self._end(Engine.abandon)

    async def call(self, do: Callable[[Engine], T], *, undo: Callable[[T], object] | None = None) -> T:
        """Call ``do`` with the engine in its thread, after all earlier calls; return the result.

        If the awaiting task was cancelled meanwhile, ``undo`` is called there with the result.
        """
        return await self._worker.awaited(lambda: do(self._engine), undo)

    def _of(self, handle: Handle) -> AsyncHandle:
        """Return the ``AsyncHandle`` of a handle; in the engine's thread."""
        found = next((known for known in list(self._handles) if known.handle is handle), None)
        if found is None:
            found = AsyncHandle(handle, self._worker)
            self._handles.add(found)
        return found

    async def _end(self, end: Callable[[Engine], None]) -> None:
        def do(engine: Engine) -> None:
            try:
                end(engine)
            finally:
                self._worker.is_over = True
                for handle in list(self._handles):
                    handle.look()

        try:
            await self.call(do)
        finally:
            self._worker.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await (self.close() if kind is None else self.abandon())


class AsyncHandle(AsyncIterator[Match]):
    """A query in an ``AsyncEngine``, and its matches: ``async for match in handle``.

    Each match comes once, in the order of delivery, as soon as it is found, until the query or the engine
    ends. If several tasks wait, each match goes to one of them; a match for a cancelled task goes to the next
    one. If the query has an ``error``, it is raised after the last match. While no task waits, matches stay
    in the engine and count against its ``Limits``.
    """

    def __init__(self, handle: Handle, worker: Worker) -> None:
        #: The engine's own handle, for use inside ``AsyncEngine.call``.
        self.handle = handle
        self._worker = worker
        self._lock = threading.Lock()
        # Batches taken from the engine; of the first one, the matches from number ``_at`` on.
        self._kept: deque[MatchBatch] = deque()
        self._at = 0
        self._over = False
        self._error: BaseException | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._is_due = False
        handle.on_found = self._found

    @property
    def name(self) -> str:
        """The query's name in messages."""
        return self.handle.name

    @property
    def query(self) -> Query:
        """The query, as prepared."""
        return self.handle.query

    @property
    def is_awaited(self) -> bool:
        """Whether a task waits for a match."""
        return bool(self._waiting)

    async def __anext__(self) -> Match:
        while (taken := self._take(1)) is None:
            await self._more()
        batch, at, _ = taken
        return view(batch, at)

    def batches(self, max_rows: int = 65_536) -> AsyncIterator[MatchBatch]:
        """Return the matches in batches of 1 to ``max_rows``. A batch does not wait until it is full.

        Raises EngineError if ``max_rows`` is below 1.
        """
        if max_rows < 1:
            raise EngineError(f"max_rows={max_rows}: a batch has a match at least")
        return _Batches(self, max_rows)

    async def next_batch(self, max_rows: int) -> MatchBatch:
        """Return the next matches, at least one. Raises ``StopAsyncIteration`` at the end."""
        while (taken := self._take(max_rows)) is None:
            await self._more()
        batch, begin, end = taken
        return batch.part(begin, end)

    async def stats(self) -> Stats:
        """Return the query's counts."""
        return await self._worker.awaited(lambda: self.handle.stats)

    async def why(self, seconds: float = 3.0) -> Diagnosis:
        """Return why the query has found no match. See ``Handle.why``. Other calls of the engine wait
        meanwhile.
        """
        return await self._worker.awaited(lambda: self.handle.why(seconds))

    async def cancel(self) -> None:
        """Remove the query from the engine; the matches found can still be taken."""

        def cancel() -> None:
            self.handle.cancel()
            self.look()

        await self._worker.awaited(cancel)

    # --- inside -------------------------------------------------------------------------------

    def _take(self, most: int) -> tuple[MatchBatch, int, int] | None:
        """Return a batch and the range in it of at most ``most`` matches for the caller; None if there is
        none.
        """
        with self._lock:
            if not self._kept:
                return None
            batch, begin = self._kept[0], self._at
            end = self._at = min(begin + most, len(batch))
            if end == len(batch):
                self._kept.popleft()
                self._at = 0
        return batch, begin, end

    async def _more(self) -> None:
        """Wait until there may be a match. Raises ``StopAsyncIteration`` or the error at the end."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._kept:
                return
            if self._over:
                raise StopAsyncIteration if self._error is None else self._error.with_traceback(None)
            self._waiting.append(waiting)
            is_due, self._is_due = self._is_due, True
        try:
            if not is_due:
                self._worker.put(self.look)
            await waiting
        finally:
            with self._lock:
                self._waiting.remove(waiting)

    def _found(self) -> None:
        """Note that there are matches. The engine calls this during its turn, in any thread."""
        with self._lock:
            if not self._waiting or self._is_due:
                return
            self._is_due = True
        self._worker.put(self.look)

    def look(self) -> None:
        """Take matches if a task waits, and wake the tasks that wait; in the engine's thread."""
        with self._lock:
            self._is_due = False
            if not self._waiting:
                return
        batch: MatchBatch | None = None
        error: BaseException | None = None
        is_over = False
        if not self._kept:
            try:
                batch = next(self.handle.batches(_AT_ONCE), None)
                is_over = batch is None and (self.handle.done or self._worker.is_over)
            except BaseException as failed:  # raised in the waiting task
                is_over, error = True, failed
        with self._lock:
            if batch is not None:
                self._kept.append(batch)
            self._over, self._error = is_over, error
            woken = list(self._waiting) if self._kept or is_over else []
        for waiting in woken:
            tell(waiting, partial(waiting.set_result, None))


class _Batches(AsyncIterator[MatchBatch]):
    """The matches of a handle in batches. Not an async generator, which must not be left unfinished."""

    def __init__(self, handle: AsyncHandle, most: int) -> None:
        self._handle = handle
        self._most = most

    async def __anext__(self) -> MatchBatch:
        return await self._handle.next_batch(self._most)


def _bring_up_to_date(engine: Engine, handles: WeakSet[AsyncHandle]) -> None:
    """Process pushed events if a task waits for their matches."""
    if engine.turn.is_behind and any(handle.is_awaited for handle in list(handles)):
        quietly(engine.turn.flush)


def _nothing() -> None:
    """Do nothing: a reader needs nothing between its calls."""


_LOG = logging.getLogger(__name__)


class Worker:
    """A daemon thread that runs calls in order. It is started when needed, and runs until ``end``.

    ``idle`` is called whenever the queue is empty. ``is_over``: the engine is closed. Exceptions of a call or
    of ``idle`` are logged, and the thread continues. If the thread dies nevertheless, another one replaces
    it.
    """

    def __init__(self, idle: Callable[[], None]) -> None:
        self.is_over = False
        self._idle = idle
        self._changed = threading.Condition()
        self._calls: deque[Callable[[], None]] = deque()
        self._is_running = self._is_ending = False

    def put(self, do: Callable[[], None]) -> None:
        """Queue a call, which must not raise. After ``end``, too: then the thread ends after it."""
        with self._changed:
            self._calls.append(do)
            if self._is_running:
                self._changed.notify()
            else:
                self._start()

    def end(self) -> None:
        """Let the thread end after the calls that are queued."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()

    async def awaited(self, do: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """Return the result of a call when its turn has come. See ``AsyncEngine.call``."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        call = _Call(do, undo, future, self)
        self.put(call)
        try:
            return await future
        except asyncio.CancelledError:
            with self._changed, suppress(ValueError):  # it has begun
                self._calls.remove(call)
            raise

    def _start(self) -> None:
        """Begin another thread. Must be called with ``_changed`` held."""
        threading.Thread(target=self._run, name="spaseq engine", daemon=True).start()
        self._is_running = True

    def _run(self) -> None:
        is_ended = False
        try:
            while not is_ended:
                is_ended = self._do_next()
        finally:
            if not is_ended:  # the error could not even be logged
                with self._changed:
                    self._is_running = False
                    if self._calls:
                        self._start()

    def _do_next(self) -> bool:
        """Do the next call; return whether this was the last one."""
        with self._changed:
            while not self._calls:
                if self._is_ending:
                    self._is_running = False
                    return True
                self._changed.wait()
            do = self._calls.popleft()
        try:
            do()
        except BaseException as error:
            failed(error)
            if isinstance(do, _Call):
                do.fail(error)
        del do  # it may hold the last reference to the object that ends this thread
        if not self._calls:
            try:
                self._idle()
            except BaseException as error:
                failed(error)
        return False


class _Call(Generic[T]):
    """A call that runs in a worker's thread and is awaited in an event loop."""

    def __init__(
        self,
        do: Callable[[], T],
        undo: Callable[[T], object] | None,
        future: asyncio.Future[T],
        worker: Worker,
    ) -> None:
        self._future = future
        self._do = do
        self._undo = undo
        self._worker = worker

    def __call__(self) -> None:
        try:
            result = self._do()
        except BaseException as error:  # raised in the caller
            self.fail(error)
        else:
            tell(self._future, partial(self._future.set_result, result), partial(self._unwanted, result))

    def fail(self, error: BaseException) -> None:
        """Tell the waiting task that there is no result, since passing it on failed."""
        tell(self._future, partial(self._future.set_exception, _awaitable(error)))

    def _unwanted(self, result: T) -> None:
        """Undo the call: the awaiting task is gone."""
        if (undo := self._undo) is not None:
            self._worker.put(lambda: quietly(lambda: undo(result)))


def tell(
    future: asyncio.Future[T], finish: Callable[[], object], unwanted: Callable[[], None] | None = None
) -> None:
    """Finish a future of another thread's loop. If it is cancelled, or the loop closed, call ``unwanted``."""

    def finished() -> None:
        if not future.done():
            finish()
        elif unwanted is not None:
            unwanted()

    try:
        future.get_loop().call_soon_threadsafe(finished)
    except RuntimeError:  # the loop is closed: no task waits for the result
        if unwanted is not None:
            unwanted()


def failed(error: BaseException) -> None:
    """Log an exception that reaches no caller. The thread goes on."""
    with suppress(Exception):
        _LOG.error("a call of the engine's thread failed", exc_info=error)


def _awaitable(error: BaseException) -> BaseException:
    """Return an exception that a future accepts: StopIteration becomes a RuntimeError, as in a generator."""
    if not isinstance(error, StopIteration):
        return error
    raised = RuntimeError("StopIteration was raised in the engine's thread")
    raised.__cause__ = error
    return raised


def quietly(do: Callable[[], object]) -> None:
    """Run a call without a task that awaits its result; ignore its errors."""
    with suppress(Exception):
        do()
