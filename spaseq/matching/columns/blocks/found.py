"""Blocks of matches, as matchers return them.

Most matches consist only of events and, as Ω, their solutions side by side. Such matches are columns: which
events, and which solution of each (``plain.Columns``). Matches that need more come as objects (``Found``), in
separate blocks. For the users' view of a block, see ``spaseq.results.batch.MatchBatch``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.events import Clock, EventBatch
from spaseq.matching.columns.blocks.values import Column, ColumnPieces, Encoded, numbered
from spaseq.matching.host import Key
from spaseq.matching.model import Found
from spaseq.terms.dictionary import Dictionary, in_order

Ints = npt.NDArray[np.int64]

#: Times as ``datetime64[us]`` in UTC, or ticks as ``int64``.
Times = npt.NDArray[np.int64] | npt.NDArray[np.datetime64]

#: Returns the names of some streams.
Named = Callable[[Ints], tuple[str, ...]]

_INSTANTS: Final = np.dtype("datetime64[us]")


def shown(times: Ints, clock: Clock) -> Times:
    """Return times as users see them."""
    if clock is Clock.TICKS:
        return times
    seen: Times = times.view(_INSTANTS)
    return seen


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """The events of matches: those of match i are from ``offsets[i]`` to ``offsets[i + 1]``.

    Event ``e`` of them is event ``index[e]`` of ``batches[which[e]]``. The GPM that chose it is
    ``names[gpm[e]]``.
    """

    offsets: Ints
    names: Sequence[str]
    gpm: Ints
    batches: Sequence[EventBatch]
    which: Ints
    index: Ints


# Not frozen: freezing makes creation five times slower, and many batches have a few matches each.
@dataclass(slots=True, eq=False)
class Events:
    """The events that a GPM chose: those of match i are from ``offsets[i]`` to ``offsets[i + 1]``.

    ``time`` is in UTC as ``datetime64[us]``, or in ticks; ``n`` is the arrival number in the stream.
    """

    offsets: Ints
    stream: npt.NDArray[np.int32]
    time: Times
    n: Ints
    #: The names of the numbers in ``stream``.
    streams: tuple[str, ...]


class Solved(NamedTuple):
    """Ω of matches as columns of term ids, 0 where unbound: rows ``offsets[i]`` to ``offsets[i + 1]``."""

    offsets: Ints
    columns: dict[str, Column]


class Block(ABC):
    """Matches of one query, in the order of delivery. Iterating yields each with its partition.

    A matcher puts all matches that a call completes into one block: ``Columns`` if they are plain, ``blocks``
    for a few objects. Later calls must not overwrite anything in it.
    """

    #: Whether some matches are columns, which may keep many more events in memory than the matches have.
    is_of_columns: ClassVar[bool] = False

    @property
    @abstractmethod
    def keys(self) -> Ints:
        """Return the values of the PARTITION BY variables, as ids of shape ``(matches, variables)``."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, i: int) -> Found:
        """Return one match, by its number from 0."""

    @abstractmethod
    def key(self, i: int) -> Key:
        """Return the partition of one match."""

    def at(self, i: int) -> tuple[Block, int]:
        """Return the block that contains match i (itself, or one of its parts), and the match's number
        there.
        """
        return self, i

    @abstractmethod
    def part(self, begin: int, end: int) -> Block:
        """Return consecutive matches as a block of their own."""

    def split(self) -> Iterator[tuple[int, Block]]:
        """Yield the matches by the first value of their keys, which is removed from the keys."""
        of: dict[int, list[tuple[Key, Found]]] = {}
        for key, item in self:
            of.setdefault(key[0], []).append((key[1:], item))
        for value, items in of.items():
            yield value, Objects(items)

    @abstractmethod
    def spans(self) -> tuple[Ints, Ints]:
        """Return the times of the first and of the last event of each match."""

    @abstractmethod
    def sizes(self) -> Ints:
        """Return the number of solutions of each match."""

    def solution_count(self) -> int:
        """Return the number of solutions of all matches."""
        return int(self.sizes().sum())

    @abstractmethod
    def chosen(self) -> Chosen:
        """Return the events of all matches."""

    def events(self, gpms: Sequence[str], clock: Clock, names: Named) -> dict[str, Events]:
        """Return the events by GPM, as users see them."""
        chosen = self.chosen()
        starts = np.cumsum([0, *map(len, chosen.batches)])[:-1]
        places = starts[chosen.which] + chosen.index
        nothing = np.zeros(0, dtype=np.int64)
        time, n, stream = (
            np.concatenate([nothing, *(getattr(batch, name) for batch in chosen.batches)])[places]
            for name in ("time", "n", "stream")
        )
        streams = in_order(stream)
        codes, named = np.searchsorted(streams, stream).astype(np.int32), names(streams)
        found = {}
        for name in gpms:
            is_of = np.zeros(len(places), dtype=np.bool_)
            if name in chosen.names:
                is_of = chosen.gpm == list(chosen.names).index(name)
            offsets = np.concatenate([[0], np.cumsum(is_of)])[chosen.offsets]
            found[name] = Events(offsets, codes[is_of], shown(time[is_of], clock), n[is_of], named)
        return found

    @abstractmethod
    def solved(self, names: Sequence[str]) -> Solved:
        """Return the solutions of all matches, with these variables."""

    def encoded(self, names: Sequence[str], dictionary: Dictionary) -> Encoded:
        """Return the solutions, dictionary-encoded; ``dictionary`` has given the ids."""
        offsets, columns = self.solved(names)
        used, numbers = numbered(list(columns.values()), dictionary.limit)
        return Encoded(offsets, dict(zip(columns, numbers, strict=True)), used)

    def __iter__(self) -> Iterator[tuple[Key, Found]]:
        for i in range(len(self)):
            yield self.key(i), self[i]


