"""Path retrieval as a retriever of LangChain's: a language model plans, the graph answers.

Needs ``spaseq[langchain]``. The model is asked twice for each question: for the names of what the question
is about, which are looked for in the graph, and, with the relations that leave these nodes, for the relation
paths that are worth walking (planning on graphs, as in RoG). The best paths for the question are documents.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import OutputParserException
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field, PrivateAttr

from spaseq.errors import QueryError
from spaseq.paths.knowledge import KnowledgeGraph
from spaseq.paths.linking.candidates import label_predicates
from spaseq.paths.linking.candidates import topics as find_topics
from spaseq.paths.ranking import CachedEmbed
from spaseq.paths.retrieval import Budget, retrieve
from spaseq.paths.retrieved import Retrieval
from spaseq.paths.shown import path_json
from spaseq.paths.snapshot import Snapshot

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


class SpaseqRetriever(BaseRetriever):
    """Retrieves the ``k`` best paths of a graph for a question.

    ``model`` is any chat model or language model of LangChain's. ``hops``: of so many relations are the paths
    that it is shown. ``embeddings`` rank paths by the question, those of a text computed once; without them
    it is words that count. ``budget`` and ``labels`` are as for ``spaseq.paths.retrieve``.

    A document is a path, best first: its text, and as ``metadata`` its ``score``, ``nodes`` and ``triples``,
    terms as in the SPARQL 1.1 results format. There are none if the graph has nothing that is called as the
    question says. Names and relations that the graph does not know are left out, with a warning to the
    logger ``spaseq``. Raises OutputParserException if what the model answers is no JSON list, and
    pydantic's ValidationError for fields that cannot be, labels that no edge has among them.
    """

    graph: KnowledgeGraph
    model: Runnable[Any, Any]
    k: int = Field(default=10, ge=0)
    hops: int = Field(default=2, ge=1)
    embeddings: Embeddings | None = None
    budget: Budget = Budget()
    labels: Any = ()

    _embed: CachedEmbed | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Labels that no edge has are no labels. Vectors are kept as long as the retriever."""
        super().model_post_init(context)
        label_predicates(self.graph.now, self.labels)
        if self.embeddings is not None:
            self._embed = CachedEmbed(self.embeddings.embed_documents)

    def retrieval(self, question: str, config: RunnableConfig | None = None) -> Retrieval:
        """All that was found, the topics and what was left out included."""
        names = self._ask(_TOPICS.format(question=question), config)
        graph = self.graph.now
        topics = self._topics(graph, names)
        expressions: list[Any] = []
        if topics:
            around = graph.relations_of(topics, self.hops)
            called = ", ".join(graph.names.node(topic) for topic in topics)
            plan = _PLAN.format(topics=called, relations=around.text(), question=question)
            expressions = self._ask(plan, config)
        found = retrieve(
            graph, expressions, topics, self.k, self._embed, self.budget, question=question
        )  # fmt: skip
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

    def _ask(self, prompt: str, config: RunnableConfig | None) -> list[Any]:
        """What the model answers, which is a list."""
        answer = (self.model | JsonOutputParser()).invoke(prompt, config)
        if not isinstance(answer, list):
            raise OutputParserException(f"the model was asked for a JSON list and answered {answer!r}")
        return answer

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.retrieval(query, {"callbacks": run_manager.get_child()})
        return [
            Document(ranked.text, metadata={"score": ranked.score, **path_json(ranked.path)})
            for ranked in found
        ]
