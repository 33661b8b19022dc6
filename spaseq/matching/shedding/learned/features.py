"""What tells the partial matches of a state apart: the values that later conditions compare.

Of a condition ``?b + ?c < ?d`` that is asked of a later event, it is ``?b + ?c`` as soon as both are bound,
and ``?b`` before: the largest parts of its operands that the partial match itself decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.conditions.postfix import Accumulator, Lookup, Site, Step
from spaseq.matching.conditions.programs import Programs, Sections
from spaseq.matching.interpreter.program import Place
from spaseq.matching.kernel.tables.analysis import Analysis, Compiled
from spaseq.matching.shedding.compiled import _kernel_known as k
from spaseq.matching.shedding.compiled import _kernel_rehearsed as ghosts
from spaseq.matching.shedding.learned.absent import graves, tells_the_dead
from spaseq.matching.shedding.learned.comparisons import BINARY, UNARY, Code, balanced, compared
from spaseq.terms.dictionary import Term

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Into how many quantiles a feature is cut, by how many of them a place has.
QUANTILES: Final = {1: 24, 2: 10, 3: 6}

#: So many features of a place at most, those of the nearest conditions, by whether the query has a Kleene.
#: Without one, all that comes of an event falls into few classes, and of a class that only few events were of
#: hardly anything is known, however many partial matches they are. What repeats is of many events.
MOST: Final = {False: 1, True: 3}

#: So many lengths of a run are told apart where it may repeat.
DEPTHS: Final = 8


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of a place: its features from ``begin`` to ``end``, how many codes there are, its gates."""

    begin: int
    end: int
    size: int
    depths: int
    gates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """A way from a gate, of place ``source``, to place ``target``; ``at``: where its counts begin.

    It is taken by solutions of ``gpm``. Where it leads back to its place in the end, it takes ``round`` steps
    to come there again, and a run has ``before`` events when it comes there first; ``round`` is 0 where it
    does not. ``accepts``: by their numbers, the ways to end there.
    """

    gate: int
    source: int
    target: int
    at: int
    gpm: str
    round: int
    before: int
    accepts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What is rehearsed of a query (see ``rehearsal``).

    How many values a ghost has, how many integers those of all places take, how many counts of trials there
    are, and of each step where its own begin; and the sign of what its condition compares, the feature of its
    place and a value of an event, None if it is something else.
    """

    slots: int
    ghosts: int
    trials: int
    begins: tuple[int, ...]
    signs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a query's places, as the passes read them.

    ``tables``: the query's, and behind them programs. ``rows`` are features, and ``ways`` says of each way
    its gate and the features of the place behind it (see ``compiled``). ``bases``: of each gate, the
    number of its first class; ``classes``: how many there are. ``rehearsed`` is None where what an event
    does depends on more than what is bound and what it brings. ``tells_the_dead``, ``graves``: see
    ``absent``; ``taken``: by slot, 1 if an event of a match may bind it.
    """

    tables: Ints
    rows: Ints
    ways: Ints
    bases: Ints
    classes: int
    edges: int
    places: tuple[Codes, ...]
    steps: tuple[Steps, ...]
    tells_the_dead: bool
    graves: Ints
    taken: Ints
    rehearsed: Rehearsed | None

    def size(self, place: int) -> int:
        """How many codes a place has."""
        return self.places[place].size

    def block(self, counts: Floats, step: Steps) -> Floats:
        """Of counts of all steps, those of one: by the code that went on, and the one it went on to."""
        size, other = self.size(step.source), self.size(step.target)
        return counts[step.at : step.at + size * other].reshape(size, other)

    def levels(self, feature: int) -> int:
        """How many quantiles of a feature are told apart, and what is no number."""
        return int(self.rows[feature * k.F_SIZE + k.F_LEVELS])

    def shape(self, place: Codes) -> tuple[int, ...]:
        """How many depths a place's codes tell apart, and levels of each feature."""
        return place.depths, *map(self.levels, range(place.begin, place.end))


