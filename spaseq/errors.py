"""All exceptions that spaseq raises.

SpaseqError
├── QueryError                 the query is wrong: filename, line, column, the text and a caret
│   ├── QuerySyntaxError       …it does not parse (also a SyntaxError)
│   └── QueryMeaningError      …it parses, and a static check rejects it (also a ValueError)
├── SourceError                a source cannot be opened or read at all, or an option is unknown
├── SinkError                  results could not be delivered to their destination
├── BadEventError              one event is malformed or nonconforming (raised only with ``strict``)
├── LateEventError             one event came after the watermark (raised only with ``strict``)
├── FormatError                a result format is unknown, or cannot hold these results (also a ValueError)
├── KnowledgeError             a background graph is missing, or a graph or shapes cannot be read
├── PatternError               a parameterized pattern on words is invalid (also a ValueError)
├── RetrievalError             a budget or vectors given to retrieve cannot be used (also a ValueError)
├── LimitError                 something would exceed its limit (``spaseq.Limits``)
└── EngineError                the engine was used in a way it forbids (pushed to after close, …)

SpaseqWarning                  something is probably a mistake, and how it was understood (a UserWarning)
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from spaseq.excerpts import AROUND, bounded, excerpt

__all__ = [
    "BadEventError",
    "EngineError",
    "FormatError",
    "KnowledgeError",
    "LateEventError",
    "LimitError",
    "PatternError",
    "QueryError",
    "QueryMeaningError",
    "QuerySyntaxError",
    "RetrievalError",
    "SinkError",
    "SourceError",
    "SpaseqError",
    "SpaseqWarning",
]


class SpaseqError(Exception):
    """Base class of all errors that spaseq raises on purpose. Messages quote long input as an excerpt."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(bounded(given) if isinstance(given, str) else given for given in arguments))


class QueryError(SpaseqError):
    """A query that cannot be run, with the place of the error.

    ``lineno`` and ``offset`` count from 1. ``text`` is the line of the query that they point into, or an
    excerpt of a long line. ``hint`` says what to write instead, or is None. ``str`` shows all of it with a
    caret.
    """

    filename: str | None
    lineno: int | None
    offset: int | None
    text: str | None
    hint: str | None

    def __init__(
        self,
        message: str,
        *,
        filename: str = "<query>",
        lineno: int = 1,
        offset: int = 1,
        text: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.msg = bounded(message)
        self.filename = filename
        self.lineno = lineno
        self.offset = offset
        self._excerpt = excerpt(text.rstrip("\n"), offset - 1)
        self.text = text if len(text) <= 2 * AROUND else self._excerpt[0]
        self.hint = None if hint is None else bounded(hint)

    def __str__(self) -> str:
        lines = [f"{self.filename}:{self.lineno}:{self.offset}: {self.msg}"]
        if self.text:
            shown, before = self._excerpt
            indent = "".join("\t" if c == "\t" else " " for c in before)
            lines += [f"    {shown}", f"    {indent}^"]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class QuerySyntaxError(QueryError, SyntaxError):
    """The text is not a SPAseq query."""


class QueryMeaningError(QueryError, ValueError):
    """The text parses, but has no meaning (semantics, section 8)."""


class SourceError(SpaseqError):
    """A source that cannot be opened or read at all."""


class SinkError(SpaseqError):
    """Results could not be delivered; ``delivered`` is the number delivered before the error."""

    def __init__(self, reason: str, *, delivered: int) -> None:
        super().__init__(reason)
        self.delivered = delivered


class _EventError(SpaseqError):
    def __init__(self, reason: str, *, stream: str, position: str) -> None:
        super().__init__(f"{stream}, {position}: {reason}")
        self.reason = reason
        self.stream = stream
        self.position = position


class BadEventError(_EventError):
    """One event is malformed or does not conform to shapes: its stream, its position, and the reason."""


class LateEventError(_EventError):
    """One event is older than the watermark: its stream, its position there, and how late it is."""


class FormatError(SpaseqError, ValueError):
    """A result format that is unknown, or cannot hold these results."""


class KnowledgeError(SpaseqError):
    """A background graph is missing or cannot be read, or shapes are wrong or cannot be read."""


class PatternError(SpaseqError, ValueError):
    """A parameterized pattern that is invalid or too long."""


class RetrievalError(SpaseqError, ValueError):
    """An argument of a retrieval cannot be used: a budget, a weight, the vectors of a model."""


class LimitError(SpaseqError):
    """Something exceeds a limit; ``limit`` is its name, a field of ``spaseq.Limits``."""

    def __init__(self, reason: str, *, limit: str) -> None:
        super().__init__(reason)
        self.limit = limit


class EngineError(SpaseqError):
    """The engine was used in a way it forbids."""


class SpaseqWarning(UserWarning):
    """Something is probably a mistake; the message says how it was understood."""


def warn(message: str) -> None:
    """Issue a ``SpaseqWarning`` at the line that called into this package."""
    level, _ = _caller()
    warnings.warn(bounded(message), SpaseqWarning, stacklevel=level)


def warn_within(message: str) -> None:
    """Issue a ``SpaseqWarning`` during an event. If warnings are errors, print it: the event must go on."""
    level, frame = _caller()
    try:
        warnings.warn(bounded(message), SpaseqWarning, stacklevel=level)
    except SpaseqWarning as raised:
        warnings.showwarning(raised, SpaseqWarning, frame.f_code.co_filename, frame.f_lineno)


def _caller() -> tuple[int, FrameType]:
    """Return the frame that called into this package, and its ``stacklevel`` seen from the caller."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "spaseq":
        level, frame = level + 1, frame.f_back
    return level, frame
