"""Features: the values of partial matches that later conditions compare, by state.

For a condition ``?b + ?c < ?d`` with ?d of a later event, the feature is ``?b + ?c`` as soon as both are
bound, and ``?b`` until then: the largest parts of the condition that can be computed already.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.postfix import Accumulator, DerivedLookup, FilterSite, Instruction
from spaseq.matching.filters.programs import Programs, Sections
from spaseq.matching.interpreter.program import ProgramState
from spaseq.matching.nfa.records import chains, gates, places
from spaseq.matching.nfa.tables.analysis import Analysis, KeyedRows, NfaTables
from spaseq.matching.shedding import _kernel_known as k
from spaseq.matching.shedding import _kernel_rehearsed as ghosts
from spaseq.terms.dictionary import Term

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of a place: its feature (-1 for none), the number of codes, its gates."""

    feature: int
    size: int
    gates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClassStep:
    """A step from a gate of place ``source`` to place ``target``; ``at``: where its counts begin.

    ``accepts``: the numbers of the ways to end there.
    """

    gate: int
    source: int
    target: int
    at: int
    accepts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The rehearsals of a query (see ``rates.Rehearsal``).

    ``slots``: the number of a ghost's values; ``ghosts``: the integers of all places' ghosts; ``trials``: the
    number of counts of trials; ``begins``: where the counts of each step begin. ``signs``: for each step, the
    operator of its condition if it compares the feature of its place with a value of an event, else None.
    """

    slots: int
    ghosts: int
    trials: int
    begins: tuple[int, ...]
    signs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a query's places, in the form that kernels take.

    ``tables``: the query's, followed by programs. ``rows``: features, and ``ways``: for each way its gate and
    the feature of the target place (see ``_kernel_known``). ``bases``: for each gate, its first class;
    ``classes``: their number; ``counted``: the number of counts of steps. ``rehearsed`` is None if the effect
    of an event depends on more than the bindings and its own values. ``tells_the_dead``, ``graves``: see
    those functions; ``taken``: by slot, 1 if an event of a match may bind it.
    """

    tables: Ints
    rows: Ints
    ways: Ints
    bases: Ints
    classes: int
    counted: int
    places: tuple[Codes, ...]
    steps: tuple[ClassStep, ...]
    tells_the_dead: bool
    graves: Ints
    taken: Ints
    rehearsed: Rehearsed | None

    def size(self, place: int) -> int:
        """Return the number of codes of a place."""
        return self.places[place].size

    def block(self, counts: Floats, step: ClassStep) -> Floats:
        """Return the counts of one step, among those of all: by the code that advanced, and the code it
        advanced to.
        """
        size, other = self.size(step.source), self.size(step.target)
        return counts[step.at : step.at + size * other].reshape(size, other)

    def own(self, gate: int) -> slice:
        """Return the classes of a gate."""
        begin = int(self.bases[gate])
        return slice(begin, begin + next(place.size for place in self.places if gate in place.gates))


def features(compiled: NfaTables, intern: Callable[[Term], int]) -> Features:
    """Return the features of a query's places."""
    analysis = compiled.analysis
    bound = _bound(analysis)
    out = Sections()
    programs = Programs(out, analysis.slots, analysis.kleenes, analysis.accumulators, intern)
    start = len(compiled.tables)
    rows: list[tuple[int, int, int]] = []
    places: list[Codes] = []
    numbers = {id(gate): i for i, gate in enumerate(analysis.gates)}
    bases = np.zeros(len(analysis.gates), dtype=np.int64)
    classes = 0
    codes_of: list[Code] = []
    for place in analysis.places:
        # Only the first value that the nearest condition reads: with more, each class would have too few
        # counts.
        code = next(_features(analysis, place, bound[id(place)]), None)
        feature, size = -1, 1
        if code is not None:
            first, last = programs.write(code)
            codes_of.append(code)
            feature, size = len(rows), k.LEVELS
            rows.append((start + 4 * first.row, start + 4 * last.row, 0))
        gates = tuple(numbers[id(gate)] for gate in place.gates)
        places.append(Codes(feature, size, gates))
        for gate in gates:
            bases[gate] = classes
            classes += size
    taken = frozenset[str]().union(*bound.values())
    of_place = {id(place): i for i, place in enumerate(analysis.places)}
    of_gate = {gate: i for i, codes in enumerate(places) for gate in codes.gates}
    ends = np.cumsum([0, *(len(place.accepts) for place in analysis.places)]).tolist()
    accepts = [tuple(range(begin, end)) for begin, end in pairwise(ends)]
    ways, steps, at = [], [], 0
    for candidate in compiled.candidates:
        gate = numbers[id(candidate.gate)]
        if candidate.way is None:
            ways.append((gate, -1, 1, 0))
            continue
        target = of_place[id(candidate.way.target)]
        codes = places[target]
        ways.append((gate, codes.feature, codes.size, at))
        source = of_gate[gate]
        steps.append(ClassStep(gate, source, target, at, accepts[target]))
        at += places[of_gate[gate]].size * codes.size
    tried, rehearsed = _rehearsed(compiled, places, steps, codes_of, programs, start)
    return Features(
        tables=np.concatenate([compiled.tables, out.array([])]),
        rows=np.array(rows or [(0, 0, 0)], dtype=np.int64).ravel(),
        ways=np.concatenate([np.array(ways, dtype=np.int64), tried], axis=1).ravel(),
        bases=bases,
        classes=max(classes, 1),
        counted=max(at, 1),
        places=tuple(places),
        steps=tuple(steps),
        tells_the_dead=tells_the_dead(analysis),
        graves=graves(compiled),
        taken=np.array([name in taken for name in analysis.slots] or [False], dtype=np.int64),
        rehearsed=rehearsed,
    )


