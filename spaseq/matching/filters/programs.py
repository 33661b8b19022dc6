"""Common parts of all matchers' tables: sections, programs of the postfix machine, Kleenes and aggregates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal, NamedNode

from spaseq._jit import load
from spaseq.automaton.pattern import Kleene
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters._kernel_machine import by_stack
from spaseq.matching.filters.postfix import Accumulator, DerivedLookup, Instruction
from spaseq.terms.dictionary import Term

# An array of sections that refer to each other.


class SectionReference(NamedTuple):
    """The place of a row of a section, known when all sections are."""

    section: str
    row: int


Cell = int | SectionReference


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
        """Return how many rows a section has so far."""
        return len(self._rows.get(section, ()))

    def rows(self, section: str, rows: Sequence[Sequence[Cell]]) -> tuple[SectionReference, SectionReference]:
        """Add rows; return where they start and end."""
        start = self.count(section)
        self._rows.setdefault(section, []).extend(rows)
        return SectionReference(section, start), SectionReference(section, start + len(rows))

    def array(self, header: Sequence[Cell]) -> npt.NDArray[np.int64]:
        """Return the header followed by all sections."""
        starts: dict[str, int] = {}
        widths: dict[str, int] = {}
        at = len(header)
        for name, rows in self._rows.items():
            starts[name], widths[name] = at, len(rows[0]) if rows else 0
            at += widths[name] * len(rows)
        cells = [
            starts.get(cell[0], 0) + widths.get(cell[0], 0) * cell[1]
            if isinstance(cell, SectionReference)
            else cell
            for cell in chain(header, *chain.from_iterable(self._rows.values()))
        ]
        return np.array(cells, dtype=np.int64)


# Common parts of all matchers' tables: programs of the postfix machine, Kleenes and aggregates.

_COMPARISONS: Final = {
    "=": v.EQUAL,
    "!=": v.UNEQUAL,
    "<": v.LESS,
    ">": v.GREATER,
    "<=": v.AT_MOST,
    ">=": v.AT_LEAST,
}
#: Instructions that may jump.
_JUMPS: Final = ("IF_BOUND", "IF_COMPLETED", "UNLESS_FALSE", "UNLESS_TRUE", "CHOOSE", "JUMP", "KEEP")


class Programs:
    """Writes programs into sections, with numbers for names.

    ``constants`` are the ids of the programs' terms, ``lookups`` the expressions that Python computes.
    ``slots`` numbers the variables that are kept of a match, ``kleenes`` are by their ids.
    """

    def __init__(
        self,
        out: Sections,
        slots: Mapping[str, int],
        kleenes: Mapping[int, Kleene],
        accumulators: Sequence[Accumulator],
        intern: Callable[[Term], int],
    ) -> None:
        self._out = out
        self._slots = slots
        self._kleenes = kleenes
        self._number = {identity: i for i, identity in enumerate(kleenes)}
        self._accumulators = accumulators
        self._intern = intern
        self.constants: dict[int, None] = {}
        self.lookups: dict[DerivedLookup, int] = {}

    def kleene(self, identity: int) -> SectionReference:
        """Return the row of a Kleene."""
        return SectionReference("kleenes", self._number[identity])

    def write_kleenes(self, shared: Collection[str] = ()) -> None:
        """Write all Kleenes; all iterations have the same values of ``shared``."""
        for number, kleene in enumerate(self._kleenes.values()):
            names = sorted((kleene.own & self._slots.keys()) - set(shared))
            own = self._out.rows("own", [(self._slots[name],) for name in names])
            mine = [i for i, a in enumerate(self._accumulators) if a.kleene == kleene.id]
            self._out.rows("kleenes", [(number, *own, mine[0] if mine else 0, mine[-1] + 1 if mine else 0)])

    def write_aggregates(self) -> int:
        """Write the aggregates; return how many floats their sums take."""
        sums = 0
        for a in self._accumulators:
            slot, number = self._slots[a.variable], self._number[a.kleene]
            self._out.rows("aggregates", [(getattr(v, f"ACC_{a.kind}"), slot, sums, number, a.offset)])
            sums += 3 if a.kind == "SUM" else 0
        return sums

    def write(
        self,
        code: Sequence[Instruction],
        column: Callable[[str], int] = lambda _: -1,
        free: Collection[str] = (),
    ) -> tuple[SectionReference, SectionReference]:
        """Write a program; return where it starts and ends.

        ``column``: the column in a batch of a variable of the current event, -1 for other variables.
        ``free``: variables that are read nowhere else.
        """
        if code:
            load(by_stack)
        start = self._out.count("code")
        rows = []
        for i, step in enumerate(code):
            what: int | SectionReference = 0
            slot: int | SectionReference = -1
            place = -1
            match step:
                case Instruction("PUSH" | "ONE" | "BOUND" | "IF_BOUND", str(name)):
                    slot, place = -1 if name in free else self._slots.get(name, -1), column(name)
                case Instruction("AGGREGATE", Accumulator() as a):
                    what = self._accumulators.index(a)
                    if step.inside:
                        slot, place = self._slots[a.variable], column(a.variable)
                case Instruction("COMPARE" | "RELATE", str(operator)):
                    what = _COMPARISONS[operator]
                case Instruction("FUNCTION" | "FUNCTION_2", int(number)):
                    what = number
                case Instruction("LOOK_UP", DerivedLookup(names=names) as lookup):
                    what, slot = self.lookups.setdefault(lookup, len(self.lookups)), len(names)
                case Instruction("CHOOSE", int(length)):
                    slot = SectionReference("code", start + i + 1 + length)
                case Instruction("IF_COMPLETED", int(kleene)):
                    slot = self._number[kleene]
                case Instruction("CONSTANT", NamedNode() | Literal() as term):
                    what = self._intern(term)
                    self.constants[what] = None
            if step.op in _JUMPS:
                what = SectionReference("code", start + i + 1 + step.skip)
            rows.append((getattr(v, step.op), what, slot, place))
        return self._out.rows("code", rows)
