"""The end of every format: complete events become columns, invalid ones are reported."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from spaseq.errors import SourceError, SpaseqWarning
from spaseq.events import BatchBuilder, Clock, EventBatch, Ids, OfTriples, batch_of
from spaseq.excerpts import bounded
from spaseq.limits import Limits
from spaseq.sources._options import LIVE_AHEAD, SourceOptions
from spaseq.sources.formats.contexts import Contexts
from spaseq.sources.time_option import TimePath, say_time_option
from spaseq.sources.times import MOMENTS, far_off, latest, read_time
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.identified import Row

Name = NamedNode | BlankNode


@dataclass(frozen=True, slots=True)
class BadEvent:
    """Something that could not become an event of its stream.

    ``position`` is ``line 12``, ``event 7``, ``message 3``, ``frame 2`` (all from 1) or ``byte 4096``.
    ``payload`` is what was read: N-Quads, or the raw text.
    """

    stream: str
    position: str
    reason: str
    payload: str


class EventSink:
    """The complete events of one stream, numbered, on one clock.

    The time of the first event decides the clock; an event on the other clock is bad.
    """

    def __init__(
        self,
        stream: NamedNode,
        dictionary: Dictionary,
        options: SourceOptions,
        on_bad: Callable[[BadEvent], None],
        limits: Limits,
        otherwise: tuple[Clock, int] | None = None,
    ) -> None:
        """Create a sink; ``otherwise`` is the time of an event without one."""
        self._otherwise = otherwise
        self.is_whole = options.order == "time"
        self.limits = limits
        #: What else may be wrong with a bad event, set by the format's reader.
        self.hint = ""
        self._stream = stream
        self.dictionary = dictionary
        self._on_bad = on_bad
        self._builder: BatchBuilder | None = None
        self._clock: Clock | None = None
        self._n = 0
        #: Whether the warning that ill-typed times count as ticks was issued.
        self.has_warned = False
        self._has_decimals = False
        #: Whether the arrival number is the time.
        self.is_arrival = options.time == "arrival"
        #: The predicate of times, which may be outside of an event's graph; None if there is none.
        self.predicate = options.time if isinstance(options.time, NamedNode) else None
        #: The path to times, inside an event's graph.
        self.path = options.time if isinstance(options.time, TimePath) else None
        #: How many consecutive triples make an event, if fixed; None after the warning about a stray subject.
        self.group: int | None = None
        #: Where an event ends, unless the format determines it.
        self.by = options.by
        self.items = options.items
        #: Local copies of the contexts that JSON-LD names by URL.
        self.contexts = Contexts(options.contexts, limits) if options.contexts else None
        self._max_ahead = options.max_ahead
        self._ahead = options.max_ahead or (LIVE_AHEAD if options.is_live else None)

    @property
    def stream(self) -> str:
        """Return the stream's IRI, for messages."""
        return self._stream.value

    def warn_of_decimals(self, predicate: Term | Triple | None) -> None:
        """Warn, once, of JSON numbers typed as xsd:decimal that have the form of doubles."""
        if not self._has_decimals:
            self._has_decimals = True
            warnings.warn(
                f"{self._stream.value}: {predicate} has JSON numbers with a fraction, and the context says "
                "xsd:decimal; JSON-LD writes them as doubles (1.5E0), which no decimal is, so no FILTER will "
                "compare them: let the context say xsd:double, or write the numbers as strings",
                SpaseqWarning,
                stacklevel=2,
            )

    def bad(self, position: str, reason: str, payload: str = "") -> None:
        """Report something that cannot be an event."""
        self._on_bad(BadEvent(self._stream.value, position, bounded(reason), payload))

    def add(
        self,
        rows: Sequence[Row],
        graph: Name | None,
        times: Sequence[Term],
        position: str,
        problem: str = "",
        at: tuple[Clock, int] | None = None,
    ) -> None:
        """Add a complete event: its triples, its name, its times from outside, and its position.

        Without times from outside, the times inside count. ``at`` is a time that was read already. A
        ``problem`` makes it a bad event.
        """
        try:
            if problem:
                raise ValueError(problem)
            clock, value = self._time(rows, graph, times) if at is None else at
            if clock is not self._on(clock):
                raise ValueError(f"its time is in {clock}, but the stream's first one was in {self._clock}")
            if self._ahead is not None and clock is Clock.INSTANTS and value > latest(self._ahead):
                raise ValueError(far_off(value, self._ahead))
            check_terms(rows, self.limits)
            assert self._builder is not None
            self._builder.add(value, self._n, rows, graph)
        except ValueError as error:
            self.bad(position, f"{error}{self.hint}", _nquads(rows, graph, times, self.predicate))
        else:
            self._n += 1

    def extend(
        self,
        graph: Ids,
        clock: Clock,
        time: Ids | None,
        offset: Ids,
        triples: OfTriples,
    ) -> bool:
        """Add complete events as columns (see ``EventBatch``); return False, and add none, if the clock
        differs.

        Without ``time``, the arrival number is the time.
        """
        if clock is not self._on(clock):
            return False
        n = np.arange(self._n, self._n + len(graph), dtype=np.int64)
        assert self._builder is not None
        if time is not None and self._ahead is not None and clock is Clock.INSTANTS:
            graph, time, offset, triples = self._plausible(graph, time, offset, triples, self._ahead)
            n = n[: len(graph)]
        self._builder.extend(graph, n if time is None else time, n, offset, triples)
        self._n += len(graph)
        return True

    def _plausible(
        self, graph: Ids, time: Ids, offset: Ids, triples: OfTriples, ahead: timedelta
    ) -> tuple[Ids, Ids, Ids, OfTriples]:
        """Return the events at most ``ahead`` of the wall clock; report the others."""
        far = time > latest(ahead)
        if not far.any():
            return graph, time, offset, triples
        stream = np.full(len(graph), self.dictionary.pin(self._stream), dtype=np.int64)
        n = np.arange(self._n, self._n + len(graph), dtype=np.int64)
        batch = batch_of(self.dictionary, Clock.INSTANTS, (stream, graph, time, n, offset), triples)
        for index in np.flatnonzero(far).tolist():
            letter = letter_of(batch, index, far_off(int(time[index]), ahead))
            self.bad(letter.position, letter.reason, letter.payload)
        kept = batch.take(np.flatnonzero(~far))
        return kept.graph, kept.time, kept.offset, (kept.s, kept.p, kept.o)

    def take(self) -> EventBatch | None:
        """Return the events added since the last call; None if there are none."""
        batch = self._builder.build() if self._builder else None
        if batch and self.group and self.predicate is not None:
            self._warn_of_strays(batch, self.dictionary.pin(self.predicate))
        return batch

    def _warn_of_strays(self, batch: EventBatch, predicate: int) -> None:
        """Warn, once, of an event with a subject that is not connected with the subject of its time."""
        stray = _stray(batch, predicate)
        if stray is None:
            return
        event, subject, of_time = stray
        term, group, self.group = self.dictionary.term, self.group, None
        warnings.warn(
            f"{self.stream}, event {batch.n[event] + 1}: no triple connects {term(subject)} with "
            f"{term(of_time)}, whose time the event has. With triples={group} every {group} triples are an "
            f"event: does each record have {group} triples? If not, events mix records, and matches are "
            "false or missing: with by=subject instead, the triples of one subject are an event",
            SpaseqWarning,
            stacklevel=2,
        )

    def _on(self, clock: Clock) -> Clock:
        """Return the clock of the stream, which the first event decides."""
        if self._builder is None or self._clock is None:
            if clock is Clock.TICKS and self._max_ahead is not None:
                raise SourceError(
                    f"{self._stream.value}: max_ahead is for instants, but its times are ticks, which no "
                    "wall clock counts: leave max_ahead out"
                )
            self._builder = BatchBuilder(self.dictionary, self._stream, clock)
            self._clock = clock
        return self._clock

    def times_inside(self, rows: Iterable[Row], graph: Name | None) -> list[Term]:
        """Return the distinct times in an event's own triples.

        Times of the graph's name are preferred; if it has none, the times of all subjects are returned.
        """
        if self.path is not None:
            return self.path.ends(rows)
        found = [(s, o) for s, p, o in rows if p == self.predicate and not isinstance(o, Triple)]
        return list(dict.fromkeys([o for s, o in found if s == graph] or [o for _, o in found]))

    def _time(self, rows: Sequence[Row], graph: Name | None, times: Sequence[Term]) -> tuple[Clock, int]:
        if self.is_arrival:
            return Clock.TICKS, self._n
        found = [read_time(term) for term in times or self.times_inside(rows, graph)]
        if not found and self._otherwise is not None:
            return self._otherwise
        if not found:
            raise ValueError(f"no time: nothing says {self.predicate or self.path} ({instead(rows, graph)})")
        first = found[0]
        if any(other[:2] != first[:2] for other in found):
            values = sorted({str(time.clock.show(time.value)) for time in found})
            raise ValueError("it has two different times: " + " and ".join(values))
        if first.doubtful and not self.has_warned:
            self.has_warned = True
            warnings.warn(
                f"{self._stream.value}: an ill-typed time that is an integer counts as ticks, "
                f"from the event with time {first.value} on",
                SpaseqWarning,
                stacklevel=2,
            )
        return first.clock, first.value


