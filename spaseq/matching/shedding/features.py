"""What tells the partial matches of a state apart: the values that later conditions compare.

Of a condition ``?b + ?c < ?d`` that is asked of a later event, it is ``?b + ?c`` as soon as both are bound,
and ``?b`` before: the largest parts of its operands that the partial match itself decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.kernel.analysis import Analysis
from spaseq.matching.kernel.conditions import Accumulator, Lookup, Site, Step
from spaseq.matching.kernel.programs import Programs
from spaseq.matching.kernel.sections import Sections
from spaseq.matching.kernel.tables import Compiled
from spaseq.matching.runs.program import Place
from spaseq.matching.shedding import _kernel_passes as k
from spaseq.terms import Term

Ints = npt.NDArray[np.int64]

#: So many features of a place at most, those of the nearest conditions; and into how many quantiles each is
#: cut if there are so many of them.
MOST: Final = 3
QUANTILES: Final = {1: 24, 2: 10, 3: 6}

_UNARY: Final = frozenset({"MINUS", "ABS", "FUNCTION"})
_BINARY: Final = frozenset({"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "AVERAGE", "FUNCTION_2"})

Code = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a query's places, as the passes read them.

    ``tables``: the query's, and behind them programs. ``rows`` are features, and ``ways`` says of each way
    its gate and the features of the place behind it (see ``_kernel_passes``). ``bases``: of each gate, the
    number of its first class; ``classes``: how many there are. ``conditions``: of each gate, how many are
    asked of an event there. ``places`` has of each place where its features begin and end, and its gates.
    """

    tables: Ints
    rows: Ints
    ways: Ints
    bases: Ints
    classes: int
    edges: int
    conditions: npt.NDArray[np.float64]
    places: tuple[tuple[int, int, tuple[int, ...]], ...]


def features(compiled: Compiled, intern: Callable[[Term], int]) -> Features:
    """The features of a query's places."""
    analysis = compiled.analysis
    bound = _bound(analysis)
    out = Sections()
    programs = Programs(out, analysis.slots, analysis.kleenes, analysis.accumulators, intern)
    start = len(compiled.tables)
    rows: list[tuple[int, int, int, int]] = []
    places: list[tuple[int, int, tuple[int, ...]]] = []
    numbers = {id(gate): i for i, gate in enumerate(analysis.gates)}
    bases = np.zeros(len(analysis.gates), dtype=np.int64)
    classes = edges = 0
    for place in analysis.places:
        found = list(dict.fromkeys(_features(analysis, place, bound[id(place)])))[:MOST]
        begin, size = len(rows), 1
        for code in found:
            quantiles = QUANTILES[len(found)]
            first, last = programs.write(code)
            rows.append((start + 4 * first.row, start + 4 * last.row, edges, 0))
            edges += quantiles - 1
            size *= quantiles + 1
        gates = tuple(numbers[id(gate)] for gate in place.gates)
        places.append((begin, len(rows), gates))
        for gate in gates:
            bases[gate] = classes
            classes += size
    of_place = {id(place): i for i, place in enumerate(analysis.places)}
    ways = []
    for candidate in compiled.candidates:
        target = None if candidate.way is None else places[of_place[id(candidate.way.target)]]
        ways.append((numbers[id(candidate.gate)], *((0, 0) if target is None else target[:2])))
    conditions = [
        1.0 + max((_conditions(analysis, one) for one, _ in analysis.candidates(gate)), default=0)
        for gate in analysis.gates
    ]
    return Features(
        tables=np.concatenate([compiled.tables, out.array([])]),
        rows=np.array(rows or [(0, 0, 0, 0)], dtype=np.int64).ravel(),
        ways=np.array(ways, dtype=np.int64).ravel(),
        bases=bases,
        classes=max(classes, 1),
        edges=max(edges, 1),
        conditions=np.array(conditions),
        places=tuple(places),
    )


def _conditions(analysis: Analysis, parts: Sequence[object]) -> int:
    codes = [analysis.codes[analysis.unit(part.unit)] for part in parts]  # type: ignore[attr-defined]
    return sum(step.op in ("COMPARE", "TEST") for code in codes for step in code)


def _bound(analysis: Analysis) -> dict[int, frozenset[str]]:
    """The variables that may be bound at each place."""
    bound = {id(place): frozenset[str]() for place in analysis.places}
    changed = True
    while changed:
        changed = False
        for place in analysis.places:
            for gate in place.gates:
                for parts, _ in analysis.candidates(gate):
                    for part in parts:
                        if part.way is None:
                            continue
                        names = bound[id(place)] | analysis.pattern.gpms[part.unit.gpm].variables
                        target = id(part.way.target)
                        if not names <= bound[target]:
                            bound[target] |= names
                            changed = True
    return bound


def _features(analysis: Analysis, place: Place, bound: frozenset[str]) -> Iterator[Code]:
    """What later conditions read of a partial match, those of the next events first."""
    seen, nearest = [place], [place]
    for each in nearest:
        for gate in each.gates:
            for parts, _ in analysis.candidates(gate):
                for part in parts:
                    own = analysis.pattern.gpms[part.unit.gpm].variables
                    yield from _parts(analysis.codes[analysis.unit(part.unit)], bound - own, analysis)
                    if part.way is not None and part.way.target not in seen:
                        seen.append(part.way.target)
                        nearest.append(part.way.target)
    for item in analysis.pattern.where:
        yield from _parts(analysis.steps(item, Site()), bound, analysis)


def _parts(code: Sequence[Step], bound: frozenset[str], analysis: Analysis) -> Iterator[Code]:
    """The largest parts of a program that are of bound variables, where it goes the straight way."""
    # What is on the stack: its own program, or None if an event to come decides it.
    stack: list[Code | None] = []
    i = 0
    while i < len(code):
        step = code[i]
        i += 1
        match step:
            case Step("IF_BOUND" | "IF_COMPLETED" | "UNLESS_FALSE" | "UNLESS_TRUE"):
                continue
            case Step("JUMP" | "KEEP", skip=skip):
                i += skip
                continue
            case Step("CHOOSE"):
                yield from _read(stack.pop())
                continue
            case Step("PUSH", str(name)):
                stack.append((step,) if name in bound and name in analysis.slots else None)
                continue
            case Step("AGGREGATE", Accumulator() as a):
                whole = a.kind in ("SUM", "COUNT", "MIN", "MAX") and a.variable in bound
                stack.append((step._replace(inside=False),) if whole else None)
                continue
            case Step("CONSTANT"):
                stack.append((step,))
                continue
            case Step("ONE" | "BOUND"):
                stack.append(None)
                continue
            case Step("LOOK_UP", Lookup(names=names)):
                size = len(names)
            case Step("DISTANCE"):
                size = 4
            case Step("TEST" | "NOT"):
                size = 1
            case _:
                size = 1 if step.op in _UNARY else 2
        taken = [stack.pop() for _ in range(min(size, len(stack)))][::-1]
        if step.op in _UNARY | _BINARY and None not in taken:
            stack.append((*(s for part in taken if part is not None for s in part), step))
            continue
        if step.what != "=" and (None in taken or any(map(_sums, taken))):
            for part in taken:
                yield from _read(part)
        if step.op not in ("COMPARE", "TEST"):
            stack.append(None)


def _sums(part: Code | None) -> bool:
    return part is not None and any(step.op == "AGGREGATE" for step in part)


def _read(part: Code | None) -> Iterator[Code]:
    """A part that is not the same in all partial matches."""
    if part is not None and any(step.op in ("PUSH", "AGGREGATE") for step in part):
        yield part


assert k.F_SIZE == 4  # as rows are written here
