"""The engine for asyncio: every call is awaited, and matches come as they are found.

One thread does what is asked of an engine, in the order of asking, so that the event loop never waits. There
is no asyncio task behind it: what nobody awaits is not there, and an event loop may end whenever it likes.
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
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match, view
from spaseq.why.diagnosis import Diagnosis

T = TypeVar("T")

#: So many matches are taken from the engine at once; the others stay where its limits are.
_AT_ONCE: Final = 1_024


class AsyncEngine:
    """An ``Engine`` whose calls are awaited; a thread of its own does them, one after the other.

    ``engine`` is not to be used beside it, except inside ``call``. Each call waits until it is done, which is
    how a producer is kept from being faster than the engine; what it raises comes out of the ``await``. One
    that is cancelled before its turn is not done at all; one that has begun is done to its end.

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

    # --- what an engine does ------------------------------------------------------------------

    async def register(
        self,
        query: Query | str,
        *,
        name: str | None = None,
        replace: bool = False,
        latency: timedelta | None = None,
        weight: float = 1.0,
    ) -> AsyncHandle:
        """Adds a query; it sees the events from now on. See ``Engine.register``."""

        def register(engine: Engine) -> AsyncHandle:
            found = engine.register(query, name=name, replace=replace, latency=latency, weight=weight)
            return self._of(found)

        return await self.call(register, undo=lambda handle: handle.handle.cancel())

    async def queries(self) -> dict[str, AsyncHandle]:
        """The queries that were registered under a name, by these; of a ``state`` those that it knows."""
        return await self.call(
            lambda engine: {name: self._of(handle) for name, handle in engine.queries.items()}
        )

    async def commit(self) -> None:
        """Makes all that happened so far part of the engine's ``state``. See ``Engine.commit``."""
        await self.call(Engine.commit)

    async def push(
        self, stream: StreamName, graph: EventGraph, time: GivenTime, name: GraphName = None
    ) -> None:
        """Adds one event. See ``Engine.push``."""
        await self.call(lambda engine: engine.push(stream, graph, time, name))

    async def push_many(
        self,
        stream: StreamName,
        events: Iterable[GivenEvent],
    ) -> None:
        """Adds events of a stream, which costs less than one by one. See ``Engine.push_many``."""
        await self.call(lambda engine: engine.push_many(stream, events))

    async def advance(self, time: GivenTime, stream: StreamName | None = None) -> None:
        """Says that no event before ``time`` will come. See ``Engine.advance``."""
        await self.call(lambda engine: engine.advance(time, stream))

    async def feed(self, *sources: Source) -> None:
        """Reads sources to their end, beside the other calls. See ``Engine.feed``.

        Cancelled, it ends after the batch in hand, live sources at once; a read that waits holds nobody up.
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
        """Says that no event will come: ends every window. What was found can still be taken."""
        await self._end(Engine.close)

    async def abandon(self) -> None:
        """Closes the engine as it is: what waits for a window's end is not delivered."""
        await self._end(Engine.abandon)

    async def call(self, do: Callable[[Engine], T], *, undo: Callable[[T], object] | None = None) -> T:
        """Does something with the engine in its thread, when what was asked before is done.

        ``undo`` is called there with the result if nobody waits for that any more.
        """
        return await self._worker.awaited(lambda: do(self._engine), undo)

    def _of(self, handle: Handle) -> AsyncHandle:
        """The one that takes a handle's matches; in the engine's thread."""
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

    Each match comes once, in the order of delivery, as soon as it is found; the end is that of the query, or
    of the engine. Of several tasks that wait for matches each gets some. What a cancelled task was about to
    get the next one gets. Raises ``error`` after the last match if there is one. As long as nobody waits,
    matches stay in the engine, and count against its ``Limits``.
    """

    def __init__(self, handle: Handle, worker: Worker) -> None:
        #: The engine's own handle, for use inside ``AsyncEngine.call``.
        self.handle = handle
        self._worker = worker
        self._lock = threading.Lock()
        # Taken from the engine; of the first batch those from number ``_at`` on.
        self._kept: deque[MatchBatch] = deque()
        self._at = 0
        self._over = False
        self._error: BaseException | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._is_due = False
        handle.on_found = self._found

    @property
    def name(self) -> str:
        """What messages call the query."""
        return self.handle.name

    @property
    def query(self) -> Query:
        """The query, as prepared."""
        return self.handle.query

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for a match."""
        return bool(self._waiting)

    async def __anext__(self) -> Match:
        while (taken := self._take(1)) is None:
            await self._more()
        batch, at, _ = taken
        return view(batch, at)

    def batches(self, max_rows: int = 65_536) -> AsyncIterator[MatchBatch]:
        """The same matches as columns, of so many each at most; each batch as soon as there is one.

        Raises EngineError for less than one.
        """
        if max_rows < 1:
            raise EngineError(f"max_rows={max_rows}: a batch has a match at least")
        return _Batches(self, max_rows)

    async def next_batch(self, max_rows: int) -> MatchBatch:
        """The next matches, one at least. Raises ``StopAsyncIteration`` at the end."""
        while (taken := self._take(max_rows)) is None:
            await self._more()
        batch, begin, end = taken
        return batch.part(begin, end)

    async def stats(self) -> Stats:
        """What the query has seen and found so far."""
        return await self._worker.awaited(lambda: self.handle.stats)

    async def why(self, seconds: float = 3.0) -> Diagnosis:
        """Why the query has found no match. See ``Handle.why``; the engine waits meanwhile."""
        return await self._worker.awaited(lambda: self.handle.why(seconds))

    async def cancel(self) -> None:
        """Takes the query out of the engine; what it has found can still be taken."""

        def cancel() -> None:
            self.handle.cancel()
            self.look()

        await self._worker.awaited(cancel)

    # --- inside -------------------------------------------------------------------------------

    def _take(self, most: int) -> tuple[MatchBatch, int, int] | None:
        """Matches for the caller: a batch, and which of it, so many at most; None if there are none."""
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
        """Waits until there may be a match; raises ``StopAsyncIteration`` or the error at the end."""
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
        """There is something, as the engine says in the middle of its turn, whichever thread has that."""
        with self._lock:
            if not self._waiting or self._is_due:
                return
            self._is_due = True
        self._worker.put(self.look)

    def look(self) -> None:
        """Takes what there is if somebody waits, and wakes who does; in the engine's thread."""
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
            except BaseException as failed:  # which is for who waits
                is_over, error = True, failed
        with self._lock:
            if batch is not None:
                self._kept.append(batch)
            self._over, self._error = is_over, error
            woken = list(self._waiting) if self._kept or is_over else []
        for waiting in woken:
            tell(waiting, partial(waiting.set_result, None))