def _stray(batch: EventBatch, predicate: int) -> tuple[int, int, int] | None:
    """Return the first event with a subject that no chain of triples connects with its time's subject.

    The result is its index in the batch and the ids of both subjects; None if there is no such event.
    """
    event = np.repeat(np.arange(len(batch)), np.diff(batch.offset))
    of_time = np.zeros(len(batch), dtype=np.int64)
    is_time = batch.p == predicate
    of_time[event[is_time]] = batch.s[is_time]
    with_others = np.unique(event[batch.s != of_time[event]])
    if not len(with_others):
        return None
    rows = np.flatnonzero(np.isin(event, with_others))
    # Nodes are numbered within each event. A literal connects nothing.
    objects, which = np.unique(batch.o[rows], return_inverse=True)
    is_literal = np.array([isinstance(term, Literal) for term in batch.dictionary.glance(objects)])[which]
    ends = np.concatenate((batch.s[rows], np.where(is_literal, batch.s[rows], batch.o[rows])))
    _, nodes = np.unique(np.tile(event[rows], 2) * batch.dictionary.limit + ends, return_inverse=True)
    s, o = np.split(nodes, 2)
    reached, count = np.zeros(nodes.max() + 1, dtype=np.bool_), 0
    reached[s[is_time[rows]]] = True
    while (size := int(np.count_nonzero(reached))) > count:
        count = size
        touched = reached[s] | reached[o]
        reached[s[touched]] = reached[o[touched]] = True
    strays = np.flatnonzero(~reached[s])
    if not len(strays):
        return None
    row = int(rows[strays[0]])
    return int(event[row]), int(batch.s[row]), int(of_time[event[row]])


