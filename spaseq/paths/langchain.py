"""Path retrieval as a LangChain retriever: a language model plans, the graph answers.

Needs ``spaseq[langchain]``. The plan is made by ``spaseq.paths.retrieval.planning``. The best paths for the
question are returned as documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import OutputParserException
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, PrivateAttr

from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.retrieval.answers import AnswerError
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.chunks import Entities
from spaseq.paths.retrieval.planning import Planner
from spaseq.paths.retrieval.ranking import CachedEmbed, Chunks
from spaseq.paths.retrieval.retrieved import Retrieval


class SpaseqRetriever(BaseRetriever):
    """Retrieves the ``k`` best paths of a graph for a question.

    ``model`` is any LangChain chat model or language model. ``hops`` is the most relations in a path that the
    model is shown. ``embeddings`` ranks paths by the question and embeds each text once; without it, hashed
    words rank them. ``budget``, ``labels``, ``mode`` and ``chunks`` are as for ``spaseq.paths.retrieve``.
    ``entities`` also finds nodes by embedding.

    A document is a path, best first: its text, and ``metadata`` with its ``score``, ``nodes`` and
    ``triples``, and its ``sources`` and ``chunks`` if there are any. Terms are as in the SPARQL 1.1 results
    format. A name that no node has is linked to the node with the most similar name; ``linked`` in the
    metadata then says so. There are no documents if no node has a name like those in the question. Unknown
    names and relations are left out, with a warning to the logger ``spaseq``.

    Raises OutputParserException for an answer of the model without names or relation paths (see
    ``spaseq.paths.retrieval.answers``), and pydantic's ValidationError for invalid fields, such as labels
    that no edge has.
    """

    graph: KnowledgeGraph
    model: Runnable[Any, Any]
    k: int = 10
    hops: int = 2
    embeddings: Embeddings | None = None
    budget: Budget = Budget()
    labels: Any = ()
    mode: str | None = None
    chunks: Callable[[list[str]], Mapping[str, str]] | None = None
    entities: Entities | None = None

    model_config = ConfigDict(arbitrary_types_allowed=True)

    _planner: Planner = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the fields, and make the planner. The retriever keeps the vectors of texts."""
        super().model_post_init(context)
        embed = None if self.embeddings is None else CachedEmbed(self.embeddings.embed_documents)
        self._planner = Planner(
            self.graph,
            self.k,
            self.hops,
            embed,
            self.budget,
            self.labels,
            self.mode,
            self.chunks,
            self.entities,
        )

    def retrieval(self, question: str, config: RunnableConfig | None = None) -> Retrieval:
        """Return the whole ``Retrieval`` for a question, with topics and warnings."""
        try:
            return self._planner.retrieval(question, partial(self._ask, config))
        except AnswerError as error:
            raise OutputParserException(str(error)) from error

    def _ask(self, config: RunnableConfig | None, prompt: str) -> str:
        return (self.model | StrOutputParser()).invoke(prompt, config)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.retrieval(query, {"callbacks": run_manager.get_child()})
        return [
            Document(ranked.text, metadata={"score": ranked.score, **found.metadata(ranked)})
            for ranked in found
        ]


def chunks_of(store: VectorStore) -> Chunks:
    """Return a ``chunks`` function that looks up documents in a LangChain vector store by their ids."""

    def found(sources: list[str]) -> dict[str, str]:
        documents = store.get_by_ids(sources)
        return {document.id: document.page_content for document in documents if document.id is not None}

    return found
