"""Settings of a server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from spaseq.errors import EngineError
from spaseq.serve.limits import ServeLimits


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
