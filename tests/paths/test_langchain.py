"""A retriever of LangChain's: what the model is asked, what it may answer, what documents say."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from spaseq.paths import retrieve
from tests.paths.planned import GRAPH, PATHS, QUESTION, TEXTS, TOPICS

pytest.importorskip("langchain_core", reason="LangChain is not installed: pip install 'spaseq[langchain]'")

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from pydantic import ValidationError

from spaseq.paths.langchain import SpaseqRetriever


def retriever(*answers: str, **options: Any) -> SpaseqRetriever:
    return SpaseqRetriever(graph=GRAPH, model=FakeListChatModel(responses=[*answers]), **options)


@pytest.mark.parametrize("model", [FakeListChatModel, FakeListLLM])
def test_paths_are_documents(model: Any) -> None:
    asked = SpaseqRetriever(graph=GRAPH, model=model(responses=[TOPICS, f"```json\n{PATHS}\n```"]))
    documents = asked.invoke(QUESTION)
    wanted = retrieve(GRAPH, [["^starred", "directed_by"]], "Edward Arnold", question=QUESTION)
    assert [document.page_content for document in documents] == [ranked.text for ranked in wanted]
    assert {document.page_content for document in documents} == set(TEXTS)
    assert [document.metadata["score"] for document in documents] == [ranked.score for ranked in wanted]
    (last,) = {document.metadata["nodes"][0]["value"] for document in documents}
    assert last == "urn:person:Edward_Arnold"
    assert json.dumps(documents[0].metadata)


def test_what_the_model_is_asked() -> None:
    prompts = list[str]()
    answers = [TOPICS, PATHS]

    def answer(prompt: str) -> BaseMessage:
        prompts.append(prompt)
        return AIMessage(answers[len(prompts) - 1])

    asked = SpaseqRetriever(graph=GRAPH, model=RunnableLambda(answer), k=1)
    assert len(asked.invoke(QUESTION)) == 1
    first, second = prompts
    assert QUESTION in first
    assert QUESTION in second
    assert GRAPH.relations_of("Edward Arnold").text() in second


def test_async_and_in_a_chain() -> None:
    chain = retriever(TOPICS, PATHS) | (lambda documents: len(documents))
    assert asyncio.run(chain.ainvoke(QUESTION)) == 2


def test_what_the_graph_does_not_know_is_told(caplog: pytest.LogCaptureFixture) -> None:
    asked = retriever(
        '["Edwrad Arnold", "<urn:nobody>", 7, "Edward Arnold"]', '[["starring"], ["^starred"], 5]'
    )
    found = asked.retrieval(QUESTION)
    assert [ranked.text for ranked in found] == [text.split(" → ")[0] for text in TEXTS]
    assert [rejected.place for rejected in found.rejected] == [0, 2]
    for said in ("Edward Arnold is taken", "urn:nobody", "left out 7", "did you mean starred"):
        assert said in caplog.text


def test_nothing_is_called_so(caplog: pytest.LogCaptureFixture) -> None:
    """The model is not asked for a plan, which there is nothing to plan with."""
    asked = retriever('["Greta Garbo"]', "the second answer, which nobody reads")
    assert asked.invoke("Who is Greta Garbo?") == []
    assert "left out Greta Garbo" in caplog.text


@pytest.mark.parametrize("answers", [["Edward Arnold, I think"], ['{"a": 1}'], [TOPICS, "no"]])
def test_a_model_that_does_not_answer_with_a_list(answers: list[str]) -> None:
    form = r'\[\["\^starred"' if answers[0] == TOPICS else r'\["Ada Lovelace"\]'
    with pytest.raises(OutputParserException, match=form):
        retriever(*answers).invoke(QUESTION)


def test_a_misspelled_topic_is_found_and_told(caplog: pytest.LogCaptureFixture) -> None:
    asked = retriever(
        '<think>Arnold?</think> {"topics": ["Edwrad Arnold"]}', 'So: ["^starred", "directed_by"]'
    )
    documents = asked.invoke(QUESTION)
    assert {document.page_content for document in documents} == set(TEXTS)
    assert "no node is called Edwrad Arnold: Edward Arnold is taken" in caplog.text
    (linked,) = documents[0].metadata["linked"]
    assert (linked["asked"], linked["name"]) == ("Edwrad Arnold", "Edward Arnold")
    asked = retriever(TOPICS, PATHS)
    assert "linked" not in asked.invoke(QUESTION)[0].metadata
    assert len(retriever(TOPICS, PATHS, mode="acyclic").invoke(QUESTION)) == 2
    with pytest.raises(ValidationError, match="mode 'ANY'"):
        retriever(mode="ANY")


def test_labels_and_embeddings() -> None:
    calls = list[list[str]]()

    class Embeddings(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            calls.append(texts)
            return super().embed_documents(texts)

    asked = retriever(
        '["Schneider"]', PATHS, '["Schneider"]', PATHS, labels="urn:alias", embeddings=Embeddings(size=8)
    )
    first, again = asked.invoke(QUESTION), asked.invoke(QUESTION)
    assert first == again
    assert {document.page_content for document in first} == set(TEXTS)
    assert [sorted(texts) for texts in calls] == [sorted([QUESTION, *TEXTS])]


def test_labels_that_no_edge_has() -> None:
    with pytest.raises(ValidationError, match="did you mean <urn:alias>"):
        retriever(labels=["urn:alais"])


@pytest.mark.parametrize("wrong", [{"k": -1}, {"hops": 0}, {"graph": "kb.ttl"}, {"model": "gpt"}])
def test_fields_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SpaseqRetriever(**{"graph": GRAPH, "model": FakeListLLM(responses=["[]"]), **wrong})
