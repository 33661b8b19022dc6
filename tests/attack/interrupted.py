"""Programs that SIGINT interrupts, each run by ``test_interrupts.py`` in a process of its own.

python -m tests.attack.interrupted PROGRAM [NUMBER]

Python calls a signal's handler where a function begins, when one of C returns, and in loops. A profiler is
called in the first two of these places, so that it can send SIGINT at a call that is chosen by its number.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import spaseq
from spaseq import AsyncEngine, Engine, Handle, Match, Source, SourceOptions
from spaseq.errors import SpaseqError

PACKAGE = Path(spaseq.__file__).parent
STREAM = "http://example.org/s"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
EVENTS = 24


def query(sequence: str, condition: str = "", more: str = "", window: int = 9) -> str:
    kinds = "abc"[: 2 + ("C" in sequence)]
    gpms = " ".join(
        f"DEFINE GPM {kind.upper()} ON S {{ ?x <urn:{kind}> ?{kind} {condition * (kind == 'a')} }}"
        for kind in kinds
    )
    within = f"WITHIN {window} SECONDS SLIDING FROM STREAM S <{STREAM}>"
    return f"SELECT ?x {within} WHERE {{ SEQ({sequence}) {gpms} }}{more}"


SKIPPING = " AFTER MATCH SKIP PAST LAST EVENT"
#: Sets of queries: of one, unlike ones, with a table of their constants, equal ones, with a common prefix.
QUERIES = (
    (query("A ; B"),),
    (query("A ; B"), query("A ; !C ; B"), query("A : B+"), query("ALL(A, B)")),
    tuple(query("A ; B", f"FILTER(?a > {least})") for least in (-1, 2, 5, 5)),
    (query("A ; B"),) * 3,
    tuple(query("A : B : C", window=window) for window in (9, 12, 15)),
    (query("A ; B+ ; C", more=SKIPPING), query("A ; B+", more=SKIPPING), query("A : B")),
)


@cache
def prepared(text: str) -> spaseq.Query:
    """A query, which is read once for all the engines that it is registered with."""
    return spaseq.prepare(text)


def event(number: int) -> str:
    return f"<urn:x> <urn:{'abc'[number % 3]}> {number} ."


def lines(numbers: range) -> bytes:
    return "".join(
        f'<urn:g{n}> {TIME} "{n}"^^{INTEGER} .\n<urn:x> <urn:{"abc"[n % 3]}> "{n}"^^{INTEGER} <urn:g{n}> .\n'
        for n in numbers
    ).encode()


@dataclass
class Calls:
    """The calls in some files of the package, while something is done."""

    file: str
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        # A file that was moved would never be interrupted, and the test could not fail.
        assert any(self.file in str(path) for path in PACKAGE.rglob("*.py")), self.file

    def __call__(self, frame: FrameType, kind: str, _: Any) -> None:
        if kind in ("call", "c_return") and self.file in frame.f_code.co_filename:
            self.count += 1
            self.happened()

    def happened(self) -> None:
        """One of them, ``count`` by number."""

    def during(self, work: Callable[[], None]) -> bool:
        """Do something; return whether it was interrupted."""
        sys.setprofile(self)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


@dataclass
class AtCall(Calls):
    """An interrupt at the call of this number."""

    number: int = 0
    interrupt: Callable[[], None] = lambda: signal.raise_signal(signal.SIGINT)

    def happened(self) -> None:
        if self.count == self.number:
            sys.setprofile(None)
            self.interrupt()


Chosen = tuple[tuple[str, tuple[int, ...]], ...]


def chosen(match: Match) -> Chosen:
    return tuple((name, tuple(event.n for event in events)) for name, events in match.events.items())


@dataclass
class Run:
    """Queries in an engine, with or without a callback, and what they gave."""

    queries: tuple[str, ...]
    called_back: bool
    engine: Engine = field(default_factory=Engine)
    handles: list[Handle] = field(default_factory=list)
    found: list[list[Match]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for text in self.queries:
            mine: list[Match] = []
            self.found.append(mine)
            self.handles.append(
                self.engine.register(prepared(text), on_match=mine.append if self.called_back else None)
            )

    @property
    def left(self) -> range:
        return range(self.engine.arrived.get(STREAM, 0), EVENTS)

    def push(self) -> None:
        for number in self.left:
            self.engine.push(STREAM, event(number), number)

    def push_many(self) -> None:
        self.engine.push_many(STREAM, [(event(number), number) for number in self.left])

    def feed(self) -> None:
        self.engine.feed(Source(STREAM, BytesIO(lines(self.left)), SourceOptions(format="nq")))

    def table(self) -> None:
        """Feed a table with so many subjects that they become terms when they are read."""
        if not (numbers := list(self.left)):
            return
        subjects, kinds = [f"x{n // 2}" for n in numbers], ["abc"[n % 3] for n in numbers]
        rows = pa.table({"at": numbers, "x": subjects, "kind": kinds, "value": numbers})
        source = spaseq.table(rows, time="at", template="<urn:{x}> <urn:{kind}> ?value .")
        self.engine.feed(Source(STREAM, source))

    def each(self) -> None:
        for number in self.left:
            self.engine.push(STREAM, event(number), number)
            self.matches()

    def advance(self) -> None:
        for number in self.left:
            self.engine.push(STREAM, event(number), number)
            self.engine.advance(number)

    def matches(self) -> None:
        for handle, mine in zip(self.handles, self.found, strict=True):
            for match in handle.matches():
                mine.append(match)

    def batches(self) -> None:
        self.push()
        for handle, mine in zip(self.handles, self.found, strict=True):
            for batch in handle.batches(2):
                mine.extend(batch)

    def answers(self, rest: Callable[[Run], None]) -> Iterator[tuple[list[Chosen], bool]]:
        """What each query gave in the end, and whether it failed; ``rest`` gives the events that are left."""
        rest(self)
        for handle, mine in zip(self.handles, self.found, strict=True):
            try:
                mine += handle.matches()
            except SpaseqError:
                yield [], True
            else:
                yield list(map(chosen, mine)), handle.error is not None


WORK = (Run.push, Run.push_many, Run.feed, Run.each, Run.advance, Run.batches)


def late(times: int) -> None:
    """Interrupts while the events of tables get their subjects, with and without Python's handler."""
    for is_deferred in (True, False):
        signal.signal(signal.SIGINT, signal.default_int_handler if is_deferred else raises)
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)  # which says that queries are over
        interrupt(times, is_deferred=is_deferred, works=(Run.table,), rest=Run.table, file="spaseq/events.py")