def _rehearsed(
    compiled: NfaTables, places: Sequence[Codes], steps: Sequence[ClassStep], codes: Sequence[Code],
    programs: Programs, start: int,
) -> tuple[Ints, Rehearsed | None]:  # fmt: skip
    """Return the columns of each way from ``W_FROM`` on, and the rehearsals, if any.

    ``codes``: the programs of features. More programs are written to ``programs``, which begin at
    ``start``.
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
        sign, own = compared(code, codes[place.feature : place.feature + 1], columns)
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


def _repeats(place: ProgramState) -> bool:
    """Return whether a way out of a place leads back to it."""
    return any(place is again for way in _ways(place) for again in _walk(way))


def _ways(place: ProgramState) -> list[ProgramState]:
    return [way.target for gate in place.gates for way in gate.ways]


def _walk(place: ProgramState) -> list[ProgramState]:
    """Return the places reachable from a place, itself first."""
    seen, found = {id(place)}, [place]
    for each in found:
        for other in _ways(each):
            if id(other) not in seen:
                seen.add(id(other))
                found.append(other)
    return found


def _bound(analysis: Analysis) -> dict[int, frozenset[str]]:
    """Return the variables that may be bound at each place."""
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


def _features(analysis: Analysis, place: ProgramState, bound: frozenset[str]) -> Iterator[Code]:
    """Yield the values of a partial match that later conditions read, those of the next events first."""
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
        yield from _parts(analysis.steps(item, FilterSite()), bound, analysis)


def _is_before(columns: Mapping[str, int], code: Code) -> bool:
    """Return whether a program only reads values from before an event with these columns."""
    names = [step.what for step in code if step.op == "PUSH"]
    return bool(names) and not any(name in columns for name in names)


def _is_had(bound: frozenset[str], analysis: Analysis, code: Code) -> bool:
    """Return whether a program only reads bound variables, and its value differs between partial matches."""
    named = [step for step in code if step.op in ("PUSH", "AGGREGATE")]
    return bool(named) and all(_is_bound(step, bound, analysis) for step in named)


def _is_bound(step: Instruction, bound: frozenset[str], analysis: Analysis) -> bool:
    match step:
        case Instruction("PUSH", str(name)):
            return name in bound and name in analysis.slots
        case Instruction("AGGREGATE", Accumulator() as a):
            return a.kind in ("SUM", "COUNT", "MIN", "MAX") and a.variable in bound
    return False


def _parts(code: Sequence[Instruction], bound: frozenset[str], analysis: Analysis) -> Iterator[Code]:
    """Yield the largest parts of a program that only read bound variables, outside of branches."""
    # The stack: for each value its program, or None if a future event determines it.
    stack: list[Code | None] = []
    i = 0
    while i < len(code):
        step = code[i]
        i += 1
        match step:
            case Instruction("IF_BOUND" | "IF_COMPLETED" | "UNLESS_FALSE" | "UNLESS_TRUE"):
                continue
            case Instruction("JUMP" | "KEEP", skip=skip):
                i += skip
                continue
            case Instruction("CHOOSE"):
                yield from _read(stack.pop())
                continue
            case Instruction("PUSH"):
                stack.append((step,) if _is_bound(step, bound, analysis) else None)
                continue
            case Instruction("AGGREGATE"):
                stack.append((step._replace(inside=False),) if _is_bound(step, bound, analysis) else None)
                continue
            case Instruction("CONSTANT"):
                stack.append((step,))
                continue
            case Instruction("ONE" | "BOUND"):
                stack.append(None)
                continue
            case Instruction("LOOK_UP", DerivedLookup(names=names)):
                size = len(names)
            case Instruction("DISTANCE"):
                size = 4
            case Instruction("TEST" | "NOT"):
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
    """Yield a part with a value that differs between partial matches."""
    if part is not None and any(step.op in ("PUSH", "AGGREGATE") for step in part):
        yield part


assert (k.F_SIZE, k.W_SIZE) == (3, 11)  # the number of columns that are written here


Code = tuple[Instruction, ...]

#: Instructions that take one value or two, and push one.
UNARY: Final = frozenset({"MINUS", "ABS", "FUNCTION"})
BINARY: Final = frozenset({"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "AVERAGE", "FUNCTION_2"})
_FIRST: Final = frozenset({"PUSH", "CONSTANT", "AGGREGATE"})
#: For each operator, the equivalent one for swapped operands.
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def compared(
    code: Sequence[Instruction], features: Sequence[Code], brought: Container[str]
) -> tuple[str | None, Code]:
    """Return the operator and program of a condition that only compares a feature with a value of an event.

    ``features`` are programs, too; ``brought`` are the variables of the event.

    >>> x, y, less = Instruction("PUSH", "x"), Instruction("PUSH", "y"), Instruction("COMPARE", "<")
    >>> compared([x, y, Instruction("MINUS"), less], [(x,)], {"y"}) == ("<", (y, Instruction("MINUS")))
    True
    >>> compared([x, y, less], [(y,)], {"x"}) == (">", (x,))
    True
    >>> compared([x, y, less], [(x,)], {})
    (None, ())
    """
    sides = _sides(code)
    if sides is not None:
        left, right = (side.code for side in sides)
        sign = str(code[-1].what)
        for own, other, read in ((left, right, sign), (right, left, _FLIPPED[sign])):
            if own in features and all(_is_brought(step, brought) for step in other):
                return read, other
    return None, ()


def _is_brought(step: Instruction, brought: Container[str]) -> bool:
    return step.op not in _FIRST or step.op == "CONSTANT" or (step.op == "PUSH" and step.what in brought)


def balanced(code: Sequence[Instruction], is_own: Callable[[Code], bool]) -> Code:
    """Return conditions with the partial match's terms on the left side of comparisons of sums.

    In ``z + x > y + 3``, where ``x`` and ``y`` are the partial match's, ``x - y`` determines the result, and
    neither variable alone does. Numerically it is the same condition except for rounding; it is used for
    learning only. ``is_own``: whether a term is the partial match's.

    >>> x, y, z = Instruction("PUSH", "x"), Instruction("PUSH", "y"), Instruction("PUSH", "z")
    >>> three = Instruction("CONSTANT", 3)
    >>> add, less = Instruction("ADD"), Instruction("COMPARE", ">")
    >>> found = balanced([z, x, add, y, three, add, less], {(x,), (y,)}.__contains__)
    >>> [step.what or step.op for step in found]
    ['x', 'y', 'SUBTRACT', 3, 'z', 'SUBTRACT', '>']
    """
    if any(step.op not in _FIRST | UNARY | BINARY | {"COMPARE"} for step in code):
        return tuple(code)
    out, begin = list[Instruction](), 0
    for i, step in enumerate(code):
        if step.op == "COMPARE":
            out += _balanced(code[begin : i + 1], is_own)
            begin = i + 1
    return (*out, *code[begin:])


class _Sum(NamedTuple):
    """A program, and the terms of its sum: each is a program that is added or subtracted."""

    code: Code
    terms: tuple[tuple[bool, Code], ...]


def _balanced(code: Sequence[Instruction], is_own: Callable[[Code], bool]) -> Sequence[Instruction]:
    sides = _sides(code)
    if sides is None:
        return code
    left, right = sides
    terms = (*left.terms, *_negative(right.terms))
    own = [term for term in terms if is_own(term[1])]
    others = _negative(tuple(term for term in terms if not is_own(term[1])))
    if not own or not others:
        return code
    sign = code[-1]
    if not any(is_added for is_added, _ in own):
        own, others, sign = (
            list(_negative(own)),
            _negative(others),
            sign._replace(what=_FLIPPED[str(sign.what)]),
        )
    return [*_added(own), *_added(others), sign]


def _negative(terms: Sequence[tuple[bool, Code]]) -> tuple[tuple[bool, Code], ...]:
    return tuple((not is_added, code) for is_added, code in terms)


def _added(terms: Sequence[tuple[bool, Code]]) -> list[Instruction]:
    """Return the program of a sum."""
    (is_added, first), *rest = sorted(terms, key=lambda term: not term[0])
    code = [*first] if is_added else [*first, Instruction("MINUS")]
    for is_added, term in rest:
        code += [*term, Instruction("ADD" if is_added else "SUBTRACT")]
    return code


def _sides(code: Sequence[Instruction]) -> tuple[_Sum, _Sum] | None:
    """Return the operands of a program that is one ordering comparison of numbers, without branches."""
    if not code or code[-1].op != "COMPARE" or code[-1].what not in _FLIPPED:
        return None
    stack: list[_Sum] = []
    for step in code[:-1]:
        size = 0 if step.op in _FIRST else 1 if step.op in UNARY else 2
        if (size == 2 and step.op not in BINARY) or len(stack) < size:
            return None
        taken = [stack.pop() for _ in range(size)][::-1]
        whole = (*(s for part in taken for s in part.code), step)
        stack.append(_Sum(whole, _terms(step, whole, [part.terms for part in taken])))
    return (stack[0], stack[1]) if len(stack) == 2 else None


def _terms(
    step: Instruction, whole: Code, of: Sequence[tuple[tuple[bool, Code], ...]]
) -> tuple[tuple[bool, Code], ...]:
    """Return the terms of a program's sum; ``of``: the terms of the operands of its last step."""
    match step.op:
        case "ADD":
            return (*of[0], *of[1])
        case "SUBTRACT":
            return (*of[0], *_negative(of[1]))
        case "MINUS":
            return _negative(of[0])
        case _:
            return ((True, whole),)


