"""A pattern as a program of the extended KMP: its table of edges (section 4.3), and arrays of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from spaseq.matching.kmp import _kernel as k

# The table of edges of the extended KMP (du Mouza, Rigaux and Scholl, section 4.3).
#
# Patterns here are *blocks*: every symbol of the text is a block of several tracks, of which a place of the
# pattern fixes some. A pattern on words has one track, an event as many as its GPMs have variables.
#
# A search that stops at place ``l`` of the pattern has matched the places before; the text's symbol at ``l``
# is *current*. An edge of some length has the conditions under which that many of the last symbols, the
# current one included, match the beginning of the pattern (Θmin), and the values of its variables then
# (Θshift). All edges with the same distance between the pattern and itself make a *diagonal*; an edge extends
# the one before on its diagonal by one comparison. So the table takes quadratic time.

#: Shifts are bits of a word of 64.
LONGEST = 62


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """A symbol of the text, on a track: its offset from the place where the attempt begins."""

    offset: int
    track: int


@dataclass(frozen=True, slots=True)
class PatternConstant:
    """A symbol that occurs in the pattern, by its code (1 and up)."""

    code: int


#: A symbol of the text as the pattern fixes it: a constant, or equal to another cell.
Known = Cell | PatternConstant


class ConditionKind(StrEnum):
    """The kinds of conditions."""

    IS = "is"
    IS_NOT = "is not"
    SAME = "same"
    APART = "apart"


@dataclass(frozen=True, slots=True)
class EdgeCondition:
    """A condition on one cell and a constant (``IS``, ``IS_NOT``) or on two cells (``SAME``, ``APART``)."""

    kind: ConditionKind
    cell: Cell
    other: Known


@dataclass(frozen=True, slots=True)
class Blocks:
    """A pattern: what each of its places fixes on some tracks.

    ``constants[p]`` maps tracks to codes from 1 to ``codes``; ``variables[p]`` maps tracks to variables,
    which are numbers. ``unequal`` are pairs of variables, ``unlike`` pairs of a variable and a code, that
    must differ.
    """

    constants: tuple[Mapping[int, int], ...]
    variables: tuple[Mapping[int, int], ...]
    unequal: tuple[tuple[int, int], ...] = ()
    unlike: tuple[tuple[int, int], ...] = ()
    codes: int = 0

    def __len__(self) -> int:
        return len(self.constants)

    def firsts(self) -> dict[int, Cell]:
        """Return where each variable occurs first."""
        found: dict[int, Cell] = {}
        for p, tracks in enumerate(self.variables):
            for track, variable in tracks.items():
                found.setdefault(variable, Cell(p, track))
        return found


def asked(pattern: Blocks) -> tuple[tuple[EdgeCondition, ...], ...]:
    """Return, for each place of a pattern, the conditions on its own symbol and on the symbols before."""
    nothing = _Diagonal(pattern, 0, known=False)
    found = []
    for p in range(len(pattern)):
        before = len(nothing.conditions)
        nothing.extend(p)
        found.append(tuple(nothing.conditions[before:]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class KmpEdge:
    """An edge at one stop.

    ``length`` counts symbols, the current one included; ``conditions`` are Θmin, in which cells stand for the
    variables that occur there first; ``substitution`` is Θshift.
    """

    length: int
    distance: int
    conditions: tuple[EdgeCondition, ...]
    substitution: Mapping[int, Known]


@dataclass(frozen=True, slots=True)
class Added:
    """The conditions that a distance needs: from a stop on, or (``current``) at this stop alone."""

    stop: int
    distance: int
    condition: EdgeCondition
    current: bool


@dataclass(slots=True)
class EdgeTable:
    """The distances that have an edge at each stop, the default one included, and their conditions.

    Stop ``len(pattern)`` is a match: there is no current symbol.
    """

    distances: list[list[int]]
    added: list[Added]


def table(pattern: Blocks) -> EdgeTable:
    """Return the table of edges, in time quadratic in the length of the pattern."""
    size = len(pattern)
    found = EdgeTable([[] for _ in range(size + 1)], [])
    for distance in range(1, size + 1):
        # The default edge, of length 0, skips all symbols, the current one too.
        found.distances[distance - 1].append(distance)
        diagonal = _Diagonal(pattern, distance)
        for stop in range(distance, size + 1):
            if stop == size:
                found.distances[stop].append(distance)
                break
            with_current = diagonal.with_current(stop)
            if with_current is not None:
                found.distances[stop].append(distance)
                found.added += [Added(stop, distance, c, True) for c in with_current]
            before = len(diagonal.conditions)
            if not diagonal.extend(stop):
                break
            found.added += [Added(stop + 1, distance, c, False) for c in diagonal.conditions[before:]]
    return found


def edges(pattern: Blocks, stop: int) -> Iterator[KmpEdge]:
    """Yield the edges at one stop, written out, the shortest first."""
    size = len(pattern)
    for distance in range(min(stop + 1, size), 0, -1):
        diagonal = _Diagonal(pattern, distance)
        if not all(diagonal.extend(p) for p in range(distance, stop)):
            continue
        if stop < size and distance <= stop:
            if diagonal.with_current(stop) is None:
                continue
            diagonal.extend(stop, current=True)
        length = stop + (stop < size) - distance
        yield KmpEdge(length, distance, tuple(diagonal.conditions), diagonal.images)


@dataclass(slots=True)
class _Diagonal:
    """The pattern against itself, shifted by ``distance``. Without ``known``, nothing is known about the
    text.
    """

    pattern: Blocks
    distance: int
    known: bool = True
    images: dict[int, Known] = field(default_factory=dict)
    conditions: list[EdgeCondition] = field(default_factory=list)
    _firsts: dict[int, Cell] = field(default_factory=dict)
    _fixed: dict[Cell, int] = field(default_factory=dict)
    _matched: int = 0

    def __post_init__(self) -> None:
        self._firsts = self.pattern.firsts()

    def with_current(self, offset: int) -> list[EdgeCondition] | None:
        """Return the conditions on the current symbol at an offset; None if no symbol can meet them."""
        images, fixed, count = len(self.images), len(self._fixed), len(self.conditions)
        fits = self.extend(offset, current=True)
        new = self.conditions[count:]
        del self.conditions[count:]
        while len(self.images) > images:
            self.images.popitem()
        while len(self._fixed) > fixed:
            self._fixed.popitem()
        return new if fits else None

    def extend(self, offset: int, current: bool = False) -> bool:
        """Extend the diagonal's edge by one symbol of the text; return False if no symbol can match."""
        p = offset - self.distance
        self._matched = offset + (not current)
        needed: list[tuple[ConditionKind, Known, Known]] = [
            (ConditionKind.IS, self._at(offset, track, current), PatternConstant(code))
            for track, code in self.pattern.constants[p].items()
        ]
        new = []
        for track, variable in self.pattern.variables[p].items():
            image = self._at(offset, track, current)
            if variable in self.images:
                needed.append((ConditionKind.SAME, image, self.images[variable]))
            else:
                self.images[variable] = image
                new.append(variable)
        for x, y in self.pattern.unequal:
            if (x in new or y in new) and x in self.images and y in self.images:
                last, other = (x, y) if x in new else (y, x)
                needed.append((ConditionKind.APART, self.images[last], self.images[other]))
        for x, code in self.pattern.unlike:
            if x in new:
                needed.append((ConditionKind.IS_NOT, self.images[x], PatternConstant(code)))
        return all(self._need(*condition) for condition in needed)

    def _at(self, offset: int, track: int, current: bool) -> Known:
        """Return what the pattern, before it is shifted, says about a cell."""
        if self.known and not current:
            code = self.pattern.constants[offset].get(track)
            if code is not None:
                return PatternConstant(code)
            variable = self.pattern.variables[offset].get(track)
            if variable is not None:
                return self._firsts[variable]
        return Cell(offset, track)

    def _need(self, kind: ConditionKind, one: Known, other: Known) -> bool:
        """Add a condition unless the pattern itself decides it; return False if it can never hold."""
        alike = kind in (ConditionKind.IS, ConditionKind.SAME)
        if one == other:
            return alike
        if isinstance(one, PatternConstant):
            one, other = other, one
        if isinstance(one, PatternConstant):
            return not alike
        if isinstance(other, PatternConstant):
            if alike and self._fixed.setdefault(one, other.code) != other.code:
                return False
            if not alike and self._unlike(one, other.code):
                return True
            self.conditions.append(
                EdgeCondition(ConditionKind.IS if alike else ConditionKind.IS_NOT, one, other)
            )
            return True
        if self._unequal(one, other):
            return not alike
        self.conditions.append(
            EdgeCondition(ConditionKind.SAME if alike else ConditionKind.APART, one, other)
        )
        return True

    def _unequal(self, one: Cell, other: Cell) -> bool:
        """Return whether the pattern says that two cells differ."""
        if not self.known or max(one.offset, other.offset) >= self._matched:
            return False
        pairs = ({self._firsts[x], self._firsts[y]} for x, y in self.pattern.unequal)
        return {one, other} in pairs

    def _unlike(self, cell: Cell, code: int) -> bool:
        if not self.known or cell.offset >= self._matched:
            return False
        return any(self._firsts[x] == cell and c == code for x, c in self.pattern.unlike)


