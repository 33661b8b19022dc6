"""The kernel's findings as blocks of matches in the order of delivery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.automaton.nfa import Action, Again, Enter, Leave
from spaseq.automaton.pattern import Atom, Both, Kleene, Node, SequencePattern, walk
from spaseq.language.syntax import Emit, Filter
from spaseq.matching.columns.blocks.few import FEW, apart, arranged, mixed
from spaseq.matching.columns.blocks.found import Block, Objects
from spaseq.matching.columns.blocks.plain import Columns, EventSite, Sites
from spaseq.matching.columns.history import History
from spaseq.matching.filters.postfix import needs
from spaseq.matching.host import InOrder, Key, delivered, emitted, may_end_together, select
from spaseq.matching.model import Found, distinct
from spaseq.matching.nfa.compiled import _kernel as k
from spaseq.matching.nfa.compiled import _kernel_laid as out
from spaseq.matching.nfa.exact import RunReplay
from spaseq.matching.nfa.records import findings, header, nodes, partitions
from spaseq.matching.nfa.tables.analysis import Looks, NfaTables

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: The room for the events of a few matches.
_DEEP: Final = 1_024


class FoundRuns(NamedTuple):
    """Completed runs in the order in which they were found, a row each.

    ``ends`` are the last event and the partition, as numbers; ``keys`` the partition's values; ``ways`` how
    they ended; ``depths`` how many events they have. ``steps`` are these events, one run after the other:
    position, candidate, and row.
    """

    ends: Ints
    keys: Ints
    ways: Ints
    depths: Ints
    steps: Ints


def unrolled(m: Ints, keys: int) -> FoundRuns:
    """Return the runs found since the last call in a kernel's memory, which forgets them; ``keys`` per
    partition.
    """
    count = int(m[header.FOUND_COUNT])
    rows = m[m[header.FOUND] : m[header.FOUND] + count * findings.SIZE].reshape(-1, findings.SIZE)
    depths = m[rows[:, 2] + nodes.DEPTH]
    ends, ways = rows[:, :2].copy(), rows[:, 3].copy()
    values = m[rows[:, 1:2] + (partitions.KEY + np.arange(keys))]
    steps = np.zeros((int(depths.sum()), 3), dtype=np.int64)
    k.unroll(m, steps.ravel())
    return FoundRuns(ends, values, ways, depths, steps)


class RunMatches:
    """Makes matches of the kernel's runs.

    If each event of a match has one solution and no filter of WHERE applies, the match is these solutions
    side by side: columns. Other matches are replayed.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        compiled: NfaTables,
        history: History,
        replay: RunReplay,
        order: InOrder,
        decided: bool = False,
    ) -> None:
        """``decided``: every run is a match, whatever the filters of WHERE require."""
        self._emit = emitted(pattern)
        self._order = order
        self._several = may_end_together(pattern)
        self._keys = len(pattern.query.partition)
        self._history = history
        self._replay = replay
        looks = compiled.looks.get(decided)
        if looks is None:
            looks = compiled.looks[decided] = _looks(pattern, compiled, decided)
        self.sites, self._simple, self._simple_ends = looks
        # The events of a few runs.
        self._steps = np.empty(3 * _DEEP, dtype=np.int64)
        self._all_simple = bool(self._simple.all())
        self._are_plain = self.are_simple and self.are_in_order

    @property
    def are_simple(self) -> bool:
        """Whether each match is its events' solutions side by side, provided that each event has one
        solution.
        """
        return self._all_simple and bool(self._simple_ends.all())

    @property
    def are_in_order(self) -> bool:
        """Whether all matches with one last event are delivered in the order of their events."""
        return not self._several and self._emit is Emit.ALL

    def of(self, m: Ints) -> Iterator[Block]:
        """Return the matches found since the last call in a kernel's memory, which forgets them."""
        if self._are_plain:
            block = self._plain(m)
            if block is not None:
                return iter((block,))
        return self.of_runs(unrolled(m, self._keys))

    def _plain(self, m: Ints) -> Columns | None:
        """Return the matches as columns, if each consists only of its events.

        Return None, and forget nothing, in two cases: two matches of one partition and last event have the
        same events, or an event was taken with several of its solutions.
        """
        count, n_keys, size = m.item(header.FOUND_COUNT), self._keys, out.size_of_found(m)
        ends = [count * n_keys, count + 1, size, size, size]
        laid = np.empty(sum(ends), dtype=np.int64)
        work = np.empty(3 * count + 1 + size, dtype=np.int64)
        if not out.lay(m, self.sites.ranks, n_keys, size, laid, work):
            return None
        bounds = pairwise(accumulate(ends, initial=0))
        keys, offsets, positions, sites, rows = (laid[begin:end] for begin, end in bounds)
        return self._block(keys.reshape(count, n_keys), offsets, positions, sites, rows)

    def few(self, m: Ints) -> Block | None:
        """Return the matches of one event, if they are few and plain.

        If they are not, return None and forget nothing.
        """
        count, begin = m.item(header.FOUND_COUNT), m.item(header.FOUND)
        if count > FEW or self._several or (count > 1 and self._emit is not Emit.ALL):
            return None
        depth = k.look(m, self._simple, self._simple_ends, self._steps)
        if not depth:
            return None
        runs = range(begin, begin + count * findings.SIZE, findings.SIZE)
        ends = accumulate(m.item(m.item(run + findings.NODE) + nodes.DEPTH) for run in runs)
        steps = self._steps[: 3 * depth].tolist()
        found = apart(self.sites, steps, [*ends], self._history)
        places = [m.item(run + findings.PARTITION) for run in runs]
        keys = {place: tuple(m[place + partitions.KEY :][: self._keys].tolist()) for place in places}
        if count > 1:
            # The matches of one partition are neighbours.
            order = {place: number for number, place in enumerate(keys)}
            by_path = {
                (order[p], match.path): (keys[p], match) for p, match in zip(places, found, strict=True)
            }
            if len(by_path) < count:
                return None
            given = [by_path[path] for path in sorted(by_path)]
        else:
            given = [(keys[places[0]], found[0])]
        k.unroll(m, self._steps)
        return Objects(given)

    def of_runs(self, runs: FoundRuns) -> Iterator[Block]:
        """Yield the matches of runs."""
        ends, keys, ways, depths, steps = runs
        count = len(ways)
        others = (ends[1:, 0] != ends[:-1, 0]) | (ends[1:, 1] != ends[:-1, 1])
        groups = np.concatenate([[0], np.cumsum(others)])
        block = self._of_steps(keys, depths, steps)
        simple = self._are_simple(block, ways, steps)
        # Where nothing is replayed or selected, only the order of delivery matters.
        odd = ~simple
        if odd.any():
            odd = np.bincount(groups, odd)[groups] > 0
        if self._several or self._emit is not Emit.ALL:
            odd |= np.bincount(groups)[groups] > 1
        in_order = block
        if groups[-1] < count - 1:
            in_order, again = arranged(block, groups, steps[:, 0])
            odd |= again

        def matches(begin: int, end: int) -> Iterator[tuple[Key, Found]]:
            """Yield the matches of some whole groups."""
            cuts = np.flatnonzero(groups[begin + 1 : end] != groups[begin : end - 1]) + begin + 1
            for first, last in pairwise([begin, *cuts.tolist(), end]):
                made = (
                    self._match(block, i, bool(simple[i]), int(ways[i]), steps) for i in range(first, last)
                )
                found = [match for match in made if match is not None]
                key = tuple(keys[first].tolist())
                yield from ((key, match) for match in (self._chosen(found) if len(found) > 1 else found))

        yield from mixed(in_order, odd, matches)

    def made(self, keys: Ints, ways: Ints, depths: Ints, steps: Ints) -> Iterator[Block]:
        """Yield the matches in the given order. For each match, ``keys`` has its partition, ``ways`` how it
        ended, and ``depths`` how many events it has.

        ``steps`` are the events, one match after the other: position, candidate, and row.
        """
        block = self._of_steps(keys, depths, steps)
        simple = self._are_simple(block, ways, steps)

        def matches(begin: int, end: int) -> Iterator[tuple[Key, Found]]:
            for i in range(begin, end):
                match = self._match(block, i, bool(simple[i]), int(ways[i]), steps)
                if match is not None:
                    yield tuple(keys[i].tolist()), match

        yield from mixed(block, ~simple, matches)

    def _of_steps(self, keys: Ints, depths: Ints, steps: Ints) -> Columns:
        offsets = np.concatenate([[0], np.cumsum(depths)])
        return self._block(keys, offsets, steps[:, 0], steps[:, 1].copy(), steps[:, 2].copy())

    def _block(self, keys: Ints, offsets: Ints, positions: Ints, site: Ints, rows: Ints) -> Columns:
        """Return matches as columns: their partition keys, where the events of each begin, and the position,
        site and row of each event.
        """
        stretch, places = self._history.stretch(positions)
        if len(stretch.chunks) > 1:
            before = np.array([stretch.rows_before(g) for g in range(len(self.sites.gpms))])
            rows += before[self.sites.numbers[site], stretch.where(places)]
        return Columns(self.sites, stretch, keys, offsets, places, site, rows)

    def _are_simple(self, block: Columns, ways: Ints, steps: Ints) -> Mask:
        if self._all_simple and (steps[:, 2] >= 0).all():
            return self._simple_ends[ways]
        whole = self._simple[block.site] & (steps[:, 2] >= 0)
        return np.asarray(self._simple_ends[ways] & np.logical_and.reduceat(whole, block.offsets[:-1]))

    def _match(self, block: Columns, i: int, is_simple: bool, way: int, steps: Ints) -> Found | None:
        """Return one of the matches as an object; None if its Ω turns out to be empty."""
        if is_simple:
            return block[i]
        path = steps[block.offsets[i] : block.offsets[i + 1], :2].tolist()
        return self._replay.match(path, way, tuple(block.keys[i].tolist()))

    def _chosen(self, found: Sequence[Found]) -> list[Found]:
        """Return, in order, the matches to deliver among ``found``, which have the same last event."""
        if self._several:
            return delivered(self._emit, distinct(found), self._order)
        by_path = dict(sorted(((match.path, match) for match in found), key=itemgetter(0)))
        if len(by_path) == len(found) and self._emit is Emit.ALL:
            return list(by_path.values())
        return sorted(select(self._emit, distinct(found), self._order), key=attrgetter("path"))