#: Instructions with a result that, once there is one, does not change when more variables are bound.
_LASTING: Final = BINARY | {
    "MINUS",
    "ABS",
    "NOT",
    "FUNCTION",
    "PUSH",
    "CONSTANT",
    "DISTANCE",
    "COMPARE",
    "RELATE",
    "TEST",
    "OR",
    "AND",
    "UNLESS_TRUE",
    "UNLESS_FALSE",
} - {"AVERAGE"}


def tells_the_dead(analysis: Analysis) -> bool:
    """Return whether the current bindings of a partial match decide that a forbidden event ends it for good.

    A forbidden element must have only one reading, and no future event may change the result of its
    conditions. So no condition may test whether a variable is bound, or read a Kleene in progress.
    """
    absences = analysis.absences
    checked = [check.atom for absence in absences.all for check in absences.checks(absence)]
    return (
        bool(checked)
        and len(absences.views) == 1
        and all(
            step.op in _LASTING for atom in checked for step in analysis.codes[atom.id, absences.views[0]]
        )
    )


def graves(compiled: NfaTables) -> Ints:
    """Return where to find the partial matches that forbidden events may end, in the form of
    ``_kernel_known``.

    There is a row for each chain of forbidden rows and each gate at which partial matches wait while the gap
    is open. The forbidden rows must have the gate's key, by which the partial matches are found.
    """
    if not tells_the_dead(compiled.analysis):
        return np.zeros(0, dtype=np.int64)
    rows = dict.fromkeys(_rows(compiled))
    return np.array(list(rows), dtype=np.int64).reshape(-1, k.G_SIZE)


