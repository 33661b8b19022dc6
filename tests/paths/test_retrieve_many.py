"""Many questions at once: the same as one by one, for fewer walks and fewer calls of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.errors import LimitError, QueryError, RetrievalError
from spaseq.paths import (
    Budget,
    CachedEmbed,
    KnowledgeGraph,
    Question,
    Retrieval,
    load,
    retrieve,
    retrieve_many,
)
from spaseq.paths.retrieval.ranking import hashed_words
from tests.conftest import examples

FILMS = [
    (f"urn:film:{i}", f"urn:{relation}", f"urn:{relation}_{i % among}")
    for i in range(12)
    for relation, among in (("starred", 3), ("directed_by", 4), ("release_year", 5))
]
YEARS, DIRECTORS = ["^starred", "release_year"], ["^starred", "directed_by"]
STAR = "urn:starred_0"


@pytest.fixture(scope="module")
def films() -> KnowledgeGraph:
    return load(FILMS)


class Model:
    """An embedding that remembers what it was called with."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> Any:
        self.calls.append(texts)
        return hashed_words(texts)


def facts(found: Retrieval) -> dict[str, Any]:
    """All that a retrieval says, but how many edges were looked at, which is shared."""
    return {field.name: getattr(found, field.name) for field in fields(found) if field.name != "looked"}


EXPRESSIONS: st.SearchStrategy[Any] = st.sampled_from(
    [
        YEARS, DIRECTORS, ["^starred"], ["no such"], (DIRECTORS, 0.5), "^<urn:starred>/<urn:directed_by>",
        "(.|^.){1,2}", "(.|^.)+", ".{0}", "(^<urn:starred>[<urn:release_year> <urn:release_year_1>]/.)",
    ]
)  # fmt: skip
TOPICS = st.sampled_from(
    [STAR, "urn:starred_1", [STAR, "urn:starred_1"], "urn:nobody", "urn:film:3", "release year 2", []]
)
QUESTIONS = st.builds(
    Question,
    st.lists(EXPRESSIONS, max_size=4),
    TOPICS,
    st.sampled_from([None, "who directed the films", "in which years", "urn"]),
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(QUESTIONS, max_size=6),
    st.sampled_from([Budget(), Budget(paths=30), Budget(paths=7, tokens=20), Budget(paths=300)]),
    st.sampled_from(["TRAIL", "ACYCLIC"]),
    st.booleans(),
)
def test_equal_to_one_by_one(asked: list[Question], budget: Budget, mode: str, returning: bool) -> None:
    graph = load(FILMS)
    many = retrieve_many(graph, asked, 5, None, budget, mode=mode, returning=returning)
    alone = [
        retrieve(
            graph, one.expressions, one.topic, 5, None, budget,
            question=one.question, mode=mode, returning=returning,
        )
        for one in asked
    ]  # fmt: skip
    assert [*map(facts, many)] == [*map(facts, alone)]


def test_one_call_of_the_model_for_all(films: KnowledgeGraph) -> None:
    model = Model()
    asked = [
        Question([YEARS], STAR, "in which years"),
        Question([YEARS, DIRECTORS], STAR, "who directed"),
        Question([YEARS], "urn:starred_1", "in which years"),
        Question([YEARS], "urn:starred_2"),  # without a question nothing is compared
    ]
    found = retrieve_many(films, asked, embed=model)
    (texts,) = model.calls
    assert len(texts) == len(set(texts))
    compared = {text for one in found[:3] for text in [one.question, *[ranked.text for ranked in one]]}
    assert compared <= set(texts)
    assert {ranked.score for ranked in found[3]} == {1.0}
    assert retrieve_many(films, [], embed=model) == []
    assert len(model.calls) == 1


def test_the_same_topic_is_walked_once(films: KnowledgeGraph) -> None:
    (alone,) = retrieve_many(films, [Question([DIRECTORS], STAR)])
    shared = retrieve_many(films, [Question([DIRECTORS], STAR, text) for text in ("a", "b", None)])
    assert [one.looked for one in shared] == [alone.looked] * 3
    both = retrieve_many(films, [Question([YEARS], STAR), Question([DIRECTORS], "starred 0")])
    # What they begin with is looked at once.
    assert both[0].looked == both[1].looked == alone.looked + 4


def test_memory_has_a_bound_for_each_question_and_not_for_all() -> None:
    """What does not fit together is walked in parts, and embedded in parts."""
    asked = [Question([YEARS, DIRECTORS], STAR, f"question {i}") for i in range(6)]
    graph = load(FILMS, limits=spaseq.Limits(query_bytes=100_000))
    model = Model()
    found = retrieve_many(graph, asked, embed=model)
    assert 1 < len(model.calls) < len(asked)
    assert [*map(facts, found)] == [
        facts(retrieve(graph, one.expressions, one.topic, question=one.question)) for one in asked
    ]
    small = load(FILMS, limits=spaseq.Limits(query_bytes=20_000))
    with pytest.raises(LimitError):
        retrieve_many(small, asked)


def test_what_is_wrong_is_said_with_its_place(films: KnowledgeGraph) -> None:
    model = Model()
    asked = [Question([YEARS], STAR, "years"), Question([YEARS], "stared 0", "years")]
    with pytest.raises(QueryError, match="did you mean starred 0") as raised:
        retrieve_many(films, asked, embed=model)
    assert raised.value.__notes__ == ["this is questions[1]"]
    assert model.calls == []
    with pytest.raises(RetrievalError, match="1 × 1"):
        retrieve_many(films, asked[:1], embed=lambda _: [[1.0]])


def test_from_asyncio(films: KnowledgeGraph) -> None:
    async def ask() -> list[list[Retrieval]]:
        asked = [Question([YEARS], STAR, "years"), Question([DIRECTORS], STAR, "who")]
        return await asyncio.gather(*(asyncio.to_thread(retrieve_many, films, asked) for _ in range(4)))

    first, *others = asyncio.run(ask())
    assert first[0].paths
    for other in others:
        assert [*map(facts, other)] == [*map(facts, first)]


def test_vectors_are_kept_by_text(films: KnowledgeGraph) -> None:
    model = Model()
    cached = CachedEmbed(model)
    first = retrieve(films, [YEARS], STAR, embed=cached, question="years")
    again = retrieve(films, [YEARS], STAR, embed=cached, question="years")
    assert facts(first) == facts(again) == facts(retrieve(films, [YEARS], STAR, question="years"))
    assert len(model.calls) == 1
    retrieve(films, [YEARS], STAR, embed=cached, question="others")
    assert model.calls[1:] == [["others"]]


def test_the_vectors_met_last_are_kept() -> None:
    model = Model()
    cached = CachedEmbed(model, most=2)
    for texts in (["a", "b"], ["a"], ["c"], ["a"], ["b"]):
        assert [row.tolist() for row in cached(texts)] == hashed_words(texts).tolist()
    assert model.calls == [["a", "b"], ["c"], ["b"]]
    assert len(cached(["x", "y", "z"])) == 3  # more than are kept


@pytest.mark.parametrize("returned", [[[1.0]], [[float("nan")], [1.0]], "nothing"])
def test_vectors_that_are_none_are_not_kept(returned: Any) -> None:
    answers: list[Any] = [returned, [[1.0], [2.0]]]

    def embed(_: Sequence[str]) -> Any:
        return answers.pop(0)

    cached = CachedEmbed(embed)
    with pytest.raises(RetrievalError):
        cached(["a", "b"])
    assert [row.tolist() for row in cached(["a", "b"])] == [[1.0], [2.0]]
