"""Pushed events: each arrives at once, or waits while the difference cannot be observed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Final, NamedTuple

import pyoxigraph as ox
from pyoxigraph import NamedNode

from spaseq.alone import Single
from spaseq.engine.arguments import (
    EventGraph,
    FarTimeError,
    GivenEvent,
    GraphName,
    StreamName,
    event_given,
    graph_name,
    parsed,
    stream_iri,
    time_given,
    triples_given,
)
from spaseq.engine.core import Core
from spaseq.engine.rejects import DeadLetterKind
from spaseq.errors import EngineError
from spaseq.events import Clock, Stamp
from spaseq.interrupts import Pace
from spaseq.matching.filters.numbers import Numbers
from spaseq.sources import BadEvent
from spaseq.sources.assembly.sink import check_term, check_terms
from spaseq.sources.times import far_off, latest
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.identified import different, identified_one
from spaseq.terms.texts import term_of
from spaseq.terms.values import XSD

#: Exceptions for malformed events.
_MALFORMED: Final = (ValueError, SyntaxError, TypeError)
#: How many events of one ``push_many`` arrive together, at first and at most.
_FIRST: Final = 1 << 12
_MOST: Final = 1 << 17
#: Types of graphs that have no name.
_NAMELESS: Final = (str, list, tuple)


class _Bad(NamedTuple):
    """A pushed malformed event: its stream, the reason, and the event."""

    stream: int
    reason: str
    payload: str


class Pushing:
    """Takes pushed events, single or several."""

    def __init__(self, core: Core, max_ahead: timedelta | None) -> None:
        self._core, self._max_ahead = core, max_ahead
        self._turn, self._inbox, self._dispatcher = core.turn, core.inbox, core.dispatcher
        self._dictionary, self._rejects, self._limits = core.dictionary, core.rejects, core.limits
        self._arrivals = core.dispatcher.arrivals
        self._numbers, self._plain = Numbers.of(self._dictionary), Plain(self._dictionary)
        # The pinned ids of streams, by the names that callers used.
        self._streams: dict[StreamName, int] = {}
        # For ``push_many``.
        self._pace = Pace(_FIRST, most=_MOST)

    def push(
        self,
        to: StreamName,
        graph: EventGraph,
        clock: Clock,
        value: int,
        name: GraphName = None,
        wrong: str | None = None,
    ) -> None:
        """See ``Engine.push``. ``wrong``: why the event is malformed, if its time is."""
        core, turn, stream = self._core, self._turn, self._streams.get(to)
        if stream is None:
            stream_iri(to)  # raises before any event waits
        if turn.is_odd:
            if turn.is_aside:
                # A thread without the turn may add dead letters, and must not wait for it.
                core.check_unclosed()
                core.queue(lambda: self._arrive(self._event(self._id(to), graph, clock, value, name, wrong)))
                return
            turn.check()
        with turn.deferral, turn.lock:
            if turn.is_odd or core.is_closed or core.is_closing:
                core.check_open()
            if core.built:
                core.arrive_built()
            if stream is None:
                stream = self._id(to)
            event = self._event(stream, graph, clock, value, name, wrong)
            if event is None:
                if self._inbox.is_full:
                    core.catch_up(is_asked=False)
            elif isinstance(event, _Bad):
                core.perform(partial(self._reject, event))
            else:
                core.perform(partial(self._dispatcher.arrive, stream, event))
            if turn.raised.first is not None or core.state is not None:
                core.end()

    def push_many(self, iri: ox.NamedNode, events: Iterable[GivenEvent]) -> None:
        """See ``Engine.push_many``."""
        core = self._core
        self._turn.check()
        if isinstance(events, str | bytes | Mapping):
            raise EngineError("push_many takes several events, each a graph, a time and perhaps a name")
        with self._turn.deferral, self._turn.lock:
            core.check_open()
            core.catch_up()
            stream = self._dictionary.pin(iri)
            before, core.is_taking = core.is_taking, True
            may_end, built, begun = not (before or core.is_working), 0, perf_counter()
            try:
                try:
                    for event in events:
                        if core.is_closed:  # by ``events`` itself
                            core.check_open()
                        if not self._build(stream, iri, event):
                            break
                        built += 1
                        if built == self._pace.size:
                            core.arrive_built()
                            self._pace.took(perf_counter() - begun)
                            built, begun = 0, perf_counter()
                        if may_end and self._turn.deferral.is_due:
                            break
                    if core.is_closed and core.built:
                        core.check_open()
                finally:
                    core.arrive_built()
            except Exception as error:
                if before or core.is_working:
                    raise
                core.turn.raised.add(error)  # after the exceptions of callbacks for the events before
            finally:
                core.is_taking = before
            core.end()

    def _build(self, stream: int, iri: ox.NamedNode, event: GivenEvent) -> bool:
        """Add one event of ``push_many``; it arrives with the others, or before any other task.

        False if it is malformed, and ends the call.
        """
        core = self._core
        try:
            graph, time, name = event_given(event)
        except TypeError as error:
            return self._refuse(_Bad(stream, str(error), str(event)))
        try:
            clock, value = time_given(time)
        except FarTimeError as error:
            return self._refuse(_Bad(stream, str(error), str(graph)))
        builder = core.builder(stream, iri, clock)
        try:
            if self._max_ahead is not None:
                self._check_ahead(clock, value, self._max_ahead)
            triples = triples_given(graph, self._limits)
            check_terms(triples, self._limits)
            builder.add(value, 0, triples, graph_name(name, graph))
        except _MALFORMED as error:
            return self._refuse(_Bad(stream, str(error), str(graph)))
        return True

    def _id(self, to: StreamName) -> int:
        """Return the id of a stream."""
        stream = self._streams.get(to)
        if stream is None:
            stream = self._streams[to] = self._dictionary.pin(stream_iri(to))
        return stream

    def _event(
        self,
        stream: int,
        graph: EventGraph,
        clock: Clock,
        time: int,
        name: GraphName,
        wrong: str | None = None,
    ) -> Single | _Bad | None:
        """Return the pushed event if it must arrive now; None if it waits.

        If the engine is idle, the event is only its graph's name and its triples' terms.
        """
        if wrong is not None:
            return _Bad(stream, wrong, str(graph))
        terms, limits = self._dictionary, self._limits
        named, found = UNBOUND, None
        try:
            if self._max_ahead is not None:
                self._check_ahead(clock, time, self._max_ahead)
            if type(graph) is str and name is None:
                with terms.lock:
                    waits = self._may_wait(stream, clock, time)
                    found = self._plain.read(graph, self._enter if waits else self._learn)
            if found is None:
                triples: Sequence[ox.Triple | ox.Quad]
                triples = parsed(graph, limits) if type(graph) is str else triples_given(graph, limits)
                # Most graphs are text or lists, and have no name.
                given = None if name is None and type(graph) in _NAMELESS else graph_name(name, graph)
                with terms.lock:
                    waits = self._may_wait(stream, clock, time)
                    enter = self._enter if waits else self._learn
                    named, found = identified_one(terms, triples, given, enter)
        except _MALFORMED as error:
            return _Bad(stream, str(error), str(graph))
        if not waits:
            return Single(terms, clock, Stamp(time, stream, self._arrivals[stream]), named, found)
        self._inbox.add(stream, time, named, found)
        self._turn.is_behind = self._turn.used = True
        return None

    def _check_ahead(self, clock: Clock, time: int, most: timedelta) -> None:
        """Raise ValueError for an instant that is too far ahead of the wall clock."""
        if clock is Clock.INSTANTS and time > latest(most):
            raise ValueError(far_off(time, most))

    def _enter(self, text: str) -> int:
        """Return the id of a new term, by its text; ValueError if it exceeds a limit."""
        most = self._limits.term_bytes
        if most is not None and 4 * len(text) > most:
            check_term(term_of(text), self._limits)
        return self._dictionary.enter(text)

    def _learn(self, text: str) -> int:
        """Return the id of a new term in an event that is processed now: its number is decoded at once."""
        identifier = self._enter(text)
        if text[0] == '"':
            self._numbers.note(identifier, text)
        return identifier

    def _arrive(self, event: object) -> None:
        """Arrive as a callback's event that had no turn: by now a task is running."""
        if isinstance(event, _Bad):
            self._reject(event)
        elif isinstance(event, Single):
            self._dispatcher.arrive(event.at.stream, event)

    def _refuse(self, bad: _Bad) -> bool:
        """Reject one of several events after the events before it have arrived; False if that raises."""
        core = self._core
        core.perform(partial(self._reject, bad))
        return core.is_working or not self._rejects.is_strict

    def _reject(self, bad: _Bad) -> None:
        iri = self._dictionary.term(bad.stream).value
        before = self._arrivals[bad.stream] + self._inbox.count(bad.stream) + self._rejects.pushed(iri)
        letter = BadEvent(iri, f"event {before + 1}", bad.reason, bad.payload)
        self._rejects.malformed(letter, DeadLetterKind.PUSHED)

    def _may_wait(self, stream: int, clock: Clock, time: int) -> bool:
        """Return whether it cannot be observed if an event is processed now or when a result is read."""
        core, dispatcher = self._core, self._dispatcher
        if core.is_working or core.tasks or self._inbox.batches or self._turn.prompt:
            return False
        inbox = self._inbox
        if inbox.events:
            if not inbox.fits(stream, clock, time):
                return False
            if stream in inbox.streams:
                return True
        else:
            inbox.streams.clear()
        if not dispatcher.is_smooth(stream, clock, time):
            return False
        inbox.clock = clock
        inbox.streams.add(stream)
        return True


