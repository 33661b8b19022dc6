"""Matches as JSON, written from the columns they were found in.

``_json`` writes the same from what users see of matches. Here nobody looks, so events and terms need not be
made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring as quoted
from typing import Final

from pyoxigraph import BlankNode

from spaseq.events import Clock, Ids
from spaseq.interop import to_rdflib
from spaseq.matching.model import Found, Solution
from spaseq.results._base import show_time
from spaseq.results._json import dump, json_term
from spaseq.terms import UNBOUND, Dictionary

#: So many terms are kept as they are written.
_KEPT: Final = 1 << 14


class QuickJson:
    """Writes the parts of one query's matches; ``gpms`` are those that a match lists, in order."""

    def __init__(self, gpms: Sequence[str], dictionary: Dictionary) -> None:
        self._gpms = gpms
        self._term = dictionary.term
        self._lock = dictionary.lock
        self._written: dict[int, str] = {}
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ids]:
        """No ids; asked when ids are about to be forgotten, which may then mean other terms."""
        self._written.clear()
        return ()

    def time(self, time: int, clock: Clock) -> str:
        """A time of the stream's clock."""
        shown = show_time(clock.show(time))
        return str(shown) if isinstance(shown, int) else f'"{shown}"'

    def events(self, found: Found, clock: Clock) -> str:
        """The chosen events, per GPM."""
        events: dict[str, list[str]] = {name: [] for name in self._gpms}
        for name, batch, index in found.places:
            stream, graph = self._name(batch.stream.item(index)), self._name(batch.graph.item(index))
            time = self.time(batch.time.item(index), clock)
            events[name].append(
                f'{{"stream":{stream},"graph":{graph},"time":{time},"n":{batch.n.item(index)}}}'
            )
        return "{" + ",".join(f"{quoted(name)}:[{','.join(chosen)}]" for name, chosen in events.items()) + "}"

    def row(self, row: Solution) -> str:
        """A solution, as SPARQL JSON has it."""
        return "{" + ",".join([f"{quoted(name)}:{self._value(term)}" for name, term in row.items()]) + "}"

    def _name(self, identifier: int) -> str:
        if identifier == UNBOUND:
            return "null"
        term = self._term(identifier)
        return quoted(f"_:{term.value}" if isinstance(term, BlankNode) else term.value)

    def _value(self, identifier: int) -> str:
        written = self._written.get(identifier)
        if written is None:
            with self._lock:  # so that no sweep, which clears it, comes between
                if len(self._written) >= _KEPT:
                    self._written.clear()
                written = self._written[identifier] = dump(json_term(to_rdflib(self._term(identifier))))
        return written
