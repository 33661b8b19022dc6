"""What a retrieval finds, how it ranks, what it costs, and what it does with bad input."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import rdflib

from spaseq.errors import QueryMeaningError, RetrievalError
from spaseq.paths import Budget, KnowledgeGraph, Retrieval, load, retrieve
from spaseq.paths.retrieval.ranking import cosine, count_tokens, hashed_words

BASE = "http://example.org/"
TURTLE = f"""
@prefix : <{BASE}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Kismet :starred_actors :Edward_Arnold , :Marlene%20Dietrich ; :releaseYear 1944 ; :directed_by :Dieterle .
:Nero_Wolfe :starred_actors :Edward_Arnold ; :releaseYear 1936 ; :directed_by :Biberman .
:Dieterle rdfs:label "William Dieterle"@en , "Wilhelm Dieterle"@de .
:directed_by rdfs:label "film director" .
"""
ARNOLD = f"{BASE}Edward_Arnold"
QUESTION = "who directed the films with Edward Arnold"


@pytest.fixture(scope="module")
def films() -> KnowledgeGraph:
    return load(rdflib.Graph().parse(data=TURTLE, format="turtle"))


def texts(found: Retrieval) -> list[str]:
    return [ranked.text for ranked in found]


YEARS = ["^starred_actors", "releaseYear"]
DIRECTORS = ["^starred_actors", "directed_by"]


@pytest.mark.parametrize(
    "relations",
    [
        YEARS,
        ("^ Starred Actors", "release year"),
        ["^:starred_actors", f"<{BASE}releaseYear>"],
        [f"^{BASE}starred_actors", ":releaseYear"],
        "^:starred_actors/:releaseYear",
        "PREFIX e: <http://example.org/> ^e:starred_actors/e:releaseYear",
    ],
)
def test_relations_by_any_name(films: KnowledgeGraph, relations: Any) -> None:
    found = retrieve(films, [relations], ARNOLD)
    assert texts(found) == [
        "Edward Arnold ← starred actors ← Kismet → release Year → 1944",
        "Edward Arnold ← starred actors ← Nero Wolfe → release Year → 1936",
    ]
    assert found.rejected == ()
    assert found.unknown == ()
    assert [ranked.expressions for ranked in found] == [(0,), (0,)]


def test_labels(films: KnowledgeGraph) -> None:
    found = retrieve(films, [["^starred actors", "film director"]], ARNOLD)
    assert texts(found)[-1] == "Edward Arnold ← starred actors ← Nero Wolfe → film director → Biberman"
    assert texts(found)[0].endswith("film director → William Dieterle")
    assert texts(retrieve(films, [[":starred_actors"]], ":Kismet"))[1].endswith("→ Marlene Dietrich")


def test_a_name_of_several_predicates_is_any_of_them() -> None:
    graph = load([("urn:x", "urn:a:name", "1"), ("urn:x", "urn:b:name", "2")])
    assert texts(retrieve(graph, [["name"]], "urn:x")) == ["x → name → 1", "x → name → 2"]


def test_bad_input_is_kept(films: KnowledgeGraph) -> None:
    bad: list[Any] = [
        ["starred_actor", "releaseYear"],
        [],
        [""],
        ["^"],
        [3],
        None,
        ":starred_actors/",
        "unknown:p",
        ["http://[", "releaseYear"],
        (YEARS, float("nan")),
        (YEARS, -1),
        (":starred_actors+", 2),
    ]
    found = retrieve(films, [*bad, YEARS], ARNOLD, mode="WALK")
    assert [rejected.place for rejected in found.rejected] == list(range(len(bad)))
    reasons = [rejected.reason for rejected in found.rejected]
    assert "no predicate of the graph is called starred_actor" in reasons[0]
    assert "did you mean starred_actors?" in reasons[0]
    assert "infinitely many walks" in reasons[-1]
    assert "weight is -1" in reasons[-2]
    assert [ranked.expressions for ranked in found] == [(len(bad),)] * 2


def test_doubtful_input_is_said(films: KnowledgeGraph) -> None:
    found = retrieve(films, ["^:starred_actors/(:releaseYear|:released)"], [ARNOLD, f"{BASE}Nobody"])
    assert len(found) == 2
    assert found.warnings == ("no edge has the predicate :released: did you mean :releaseYear?",)
    assert found.unknown == (rdflib.URIRef(f"{BASE}Nobody"),)
    assert len(retrieve(films, [YEARS], f"{BASE}Nobody")) == 0


def test_the_question_decides(films: KnowledgeGraph) -> None:
    found = retrieve(films, [YEARS, DIRECTORS], ARNOLD, k=2, question=QUESTION)
    assert [ranked.expressions for ranked in found] == [(1,), (1,)]
    assert found.candidates == 4
    scores = [ranked.score for ranked in found]
    assert scores == sorted(scores, reverse=True)
    found = retrieve(films, [YEARS, DIRECTORS], ARNOLD, k=2, question="in which release years")
    assert [ranked.expressions for ranked in found] == [(0,), (0,)]


def test_a_list_of_relations_is_walked_but_not_straight_back() -> None:
    """Each edge may be taken again, as a plan may mean. Without a mode a path expression is a trail."""
    pairs = [("ann", "bob"), ("bob", "ann"), ("cid", "cid")]
    graph = load([(f"urn:{s}", "urn:spouse", f"urn:{o}") for s, o in pairs])
    thrice, expression = ["spouse"] * 3, "/".join(["<urn:spouse>"] * 3)
    for topic, end in (("ann", "bob"), ("cid", "cid")):
        (ranked,) = retrieve(graph, [thrice], topic)
        assert str(ranked.path.end) == f"urn:{end}"
        assert len(retrieve(graph, [expression], topic)) == 0
        assert len(retrieve(graph, [expression], topic, mode="WALK")) == 1
        assert len(retrieve(graph, [thrice], topic, mode="TRAIL")) == 0
    both = retrieve(graph, [thrice, expression, thrice[:2]], "ann")
    assert [(len(ranked.path), ranked.expressions) for ranked in both] == [(2, (2,)), (3, (0,))]
    assert len(retrieve(graph, [["spouse", "^spouse"]], "ann")) == 0
    assert len(retrieve(graph, [["spouse", "^spouse"]], "ann", mode="WALK")) == 1
    budget = Budget(latency=timedelta(seconds=100))
    assert len(retrieve(graph, [thrice], "ann", budget=budget)) == 1


def test_weights(films: KnowledgeGraph) -> None:
    found = retrieve(films, [(YEARS, 0.5), (DIRECTORS, 2), (YEARS, 1)], ARNOLD)
    assert [(ranked.score, ranked.expressions) for ranked in found] == [(2.0, (1,))] * 2 + [(1.0, (0, 2))] * 2
    light = retrieve(films, [(YEARS, 1), (DIRECTORS, 0.01)], ARNOLD, question=QUESTION)
    assert [ranked.expressions for ranked in light] == [(0,)] * 2 + [(1,)] * 2


def test_a_pair_of_names_is_no_weight(films: KnowledgeGraph) -> None:
    assert len(retrieve(films, [("^starred_actors", "releaseYear")], ARNOLD)) == 2


def test_any_embedding(films: KnowledgeGraph) -> None:
    calls: list[list[str]] = []

    def years_last(given: list[str]) -> list[list[float]]:
        calls.append(given)
        return [[1.0, 0.0]] + [[1.0, 1944.0 if "1944" in text else 0.0] for text in given[1:]]

    found = retrieve(films, [YEARS], ARNOLD, embed=years_last, question="?")
    assert calls == [["?", *sorted(texts(found))]]
    assert texts(found)[0].endswith("1936")
    assert [ranked.score for ranked in found] == [1.0, pytest.approx(1 / np.hypot(1, 1944))]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.ones((2, 4)), "given 3 texts and returned 2 × 4"),
        (np.ones(3), "returned 3:"),
        (1.0, "a single number"),
        ([["a"], ["b"], ["c"]], "no matrix of numbers"),
        ([[1.0], [float("inf")], [1.0]], "not finite, for text 1"),
    ],
)
def test_an_embedding_that_is_none(films: KnowledgeGraph, returned: Any, said: str) -> None:
    with pytest.raises(RetrievalError, match=said):
        retrieve(films, [YEARS], ARNOLD, embed=lambda _: returned, question="?")


def test_nothing_is_like_nothing() -> None:
    nothing, question, *texts = hashed_words(["", "a b", "b a A", ""])
    assert cosine(nothing, np.array(texts)).tolist() == [0.0, 0.0]
    assert cosine(question, np.array(texts)).tolist() == pytest.approx([1.0, 0.0])
    assert hashed_words([]).shape == (0, 512)


def test_equal_scores_by_length_and_text() -> None:
    triples = [("urn:t", "urn:p", f"urn:{name}") for name in ("c", "a", "b")] + [("urn:a", "urn:p", "urn:0")]
    for seed in range(5):
        random.Random(seed).shuffle(triples)
        found = retrieve(load(triples), ["<urn:p>+"], "urn:t")
        assert texts(found) == ["t → p → a", "t → p → b", "t → p → c", "t → p → a → p → 0"]


def test_namesakes_by_their_iris() -> None:
    triples = [("urn:t", "urn:p", f"urn:{name}:x") for name in "cab"]
    for some in (triples, triples[::-1]):
        found = retrieve(load(some), [["p"]], "urn:t")
        assert [str(ranked.path.end) for ranked in found] == ["urn:a:x", "urn:b:x", "urn:c:x"]


def test_what_paths_share_is_walked_once(films: KnowledgeGraph) -> None:
    separate = [retrieve(films, [relations], ARNOLD).looked for relations in (YEARS, DIRECTORS)]
    assert separate == [4, 4]
    assert retrieve(films, [YEARS, DIRECTORS], ARNOLD).looked == 6


def test_top_k_and_budget(films: KnowledgeGraph) -> None:
    both = [YEARS, DIRECTORS]
    assert len(retrieve(films, both, ARNOLD, k=3)) == 3
    assert len(retrieve(films, both, ARNOLD, k=0)) == 0
    whole = retrieve(films, both, ARNOLD, question=QUESTION)
    assert whole.tokens == sum(count_tokens(line) for line in whole.text().splitlines())
    assert not whole.truncated
    few = retrieve(films, both, ARNOLD, question=QUESTION, budget=Budget(tokens=25))
    assert 0 < few.tokens <= 25
    assert few.tokens == count_tokens(few.text())
    by_lines = retrieve(films, both, ARNOLD, budget=Budget(tokens=3, count=lambda _: 1))
    assert len(by_lines.triples) == by_lines.tokens == 3
    little = retrieve(films, both, ARNOLD, budget=Budget(paths=3))
    assert little.truncated
    assert little.candidates == 1


@pytest.mark.parametrize("budget", [{"paths": -1}, {"tokens": -5}])
def test_a_budget_that_is_none(budget: dict[str, int]) -> None:
    with pytest.raises(RetrievalError, match="from 0 on"):
        Budget(**budget)


def test_calls_that_cannot_be_meant(films: KnowledgeGraph) -> None:
    with pytest.raises(RetrievalError, match="the best -1 paths"):
        retrieve(films, [YEARS], ARNOLD, k=-1)
    with pytest.raises(RetrievalError, match="all paths are ranked"):
        retrieve(films, [YEARS], ARNOLD, mode="ANY SHORTEST")
    with pytest.raises(QueryMeaningError, match="did you mean TRAIL"):
        retrieve(films, [YEARS], ARNOLD, mode="TRIAL")


def test_coming_back_to_the_topic(films: KnowledgeGraph) -> None:
    fellows = ["^starred_actors", "starred_actors"]
    ends = {str(ranked.path.end) for ranked in retrieve(films, [fellows], ARNOLD)}
    assert ends == {f"{BASE}Marlene%20Dietrich"}
    walks = retrieve(films, [fellows], ARNOLD, mode="WALK", returning=True)
    assert ARNOLD in {str(ranked.path.end) for ranked in walks}


def test_outputs(films: KnowledgeGraph) -> None:
    found = retrieve(films, [YEARS, DIRECTORS], ARNOLD, k=3, question=QUESTION)
    lines = found.text().splitlines()
    assert len(lines) == len(set(lines)) == len(found.triples) == len(found.rdf()) == 5
    assert set(found.rdf()) == set(found.triples)
    assert lines[0].endswith(", starred actors, Edward Arnold)")
    assert f"@prefix : <{BASE}>" in found.rdf().serialize(format="turtle")
    values = json.loads(json.dumps(found.as_json()))
    assert [path["text"] for path in values["paths"]] == texts(found)
    assert values["topics"] == [{"type": "uri", "value": ARNOLD}]
    assert values["paths"][0]["nodes"][0] == {"type": "uri", "value": ARNOLD}
    assert len(values["paths"][0]["triples"]) == 2
    assert values["question"] == QUESTION
    assert values["candidates"] == 4


def test_text_stays_on_its_line() -> None:
    graph = load([("urn:a", "urn:p", 'x\ny "z"')])
    assert retrieve(graph, [["p"]], "urn:a").text() == '(a, p, x y "z")'


def test_paths_of_no_edges_say_nothing(films: KnowledgeGraph) -> None:
    assert all(len(ranked.path) for ranked in retrieve(films, ["(^:starred_actors)*"], ARNOLD))


def test_several_topics(films: KnowledgeGraph) -> None:
    found = retrieve(films, [["releaseYear"]], [":Kismet", ":Nero_Wolfe"])
    assert texts(found) == ["Kismet → release Year → 1944", "Nero Wolfe → release Year → 1936"]


def test_one_path_once_though_two_readings_find_it(films: KnowledgeGraph) -> None:
    found = retrieve(films, ["^:starred_actors/[:releaseYear 1944]", "^:starred_actors", "^."], ARNOLD)
    by_text = {ranked.text: ranked.expressions for ranked in found}
    assert by_text == {
        "Edward Arnold ← starred actors ← Kismet": (0, 1, 2),
        "Edward Arnold ← starred actors ← Nero Wolfe": (1, 2),
    }


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://e.org/a/Some%20Name", "Some Name"),
        ("http://e.org/", "e.org"),
        ("http://e.org/x#y_z", "y z"),
        ("urn:isbn:1", "1"),
    ],
)
def test_local_names(iri: str, name: str) -> None:
    graph = load([(iri, "urn:p", "x")])
    found = graph.node(iri)
    assert found is not None
    assert graph.names.node(found) == name


def test_the_same_again(films: KnowledgeGraph) -> None:
    def once() -> Sequence[object]:
        found = retrieve(films, ["(.|^.){1,3}"], ARNOLD, k=20, question=QUESTION, budget=Budget(paths=40))
        return [(ranked.text, ranked.score) for ranked in found]

    assert len(once()) > 5
    assert once() == once()


def test_the_text_has_labels_but_not_their_edges() -> None:
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    graph = load(
        [("urn:f", label, '"Kismet"@en'), ("urn:f", label, '"Kismet (Film)"@de'), ("urn:f", "urn:of", "1944")]
    )
    found = retrieve(graph, ["."], "<urn:f>")
    assert len(found) == len(found.triples) == 3
    assert sorted(found.text().splitlines()) == ["(Kismet, label, Kismet (Film))", "(Kismet, of, 1944)"]


def test_paths_come_back_to_the_topic_unless_told_otherwise() -> None:
    graph = load([("urn:film", "urn:directed_by", "urn:she"), ("urn:film", "urn:starred", "urn:she")])
    plan = ["directed_by", "^starred"]
    assert [ranked.text for ranked in retrieve(graph, [plan], "<urn:film>")] == [
        "film → directed by → she ← starred ← film"
    ]
    assert len(retrieve(graph, [plan], "<urn:film>", returning=False)) == 0