def _rows(compiled: NfaTables) -> Iterator[tuple[int, ...]]:
    analysis, t = compiled.analysis, compiled.tables
    first = int(t[t[v.START] + places.GATES])
    for number, gate in enumerate(analysis.gates):
        key = analysis.gate_key(gate)
        for absence in analysis.absences.open_at(gate):
            for check in analysis.absences.checks(absence):
                chain = analysis.chain(check.atom)
                if check.sure and set(key) <= set(chain.key):
                    columns = _columns(compiled, chain.gpm, key)
                    filled = *columns, *[0] * (k.MOST_KEYS - len(columns))
                    yield _at(compiled, chain), first + number * gates.SIZE, len(columns), *filled


def _columns(compiled: NfaTables, gpm: str, names: list[str]) -> list[int]:
    number = compiled.gpms.index(gpm)
    return [compiled.columns.index((number, name)) for name in names]


def _at(compiled: NfaTables, chain: KeyedRows) -> int:
    """Return where a chain stands in the tables."""
    t, gpm = compiled.tables, compiled.gpms.index(chain.gpm)
    key = _columns(compiled, chain.gpm, list(chain.key))
    return next(
        at
        for at in range(t[v.CHAINS], t[v.CHAINS_END], chains.SIZE)
        if t[at + chains.GPM] == gpm and t[t[at + chains.KEYS] : t[at + chains.KEYS_END]].tolist() == key
    )