def _looks(pattern: SequencePattern, compiled: NfaTables, decided: bool) -> Looks:
    """Return the form of matches, which all queries with such tables have in common; see ``RunMatches``."""
    kleenes = {node.id: node for node in walk(pattern.root) if isinstance(node, Kleene)}
    plain = plain_kleenes(pattern)
    sites: list[EventSite] = []
    simple = []
    for candidate in compiled.candidates:
        actions = (*candidate.gate.ends, *candidate.begins)
        keeps = _keeps(actions, plain) and set(candidate.inside) <= plain
        simple.append((decided or not pattern.where) and candidate.apart and keeps)
        inside = kleenes[candidate.inside[-1]] if candidate.inside else None
        sites.append(
            EventSite(
                compiled.gpms.index(candidate.unit.gpm),
                candidate.unit.gpm,
                None if inside is None else inside.id,
                any(isinstance(action, Enter | Again) for action in actions),
                frozenset() if inside is None else inside.own,
            )
        )
    ends = [_keeps(ends, plain) for ends in compiled.accepts]
    return Looks(
        Sites(sites, compiled.gpms), np.array(simple, dtype=np.bool_), np.array(ends, dtype=np.bool_)
    )


def plain_kleenes(pattern: SequencePattern) -> frozenset[int]:
    """Return the Kleenes with all iterations in Ω: they are not nested, and no filter outside chooses among
    their iterations.
    """
    nodes = list(walk(pattern.root))
    kleenes = [node for node in nodes if isinstance(node, Kleene)]
    inside = {node.id: {inner.id for inner in walk(node)} for node in kleenes}
    found = set()
    for kleene in kleenes:
        related = [other for other, ids in inside.items() if kleene.id in ids or other in inside[kleene.id]]
        outside = (node for node in nodes if node.id not in inside[kleene.id])
        asked = frozenset[str]().union(
            *(needs(f.condition, pattern.owners) for node in outside for f in _filters(node)),
            *(needs(f.condition, pattern.owners) for f in pattern.where),
        )
        if related == [kleene.id] and not asked & kleene.own:
            found.add(kleene.id)
    return frozenset(found)


def _filters(node: Node) -> tuple[Filter, ...]:
    """Return the correlated filters of a node."""
    if isinstance(node, Atom):
        return node.filters
    return node.deferred if isinstance(node, Both) else ()


def _keeps(actions: Iterable[Action], plain: frozenset[int]) -> bool:
    """Return whether actions change nothing in Ω but the iterations of the Kleenes ``plain``."""
    return all(a.kleene in plain for a in actions if isinstance(a, Enter | Again | Leave))