_SPACE: Final = r"[ \t\r\n]*"
#: An IRI begins with a letter, unlike the text of any other term.
_IRI: Final = r'<([A-Za-z][^<>"{}|^`\\\x00-\x20]*)>'
_STRING: Final = r'"([ !#-\[\]-~]*)"'
#: A triple of Turtle that needs no parser. Here a number ends with a space: a dot could end the triple.
_TRIPLE: Final = re.compile(
    rf"{_SPACE}{_IRI}{_SPACE}{_IRI}{_SPACE}"
    rf"(?:{_IRI}|{_STRING}(?:\^\^{_IRI})?|([+-]?[0-9]+)(\.[0-9]+)?(?=[ \t\r\n])){_SPACE}\.{_SPACE}"
)
#: The datatype that N-Triples omits.
_PLAIN: Final = XSD + "string"

#: Datatypes that a literal cannot name: they need a language.
_OF_LANGUAGES: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

#: Datatypes are cached up to this many.
_DATATYPES: Final = 1_024


class Plain:
    """Parses simple texts without a parser; under the dictionary's lock."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._datatypes: set[str] = set()

    def read(self, text: str, enter: Callable[[str], int]) -> tuple[int, ...] | None:
        """Return the terms of the distinct triples, in a row; None for a text that needs a parser.

        ``enter`` gives the ids of terms that Python has not seen, by their texts, and may raise.
        """
        known, match, at, end = self._dictionary.known, _TRIPLE.match, 0, len(text)
        found: list[int] = []
        while at < end:
            part = match(text, at)
            if part is None:
                return None
            at = part.end()
            s, p, iri, string, datatype, whole, fraction = part.groups()
            try:
                subject, predicate = known(s) or _iri(s, enter), known(p) or _iri(p, enter)
                if iri is not None:
                    object_ = known(iri) or _iri(iri, enter)
                else:
                    if whole is None:
                        literal = f'"{string}"'
                        if datatype is not None:
                            literal += self._datatype(datatype)
                    elif fraction is None:
                        literal = f'"{whole}"^^<{XSD}integer>'
                    else:
                        literal = f'"{whole}{fraction}"^^<{XSD}decimal>'
                    object_ = known(literal) or enter(literal)
            except _NoIriError:
                return None
            found += (subject, predicate, object_)
        return different(tuple(found)) if len(found) > 3 else tuple(found)

    def _datatype(self, text: str) -> str:
        """Return the datatype or language part after a literal's characters."""
        if text not in self._datatypes:
            if text.startswith(_OF_LANGUAGES):
                raise _NoIriError
            _check(text)
            if len(self._datatypes) >= _DATATYPES:
                self._datatypes.clear()
            self._datatypes.add(text)
        return "" if text == _PLAIN else f"^^<{text}>"


class _NoIriError(Exception):
    """The text at an IRI's place is not an IRI, or not accepted here; the parser says why."""


def _iri(text: str, enter: Callable[[str], int]) -> int:
    _check(text)
    return enter(text)


def _check(text: str) -> None:
    try:
        NamedNode(text)
    except ValueError:
        raise _NoIriError from None
