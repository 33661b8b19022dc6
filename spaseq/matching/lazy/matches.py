"""The results of the lazy kernel as blocks of matches in the order of delivery; exact where needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import Absent, AnyOrder, Atom, Maybe, SequencePattern, walk
from spaseq.language.syntax import Emit
from spaseq.matching.columns.blocks.few import FEW, apart, arranged, mixed
from spaseq.matching.columns.blocks.found import Block, Objects
from spaseq.matching.columns.blocks.plain import Columns, EventSite, Sites
from spaseq.matching.columns.history import History
from spaseq.matching.columns.ranks import ranks
from spaseq.matching.context import Context
from spaseq.matching.host import InOrder, Key, delivered, emitted, may_end_together, select
from spaseq.matching.lazy.plans import Item
from spaseq.matching.lazy.records import outcome
from spaseq.matching.model import Found, Occurrence, StreamWindow, distinct
from spaseq.matching.nfa.matches import plain_kleenes
from spaseq.matching.search import Events, Partial, SequenceSearch, found_of
from spaseq.terms.dictionary import Dictionary

# The exact meaning of a candidate match: a search that may only choose the match's events.

#: The events of a match: positions, and the GPMs that they were chosen as, in order.
Path = tuple[tuple[int, str], ...]


class ExactMatch:
    """Decides exactly whether candidates are matches of one query."""

    def __init__(
        self, pattern: SequencePattern, context: Context, window: StreamWindow, history: History
    ) -> None:
        self._pattern = pattern
        self._context = context
        self._window = window
        self._history = history

    # Needed only if a match is unsure.

    @cached_property
    def _forbidden(self) -> list[str]:
        # An `X?` that is left out must be absent, too.
        absent = (node for node in walk(self._pattern.root) if isinstance(node, Absent | Maybe))
        return sorted({a.gpm for node in absent for a in walk(node) if isinstance(a, Atom)})

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {gpm: g for g, gpm in enumerate(self._pattern.gpms)}

    @cached_property
    def _in_order(self) -> bool:
        return not any(isinstance(node, AnyOrder) for node in walk(self._pattern.root))

    def match(self, path: Path, key: Key) -> Found | None:
        """Return the match of these events, with all ways to match them; None if they do not match."""
        chosen = [self._chosen(position, gpm, key) for position, gpm in path]
        told = _ToldMatch(self._pattern, self._context, self._window, self._around(chosen, key))
        told.chosen = chosen if self._in_order else None
        found = distinct(
            found_of(m) for m in told.partials(chosen) if len(m.events) == len(path) and not told.broken(m)
        )
        return found[0] if found else None

    def _chosen(self, position: int, gpm: str, key: Key) -> Occurrence:
        seen = self._history.occurrence(position, key, gpm)
        return replace(seen, solutions={gpm: seen.solutions[gpm]})

    def _around(self, chosen: Events, key: Key) -> Events:
        """Return the events of the match's window, among which forbidden ones are searched."""
        if not self._forbidden:
            return ()
        opening = self._window.opening(chosen[0], chosen[-1])
        last = chosen[-1].position
        return [e for e in self._seen(key, last) if self._window.measure(e) >= opening]

    def _seen(self, key: Key, last: int) -> Iterator[Occurrence]:
        for chunk in self._history:
            for index in range(min(len(chunk.batch), last + 1 - chunk.start)):
                solutions = {}
                for gpm in self._forbidden:
                    kept = self._history.solutions(chunk, index, self._numbers[gpm], key)
                    if kept:
                        solutions[gpm] = kept
                if solutions:
                    stamp, position = chunk.batch.stamp(index), chunk.start + index
                    yield Occurrence(stamp, position, solutions, chunk.batch, index, chunk)


class _ToldMatch(SequenceSearch):
    """A search for a match of the given events only; forbidden events are searched among all events."""

    #: The events to choose; they are chosen in this order if they must be in order.
    chosen: Events | None = None

    def _atom(self, node: Atom, m: Partial) -> Iterator[Partial]:
        if self.chosen is None or m.pool is not self.chosen:
            yield from super()._atom(node, m)
        elif len(m.events) < len(self.chosen):
            one = self.chosen[len(m.events)]
            yield from (replace(found, pool=m.pool) for found in super()._atom(node, replace(m, pool=[one])))


# The results of the lazy kernel as blocks of matches in the order of delivery.

Ints = npt.NDArray[np.int64]


#: The events of a match, see ``Found.path``.
class LazyLooks(NamedTuple):
    """The form of matches: their sites, and whether no match needs an exact decision."""

    sites: Sites
    are_simple: bool


def looks(pattern: SequencePattern, items: Sequence[Item]) -> LazyLooks:
    """Return the form of a query's matches; ``items`` are those of all plans, one plan after the other."""
    plain, gpms = plain_kleenes(pattern), tuple(pattern.gpms)
    sites = [
        EventSite(
            gpms.index(item.atom.gpm),
            item.atom.gpm,
            None if item.kleene is None else item.kleene.id,
            item.kleene is not None,
            frozenset() if item.kleene is None else item.kleene.own,
        )
        for item in items
    ]
    simple = all(item.kleene is None or item.kleene.id in plain for item in items)
    return LazyLooks(Sites(sites, gpms), simple)


