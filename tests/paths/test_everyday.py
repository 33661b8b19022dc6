"""Everyday graph work: edge lists, networkx, named graphs, Turtle, components, what is in a graph."""

from __future__ import annotations

import gzip
from pathlib import Path

import networkx as nx
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import spaseq.paths
from spaseq.cli import app
from spaseq.errors import KnowledgeError, SpaseqWarning
from spaseq.paths import load, retrieve, to_networkx

BASE = "http://example.org/"
ROWS = [
    ("Ada Lovelace", "knows", "Charles Babbage"),
    ("Ada Lovelace", "born", "1815"),
    ("X", "mail", "urn:mail:x"),
]


@pytest.mark.parametrize("header", ["", "source{0}relation{0}target\n"])
@pytest.mark.parametrize(
    ("name", "separator"), [("edges.tsv", "\t"), ("edges.csv", ","), ("edges.csv.gz", ",")]
)
def test_edge_lists(tmp_path: Path, name: str, separator: str, header: str) -> None:
    text = header.format(separator) + "".join(f"{separator.join(row)}\n" for row in ROWS) + "\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    graph = load(path, base=BASE)
    assert len(graph) == 3
    assert [str(o) for _, o in graph.pairs(":knows", ":Ada_Lovelace")] == [f"{BASE}Charles_Babbage"]
    assert "1815" in graph  # the number
    assert "urn:mail:x" in graph
    assert [ranked.text for ranked in retrieve(graph, [["knows"]], "ada lovelace")] == [
        "Ada Lovelace → knows → Charles Babbage"
    ]
    assert graph.now.names.node(graph.node(":Ada_Lovelace") or 0) == "Ada Lovelace"


def test_rows_of_two_nodes_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text('"Lovelace, Ada",Babbage\n')
    graph = load(path, base=BASE)
    assert [str(s) for s, _ in graph.pairs(":edge")] == [f"{BASE}Lovelace%2C_Ada"]
    assert graph.link("Ada Lovelace")[0].label == "Lovelace, Ada"


def test_edge_lists_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "edges.tsv"
    path.write_text("a\tb\tc\na\tb\tc\td\n")
    with pytest.raises(KnowledgeError, match=r"edges\.tsv, line 2: an edge has two or three cells, not 4"):
        load(path, base=BASE)
    path.write_text("a\tb\tc\n")
    with pytest.raises(
        KnowledgeError, match=r"edges\.tsv: triple 1: 'a' is not an IRI.*base='http://example\.org/'"
    ):
        load(path)
    path.write_bytes(b"a\tb\t\xff\n")
    with pytest.raises(KnowledgeError, match=r"edges\.tsv"):
        load(path, base=BASE)


def test_triples_and_tables_by_plain_names() -> None:
    graph = load([("carlos", "spouse", "lilli"), ("carlos", "name", '"Carlos"')], base=BASE)
    assert ":lilli" in graph
    assert rdflib.Literal("Carlos") in graph
    assert ":lill" not in graph
    assert f"{BASE}nobody" not in graph


def test_networkx_in_and_out() -> None:
    network = nx.DiGraph()
    network.add_edge("ada", "charles", relation="knows")
    network.add_edge("charles", 7)
    graph = load(network, base=BASE)
    assert [(str(s), str(o)) for s, o in graph.pairs(":knows/:edge")] == [(f"{BASE}ada", f"{BASE}7")]
    again = load(to_networkx(graph))
    assert {*map(tuple, _triples(again))} == {*map(tuple, _triples(graph))}
    assert to_networkx(graph).nodes[rdflib.URIRef(f"{BASE}ada")] == {"label": "ada"}
    with pytest.raises(KnowledgeError, match="base="):
        load(network)


def _triples(graph: spaseq.paths.KnowledgeGraph) -> set[tuple[object, ...]]:
    s, p, o = graph.edges()
    return {(graph.term(a), graph.predicate(b), graph.term(c)) for a, b, c in zip(s, p, o, strict=True)}


def test_one_named_graph(tmp_path: Path) -> None:
    path = tmp_path / "kb.nq"
    path.write_text(
        "<urn:a> <urn:p> <urn:b> <urn:g> .\n<urn:a> <urn:p> <urn:c> <urn:h> .\n<urn:a> <urn:p> <urn:d> .\n"
    )
    assert len(load(path)) == 3
    assert [str(o) for _, o in load(path, graph="urn:g").pairs("<urn:p>")] == ["urn:b"]
    with pytest.raises(KnowledgeError, match="it has no graph <urn:x>: it has <urn:g>, <urn:h>"):
        load(path, graph="urn:x")
    with pytest.raises(KnowledgeError, match="graph='urn:g' is for files"):
        load([("urn:a", "urn:p", "urn:b")], graph="urn:g")


def test_turtle(tmp_path: Path) -> None:
    graph = load([("a", "p", "b"), ("a", "year", "1944")], base=BASE)
    path = tmp_path / "kb.ttl"
    path.write_text(graph.to_turtle())
    assert "@prefix : <http://example.org/>" in graph.to_turtle()
    assert _triples(load(path)) == _triples(graph)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12))
def test_components(edges: list[tuple[int, int]]) -> None:
    graph = load([(f"urn:n:{s}", "urn:p", f"urn:n:{o}") for s, o in edges])
    found = [{str(term) for term in graph.terms(nodes)} for nodes in graph.components()]
    wanted = nx.connected_components(nx.Graph((f"urn:n:{s}", f"urn:n:{o}") for s, o in edges))
    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))
    assert [len(nodes) for nodes in found] == sorted((len(nodes) for nodes in found), reverse=True)


def test_relations_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "edges.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in ROWS))
    built = CliRunner().invoke(app, ["graph", "build", str(path), "--base", BASE])
    assert built.exit_code == 0, built.output
    done = CliRunner().invoke(
        app, ["graph", "relations", str(path.with_suffix(".spaseq")), "Ada Lovelace", "--hops", "1"]
    )
    assert done.stdout.splitlines() == ['["knows"] (1): Charles Babbage', '["born"] (1): 1815']
    wrong = CliRunner().invoke(app, ["graph", "relations", str(path.with_suffix(".spaseq")), "Ada Lovelase"])
    assert wrong.exit_code != 0
    assert "did you mean Ada Lovelace?" in wrong.stderr


def test_unknown_predicates_and_nodes_warn_with_the_nearest_name() -> None:
    graph = load([("carlos", "spouse", "lilli")], base=BASE)
    asked = {
        "pairs": lambda: graph.pairs(":spose", ":karlos"),
        "batches": lambda: list(graph.batches(":spose", iter([":karlos"]))),
        "paths": lambda: list(graph.paths(":spose", ":karlos")),
    }
    for ask in asked.values():
        with pytest.warns(SpaseqWarning) as told:
            assert not len(ask())  # type: ignore[arg-type]
        assert [str(one.message) for one in told] == [
            "no edge has the predicate :spose: did you mean :spouse?",
            "the graph has no node :karlos: did you mean :carlos?",
        ]
        assert {one.filename for one in told} == {__file__}
    assert len(graph.pairs(":spouse|^:spouse", [":carlos", ":lilli"])) == 2  # nothing to warn of


def test_of_many_unknown_nodes_some_are_named() -> None:
    graph = load([("a", "p", "b")], base=BASE)
    found = graph.check(":p", [f":stranger{i}" for i in range(9)])
    assert found[2:] == ("the graph has no node :stranger2", "the graph has no node of 6 more terms")
