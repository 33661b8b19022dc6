"""What a caller holds of a registered query: its matches, its state, a way to end it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final

from spaseq.engine.pipeline import Pipeline, Stats
from spaseq.events import EventBatch
from spaseq.language.syntax import Query
from spaseq.results.match import Match

#: So many matches are made before anybody asks for them, at least.
_AT_ONCE: Final = 1_000


class Handle:
    """A query in an engine. ``matches`` drains what it has found, if ``on_match`` does not get it."""

    def __init__(self, pipeline: Pipeline, on_match: Callable[[Match], None] | None) -> None:
        self._pipeline = pipeline
        self._on_match = on_match
        self._found: deque[Match] = deque()
        self._coming: Iterator[Match] = iter(())
        self._cancelled = False

    @property
    def query(self) -> Query:
        """The query, as prepared."""
        return self._pipeline.query

    @property
    def stats(self) -> Stats:
        """What the query has seen and found so far."""
        return self._pipeline.stats

    @property
    def done(self) -> bool:
        """Whether the query is over: cancelled, its LIMIT reached, or its ASK answered."""
        return self._cancelled or self._pipeline.done

    def matches(self) -> Iterator[Match]:
        """The matches found since they were last asked for, each once, in the order of delivery.

        Where one event completes very many, those beyond the first are found as they are asked for.
        """
        while self._found or self._look(_AT_ONCE):
            while self._found:
                yield self._found.popleft()

    def cancel(self) -> None:
        """Takes the query out of the engine; what it has found can still be drained."""
        self._cancelled = True

    def follow(self, seen: Callable[[EventBatch], None]) -> None:
        """Calls ``seen`` with the query's events from now on, in processing order, before their matches."""
        self._pipeline.seen = seen

    def _add(self, matches: Iterable[Match], *, all_at_once: bool) -> None:
        """Further matches; unless they are wanted all at once, most of very many wait to be asked for."""
        self._coming = chain(self._coming, matches)
        if all_at_once or self._on_match is not None:
            self._finish()
        else:
            self._look(_AT_ONCE)

    def _finish(self) -> None:
        """Finds all that there are, since what is to come needs that."""
        while self._look(_AT_ONCE):
            pass

    def _look(self, most: int) -> bool:
        """Finds so many matches at most; False if there are none."""
        count = 0
        for match in islice(self._coming, most):
            count += 1
            if self._on_match is None:
                self._found.append(match)
            else:
                self._on_match(match)
            if self.done:
                break
        if count < most:
            self._coming = iter(())
        return count > 0
