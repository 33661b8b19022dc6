"""Where the partitions of a query began anew, by CONSUME ANY or AFTER MATCH SKIP.

After a restart, a new matcher sees only the events of the last windows. From these alone it might find a
match that the old matcher did not, and continue after it. But no match contains events from before its
partition's last cut, where the partition began anew, and no match was found since the cut. So the matcher is
not shown events that might begin a match before the cut, and finds the same matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from pyoxigraph import NamedNode, RdfFormat, parse

from spaseq.automaton.pattern import Absent, Atom, Maybe, Node, SequencePattern, children, walk
from spaseq.events import EventBatch, Ids, Stamp
from spaseq.language.syntax import Consume, Query, Skip, SkipMode
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.host import Key
from spaseq.matching.model import Found
from spaseq.matching.nfa.skip.preference import Moment, Rank, resumed_at
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary, Term

#: For each stream, the last event, as time and number, with which no match of the partition may begin.
Cut = Mapping[int, tuple[int, int]]

#: Greater than every number of an event.
_LAST: Final = 1 << 62


def begins_anew(query: Query) -> bool:
    """Return whether matches decide where the next ones may begin."""
    skips = query.skip is not None and query.skip.mode is not SkipMode.TO_NEXT_EVENT
    return skips or query.consume is Consume.ANY


def looks_behind(pattern: SequencePattern) -> str | None:
    """Return why a query that begins anew needs more than the events that may begin a match; None if not."""
    both = sorted(_negated(pattern.root).intersection(_positive(pattern.root)))
    if both:
        return f"what must be absent is looked for before the last match, too, and is what {both[0]} asks for"
    if pattern.query.consume is Consume.ANY and any(isinstance(node, Maybe) for node in walk(pattern.root)):
        return "what may be absent (? or *) is looked for before the last match, too"
    return None


def _negated(root: Node) -> set[str]:
    absent = [node for node in walk(root) if isinstance(node, Absent)]
    return {node.gpm for inside in absent for node in walk(inside) if isinstance(node, Atom)}


def _positive(node: Node) -> Iterator[str]:
    if isinstance(node, Atom):
        yield node.gpm
    elif not isinstance(node, Absent):
        for child in children(node):
            yield from _positive(child)


class Cuts:
    """The cuts of one query's partitions. ``records``: matches found from now on make cuts."""

    def __init__(self, pattern: SequencePattern, rank: Rank, dictionary: Dictionary) -> None:
        """``rank``: a stream's rank in the order of IRIs."""
        query = pattern.query
        self.records = True
        self._negated = _negated(pattern.root)
        self._variables = [variable.name for variable in query.partition]
        self._skip: Skip | None = query.skip
        self._rank, self._dictionary = rank, dictionary
        self._streams = [dictionary.pin(stream) for stream in pattern.streams]
        self._of: dict[Key, Cut] = {}
        self._newest: dict[int, tuple[int, int]] = {}
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids of the partitions' values."""
        return [np.array(list(self._of), dtype=np.int64)]

    # --- what happens -----------------------------------------------------------------------------

    def saw(self, stamp: Stamp) -> None:
        """Note that an event is processed."""
        self._newest[stamp.stream] = (stamp.time, stamp.n)

    def consumed(self, key: Key) -> None:
        """Cut a partition: all its partial matches were removed."""
        self._put(key, dict(self._newest))

    def noticed(self, found: Iterable[Block], batch: EventBatch) -> Iterator[Block]:
        """Yield the matches that the events of a batch complete, and cut their partitions."""
        for block in found:
            if self._skip is None and self.records:
                self._consumed_by(block, batch)
            yield block
        for stream, last in self._up_to(batch, len(batch) - 1).items():
            self._newest[stream] = last

    def skipped(self, found: Iterable[Block]) -> Iterator[Block]:
        """Yield matches as they are delivered, and cut their partitions."""
        for block in found:
            if self._skip is not None and self.records:
                for key, match in block:
                    self._put(key, self._before(resumed_at(self._skip, match, self._rank)))
            yield block

    def _consumed_by(self, block: Block, batch: EventBatch) -> None:
        """Cut each partition at its last match, which ended its partial matches."""
        seen = set()
        for i in range(len(block) - 1, -1, -1):
            key = block.key(i)
            if key not in seen:
                seen.add(key)
                self._put(key, self._newest | self._up_to(batch, _place(block[i], batch)))

    def _up_to(self, batch: EventBatch, last: int) -> dict[int, tuple[int, int]]:
        """Return, for each stream, the last event of a batch up to one of its events."""
        found = {}
        for stream in self._streams:
            at = np.flatnonzero(batch.stream[: last + 1] == stream)
            if len(at):
                found[stream] = (int(batch.time[at[-1]]), int(batch.n[at[-1]]))
        return found

    def _before(self, moment: Moment) -> Cut:
        """Return the cut just before a moment."""
        time, rank, number = map(int, moment[:3])
        is_behind = len(moment) > 3
        cut = {}
        for stream in self._streams:
            of = self._rank(stream)
            if of == rank:
                cut[stream] = (time, number if is_behind else number - 1)
            else:
                cut[stream] = (time, _LAST) if of < rank else (time - 1, _LAST)
        return cut

    def _put(self, key: Key, cut: Cut) -> None:
        if not self.records:
            return
        self._of.pop(key, None)
        self._of[key] = cut  # the newest cuts are last

    # --- what outlives the process ----------------------------------------------------------------

    def state(self, since: int) -> list[list[Any]]:
        """Return the state for ``restore``, as JSON: the cuts from a time on, since which events are kept."""
        self._of = {k: cut for k, cut in self._of.items() if max(time for time, _ in cut.values()) >= since}
        term = self._dictionary.term
        return [
            [[str(term(value)) for value in key], [[term(s).value, *last] for s, last in cut.items()]]
            for key, cut in self._of.items()
        ]

    def restore(self, state: Iterable[Any]) -> None:
        """Restore the cuts of the last engine. Nothing is recorded until ``records`` is set."""
        self.records = False
        for values, cut in state:
            key = tuple(self._dictionary.pin(_term(value)) for value in values)
            self._of[key] = {
                self._dictionary.pin(NamedNode(iri)): (time, number) for iri, time, number in cut
            }

    def left(self, gpm: str, batch: EventBatch, solutions: Solutions) -> Solutions:
        """Return the solutions of a GPM that a match after its partition's cut may have."""
        if gpm in self._negated or not len(solutions) or not self._of:
            return solutions
        if solutions.event is None:
            solutions = _of_each(solutions, len(batch))
        columns = [solutions.column(name).tolist() for name in self._variables]
        keys = zip(*columns, strict=True) if columns else ((),) * len(solutions)
        stamps = list(zip(batch.stream.tolist(), batch.time.tolist(), batch.n.tolist(), strict=True))
        kept = np.ones(len(solutions), dtype=np.bool_)
        for row, (event, key) in enumerate(zip(solutions.events.tolist(), keys, strict=True)):
            cut = self._of.get(key)
            if cut is not None:
                stream, *place = stamps[event]
                kept[row] = stream not in cut or tuple(place) > cut[stream]
        return solutions.take(kept)


def _place(match: Found, batch: EventBatch) -> int:
    """Return the number of a match's last event in the batch that completed it."""
    last = match.last.stamp
    (at,) = np.flatnonzero((batch.stream == last.stream) & (batch.n == last.n))
    return int(at)


def _of_each(solutions: Solutions, events: int) -> Solutions:
    """Return solutions that are the same in every event, repeated event by event."""
    event = np.repeat(np.arange(events), len(solutions))
    return Solutions(
        len(event), event, {name: np.tile(ids, events) for name, ids in solutions.columns.items()}
    )


def _term(text: str) -> Term:
    (quad,) = parse(f"<urn:s> <urn:p> {text} .", RdfFormat.N_TRIPLES)
    found: Term = quad.object
    return found
