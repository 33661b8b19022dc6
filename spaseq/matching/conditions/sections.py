"""An array of sections that refer to each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Reference(NamedTuple):
    """The place of a row of a section, known when all sections are."""

    section: str
    row: int


Cell = int | Reference


class Sections:
    """Rows of integers and references, gathered by section; all rows of a section are of one width.

    >>> sections = Sections()
    >>> start, end = sections.rows("pairs", [(1, 2), (3, 4)])
    >>> sections.array([7, end])
    array([7, 6, 1, 2, 3, 4])
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[Sequence[Cell]]] = {}

    def count(self, section: str) -> int:
        """How many rows a section has so far."""
        return len(self._rows.get(section, ()))

    def rows(self, section: str, rows: Sequence[Sequence[Cell]]) -> tuple[Reference, Reference]:
        """Adds rows; where they start and end."""
        start = self.count(section)
        self._rows.setdefault(section, []).extend(rows)
        return Reference(section, start), Reference(section, start + len(rows))

    def array(self, header: Sequence[Cell]) -> npt.NDArray[np.int64]:
        """The header, and then all sections."""
        starts: dict[str, int] = {}
        widths: dict[str, int] = {}
        at = len(header)
        for name, rows in self._rows.items():
            starts[name], widths[name] = at, len(rows[0]) if rows else 0
            at += widths[name] * len(rows)
        cells = [
            starts.get(cell[0], 0) + widths.get(cell[0], 0) * cell[1] if isinstance(cell, Reference) else cell
            for cell in chain(header, *chain.from_iterable(self._rows.values()))
        ]
        return np.array(cells, dtype=np.int64)
