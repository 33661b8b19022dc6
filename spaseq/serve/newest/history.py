"""The newest matches of a query, numbered, for readers that connect and reconnect."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyoxigraph as ox

from spaseq.results.batch import Match
from spaseq.results.event import Event
from spaseq.results.writers._json import dump, values_of
from spaseq.terms.interop import triples_of

#: The most characters of a text that is cached for other readers.
_TEXT: Final = 16_384


@dataclass(slots=True)
class NumberedMatch:
    """A match, its number, and its text once needed."""

    number: int
    match: Match
    _text: str | None = None
    _with_events: str | None = None

    def text(self, events: bool) -> str:
        """Return the match as JSON."""
        found = self._with_events if events else self._text
        if found is None:
            found = dump(as_json(self.number, self.match, events))
            if len(found) > _TEXT:
                return found
            if events:
                self._with_events = found
            else:
                self._text = found
        return found


class MatchHistory:
    """The newest matches of a query, in order. Belongs to one event loop.

    Each reader reads here at its own pace, so that a slow one does not delay others. ``end`` is None until
    there will be no more matches, and then says why.
    """

    def __init__(self, most: int, count: int = 0) -> None:
        """Keep ``most`` matches; ``count`` earlier ones are not kept."""
        self._most = most
        self._kept: deque[NumberedMatch] = deque()
        self.count = count
        self.end: dict[str, Any] | None = None
        #: Done when there is something new, and then replaced.
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def first(self) -> int:
        """Return the number of the first match that is kept; if none is kept, of the next match."""
        return self.count - len(self._kept) + 1

    def add(self, matches: Iterable[Match]) -> None:
        """Add matches."""
        for match in matches:
            self.count += 1
            self._kept.append(NumberedMatch(self.count, match))
            if len(self._kept) > self._most:
                self._kept.popleft()
        self._tell()

    def close(self, end: dict[str, Any]) -> None:
        """Note that there will be no more matches."""
        if self.end is None:
            self.end = end
            self._tell()

    def after(self, number: int, most: int) -> list[NumberedMatch]:
        """Return at most ``most`` matches after a number."""
        begin = max(0, number + 1 - self.first)
        return list(islice(self._kept, begin, begin + most))

    def _tell(self) -> None:
        news, self.news = self.news, asyncio.get_running_loop().create_future()
        news.set_result(None)


def as_json(number: int, match: Match, events: bool) -> dict[str, Any]:
    """Return a match as a line of NDJSON has it, with its number; ``events``: add each event's Turtle."""
    found = {"number": number, **values_of(match)}
    if events:
        prefixes = dict(match.query.prefixes)
        for name, of in match.events.items():
            for value, event in zip(found["events"][name], of, strict=True):
                value["turtle"] = _turtle(event, prefixes)
    return found


def _turtle(event: Event, prefixes: Mapping[str, str]) -> str:
    triples = triples_of(event.triples())
    text = ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=_used(triples, prefixes))
    return (text or b"").decode()


def _used(triples: Iterable[ox.Triple], prefixes: Mapping[str, str]) -> dict[str, str]:
    """Return the prefixes that triples use."""
    iris = [term.value for triple in triples for term in triple if isinstance(term, ox.NamedNode)]
    return {name: iri for name, iri in prefixes.items() if any(one.startswith(iri) for one in iris)}
