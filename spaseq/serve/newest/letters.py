"""The newest dead letters."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from spaseq.serve.settings import ServeLimits
from spaseq.sources import BadEvent


class Letters:
    """Keeps the newest bad and late events; used as an engine's ``dead_letters``.

    ``beside``: also gets each of them, for example to write a file.
    """

    def __init__(
        self, limits: ServeLimits | None = None, beside: Callable[[BadEvent], None] | None = None
    ) -> None:
        self._limits = limits or ServeLimits()
        self._beside = beside
        self._lock = threading.Lock()
        self._newest: deque[dict[str, Any]] = deque(maxlen=self._limits.letters)
        self._count = 0

    def __call__(self, letter: BadEvent) -> None:
        """Add a dead letter."""
        most = self._limits.letter_characters
        payload = letter.payload if len(letter.payload) <= most else letter.payload[:most] + "…"
        with self._lock:
            self._count += 1
            self._newest.append(
                {
                    "number": self._count,
                    "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                    "stream": letter.stream,
                    "position": letter.position,
                    "reason": letter.reason[:most],
                    "payload": payload,
                }
            )
        if self._beside is not None:
            self._beside(letter)

    def newest(self, most: int) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of all dead letters, and the newest ``most``, the newest first."""
        with self._lock:
            return self._count, list(self._newest)[::-1][:most]
