"""The matches of roots: enumerated, and assembled into blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter, sub
from typing import NamedTuple
from weakref import WeakSet, ref

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.language.syntax import Emit
from spaseq.matching.columns.blocks.few import FEW, apart, mixed
from spaseq.matching.columns.blocks.found import Block, Objects, blocks
from spaseq.matching.columns.blocks.plain import Columns, EventSite, Sites
from spaseq.matching.columns.chunk import Stretch
from spaseq.matching.columns.history import History
from spaseq.matching.context import Context, Rows
from spaseq.matching.host import Key, emitted, kept, select
from spaseq.matching.model import Found, Row
from spaseq.matching.tecs.automaton import DeterministicAutomaton
from spaseq.matching.tecs.compiled._kernel_keys import narrow
from spaseq.matching.tecs.memory import PartitionShare, Roots
from spaseq.matching.tecs.records import root
from spaseq.matching.tecs.walking import Walk, WalkedRoots

# The events and the Ω of an enumerated match.

#: The events of a match: positions, and the GPMs that they were chosen as.
Choices = Sequence[tuple[int, str]]


class TecsReplay:
    """Replays NFA_scep over the events of a match, with its solutions.

    ``keys`` are the variables that separate runs, the first ``partition`` of them those of PARTITION BY.
    """

    def __init__(
        self,
        automaton: DeterministicAutomaton,
        context: Context,
        history: History,
        keys: Sequence[str],
        partition: int,
    ) -> None:
        self._automaton = automaton
        self._context = context
        self._history = history
        self._derived = tuple(keys[partition:])
        self._partition = partition

    def match(self, choices: Choices, key: Key) -> Found | None:
        """Return the match that consists of these events.

        If several join keys have the same events, the match belongs to the least of these keys and has the
        solutions of all. Return None for the other keys.
        """
        seen = key[: self._partition]
        events = tuple((gpm, self._history.occurrence(position, seen, gpm)) for position, gpm in choices)
        runs = [(self._automaton.start, self._context.start)]
        for gpm, event in events:
            runs = [
                (transition.to, rows)
                for configuration, before in runs
                for transition in self._automaton.transitions(configuration)
                if transition.unit.gpm == gpm
                if (
                    rows := self._context.extend(
                        self._context.act(
                            self._context.act(before, transition.gate.ends), transition.way.begins
                        ),
                        transition.unit,
                        event,
                        transition.way.inside,
                    )
                )
            ]
        ended = [
            self._context.act(rows, ends)
            for configuration, rows in runs
            for ends in self._automaton.endings(configuration)
        ]
        found = tuple(row for number, rows in enumerate(ended) for row in _new(rows, ended[:number]))
        if not found or (self._derived and self._least(found) != key[self._partition :]):
            return None
        return Found(events, found)

    def _least(self, rows: Sequence[Row]) -> Key:
        return min(tuple(row.binding[name] for name in self._derived) for row in rows)


def _new(rows: Rows, before: Sequence[Rows]) -> Rows:
    """Return the rows that earlier ways to find the same match do not have."""
    return tuple(row for row in rows if not any(row in other for other in before))


# The matches of roots: enumerated, and assembled into blocks.

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class RootReading:
    """The matches of one query, those with the same last event in any order.

    ``sites`` are the places that labels determine; if there are none, ``automaton`` makes the program that
    replays matches. ``keys`` separate its runs. ``history`` has the events of its ``roots``.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        sites: Sites | None,
        automaton: Callable[[], DeterministicAutomaton],
        keys: Sequence[str],
        context: Context,
        history: History,
        roots: Roots,
    ) -> None:
        self._gpms = tuple(pattern.gpms)
        self._keys = keys
        self._partition = len(pattern.query.partition)
        self._emit = emitted(pattern)
        self._budget = context.budget
        self._order = context.order
        self._single = len(set(pattern.streams)) == 1
        self._history = history
        self._roots = roots
        self._sites = sites
        self._automaton = automaton
        self._context = context
        self._walk = Walk()
        # The reading that gave its roots to this one; and the readings that have roots of this one.
        self._source: RootReading | None = None
        self._given: WeakSet[RootReading] = WeakSet()
        # The copies that some of these readings have, and when the copies were made.
        self._copies: tuple[int, ref[Ints], ref[History]] | None = None

    @cached_property
    def _replay(self) -> TecsReplay:
        return TecsReplay(self._automaton(), self._context, self._history, self._keys, self._partition)

    def next(self) -> WalkedRoots | None:
        """Return some more of the matches, as ``Walk.next`` gives them."""
        if self._source is not None:
            self._own.look(self._source._roots)
        return self._walk.next(self._roots)

    # --- roots that others enumerate --------------------------------------------------------------

    def give(self, keys: Collection[int] | None) -> tuple[Ints, Walk | None]:
        """Give away the roots that are not enumerated, and the state of the walk in the first root if it has
        begun.

        ``keys``: only roots with these first keys, if no walk has begun.
        """
        roots = self._roots.take_away(keys)
        if not self._walk.has_begun:
            self._walk.forget()
            return roots, None
        walk, self._walk = self._walk, Walk()
        return roots, walk

    def part(self) -> RootReading:
        """Return a reading for roots of this one that were given away; ``add`` them to it."""
        other = copy(self)
        other._roots, other._source, other._walk = PartitionShare(self._roots), self, Walk()
        other._given = WeakSet()
        self._given.add(other)
        return other

    def is_of(self, other: RootReading) -> bool:
        """Return whether this reading has roots that the other one gave away."""
        return self._source is other

    def add(self, roots: Ints, walk: Walk | None) -> None:
        """Add roots; ``walk``: the state of the walk in the first root, if it has begun."""
        self._own.add(roots)
        if walk is not None:
            self._walk = walk

    def know(self, walked: WalkedRoots, roots: int) -> None:
        """Set the walked matches of its first roots; other roots follow."""
        self._walk.know(walked, roots)

    def keep(self) -> None:
        """Keep the nodes and events of its roots, whatever happens to those of the source."""
        if self._source is not None:
            self._own.look(self._source._roots)
            self._own.nodes, self._history = self._source._copied(self._own.nodes)
            self.__dict__.pop("_replay", None)  # the replay reads the source's history
            self._source._given.discard(self)
            self._source = None

    def _copied(self, nodes: Ints) -> tuple[Ints, History]:
        """Return copies of the current nodes and events, the same ones for all until further events come."""
        now = self._history.newest
        if self._copies is not None and self._copies[0] == now:
            kept, history = self._copies[1](), self._copies[2]()
            if kept is not None and history is not None:
                return kept, history
        kept, history = nodes.copy(), self._history.copy()
        self._copies = now, ref(kept), ref(history)
        return kept, history

    @property
    def least(self) -> int | None:
        """The least top in a window of a root that was given away, and is not enumerated."""
        leasts = (reading._own.least for reading in self._given)
        return min((least for least in leasts if least is not None), default=None)

    @property
    def waiting(self) -> int:
        """How many of the roots are not completely enumerated."""
        return self._roots.unread

    @property
    def _own(self) -> PartitionShare:
        """The roots that were given to this reading."""
        assert isinstance(self._roots, PartitionShare)
        return self._roots

    def drop(self) -> None:
        """Discard the unread matches."""
        self._roots.forget_found()
        self._walk = Walk()

    def unread(self) -> Iterator[Block]:
        """Yield the unread matches, including matches found meanwhile."""
        if self._emit is Emit.ALL:
            while (found := self.next()) is not None:
                # Make all matches before the first one is yielded: their events may be gone after further
                # events.
                yield from list(self._blocks(found))
            return
        for (_, key), same in groupby(self._listed(), key=itemgetter(0)):
            listed = (choices for _, choices in same)
            # In one stream, events are in the order of their positions, so matches that EMIT drops need not
            # be made.
            wanted = self._kept(listed) if self._single else listed
            made = (self._replay.match(choices, key) for choices in wanted)
            matches = (match for match in made if match is not None)
            chosen = matches if self._single else self._chosen(matches)
            yield from blocks((key[: self._partition], match) for match in chosen)

    def waited(self) -> Iterator[Block]:
        """Yield the matches of one event for a waiting reader."""
        if self._emit is Emit.ALL and (found := self.next()) is not None:
            few = self._few(found)
            yield from list(self._blocks(found)) if few is None else (few,)
        yield from self.unread()

    def _few(self, walked: WalkedRoots) -> Block | None:
        """Return the matches of a walk as a block, if they are few and plain."""
        roots = walked.roots
        if self._sites is None or len(roots) > FEW:
            return None
        places, sites = walked.positions.tolist(), walked.all_labels.tolist()
        ends = walked.offsets.tolist()
        listed = self._roots.found[roots, root.KEYS : root.KEYS + self._partition].tolist()
        keys = [*map(tuple, listed)]
        sizes = map(sub, ends[1:], ends)
        of_events = [key for key, size in zip(keys, sizes, strict=True) for _ in range(size)]
        rows = self._history.rows(places, sites, of_events)
        if rows is None:
            return None
        steps = [number for step in zip(places, sites, rows, strict=True) for number in step]
        found = apart(self._sites, steps, ends[1:], self._history)
        return Objects([*zip(keys, found, strict=True)])

    def _blocks(self, walked: WalkedRoots) -> Iterator[Block]:
        """Yield the matches of a walk."""
        positions, labels, roots = walked.positions, walked.labels, walked.roots
        partitions = np.zeros((len(roots), 0), dtype=np.int64)
        if self._partition:
            partitions = self._roots.found[roots, root.KEYS : root.KEYS + self._partition]
        stretch, places = self._history.stretch(positions)
        rows, single = self._rows(stretch, places, walked, partitions)
        sites = self._sites or Sites([EventSite(g, gpm) for g, gpm in enumerate(self._gpms)], self._gpms)
        if walked.are_alike:
            block = Columns.alike(sites, stretch, partitions, places, tuple(labels.tolist()), rows)
        else:
            block = Columns(sites, stretch, partitions, walked.offsets, places, labels, rows)
        odd = np.full(len(block), self._sites is None)
        if single is not None:
            odd |= ~np.logical_and.reduceat(single, walked.offsets[:-1])

        def matches(begin: int, end: int) -> Iterator[tuple[Key, Found]]:
            of_all, offsets = walked.all_labels, walked.offsets
            keys = self._roots.found[roots, root.KEYS : root.KEYS + len(self._keys)]
            for i in range(begin, end):
                part = slice(int(offsets[i]), int(offsets[i + 1]))
                names = [self._gpms[label] for label in of_all[part].tolist()]
                choices = list(zip(positions[part].tolist(), names, strict=True))
                match = self._replay.match(choices, tuple(keys[i].tolist())) if odd[i] else block[i]
                if match is not None:
                    yield tuple(partitions[i].tolist()), match

        yield from mixed(block, odd, matches)

    def _rows(
        self, stretch: Stretch, places: Ints, walked: WalkedRoots, partitions: Ints
    ) -> tuple[Ints | None, Mask | None]:
        """Return, for each event, its first solution in the match's partition, and whether it is the only
        one.

        None for both: each event's first solution is taken. Then no event has another solution, or all
        matches are replayed in any case.
        """
        several = [g for g in range(len(self._gpms)) if stretch.is_several(g)]
        if not several or self._sites is None:
            return None, None
        sizes, labels = np.diff(walked.offsets), walked.all_labels
        match = np.repeat(np.arange(len(sizes)), sizes)
        rows, single = np.empty_like(places), np.ones(len(places), dtype=np.bool_)
        for g in range(len(self._gpms)):
            events = np.flatnonzero(labels == g)
            at = places[events]
            begins = stretch.rows_at(g, at)
            if g in several:
                ends = begins + stretch.counts(g)[at]
                for i, name in enumerate(self._keys[: self._partition]):
                    column = stretch.column(g, name)
                    assert column is not None  # every GPM binds the partition's variables
                    narrow(column, partitions[match[events], i], begins, ends)
                single[events] = ends - begins == 1
            rows[events] = begins
        return rows, single

    def _listed(self) -> Iterator[tuple[tuple[int, Key], Choices]]:
        """Yield the matches, each with the position of its last event and its keys."""
        while (walked := self.next()) is not None:
            positions, labels, offsets = walked.positions, walked.all_labels, walked.offsets
            rows = self._roots.found[walked.roots]
            lasts = rows[:, root.POSITION].tolist()
            keys = rows[:, root.KEYS : root.KEYS + len(self._keys)].tolist()
            names = map(self._gpms.__getitem__, labels.tolist())
            choices = list(zip(positions.tolist(), names, strict=True))
            for (begin, end), last, key in zip(pairwise(offsets.tolist()), lasts, keys, strict=True):
                yield (last, tuple(key)), choices[begin:end]

    def _kept(self, same: Iterable[Choices]) -> list[Choices]:
        """Apply EMIT to the matches that end with one event of the only stream."""
        best: list[Choices] = []
        events: list[frozenset[int]] = []
        for count, choices in enumerate(same, 1):
            best.append(choices)
            events.append(frozenset(position for position, _ in choices))
            if self._emit is Emit.MAX:
                self._budget.partial(count)  # all matches are kept until the last one is known
            elif count > 1:
                numbers = kept(self._emit, events)
                best, events = [best[i] for i in numbers], [events[i] for i in numbers]
        return [best[i] for i in kept(self._emit, events)]

    def _chosen(self, found: Iterable[Found]) -> Iterable[Found]:
        """Apply EMIT, one match after the other where possible."""
        if self._emit is Emit.MAX:
            return select(self._emit, list(self._counted(found)), self._order)
        best: list[Found] = []
        for match in found:
            best = select(self._emit, [*best, match], self._order)
        return best

    def _counted(self, found: Iterable[Found]) -> Iterator[Found]:
        """Yield matches; raise ``LimitError`` if too many must be kept."""
        for count, match in enumerate(found, 1):
            self._budget.partial(count)
            yield match


