"""MetaQA: all test questions by the paths that their types name, without coming back to the topic.

Exact are 9,302 of 9,947 questions of one hop (93.5 %), 12,010 of 14,872 of two (80.8 %), 8,874 of 14,274 of
three (62.2 %); any of the answers is found for 99.7, 96.4 and 97.2 %. What the rest fails on:

==================================================  ======  ======  ======
not exact                                           1 hop   2 hops  3 hops
==================================================  ======  ======  ======
no path to an answer in this knowledge graph            79   2,712   4,974
… only one that comes back to the topic                  2       1      83
only more than the answers                             564     149     343
==================================================  ======  ======  ======

The knowledge graph has 97 % of the triples that the questions were made from, and each hop more meets a gap
sooner. A film named after its star is one node with her, and the path between them is a loop. What is too
much comes from films of one name, which are one node: *Little Miss Marker* is of 1934 and of 1980.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from spaseq.paths import Budget, KnowledgeGraph, retrieve
from tests.paths.metaqa import Index, answer, entity, follow, index, knowledge_graph, questions, triples

Shared = Callable[[str], Path]


@pytest.fixture(scope="module")
def data(shared: Shared) -> Path:
    return shared("metaqa")


@pytest.fixture(scope="module")
def graph(data: Path) -> KnowledgeGraph:
    return knowledge_graph(data)


@pytest.fixture(scope="module")
def known(data: Path) -> Index:
    return index(triples(data))


#: Hops → questions, exact answers, some answer found.
FOUND = {1: (9_947, 9_302, 9_913), 2: (14_872, 12_010, 14_342), 3: (14_274, 8_874, 13_875)}

#: Hops → how many of those that are not exact fail why.
WHY = {
    1: {"no path": 79, "returning": 2, "more": 564},
    2: {"no path": 2_712, "returning": 1, "more": 149},
    3: {"no path": 4_974, "returning": 83, "more": 343},
}

#: A plain prototype's percentages on less of the knowledge graph: exact, any.
LEAST = {1: (93.5, 99.6), 2: (80.3, 96.3), 3: (61.3, 97.1)}


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_all_questions(hops: int, data: Path, graph: KnowledgeGraph, known: Index) -> None:
    asked = questions(data, hops)
    node = {name: graph.node(entity(name)) for question in asked for name in question.answers}
    exact = hits = 0
    why: Counter[str] = Counter()
    for question, found in zip(asked, answer(graph, asked), strict=True):
        gold = {node[name] for name in question.answers}
        reached = set(found.tolist())
        exact += reached == gold
        hits += bool(reached & gold)
        if reached != gold:
            walked = follow(known, question, returning=True)
            if question.answers - walked:
                why["no path"] += 1
            else:
                why["returning" if gold - reached else "more"] += 1
    assert (len(asked), exact, hits) == FOUND[hops]
    assert why == WHY[hops]
    percentages = [100 * count / len(asked) for count in (exact, hits)]
    assert all(found >= least for found, least in zip(percentages, LEAST[hops], strict=True))


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_same_as_dictionaries_of_sets(hops: int, data: Path, graph: KnowledgeGraph, known: Index) -> None:
    asked = questions(data, hops)[::10]
    for question, found in zip(asked, answer(graph, asked), strict=True):
        expected = {graph.node(entity(name)) for name in follow(known, question)}
        assert set(found.tolist()) == expected


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_retrieval_finds_the_same(hops: int, data: Path, graph: KnowledgeGraph, known: Index) -> None:
    for question in questions(data, hops)[::500]:
        found = retrieve(
            graph,
            [question.relations],
            entity(question.topic),
            10**6,
            budget=Budget(paths=None),
            returning=False,
        )
        ends = {ranked.path.nodes[-1] for ranked in found}
        assert ends == {graph.node(entity(name)) for name in follow(known, question)}


def test_the_right_paths_come_first(data: Path, graph: KnowledgeGraph) -> None:
    """Of all 21 paths of two hops the question's words tell the right one, mostly: 88 of 100 hits in 10."""
    some = questions(data, 2)[::150]
    every = sorted({question.relations for question in questions(data, 2)})
    hits = 0
    for question in some:
        text = question.text.replace("[", "").replace("]", "")
        found = retrieve(graph, every, entity(question.topic), k=10, question=text)
        answers = {graph.node(entity(name)) for name in question.answers}
        hits += any(ranked.path.nodes[-1] in answers for ranked in found)
    assert (len(some), hits) >= (100, 80)