def features(compiled: Compiled, intern: Callable[[Term], int]) -> Features:
    """The features of a query's places."""
    analysis = compiled.analysis
    bound = _bound(analysis)
    out = Sections()
    programs = Programs(out, analysis.slots, analysis.kleenes, analysis.accumulators, intern)
    start = len(compiled.tables)
    rows: list[tuple[int, int, int, int, int]] = []
    places: list[Codes] = []
    numbers = {id(gate): i for i, gate in enumerate(analysis.gates)}
    bases = np.zeros(len(analysis.gates), dtype=np.int64)
    classes = edges = 0
    most = MOST[any(map(_repeats, analysis.places))]
    codes_of: list[Code] = []
    for place in analysis.places:
        found = list(dict.fromkeys(_features(analysis, place, bound[id(place)])))[:most]
        begin = len(rows)
        depths = DEPTHS if _repeats(place) else 1
        size = depths
        for code in found:
            quantiles = QUANTILES[len(found)]
            first, last = programs.write(code)
            codes_of.append(code)
            rows.append((start + 4 * first.row, start + 4 * last.row, edges, 0, quantiles + 1))
            edges += quantiles - 1
            size *= quantiles + 1
        gates = tuple(numbers[id(gate)] for gate in place.gates)
        places.append(Codes(begin, len(rows), size, depths, gates))
        for gate in gates:
            bases[gate] = classes
            classes += size
    taken = frozenset[str]().union(*bound.values())
    of_place = {id(place): i for i, place in enumerate(analysis.places)}
    of_gate = {gate: i for i, codes in enumerate(places) for gate in codes.gates}
    reached = [_reached(place, of_place) for place in analysis.places]
    ends = np.cumsum([0, *(len(place.accepts) for place in analysis.places)]).tolist()
    accepts = [tuple(range(begin, end)) for begin, end in pairwise(ends)]
    ways, steps, at = [], [], 0
    for candidate in compiled.candidates:
        gate = numbers[id(candidate.gate)]
        if candidate.way is None:
            ways.append((gate, 0, 0, 1, 1, 0))
            continue
        target = of_place[id(candidate.way.target)]
        codes = places[target]
        ways.append((gate, codes.begin, codes.end, codes.size, codes.depths, at))
        source = of_gate[gate]
        steps.append(
            Steps(
                gate, source, target, at, candidate.unit.gpm,
                1 + reached[target].get(source, -1), reached[0].get(source, 0), accepts[target],
            )
        )  # fmt: skip
        at += places[of_gate[gate]].size * codes.size
    tried, rehearsed = _rehearsed(compiled, places, steps, codes_of, programs, start)
    return Features(
        tables=np.concatenate([compiled.tables, out.array([])]),
        rows=np.array(rows or [(0, 0, 0, 0, 0)], dtype=np.int64).ravel(),
        ways=np.concatenate([np.array(ways, dtype=np.int64), tried], axis=1).ravel(),
        bases=bases,
        classes=max(classes, 1),
        edges=max(edges, 1),
        places=tuple(places),
        steps=tuple(steps),
        tells_the_dead=tells_the_dead(analysis),
        graves=graves(compiled),
        taken=np.array([name in taken for name in analysis.slots] or [False], dtype=np.int64),
        rehearsed=rehearsed,
    )


