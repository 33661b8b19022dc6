"""Queries that are parameterized patterns: sequences of GPMs with ``,`` only, compared by equality.

A query's text is the stream (or, with PARTITION BY, the substream of each partition) as its GPMs see it: an
event is a block of tracks. For each *question* that GPMs ask, one track holds whether the event is relevant
for them, and further tracks hold the variables that are compared with other events. GPMs that ask the same
under other names share their tracks, as ``@x`` and ``@y`` stand for any symbol alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.automaton.pattern import Atom, Chain, SequencePattern, walk
from spaseq.language.syntax import Binary, Consume, Expression, Ref, Sequence, Strategy, Var
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.kmp._kernel import RELEVANT
from spaseq.matching.kmp.program import LONGEST, Blocks, KmpProgram, Layout, compile_blocks
from spaseq.matching.obstacles import Obstacle, filter_of, other_operators, subsequences
from spaseq.patterns.sharing import question


@dataclass(frozen=True, slots=True)
class Track:
    """A variable of a GPM. With ``by_value``, values are compared as ``!=`` does; without, terms are compared
    as joins do.
    """

    variable: str
    by_value: bool


@dataclass(frozen=True, slots=True)
class AskedVariable:
    """A question: a GPM that asks it, the track of its relevance, and the tracks of variables, which
    follow.
    """

    gpm: str
    relevance: int
    tracks: tuple[Track, ...]


@dataclass(frozen=True, slots=True)
class KmpQuery:
    """A query for the kernel: the GPMs at the places of the pattern, and the content of its tracks.

    ``witnesses`` are the GPMs that only determine an event's partitions.
    """

    program: KmpProgram
    atoms: tuple[Atom, ...]
    questions: tuple[AskedVariable, ...]
    witnesses: tuple[str, ...]


def obstacles(pattern: SequencePattern) -> Iterator[Obstacle]:
    """Yield why a query cannot be run as a parameterized pattern.

    It must be a sequence of GPMs with ``,`` only, over one stream (events of different streams with equal
    time have no order). Its filters between GPMs must be conjunctions of ``?x != ?y``. Partitions, windows of
    all kinds, EMIT, and events with several solutions are possible.
    """
    query = pattern.query
    if len(set(pattern.streams)) > 1:
        other = query.streams[1]
        yield Obstacle("there is one stream", f"FROM STREAM {other.name}", other.span)
    if query.consume is not Consume.NONE:
        yield Obstacle("nothing is consumed", "CONSUME ANY")
    flat = all(isinstance(node, Atom | Chain) for node in walk(pattern.root))
    for part in () if flat else subsequences(query.sequence):
        if not isinstance(part, Ref | Sequence):
            yield Obstacle("each place is one GPM", print_sequence(part), part.span)
    yield from other_operators(query.sequence, Strategy.STRICT)
    atoms = [node for node in walk(pattern.root) if isinstance(node, Atom)]
    used = {atom.gpm for atom in atoms}
    for gpm in query.gpms:
        if gpm.name not in used:
            yield Obstacle("all GPMs are in the sequence", gpm.name, gpm.span)
    if len(atoms) > LONGEST:
        yield Obstacle(f"it is at most {LONGEST} events long", str(len(atoms)))
    yield from _filter_obstacles(pattern, atoms)


def compile_query(pattern: SequencePattern) -> KmpQuery:
    """Compile a query without obstacles for the kernel."""
    return _QueryCompiler(pattern).compiled()


def _filter_obstacles(pattern: SequencePattern, atoms: list[Atom]) -> Iterator[Obstacle]:
    """Yield filters that are not ``?x != ?y`` with both variables bound."""
    first: dict[str, int] = {}
    for place, atom in enumerate(atoms):
        for name in pattern.gpms[atom.gpm].variables:
            first.setdefault(name, place)
    asked = [(item, place) for place, atom in enumerate(atoms) for item in atom.filters]
    for item, place in dict.fromkeys([*asked, *((item, len(atoms)) for item in pattern.where)]):
        pairs = list(_pairs(item.condition))
        if None in pairs:
            yield filter_of(item, "events are compared by = and != of variables alone")
        for x, y in filter(None, pairs):
            if max(first.get(name, place + 1) for name in (x, y)) > place:
                yield filter_of(item, "variables are compared when both are bound")


def _inequalities(pattern: SequencePattern) -> tuple[tuple[str, str], ...]:
    """Return the pairs of variables that the filters between GPMs compare."""
    atoms = (node for node in walk(pattern.root) if isinstance(node, Atom))
    filters = [*(item for atom in atoms for item in atom.filters), *pattern.where]
    return tuple(dict.fromkeys(pair for item in filters for pair in _pairs(item.condition) if pair))


def _pairs(condition: Expression) -> Iterator[tuple[str, str] | None]:
    """Yield the variables that a conjunction of ``?x != ?y`` compares; None for other conditions."""
    match condition:
        case Binary("&&", left, right):
            yield from _pairs(left)
            yield from _pairs(right)
        case Binary("!=", Var(x), Var(y)) if x != y:
            yield x, y
        case _:
            yield None


class _QueryCompiler:
    def __init__(self, pattern: SequencePattern) -> None:
        self._pattern = pattern
        self._atoms = tuple(node for node in walk(pattern.root) if isinstance(node, Atom))
        self._unequal = _inequalities(pattern)
        places = Counter(name for atom in self._atoms for name in self._variables(atom))
        keys = {variable.name for variable in pattern.query.partition}
        # All events of a partition have the same key.
        self._joined = {name for name, count in places.items() if count > 1} - keys
        self._compared = {name for pair in self._unequal for name in pair}

    def compiled(self) -> KmpQuery:
        names = self._questions()
        wanted: dict[object, dict[tuple[int, bool], None]] = {}
        for key, number, by_value, _, _ in self._uses(names):
            wanted.setdefault(key, {})[number, by_value] = None
        asked: list[AskedVariable] = []
        track_of: dict[object, int] = {}
        at = 0
        for atom in self._atoms:
            key, order = names[atom.gpm]
            if key in track_of:
                continue
            tracks = tuple(wanted.get(key, ()))
            track_of[key] = at
            track_of.update({(key, *track): at + 1 + i for i, track in enumerate(tracks)})
            asked.append(
                AskedVariable(atom.gpm, at, tuple(Track(order[n], by_value) for n, by_value in tracks))
            )
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
        return KmpQuery(program, self._atoms, tuple(asked), tuple(sorted(self._pattern.witnesses)))

    def _variables(self, atom: Atom) -> frozenset[str]:
        return self._pattern.gpms[atom.gpm].variables

    def _questions(self) -> dict[str, tuple[object, tuple[str, ...]]]:
        """Return the question of each GPM, and its variables in the order of the question.

        GPMs that have the partition's variables in different places see an event in different partitions. So
        they ask different questions.
        """
        found: dict[str, tuple[object, tuple[str, ...]]] = {}
        for name in self._pattern.positive:
            part = self._pattern.gpms[name]
            asks = question(part.gpm, part.stateless)
            keys = tuple(asks.names.index(v.name) for v in self._pattern.query.partition)
            found[name] = ((asks.key, keys), asks.names)
        return found

    def _uses(
        self, names: dict[str, tuple[object, tuple[str, ...]]]
    ) -> Iterator[tuple[object, int, bool, str, int]]:
        """Yield each compared variable: its question, its number in the question, whether it is compared by
        value, its name, and its place in the pattern.
        """
        seen: set[str] = set()
        for place, atom in enumerate(self._atoms):
            key, order = names[atom.gpm]
            for number, name in enumerate(order):
                if name not in self._variables(atom):
                    continue
                if name in self._joined:
                    yield key, number, False, name, place
                # A variable that is bound again has the same term.
                if name in self._compared and name not in seen:
                    yield key, number, True, name, place
                seen.add(name)
