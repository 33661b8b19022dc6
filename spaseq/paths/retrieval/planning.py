"""Planning on a graph, as in RoG: a language model plans relation paths, and the graph finds what they reach.

The model is asked twice for each question. First it gives the names of what the question is about, and these
names are looked up in the graph. Then it is shown the relations that leave the nodes found, and gives the
relation paths to walk. The retrievers (``langchain``, ``llamaindex``) pass the model as an ``Ask``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spaseq.errors import QueryError, RetrievalError
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.linking.candidates import Candidate, label_predicates, taken_for
from spaseq.paths.graph.linking.candidates import topics as find_topics
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.retrieval.answers import read_paths, read_topics
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.chunks import Entities
from spaseq.paths.retrieval.ranking import Chunks, Embed
from spaseq.paths.retrieval.retrieve import mode_given, retrieve
from spaseq.paths.retrieval.retrieved import Retrieval
from spaseq.paths.search._kernel import Ids
from spaseq.terms.dictionary import Term

#: ``ask(prompt)``: the text that a model answers with.
Ask = Callable[[str], str]

_TOLD: Final = logging.getLogger("spaseq")

_TOPICS: Final = """\
Which persons, things, places or works does this question name, that one would look up in a knowledge graph?
Answer with their names as a JSON list of strings and nothing else: ["Ada Lovelace"]

Question: {question}"""

_PLAN: Final = """\
A knowledge graph is to answer a question about {topics}.
These relation paths lead away from there: each is a JSON list of relations, "^" before those that are read
backwards, with the number of nodes reached and some of them.

{relations}

Which relation paths lead to the answer? Longer ones may be put together of these relations. Answer with the
most useful first, as a JSON list of lists and nothing else: [["^relation", "other relation"], ["relation"]]

Question: {question}"""


@dataclass(frozen=True, slots=True)
class Planner:
    """Retrieves the ``k`` best paths of a graph for a question, along the paths that a model plans.

    ``hops`` is the most relations in a path that the model is shown. ``embed`` ranks paths by the question;
    without it, hashed words do. ``budget``, ``labels``, ``mode`` and ``chunks`` are as for
    ``spaseq.paths.retrieve``. With ``entities``, a name that no node has means the node most similar to it.

    Raises RetrievalError for numbers out of range, TypeError if ``graph`` is not a KnowledgeGraph, and
    QueryError for labels that no edge has.
    """

    graph: KnowledgeGraph
    k: int
    hops: int
    embed: Embed | None
    budget: Budget | None
    labels: Any
    mode: str | None
    chunks: Chunks | None = None
    entities: Entities | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.graph, KnowledgeGraph):
            raise TypeError(f"graph={self.graph!r}: load one with spaseq.paths.load, or open one")
        for name, number, least in (("k", self.k, 0), ("hops", self.hops, 1)):
            if number < least:
                raise RetrievalError(f"{name}={number}: a number from {least} on is wanted")
        label_predicates(self.graph.snapshot, self.labels)
        mode_given(self.mode)

    def retrieval(self, question: str, ask: Ask) -> Retrieval:
        """Return the best paths, with topics and warnings; also log the warnings.

        Raises AnswerError for an answer of the model that cannot be read.
        """
        names = read_topics(ask(_TOPICS.format(question=question)))
        graph = self.graph.now
        topics, linked, warnings = dict[int, None](), list[Candidate](), list[str]()
        for name in names:
            try:
                nodes, strangers, candidates = self._topics(graph.snapshot, name)
            except QueryError as error:
                warnings.append(f"left out {name}: {error}")
            else:
                topics |= dict.fromkeys(nodes.tolist())
                linked += candidates
                warnings += [f"left out {name}: the graph has no node {term}" for term in strangers]
        warnings += taken_for(linked)
        expressions: list[Any] = []
        if topics:
            around = graph.relations_of([*topics], self.hops)
            called = ", ".join(graph.names.node(topic) for topic in topics)
            answer = ask(_PLAN.format(topics=called, relations=around.text(), question=question))
            expressions = read_paths(answer)
        found = retrieve(
            graph,
            expressions,
            [*topics],
            self.k,
            self.embed,
            self.budget,
            question=question,
            mode=self.mode,
            chunks=self.chunks,
        )
        for warning in warnings:
            _TOLD.warning("%s", warning)
        for rejected in found.rejected:
            _TOLD.warning("left out %s: %s", rejected.expression, rejected.reason)
        return replace(found, warnings=(*warnings, *found.warnings), linked=tuple(linked))

    def _topics(self, graph: Snapshot, name: str) -> tuple[Ids, tuple[Term, ...], Sequence[Candidate]]:
        """Return the nodes that ``name`` means, ``name`` as a term, and the candidates that it was linked to.

        A term is returned only if the graph has no such node. Raises QueryError if ``name`` is not a term,
        and no node has this name or a similar one.
        """
        try:
            return find_topics(graph, name, self.labels, alike=self.entities is None)
        except QueryError:
            similar = [] if self.entities is None else self.entities.link(name, 1)
            if not similar:
                raise
            return *graph.numbers([candidate.term for candidate in similar]), similar
