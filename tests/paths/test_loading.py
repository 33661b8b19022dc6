"""Graphs from everywhere: files, rdflib, tables, triples."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow
import pytest
import rdflib
from pyoxigraph import Literal, NamedNode

from spaseq.errors import KnowledgeError, SpaseqWarning
from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.graph import loading

TURTLE = """@prefix : <http://example.org/> .
:a :knows :b, [ :name "x" ] . :b :age 7 .
"""
N_TRIPLES = """<http://example.org/a> <http://example.org/knows> <http://example.org/b> .
<http://example.org/a> <http://example.org/knows> _:x .
_:x <http://example.org/name> "x" .
# a comment
<http://example.org/b> <http://example.org/age> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://example.org/a> <http://example.org/knows> <http://example.org/b> .
"""
PREFIXES = {"": "http://example.org/"}


def ages(graph: KnowledgeGraph) -> list[str]:
    return [str(target) for _, target in graph.pairs(":knows/:age", sources=":a")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kb.ttl", TURTLE),
        ("kb.trig", TURTLE + ":g { :a :knows :b }"),
        ("kb.nt", N_TRIPLES),
        ("kb.ntriples", TURTLE),
        ("kb.nq", N_TRIPLES.replace(" .", " <urn:g> .").replace("<urn:g> .\n_", ".\n_", 1)),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("scanned", [False, True])
def test_files(
    name: str, text: str, packed: bool, scanned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_is_worth_it", lambda _: scanned)
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    graph = load(path, PREFIXES)
    assert (len(graph), graph.nodes, graph.predicates) == (4, 5, 3)
    assert ages(graph) == ["7"]
    assert len(graph.pairs(":knows/:name")) == 1
    assert ages(load(str(path), PREFIXES)) == ["7"]


def test_prefixes_come_with_files_and_graphs(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text(TURTLE)
    assert ages(load(path)) == ["7"]
    graph = rdflib.Graph().parse(path)
    assert ages(load(graph)) == ["7"]
    assert load(graph, {"ex": "http://example.org/"}).prefixes["ex"] == "http://example.org/"


def test_tables_and_triples() -> None:
    rows = [
        ("http://example.org/a", "http://example.org/knows", "<http://example.org/b>"),
        ("http://example.org/b", "http://example.org/age", "7"),
        ("_:x", "http://example.org/name", '"Ann"@en'),
    ]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    columns = dict(zip("spo", zip(*rows, strict=True), strict=True))
    for source in (rows, iter(rows), pandas.DataFrame(columns), pyarrow.table(columns)):
        graph = load(source, PREFIXES)
        assert len(graph) == 3
        assert ages(graph) == ["7"]
        assert graph.node('"Ann"@en') is not None
    graph = load([(NamedNode("urn:a"), rdflib.URIRef("urn:p"), 1.5), ("urn:a", "urn:p", Literal("a b"))])
    assert {str(target) for _, target in graph.pairs("<urn:p>")} == {"1.5", "a b"}


def test_numbers_and_terms() -> None:
    graph = load([("urn:a", "urn:p", "urn:b"), ("urn:b", "urn:q", "x"), ("urn:a", "urn:p", "urn:b")])
    subjects, predicates, objects = (column.tolist() for column in graph.edges())
    found = zip(
        map(graph.term, subjects), map(graph.predicate, predicates), map(graph.term, objects), strict=True
    )
    assert {tuple(map(str, triple)) for triple in found} == {
        ("urn:a", "urn:p", "urn:b"),
        ("urn:b", "urn:q", "x"),
    }
    for node in range(graph.nodes):
        assert graph.node(graph.term(node)) == graph.node(graph.ox_term(node)) == node
    assert graph.predicate_number("urn:q") == 1
    assert graph.predicate_number("urn:a") is graph.node("urn:p") is None
    for wrong in (-1, 3):
        with pytest.raises(KeyError):
            graph.term(wrong)
    assert repr(graph) == "<KnowledgeGraph: 2 edges, 3 nodes, 2 predicates>"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("kb.ttl", "<urn:a> <urn:b>\n <urn:c", "kb.ttl, line 2: "),
        ("kb.nt", "<urn:a> <urn:b> <urn:c> .\n<urn:a> .", "kb.nt, line 2: "),
        ("kb.doc", "", "no RDF format has the extension 'doc'"),
        ("kb.nt.gz", "not packed", "is not gz-compressed"),
        ("kb.ttl.zst", "not packed", "kb.ttl.zst: "),
    ],
)
def test_what_cannot_be_read(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(KnowledgeError, match=message.replace("(", r"\(")):
        load(path)


_ANNOTATED = "<urn:a> <urn:b> <urn:c> {| <urn:source> <urn:d> |} ."
_REIFIED = "<urn:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <urn:a> <urn:b> <urn:c> )>>"


@pytest.mark.parametrize(
    ("name", "text", "edges", "left_out"),
    [
        ("kb.ttl", _ANNOTATED, 2, "1 triple is left out, the first for a triple term"),
        ("kb.trig", f"<urn:g> {{ {_ANNOTATED} }}", 2, "1 triple is left out, the first for a triple term"),
        ("kb.nt", f"{_REIFIED} .\n<urn:a> <urn:b> <urn:c> .\n" * 3, 1, "3 triples are left out"),
        ("kb.nq", f"<urn:a> <urn:b> <urn:c> .\n{_REIFIED} <urn:g> .\n", 1, "1 triple is left out"),
        ("kb.ttl", '<urn:a> <urn:b> "x"@ar--rtl, "x"@ar .', 1, "a literal with a base direction"),
    ],
)
def test_what_only_rdf12_has_is_left_out_and_counted(
    name: str, text: str, edges: int, left_out: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.warns(SpaseqWarning) as warned:
        graph = load(path)
    assert len(graph) == edges
    assert len(warned) == 1
    assert left_out in str(warned[0].message)
    assert str(path) in str(warned[0].message)


def test_what_is_no_triple() -> None:
    with pytest.raises(KnowledgeError, match="No such file"):
        load("nowhere.ttl")
    with pytest.raises(KnowledgeError, match="triple 2: 'a b' is not an IRI"):
        load([("urn:a", "urn:p", "x"), ("a b", "urn:p", "x")])
    with pytest.raises(KnowledgeError, match="triple 1: not enough values"):
        load([("urn:a", "urn:p")])  # type: ignore[list-item]  # which is the point
    with pytest.raises(KnowledgeError, match="triple 1: not an RDF term: None"):
        load([("urn:a", "urn:p", None)])
    with pytest.raises(KnowledgeError, match="three columns, not 2"):
        load(pyarrow.table({"s": ["urn:a"], "p": ["urn:b"]}))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (
            None,
            "no RDF format has the extension 'dat': say which it is by format=, or --graph-format, of nt,",
        ),
        ("turtel", "'turtel' is no RDF format: say which it is by format="),
    ],
)
def test_a_file_whose_format_nobody_says(form: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kb.dat"
    path.write_text("<urn:a> <urn:p> <urn:b>, <urn:c> .")
    with pytest.raises(KnowledgeError) as raised:
        load(path, format=form)
    assert message in str(raised.value)
    assert len(load(path, format="ttl")) == len(load(path, format=".TTL")) == 2


def test_a_format_is_for_files() -> None:
    with pytest.raises(KnowledgeError, match="format='nt' is for files: the source is list"):
        load([("urn:a", "urn:p", "urn:b")], format="nt")