def letter_of(batch: EventBatch, index: int, reason: str) -> BadEvent:
    """Return the dead letter of an event that was read: its stream, number and N-Quads."""
    term = batch.dictionary.term
    graph = int(batch.graph[index])
    name = f" {term(graph)}" if graph != UNBOUND else ""
    payload = "\n".join(f"{term(s)} {term(p)} {term(o)}{name} ." for s, p, o in batch.triples(index))
    stream = term(int(batch.stream[index])).value
    return BadEvent(stream, f"event {batch.n[index] + 1}", reason, payload)


def instead(rows: Iterable[Row], graph: Name | None = None) -> str:
    """Return advice about a missing time, for a message: the ``time=`` option that would find one, if any."""
    rows = [*rows]
    holders: dict[NamedNode, set[object]] = {}
    for s, p, o in rows:
        if isinstance(p, NamedNode) and isinstance(o, Literal) and o.datatype.value in MOMENTS:
            holders.setdefault(p, set()).add(s)
    problems = []
    for predicate, subjects in holders.items():
        before = dict.fromkeys(p for _, p, o in rows if o in subjects and isinstance(p, NamedNode))
        for steps in ((predicate,), *((step, predicate) for step in before)):
            problem = _unusable(TimePath(steps).ends(rows))
            if not problem:
                return f"its {TimePath(steps)} is one: {say_time_option(steps)}"
            if len(steps) == 1:
                problems.append(f"its {predicate} {problem}")
    said = "; ".join(problems) or "option time= names another predicate, or a column of rows"
    other = "" if graph is None or problems else "; if another graph has it, by=message makes all one event"
    return f"{said}; time=arrival takes none{other}"