# The unread matches of a group: each of its queries enumerates its own matches when they are read.


class Portion(NamedTuple):
    """Roots of one query, or of several queries that share all of them.

    ``reading``: the reading that they were found for; ``walk``: the state of the walk in the first of them,
    if it has begun.
    """

    reading: RootReading
    roots: Ints
    walk: Walk | None


def divided(
    readings: Iterable[RootReading], by_key: bool, keys: Collection[int] | None
) -> Iterator[tuple[int, Portion]]:
    """Take the roots that are not enumerated out of readings; yield them in portions by the first value of
    their keys.

    Without ``by_key``, all are yielded under 0. ``keys``: take only roots with these first keys, if no walk
    has begun.
    """
    for reading in readings:
        roots, walk = reading.give(keys)
        if not len(roots):
            continue
        of = roots[:, root.KEYS] if by_key else np.zeros(len(roots), dtype=np.int64)
        order = np.argsort(of, kind="stable")
        cuts = np.flatnonzero(np.diff(of[order])) + 1
        for some in np.split(order, cuts):
            yield int(of[some[0]]), Portion(reading, roots[some], walk if some[0] == 0 else None)


class Rest:
    """The matches left to one query, in the order in which they were found."""

    def __init__(self) -> None:
        self._readings: deque[RootReading] = deque()

    def add(self, portion: Portion) -> None:
        """Add a portion, which other queries may share."""
        if not self._readings or not self._readings[-1].is_of(portion.reading):
            self._readings.append(portion.reading.part())
        self._readings[-1].add(portion.roots, None if portion.walk is None else portion.walk.copy())

    @property
    def waiting(self) -> int:
        """The least number of events that have matches which are not enumerated."""
        return sum(reading.waiting for reading in self._readings)

    def unread(self) -> Iterator[Block]:
        """Yield the matches that were not enumerated, each once, including those found meanwhile."""
        while self._readings:
            yield from self._readings[0].unread()
            if len(self._readings) == 1:
                return
            self._readings.popleft()

    def drop(self) -> None:
        """Discard the unread matches."""
        for reading in self._readings:
            reading.drop()

    def keep(self) -> None:
        """Keep what the portions need, as the group finds no more matches for the query."""
        for reading in self._readings:
            reading.keep()