# A pattern as arrays for the kernel: its steps, and bit arrays that choose the longest applicable edge.

_KINDS: Final = {
    ConditionKind.IS: k.IS,
    ConditionKind.IS_NOT: k.IS_NOT,
    ConditionKind.SAME: k.SAME,
    ConditionKind.APART: k.APART,
}
_ALL: Final = (1 << LONGEST + 1) - 1


@dataclass(frozen=True, slots=True)
class KmpProgram:
    """The arrays of a pattern, see ``_kernel``; ``tracks`` are the text's tracks that it reads."""

    rows: k.Ints
    at: k.Ints
    alive: k.Ints
    masks: k.Ints
    tracks: int

    def machine(self, state: k.Ints, found: k.Ints, stops: k.Ints) -> k.KmpMachine:
        """Return the kernel's machine."""
        return k.KmpMachine(self.rows, self.at, self.alive, self.masks, state, found, stops, self.tracks + 2)


@dataclass(frozen=True, slots=True)
class Layout:
    """For each track of a pattern, the tracks of the text that hold its codes and its symbols."""

    codes: Sequence[int]
    symbols: Sequence[int]


def compile_blocks(pattern: Blocks, layout: Layout) -> KmpProgram:
    """Return the arrays of a pattern of at most ``LONGEST`` places."""
    return _TableWriter(pattern, layout).program()


