"""Base classes and helpers of all writers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Self, cast

from spaseq.language.syntax import Ask, Query, Select

if TYPE_CHECKING:
    from spaseq.results.batch import Match, MatchBatch
    from spaseq.terms.dictionary import Term


#: The most texts of terms that are cached.
_KEPT: Final = 1 << 16


class Cache:
    """Texts of terms by one writer, cached across batches."""

    def __init__(self) -> None:
        self._known: dict[Term, bytes] = {}

    def of(self, terms: Sequence[Term], write: Callable[[Term], str]) -> list[bytes]:
        """Return the text of each term. Every call must pass the same ``write``, which makes the text."""
        known = self._known
        if len(known) + len(terms) > _KEPT:
            known.clear()
        found = list(map(known.get, terms))
        for i, text in enumerate(found):
            if text is None:
                found[i] = known[terms[i]] = write(terms[i]).encode()
        return cast("list[bytes]", found)


class ResultWriter(ABC):
    """Writes matches as they arrive, with one write and flush per call; ``close`` ends the document.

    ``holds_all``: the format can hold every match. On a terminal, control characters are escaped.
    """

    holds_all = False

    def __init__(self, query: Query, out: IO[bytes]) -> None:
        self.query = query
        self._out = out
        self._terminal = out.isatty()

    @abstractmethod
    def match(self, match: Match) -> None:
        """Write one match. Raises FormatError, and writes nothing, if the format cannot hold it."""

    def batch(self, batch: MatchBatch) -> None:
        """Write several matches. Raises FormatError as ``match`` does, after writing the matches before."""
        for match in batch:
            self.match(match)

    @abstractmethod
    def close(self) -> None:
        """Write the end of the document. Nothing may be written after it."""

    def go_on(self, matches: int) -> None:  # noqa: B027  # most formats need nothing
        """Continue after this many matches in the same output."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, text: str) -> None:
        self._out.write((self._harmless(text) if self._terminal else text).encode())
        self._out.flush()

    def _write_all(self, head: str, text: memoryview) -> None:
        if self._terminal or head:
            self._write(head + str(text, "utf-8"))
        else:
            self._out.write(text)
            self._out.flush()

    def _harmless(self, text: str) -> str:
        """Return text that is safe on a terminal."""
        return harmless(text)


class RowFormat(ABC):
    """How a format writes the parts of a document of rows.

    ``holds_all``: the format can hold every match.
    """

    holds_all = False

    @abstractmethod
    def answer(self, answer: bool) -> str:
        """Return the whole document of an ASK."""

    @abstractmethod
    def head(self) -> str:
        """Return the text before the rows."""

    @abstractmethod
    def rows(self, match: Match) -> str:
        """Return the rows of one match."""

    def all_rows(self, batch: MatchBatch) -> memoryview:
        """Return the rows of a batch, for a format that ``holds_all``."""
        return memoryview("".join(map(self.rows, batch)).encode())

    def tail(self) -> str:
        """Return the text after the rows."""
        return ""

    def harmless(self, text: str) -> str:
        """Return the text for a terminal, without characters that steer it."""
        return harmless(text)


class RowWriter(ResultWriter):
    """Writes rows in a format; for ASK the answer: ``true`` at the first match, or ``false`` at the end."""

    def __init__(self, query: Query, out: IO[bytes], form: RowFormat) -> None:
        super().__init__(query, out)
        self._form = form
        self._started = False
        self.holds_all = form.holds_all

    def match(self, match: Match) -> None:
        if isinstance(self.query.form, Ask):
            if not self._started:
                self._write(self._form.answer(True))
        else:
            rows = self._form.rows(match)  # before the head: a table's first rows decide its width
            self._write(self._head_once() + rows)
        self._started = True

    def batch(self, batch: MatchBatch) -> None:
        if isinstance(self.query.form, Ask):
            for match in batch[:1]:
                self.match(match)
        elif self.holds_all:
            self._write_all(self._head_once(), self._form.all_rows(batch))
            self._started = True
        else:
            super().batch(batch)

    def close(self) -> None:
        if not isinstance(self.query.form, Ask):
            self._write(self._head_once() + self._form.tail())
        elif not self._started:
            self._write(self._form.answer(False))
        self._started = True

    def go_on(self, matches: int) -> None:  # noqa: ARG002  # rows are not numbered
        self._started = True

    def _head_once(self) -> str:
        return "" if self._started else self._form.head()

    def _harmless(self, text: str) -> str:
        return self._form.harmless(text)


#: Characters that control a terminal or break a line: controls except line feed and tab, separators,
#: directions.
DISTURBING: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\r(?!\n)")


def harmless(text: str) -> str:
    r"""Escape control characters for a terminal as N-Triples and JSON do.

    >>> print(harmless("\a\x1b[31m"))
    \u0007\u001B[31m
    """
    return DISTURBING.sub(lambda c: f"\\u{ord(c[0]):04X}", text)


def show_time(time: datetime | int) -> str | int:
    """Return a time as it is written: an ``xsd:dateTime``, or the tick itself.

    >>> from datetime import UTC
    >>> show_time(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)), show_time(7)
    ('2026-01-02T03:04:05Z', 7)
    """
    if isinstance(time, int):
        return time
    return time.isoformat().replace("+00:00", "Z")


if TYPE_CHECKING:
    from spaseq.results.batch import Match, MatchBatch


class CountWriter(ResultWriter):
    """Counts matches without reading them; ``close`` writes the number, and the query's name if given."""

    holds_all = True

    def __init__(self, query: Query, out: IO[bytes], name: str | None = None) -> None:
        super().__init__(query, out)
        self._count = 0
        self._end = "\n" if name is None else f"\t{name}\n"

    def match(self, match: Match) -> None:  # noqa: ARG002  # nothing of it is asked for
        self._count += 1

    def batch(self, batch: MatchBatch) -> None:
        self._count += len(batch)

    def close(self) -> None:
        self._write(f"{self._count}{self._end}")


@lru_cache(maxsize=16)
def columns(query: Query) -> tuple[str, ...]:
    """Return the names that SELECT projects, in order; none for ASK and CONSTRUCT."""
    if not isinstance(query.form, Select):
        return ()
    if query.form.items is not None:
        return tuple(item.variable.name for item in query.form.items)
    from spaseq.automaton.normal import normalise
    from spaseq.results.select import bound_variables

    return bound_variables(normalise(query))