class Objects(Block):
    """Matches that are objects already."""

    def __init__(self, found: Sequence[tuple[Key, Found]], width: int | None = None) -> None:
        """``width``: how many variables a key has, in case there is no match."""
        self._width = len(found[0][0]) if width is None else width
        self._keys = [key for key, _ in found]
        self._found = [match for _, match in found]

    @property
    def keys(self) -> Ints:
        return np.array(self._keys, dtype=np.int64).reshape(len(self._found), self._width)

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[tuple[Key, Found]]:
        return zip(self._keys, self._found, strict=True)

    def __getitem__(self, i: int) -> Found:
        return self._found[i]

    def key(self, i: int) -> Key:
        return self._keys[i]

    def part(self, begin: int, end: int) -> Objects:
        found = list(zip(self._keys[begin:end], self._found[begin:end], strict=True))
        return Objects(found, self._width)

    def spans(self) -> tuple[Ints, Ints]:
        spans = np.array([match.span for match in self._found], dtype=np.int64).reshape(-1, 2)
        return spans[:, 0], spans[:, 1]

    def sizes(self) -> Ints:
        return np.array([match.size for match in self._found], dtype=np.int64)

    def solution_count(self) -> int:
        return sum(match.size for match in self._found)

    def chosen(self) -> Chosen:
        names: dict[str, int] = {}
        batches: dict[int, tuple[int, EventBatch]] = {}
        events: list[tuple[int, int, int]] = []
        ends = [0]
        for match in self._found:
            for gpm, batch, index in match.places:
                number, _ = batches.setdefault(id(batch), (len(batches), batch))
                events.append((names.setdefault(gpm, len(names)), number, index))
            ends.append(len(events))
        columns = np.array(events, dtype=np.int64).reshape(-1, 3)
        offsets, known = np.array(ends, dtype=np.int64), [batch for _, batch in batches.values()]
        return Chosen(offsets, [*names], columns[:, 0], known, columns[:, 1], columns[:, 2])

    def solved(self, names: Sequence[str]) -> Solved:
        rows = [match.project(names) for match in self._found]
        offsets = np.cumsum([0, *map(len, rows)])
        flat = [row for of_match in rows for row in of_match]
        columns: dict[str, Column] = {
            name: np.array([row.get(name, 0) for row in flat], dtype=np.int64) for name in names
        }
        return Solved(offsets, columns)