def _rehearsed(
    compiled: Compiled, places: Sequence[Codes], steps: Sequence[Steps], codes: Sequence[Code],
    programs: Programs, start: int,
) -> tuple[Ints, Rehearsed | None]:  # fmt: skip
    """Of each way, what ``compiled`` has of it from ``W_FROM`` on, and what is rehearsed at all.

    ``codes``: of features. Programs are written, which begin at ``start``.
    """
    analysis, none = compiled.analysis, (-1, -1, -1, -1, 0, 0, 0)
    if (
        any(map(_repeats, analysis.places))
        or analysis.absences.all
        or analysis.trails
        or compiled.lookups
        or any(candidate.parts for candidate in compiled.candidates)
    ):
        return np.array([none] * len(compiled.candidates), dtype=np.int64), None
    slots = len(analysis.slots)
    size = ghosts.FIRST + ghosts.GHOSTS * slots
    numbers = [i for i, candidate in enumerate(compiled.candidates) if candidate.way is not None]
    leads = {step.target: number * k.W_SIZE for step, number in zip(steps, numbers, strict=True)}
    rows, begins, signs, at = [none] * len(compiled.candidates), list[int](), list[str | None](), 0
    for i, (step, number) in enumerate(zip(steps, numbers, strict=True)):
        place, candidate = places[step.source], compiled.candidates[number]
        source = step.source * size if step.source else -1
        target = step.target * size if places[step.target].gates else -1
        gpm = analysis.gpms.index(candidate.unit.gpm)
        columns = {name: c for c, (g, name) in enumerate(compiled.columns) if g == gpm}
        code = balanced(analysis.codes[analysis.unit(candidate.unit)], partial(_is_before, columns))
        sign, own = compared(code, codes[place.begin : place.end], columns)
        first, last = programs.write(own, partial(_column, columns))
        value = start + 4 * first.row, start + 4 * last.row, i * (k.RING + 1)
        rows[number] = source, target, leads.get(step.source, -1), at, *value
        begins.append(at)
        signs.append(sign)
        at += place.size
    own_size = size * len(places)
    return np.array(rows, dtype=np.int64), Rehearsed(slots, own_size, at, tuple(begins), tuple(signs))


def _column(columns: Mapping[str, int], name: str) -> int:
    return columns.get(name, -1)


def _repeats(place: Place) -> bool:
    """Whether a way out of a place leads back to it."""
    return any(place is again for way in _ways(place) for again, _ in _walk(way))


def _ways(place: Place) -> list[Place]:
    return [way.target for gate in place.gates for way in gate.ways]


def _walk(place: Place) -> Iterator[tuple[Place, int]]:
    """The places that a place leads to, itself first, and over how many ways at least."""
    seen, found = {id(place)}, [(place, 0)]
    for each, length in found:
        yield each, length
        for other in _ways(each):
            if id(other) not in seen:
                seen.add(id(other))
                found.append((other, length + 1))


def _reached(place: Place, numbers: Mapping[int, int]) -> dict[int, int]:
    """The same by number."""
    return {numbers[id(other)]: length for other, length in _walk(place)}


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
                    before = bound - analysis.pattern.gpms[part.unit.gpm].variables
                    code = balanced(
                        analysis.codes[analysis.unit(part.unit)], partial(_is_had, before, analysis)
                    )
                    yield from _parts(code, before, analysis)
                    if part.way is not None and part.way.target not in seen:
                        seen.append(part.way.target)
                        nearest.append(part.way.target)
    for item in analysis.pattern.where:
        yield from _parts(analysis.steps(item, Site()), bound, analysis)


def _is_before(columns: Mapping[str, int], code: Code) -> bool:
    """Whether a program is of what was before an event that brings these columns."""
    names = [step.what for step in code if step.op == "PUSH"]
    return bool(names) and not any(name in columns for name in names)


def _is_had(bound: frozenset[str], analysis: Analysis, code: Code) -> bool:
    """Whether a program is of bound variables alone, and not the same in all partial matches."""
    named = [step for step in code if step.op in ("PUSH", "AGGREGATE")]
    return bool(named) and all(_is_bound(step, bound, analysis) for step in named)


def _is_bound(step: Step, bound: frozenset[str], analysis: Analysis) -> bool:
    match step:
        case Step("PUSH", str(name)):
            return name in bound and name in analysis.slots
        case Step("AGGREGATE", Accumulator() as a):
            return a.kind in ("SUM", "COUNT", "MIN", "MAX") and a.variable in bound
    return False


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
            case Step("PUSH"):
                stack.append((step,) if _is_bound(step, bound, analysis) else None)
                continue
            case Step("AGGREGATE"):
                stack.append((step._replace(inside=False),) if _is_bound(step, bound, analysis) else None)
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
                size = 1 if step.op in UNARY else 2
        taken = [stack.pop() for _ in range(min(size, len(stack)))][::-1]
        if step.op in UNARY | BINARY and None not in taken:
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


assert (k.F_SIZE, k.W_SIZE) == (5, 13)  # as rows are written here
