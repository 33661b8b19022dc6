"""What callbacks raise in one call: the first of it comes out, and says what else there was."""

from __future__ import annotations

from traceback import format_exception_only
from typing import Final

#: Of so many others the first one says what they were.
_NOTED: Final = 64
_AGAIN: Final = "A callback raised again meanwhile"


def first_of(raised: Exception | None, then: Exception | None) -> Exception | None:
    """The first of two exceptions of callbacks, if there is one, with a note of the other.

    It never raises, whatever an exception does when it is asked for its text.

    >>> first = first_of(None, KeyError("a"))
    >>> first_of(first, ValueError("b")) is first
    True
    >>> first.__notes__
    ['A callback raised again meanwhile: ValueError: b']
    """
    if raised is None or then is None or raised is then:
        return then if raised is None else raised
    _note(raised, f"{_AGAIN}: {format_exception_only(then)[0].strip()}")
    for note in _notes(then):
        _note(raised, note)
    return raised


def _note(raised: Exception, note: str) -> None:
    noted = len(_notes(raised))
    if noted <= _NOTED:
        raised.add_note(note if noted < _NOTED else f"{_AGAIN}, and again")


def _notes(raised: Exception) -> list[str]:
    return [note for note in getattr(raised, "__notes__", ()) if note.startswith(_AGAIN)]
