"""The relations that leave a topic: what there is, how much it leads to, and that `retrieve` takes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import URIRef

import spaseq
import spaseq.paths
from spaseq.errors import LimitError, QueryError
from spaseq.paths import KnowledgeGraph, Neighbourhood, load, retrieve
from tests.conftest import examples

KB = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix p: <http://example.org/film.> . @prefix q: <http://example.org/other/film.> .
:n1 rdfs:label "Edward Arnold" .
:Kismet p:starred :n1 ; p:year 1944 ; :P57 :Dieterle . :Wolfe p:starred :n1 ; p:year 1936 .
:n1 q:year 1890 ; p:starred :Wolfe .
:P57 rdfs:label "directed by" .
"""


@pytest.fixture(scope="module", params=["loaded", "opened"])
def films(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    path = tmp_path_factory.mktemp("kb") / "kb.ttl"
    path.write_text(KB)
    if request.param == "loaded":
        return load(path)
    load(path).save(path.with_suffix(".spaseq"))
    return spaseq.paths.open(path.with_suffix(".spaseq"))


def counted(found: Neighbourhood) -> list[tuple[tuple[str, ...], int]]:
    return [(path.relations, path.count) for path in found]


def test_relations_by_unmistakable_names(films: KnowledgeGraph) -> None:
    """Labels, last segments, and IRIs where these are several predicates'; none for what only labels."""
    found = films.relations_of("Edward Arnold", hops=1)
    assert counted(found) == [
        (("^film.starred",), 2),
        (("film.starred",), 1),
        (("<http://example.org/other/film.year>",), 1),
    ]
    assert [candidate.by for candidate in found.linked] == ["label"]
    assert ("directed by",) in dict(counted(films.relations_of(":Kismet", hops=1)))


def test_text_for_a_prompt(films: KnowledgeGraph) -> None:
    lines = films.relations_of("edward arnold", hops=2, examples=1).text().splitlines()
    assert lines[0] == '["^film.starred"] (2): Kismet; …'
    assert '["^film.starred", "directed by"] (1): Dieterle' in lines
    assert films.relations_of(":n1", 1, examples=0).text().splitlines()[1] == '["film.starred"] (1)'
    for line in lines:  # what a model copies is what retrieve reads
        relations = json.JSONDecoder().raw_decode(line)[0]
        assert retrieve(films, [relations], ":n1", mode="WALK").rejected == ()


def test_long_and_broken_names_stay_on_their_line() -> None:
    graph = load([("urn:a", "urn:says", "so\n" + "very " * 40 + "long")])
    (line,) = graph.relations_of("urn:a").text().splitlines()  # and none back again
    assert len(line) < 80
    assert line.endswith("…")


def test_only_the_most(films: KnowledgeGraph) -> None:
    found = films.relations_of(":n1", hops=2, k=1)
    assert found.truncated
    assert [len(path.relations) for path in found] == [1, 2]
    assert found.paths[0].relations == ("^film.starred",)
    assert found.paths[1].relations[0] == "^film.starred"  # only what is kept is gone on from
    everything = films.relations_of(":n1", hops=2)
    assert not everything.truncated
    assert len(films.relations_of(":n1", k=0)) == 0


def test_topics(films: KnowledgeGraph) -> None:
    n1 = films.node(":n1")
    for topic in (":n1", URIRef("http://example.org/n1"), "Edward Arnold", n1, ["Edward Arnold", ":n1"]):
        found = films.relations_of(topic)
        assert found.topics == (n1,)
        assert counted(found) == counted(films.relations_of(":n1"))
    stranger = films.relations_of([":nobody", ":n1"])
    assert [str(term) for term in stranger.unknown] == ["http://example.org/nobody"]
    assert counted(films.relations_of(":nobody")) == []
    with pytest.raises(QueryError, match="did you mean Edward Arnold"):
        films.relations_of("Edwrad Arnold")


def test_paths_that_come_back_to_the_topic() -> None:
    """As ``retrieve`` answers them: the spouse's spouse is the topic, and has a gender."""
    triples = [("carlos", "spouse", "lilli"), ("lilli", "spouse", "carlos"), ("carlos", "gender", "male")]
    graph = load([(f"urn:{s}", f"urn:{p}", f"urn:{o}") for s, p, o in triples])
    found = dict(counted(graph.relations_of("carlos", hops=3)))
    assert found["spouse", "spouse", "gender"] == 1
    assert found["spouse", "spouse"] == 1
    left = dict(counted(graph.relations_of("carlos", hops=3, returning=False)))
    assert left == {("spouse",): 1, ("^spouse",): 1, ("gender",): 1}


def test_as_json(films: KnowledgeGraph) -> None:
    found = json.loads(json.dumps(films.relations_of("Edward Arnold", 1, examples=5).as_json()))
    assert found["relations"][0]["path"] == ["^film.starred"]
    assert {term["value"] for term in found["relations"][0]["examples"]} == {
        "http://example.org/Kismet", "http://example.org/Wolfe",
    }  # fmt: skip
    assert found["linked"][0]["name"] == "Edward Arnold"


@pytest.mark.parametrize("wrong", [{"hops": 0}, {"k": -1}, {"examples": -1}])
def test_numbers_that_make_no_sense(films: KnowledgeGraph, wrong: dict[str, int]) -> None:
    ((name, number),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={number}"):
        films.relations_of(":n1", **wrong)


def test_memory_has_a_bound() -> None:
    triples = [("urn:hub", f"urn:p{i % 3}", f"urn:n{i}") for i in range(500)]
    graph = load(triples, limits=spaseq.Limits(query_bytes=4 << 10))
    with pytest.raises(LimitError, match="the relations of a topic"):
        graph.relations_of("urn:hub")
    assert len(graph.relations_of("urn:n1", hops=1)) == 1  # and it answers on


NODES = st.sampled_from("abcde").map("urn:n:{}".format)
EDGES = st.lists(
    st.tuples(NODES, st.sampled_from(["urn:p", "urn:q"]), NODES), min_size=1, max_size=12, unique=True
)


@settings(max_examples=examples(60), deadline=None)
@given(EDGES, st.sets(NODES, min_size=1, max_size=2), st.integers(1, 3), st.booleans())
def test_equal_to_walking(
    edges: list[tuple[str, str, str]], topics: set[str], hops: int, returning: bool
) -> None:
    """The same as sets of nodes that one goes along by hand, and as what `retrieve` walks."""
    graph = load(edges)
    here = [topic for topic in sorted(topics) if graph.node(topic) is not None]
    # Where a path is, and its last edge with the direction, against which it does not go on.
    reached: dict[tuple[str, ...], set[tuple[str, Any]]] = {(): {(topic, None) for topic in here}}
    wanted: dict[tuple[str, ...], int] = {}
    for _ in range(hops):
        further: dict[tuple[str, ...], set[tuple[str, Any]]] = {}
        for path, places in reached.items():
            for edge in edges:
                s, p, o = edge
                for name, source, target, ahead in ((p[4:], s, o, True), ("^" + p[4:], o, s, False)):
                    if any(at == source and last != (edge, not ahead) for at, last in places) and (
                        returning or target not in here
                    ):
                        further.setdefault((*path, name), set()).add((target, (edge, ahead)))
        reached = further
        wanted |= {path: len({at for at, _ in places}) for path, places in further.items()}
    found = graph.relations_of(sorted(topics), hops, k=1000, examples=2, returning=returning)
    assert dict(counted(found)) == wanted
    assert not found.truncated
    lengths = [(len(path.relations), -path.count) for path in found]
    assert lengths == sorted(lengths)
    if len(here) == 1:
        for path in found.paths[:5]:
            walked = retrieve(graph, [path.relations], here[0], 1000, returning=returning)
            ends = {ranked.path.nodes[-1] for ranked in walked}
            assert len(ends) == path.count
            assert set(path.examples) <= ends