class JoinedBlock(Block):
    """Consecutive blocks of one query, as one."""

    is_of_columns = True

    def __init__(self, parts: Sequence[Block]) -> None:
        self.parts = parts
        self._ends = [*accumulate(map(len, parts))]

    @property
    def keys(self) -> Ints:
        return np.concatenate([part.keys for part in self.parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __iter__(self) -> Iterator[tuple[Key, Found]]:
        for part in self.parts:
            yield from part

    def __getitem__(self, i: int) -> Found:
        part, inside = self.at(i)
        return part[inside]

    def key(self, i: int) -> Key:
        part, inside = self.at(i)
        return part.key(inside)

    def split(self) -> Iterator[tuple[int, Block]]:
        for part in self.parts:
            yield from part.split()

    def part(self, begin: int, end: int) -> Block:
        found, start = [], 0
        for part, stop in zip(self.parts, self._ends, strict=True):
            if start < end and stop > begin:
                found.append(part.part(max(begin - start, 0), min(end, stop) - start))
            start = stop
        return joined(found or [self.parts[0].part(0, 0)])

    def spans(self) -> tuple[Ints, Ints]:
        first, last = zip(*(part.spans() for part in self.parts), strict=True)
        return np.concatenate(first), np.concatenate(last)

    def sizes(self) -> Ints:
        return np.concatenate([part.sizes() for part in self.parts])

    def chosen(self) -> Chosen:
        names: dict[str, int] = {}
        batches: dict[int, tuple[int, EventBatch]] = {}
        chosen = [part.chosen() for part in self.parts]
        gpms, which = [], []
        for part in chosen:
            numbers = [names.setdefault(name, len(names)) for name in part.names]
            known = [batches.setdefault(id(batch), (len(batches), batch))[0] for batch in part.batches]
            gpms.append(np.array(numbers, dtype=np.int64)[part.gpm])
            which.append(np.array(known, dtype=np.int64)[part.which])
        return Chosen(
            one_after_the_other([part.offsets for part in chosen]),
            [*names],
            np.concatenate(gpms),
            [batch for _, batch in batches.values()],
            np.concatenate(which),
            np.concatenate([part.index for part in chosen]),
        )

    def events(self, gpms: Sequence[str], clock: Clock, names: Named) -> dict[str, Events]:
        parts = [part.events(gpms, clock, names) for part in self.parts]
        found = {}
        for name in gpms:
            of_gpm = [events[name] for events in parts]
            streams = tuple(dict.fromkeys(stream for of in of_gpm for stream in of.streams))
            codes = [
                of.stream
                if of.streams == streams
                else np.array([*map(streams.index, of.streams)], dtype=np.int32)[of.stream]
                for of in of_gpm
            ]
            found[name] = Events(
                one_after_the_other([of.offsets for of in of_gpm]),
                np.concatenate(codes),
                np.concatenate([of.time for of in of_gpm]),
                np.concatenate([of.n for of in of_gpm]),
                streams,
            )
        return found

    def solved(self, names: Sequence[str]) -> Solved:
        parts = [part.solved(names) for part in self.parts]
        columns: dict[str, Column] = {
            name: ColumnPieces([part.columns[name] for part in parts]) for name in names
        }
        return Solved(one_after_the_other([part.offsets for part in parts]), columns)

    def at(self, i: int) -> tuple[Block, int]:
        number = bisect_right(self._ends, i)
        return self.parts[number].at(i - (self._ends[number - 1] if number else 0))


def one_after_the_other(offsets: Sequence[Ints]) -> Ints:
    """Convert offsets into parts to offsets into their concatenation; at least one part."""
    first, *others = offsets
    found = np.concatenate([first, *(part[1:] for part in others)])
    begin, before = len(first), first.item(-1)
    for part in others:
        end = begin + len(part) - 1
        found[begin:end] += before
        begin, before = end, before + part.item(-1)
    return found


def joined(blocks: Sequence[Block]) -> Block:
    """Join blocks of one query, at least one."""
    return blocks[0] if len(blocks) == 1 else JoinedBlock(blocks)


def blocks(found: Iterable[tuple[Key, Found]]) -> Iterator[Objects]:
    """Yield a block of objects, if there are any."""
    listed = list(found)
    if listed:
        yield Objects(listed)


def in_blocks(found: Iterable[tuple[Key, Found]] | Iterable[Block]) -> Iterator[Block]:
    """Yield matches in blocks; they may be blocks already."""
    singly: list[tuple[Key, Found]] = []
    for item in found:
        if isinstance(item, Block):
            yield item
        else:
            singly.append(item)
    yield from blocks(singly)
