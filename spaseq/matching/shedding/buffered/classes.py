"""By what rows of the lazy evaluator's buffers are told apart: their GPM, and values that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import Atom, walk
from spaseq.language.scope import mentioned
from spaseq.matching.lazy.plans import Plan
from spaseq.matching.lazy.tables import Compiled
from spaseq.matching.shedding.compiled import _kernel_rows as k

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Of a buffer's values so many tell its rows apart at most: into so many levels each, if there are so many.
_MOST: Final = 2
_LEVELS: Final = {1: 18, 2: 8}


@dataclass(frozen=True, slots=True)
class Way:
    """How a match may end: with a row of one GPM, after rows of ``others``, by their numbers."""

    last: int
    others: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of all buffers. ``buffers`` and ``features`` are rows as ``_kernel_rows`` has them.

    ``of``: the buffer of each class; ``goes``: whether rows of a buffer may be shed; ``shapes``: the levels
    of each buffer's features; ``sites``: the GPM of each item of all plans; ``ways``: how matches may end.
    """

    buffers: Ints
    features: Ints
    of: Ints
    goes: npt.NDArray[np.bool_]
    shapes: tuple[tuple[int, ...], ...]
    sites: Ints
    ways: tuple[Way, ...]
    edges: int

    def slice_of(self, g: int) -> slice:
        """The classes of a buffer."""
        begin = int(self.buffers[g, k.B_CLASS])
        return slice(begin, begin + int(np.prod(self.shapes[g], dtype=np.int64)))


def sheddable(plans: Iterable[Plan]) -> frozenset[str]:
    """The GPMs of whose events some may be left out: what nothing looks for that must be absent."""
    taken, forbidden = set[str](), set[str]()
    for plan in plans:
        taken |= {item.atom.gpm for i, item in enumerate(plan.items) if _may_precede(plan, i)}
        for absence in plan.absences:
            forbidden |= {atom.gpm for atom in walk(absence.unit) if isinstance(atom, Atom)}
    return frozenset(taken - forbidden)


def classes(compiled: Compiled) -> Classes:
    """What tells rows apart in the buffers of a query."""
    plans = [plan for plan, _ in compiled.plans]
    going = sheddable(plans)
    read = [*dict.fromkeys(_read(compiled))]
    places: dict[int, list[str]] = {}
    for g, name in compiled.columns:
        places.setdefault(g, []).append(name)
    of_one = {name: g for g, names in places.items() for name in names}
    shared = {name for g, names in places.items() for name in names if of_one[name] != g}
    buffers: list[tuple[int, ...]] = []
    rows: list[tuple[int, ...]] = []
    of: list[int] = []
    shapes: list[tuple[int, ...]] = []
    edges = 0
    for g, gpm in enumerate(compiled.gpms):
        told = [name for name in read if name in places.get(g, ()) and name not in shared][:_MOST]
        told = told if gpm in going else []
        shape = tuple(_LEVELS[len(told)] for _ in told)
        buffers.append((int(gpm in going), len(of), len(rows), len(rows) + len(told)))
        for name, levels in zip(told, shape, strict=True):
            rows.append((places[g].index(name), edges, 0, levels))
            edges += levels - 2
        of += [g] * int(np.prod(shape, dtype=np.int64))
        shapes.append(shape)
    numbers = {gpm: g for g, gpm in enumerate(compiled.gpms)}
    return Classes(
        np.array(buffers, dtype=np.int64),
        np.array(rows or [(0, 0, 0, 2)], dtype=np.int64),
        np.array(of, dtype=np.int64),
        np.array([gpm in going for gpm in compiled.gpms]),
        tuple(shapes),
        np.array([numbers[item.atom.gpm] for item in compiled.sites], dtype=np.int64),
        tuple(way for plan in plans for way in _ways(plan, numbers)),
        max(edges, 1),
    )


def _may_precede(plan: Plan, i: int) -> bool:
    """Whether an item may come before another one: what comes last in any case is never looked for."""
    return any(not plan.items[i].before >> j & 1 for j in range(len(plan.items)) if j != i)


def _ways(plan: Plan, numbers: dict[str, int]) -> Iterator[Way]:
    for i, last in enumerate(plan.items):
        if not plan.after(i):
            others = (numbers[item.atom.gpm] for j, item in enumerate(plan.items) if j != i)
            yield Way(numbers[last.atom.gpm], tuple(others))


def _read(compiled: Compiled) -> Iterator[str]:
    """The variables that conditions read, those of the first conditions first."""
    for _, demanded in compiled.plans:
        for condition in demanded.conditions:
            yield from (str(step.what) for step in condition.code if step.op == "PUSH")
        for item in demanded.open:
            yield from sorted(mentioned(item.condition))