class _Batches(AsyncIterator[MatchBatch]):
    """The matches of a handle in batches. No generator: these do not like to be left in the middle."""

    def __init__(self, handle: AsyncHandle, most: int) -> None:
        self._handle = handle
        self._most = most

    async def __anext__(self) -> MatchBatch:
        return await self._handle.next_batch(self._most)


def _bring_up_to_date(engine: Engine, handles: WeakSet[AsyncHandle]) -> None:
    """What was pushed comes to the queries, if somebody waits for what that completes."""
    if engine.turn.is_behind and any(handle.is_awaited for handle in list(handles)):
        quietly(engine.turn.flush)


def _nothing() -> None:
    """A reader has nothing to do between its calls."""


_LOG = logging.getLogger(__name__)


class Worker:
    """A daemon thread that does calls in their order; it is there when it is needed, until ``end``.

    ``idle`` is done whenever nothing else is to do. ``is_over``: its engine is closed. Whatever a call or
    ``idle`` raises is logged, and the thread goes on. If it dies nevertheless, another one takes its place.
    """

    def __init__(self, idle: Callable[[], None]) -> None:
        self.is_over = False
        self._idle = idle
        self._changed = threading.Condition()
        self._calls: deque[Callable[[], None]] = deque()
        self._is_running = self._is_ending = False

    def put(self, do: Callable[[], None]) -> None:
        """Something to be done, that raises nothing. After ``end``, too: then the thread ends with it."""
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
        """The result of something that is done when it is its turn. See ``AsyncEngine.call``."""
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
            if not is_ended:  # not even what went wrong could be logged
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
    """Something that is to be done in a worker's thread, and awaited in an event loop."""

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
        except BaseException as error:  # which is the caller's
            self.fail(error)
        else:
            tell(self._future, partial(self._future.set_result, result), partial(self._unwanted, result))

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits that there is no result, as what there was could not be told."""
        tell(self._future, partial(self._future.set_exception, _awaitable(error)))

    def _unwanted(self, result: T) -> None:
        """Whoever asked is gone."""
        if (undo := self._undo) is not None:
            self._worker.put(lambda: quietly(lambda: undo(result)))


def tell(
    future: asyncio.Future[T], finish: Callable[[], object], unwanted: Callable[[], None] | None = None
) -> None:
    """Finishes a future of another thread's loop; if it is cancelled, or the loop closed, ``unwanted``."""

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
    """Return an exception that a future takes: StopIteration becomes a RuntimeError, as in a generator."""
    if not isinstance(error, StopIteration):
        return error
    raised = RuntimeError("StopIteration was raised in the engine's thread")
    raised.__cause__ = error
    return raised


def quietly(do: Callable[[], object]) -> None:
    """Run a call whose result no task awaits; ignore its errors."""
    with suppress(Exception):
        do()
