"""The runs that the kernel found, as matches in the order of delivery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from math import prod
from operator import attrgetter, itemgetter

import numpy as np
import numpy.typing as npt

from spaseq.automaton.nfa import Action, Again, Enter, Leave
from spaseq.automaton.pattern import Atom, Both, Kleene, Node, SequencePattern, walk
from spaseq.events import EventBatch
from spaseq.gpm.solutions import Solutions
from spaseq.language.syntax import Emit, Filter
from spaseq.matching.host import InOrder, Key, delivered, may_end_together, select
from spaseq.matching.kernel import _kernel as k
from spaseq.matching.kernel import _kernel_layout as lay
from spaseq.matching.kernel import _kernel_memory as mem
from spaseq.matching.kernel.conditions import needs
from spaseq.matching.kernel.replay import Replay
from spaseq.matching.kernel.tables import Compiled
from spaseq.matching.model import Choice, Found, Occurrence, Row, distinct
from spaseq.matching.past import Past

Ints = npt.NDArray[np.int64]

_Binding = dict[str, int]


@dataclass(frozen=True, slots=True)
class Site:
    """Where in the sequence an event is taken: its GPM, and the Kleene it is in, if any.

    ``begins``: it is the first event of an iteration. ``own`` are that Kleene's variables.
    """

    number: int
    gpm: str
    kleene: int | None
    begins: bool
    own: frozenset[str]


class Matches:
    """Makes matches of the runs that a kernel found.

    A match whose events gave one solution each, and which no filter of WHERE has a say in, is nothing but
    those solutions side by side: it is made of references to them, and looked at when somebody asks. The
    others are replayed.
    """

    def __init__(
        self, pattern: SequencePattern, compiled: Compiled, past: Past, replay: Replay, order: InOrder
    ) -> None:
        self._emit = pattern.query.emit
        self._order = order
        self._several = may_end_together(pattern)
        self._keys = len(pattern.query.partition)
        self._past = past
        self._replay = replay
        kleenes = {node.id: node for node in walk(pattern.root) if isinstance(node, Kleene)}
        plain = plain_kleenes(pattern)
        self._sites: list[Site] = []
        simple = []
        for candidate in compiled.candidates:
            actions = (*candidate.gate.ends, *candidate.begins)
            keeps = _keeps(actions, plain) and set(candidate.inside) <= plain
            simple.append(not pattern.where and candidate.apart and keeps)
            inside = kleenes[candidate.inside[-1]] if candidate.inside else None
            self._sites.append(
                Site(
                    compiled.gpms.index(candidate.unit.gpm),
                    candidate.unit.gpm,
                    None if inside is None else inside.id,
                    any(isinstance(action, Enter | Again) for action in actions),
                    frozenset() if inside is None else inside.own,
                )
            )
        self._simple = np.array(simple, dtype=np.bool_)
        self._simple_ends = np.array([_keeps(ends, plain) for ends in compiled.accepts], dtype=np.bool_)

    def of(self, m: Ints) -> Iterator[tuple[Key, Found]]:
        """The matches found since the last call in a kernel's memory, which forgets them."""
        count = int(m[mem.FOUND_COUNT])
        rows = m[m[mem.FOUND] : m[mem.FOUND] + count * lay.FOUND_SIZE].reshape(-1, lay.FOUND_SIZE)
        depths = m[rows[:, 2] + mem.DEPTH]
        ways = rows[:, 3].copy()
        keys = m[rows[:, 1:2] + (mem.KEY + np.arange(self._keys))]
        groups = rows[:, :2].tolist()
        steps = np.zeros((int(depths.sum()), 3), dtype=np.int64)
        k.unroll(m, steps.ravel())
        made = self._made(keys, ways, depths, steps)
        for _, same in groupby(zip(groups, made, strict=True), key=itemgetter(0)):
            found = [(key, match) for _, (key, match) in same if match is not None]
            if len(found) > 1:
                key = found[0][0]
                found = [(key, match) for match in self._chosen([match for _, match in found])]
            yield from found

    def made(self, keys: Ints, ways: Ints, depths: Ints, steps: Ints) -> Iterator[tuple[Key, Found]]:
        """Matches in the order given, a row each: its partition, how it ended, how many events it has.

        ``steps`` are those events, one match after the other: position, candidate, and row.
        """
        for key, match in self._made(keys, ways, depths, steps):
            if match is not None:
                yield key, match

    def _made(self, keys: Ints, ways: Ints, depths: Ints, steps: Ints) -> Iterator[tuple[Key, Found | None]]:
        """The same; None for one whose Ω turns out to be empty."""
        bounds = np.zeros(len(depths) + 1, dtype=np.int64)
        np.cumsum(depths, out=bounds[1:])
        whole = self._simple[steps[:, 1]] & (steps[:, 2] >= 0)
        simple = self._simple_ends[ways] & np.logical_and.reduceat(whole, bounds[:-1])
        runs = Taken(self._sites, self._past, steps)
        at = bounds.tolist()
        for i, (key, way, is_simple) in enumerate(
            zip(map(tuple, keys.tolist()), ways.tolist(), simple.tolist(), strict=True)
        ):
            if is_simple:
                yield key, Plain(runs, at[i], at[i + 1])
            else:
                yield key, self._replay.match(steps[at[i] : at[i + 1], :2].tolist(), way, key)

    def _chosen(self, found: Sequence[Found]) -> list[Found]:
        """Those of the matches with the same last event that are delivered, in order."""
        if self._several:
            return delivered(self._emit, distinct(found), self._order)
        by_path = dict(sorted(((match.path, match) for match in found), key=itemgetter(0)))
        if len(by_path) == len(found) and self._emit is Emit.ALL:
            return list(by_path.values())
        return sorted(select(self._emit, distinct(found), self._order), key=attrgetter("path"))