#: Edges are learned from this many values on, and again when there are this many times more.
_FEW: Final = 64
#: Partial matches often have the same events; for features of events, fewer values suffice.
_FEW_EVENTS: Final = 16
_AGAIN: Final = 4
#: Edges are discarded when this share of the values lies between two of them.
_SKEWED: Final = 0.4


class Quantiles:
    """The ``rows`` of features (see ``Features``), their ``edges``, and ``rings`` of their latest values."""

    def __init__(self, features: Features) -> None:
        self.rows: Ints = features.rows.copy()
        count = len(self.rows) // k.F_SIZE
        self.edges: Floats = np.zeros(count * k.EDGES)
        self.rings: Floats = np.zeros(count * (k.RING + 1))
        self._due = np.zeros(count)

    @property
    def arrays(self) -> tuple[Ints, Floats, Floats]:
        """Rows, edges and rings."""
        return self.rows, self.edges, self.rings

    def learn(self, feature: int, brought: Floats | None) -> bool:
        """Learn the edges of a feature again, where due; return whether they have changed.

        If a condition compares the feature with values of events, its edges are quantiles of these values.
        ``brought`` is a ring of such values.
        """
        ring = self.rings[feature * (k.RING + 1) :] if brought is None else brought
        seen, few = ring[0], _FEW if brought is None else _FEW_EVENTS
        if seen < max(few, self._due[feature]):
            return False
        self._due[feature] = seen * _AGAIN if seen < k.RING else seen + _AGAIN * k.RING
        values = np.sort(latest(ring, 0))
        count = int(self.rows[feature * k.F_SIZE + k.F_COUNT])
        # If events bring a single value, it matters which values are above it.
        if (count or brought is None) and self._fits(feature, values):
            return False
        cut = np.unique(np.quantile(values, np.linspace(0, 1, k.EDGES + 2)[1:-1], method="lower"))
        self.edges[feature * k.EDGES :][: len(cut)] = cut
        self.rows[feature * k.F_SIZE + k.F_COUNT] = len(cut)
        return True

    def values(self, feature: int) -> Floats:
        """Return the latest values of a feature."""
        return latest(self.rings, feature)

    def shares(self, feature: int, values: Floats) -> Floats:
        """Return the share of some values at each level of a feature; equal shares if there are none."""
        if not len(values):
            return np.full(k.LEVELS, 1 / k.LEVELS)
        return np.bincount(1 + np.searchsorted(self.own(feature), values), minlength=k.LEVELS) / len(values)

    def own(self, feature: int) -> Floats:
        """Return the edges of a feature."""
        return self.edges[feature * k.EDGES :][: self.rows[feature * k.F_SIZE + k.F_COUNT]]

    def _fits(self, feature: int, values: Floats) -> bool:
        """Return whether the edges also divide these values into parts of about equal size."""
        edges = self.own(feature)
        count = len(edges)
        if count < min(k.EDGES, len(np.unique(values)) - 1) // 2:
            return False
        sizes = np.bincount(np.searchsorted(edges, values), minlength=count + 1)
        return bool(sizes.max() <= max(_SKEWED, 3 / (count + 1)) * len(values))


def latest(rings: Floats, number: int) -> Floats:
    """Return the latest values of one of several rings."""
    ring = rings[number * (k.RING + 1) :][: k.RING + 1]
    return ring[1 : 1 + min(int(ring[0]), k.RING)]
