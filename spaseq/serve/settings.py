"""Settings and limits of a server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields

from spaseq.errors import EngineError


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """Limits of a server. ``spaseq.Limits`` limits its queries.

    - ``body_bytes``: the size of a body of events or of a graph, unpacked. ``text_bytes``: that of a query's
      text.
    - ``queries``: registered queries. ``connections``: concurrent requests. Of these, at most ``readers``
      read matches, ``uploads`` send a long body of events, and ``asking`` are for SPARQL or paths.
    - ``sockets``: open sockets. Each may wait ``header_seconds`` for the head of a request.
    - ``seconds``: the time of a request. ``pause``: the seconds in which a reader must accept something, or a
      sender must send something.
    - ``matches``: the matches of each query that are kept for later readers. ``letters``: the dead letters
      that are kept, each of at most ``letter_characters``. ``window_events``: the events of each stream that
      are kept, for SPARQL over a query's window.
    - ``sparql_characters``: the length of a SPARQL query, which is parsed by recursion. ``sparql_bytes``: the
      memory of a SPARQL query, on Linux. ``rows``: the rows of a result of SPARQL or paths.
    - ``why_seconds``: CPU time to find out why there is no match.
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


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a server listens, and what it allows.

    ``token``: what requests must send as ``Authorization: Bearer``; it is required if other machines can
    reach ``host``. ``allow_write``: whether requests may change background graphs. ``wall_clock``: events
    without a time get their time of arrival, and the time of all streams advances with the clock. Raises
    ``EngineError`` for a host that needs a token.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    allow_write: bool = False
    wall_clock: bool = False
    limits: ServeLimits = field(default_factory=ServeLimits)

    def __post_init__(self) -> None:
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token):
            raise EngineError("a token is some printable ASCII characters")
        if self.token is None and not self.is_local:
            raise EngineError(
                f"on {self.host} other machines can reach the server: give a token (--token-file FILE), "
                "which they must bring as 'Authorization: Bearer TOKEN', or listen on 127.0.0.1"
            )

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("[::1]")
    (True, True, False, True)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
