"""Retrieval under a latency and a memory: what is left out, what never is, and that the bound holds."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.bounds import Policy, WorkClock
from spaseq.errors import RetrievalError
from spaseq.paths import Budget, KnowledgeGraph, Question, load, retrieve, retrieve_many

_NAMES = ["directed_by", "starred_actors", "release_year", "has_genre"]
_HOUR = timedelta(hours=1)


def _graph(rng: random.Random, edges: int) -> KnowledgeGraph:
    return load(
        (f"urn:n{rng.randrange(12)}", f"urn:{rng.choice(_NAMES)}", f"urn:n{rng.randrange(12)}")
        for _ in range(edges)
    )


def _relations(rng: random.Random) -> list[str]:
    return [rng.choice(["", "^"]) + rng.choice(_NAMES) for _ in range(rng.randint(1, 3))]


@given(st.integers(0, 2**64 - 1), st.sampled_from(["sharp", "random-state", "selective"]))
def test_what_is_found_is_found_without_a_bound_with_the_same_score(seed: int, policy: str) -> None:
    rng = random.Random(seed)
    graph = _graph(rng, 60)
    plans = [_relations(rng) for _ in range(4)]
    question = rng.choice(["who directed it", None])
    asked: dict[str, Any] = {"question": question, "mode": rng.choice(["TRAIL", "WALK", "SIMPLE"])}
    every = retrieve(graph, plans, "urn:n0", 10_000, **asked)
    exact = {ranked.path: ranked for ranked in every}
    clock = WorkClock()
    for latency, memory in ((timedelta(microseconds=rng.choice([60, 300, 900])), None), (None, 9_000)):
        budget = Budget(latency=latency, memory=memory, policy=policy, clock=clock)
        found = retrieve(graph, plans, "urn:n0", 10_000, budget=budget, **asked)
        assert found.shed is not None
        assert len({ranked.path for ranked in found}) == len(found)
        for ranked in found:
            assert ranked.score == exact[ranked.path].score
            assert {*ranked.expressions} <= {*exact[ranked.path].expressions}
        assert len(found) == len(exact) or found.shed.active
        assert len(found) or not exact or found.shed.by_state["edges not walked"]
    whole = retrieve(graph, plans, "urn:n0", 10_000, budget=Budget(latency=_HOUR, memory=2**40), **asked)
    assert [str(r) for r in whole] == [str(r) for r in every]
    assert whole.shed is not None
    assert (whole.shed.active, whole.shed.recall) == (False, 1.0)


def _films() -> KnowledgeGraph:
    """A director, one genre, and 500 actors of a film."""
    edges = [("urn:film", "urn:starred_actors", f"urn:actor{i}") for i in range(500)]
    return load(
        [*edges, ("urn:film", "urn:directed_by", "urn:Huston"), ("urn:film", "urn:has_genre", "urn:noir")]
    )


def test_what_the_question_asks_is_walked_and_compared_first() -> None:
    graph, plans = _films(), [["starred_actors"], ["has_genre"], ["directed_by"]]
    clock, bound = WorkClock(), timedelta(microseconds=600)
    best = {}
    for policy in ("sharp", "random-state"):
        budget, begin = Budget(latency=bound, policy=policy, clock=clock), clock()
        found = retrieve(graph, plans, "urn:film", 1, budget=budget, question="who directed the film")
        assert clock() - begin <= 1.1 * bound.total_seconds()
        assert found.shed is not None
        assert found.shed.partial_matches == sum(found.shed.by_state.values()) > 400
        best[policy] = found.paths[0].text
    assert best["sharp"] == "film → directed by → Huston"
    assert best["random-state"] != best["sharp"]


def test_memory_leaves_out_what_promises_least() -> None:
    graph, plans = _films(), [["starred_actors"], ["has_genre"], ["directed_by"]]
    found = retrieve(
        graph, plans, "urn:film", 600, budget=Budget(memory=400_000), question="who directed the film"
    )
    assert found.candidates * 6_096 <= 400_000
    assert found.paths[0].text.endswith("Huston")
    assert found.as_json()["shed"] == {"paths not compared": 502 - found.candidates}
    assert found.shed is not None
    assert found.shed.recall == pytest.approx(found.candidates / 502)


def test_many_questions_have_a_bound_each() -> None:
    graph, budget = _films(), Budget(latency=timedelta(microseconds=600), clock=WorkClock())
    asked = [Question([["starred_actors"]], "urn:film", "who starred")] * 3
    counts = [found.candidates for found in retrieve_many(graph, asked, budget=budget)]
    assert counts[0] > 0
    assert counts == counts[:1] * 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"latency": 5}, "a bound is a timedelta above 0"),
        ({"latency": timedelta(0)}, "a bound is a timedelta above 0"),
        ({"memory": 0}, "a whole number of bytes above 0"),
        ({"policy": "best"}, "unknown policy 'best'"),
        ({"clock": 5}, "a clock is called, and gives seconds"),
        ({"policy": Policy.RANDOM_INPUT}, "has no input to draw"),
    ],
)
def test_what_is_no_bound(given: dict[str, Any], words: str) -> None:
    with pytest.raises(RetrievalError, match=words):
        Budget(**given)


@pytest.mark.parametrize("budget", [0, 5, timedelta(1), {"memory": 5}])
def test_what_is_no_budget(budget: Any) -> None:
    words = r"budget=.*: give a Budget, as Budget\(latency="
    with pytest.raises(RetrievalError, match=words):
        retrieve(_films(), [["starred_actors"]], "urn:film", budget=budget)
    with pytest.raises(RetrievalError, match=words):
        _films().paths("<urn:starred_actors>", "urn:film", mode="ACYCLIC", budget=budget)
