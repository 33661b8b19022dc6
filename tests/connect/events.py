"""Events as messages, and a query over them that finds each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import spaseq

EX = "http://example.org/"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
STREAM = f"{EX}s"

#: Finds each event by its value.
QUERY = f"""
    SELECT ?v WITHIN 10 SECONDS FROM STREAM S <{STREAM}>
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ [] <{EX}v> ?v }} }}"""


def limited(count: int) -> str:
    """The query that ends after so many."""
    return f"{QUERY} LIMIT {count}"


def event(number: int) -> bytes:
    """An event as N-Quads: its time and its value are its number."""
    graph = f"<{EX}g{number}>"
    return (
        (f"{graph} <{TIME}> {number} .\n<{EX}x> <{EX}v> {number} {graph} .\n")
        .replace(f" {number} ", f' "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> ')
        .encode()
    )


def found(source: object, query: str = QUERY, **options: Any) -> list[int]:
    """The values of the events of a source, as far as the query wants them."""
    run = spaseq.run(query, {"S": source}, matcher="reference", **options)  # type: ignore[dict-item]
    return [int(str(match.bindings[0]["v"])) for match in run]


def server_sent(numbers: Iterable[int], *, ids: bool = True) -> bytes:
    """Server-sent events, with their numbers as ids."""
    parts = []
    for number in numbers:
        lines = [b"id: %d" % number] * ids + [b"data: " + line for line in event(number).splitlines()]
        parts.append(b"".join(line + b"\n" for line in [*lines, b""]))
    return b"".join(parts)
