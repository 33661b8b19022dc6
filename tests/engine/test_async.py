"""``AsyncEngine``: awaited calls, matches as they come, cancellation, and loops that end early."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

import spaseq
from tests.streams import NS, events_of, letters, query

T = TypeVar("T")

#: Seconds after which a test that waits has failed.
PATIENCE = 120


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, PATIENCE))


async def push(engine: spaseq.AsyncEngine, words: str) -> None:
    for letter in letters(words):
        await engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # there is nothing that could tell
        await asyncio.sleep(0.001)


def test_matches_come_while_others_push() -> None:
    async def main() -> list[str]:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A ; B"))
            first = asyncio.ensure_future(anext(handle))
            await push(engine, "a1 b2")
            seen = [events_of(await first)]
            await push(engine, "a3 b4 a5 b6")
            seen += [events_of(await anext(handle))]
        return seen + [events_of(match) async for match in handle]

    assert run(main()) == ["a1b2", "a3b4", "a5b6"]


def test_the_end_of_the_engine_is_that_of_its_matches() -> None:
    async def main() -> list[str]:
        engine = spaseq.AsyncEngine()
        handle = await engine.register(query("A ; !B", "10 SECONDS SLIDING"))
        await push(engine, "a1 x2")
        waiting = asyncio.ensure_future(_all(handle))
        await until(lambda: handle.is_awaited)
        await engine.close()
        return await waiting

    assert run(main()) == ["a1"]


async def _all(handle: spaseq.AsyncHandle) -> list[str]:
    return [events_of(match) async for match in handle]


def test_leaving_by_an_error_delivers_nothing_more() -> None:
    async def main() -> list[str]:
        with suppress(ZeroDivisionError):
            async with spaseq.AsyncEngine() as engine:
                handle = await engine.register(query("A ; !B", "10 SECONDS SLIDING"))
                await push(engine, "a1")
                raise ZeroDivisionError
        return await _all(handle)

    assert run(main()) == []


def test_a_limit_ends_the_query_and_so_the_iteration() -> None:
    async def main() -> list[str]:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A", tail="LIMIT 2"))
            await push(engine, "a1 a2 a3")
            return await _all(handle)

    assert run(main()) == ["a1", "a2"]


def test_an_error_of_the_query_comes_after_its_matches() -> None:
    async def main() -> None:
        limits = spaseq.Limits(partial_matches=2)
        async with spaseq.AsyncEngine(spaseq.Engine(limits=limits, matcher="interpreter")) as engine:
            handle = await engine.register(query("A ; B", "100 SECONDS SLIDING"))
            await push(engine, "a1 b2")
            assert events_of(await anext(handle)) == "a1b2"
            waiting = asyncio.ensure_future(anext(handle))
            await until(lambda: handle.is_awaited)
            await push(engine, "a3 a4 a5 a6")
            with pytest.raises(spaseq.LimitError, match="partial_matches=2"):
                await waiting

    run(main())


def test_what_a_call_raises_its_caller_gets() -> None:
    async def main() -> None:
        async with spaseq.AsyncEngine() as engine:
            with pytest.raises(spaseq.QuerySyntaxError):
                await engine.register("SELECT")
            with pytest.raises(spaseq.EngineError, match="a time is"):
                await engine.push(NS + "S", "", 1.5)  # type: ignore[arg-type]
            with pytest.raises(spaseq.EngineError, match="max_rows=0"):
                (await engine.register(query("A"))).batches(0)
        with pytest.raises(spaseq.EngineError, match="closed"):
            await engine.push(NS + "S", letters("a1")[0].turtle, 1)

    run(main())


def test_batches_are_of_the_size_asked_for() -> None:
    async def main() -> list[int]:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A"))
            events = [
                (letter.turtle, letter.time) for letter in letters(" ".join(f"a{i}" for i in range(25)))
            ]
            await engine.push_many(NS + "S", events)
            await engine.advance(100)
        return [len(batch) async for batch in handle.batches(10)]

    sizes = run(main())
    assert sum(sizes) == 25
    assert max(sizes) <= 10


def test_what_a_cancelled_task_waited_for_is_not_lost() -> None:
    """However the cancellation and the delivery fall together."""

    async def main() -> list[str]:
        engine = spaseq.AsyncEngine()
        handle = await engine.register(query("A"))
        seen: list[str] = []
        for tick in range(200):
            waiting = asyncio.ensure_future(anext(handle))
            pushing = asyncio.ensure_future(push(engine, f"a{tick}"))
            for _ in range(tick % 7):
                await asyncio.sleep(0)
            if tick % 3 == 0:
                await pushing
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                seen.append(events_of(await waiting))
            await pushing
        await engine.close()
        return seen + await _all(handle)

    assert run(main()) == [f"a{tick}" for tick in range(200)]


def test_a_call_cancelled_before_its_turn_is_not_done() -> None:
    async def main() -> list[str]:
        began, gate = threading.Event(), threading.Event()

        def block(_: spaseq.Engine) -> None:
            began.set()
            gate.wait(PATIENCE)

        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A"))
            blocked = asyncio.ensure_future(engine.call(block))
            await until(began.is_set)
            pushing = asyncio.ensure_future(push(engine, "a1"))
            registering = asyncio.ensure_future(engine.register(query("B")))
            await asyncio.sleep(0)
            pushing.cancel()
            registering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pushing
            gate.set()
            await blocked
            await push(engine, "a2")
            assert "1 queries" in await engine.call(repr)
        return await _all(handle)

    assert run(main()) == ["a2"]


def test_a_registration_that_nobody_waits_for_any_more_is_undone() -> None:
    async def main() -> str:
        async with spaseq.AsyncEngine() as engine:
            began, gate = threading.Event(), threading.Event()
            undone = threading.Event()

            def slow(_: spaseq.Engine) -> int:
                began.set()
                gate.wait(PATIENCE)
                return 7

            call = asyncio.ensure_future(engine.call(slow, undo=lambda result: result == 7 and undone.set()))
            await until(began.is_set)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            gate.set()
            await until(undone.is_set)
            registering = asyncio.ensure_future(engine.register(query("A")))
            await asyncio.sleep(0)
            registering.cancel()  # before or after it was begun, as it happens
            with pytest.raises(asyncio.CancelledError):
                await registering
            await engine.call(repr)
            await asyncio.sleep(0)
            return await engine.call(repr)

    assert "0 queries" in run(main())


def test_several_tasks_share_the_matches_of_a_handle() -> None:
    async def main() -> list[str]:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A"))
            readers = [asyncio.ensure_future(_all(handle)) for _ in range(5)]
            await push(engine, " ".join(f"a{tick}" for tick in range(100)))
        seen = [word for words in await asyncio.gather(*readers) for word in words]
        return sorted(seen, key=lambda word: int(word[1:]))

    assert run(main()) == [f"a{tick}" for tick in range(100)]


def test_a_loop_that_ends_leaves_the_engine_to_the_next() -> None:
    engine = spaseq.AsyncEngine()

    async def first() -> spaseq.AsyncHandle:
        handle = await engine.register(query("A"))
        waiting = asyncio.ensure_future(anext(handle))
        await until(lambda: handle.is_awaited)
        waiting.cancel()
        return handle

    async def second(handle: spaseq.AsyncHandle) -> list[str]:
        await push(engine, "a1")
        await engine.close()
        return await _all(handle)

    handle = run(first())
    assert run(second(handle)) == ["a1"]


def test_a_loop_may_be_closed_while_a_call_is_in_hand() -> None:
    began, gate, done = threading.Event(), threading.Event(), threading.Event()
    engine = spaseq.AsyncEngine()

    def slow(_: spaseq.Engine) -> None:
        began.set()
        gate.wait(PATIENCE)
        done.set()

    async def leave() -> None:
        call: Awaitable[None] = asyncio.ensure_future(engine.call(slow))
        await until(began.is_set)
        del call

    run(leave())
    gate.set()
    assert done.wait(PATIENCE)
    run(engine.close())


def test_the_thread_ends_with_the_engine() -> None:
    def workers() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "spaseq engine"]

    others = set(workers())

    async def main() -> None:
        async with spaseq.AsyncEngine() as engine:
            await engine.register(query("A"))

    async def forgotten() -> None:
        await spaseq.AsyncEngine().register(query("A"))

    run(main())
    run(forgotten())
    gc.collect()
    for thread in set(workers()) - others:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def _trig(words: str) -> str:
    generated = "http://www.w3.org/ns/prov#generatedAtTime"
    return "\n".join(
        f"<{NS}{letter.name}> {{ <{NS}e/{letter.name}> a <{NS}{letter.type}> ; <{NS}v> {letter.value} ; "
        f"<{NS}k> <{NS}{letter.key}> }} <{NS}{letter.name}> <{generated}> {letter.time} ."
        for letter in letters(words)
    )


def test_sources_are_read_beside_other_calls(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(_trig("a1 b2 a3 b4"), encoding="utf-8")

    async def main() -> list[str]:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A ; B"))
            await engine.feed(spaseq.Source(NS + "S", path))
            with pytest.raises(spaseq.SourceError, match="missing"):
                await engine.feed(spaseq.Source(NS + "S", tmp_path / "missing.trig"))
        return await _all(handle)

    assert run(main()) == ["a1b2", "a3b4"]


def test_a_source_that_brings_nothing_holds_nobody_up() -> None:
    class Silent:
        name = "pipe.nq"

        def __init__(self) -> None:
            self.asked, self.end = threading.Event(), threading.Event()

        def read(self, _: int = -1) -> bytes:
            self.asked.set()
            self.end.wait(PATIENCE)
            return b""

        read1 = read

        def readable(self) -> bool:
            return True

        def close(self) -> None:
            pass

    silent = Silent()

    async def main() -> list[str]:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A"))
            feeding = asyncio.ensure_future(
                engine.feed(spaseq.Source(NS + "T", silent))  # type: ignore[arg-type]
            )
            await until(silent.asked.is_set)
            await push(engine, "a1")
            found = [events_of(await anext(handle))]
            feeding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await feeding
        return found

    try:
        assert run(main()) == ["a1"]
    finally:
        silent.end.set()


def test_stats_why_and_cancel() -> None:
    async def main() -> None:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A , B"))
            await push(engine, "a1 x2 b3")
            assert (await handle.stats()).events == 3
            assert "SEQ(A ; B)" in (await handle.why()).cause
            waiting = asyncio.ensure_future(_all(handle))
            await until(lambda: handle.is_awaited)
            await handle.cancel()
            assert await waiting == []

    run(main())


@pytest.fixture(autouse=True)
def _no_leaks() -> Iterator[None]:
    """What asyncio complains of when it is collected is an error of the test that left it."""
    yield
    gc.collect()
