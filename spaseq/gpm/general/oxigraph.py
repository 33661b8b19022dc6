"""The general route: Oxigraph evaluates what joins of views do not cover.

Oxigraph's store rewrites literals (``"01"^^xsd:integer`` becomes ``1``), so it never sees them: every
term stands as the IRI ``u:<id>``, and expressions and aggregates call back into our own evaluator as
custom functions (``surrogates.py``). What is left to Oxigraph is the algebra: joins, paths, grouping.

A batch is loaded once, one named graph per event. A pattern is asked once for the whole batch where
``GRAPH ?event { P }`` means the same as P on every event, else once per event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

from spaseq.events import EventBatch
from spaseq.gpm.expressions.compiled import Solution
from spaseq.gpm.expressions.walk import exists_in, patterns, takes_no_step, volatile
from spaseq.gpm.general.beside import beside
from spaseq.gpm.general.surrogates import HIDDEN, Writer, identify, surrogate
from spaseq.gpm.spectra.joins import NO_CONTEXT, Knowledge
from spaseq.gpm.spectra.solutions import UNIT, Solutions, join, table
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
from spaseq.terms.dictionary import Dictionary


class Background(Knowledge, Protocol):
    """What this route asks of the background knowledge base."""

    def batch(self, dictionary: Dictionary) -> EventBatch:
        """The named graphs, each as an event with the graph's name."""

    def visible(self, dictionary: Dictionary) -> list[int]:
        """The ids of the names over which a variable in GRAPH ranges."""


def asks_once(pattern: Pattern) -> bool:
    """Whether ``GRAPH ?event { P }`` means P on every event.

    Not where the event would become a variable that counts (MINUS, subqueries, EXISTS), nor for
    groups without triples, or paths of no step, which no event limits.
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

    def __init__(self, pattern: Group, dictionary: Dictionary, kb: Background | None) -> None:
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
        """The ids of ``names`` in every solution of a group, on one graph if given.

        Oxigraph cannot be interrupted while it looks for the next solution; the first one may need all that
        a closure has. So another thread asks it, whose work is abandoned when its time is over.
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
                # The thread that made it must drop it, and a traceback would hand this frame to another.
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
