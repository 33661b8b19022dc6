"""The thread of an ``AsyncEngine`` outlives whatever is raised in it."""

from __future__ import annotations

import asyncio
import threading

import pytest

import spaseq
from tests.streams import NS, letters, query

#: Seconds in which compiled code is loaded on a busy machine.
PATIENCE = 120


class Panic(BaseException):
    """What an extension raises when it has no memory left."""


def panic(*_: object) -> None:
    raise Panic("no memory")


async def push(engine: spaseq.AsyncEngine) -> None:
    for letter in letters("a1 a2"):
        await asyncio.wait_for(engine.push(NS + "S", letter.turtle, letter.time), PATIENCE)


def test_what_is_raised_when_matches_are_taken_is_for_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with spaseq.AsyncEngine() as engine:
            handle, other = await engine.register(query("A")), await engine.register(query("A"))
            monkeypatch.setattr(type(handle.handle), "batches", panic)
            with pytest.raises(Panic):
                await asyncio.wait_for(anext(handle), PATIENCE)
            monkeypatch.undo()
            await push(engine)
            assert (await asyncio.wait_for(anext(other), PATIENCE)).start == 1

    asyncio.run(main())


def test_what_is_raised_between_calls_ends_nothing() -> None:
    async def main() -> None:
        async with spaseq.AsyncEngine() as engine:
            handle = await engine.register(query("A"))
            await engine.call(lambda inside: setattr(inside.turn, "catch_up", panic))
            await engine.call(lambda inside: setattr(inside.turn, "is_behind", True))
            waiting = asyncio.ensure_future(anext(handle))
            for _ in range(3):
                with pytest.raises(Panic):
                    await asyncio.wait_for(engine.call(lambda inside: inside.turn.flush()), PATIENCE)
            await engine.call(lambda inside: setattr(inside.turn, "is_behind", False))
            waiting.cancel()

    asyncio.run(main())


def test_a_thread_that_cannot_be_told_of_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        engine = spaseq.AsyncEngine()
        begun = threading.Thread.start
        monkeypatch.setattr(threading.Thread, "start", panic)
        with pytest.raises(Panic):
            await engine.call(lambda _: 1)
        monkeypatch.setattr(threading.Thread, "start", begun)
        assert await asyncio.wait_for(engine.call(lambda _: 2), PATIENCE) == 2
        await engine.close()

    asyncio.run(main())
