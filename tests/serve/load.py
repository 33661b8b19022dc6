"""Many readers and writers of a server at once, by plain sockets: what came to whom, and how soon.

``python -m tests.serve.load URL [READERS WRITERS EVENTS]`` asks a server that runs.

From sending an event to a reader's match it took 29 ms at the median and 108 ms at p99 with 20 readers and
5 writers, 1.5 and 4.7 s with 200 and 50 (25 November 2026, 2 cores, load of 14, this client included).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from tests.streams import NS, query

#: Seconds after which something hangs.
PATIENCE = 300.0


@dataclass
class Load:
    """What was seen; ``answers``, ``arrivals``: seconds from sending an event to its answer, to its match."""

    numbers: list[list[int]] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def percentile(seconds: list[float], percent: int) -> float:
    """What so many of a hundred do not exceed."""
    return sorted(seconds)[min(len(seconds) - 1, len(seconds) * percent // 100)]


async def load(url: str, key: str, readers: int, writers: int, each: int) -> Load:
    """Each writer sends ``each`` events; each is a match of query ``key``, which every reader gets."""
    host, port = urlsplit(url).hostname or "", urlsplit(url).port or 80
    seen, sent = Load(), dict[str, float]()
    ready = [asyncio.Event() for _ in range(readers)]

    async def read(began: asyncio.Event) -> None:
        incoming, outgoing = await asyncio.open_connection(host, port, limit=1 << 20)
        head = f"GET /queries/{key}/matches HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n"
        outgoing.write(head.encode())
        assert b" 200 " in await incoming.readline()
        began.set()
        numbers: list[int] = []
        while len(numbers) < writers * each:
            line = await incoming.readline()
            assert line, f"the server went after {len(numbers)} matches"
            if line.startswith(b"data: "):
                match = json.loads(line[6:])
                numbers.append(match["number"])
                seen.arrivals.append(time.perf_counter() - sent[match["bindings"][0]["a"]["value"]])
        seen.numbers.append(numbers)
        outgoing.close()

    async def write(writer: int) -> None:
        incoming, outgoing = await asyncio.open_connection(host, port)
        for i in range(each):
            name = f"{NS}e/{writer}.{i}"
            body = f"<{name}> a <{NS}a> ; <{NS}v> {i} .".encode()
            sent[name] = began = time.perf_counter()
            head = (
                f"POST /streams/{quote(NS + 'S', safe='')}?time=1 HTTP/1.1\r\nHost: {host}\r\n"
                f"Content-Type: text/turtle\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            outgoing.write(head.encode() + body)
            told = (await incoming.readuntil(b"\r\n\r\n")).lower()
            length = int(told.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = await incoming.readexactly(length)
            seen.answers.append(time.perf_counter() - began)
            if json.loads(answer) != {"events": 1, "bad": 0, "late": 0}:
                seen.refused.append(answer.decode())
        outgoing.close()

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        for began in ready:
            tasks.create_task(read(began))
        for began in ready:
            await began.wait()
        for writer in range(writers):
            tasks.create_task(write(writer))
    return seen


def main(url: str, readers: int = 200, writers: int = 50, each: int = 20) -> None:
    """Asks a server and says how it went."""
    text = query("A").encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/queries", text)) as answer:
        key = json.load(answer)["id"]
    began = time.perf_counter()
    seen = asyncio.run(load(url, key, readers, writers, each))
    passed = time.perf_counter() - began
    complete = sum(numbers == [*range(1, writers * each + 1)] for numbers in seen.numbers)
    print(f"{complete} of {readers} readers got all {writers * each} matches in order, in {passed:.1f} s")
    for name, of in (("POST to answer", seen.answers), ("POST to a reader's match", seen.arrivals)):
        print(f"{name}: median {percentile(of, 50) * 1000:.0f} ms, p99 {percentile(of, 99) * 1000:.0f} ms")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