def _unusable(terms: Iterable[Term]) -> str:
    """Return why the values of a predicate in an event cannot be its time; empty if they can."""
    found = set()
    for term in terms:
        try:
            found.add(read_time(term)[:2])
        except ValueError:
            return f"also has a value that is not a time, {term}"
    return "has several values" if len(found) > 1 else ""


def check_terms(rows: Iterable[Triple | Row], limits: Limits) -> None:
    """Raise ValueError for a triple with a term longer than ``limits.term_bytes``."""
    if limits.term_bytes is None:
        return
    for row in rows:
        for term in row:
            if not isinstance(term, Triple):
                check_term(term, limits)


def check_term(term: Term, limits: Limits) -> None:
    """Raise ValueError for a term longer than ``limits.term_bytes``."""
    most, text = limits.term_bytes, term.value
    if most is not None and 4 * len(text) > most and len(text.encode()) > most:
        raise ValueError(limits.beyond("term_bytes", f"a term that begins with {text[:40]!r}"))


def add_dataset(
    sink: EventSink, quads: Iterable[Quad], position: str, problem: str = "", otherwise: Sequence[Term] = ()
) -> None:
    """Add the events of an atomic dataset: a message, a document of one line, a frame.

    Its named graphs are the events, with their times in the default graph or inside. A dataset without named
    graphs is one event itself. Other triples of the default graph are metadata. With ``by=message`` all its
    triples are one event. ``otherwise``: the time of a dataset without named graphs that gives none.
    """
    default: list[Row] = []
    named: dict[Name, list[Row]] = {}
    times: dict[object, list[Term]] = {}
    for s, p, o, g in quads:
        if isinstance(g, DefaultGraph):
            default.append((s, p, o))
            if p == sink.predicate and not isinstance(o, Triple):
                times.setdefault(s, []).append(o)
        else:
            named.setdefault(g, []).append((s, p, o))
    if sink.by == "message" and (default or named or problem):
        rows = [*default, *(row for graph in named.values() for row in graph)]
        sink.add(list(dict.fromkeys(rows)), None, (), position, problem)
        return
    if not named and (default or problem):
        outside = otherwise if otherwise and not sink.times_inside(default, None) else ()
        sink.add(default, None, outside, position, problem)
    for graph, rows in named.items():
        sink.add(rows, graph, times.get(graph, ()), position, problem)


def _nquads(
    rows: Iterable[Row], graph: Name | None, times: Iterable[Term], predicate: NamedNode | None
) -> str:
    name = "" if graph is None else f"{graph} "
    lines = [f"{s} {p} {o} {name}." for s, p, o in rows]
    if predicate is not None:
        lines += [f"{graph} {predicate} {time} ." for time in times]
    return "\n".join(lines)
