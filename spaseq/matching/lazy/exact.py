"""What a candidate match means, exactly: the reference, with nothing to choose from but its events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from spaseq.automaton.pattern import Absent, AnyOrder, Atom, Maybe, SequencePattern, walk
from spaseq.matching.columns.history import History
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.model import Bounds, Found, Occurrence, distinct
from spaseq.matching.reference import Events, Partial, Search, found_of

#: The events of a match: positions, and the GPMs that they were chosen as, in order.
Path = tuple[tuple[int, str], ...]


class Exact:
    """Judges candidates of one query."""

    def __init__(self, pattern: SequencePattern, context: Context, bounds: Bounds, history: History) -> None:
        self._pattern = pattern
        self._context = context
        self._bounds = bounds
        self._history = history

    # Asked only where a match is not sure.

    @cached_property
    def _forbidden(self) -> list[str]:
        # What is left out of an `X?` must not be there, either.
        absent = (node for node in walk(self._pattern.root) if isinstance(node, Absent | Maybe))
        return sorted({a.gpm for node in absent for a in walk(node) if isinstance(a, Atom)})

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {gpm: g for g, gpm in enumerate(self._pattern.gpms)}

    @cached_property
    def _in_order(self) -> bool:
        return not any(isinstance(node, AnyOrder) for node in walk(self._pattern.root))

    def match(self, path: Path, key: Key) -> Found | None:
        """The match of these events, in all the ways in which they are one; None if they are none."""
        chosen = [self._chosen(position, gpm, key) for position, gpm in path]
        told = _Told(self._pattern, self._context, self._bounds, self._around(chosen, key))
        told.chosen = chosen if self._in_order else None
        found = distinct(
            found_of(m) for m in told.partials(chosen) if len(m.events) == len(path) and not told.broken(m)
        )
        return found[0] if found else None

    def _chosen(self, position: int, gpm: str, key: Key) -> Occurrence:
        seen = self._history.occurrence(position, key, gpm)
        return replace(seen, solutions={gpm: seen.solutions[gpm]})

    def _around(self, chosen: Events, key: Key) -> Events:
        """The events of the match's window that may be forbidden in it."""
        if not self._forbidden:
            return ()
        opening = self._bounds.opening(chosen[0], chosen[-1])
        last = chosen[-1].position
        return [e for e in self._seen(key, last) if self._bounds.measure(e) >= opening]

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


class _Told(Search):
    """A search that knows which events to choose; what must not be is looked for among all events."""

    #: The events to choose, one after the other, if that is their order.
    chosen: Events | None = None

    def _atom(self, node: Atom, m: Partial) -> Iterator[Partial]:
        if self.chosen is None or m.pool is not self.chosen:
            yield from super()._atom(node, m)
        elif len(m.events) < len(self.chosen):
            one = self.chosen[len(m.events)]
            yield from (replace(found, pool=m.pool) for found in super()._atom(node, replace(m, pool=[one])))
