"""The general route: Oxigraph evaluates what joins of views do not cover; and which route a pattern takes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from math import isinf
from queue import SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

from spaseq.events import EventBatch
from spaseq.language.scope import variables
from spaseq.language.syntax import (
    Bind,
    Filter,
    Graph,
    Group,
    Optional,
    Pattern,
    TriplePattern,
    Triples,
    Union,
    Var,
)
from spaseq.patterns.expressions.compiled import Solution
from spaseq.patterns.expressions.walk import exists_in, patterns, takes_no_step, volatile
from spaseq.patterns.spectra.joins import NO_CONTEXT, Knowledge, Route, Spectra, covers
from spaseq.patterns.spectra.solutions import UNIT, Solutions, join, table
from spaseq.patterns.surrogates import HIDDEN, Writer, identify, surrogate
from spaseq.terms.dictionary import Dictionary

# Work that cannot be cancelled runs in another thread, which is abandoned when its time is over.

T = TypeVar("T")


class _Job(Generic[T]):
    """A call to be made in another thread, and its result."""

    def __init__(self, do: Callable[[], T]) -> None:
        self._do = do
        self._done = threading.Lock()
        self._done.acquire()
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Make the call."""
        try:
            self.result = self._do()
        except BaseException as error:  # raised again in the caller's thread
            self.error = error
        finally:
            self._done.release()

    def wait(self, seconds: float) -> bool:
        """Return whether the job is done within so many seconds."""
        return self._done.acquire(timeout=-1 if isinf(seconds) else min(seconds, threading.TIMEOUT_MAX))


