"""Path retrieval as a LlamaIndex retriever: a language model plans, the graph answers.

Needs ``spaseq[llamaindex]``. The plan is made by ``spaseq.paths.retrieval.planning``. The best paths for the
question are returned as text nodes.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.output_parsers.base import OutputParserException
from llama_index.core.prompts import PromptTemplate
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.path import path_json
from spaseq.paths.retrieval.answers import AnswerError
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.chunks import Entities
from spaseq.paths.retrieval.planning import Planner
from spaseq.paths.retrieval.ranking import CachedEmbed, Chunks
from spaseq.paths.retrieval.retrieved import Ranked, Retrieval

#: Passes a prompt to the model unchanged, even if it has braces.
_AS_IT_IS: Final = PromptTemplate("{text}")


class SpaseqRetriever(BaseRetriever):
    """Retrieves the ``k`` best paths of a graph for a question.

    ``llm`` is any LlamaIndex language model. ``hops`` is the most relations in a path that the model is
    shown. ``embed_model`` ranks paths by the question and embeds each text once; without it, hashed words
    rank them. ``budget``, ``labels``, ``mode`` and ``chunks`` are as for ``spaseq.paths.retrieve``.
    ``entities`` also finds nodes by embedding. ``options`` are those of LlamaIndex's ``BaseRetriever``.

    Each text node is a path with its score, best first. Models see only its text. The ``metadata`` has its
    ``nodes`` and ``triples``, and its ``sources`` and ``chunks`` if there are any. Terms are as in the SPARQL
    1.1 results format. The id depends on the path alone. A name that no node has is linked to the node with
    the most similar name; ``linked`` in the metadata then says so. The result is empty if no node of the
    graph has a name like those in the question. Unknown names and relations are left out, with a warning to
    the logger ``spaseq``.

    Raises TypeError if ``graph`` or ``llm`` has another type, RetrievalError for numbers out of range,
    QueryError for labels that no edge has. Retrieving raises OutputParserException for an answer of the model
    without names or relation paths (see ``spaseq.paths.retrieval.answers``). ``aretrieve`` runs in a thread.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        llm: LLM,
        k: int = 10,
        hops: int = 2,
        embed_model: BaseEmbedding | None = None,
        *,
        budget: Budget | None = None,
        labels: Any = (),
        mode: str | None = None,
        chunks: Chunks | None = None,
        entities: Entities | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(llm, LLM):
            raise TypeError(f"llm={llm!r}: a language model of LlamaIndex's is wanted")
        super().__init__(**options)
        embed = None if embed_model is None else CachedEmbed(embed_model.get_text_embedding_batch)
        self._llm = llm
        self._planner = Planner(graph, k, hops, embed, budget, labels, mode, chunks, entities)

    def retrieval(self, question: str) -> Retrieval:
        """Return the whole ``Retrieval`` for a question, with topics and warnings."""
        try:
            return self._planner.retrieval(question, lambda prompt: self._llm.predict(_AS_IT_IS, text=prompt))
        except AnswerError as error:
            raise OutputParserException(str(error)) from error

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.retrieval(query_bundle.query_str)
        return [_node(ranked, found) for ranked in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(ranked: Ranked, found: Retrieval) -> NodeWithScore:
    metadata = found.metadata(ranked)
    node = TextNode(
        id_=str(uuid5(NAMESPACE_URL, json.dumps(path_json(ranked.path)))),
        text=ranked.text,
        metadata=metadata,
        excluded_llm_metadata_keys=[*metadata],
        excluded_embed_metadata_keys=[*metadata],
    )
    return NodeWithScore(node=node, score=ranked.score)


def chunks_of(store: BasePydanticVectorStore | BaseDocumentStore) -> Chunks:
    """Return a ``chunks`` function that looks up text nodes in a LlamaIndex store by their ids.

    A vector store that only keeps vectors has no texts; then use the document store of its index.
    """

    def found(sources: list[str]) -> dict[str, str]:
        if isinstance(store, BaseDocumentStore):
            nodes = store.get_nodes(sources, raise_error=False)
        else:
            nodes = store.get_nodes(sources)
        return {node.node_id: node.get_content() for node in nodes}

    return found
