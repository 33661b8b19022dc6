"""AFTER MATCH SKIP: of the matches of one first event the preferred one, and where the next may begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spaseq.language.syntax import Skip, SkipMode
from spaseq.matching.context import Context, Order
from spaseq.matching.model import Occurrence
from spaseq.matching.reference.partial import Partial


class Skipping:
    """Takes the first events in order (semantics, section 6). One for each partition."""

    def __init__(self, skip: Skip, context: Context) -> None:
        self._skip = skip
        self._context = context
        # Where a match may begin, and whether only behind it.
        self._resume: tuple[Order, bool] | None = None
        self._done: set[Order] = set()
        #: The first events that had a match or a hope of one, when one before them was not decided yet.
        self.undecided: frozenset[Order] = frozenset()

    def certain(
        self,
        complete: Sequence[Partial],
        open_: Sequence[Partial] = (),
        preceded: Callable[[Partial], bool] = lambda _: False,
    ) -> list[Partial]:
        """The matches that are certain now, in the order of their first events.

        ``open_`` are the ways on which a match may still come, and the complete matches that may go;
        ``preceded`` says whether an event may still come that stands before a match.
        """
        out = []
        undecided: list[Order] = []
        # Where the next match begins depends on all first events before it.
        in_turn = self._skip.mode is not SkipMode.TO_NEXT_EVENT
        for first in sorted({self._first(m) for m in (*complete, *open_)}):
            if not self._may_begin(first):
                continue
            if undecided and in_turn:
                undecided.append(first)
                continue
            best = min((m for m in complete if self._first(m) == first), key=_key, default=None)
            hopes = [m for m in open_ if self._first(m) == first]
            if in_turn and best is not None and preceded(best):
                undecided.append(first)
                continue
            if any(best is None or m is best or m.key < best.key for m in hopes):
                undecided.append(first)
                continue
            if best is not None:
                out.append(best)
                self._done.add(first)
                self._go_on(best, first)
        self.undecided = frozenset(undecided)
        return out

    def _first(self, m: Partial) -> Order:
        return min(self._order(event) for event in m.chosen)

    def _order(self, event: Occurrence) -> Order:
        return self._context.order(event.stamp)

    def _may_begin(self, first: Order) -> bool:
        if first in self._done:
            return False
        if self._resume is None:
            return True
        place, behind = self._resume
        return first > place if behind else first >= place

    def _go_on(self, m: Partial, first: Order) -> None:
        chosen = [self._order(event) for gpm, event in m.events if gpm == self._skip.gpm]
        match self._skip.mode:
            case SkipMode.PAST_LAST_EVENT:
                self._resume = max(map(self._order, m.chosen)), True
            case SkipMode.TO_NEXT_EVENT:
                pass
            case SkipMode.TO_FIRST:
                self._resume = _behind(min(chosen, default=first), first)
            case SkipMode.TO_LAST:
                self._resume = _behind(max(chosen, default=first), first)

    def forget(self, oldest: Iterable[Order]) -> None:
        """Only these may still be first events."""
        self._done &= set(oldest)


def _behind(place: Order, first: Order) -> tuple[Order, bool]:
    return place, place == first


def _key(m: Partial) -> tuple[object, ...]:
    return m.key