#: Queues of the idle threads, one each.
_idle: Final[list[SimpleQueue[_Job[Any]]]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a forked child has no such threads


def beside(do: Callable[[], T], seconds: float, abandon: Callable[[], object]) -> T | None:
    """Return or raise the result of ``do``, run in another thread; None if it takes more than ``seconds``.

    ``abandon`` is called if the time is over or the caller is interrupted. Then the result is discarded, and
    the thread ends after its work.
    """
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue()
        threading.Thread(target=_work, args=(jobs,), name="spaseq beside", daemon=True).start()
    job = _Job(do)
    jobs.put(job)
    is_done = False
    try:
        is_done = job.wait(seconds)
    finally:
        if is_done:
            _idle.append(jobs)
        else:
            abandon()
            jobs.put(_Job(_end))
    if not is_done:
        return None
    if job.error is not None:
        raise job.error
    return job.result


def _work(jobs: SimpleQueue[_Job[Any]]) -> None:
    while True:
        job = jobs.get()
        job.run()
        if isinstance(job.error, SystemExit):
            return
        del job  # its result may be large


def _end() -> None:
    raise SystemExit


# The general route: Oxigraph evaluates what joins of views do not cover.
#
# Oxigraph's store rewrites literals (``"01"^^xsd:integer`` becomes ``1``), so it never sees them: every
# term stands as the IRI ``u:<id>``, and expressions and aggregates call back into our own evaluator as
# custom functions (``surrogates.py``). What is left to Oxigraph is the algebra: joins, paths, grouping.
#
# A batch is loaded once, one named graph per event. A pattern is asked once for the whole batch where
# ``GRAPH ?event { P }`` means the same as P on every event, else once per event.


class BackgroundGraphs(Knowledge, Protocol):
    """What this route needs of the background knowledge base."""

    def batch(self, dictionary: Dictionary) -> EventBatch:
        """Return the named graphs, each as an event with the graph's name."""

    def visible(self, dictionary: Dictionary) -> list[int]:
        """Return the ids of the names over which a variable in GRAPH ranges."""


def asks_once(pattern: Pattern) -> bool:
    """Return whether ``GRAPH ?event { P }`` means P on every event.

    False if the event would become a variable of the solution (MINUS, subqueries, EXISTS). Also false for
    groups without triples, and for paths of no step, since no event limits them.
    """
    match pattern:
        case Group(elements):
            return any(isinstance(e, Triples) for e in elements) and all(map(asks_once, elements))
        case Union(branches):
            return all(map(asks_once, branches))
        case Optional(inner):
            return asks_once(inner)
        case Triples(triples):
            return not any(_may_take_no_step(triple) for triple in triples)
        case Filter(expression) | Bind(expression):
            return not exists_in(expression) and not volatile(expression)
        case _:
            return False


def _may_take_no_step(triple: TriplePattern) -> bool:
    return not isinstance(triple.predicate, Var) and takes_no_step(triple.predicate)


class General:
    """A pattern, ready to be evaluated on batches; a ``Route``."""

    def __init__(self, pattern: Group, dictionary: Dictionary, kb: BackgroundGraphs | None) -> None:
        self.pattern = pattern
        self.dictionary = dictionary
        self.kb = kb
        self._once = asks_once(pattern)
        uses_kb = any(isinstance(inner, Graph) for inner in patterns(pattern))
        self._kb = kb if uses_kb else None

    def evaluate(
        self, batch: EventBatch, context: Solution = NO_CONTEXT, initial: Solutions = UNIT
    ) -> Solutions:
        """See ``Route``."""
        store = Store()
        store.extend(_quads(batch, [_event_graph(event) for event in range(len(batch))]))
        if self._kb is not None:
            known = self._kb.batch(self.dictionary)
            known_names = [surrogate(name) for name in known.graph.tolist()]
            for name in known_names:
                store.add_graph(name)  # it may be empty
            store.extend(_quads(known, known_names))
        names = sorted(variables(self.pattern) - context.keys() - initial.columns.keys())
        if self._once and initial is UNIT:
            marker = HIDDEN + "event"
            writer = Writer(self.dictionary, context, [])
            text = f"{{ GRAPH ?{marker} {writer.group(self.pattern)} }}"
            rows = self._ask(store, [marker, *names], text, writer, None)
        else:
            rows = self._one_by_one(store, len(batch), names, context, initial)
        rows.sort()  # Oxigraph's own order depends on hashes
        columns = table(["", *names], rows).columns
        found = Solutions(len(rows), columns.pop(""), columns)
        return join(initial, found, self.dictionary.spending)

    def _one_by_one(
        self, store: Store, events: int, names: list[str], context: Solution, initial: Solutions
    ) -> list[tuple[int, ...]]:
        visible = [] if self._kb is None else self._kb.visible(self.dictionary)
        writer = Writer(self.dictionary, context, visible)
        text = writer.group(self.pattern)
        given = initial.by_event() if initial.event is not None else {}
        rows: list[tuple[int, ...]] = []
        for event in range(events):
            if event in given:
                writer = Writer(self.dictionary, {**context, **given[event][0]}, visible)
                text = writer.group(self.pattern)
            found = self._ask(store, names, text, writer, _event_graph(event))
            rows += [(event, *ids) for ids in found]
            self.dictionary.spending.size(len(rows), len(names) + 1)
        return rows

    def _ask(
        self, store: Store, names: list[str], text: str, writer: Writer, graph: NamedNode | None
    ) -> list[tuple[int, ...]]:
        """Return the ids of ``names`` in every solution of a group, on one graph if given.

        Oxigraph cannot be interrupted while it looks for the next solution, and the first may need a whole
        closure. So the query runs in another thread, which is abandoned when its time is over.
        """
        spending = self.dictionary.spending
        shown = " ".join(f"?{name}" for name in names) or "(0 AS ?nothing)"

        def solutions() -> list[tuple[int, ...]]:
            answers = store.query(
                f"SELECT {shown} WHERE {text}",
                default_graph=None if graph is None else [graph],
                custom_functions=writer.functions,
            )
            assert isinstance(answers, QuerySolutions)
            found: list[tuple[int, ...]] = []
            try:
                for answer in answers:
                    found.append(tuple(identify(answer[name]) for name in names))
                    if len(found) > spending.most or writer.raised is not None:
                        break
            finally:
                # The thread that made it must drop it. A traceback would pass this frame to another thread.
                del answers
            return found

        rows = beside(solutions, spending.left(), writer.stop)
        if rows is None:
            raise spending.late()
        writer.check()
        spending.rows(len(rows), len(names))
        return rows


def _event_graph(event: int) -> NamedNode:
    return NamedNode(f"e:{event}")


def _quads(batch: EventBatch, graphs: Sequence[NamedNode]) -> Iterator[Quad]:
    nodes = {i: surrogate(i) for i in np.unique(np.concatenate([batch.s, batch.p, batch.o])).tolist()}
    for event, graph in enumerate(graphs):
        for s, p, o in batch.triples(event):
            yield Quad(nodes[s], nodes[p], nodes[o], graph)


# Which route evaluates a pattern.


def prepare(pattern: Group, dictionary: Dictionary, kb: BackgroundGraphs | None) -> Route:
    """Return the pattern prepared for the SPECTRA route if that covers it, or else for the general route."""
    if covers(pattern) is None:
        return Spectra(pattern, dictionary, kb)
    return General(pattern, dictionary, kb)
