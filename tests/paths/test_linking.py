"""What is meant by a name: nodes by labels, last segments and spelling; predicates by their last segments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Literal, URIRef
from typer.testing import CliRunner

import spaseq.paths
from spaseq.cli import app
from spaseq.errors import QueryError
from spaseq.paths import KnowledgeGraph, load, retrieve
from spaseq.paths.graph.linking.index import Index, key
from tests.conftest import examples

KB = """
@prefix : <http://example.org/films/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix p: <http://example.org/film.film.> .
:n1 rdfs:label "Edward Arnold", "Eduard Arnold"@de ; skos:altLabel "G. E. A. Schneider" .
:Kismet p:starred :n1 ; p:year 1944 ; p:directed_by :William_Dieterle .
:Kismet_%281955%29 rdfs:label "Kismet" ; p:year 1955 .
:Portrait p:directed_by :William_Dieterle . :n1 <http://example.org/person.person.year> 1890 .
:n2 rdfs:label "Kismet" ; p:starred :n1 , :William_Dieterle .
"""

FILMS = "http://example.org/films/"


@pytest.fixture
def kb(tmp_path: Path) -> str:
    path = tmp_path / "kb.ttl"
    path.write_text(KB)
    return str(path)


@pytest.fixture(params=["loaded", "opened"])
def graph(request: pytest.FixtureRequest, kb: str) -> KnowledgeGraph:
    loaded = load(kb)
    if request.param == "loaded":
        return loaded
    loaded.save(kb + ".spaseq")
    return spaseq.paths.open(kb + ".spaseq")


def linked(graph: KnowledgeGraph, name: str) -> list[tuple[str, float, str]]:
    return [(str(c.term).removeprefix(FILMS), c.score, c.by) for c in graph.link(name)]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Edward Arnold", [("n1", 1.0, "label")]),
        ("edward_arnold", [("n1", 1.0, "label")]),
        ("eduard arnold", [("n1", 1.0, "label")]),
        ("G.E.A. Schneider", [("n1", 0.95, "other label")]),
        ("william dieterle", [("William_Dieterle", 0.9, "last segment")]),
        ("Kismet (1955)", [("Kismet_%281955%29", 0.9, "last segment")]),
        # Of equal scores the one with more edges first.
        (
            "Kismet",
            [("n2", 1.0, "label"), ("Kismet_%281955%29", 1.0, "label"), ("Kismet", 0.9, "last segment")],
        ),
        ("1944", [("1944", 0.8, "literal")]),
        ("", []),
        ("!?", []),
        ("Zanzibar", []),
    ],
)
def test_names(graph: KnowledgeGraph, name: str, found: list[tuple[str, float, str]]) -> None:
    assert linked(graph, name) == found


def test_spelling(graph: KnowledgeGraph) -> None:
    for wrong in ("Edwrd Arnold", "Edvard Arnhold", "Edward Arnould", "édward arnold"):
        best = graph.link(wrong)[0]
        assert (best.label, best.by, 0.5 < best.score < 1) == ("Edward Arnold", "spelling", True), wrong
    assert len(graph.link("Kismat", k=2)) == 2
    with pytest.raises(ValueError, match="k=-1"):
        graph.link("Kismet", k=-1)


@pytest.mark.parametrize(
    ("written", "by"),
    [
        ("Arnold, Edward", "order"),
        ("ARNOLD EDWARD", "order"),
        ("E. Arnold", "short"),
        ("Arnold, E.", "short"),
        ("E Arnold", "short"),
        ("Arnold", "short"),
        ("films with Edward Arnold in them", "phrase"),
        ("Edward Arnold's", "phrase"),
    ],
)
def test_other_ways_to_write_a_name(graph: KnowledgeGraph, written: str, by: str) -> None:
    best = graph.link(written)[0]
    assert (best.label, best.by, best.asked) == ("Edward Arnold", by, written)
    assert not best.is_called_so
    assert 0.5 < best.score < 1
    with pytest.raises(QueryError, match="did you mean Edward Arnold"):
        graph.relations_of(written)


def test_a_longer_name_in_a_phrase_comes_first(graph: KnowledgeGraph) -> None:
    found = graph.link("was Kismet (1955) directed by William Dieterle?")
    assert [candidate.label for candidate in found[:3]] == ["William Dieterle", "Kismet", "Kismet"]
    assert {candidate.by for candidate in found[:3]} == {"phrase"}


def test_what_is_in_no_name() -> None:
    graph = load([("urn:p:Ada_Lovelace", "urn:knows", "urn:p:Charles_Babbage")])
    assert graph.link("B. Lovelace")[0].by == "spelling"
    assert [candidate.label for candidate in graph.link("C. Babbage", k=1)] == ["Charles Babbage"]
    assert graph.link("J. Babbage")[0].by == "spelling"
    family = load(
        [(f"urn:p:{first}_Babbage", "urn:knows", "urn:x") for first in ("Ann", "Ben", "Charles", "Cora")]
    )
    short = [candidate.label for candidate in family.link("C. Babbage") if candidate.by == "short"]
    assert sorted(short) == ["Charles Babbage", "Cora Babbage"]
    assert graph.link("A.") == graph.link("of it") == []


def test_all_nodes_of_a_name_are_topics() -> None:
    edges = [(f"urn:n:{i}", "urn:knows", "urn:n:x") for i in range(16)]
    graph = load([*edges, *((s, "http://www.w3.org/2000/01/rdf-schema#label", "Ada") for s, _, _ in edges)])
    assert len(graph.relations_of("ada").topics) == 16
    assert len(retrieve(graph, [["knows"]], "Ada", k=20)) == 16
    assert len(graph.link("Ada")) == 10


def test_labels_by_any_predicate() -> None:
    graph = load([("urn:x:1", "urn:title", "The Third Man"), ("urn:x:1", "urn:knows", "urn:x:2")])
    (by_value,) = graph.link("third man the") or [None]
    assert by_value is None or by_value.by == "order"
    assert [(str(c.term), c.by) for c in graph.link("The Third Man")] == [("The Third Man", "literal")]
    found = graph.link("the third man", labels=["urn:title"])
    assert [(str(c.term), c.score, c.by) for c in found] == [("urn:x:1", 1.0, "label")]
    assert graph.link("the third man", labels="urn:title") == found
    assert graph.relations_of("the third man", labels="urn:title").topics == (graph.node("urn:x:1"),)
    with pytest.raises(QueryError, match=r"no edge has this predicate(\n.*)*did you mean <urn:title>"):
        graph.link("the third man", labels=["urn:titel"])


def test_topics_by_the_labels_named(tmp_path: Path) -> None:
    path = tmp_path / "films.nt"
    path.write_text('<urn:x:1> <urn:title> "The Third Man" .\n<urn:x:1> <urn:by> <urn:x:Carol_Reed> .\n')
    graph = load(path)
    found = retrieve(graph, [["by"]], "the third man", labels="urn:title")
    assert [ranked.text for ranked in found] == ["1 → by → Carol Reed"]
    assert len(retrieve(graph, [["by"]], "the third man")) == 0  # the literal itself
    called = ("retrieve", "-g", str(path), "--topic", "the third man", '["by"]')
    done = CliRunner().invoke(app, [*called, "--labels", "urn:title"])
    assert (done.exit_code, done.stdout) == (0, "(1, by, Carol Reed)\n")
    wrong = CliRunner().invoke(app, [*called, "--labels", "urn:titel"])
    assert wrong.exit_code == 2
    assert "did you mean <urn:title>" in wrong.stderr


def test_a_topic_by_its_name(graph: KnowledgeGraph) -> None:
    by_name = retrieve(graph, [["^starred", "year"]], "Edward Arnold")
    by_term = retrieve(graph, [["^starred", "year"]], URIRef(FILMS + "n1"))
    assert by_name.topics == by_term.topics == (graph.node(":n1"),)
    assert [r.path for r in by_name] == [r.path for r in by_term] != []
    assert [(c.label, c.score) for c in by_name.linked] == [("Edward Arnold", 1.0)]
    assert by_name.as_json()["linked"][0]["term"]["value"] == FILMS + "n1"
    assert by_term.linked == ()


def test_a_name_of_several_nodes(graph: KnowledgeGraph) -> None:
    """All that are called so in the best way are topics."""
    found = retrieve(graph, ["(.|^.)"], ["Kismet", ":Portrait"])
    names = {str(graph.term(topic)).removeprefix(FILMS) for topic in found.topics}
    assert names == {"n2", "Kismet_%281955%29", "Portrait"}


def test_terms_are_no_names(graph: KnowledgeGraph) -> None:
    """What the graph has, and what is written as a term, is not looked for among names."""
    for topic in (":Kismet", f"<{FILMS}Kismet>", FILMS + "Kismet", URIRef(FILMS + "Kismet")):
        found = retrieve(graph, ["p:year"], topic)
        assert (found.linked, len(found)) == ((), 1)
    for stranger in (Literal("Edward Arnold!"), '"Kismet?"', "<urn:Kismet>", ":kismet"):
        found = retrieve(graph, ["p:year"], [stranger, ":n1"])
        assert (len(found.unknown), found.linked) == (1, ())


def test_names_of_nobody(graph: KnowledgeGraph) -> None:
    with pytest.raises(QueryError) as raised:
        retrieve(graph, ["p:year"], "Edwrd Arnold")
    assert str(raised.value).splitlines() == [
        "<topic>:1:1: no node of the graph is called so", "    Edwrd Arnold", "    ^",
        "hint: did you mean Edward Arnold?",
    ]  # fmt: skip
    with pytest.raises(QueryError, match="the prefix 'ex:' is not declared"):
        retrieve(graph, ["p:year"], "ex:kismet")
    with pytest.raises(QueryError, match="called so"):
        retrieve(graph, ["p:year"], "Zanzibar: the film")


def test_predicates_by_their_last_segments(graph: KnowledgeGraph) -> None:
    """``film.film.starred`` by ``starred``; a name of several stands for all of them."""
    assert len(retrieve(graph, [["starred"]], ":Kismet")) == 1
    assert len(retrieve(graph, [["film.film.year"]], [":Kismet", ":n1"])) == 1
    assert len(retrieve(graph, [["year"]], [":Kismet", ":n1"])) == 2
    (rejected,) = retrieve(graph, [["stared"]], ":Kismet").rejected
    assert "did you mean film.film.starred?" in rejected.reason


def test_a_whole_name_comes_before_a_last_segment() -> None:
    graph = load([("urn:a", "urn:year", "1"), ("urn:a", "urn:film.year", "2")])
    assert [r.path.terms[-1] for r in retrieve(graph, [["year"]], "urn:a")] == [Literal("1")]


def test_the_index_is_made_once(graph: KnowledgeGraph) -> None:
    assert graph.names is graph.names
    assert graph.linker is graph.linker
    retrieve(graph, [["year"]], "Edward Arnold")
    assert graph.names.index is graph.names.index


def test_the_command_line(kb: str) -> None:
    def call(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["retrieve", "-g", kb, *arguments])
        return done.exit_code, done.stdout, done.stderr

    assert call("--topic", "Edward Arnold", '["^starred", "year"]')[:2] == (
        0, "(Kismet, film.film.starred, Edward Arnold)\n(Kismet, film.film.year, 1944)\n"
    )  # fmt: skip
    code, _, error = call("--topic", "Kismet", "(.|^.)")
    assert (code, "2 nodes are called Kismet: :n2, " in error) == (0, True), error
    for topic, hint in (("Edwrd Arnold", "did you mean Edward Arnold?"), (":Kismett", "did you mean Kismet")):
        code, out, error = call("--topic", topic, "(.|^.)")
        assert (code, out, hint in error) == (2, "", True), error
    for option in ("--from", "--to"):
        done = CliRunner().invoke(app, ["paths", ".", "-g", kb, option, "ex:kismet"])
        assert (done.exit_code, done.stdout) == (2, "")
        assert "the prefix 'ex:' is not declared" in done.stderr


words = st.text(st.sampled_from("abcdé ñ\U0001f600ßİ_1"), max_size=90)


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(words, st.integers(0, 9), st.integers(0, 3)), max_size=12), words)
def test_names_are_found_as_by_looking_at_all(entries: list[tuple[str, int, int]], wanted: str) -> None:
    index = Index.of([(key(name), number, kind) for name, number, kind in entries])
    again = Index.of_arrays(index.arrays())
    expected = sorted({(n, k) for name, n, k in entries if key(name) == key(wanted) != ""})
    for one in (index, again):
        places = one.same(wanted)
        assert sorted((int(one.numbers[p]), int(one.kinds[p])) for p in places) == expected
    alike = index.alike(wanted)
    assert all(0.6 <= likeness <= 1 for _, likeness in alike)
    for name, _, _ in entries:  # a name is the most like itself, and with a letter less still like it
        found = [index.name(place).decode() for place, _ in index.alike(name)]
        assert not key(name) or len(key(name)) > 64 or found[0] == key(name)
