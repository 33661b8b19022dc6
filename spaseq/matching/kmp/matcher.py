"""Parameterized patterns on event columns: batches of solutions in, matches out.

The kernel finds the occurrences. Solutions are read only for these, or joined by ``Context`` if an event has
several. Every event is compared once, whatever the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.blocks.few import mixed
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.blocks.plain import Columns, EventSite, Sites
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.columns.history import History
from spaseq.matching.columns.matcher import Immediate, PushedPattern, UnsolvedError
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.kmp import _kernel as k
from spaseq.matching.kmp.query import compile_query
from spaseq.matching.kmp.text import Partitions, SingleSymbols, SymbolValues, Text, read
from spaseq.matching.model import Found, StreamWindow
from spaseq.patterns.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.terms.dictionary import Dictionary

#: The most occurrences that the kernel returns at a time.
_ROOM: Final = 4_096


class KmpMatcher(Immediate):
    """The matches of one query over all its partitions; see ``Matcher`` for the order of delivery.

    Raises ``NotParameterizedError`` for a query that ``fits`` refuses.
    """

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, context: Context, window: StreamWindow
    ) -> None:
        self._compiled = compile_query(pattern)
        self._keys = tuple(variable.name for variable in pattern.query.partition)
        self._context = context
        self._window = window
        self._size = len(self._compiled.atoms)
        self._gpms = tuple(pattern.gpms)
        sites = [EventSite(self._gpms.index(atom.gpm), atom.gpm) for atom in self._compiled.atoms]
        self._sites = Sites(sites, self._gpms)
        self._history = History(self._gpms, self._keys, context.budget)
        self._values = SymbolValues(dictionary)
        width = k.HEADER + self._size * (self._compiled.program.tracks + 2)
        self._partitions = Partitions(width, bool(self._keys), context.budget)
        self._alone = SingleSymbols(pattern, self._compiled, dictionary, self._history)
        self._found = np.zeros((_ROOM, self._size + 2), dtype=np.int64)
        self._stops = np.zeros(self._size + 2, dtype=np.int64)
        dictionary.hold(self)

    def live_ids(self) -> Iterable[k.Ints]:
        """Return the ids that no batch keeps; called before all other ids are forgotten."""
        self._values.forget()
        return self._history.loose_ids

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        if len(batch):
            for found in self._take(batch, start, solutions):
                yield from self._matches(found)

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[k.Ints]:
        """Process a batch; yield its occurrences in arrays, each valid until the next."""
        tables = {name: solutions.get(name, NO_SOLUTIONS).by_time() for name in self._gpms}
        axis = self._window.places(batch, start)
        self._remember(batch, start, tables, axis)
        text = read(self._compiled, self._keys, len(batch), tables, self._values)
        return self._occurrences(text, start + text.events, axis[text.events])

    def _occurrences(self, text: Text, positions: k.Ints, axis: k.Ints) -> Iterator[k.Ints]:
        """Yield the occurrences that symbols complete, in arrays."""
        numbers = self._partitions.of(text.keys)
        machine = self._compiled.program.machine(self._partitions.state, self._found, self._stops)
        symbols = k.Symbols(text.symbols, text.ambiguous, numbers, positions, axis)
        begin = 0
        while begin < len(numbers):
            begin, count = k.run(machine, symbols, begin, self._window.reach)
            if count:
                yield self._found[:count]

    # --- events that come alone -----------------------------------------------------------------

    @property
    def gpms(self) -> Sequence[str]:
        """See ``Quick.gpms``."""
        return self._gpms

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``."""
        return self._alone.taking.expect(asked)

    def counts(self) -> Counts | None:
        """See ``Quick.counts``."""
        return self._alone.taking.counts()

    def take_single(self, event: Single, start: int) -> Iterator[Block] | None:
        """See ``Quick.take_single``."""
        axis = self._window.place(event.at.time, start)
        oldest, last = self._kept(start, 1, axis, axis)
        text = self._alone.take(event, start, last, oldest, self._values)
        if text is None:
            raise UnsolvedError
        count = len(text.events)
        return self._completed(self._occurrences(text, np.full(count, start), np.full(count, axis)))

    def _completed(self, found: Iterator[k.Ints]) -> Iterator[Block] | None:
        """Return the matches that one event completes; None if there are none."""
        all_of_them = [each.copy() for each in found]
        return chain.from_iterable(map(self._matches, all_of_them)) if all_of_them else None

    def _remember(self, batch: EventBatch, start: int, tables: Mapping[str, Solutions], axis: k.Ints) -> None:
        """Keep a batch as long as its events may be in a match."""
        ordered = tuple(tables[name] for name in self._gpms)
        oldest, last = self._kept(start, len(batch), int(axis[0]), int(axis[-1]))
        self._history.add(SolvedBatch(start, batch, ordered, last), oldest)

    def _kept(self, start: int, count: int, first: int, last: int) -> tuple[int, int]:
        """Return the oldest place with kept events, and the last place of the new events.

        In a partition, events are kept for the length of the window: they are from ``first`` to ``last`` on
        its axis. Without partitions only the last events of the pattern's length are needed, so positions
        decide.
        """
        if not self._keys:
            return start - self._size + 1, start + count - 1
        oldest = first - self._window.reach
        self._partitions.drop_idle(oldest)
        return oldest, last

    def _matches(self, found: k.Ints) -> Iterator[Block]:
        """Yield the kernel's occurrences as matches; leave out possible occurrences that are no matches."""
        if not len(found):
            return
        size, count = self._size, len(found)
        positions = found[:, :size].ravel()
        stretch, at = self._history.stretch(positions)
        texts = found[:, size].tolist()
        keys = np.array([self._partitions.keys[text] for text in texts], dtype=np.int64).reshape(count, -1)
        site = np.tile(np.arange(size), count)
        block = Columns(self._sites, stretch, keys, np.arange(0, len(site) + 1, size), at, site)
        odd = found[:, size + 1] != 0
        for place, g in enumerate(self._sites.numbers.tolist()):
            if stretch.is_several(g):
                odd |= stretch.counts(g)[at[place::size]] != 1

        def matches(begin: int, end: int) -> Iterator[tuple[Key, Found]]:
            for i in range(begin, end):
                key = self._partitions.keys[texts[i]]
                match = (
                    self._joined(positions[size * i : size * (i + 1)].tolist(), key) if odd[i] else block[i]
                )
                if match is not None:
                    yield key, match

        yield from mixed(block, odd, matches)

    def _joined(self, places: Sequence[int], key: Key) -> Found | None:
        """Return a match of events with several solutions, if there is one."""
        atoms = self._compiled.atoms
        events = [self._history.occurrence(p, key, atom.gpm) for p, atom in zip(places, atoms, strict=True)]
        rows = self._context.start
        for atom, event in zip(atoms, events, strict=True):
            rows = self._context.extend(rows, atom, event, ())
        rows = self._context.complete(rows)
        choices = tuple((atom.gpm, event) for atom, event in zip(atoms, events, strict=True))
        return Found(choices, rows) if rows else None
