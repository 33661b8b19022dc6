"""Queries that are parameterized patterns: sequences of GPMs with ``,`` only, compared by equality.

A query's text is the stream (or, with PARTITION BY, the substream of each partition) as all of its GPMs see
it: an event is a block of tracks. For each *question* that GPMs ask, one track says whether the event is
relevant for them, and further ones what it binds the variables to that other events are compared with. GPMs
that ask the same under other names share their tracks, as ``@x`` and ``@y`` stand for any symbol alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spaseq.automaton.pattern import Atom, Chain, Node, SequencePattern
from spaseq.gpm.sharing import question
from spaseq.language.printer import print_expression
from spaseq.language.syntax import Binary, Consume, Expression, Strategy, Var
from spaseq.matching.parameterized.program import Layout, Program, compile_blocks
from spaseq.matching.parameterized.table import LONGEST, Blocks

#: The code of "relevant"; 0 is that of "not relevant".
RELEVANT: Final = 1


class NotParameterizedError(Exception):
    """Why a query is no parameterized pattern, in a few words."""


@dataclass(frozen=True, slots=True)
class Track:
    """A variable of a GPM. ``by_value``: as ``!=`` compares it; else as a term, which is how it joins."""

    variable: str
    by_value: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: a GPM that asks it, which track tells its relevance, what the tracks after it are."""

    gpm: str
    relevance: int
    tracks: tuple[Track, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query for the kernel: the GPMs at the places of the pattern, and what its tracks hold."""

    program: Program
    atoms: tuple[Atom, ...]
    questions: tuple[Asked, ...]


def fits(pattern: SequencePattern) -> str | None:
    """Why a query is not run as a parameterized pattern, in a few words; None if it is.

    It must be a sequence of GPMs with ``,`` only, over one stream (events of different streams with equal
    time have no order), whose filters between GPMs are conjunctions of ``?x != ?y``. Partitions, windows of
    all kinds, EMIT, and events with several solutions may be as they like.
    """
    try:
        _atoms(pattern)
        _inequalities(pattern)
    except NotParameterizedError as reason:
        return str(reason)
    return None


def compile_query(pattern: SequencePattern) -> Compiled:
    """A query for the kernel. Raises ``NotParameterizedError``."""
    return _Compiler(pattern).compiled()


def _atoms(pattern: SequencePattern) -> tuple[Atom, ...]:
    """The places of the sequence."""
    if len(set(pattern.streams)) > 1:
        raise NotParameterizedError("simultaneous events of several streams have no order")
    if pattern.query.consume is not Consume.NONE:
        raise NotParameterizedError("CONSUME ANY drops runs")
    atoms = tuple(_flat(pattern.root))
    if {atom.gpm for atom in atoms} != set(pattern.gpms):
        raise NotParameterizedError("a GPM is not in the sequence")
    if len(atoms) > LONGEST:
        raise NotParameterizedError(f"it is longer than {LONGEST} events")
    return atoms


def _flat(node: Node) -> Iterator[Atom]:
    match node:
        case Atom():
            yield node
        case Chain(items=items, operators=operators) if set(operators) <= {Strategy.STRICT}:
            for item in items:
                yield from _flat(item)
        case Chain():
            raise NotParameterizedError("it has other operators than ,")
        case _:
            raise NotParameterizedError("it is more than GPMs one after the other")


def _inequalities(pattern: SequencePattern) -> tuple[tuple[str, str], ...]:
    """The pairs of variables that the filters between GPMs compare."""
    atoms = _atoms(pattern)
    first: dict[str, int] = {}
    for place, atom in enumerate(atoms):
        for name in pattern.gpms[atom.gpm].variables:
            first.setdefault(name, place)
    found: dict[tuple[str, str], None] = {}
    for place, atom in enumerate(atoms):
        for item in atom.filters:
            for x, y in _pairs(item.condition):
                if max(first.get(name, place + 1) for name in (x, y)) > place:
                    raise NotParameterizedError(f"?{x} != ?{y} is asked before both are bound")
                found[x, y] = None
    for item in pattern.where:
        for pair in _pairs(item.condition):
            if not first.keys() >= set(pair):
                raise NotParameterizedError("a filter asks about a variable that no GPM binds")
            found[pair] = None
    return tuple(found)


def _pairs(condition: Expression) -> Iterator[tuple[str, str]]:
    match condition:
        case Binary("&&", left, right):
            yield from _pairs(left)
            yield from _pairs(right)
        case Binary("!=", Var(x), Var(y)) if x != y:
            yield x, y
        case _:
            raise NotParameterizedError(
                f"{print_expression(condition)} is not an inequality of two variables"
            )


class _Compiler:
    def __init__(self, pattern: SequencePattern) -> None:
        self._pattern = pattern
        self._atoms = _atoms(pattern)
        self._unequal = _inequalities(pattern)
        places = Counter(name for atom in self._atoms for name in self._variables(atom))
        keys = {variable.name for variable in pattern.query.partition}
        # All events of a partition have the same key.
        self._joined = {name for name, count in places.items() if count > 1} - keys
        self._compared = {name for pair in self._unequal for name in pair}

    def compiled(self) -> Compiled:
        names = self._questions()
        wanted: dict[object, dict[tuple[int, bool], None]] = {}
        for key, number, by_value, _, _ in self._uses(names):
            wanted.setdefault(key, {})[number, by_value] = None
        asked: list[Asked] = []
        track_of: dict[object, int] = {}
        at = 0
        for atom in self._atoms:
            key, order = names[atom.gpm]
            if key in track_of:
                continue
            tracks = tuple(wanted.get(key, ()))
            track_of[key] = at
            track_of.update({(key, *track): at + 1 + i for i, track in enumerate(tracks)})
            asked.append(Asked(atom.gpm, at, tuple(Track(order[n], by_value) for n, by_value in tracks)))
            at += 1 + len(tracks)
        variables: list[dict[int, int]] = [{} for _ in self._atoms]
        numbers: dict[tuple[str, bool], int] = {}
        for key, number, by_value, name, place in self._uses(names):
            variable = numbers.setdefault((name, by_value), len(numbers))
            variables[place][track_of[key, number, by_value]] = variable
        constants = tuple({track_of[names[atom.gpm][0]]: RELEVANT} for atom in self._atoms)
        blocks = Blocks(
            constants=constants,
            variables=tuple(variables),
            unequal=tuple((numbers[x, True], numbers[y, True]) for x, y in self._unequal),
            codes=RELEVANT,
        )
        # A track holds either codes or symbols.
        program = compile_blocks(blocks, Layout(codes=range(at), symbols=range(at)))
        return Compiled(program, self._atoms, tuple(asked))

    def _variables(self, atom: Atom) -> frozenset[str]:
        return self._pattern.gpms[atom.gpm].variables

    def _questions(self) -> dict[str, tuple[object, tuple[str, ...]]]:
        """What each GPM asks, and its variables in the order of the question.

        GPMs that have the partition's variables in different places see an event in different partitions.
        """
        found: dict[str, tuple[object, tuple[str, ...]]] = {}
        for name, part in self._pattern.gpms.items():
            asks = question(part.gpm, part.stateless)
            keys = tuple(asks.names.index(v.name) for v in self._pattern.query.partition)
            found[name] = ((asks.key, keys), asks.names)
        return found

    def _uses(
        self, names: dict[str, tuple[object, tuple[str, ...]]]
    ) -> Iterator[tuple[object, int, bool, str, int]]:
        """What is compared: question, number of the variable in it, by value or not, its name, the place."""
        seen: set[str] = set()
        for place, atom in enumerate(self._atoms):
            key, order = names[atom.gpm]
            for number, name in enumerate(order):
                if name not in self._variables(atom):
                    continue
                if name in self._joined:
                    yield key, number, False, name, place
                # Where a variable is bound again, its term is the same.
                if name in self._compared and name not in seen:
                    yield key, number, True, name, place
                seen.add(name)
