"""Matches of what was found: enumerated from roots, and put together."""

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

# What an enumerated match means: its events and its Ω.

#: The events of a match: positions, and the GPMs that they were chosen as.
Choices = Sequence[tuple[int, str]]


class TecsReplay:
    """Runs NFA_scep once more over the events of a match, with its solutions.

    ``keys`` are the variables that tell runs apart, the first ``partition`` of them those of PARTITION BY.
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
        """The match that consists of these events.

        None where several join keys have the same events, for all of them but the least: the match has the
        solutions of all.
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
    """The rows that other ways to find the same match do not have."""
    return tuple(row for row in rows if not any(row in other for other in before))


# Matches of what was found: enumerated from roots, and put together.

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class RootReading:
    """The matches of one query, those with the same last event in any order.

    ``sites`` are what labels tell, ``automaton`` makes that by which a match is run again if that is not all;
    ``keys`` is what tells its runs apart. ``history`` has the events of its ``roots``.
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
        # Which one's roots were given to this one; and those that have roots of this one.
        self._source: RootReading | None = None
        self._given: WeakSet[RootReading] = WeakSet()
        # The copies that some of those have, and when they were made.
        self._copies: tuple[int, ref[Ints], ref[History]] | None = None

    @cached_property
    def _replay(self) -> TecsReplay:
        return TecsReplay(self._automaton(), self._context, self._history, self._keys, self._partition)

    def next(self) -> WalkedRoots | None:
        """Some more of the matches, as ``Walk.next`` gives them."""
        if self._source is not None:
            self._own.look(self._source._roots)
        return self._walk.next(self._roots)

    # --- roots that others enumerate ------------------------------------------------------------

    def give(self, keys: Collection[int] | None) -> tuple[Ints, Walk | None]:
        """Gives away the roots that are not enumerated; and where that stands in the first, if it has begun.

        ``keys``: those of these first keys alone, of what nobody has begun to enumerate.
        """
        roots = self._roots.take_away(keys)
        if not self._walk.has_begun:
            self._walk.forget()
            return roots, None
        walk, self._walk = self._walk, Walk()
        return roots, walk

    def part(self) -> RootReading:
        """Another, for roots of this one that were given away: ``add`` says which."""
        other = copy(self)
        other._roots, other._source, other._walk = PartitionShare(self._roots), self, Walk()
        other._given = WeakSet()
        self._given.add(other)
        return other

    def is_of(self, other: RootReading) -> bool:
        """Whether it has roots that the other gave away."""
        return self._source is other

    def add(self, roots: Ints, walk: Walk | None) -> None:
        """Further roots; ``walk``: where the enumeration of the first stands, if it has begun."""
        self._own.add(roots)
        if walk is not None:
            self._walk = walk

    def know(self, walked: WalkedRoots, roots: int) -> None:
        """What so many roots have, which were walked before; they are its first ones, and others follow."""
        self._walk.know(walked, roots)

    def keep(self) -> None:
        """Has the nodes and events of its roots, whatever becomes of those of who gave them."""
        if self._source is not None:
            self._own.look(self._source._roots)
            self._own.nodes, self._history = self._source._copied(self._own.nodes)
            self.__dict__.pop("_replay", None)  # which reads the other history
            self._source._given.discard(self)
            self._source = None

    def _copied(self, nodes: Ints) -> tuple[Ints, History]:
        """Copies of the nodes and events as they are now, the same for all until further events come."""
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
        """The least top that is in a window of a root which was given away, and is not enumerated."""
        leasts = (reading._own.least for reading in self._given)
        return min((least for least in leasts if least is not None), default=None)

    @property
    def waiting(self) -> int:
        """How many of the roots are not enumerated to their end."""
        return self._roots.unread

    @property
    def _own(self) -> PartitionShare:
        """Its roots, which were given to it."""
        assert isinstance(self._roots, PartitionShare)
        return self._roots

    def drop(self) -> None:
        """Forgets the matches that nobody has taken."""
        self._roots.forget_found()
        self._walk = Walk()

    def unread(self) -> Iterator[Block]:
        """The matches that nobody has taken; further ones that are found meanwhile, too."""
        if self._emit is Emit.ALL:
            while (found := self.next()) is not None:
                # All before the first is given: what they are made of may be gone after further events.
                yield from list(self._blocks(found))
            return
        for (_, key), same in groupby(self._listed(), key=itemgetter(0)):
            listed = (choices for _, choices in same)
            # Of one stream, events are in the order of their positions: those that go need not be made.
            wanted = self._kept(listed) if self._single else listed
            made = (self._replay.match(choices, key) for choices in wanted)
            matches = (match for match in made if match is not None)
            chosen = matches if self._single else self._chosen(matches)
            yield from blocks((key[: self._partition], match) for match in chosen)

    def waited(self) -> Iterator[Block]:
        """The same where somebody waits for the matches that an event completed."""
        if self._emit is Emit.ALL and (found := self.next()) is not None:
            few = self._few(found)
            yield from list(self._blocks(found)) if few is None else (few,)
        yield from self.unread()

    def _few(self, walked: WalkedRoots) -> Block | None:
        """What a walk brought, if it is a few plain matches."""
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
        """What a walk brought."""
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
        """The solutions of events in their partitions: the first of each, and whether it is the only one.

        None for the first solution of an event, and where
        no event has another, or matches are made anew in any case.
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
                    assert column is not None  # every GPM binds what partitions are by
                    narrow(column, partitions[match[events], i], begins, ends)
                single[events] = ends - begins == 1
            rows[events] = begins
        return rows, single

    def _listed(self) -> Iterator[tuple[tuple[int, Key], Choices]]:
        """The matches, each with the position of its last event and its keys."""
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
        """EMIT, of the matches that end with one event of the only stream."""
        best: list[Choices] = []
        events: list[frozenset[int]] = []
        for count, choices in enumerate(same, 1):
            best.append(choices)
            events.append(frozenset(position for position, _ in choices))
            if self._emit is Emit.MAX:
                self._budget.partial(count)  # all are kept until the last is known
            elif count > 1:
                numbers = kept(self._emit, events)
                best, events = [best[i] for i in numbers], [events[i] for i in numbers]
        return [best[i] for i in kept(self._emit, events)]

    def _chosen(self, found: Iterable[Found]) -> Iterable[Found]:
        """EMIT, one match after the other where that is possible."""
        if self._emit is Emit.MAX:
            return select(self._emit, list(self._counted(found)), self._order)
        best: list[Found] = []
        for match in found:
            best = select(self._emit, [*best, match], self._order)
        return best

    def _counted(self, found: Iterable[Found]) -> Iterator[Found]:
        """The same, as long as they are not too many to be kept."""
        for count, match in enumerate(found, 1):
            self._budget.partial(count)
            yield match