class _TableWriter:
    def __init__(self, pattern: Blocks, layout: Layout) -> None:
        self._pattern = pattern
        self._layout = layout
        self._rows: list[tuple[int, ...]] = []
        self._masks: list[int] = []
        # The conditions of distances, so far and at all later stops: by cell and code, by pair of cells.
        self._single: dict[Cell, list[int]] = {}
        self._pairs: dict[tuple[Cell, Cell], list[int]] = {}

    def program(self) -> KmpProgram:
        size = len(self._pattern)
        found = table(self._pattern)
        at = [self._sections([self._step(c) for c in conditions] for conditions in asked(self._pattern))]
        alive = [sum(1 << d for d in distances) for distances in found.distances]
        lasting: list[list[tuple[int, EdgeCondition]]] = [[] for _ in range(size + 1)]
        passing: list[list[tuple[int, EdgeCondition]]] = [[] for _ in range(size + 1)]
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
        return KmpProgram(
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

    def _step(self, condition: EdgeCondition) -> tuple[int, ...]:
        kind, cell, other = _KINDS[condition.kind], condition.cell, condition.other
        if isinstance(other, PatternConstant):
            return (kind, self._layout.codes[cell.track], 0, 0, other.code, 0)
        # The condition is on the later symbol.
        earlier, later = sorted((cell, other))
        symbols = self._layout.symbols
        return (kind, symbols[later.track], earlier.offset, symbols[earlier.track], 0, 0)

    def _note(self, needed: Iterable[tuple[int, EdgeCondition]]) -> None:
        for distance, condition in needed:
            bit, cell, other = 1 << distance, condition.cell, condition.other
            if isinstance(other, PatternConstant):
                row = self._single.setdefault(cell, [_ALL] * (self._pattern.codes + 1))
                for code in range(len(row)):
                    if (code == other.code) != (condition.kind is ConditionKind.IS):
                        row[code] &= ~bit
            else:
                both = (min(cell, other), max(cell, other))
                masks = self._pairs.setdefault(both, [_ALL, _ALL])
                masks[condition.kind is ConditionKind.SAME] &= ~bit

    def _probes(self, alive: int) -> Iterable[tuple[int, ...]]:
        """Yield probes, the latest symbols first: they exclude most."""
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
