"""What requests may take before they are refused."""

from __future__ import annotations

from dataclasses import dataclass, fields

from spaseq.errors import EngineError


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """Upper bounds of a server. What its queries may keep, ``spaseq.Limits`` bounds.

    ``body_bytes``: of a body of events or of a graph, unpacked. ``text_bytes``: of a query. ``queries``: that
    are registered at a time. ``connections``: requests at a time, of which so many may be ``readers`` of
    matches, so many ``uploads`` of events that do not come at once, and so many ``asking`` SPARQL or paths.
    ``sockets``: open at a time, each for ``header_seconds`` without the head of a request.
    ``seconds``: for a request, ``pause`` seconds for a reader to take or a writer to send something.
    ``matches``: of each query, for who comes later; ``letters``: dead letters, of each so many
    ``letter_characters``. ``window_events``: of each stream, for SPARQL over a query's window.
    ``sparql_characters``: of a query of SPARQL, which is parsed by recursion; ``sparql_bytes``: of memory
    that a question of SPARQL may take, on Linux. ``rows``: of an answer of SPARQL or paths.
    ``why_seconds``: of the processor, to find out why there is no match.
    """

    body_bytes: int = 64 << 20
    text_bytes: int = 1 << 20
    queries: int = 1_000
    connections: int = 1_000
    readers: int = 500
    uploads: int = 32
    asking: int = 2
    sockets: int = 2_000
    header_seconds: int = 10
    seconds: int = 30
    pause: int = 30
    matches: int = 10_000
    letters: int = 1_000
    letter_characters: int = 2_000
    window_events: int = 10_000
    sparql_characters: int = 65_536
    sparql_bytes: int = 1 << 30
    rows: int = 10_000
    why_seconds: int = 1

    def __post_init__(self) -> None:
        for item in fields(self):
            most = getattr(self, item.name)
            if type(most) is not int or most < 1:
                raise EngineError(f"{item.name}={most!r}: a limit of a server is a whole number above 0")
