"""A pattern as arrays for the kernel: its steps, and bit arrays that choose the longest applicable edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spaseq.matching.parameterized import _kernel as k
from spaseq.matching.parameterized.table import LONGEST, Blocks, Cell, Condition, Constant, Kind, asked, table

_KINDS: Final = {Kind.IS: k.IS, Kind.IS_NOT: k.IS_NOT, Kind.SAME: k.SAME, Kind.APART: k.APART}
_ALL: Final = (1 << LONGEST + 1) - 1


@dataclass(frozen=True, slots=True)
class Program:
    """See ``_kernel``; ``tracks`` are those of the text that it reads."""

    rows: k.Ints
    at: k.Ints
    alive: k.Ints
    masks: k.Ints
    tracks: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Which tracks of the text hold the code of a pattern's track, and its symbol."""

    codes: Sequence[int]
    symbols: Sequence[int]


def compile_blocks(pattern: Blocks, layout: Layout) -> Program:
    """The arrays of a pattern of at most ``LONGEST`` places."""
    return _Compiler(pattern, layout).program()


class _Compiler:
    def __init__(self, pattern: Blocks, layout: Layout) -> None:
        self._pattern = pattern
        self._layout = layout
        self._rows: list[tuple[int, ...]] = []
        self._masks: list[int] = []
        # What distances need, so far and at all stops to come: by cell and code, by pair of cells.
        self._single: dict[Cell, list[int]] = {}
        self._pairs: dict[tuple[Cell, Cell], list[int]] = {}

    def program(self) -> Program:
        size = len(self._pattern)
        found = table(self._pattern)
        at = [self._sections([self._step(c) for c in conditions] for conditions in asked(self._pattern))]
        alive = [sum(1 << d for d in distances) for distances in found.distances]
        lasting: list[list[tuple[int, Condition]]] = [[] for _ in range(size + 1)]
        passing: list[list[tuple[int, Condition]]] = [[] for _ in range(size + 1)]
        for item in found.added:
            (passing if item.current else lasting)[item.stop].append((item.distance, item.condition))
        probes, pairs = [], []
        for stop in range(size + 1):
            self._note(lasting[stop])
            single, double = self._single, self._pairs
            self._single = {cell: list(row) for cell, row in single.items()}
            self._pairs = {cells: list(row) for cells, row in double.items()}
            self._note(passing[stop])
            probes.append(list(self._probes(alive[stop])))
            pairs.append(list(self._pair_rows(alive[stop])))
            self._single, self._pairs = single, double
        at += [self._sections(probes), self._sections(pairs)]
        width = max(map(len, at))
        filled = [[*section, *[section[-1]] * (width - len(section))] for section in at]
        layout = self._layout
        return Program(
            rows=np.array(self._rows, dtype=np.int64).reshape(-1, 6),
            at=np.array(filled, dtype=np.int64),
            alive=np.array(alive, dtype=np.int64),
            masks=np.array(self._masks, dtype=np.int64),
            tracks=1 + max(*layout.codes, *layout.symbols),
        )

    def _sections(self, parts: Iterable[list[tuple[int, ...]]]) -> list[int]:
        starts = [len(self._rows)]
        for part in parts:
            self._rows += part
            starts.append(len(self._rows))
        return starts

    def _step(self, condition: Condition) -> tuple[int, ...]:
        kind, cell, other = _KINDS[condition.kind], condition.cell, condition.other
        if isinstance(other, Constant):
            return (kind, self._layout.codes[cell.track], 0, 0, other.code, 0)
        # The symbol that is asked about is the later one.
        earlier, later = sorted((cell, other))
        symbols = self._layout.symbols
        return (kind, symbols[later.track], earlier.offset, symbols[earlier.track], 0, 0)

    def _note(self, needed: Iterable[tuple[int, Condition]]) -> None:
        for distance, condition in needed:
            bit, cell, other = 1 << distance, condition.cell, condition.other
            if isinstance(other, Constant):
                row = self._single.setdefault(cell, [_ALL] * (self._pattern.codes + 1))
                for code in range(len(row)):
                    if (code == other.code) != (condition.kind is Kind.IS):
                        row[code] &= ~bit
            else:
                both = (min(cell, other), max(cell, other))
                masks = self._pairs.setdefault(both, [_ALL, _ALL])
                masks[condition.kind is Kind.SAME] &= ~bit

    def _probes(self, alive: int) -> Iterable[tuple[int, ...]]:
        """The latest symbols first: they rule out most."""
        for cell, row in sorted(self._single.items(), reverse=True):
            if any(alive & ~mask for mask in row):
                yield (cell.offset, self._layout.codes[cell.track], len(self._masks), 0, 0, 0)
                self._masks += row

    def _pair_rows(self, alive: int) -> Iterable[tuple[int, ...]]:
        symbols = self._layout.symbols
        for (one, other), masks in sorted(self._pairs.items(), reverse=True):
            if any(alive & ~mask for mask in masks):
                tracks = symbols[one.track], symbols[other.track]
                yield (one.offset, tracks[0], other.offset, tracks[1], *masks)
