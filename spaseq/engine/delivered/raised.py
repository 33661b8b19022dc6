"""What callbacks raise in one call: the first of it comes out, and says what else there was."""

from __future__ import annotations

from threading import Lock
from traceback import format_exception_only
from typing import Final

#: Of so many others the first one says what they were.
_NOTED: Final = 64
_AGAIN: Final = "A callback raised again meanwhile"


class Raised:
    """The exceptions of callbacks during the call in hand: the first one, the others as notes of it.

    A callback that raises must not keep events from the queries, nor matches from other callbacks. So what it
    raises is collected here, KeyboardInterrupt included, and raised when the call has done all else.
    Any thread may ``add``.
    """

    def __init__(self) -> None:
        self.first: BaseException | None = None
        self._lock = Lock()

    def add(self, error: BaseException) -> None:
        """Collect an exception. It never raises, whatever the exception does when it is asked for its text.

        >>> raised = Raised()
        >>> raised.add(KeyError("a"))
        >>> raised.add(ValueError("b"))
        >>> raised.first.__notes__
        ['A callback raised again meanwhile: ValueError: b']
        """
        with self._lock:
            if self.first is None:
                self.first = error
            elif self.first is not error:
                _note(self.first, error)

    def take(self) -> BaseException | None:
        """Return the first exception, if there is one, and forget all."""
        with self._lock:
            first, self.first = self.first, None
        return first

    def join(self, interrupt: BaseException) -> None:
        """Make notes of them all: an interrupt outside of a callback ends the call."""
        first = self.take()
        if first is not None and first is not interrupt:
            _note(interrupt, first)


def _note(first: BaseException, then: BaseException) -> None:
    """Add a note to an exception that says which one came after it."""
    _add_note(first, f"{_AGAIN}: {format_exception_only(then)[0].strip()}")
    for text in _notes(then):
        _add_note(first, text)


def _add_note(raised: BaseException, text: str) -> None:
    noted = len(_notes(raised))
    if noted <= _NOTED:
        raised.add_note(text if noted < _NOTED else f"{_AGAIN}, and again")


def _notes(raised: BaseException) -> list[str]:
    return [text for text in getattr(raised, "__notes__", ()) if text.startswith(_AGAIN)]
