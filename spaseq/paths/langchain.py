"""Path retrieval as a retriever of LangChain's: a language model plans, the graph answers.

Needs ``spaseq[langchain]``. How it is planned: ``spaseq.paths.retrieval.planning``. The best paths for the
question are documents.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import OutputParserException
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import PrivateAttr

from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.rendering import path_json
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.planning import Planner
from spaseq.paths.retrieval.ranking import CachedEmbed
from spaseq.paths.retrieval.retrieved import Retrieval


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
    k: int = 10
    hops: int = 2
    embeddings: Embeddings | None = None
    budget: Budget = Budget()
    labels: Any = ()

    _planner: Planner = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """What fields are together is checked. Vectors are kept as long as the retriever."""
        super().model_post_init(context)
        embed = None if self.embeddings is None else CachedEmbed(self.embeddings.embed_documents)
        self._planner = Planner(self.graph, self.k, self.hops, embed, self.budget, self.labels)

    def retrieval(self, question: str, config: RunnableConfig | None = None) -> Retrieval:
        """All that was found, the topics and what was left out included."""
        return self._planner.retrieval(question, partial(self._ask, config))

    def _ask(self, config: RunnableConfig | None, prompt: str) -> list[Any]:
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
