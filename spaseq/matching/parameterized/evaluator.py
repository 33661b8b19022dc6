"""Parameterized patterns on event columns: batches of solutions in, matches out.

The kernel finds the occurrences; their solutions are read only then, or joined by ``Context`` where an event
has several. Every event is compared once, whatever the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.gpm.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.blocks.plain import Columns, Site, Sites, mixed
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.columns.evaluator import Immediate
from spaseq.matching.columns.history import History
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.model import Bounds, Found
from spaseq.matching.parameterized import _kernel as k
from spaseq.matching.parameterized.query import compile_query
from spaseq.matching.parameterized.text import Partitions, Values, read
from spaseq.terms.dictionary import Dictionary

#: Occurrences that the kernel hands over at a time.
_ROOM: Final = 4_096


class Parameterized(Immediate):
    """The matches of one query over all its partitions; see ``Matcher`` for the order of delivery.

    Raises ``NotParameterizedError`` for a query that ``fits`` refuses.
    """

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, context: Context, bounds: Bounds
    ) -> None:
        self._compiled = compile_query(pattern)
        self._keys = tuple(variable.name for variable in pattern.query.partition)
        self._context = context
        self._bounds = bounds
        self._size = len(self._compiled.atoms)
        self._gpms = tuple(pattern.gpms)
        sites = [Site(self._gpms.index(atom.gpm), atom.gpm) for atom in self._compiled.atoms]
        self._sites = Sites(sites, self._gpms)
        self._history = History(self._gpms, self._keys, context.budget)
        self._values = Values(dictionary)
        width = k.HEADER + self._size * (self._compiled.program.tracks + 2)
        self._partitions = Partitions(width, bool(self._keys), context.budget)
        self._found = np.zeros((_ROOM, self._size + 2), dtype=np.int64)
        self._stops = np.zeros(self._size + 2, dtype=np.int64)
        dictionary.hold(self)

    def live_ids(self) -> Iterable[k.Ints]:
        """None that batches do not keep; asked when others are about to be forgotten."""
        self._values.forget()
        return ()

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        if not len(batch):
            return
        tables = {name: solutions.get(name, NO_SOLUTIONS).by_time() for name in self._gpms}
        axis = self._bounds.places(batch, start)
        self._remember(batch, start, tables, axis)
        text = read(self._compiled, self._keys, len(batch), tables, self._values)
        numbers = self._partitions.of(text.keys)
        program = self._compiled.program
        begin = 0
        while begin < len(numbers):
            begin, count = k.run(
                program.rows,
                program.at,
                program.alive,
                program.masks,
                text.symbols,
                text.ambiguous,
                numbers,
                start + text.events,
                axis[text.events],
                self._partitions.state,
                self._found,
                self._stops,
                begin,
                self._bounds.reach,
            )
            yield from self._matches(self._found[:count])

    def _remember(self, batch: EventBatch, start: int, tables: Mapping[str, Solutions], axis: k.Ints) -> None:
        """Keeps a batch as long as its events may be in a match: in a partition, as long as the window is.

        Without partitions only the last events of the pattern's length count, so positions tell.
        """
        ordered = tuple(tables[name] for name in self._gpms)
        if self._keys:
            oldest, last = int(axis[0]) - self._bounds.reach, int(axis[-1])
            state = self._partitions.state
            self._partitions.drop_idle(state[:, k.NEWEST], oldest)
        else:
            oldest, last = start - self._size + 1, start + len(batch) - 1
        self._history.add(Chunk(start, batch, ordered, last), oldest)

    def _matches(self, found: k.Ints) -> Iterator[Block]:
        """Occurrences, as the kernel gives them, as matches; without those that only might have been some."""
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
        """A match of events of which some have several solutions, if there is one."""
        atoms = self._compiled.atoms
        events = [self._history.occurrence(p, key, atom.gpm) for p, atom in zip(places, atoms, strict=True)]
        rows = self._context.start
        for atom, event in zip(atoms, events, strict=True):
            rows = self._context.extend(rows, atom, event, ())
        rows = self._context.complete(rows)
        choices = tuple((atom.gpm, event) for atom, event in zip(atoms, events, strict=True))
        return Found(choices, rows) if rows else None
