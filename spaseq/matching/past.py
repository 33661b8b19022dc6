"""The events that runs of the kernel may still hold, and what runs are to ``Context``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.automaton.nfa import Action, Again, Enter, Leave
from spaseq.automaton.pattern import Atom, Both, Node, children, walk
from spaseq.events import EventBatch, Stamp
from spaseq.gpm.solutions import Solutions
from spaseq.matching.context import Context, Rows
from spaseq.matching.host import Key
from spaseq.matching.kernel.analysis import Candidate
from spaseq.matching.kernel.tables import Compiled
from spaseq.matching.model import Found, Occurrence, Solution

Ints = npt.NDArray[np.int64]

#: A run: the positions and candidates of its events.
Path = Sequence[tuple[int, int]]

#: So many batches may be gone before the list of where they start is cut.
_SLACK: Final = 64


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Chunk:
    """A batch. ``last`` is its end on the axis; ``rows[g]`` where the rows of GPM g begin in each event.

    Without ``rows``, they are looked for. Its solutions' terms are kept as long as it is referenced.
    """

    start: int
    batch: EventBatch
    solutions: tuple[Solutions, ...]
    last: int
    rows: Ints | None = None

    def __post_init__(self) -> None:
        self.batch.dictionary.hold(self)

    def span(self, g: int, index: int) -> range:
        """The rows of a GPM in an event."""
        if self.rows is not None:
            return range(self.rows[g, index], self.rows[g, index + 1])
        event = self.solutions[g].event
        assert event is not None
        begin, end = np.searchsorted(event, (index, index + 1)).tolist()
        return range(begin, end)

    def live_ids(self) -> Iterable[Ints]:
        """The ids in the solutions, some of which may be in no event."""
        return [column for table in self.solutions for column in table.columns.values()]

    def row(self, g: int, i: int) -> dict[str, int]:
        """A solution, without what is unbound."""
        row = {name: column.item(i) for name, column in self.solutions[g].columns.items()}
        return row if all(row.values()) else {name: term for name, term in row.items() if term}


class Past:
    """Batches, from the oldest that a run may hold on."""

    def __init__(self, gpms: Sequence[str], keys: Sequence[str]) -> None:
        self._number = {name: g for g, name in enumerate(gpms)}
        self._keys = keys
        self._chunks: dict[int, Chunk] = {}
        self._starts: list[int] = []
        self._gone = 0
        self._seen: dict[tuple[int, Key], Occurrence] = {}

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._chunks.values())

    def add(self, chunk: Chunk, oldest: int) -> None:
        """One batch more; those that end before ``oldest`` on the window's axis go."""
        while self._gone < len(self._starts) and self._chunks[self._starts[self._gone]].last < oldest:
            del self._chunks[self._starts[self._gone]]
            self._gone += 1
        if self._gone > _SLACK and 2 * self._gone > len(self._starts):
            del self._starts[: self._gone]
            self._gone = 0
        self._chunks[chunk.start] = chunk
        self._starts.append(chunk.start)
        self._seen.clear()

    def chunks(self, positions: Ints) -> list[Chunk]:
        """The batches in which events are."""
        first = bisect_right(self._starts, int(positions.min())) - 1
        starts = np.array(self._starts[first:], dtype=np.int64)
        found = starts[np.searchsorted(starts, positions, side="right") - 1]
        return [self._chunks[start] for start in found.tolist()]

    def stamps(self, positions: Ints) -> list[Stamp]:
        """When events were."""
        chunks = self.chunks(positions)
        return [c.batch.stamp(at - c.start) for at, c in zip(positions.tolist(), chunks, strict=True)]

    def occurrence(self, position: int, key: Key, gpm: str) -> Occurrence:
        """An event as one partition sees it, with its solutions of one GPM at least."""
        found = self._seen.get((position, key))
        if found is not None and gpm in found.solutions:
            return found
        chunk = self._chunks[self._starts[bisect_right(self._starts, position) - 1]]
        index = position - chunk.start
        if found is None:
            found = Occurrence(chunk.batch.stamp(index), position, {}, chunk.batch, index, chunk)
            self._seen[position, key] = found
        solutions = found.solutions
        assert isinstance(solutions, dict)
        g = self._number[gpm]
        rows = [chunk.row(g, i) for i in chunk.span(g, index)]
        # One row alone is of the key, or the kernel would not speak of it.
        solutions[gpm] = tuple(row for row in rows if len(rows) == 1 or self.belongs(row, key))
        return found

    def sees(self, chunk: Chunk, index: int, key: Key) -> bool:
        """Whether a partition sees an event of a batch: some solution has the whole key."""
        wanted = tuple(zip(self._keys, key, strict=True))
        for g, table in enumerate(chunk.solutions):
            columns = table.columns
            for i in chunk.span(g, index):
                if all(name in columns and columns[name][i] == term for name, term in wanted):
                    return True
        return not wanted

    def belongs(self, solution: Solution, key: Key) -> bool:
        """Whether a partition sees a solution."""
        return all(solution.get(name, term) == term for name, term in zip(self._keys, key, strict=True))