class LazyMatches:
    """Makes matches of the kernel's results, as they are or by an exact decision; see ``nfa.matches``."""

    def __init__(
        self,
        pattern: SequencePattern,
        look: LazyLooks,
        history: History,
        exact: ExactMatch,
        order: InOrder,
        dictionary: Dictionary,
        apart: int = 0,
    ) -> None:
        """``look``: for the items of all plans; ``apart`` as of ``Context``."""
        self._dictionary, self._apart = dictionary, apart
        self._emit = emitted(pattern)
        self._order = order
        self._several = may_end_together(pattern)
        self._keys = len(pattern.query.partition)
        self._history = history
        self._exact = exact
        self.sites, self._simple = look

    @property
    def are_plain(self) -> bool:
        """Whether all sure matches are events in their order."""
        return self._simple and not self._several and self._emit is Emit.ALL

    def few(self, found: Ints, choices: Ints) -> Block | None:
        """Return the matches of one event, if they are few, plain and of one partition; otherwise None."""
        keys = found[:, outcome.KEY : outcome.KEY + self._keys].tolist()
        if not self.are_plain or len(found) > FEW or any(found[:, outcome.UNSURE].tolist()):
            return None
        if any(key != keys[0] for key in keys):
            return None
        begins, ends = found[:, outcome.BEGIN].tolist(), found[:, outcome.END].tolist()
        steps = [
            step
            for begin, end in zip(begins, ends, strict=True)
            for step in choices[begin:end].ravel().tolist()
        ]
        sizes = (end - begin for begin, end in zip(begins, ends, strict=True))
        matches = apart(self.sites, steps, [*accumulate(sizes)], self._history)
        by_path = {match.path: match for match in matches}
        if len(by_path) < len(matches):
            return None
        return Objects([(tuple(keys[0]), by_path[path]) for path in sorted(by_path)])

    def of(self, found: Ints, choices: Ints) -> Iterator[Block]:
        """Yield the matches of the kernel's results: rows as in ``_kernel_layout``, and their choices."""
        keys = found[:, outcome.KEY : outcome.KEY + self._keys]
        if self._keys:
            events = found[:, outcome.EVENT]
            found = found[np.lexsort((ranks(events, keys, self._dictionary, self._apart), events))]
            keys = found[:, outcome.KEY : outcome.KEY + self._keys]
        apart = found[:, [outcome.EVENT, *range(outcome.KEY, outcome.KEY + self._keys)]]
        groups = np.concatenate([[0], np.cumsum((apart[1:] != apart[:-1]).any(axis=1))])
        block, steps = self._block(keys.copy(), found, choices)
        unsure = (found[:, outcome.UNSURE] != 0) | (not self._simple)
        size = np.bincount(groups)[groups]
        odd = np.bincount(groups, unsure)[groups] > 0
        odd |= (size > 1) & (self._several or self._emit is not Emit.ALL)
        in_order = block
        if groups[-1] < len(found) - 1:
            in_order, again = arranged(block, groups, steps[:, 0])
            odd |= again

        def matches(begin: int, end: int) -> Iterator[tuple[Key, Found]]:
            """Yield the matches of some whole groups."""
            cuts = np.flatnonzero(groups[begin + 1 : end] != groups[begin : end - 1]) + begin + 1
            for first, last in pairwise([begin, *cuts.tolist(), end]):
                key = tuple(keys[first].tolist())
                for match in self._chosen(key, block, unsure[first:last].tolist(), first):
                    yield key, match

        yield from mixed(in_order, odd, matches)

    def _block(self, keys: Ints, found: Ints, choices: Ints) -> tuple[Columns, Ints]:
        """Return all results as a block, as if none needed an exact decision; ``choices``: position, site,
        row.
        """
        begins, ends = found[:, outcome.BEGIN], found[:, outcome.END]
        offsets = np.concatenate([[0], np.cumsum(ends - begins)])
        steps = choices[np.repeat(begins - offsets[:-1], ends - begins) + np.arange(offsets[-1])]
        stretch, places = self._history.stretch(steps[:, 0])
        site, rows = steps[:, 1].copy(), steps[:, 2].copy()
        if len(stretch.chunks) > 1:
            before = np.array([stretch.rows_before(g) for g in range(len(self.sites.gpms))])
            rows += before[self.sites.numbers[site], stretch.where(places)]
        return Columns(self.sites, stretch, keys, offsets, places, site, rows), steps

    def _chosen(self, key: Key, block: Columns, unsure: Sequence[bool], first: int) -> Iterable[Found]:
        """Return, in order, the matches to deliver among results with one last event, which are numbered from
        ``first`` on.
        """
        matches: dict[Path, Found] = {}
        doubted: list[Path] = []
        again: list[tuple[Path, Found]] = []
        for i, is_unsure in enumerate(unsure, first):
            match = block[i]
            path = match.path
            if is_unsure:
                doubted.append(path)
            elif path in matches:
                again.append((path, match))
            else:
                matches[path] = match
        for path in dict.fromkeys(doubted):
            exact = self._exact.match(path, key)
            matches.pop(path, None)
            if exact is not None:
                matches[path] = exact
        for path, match in again:
            if path not in doubted:
                (matches[path],) = distinct([matches[path], match])
        if len(matches) < 2:
            return matches.values()
        if self._several:
            return delivered(self._emit, matches.values(), self._order)
        found = [matches[path] for path in sorted(matches)]
        if self._emit is Emit.ALL:
            return found
        return sorted(select(self._emit, found, self._order), key=attrgetter("path"))
