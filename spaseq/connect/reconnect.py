"""Exponential backoff with jitter, until a timeout."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

#: More digits than any wait has.
_DIGITS: Final = 12

#: Seconds of the first wait, and of the longest.
FIRST: Final = 0.5
LONGEST_WAIT: Final = 30.0


class DisconnectedError(Exception):
    """The connection is lost, or not made yet, with the reason. Retrying may help.

    ``after``: the seconds that the server asks to wait before the next attempt.
    """

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(f"{reason}, and asks to wait for {after:g} s" if after else reason)
        self.after = after


class SilentError(DisconnectedError):
    """The connection was silent for too long and must be made anew."""


def retry_after(value: str | None) -> float:
    """Return the seconds that a ``Retry-After`` header asks to wait: a number, or a date; 0 without one.

    >>> retry_after("120"), retry_after("Fri, 31 Dec 1999 23:59:59 GMT"), retry_after("soon")
    (120.0, 0.0, 0.0)
    """
    text = (value or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:_DIGITS])
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time())


class Retries:
    """Computes the wait before the next attempt.

    ``patience``: seconds without a connection after which attempts end. ``now`` is a clock in seconds,
    ``lot`` a random number from 0 to 1, so that many clients of one lost server do not reconnect at once.

    >>> retries = Retries(3.0, now=iter([0.0, 0.5, 1.5, 3.5]).__next__, lot=lambda: 1.0)
    >>> retries.wait(), retries.wait(), retries.wait(), retries.wait()
    (0.5, 1.0, 1.5, None)
    """

    def __init__(
        self,
        patience: float,
        *,
        now: Callable[[], float] = time.monotonic,
        lot: Callable[[], float] = random.random,
    ) -> None:
        self._patience = patience
        self._now = now
        self._lot = lot
        self._since: float | None = None
        self._next = FIRST

    def wait(self, after: float = 0.0) -> float | None:
        """Return seconds until the next attempt after a failure; None when patience has ended.

        The server may ask to wait ``after`` seconds. If patience ends before that time, return None.
        """
        now = self._now()
        if self._since is None:
            self._since = now
        left = self._since + self._patience - now
        if left <= 0 or after > left:
            return None
        # At least half of it: a lot of 0 would not wait at all.
        wait = self._next * (0.5 + self._lot() / 2)
        self._next = min(2 * self._next, LONGEST_WAIT)
        return max(after, min(wait, left))

    def connected(self) -> None:
        """Note a connection: patience starts anew with the next failure."""
        self._since = None

    def proved(self) -> None:
        """Note received data: the next wait is short again. A connection alone does not shorten it."""
        self._next = FIRST
