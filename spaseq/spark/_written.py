"""Matches as lines, written from the columns they were found in.

``line_of`` makes the same lines from what users see of matches. Here nobody looks, so events and terms
need not be made.
"""

from __future__ import annotations

from collections.abc import Iterable
from json.encoder import encode_basestring as quoted

from pyoxigraph import BlankNode

from spaseq.events import Clock, Ids
from spaseq.interop import to_rdflib
from spaseq.language.syntax import Construct, Select
from spaseq.matching.host import Key
from spaseq.matching.model import Found
from spaseq.results._base import show_time
from spaseq.results._json import _dump, json_term
from spaseq.results.match import Match
from spaseq.results.reading import Reader
from spaseq.spark._lines import line_of
from spaseq.terms import UNBOUND, Dictionary

#: So many terms are kept as they are written.
_KEPT = 1 << 14


class LineWriter:
    """Writes the matches of one query."""

    def __init__(self, reader: Reader, dictionary: Dictionary) -> None:
        query = reader.query
        self._reader = reader
        self._term = dictionary.term
        self._written: dict[int, str] = {}
        # What is computed, or cut off by LIMIT, stands in the match only.
        self._plain = not isinstance(query.form, Construct) and query.modifiers.limit is None
        self._selects = isinstance(query.form, Select)
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ids]:
        """No ids; asked when ids are about to be forgotten, which may then mean other terms."""
        self._written.clear()
        return ()

    def line(self, match: Match, key: Key, found: Found, clock: Clock) -> str:
        """The line of a match, which was found as ``found`` for this key."""
        if not self._plain or self._reader.projector.size(found) is None:
            return line_of(match)
        start, end = (_time(time, clock) for time in found.span)
        partition = self._row(zip(self._reader.keys, key, strict=True))
        events = self._events(found, clock)
        line = f'{{"start":{start},"end":{end},"partition":{partition},"events":{{{events}}}'
        if self._selects:
            rows = ",".join(self._row(row.items()) for row in self._reader.projector.rows(found))
            line += f',"bindings":[{rows}]'
        return line + "}"

    def _events(self, found: Found, clock: Clock) -> str:
        events: dict[str, list[str]] = {name: [] for name in self._reader.gpms}
        for name, batch, index in found.places:
            graph = batch.graph.item(index)
            stream = quoted(str(to_rdflib(self._term(batch.stream.item(index)))))
            time = _time(batch.time.item(index), clock)
            events[name].append(
                f'{{"stream":{stream},"graph":{self._graph(graph)},"time":{time},"n":{batch.n.item(index)}}}'
            )
        return ",".join(f"{quoted(name)}:[{','.join(chosen)}]" for name, chosen in events.items())

    def _graph(self, identifier: int) -> str:
        if identifier == UNBOUND:
            return "null"
        term = self._term(identifier)
        return quoted(f"_:{term.value}" if isinstance(term, BlankNode) else term.value)

    def _row(self, row: Iterable[tuple[str, int]]) -> str:
        return "{" + ",".join(f"{quoted(name)}:{self._value(term)}" for name, term in row) + "}"

    def _value(self, identifier: int) -> str:
        written = self._written.get(identifier)
        if written is None:
            if len(self._written) >= _KEPT:
                self._written.clear()
            written = self._written[identifier] = _dump(json_term(to_rdflib(self._term(identifier))))
        return written


def _time(time: int, clock: Clock) -> str:
    shown = show_time(clock.show(time))
    return str(shown) if isinstance(shown, int) else f'"{shown}"'
