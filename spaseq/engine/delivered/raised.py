"""What callbacks raise in one call: the first of it comes out, and says what else there was."""

from __future__ import annotations

from typing import Final

#: Of so many others the first one says what they were.
_NOTED: Final = 8
_AGAIN: Final = "A callback raised again meanwhile"


def first_of(raised: Exception | None, then: Exception | None) -> Exception | None:
    """The first of two exceptions of callbacks, if there is one, with a note of the other.

    >>> first = first_of(None, KeyError("a"))
    >>> first_of(first, ValueError("b")) is first
    True
    >>> first.__notes__
    ["A callback raised again meanwhile: ValueError('b')"]
    """
    if raised is None or then is None or raised is then:
        return then if raised is None else raised
    noted = sum(note.startswith(_AGAIN) for note in getattr(raised, "__notes__", ()))
    if noted < _NOTED:
        raised.add_note(f"{_AGAIN}: {then!r}")
    elif noted == _NOTED:
        raised.add_note(f"{_AGAIN}, and again")
    for note in getattr(then, "__notes__", ()):
        if note.startswith(_AGAIN) and noted < _NOTED:
            raised.add_note(note)
    return raised