class Replay:
    """Gives runs that the kernel found, or asks about, to ``Context``: exactly, whatever the tables say."""

    def __init__(self, compiled: Compiled, context: Context, past: Past) -> None:
        self._candidates = compiled.candidates
        self._accepts = compiled.accepts
        self._context = context
        self._past = past

    def match(self, path: Path, accept: int, key: Key) -> Found | None:
        """A run that ended as a match, unless its Ω turns out to be empty."""
        rows = self._act(self.rows(path, key), self._accepts[accept])
        rows = self._context.complete(rows)
        if not rows:
            return None
        gpms = [self._candidates[number].unit.gpm for _, number in path]
        events = (self._past.occurrence(at, key, gpm) for (at, _), gpm in zip(path, gpms, strict=True))
        return Found(tuple(dict.fromkeys(zip(gpms, events, strict=True))), rows)

    def rows(self, path: Path, key: Key) -> Rows:
        """Ω of a run right after its last event."""
        rows = self._context.start
        for step in taken(path, self._candidates):
            rows = self._extend(rows, step, key)
        return rows

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Whether an event, or several at one time, are relevant for a candidate of a run."""
        return bool(self._extend(self.rows(path, key), step, key))

    def _extend(self, rows: Rows, step: Path, key: Key) -> Rows:
        candidate = self._candidates[step[0][1]]
        rows = self._act(self._act(rows, candidate.gate.ends), candidate.begins)
        return gathered(self._context, self._past, rows, step, self._candidates, key)

    def _act(self, rows: Rows, actions: tuple[Action, ...]) -> Rows:
        for action in actions:
            match action:
                case Enter(kleene):
                    rows = self._context.enter(rows, kleene)
                case Again(kleene):
                    rows = self._context.again(rows, kleene)
                case Leave(kleene, _, inside):
                    rows = self._context.leave(rows, kleene, inside)
        return rows


def taken(path: Path, candidates: Sequence[Candidate]) -> Iterator[Path]:
    """The steps of a run: one event each, or the events that an ``&`` gathers."""
    at = 0
    while at < len(path):
        size = max(1, len(candidates[path[at][1]].parts))
        yield path[at : at + size]
        at += size


def gathered(
    context: Context, past: Past, rows: Rows, step: Path, candidates: Sequence[Candidate], key: Key
) -> Rows:
    """Ω with the events of one step."""
    inside = candidates[step[0][1]].inside
    events = {}
    for position, number in step:
        atom = candidates[number].unit
        events[atom.id] = past.occurrence(position, key, atom.gpm)

    def joined(node: Node, rows: Rows) -> Rows:
        match node:
            case Atom():
                return context.extend(rows, node, events[node.id], inside)
            case Both(operands=operands):
                marked = context.mark(rows)
                return context.join([joined(operand, marked) for operand in operands], node, inside)
            case _:
                (chosen,) = (o for o in children(node) if any(n.id in events for n in walk(o)))
                return joined(chosen, rows)

    first = candidates[step[0][1]]
    return joined(first.both or first.unit, rows)
