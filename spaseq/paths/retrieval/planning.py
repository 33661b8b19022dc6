"""Planning on a graph, as in RoG: a language model says what to look for, the graph what there is.

The model is asked twice for each question: for the names of what the question is about, which are looked for
in the graph, and, with the relations that leave these nodes, for the relation paths that are worth walking.
Which model, and whose, is the retrievers' concern (``langchain``, ``llamaindex``): they bring ``Ask``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from spaseq.errors import QueryError, RetrievalError
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.linking.candidates import label_predicates
from spaseq.paths.graph.linking.candidates import topics as find_topics
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.ranking import Embed
from spaseq.paths.retrieval.retrieve import retrieve
from spaseq.paths.retrieval.retrieved import Retrieval

#: ``ask(prompt)``: the list that a model answers with, its JSON parsed.
Ask = Callable[[str], list[Any]]

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

    ``hops``: of so many relations are the paths that the model is shown. ``embed`` ranks paths by the
    question; without it words count. ``budget`` and ``labels`` are as for ``spaseq.paths.retrieve``.

    Raises RetrievalError for numbers that make no sense, TypeError for a graph that is none, and QueryError
    for labels that no edge has.
    """

    graph: KnowledgeGraph
    k: int
    hops: int
    embed: Embed | None
    budget: Budget | None
    labels: Any

    def __post_init__(self) -> None:
        if not isinstance(self.graph, KnowledgeGraph):
            raise TypeError(f"graph={self.graph!r}: load one with spaseq.paths.load, or open one")
        for name, number, least in (("k", self.k, 0), ("hops", self.hops, 1)):
            if number < least:
                raise RetrievalError(f"{name}={number}: a number from {least} on is wanted")
        label_predicates(self.graph.now, self.labels)

    def retrieval(self, question: str, ask: Ask) -> Retrieval:
        """All that was found, the topics and what was left out included, which the logger is told, too."""
        names = ask(_TOPICS.format(question=question))
        graph = self.graph.now
        topics = self._topics(graph, names)
        expressions: list[Any] = []
        if topics:
            around = graph.relations_of(topics, self.hops)
            called = ", ".join(graph.names.node(topic) for topic in topics)
            expressions = ask(_PLAN.format(topics=called, relations=around.text(), question=question))
        found = retrieve(graph, expressions, topics, self.k, self.embed, self.budget, question=question)
        for rejected in found.rejected:
            _TOLD.warning("left out %s: %s", rejected.expression, rejected.reason)
        return found

    def _topics(self, graph: Snapshot, names: list[Any]) -> list[int]:
        """The nodes that are called so."""
        found = dict[int, None]()
        for name in map(str, names):
            try:
                nodes, strangers, _ = find_topics(graph, name, self.labels)
            except QueryError as error:
                _TOLD.warning("left out %s: %s", name, error)
            else:
                found |= dict.fromkeys(nodes.tolist())
                for term in strangers:
                    _TOLD.warning("left out %s: the graph has no node %s", name, term)
        return [*found]
