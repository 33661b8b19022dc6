"""A retriever of LlamaIndex's: what the model is asked, what it may answer, what nodes say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from spaseq.errors import QueryError, RetrievalError
from spaseq.paths import retrieve
from tests.paths.planned import GRAPH, PATHS, QUESTION, TEXTS, TOPICS

pytest.importorskip(
    "llama_index.core", reason="LlamaIndex is not installed: pip install 'spaseq[llamaindex]'"
)

from llama_index.core import MockEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.output_parsers.base import OutputParserException
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode
from pydantic import Field, PrivateAttr

from spaseq.paths.llamaindex import SpaseqRetriever


class Model(CustomLLM):
    """Answers with what it was made with, and keeps what it was asked."""

    answers: list[str]
    asked: list[str] = Field(default_factory=list)
    _threads: list[str] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002
        self.asked.append(prompt)
        self._threads.append(threading.current_thread().name)
        return CompletionResponse(text=self.answers[len(self.asked) - 1])

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_: Any) -> Iterator[CompletionResponse]:
        yield self.complete(prompt)


def retriever(*answers: str, **options: Any) -> SpaseqRetriever:
    return SpaseqRetriever(GRAPH, Model(answers=[*answers]), **options)


def test_paths_are_nodes() -> None:
    found = retriever(TOPICS, f"Well:\n```json\n{PATHS}\n```").retrieve(QUESTION)
    wanted = retrieve(GRAPH, [["^starred", "directed_by"]], "Edward Arnold", question=QUESTION)
    assert [one.text for one in found] == [ranked.text for ranked in wanted]
    assert {one.text for one in found} == set(TEXTS)
    assert [one.score for one in found] == [ranked.score for ranked in wanted]
    assert {one.metadata["nodes"][0]["value"] for one in found} == {"urn:person:Edward_Arnold"}
    assert [len(one.metadata["triples"]) for one in found] == [2, 2]


def test_models_read_the_text_alone() -> None:
    (first, _) = retriever(TOPICS, PATHS).retrieve(QUESTION)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert first.node.get_content(mode) == first.text


def test_a_path_has_always_the_same_id() -> None:
    first, again = (retriever(TOPICS, PATHS).retrieve(QUESTION) for _ in range(2))
    assert first == again
    assert len({one.node.node_id for one in first}) == 2


def test_what_the_model_is_asked() -> None:
    model = Model(answers=[TOPICS, PATHS])
    question = f"{QUESTION} {{text}} {{}}"
    assert len(SpaseqRetriever(GRAPH, model, k=1).retrieve(question)) == 1
    first, second = model.asked
    assert question in first
    assert question in second
    assert GRAPH.relations_of("Edward Arnold").text() in second


def test_async_is_in_a_thread() -> None:
    model = Model(answers=[TOPICS, PATHS])
    found = asyncio.run(SpaseqRetriever(GRAPH, model).aretrieve(QUESTION))
    assert {one.text for one in found} == set(TEXTS)
    assert threading.main_thread().name not in model._threads


def test_in_a_query_engine() -> None:
    model = Model(answers=[TOPICS, PATHS, "William Dieterle and Herbert Biberman"])
    engine = RetrieverQueryEngine.from_args(SpaseqRetriever(GRAPH, model), llm=model)
    answer = engine.query(QUESTION)
    assert str(answer) == "William Dieterle and Herbert Biberman"
    assert all(text in model.asked[2] for text in TEXTS)


def test_what_the_graph_does_not_know_is_told(caplog: pytest.LogCaptureFixture) -> None:
    asked = retriever(
        '["Edwrad Arnold", "<urn:nobody>", 7, "Edward Arnold"]', '[["starring"], ["^starred"], 5]'
    )
    found = asked.retrieval(QUESTION)
    assert [ranked.text for ranked in found] == [text.split(" → ")[0] for text in TEXTS]
    assert [rejected.place for rejected in found.rejected] == [0, 2]
    for said in ("Edward Arnold is taken", "urn:nobody", "left out 7", "did you mean starred"):
        assert said in caplog.text


def test_nothing_is_called_so() -> None:
    """The model is not asked for a plan, which there is nothing to plan with."""
    assert retriever('["Greta Garbo"]').retrieve("Who is Greta Garbo?") == []


@pytest.mark.parametrize("answers", [["Edward Arnold, I think"], ['{"a": 1}'], [""], [TOPICS, "no"]])
def test_a_model_that_does_not_answer_with_a_list(answers: list[str]) -> None:
    with pytest.raises(OutputParserException):
        retriever(*answers).retrieve(QUESTION)


def test_ordinary_output_and_a_misspelled_topic() -> None:
    asked = retriever(
        '<think>Arnold?</think> {"topics": ["Edwrad Arnold"]}', 'So: ["^starred", "directed_by"]'
    )
    found = asked.retrieve(QUESTION)
    wanted = retriever(TOPICS, PATHS).retrieve(QUESTION)
    assert [one.node.node_id for one in found] == [one.node.node_id for one in wanted]
    assert found[0].metadata["linked"][0]["name"] == "Edward Arnold"
    assert "linked" not in wanted[0].metadata


def test_labels_and_embeddings() -> None:
    asked = retriever('["Schneider"]', PATHS, labels="urn:alias", embed_model=MockEmbedding(embed_dim=8))
    found = asked.retrieve(QUESTION)
    assert {one.text for one in found} == set(TEXTS)
    assert [one.score for one in found] == [1.0, 1.0]  # its vectors are all the same


def test_arguments_are_checked() -> None:
    with pytest.raises(QueryError, match="did you mean <urn:alias>"):
        retriever(labels=["urn:alais"])
    for wrong in ({"k": -1}, {"hops": 0}):
        with pytest.raises(RetrievalError, match="a number from"):
            retriever(**wrong)
    with pytest.raises(TypeError, match=r"spaseq\.paths\.load"):
        SpaseqRetriever("kb.ttl", Model(answers=[]))
    with pytest.raises(TypeError, match="language model"):
        SpaseqRetriever(GRAPH, "gpt")
