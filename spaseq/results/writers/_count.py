"""The number of matches, and a line feed."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from spaseq.language.syntax import Query
from spaseq.results.writers._base import ResultWriter

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
