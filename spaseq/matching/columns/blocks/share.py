"""The matches of one query among those of many; and matches with only a copy of their own events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.events import Clock, EventBatch
from spaseq.matching.columns.blocks.found import (
    Block,
    Chosen,
    Events,
    JoinedBlock,
    Named,
    Solved,
    Times,
    one_after_the_other,
)
from spaseq.matching.columns.blocks.plain import Columns
from spaseq.matching.columns.blocks.values import (
    Column,
    Encoded,
    Numbers,
    all_ids,
    counted,
    numbered_by_part,
    of_matches,
    zeros,
)
from spaseq.matching.columns.chunk import SolvedBatch, Stretch
from spaseq.matching.host import Key
from spaseq.matching.model import Found
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

# The matches of one query among those of many: what is derived from them is computed for all at once.

Ints = npt.NDArray[np.int64]

#: At most this many matches are joined at a time.
MOST: Final = 1 << 18

#: Differences up to this fit in two bytes.
_NARROW: Final = (1 << 16) - 1


class _OfGpm(NamedTuple):
    """The events of one GPM for all shares, as ``Events``.

    ``bounds``: where those of each share begin and end; None, as ``offsets``, if each match has one.
    ``stream`` is None if there is only one stream.
    """

    name: str
    bounds: list[int] | None
    offsets: Ints | None
    stream: npt.NDArray[np.int32] | None
    time: Times
    n: Ints
    streams: tuple[str, ...]


class _NumberedShare(NamedTuple):
    """The solutions of all shares, dictionary-encoded for each share separately; see ``Encoded``.

    ``rows`` and ``ends``: where the rows and the ids of each begin, and those of the last one end. Without
    ``rows``, each match has one.
    """

    names: Sequence[str]
    offsets: Ints
    columns: Sequence[tuple[str, Numbers]]
    rows: list[int] | None
    used: Ints
    ends: list[int]


class _Whole:
    """The matches of many queries, grouped by query; what is derived from them is cached."""

    def __init__(self, block: Columns, keys: Ints, bounds: Ints) -> None:
        """``keys``: of each match, which need not be the block's; ``bounds``: the boundaries of
        the shares.
        """
        self.block = Columns(
            block.sites, block.stretch, keys, block.offsets, block.places, block.site, block.rows
        )
        self._bounds = bounds
        # The arguments of the last call, and its result: all shares are read in the same way.
        self._events: tuple[Sequence[str], Clock, list[_OfGpm]] | None = None
        self._solved: dict[tuple[str, ...], Solved] = {}
        self._encoded: _NumberedShare | None = None

    @cached_property
    def spans(self) -> tuple[Ints, Ints]:
        """Return the first and the last time of each match."""
        return self.block.spans()

    @cached_property
    def sizes(self) -> Ints:
        """Return how many solutions each match has."""
        return self.block.sizes()

    def events(self, gpms: Sequence[str], clock: Clock, names: Named) -> list[_OfGpm]:
        """Return ``events`` of all shares."""
        known = self._events
        if known is not None and known[0] is gpms and known[1] is clock:
            return known[2]
        found = []
        for name, of in self.block.events(gpms, clock, names).items():
            is_one = of.offsets is self.block.one_each
            bounds = None if is_one else of.offsets[self._bounds].tolist()
            stream = of.stream if len(of.streams) > 1 else None
            found.append(
                _OfGpm(name, bounds, None if is_one else of.offsets, stream, of.time, of.n, of.streams)
            )
        self._events = gpms, clock, found
        return found

    def solved(self, names: Sequence[str]) -> Solved:
        """Return ``solved`` of all shares."""
        key = tuple(names)
        if key not in self._solved:
            solved = self.block.solved(names)
            self._solved[key] = Solved(solved.offsets, {n: all_ids(c) for n, c in solved.columns.items()})
        return self._solved[key]

    def encoded(self, names: Sequence[str], dictionary: Dictionary) -> _NumberedShare:
        """Return ``encoded`` for each share separately."""
        known = self._encoded
        if known is None or known.names is not names:
            offsets, columns = self.solved(names)
            rows = offsets[self._bounds]
            used, ends, numbers = numbered_by_part(
                [all_ids(c) for c in columns.values()], rows, dictionary.limit
            )
            listed = None if offsets is self.block.one_each else rows.tolist()
            known = _NumberedShare(
                names, offsets, [*zip(columns, numbers, strict=True)], listed, used, ends.tolist()
            )
            self._encoded = known
        return known


class Share(Block):
    """Consecutive matches of a block: one of many shares, often of one or two matches each.

    Its values are slices of the values of all shares.
    """

    is_of_columns = True

    def __init__(self, whole: _Whole, number: int, begin: int, end: int) -> None:
        """``number``: its own among the shares."""
        self._whole, self._number, self._from, self._to = whole, number, begin, end

    @cached_property
    def alone(self) -> Columns:
        """Return the share as a block without the others."""
        return self._whole.block.part(self._from, self._to)

    @property
    def keys(self) -> Ints:
        return self._whole.block.keys[self._from : self._to]

    def key(self, i: int) -> Key:
        return self._whole.block.key(self._from + i)

    def at(self, i: int) -> tuple[Block, int]:
        return self.alone, i

    def part(self, begin: int, end: int) -> Block:
        return self._whole.block.part(self._from + begin, self._from + end)

    def __len__(self) -> int:
        return self._to - self._from

    def __getitem__(self, i: int) -> Found:
        return self._whole.block[self._from + i]

    def spans(self) -> tuple[Ints, Ints]:
        starts, ends = self._whole.spans
        return starts[self._from : self._to], ends[self._from : self._to]

    def sizes(self) -> Ints:
        return self._whole.sizes[self._from : self._to]

    def solution_count(self) -> int:
        return super().solution_count() if self._whole.block.sites.kleenes else len(self)

    def chosen(self) -> Chosen:
        return self.alone.chosen()

    def events(self, gpms: Sequence[str], clock: Clock, names: Named) -> dict[str, Events]:
        begin, end = self._from, self._to
        one_each, of_one = of_matches(end - begin)
        found = {}
        for name, bounds, offsets, stream, time, n, streams in self._whole.events(gpms, clock, names):
            first, last, own, own_stream = begin, end, one_each, of_one
            if bounds is not None and offsets is not None:
                first, last = bounds[self._number], bounds[self._number + 1]
                own, own_stream = self._of_own(offsets, first), zeros(last - first)
            if stream is not None:
                own_stream = stream[first:last]
            found[name] = Events(own, own_stream, time[first:last], n[first:last], streams)
        return found

    def _of_own(self, offsets: Ints, first: int) -> Ints:
        """Convert offsets into the values of all shares to offsets into this share's, which begin at
        ``first``.
        """
        if offsets is self._whole.block.one_each:
            return counted(self._to - self._from + 1)
        return offsets[self._from : self._to + 1] - first

    def solved(self, names: Sequence[str]) -> Solved:
        offsets, columns = self._whole.solved(names)
        first, last = offsets.item(self._from), offsets.item(self._to)
        some: dict[str, Column] = {name: all_ids(column)[first:last] for name, column in columns.items()}
        return Solved(self._of_own(offsets, first), some)

    def encoded(self, names: Sequence[str], dictionary: Dictionary) -> Encoded:
        _, offsets, columns, rows, used, ends = self._whole.encoded(names, dictionary)
        first, last, number = self._from, self._to, self._number
        if rows is None:
            own = counted(last - first + 1)
        else:
            first, last = rows[number], rows[number + 1]
            own = self._of_own(offsets, first)
        of_names = {name: column[first:last] for name, column in columns}
        return Encoded(own, of_names, used[ends[number] : ends[number + 1]])


def shares(block: Columns) -> list[tuple[int, Block]]:
    """Return the matches by the first value of their keys, which is removed from the keys."""
    of = block.keys[:, 0]
    least = int(of.min())
    # Small numbers are sorted by counting, ten times faster.
    is_narrow = int(of.max()) - least <= _NARROW
    order = np.argsort((of - least).astype(np.uint16) if is_narrow else of, kind="stable")
    cuts = np.flatnonzero(np.diff(of[order])) + 1
    ordered = block.take(order) if len(cuts) else block
    bounds = np.concatenate([[0], cuts, [len(block)]])
    whole = _Whole(ordered, ordered.keys[:, 1:], bounds)
    names = of[order[bounds[:-1]]].tolist()
    listed = zip(names, pairwise(bounds.tolist()), strict=True)
    return [(name, Share(whole, i, begin, end)) for i, (name, (begin, end)) in enumerate(listed)]


def shares_of_all(found: Iterable[Block]) -> Iterator[Iterable[tuple[int, Block]]]:
    """Yield the matches of several blocks by query, each query's in order, in as few shares as possible.

    Each item has the shares of all queries in some of the matches, one share per query.
    """
    for block in _gathered(found):
        yield shares(block) if isinstance(block, Columns) else block.split()


def shared_by_all(found: Iterable[Block]) -> Iterator[Block]:
    """Yield the matches of several blocks, for queries that share them all, in as few blocks as possible."""
    for block in _gathered(found):
        if isinstance(block, Columns):
            whole = _Whole(block, block.keys, np.array([0, len(block)]))
            yield Share(whole, 0, 0, len(block))
        else:
            yield block


def _gathered(found: Iterable[Block]) -> Iterator[Block]:
    """Yield fewer, larger blocks: adjacent columns of the same form are joined, up to a number of matches."""
    alike: list[Columns] = []
    count = 0
    for block in found:
        columns = block if isinstance(block, Columns) else None
        is_other = columns is None or (alike and (alike[0].rows is None) is not (columns.rows is None))
        if alike and (is_other or count >= MOST):
            yield _together(alike)
            alike, count = [], 0
        if columns is None:
            yield block
        else:
            alike.append(columns)
            count += len(columns)
    if alike:
        yield _together(alike)


def _together(blocks: Sequence[Columns]) -> Columns:
    """Join blocks over all their batches; all name solutions by row, or none does."""
    if len(blocks) == 1:
        return blocks[0]
    sites = blocks[0].sites
    chunks = {chunk.start: chunk for block in blocks for chunk in block.stretch.chunks}
    starts = sorted(chunks)
    stretch = Stretch([chunks[start] for start in starts])
    gpms = sorted(set(sites.numbers.tolist()))
    places, rows = [], []
    for block in blocks:
        of, which = block.stretch, block.stretch.where(block.places)
        moved = np.searchsorted(starts, [chunk.start for chunk in of.chunks])
        places.append(block.places + (stretch.begins[moved] - of.begins[:-1])[which])
        if block.rows is not None:
            # Solutions are counted by GPM.
            ahead = np.zeros((len(sites.gpms), len(of.chunks)), dtype=np.int64)
            for g in gpms:
                ahead[g] = stretch.rows_before(g)[moved] - of.rows_before(g)[:-1]
            rows.append(block.rows + ahead[sites.numbers[block.site], which])
    return Columns(
        sites,
        stretch,
        np.concatenate([block.keys for block in blocks]),
        one_after_the_other([block.offsets for block in blocks]),
        np.concatenate(places),
        np.concatenate([block.site for block in blocks]),
        np.concatenate(rows) if rows else None,
    )


# Kept matches with a copy of their events, instead of all events that arrived together.

#: A copy is made if the block keeps this many times more events than its matches have, and at least as many
#: events as the next constant says.
_SPARSE: Final = 8
_WORTH: Final = 1 << 10

#: For batches, by identity: the part that was cut out, and where its events were, in order.
Moved = Mapping[int, tuple[EventBatch, Ints]]


def cut_out(block: Block) -> tuple[Block, Moved] | None:
    """Return the matches with a copy of their events; None if the block keeps few other events.

    Concurrent readers of the old block continue to use it.
    """
    if isinstance(block, JoinedBlock):
        parts = [(part, cut_out(part)) for part in block.parts]
        moved = {key: to for _, cut in parts if cut for key, to in cut[1].items()}
        return (JoinedBlock([cut[0] if cut else part for part, cut in parts]), moved) if moved else None
    if isinstance(block, Share):
        block = block.alone
    if not isinstance(block, Columns) or not len(block):
        return None
    stretch, places = block.stretch, block.places
    if len(stretch) < _WORTH or len(places) * _SPARSE > len(stretch):
        return None
    used, inverse = np.unique(places, return_inverse=True)
    which = stretch.where(used)
    # Rows are counted by GPM: for each, the rows of the kept events follow those before them.
    numbers = block.sites.numbers[block.site]
    rows = None if block.rows is None else block.rows.copy()
    chunks, moved, begins = [], {}, dict.fromkeys(set(block.sites.numbers.tolist()), 0)
    for c in np.unique(which).tolist():
        chunk = stretch.chunks[c]
        kept = used[which == c] - stretch.begins[c]
        batch, tables = chunk.batch.take(kept), []
        for g, table in enumerate(chunk.solutions):
            first, end = (np.searchsorted(table.events, kept, side=side) for side in ("left", "right"))
            counts = end - first
            new = np.cumsum(counts) - counts
            taken = table.take(np.repeat(first - new, counts) + np.arange(counts.sum()))
            tables.append(Solutions(len(taken), np.repeat(np.arange(len(kept)), counts), taken.columns))
            if rows is not None and block.rows is not None and g in begins:
                ours = np.flatnonzero((numbers == g) & (which[inverse] == c))
                at = np.searchsorted(kept, places[ours] - stretch.begins[c])
                before = int(stretch.rows_before(g)[c])
                rows[ours] = block.rows[ours] - before - first[at] + new[at] + begins[g]
                begins[g] += len(taken)
        chunks.append(SolvedBatch(chunk.start, batch, tuple(tables), chunk.last))
        moved[id(chunk.batch)] = batch, kept
    made = block.elsewhere(Stretch(chunks), inverse.astype(np.int64), rows)
    return made, moved