def raises(number: int, frame: FrameType | None) -> None:
    """A handler that is not Python's, and raises at once."""
    del number, frame
    raise KeyboardInterrupt


def script(times: int) -> None:
    """No query ends, nothing is lost, nothing comes twice, and each interrupt comes out."""
    interrupt(times, is_deferred=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def handled(times: int) -> None:
    """With another handler each query is whole, or is over and says so; that handler stays."""
    signal.signal(signal.SIGINT, raises)
    warnings.simplefilter("ignore", spaseq.SpaseqWarning)  # which says that queries are over
    interrupt(times, is_deferred=False)
    assert signal.getsignal(signal.SIGINT) is raises


def interrupt(
    times: int,
    *,
    is_deferred: bool,
    works: tuple[Callable[[Run], None], ...] = WORK,
    rest: Callable[[Run], None] = Run.push,
    file: str = "spaseq/engine/",
) -> None:
    choice = random.Random(times)
    over = 0
    for _ in range(times):
        queries, work, called_back = choice.choice(QUERIES), choice.choice(works), choice.random() < 0.5
        whole = Run(queries, called_back)
        calls = Calls(file)
        calls.during(lambda: work(whole))  # noqa: B023  # at once
        expected = [found for found, _ in whole.answers(rest)]
        run = Run(queries, called_back)
        at = AtCall(file, choice.randrange(1, calls.count + 1))
        interrupted = at.during(lambda: work(run))  # noqa: B023
        where = f"{work.__name__} of {queries}, {called_back=}, call {at.number} of {calls.count}"
        assert interrupted, where
        for (given, is_over), wanted in zip(run.answers(rest), expected, strict=True):
            over += is_over
            assert is_over or given == wanted, f"{where}: {given} for {wanted}"
            assert not (is_over and is_deferred), where
    assert is_deferred or over or times < 5


def press() -> None:
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


@dataclass
class Pressing:
    """A callback that counts matches, and presses Ctrl-C at one of them."""

    at: int
    count: int = 0

    def __call__(self, match: Match) -> None:
        del match
        self.count += 1
        if self.count == self.at:
            press()


def pushed(engine: Engine, numbers: range) -> None:
    for number in numbers:
        engine.push(STREAM, event(number), number)


def replaced() -> None:
    """The handler is replaced between two turns, and inside one."""
    engine, other = Engine(), Pressing(1)
    engine.register(query("A ; B"), on_match=other)
    try:
        pushed(engine, range(9))
    except KeyboardInterrupt:
        other.at = 0
    assert not other.at
    signal.signal(signal.SIGINT, raises)
    pushed(engine, range(engine.events, 12))
    assert signal.getsignal(signal.SIGINT) is raises

    def replace(_: Match) -> None:
        signal.signal(signal.SIGINT, raises)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    engine.register(query("A : B"), on_match=replace)
    pushed(engine, range(12, 18))
    assert signal.getsignal(signal.SIGINT) is raises
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pushed(engine, range(18, 24))
    assert signal.getsignal(signal.SIGINT) is raises
    assert other.count == sum(1 for _ in expected(query("A ; B"), 24))


def expected(text: str, events: int) -> list[Match]:
    engine = Engine()
    handle = engine.register(text)
    pushed(engine, range(events))
    return list(handle.matches())


def thread() -> None:
    """An engine that only another thread uses defers nothing: the main thread is interrupted at once."""
    engine, found = Engine(), Pressing(2)
    engine.register(query("A ; B"), on_match=found)
    handlers: list[object] = []

    def work() -> None:
        for number in range(EVENTS):
            engine.push(STREAM, event(number), number)
            handlers.append(signal.getsignal(signal.SIGINT))

    worker = threading.Thread(target=work)
    try:
        worker.start()
        threading.Event().wait(60)
    except KeyboardInterrupt:
        worker.join()
    else:
        raise AssertionError("not interrupted")
    assert set(handlers) == {signal.default_int_handler}
    assert found.count == len(expected(query("A ; B"), EVENTS))


def async_engine() -> None:
    """``asyncio.run`` cancels its task, which closes the engine; then it raises."""
    engine, found, closed = Engine(), Pressing(2), []
    engine.register(query("A ; B"), on_match=found)
    pushed(engine, range(1))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    async def main() -> None:
        wrapped = AsyncEngine(engine)
        try:
            for number in range(1, EVENTS):
                await wrapped.push(STREAM, event(number), number)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            arrived = engine.arrived[STREAM]
            await wrapped.close()
            closed.append(arrived)
            raise

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    assert found.count == len(expected(query("A ; B"), closed[0]))


def async_plain() -> None:
    """An ``Engine`` in ``asyncio.run``: the turn is done to its end, and the task is cancelled."""
    engine, found, cancelled = Engine(), Pressing(2), []
    handle = engine.register(query("A ; B"), on_match=found)

    async def main() -> None:
        try:
            for number in range(EVENTS):
                engine.push(STREAM, event(number), number)
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            cancelled.append(engine.events)
            raise

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    assert 0 < cancelled[0] < EVENTS
    pushed(engine, range(cancelled[0], EVENTS))
    assert handle.error is None
    assert found.count == len(expected(query("A ; B"), EVENTS))


def web_server() -> None:
    """Uvicorn shuts down as ever, and the engine is whole."""
    import uvicorn

    engine, found, ended = Engine(), Pressing(2), []
    handle = engine.register(query("A ; B"), on_match=found)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
                pushed(engine, range(EVENTS // 2))
            else:
                pushed(engine, range(EVENTS // 2, EVENTS))
                ended.append(engine.events)
                await send({"type": "lifespan.shutdown.complete"})
                return

    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="error", lifespan="on"))
    with suppress(KeyboardInterrupt):
        server.run()
    assert ended == [EVENTS]
    assert handle.error is None
    assert found.count == len(expected(query("A ; B"), EVENTS))


def spark(times: int) -> None:
    """PySpark's handler stays: it cancels jobs and raises. Each query is whole, or is over and says so."""
    from pyspark import SparkConf, SparkContext

    settings = [("spark.ui.enabled", "false"), ("spark.driver.bindAddress", "127.0.0.1")]
    context = SparkContext(master="local[1]", conf=SparkConf().setAll(settings))
    handler = signal.getsignal(signal.SIGINT)
    assert handler is not signal.default_int_handler
    warnings.simplefilter("ignore", spaseq.SpaseqWarning)  # which says that queries are over
    engine, found = Engine(), Pressing(2)
    handle = engine.register(query("A ; B"), on_match=found)
    with suppress(KeyboardInterrupt):  # from the callback: no query ends by that
        pushed(engine, range(EVENTS))
    assert 0 < engine.events < EVENTS
    pushed(engine, range(engine.events, EVENTS))
    assert handle.error is None
    assert found.count == len(expected(query("A ; B"), EVENTS))
    interrupt(times, is_deferred=False)
    assert signal.getsignal(signal.SIGINT) is handler
    assert context.parallelize([1, 2, 3], 1).sum() == 6
    context.stop()


CELLS = (
    """
from tests.attack.interrupted import EVENTS, Engine, Pressing, expected, pushed, query
engine, found = Engine(), Pressing(2)
handle = engine.register(query("A ; B"), on_match=found)
pushed(engine, range(EVENTS))
""",
    """
pushed(engine, range(engine.events, EVENTS))
assert handle.error is None
assert found.count == len(expected(query("A ; B"), EVENTS))
""",
)


def notebook() -> None:
    """The first cell is interrupted; the second one goes on with the engine."""
    from jupyter_client.manager import start_new_kernel  # type: ignore[import-not-found]

    manager, client = start_new_kernel(kernel_name="python3")
    cells = (f"import sys\nsys.path[:] = {[os.getcwd(), *sys.path]}{CELLS[0]}", CELLS[1])
    try:
        replies = [client.execute_interactive(cell, timeout=120)["content"] for cell in cells]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert [reply["status"] for reply in replies] == ["error", "ok"], replies
    assert replies[0]["ename"] == "KeyboardInterrupt"


def twice() -> None:
    """A second interrupt does not wait: the callback's call ends, its error comes out as the turn ends."""
    engine, steps = Engine(), []

    def found(_: Match) -> None:
        steps.append("begun")
        press()
        steps.append("noted")
        press()
        steps.append("never")

    handle = engine.register(query("A ; B"), on_match=found)
    try:
        pushed(engine, range(5))
    except KeyboardInterrupt:
        steps.append("raised")
    assert steps == ["begun", "noted", "raised"]
    assert handle.error is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def flood() -> None:
    """Of the matches of one event, those behind the interrupt come with the next call, each once."""
    engine, found = Engine(), Pressing(10)
    engine.register(query("A ; B", window=9_000), on_match=found)
    engine.push_many(STREAM, [(f"<urn:x> <urn:a> {n} .", n) for n in range(50)])
    with suppress(KeyboardInterrupt):
        engine.push(STREAM, "<urn:x> <urn:b> 1 .", 50)
    assert found.count == 10
    engine.advance(51)
    assert found.count == 50


def durable() -> None:
    """What an interrupt left is part of the next commit, and no match comes twice."""
    path = Path("state")
    engine, found = Engine(state=path, commit_every=None), Pressing(10)
    engine.register(query("A ; B", window=9_000), on_match=found, name="q")
    engine.push_many(STREAM, [(f"<urn:x> <urn:a> {n} .", n) for n in range(50)])
    with suppress(KeyboardInterrupt):
        engine.push(STREAM, "<urn:x> <urn:b> 1 .", 50)
    assert found.count == 10
    engine.commit()
    assert found.count == 50
    engine.abandon()
    with Engine(state=path) as again:
        assert list(again.queries["q"].matches()) == []


def registering(times: int) -> None:
    """A query whose registration is interrupted is not there, or its handle says that it is cancelled."""
    choice = random.Random(times)
    texts = QUERIES[choice.randrange(len(QUERIES))]
    calls = Calls("spaseq/engine/")

    def register_all() -> None:
        Run(texts, called_back=False)

    calls.during(register_all)
    for _ in range(times):
        engine = Engine()
        handles: list[Handle] = []

        def work() -> None:
            for text in texts[len(handles) :]:  # noqa: B023
                handles.append(engine.register(text))  # noqa: B023

        AtCall("spaseq/engine/", choice.randrange(1, calls.count)).during(work)
        work()
        pushed(engine, range(EVENTS))
        assert [len(list(handle.matches())) for handle in handles] == [
            len(expected(text, EVENTS)) for text in texts
        ]
        assert engine._dispatcher.live == len(texts)


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(int, sys.argv[2:]))