# What is left of a group's matches: each of its queries enumerates its own, when somebody asks for them.


class Portion(NamedTuple):
    """Roots that are a query's own, or several queries' that have all in common.

    ``reading``: what they were found for; ``walk``: where the enumeration of the first of them stands, if it
    has begun.
    """

    reading: RootReading
    roots: Ints
    walk: Walk | None


def divided(
    readings: Iterable[RootReading], by_key: bool, keys: Collection[int] | None
) -> Iterator[tuple[int, Portion]]:
    """Takes what is not enumerated out of readings, by the first value of the keys: a portion for each.

    All under 0 if not ``by_key``. ``keys``: these alone, of what nobody has begun to enumerate.
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
    """The matches of one query that were left to it, in the order in which they were found."""

    def __init__(self) -> None:
        self._readings: deque[RootReading] = deque()

    def add(self, portion: Portion) -> None:
        """Further ones; others may have the same portion."""
        if not self._readings or not self._readings[-1].is_of(portion.reading):
            self._readings.append(portion.reading.part())
        self._readings[-1].add(portion.roots, None if portion.walk is None else portion.walk.copy())

    @property
    def waiting(self) -> int:
        """Of how many events the matches are not all enumerated, at least."""
        return sum(reading.waiting for reading in self._readings)

    def unread(self) -> Iterator[Block]:
        """The matches that were not enumerated, each once; those found meanwhile, too."""
        while self._readings:
            yield from self._readings[0].unread()
            if len(self._readings) == 1:
                return
            self._readings.popleft()

    def drop(self) -> None:
        """Forgets them."""
        for reading in self._readings:
            reading.drop()

    def keep(self) -> None:
        """The group finds no more for the query, and need not keep anything for it."""
        for reading in self._readings:
            reading.keep()