class Taken:
    """The events of some runs, one after the other: where they are, and which solution each gave."""

    def __init__(self, sites: Sequence[Site], past: Past, steps: Ints) -> None:
        self.chunks = past.chunks(steps[:, 0])
        self.positions: list[int] = steps[:, 0].tolist()
        self.sites = [sites[candidate] for candidate in steps[:, 1].tolist()]
        self.rows: list[int] = steps[:, 2].tolist()

    @cached_property
    def path(self) -> list[tuple[int, str]]:
        """Position and GPM of every event."""
        return list(zip(self.positions, [site.gpm for site in self.sites], strict=True))

    def columns(self, i: int) -> dict[str, Ints]:
        """Where the solution of an event stands, at its row."""
        solutions: Solutions = self.chunks[i].solutions[self.sites[i].number]
        return solutions.columns

    def time(self, i: int) -> int:
        """When an event was."""
        chunk = self.chunks[i]
        return int(chunk.batch.time[self.positions[i] - chunk.start])


class Plain(Found):
    """A match whose events are some of those of ``runs``, and its Ω their solutions."""

    __slots__ = ("_begin", "_end", "_runs")
    _runs: Taken
    _begin: int
    _end: int

    def __init__(self, runs: Taken, begin: int, end: int) -> None:
        put = object.__setattr__
        put(self, "_runs", runs)
        put(self, "_begin", begin)
        put(self, "_end", end)

    @property
    def events(self) -> tuple[Choice, ...]:
        runs = self._runs
        return tuple(self._event(runs, i) for i in range(self._begin, self._end))

    @staticmethod
    def _event(runs: Taken, i: int) -> Choice:
        chunk, position, site = runs.chunks[i], runs.positions[i], runs.sites[i]
        index = position - chunk.start
        solutions = {site.gpm: (chunk.row(site.number, runs.rows[i]),)}
        return site.gpm, Occurrence(chunk.batch.stamp(index), position, solutions, chunk.batch, index, chunk)

    @property
    def rows(self) -> tuple[Row, ...]:
        shared, kleenes = self._solutions(None)
        completed = {kleene: tuple((s,) for s in iterations) for kleene, iterations in kleenes.items()}
        return tuple(Row(binding, completed) for binding in _combined(shared, kleenes))

    def project(self, names: Sequence[str]) -> list[dict[str, int]]:
        found = _combined(*self._solutions(names))
        return [{name: row[name] for name in names if name in row} for row in found]

    def _solutions(self, names: Sequence[str] | None) -> tuple[_Binding, dict[int, list[_Binding]]]:
        """What is bound outside of Kleenes, and in each of their iterations; only ``names``, if given."""
        runs = self._runs
        shared: _Binding = {}
        kleenes: dict[int, list[_Binding]] = {}
        for i in range(self._begin, self._end):
            site, row, columns = runs.sites[i], runs.rows[i], runs.columns(i)
            own = shared
            if site.kleene is not None:
                iterations = kleenes.setdefault(site.kleene, [])
                if site.begins:
                    iterations.append({})
                own = iterations[-1]
            for name in columns if names is None else names:
                if name in columns and (term := columns[name].item(row)):
                    (own if name in site.own else shared)[name] = term
        return shared, kleenes

    @property
    def size(self) -> int:
        counts: dict[int, int] = {}
        for site in self._runs.sites[self._begin : self._end]:
            if site.begins and site.kleene is not None:
                counts[site.kleene] = counts.get(site.kleene, 0) + 1
        return prod(counts.values())

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        return tuple(sorted(self._runs.path[self._begin : self._end]))  # those of an & stand in any order

    @property
    def span(self) -> tuple[int, int]:
        return self._runs.time(self._begin), self._runs.time(self._end - 1)

    @property
    def places(self) -> Iterator[tuple[str, EventBatch, int]]:
        runs = self._runs
        for i in range(self._begin, self._end):
            chunk = runs.chunks[i]
            yield runs.sites[i].gpm, chunk.batch, runs.positions[i] - chunk.start


def _combined(shared: dict[str, int], kleenes: dict[int, list[dict[str, int]]]) -> Iterator[dict[str, int]]:
    """The solutions of a match: one for each choice of an iteration of every Kleene."""
    for chosen in product(*kleenes.values()):
        solution = dict(shared)
        for iteration in chosen:
            solution.update(iteration)
        yield solution


def plain_kleenes(pattern: SequencePattern) -> frozenset[int]:
    """The Kleenes whose iterations are all in Ω: not nested, and no filter outside chooses among them."""
    nodes = list(walk(pattern.root))
    kleenes = [node for node in nodes if isinstance(node, Kleene)]
    inside = {node.id: {inner.id for inner in walk(node)} for node in kleenes}
    found = set()
    for kleene in kleenes:
        related = [other for other, ids in inside.items() if kleene.id in ids or other in inside[kleene.id]]
        outside = (node for node in nodes if node.id not in inside[kleene.id])
        asked = frozenset[str]().union(
            *(needs(f.condition, pattern.owners) for node in outside for f in _filters(node))
        )
        if related == [kleene.id] and not asked & kleene.own:
            found.add(kleene.id)
    return frozenset(found)


def _filters(node: Node) -> tuple[Filter, ...]:
    """The correlated filters that are asked at a node."""
    if isinstance(node, Atom):
        return node.filters
    return node.deferred if isinstance(node, Both) else ()


def _keeps(actions: Iterable[Action], plain: frozenset[int]) -> bool:
    """Whether actions leave Ω as it is, but for the iterations of such Kleenes."""
    return all(a.kleene in plain for a in actions if isinstance(a, Enter | Again | Leave))
