"""The background knowledge base: reading it, and GRAPH patterns on it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import rdflib
import zstandard
from pyoxigraph import Literal, NamedNode

from spaseq.errors import KnowledgeError, SpaseqWarning
from spaseq.language.reading.parser import parse, parse_group
from spaseq.language.syntax import Graph
from spaseq.patterns.kb import KnowledgeBase
from spaseq.terms.dictionary import Dictionary

KB = "http://e.org/kb"
TURTLE = "@prefix e: <http://e.org/> . e:a e:p 1 . e:b e:p 2 . [] e:p 3 ."


def graph(text: str) -> Graph:
    """The GRAPH of a group that has nothing else."""
    (found,) = parse_group(f"PREFIX e: <http://e.org/> {{ {text} }}").elements
    assert isinstance(found, Graph)
    return found


def values(kb: KnowledgeBase, text: str = "GRAPH e:kb { ?s e:p ?v }", name: str = "v") -> list[str]:
    dictionary = Dictionary()
    found = kb.solutions(graph(text), dictionary)
    assert found.event is None
    return sorted(dictionary.term(i).value for i in found.column(name).tolist() if i)


def _packed(path: Path, data: bytes) -> Path:
    match path.suffix:
        case ".gz":
            data = gzip.compress(data)
        case ".zst":
            data = zstandard.compress(data)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["kb.ttl", "kb.TTL", "kb.ttl.gz", "kb.ttl.zst", "kb.trig"])
def test_files(name: str, tmp_path: Path) -> None:
    path = _packed(tmp_path / name, TURTLE.encode())
    assert values(KnowledgeBase({KB: path})) == ["1", "2", "3"]
    assert values(KnowledgeBase({NamedNode(KB): str(path)})) == ["1", "2", "3"]  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("extension", "written"), [("rdf", "xml"), ("xml", "xml"), ("jsonld", "json-ld"), ("nt", "nt")]
)
def test_formats(extension: str, written: str, tmp_path: Path) -> None:
    path = tmp_path / f"kb.{extension}"
    rdflib.Graph().parse(data=TURTLE, format="turtle").serialize(path, format=written, encoding="utf-8")
    assert values(KnowledgeBase({KB: path})) == ["1", "2", "3"]


def test_text_and_rdflib() -> None:
    assert values(KnowledgeBase({KB: TURTLE})) == ["1", "2", "3"]
    parsed = rdflib.Graph().parse(data=TURTLE, format="turtle")
    assert values(KnowledgeBase({KB: parsed})) == ["1", "2", "3"]


@pytest.mark.parametrize("text", ["", " \t"])
def test_blank_text_is_an_empty_graph(text: str) -> None:
    assert values(KnowledgeBase({KB: text})) == []


def test_relative_iris_are_of_the_graph() -> None:
    kb = KnowledgeBase({"http://e.org/dir/kb": "<x> <http://e.org/p> 1 ."})
    assert values(kb, "GRAPH <http://e.org/dir/kb> { ?s e:p 1 }", "s") == ["http://e.org/dir/x"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("kb.ttl", "<http://e.org/a> <http://e.org/p> 1 .\noops", "kb.ttl, line 2"),
        ("kb.exe", "", "no RDF format has the extension 'exe'"),
        ("kb", "", "no RDF format"),
        (
            "kb.trig",
            "<http://e.org/g> { <http://e.org/a> <http://e.org/p> 1 }",
            "has a graph <http://e.org/g>",
        ),
        ("kb.ttl.gz", "not gzip", "kb.ttl.gz"),
        ("kb.ttl.zst", "not zst", "kb.ttl.zst"),
    ],
)
def test_what_cannot_be_read(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(KnowledgeError, match=message.replace("(", r"\(")):
        KnowledgeBase({KB: path})


@pytest.mark.parametrize(
    ("name", "text", "triples", "left_out"),
    [
        ("kb.ttl", "<urn:a> <urn:b> <urn:c> {| <urn:source> <urn:d> |} .", 2, "1 triple is left out"),
        ("kb.nt", "<urn:a> <urn:b> <<( <urn:a> <urn:b> <urn:c> )>> .\n" * 3, 0, "3 triples are left out"),
        ("kb.ttl", '<urn:a> <urn:b> "x"@ar--rtl, "x"@ar .', 1, "a literal with a base direction"),
    ],
)
def test_what_only_rdf12_has_is_left_out_and_counted(
    name: str, text: str, triples: int, left_out: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.warns(SpaseqWarning) as warned:
        kb = KnowledgeBase({KB: path})
    assert len(kb.graphs[NamedNode(KB)]) == triples
    (warning,) = warned
    assert left_out in str(warning.message)
    assert str(path) in str(warning.message)
    with pytest.warns(SpaseqWarning, match=f"Turtle of <{KB}>: 1 triple is left out"):
        KnowledgeBase({KB: "<urn:a> <urn:b> <urn:c> {| <urn:source> <urn:d> |} ."})


def test_what_is_not_there() -> None:
    with pytest.raises(KnowledgeError, match=r"missing\.ttl"):
        KnowledgeBase({KB: Path("missing.ttl")})
    with pytest.raises(KnowledgeError, match="not an IRI: 'kb'"):
        KnowledgeBase({"kb": TURTLE})
    with pytest.raises(KnowledgeError, match=r"Turtle of <http://e\.org/kb>, line 1"):
        KnowledgeBase({KB: "<oops"})


def test_graphs_that_a_query_names() -> None:
    query = parse(
        """PREFIX e: <http://e.org/>
        SELECT ?x WITHIN 5 SECONDS FROM STREAM S <http://e.org/s> FROM NAMED <http://e.org/named>
        WHERE { SEQ(A)
          DEFINE GPM A ON S {
            ?x e:p ?y OPTIONAL { GRAPH e:kb { ?y e:p ?z } }
            FILTER NOT EXISTS { GRAPH e:deep { ?x e:p ?z } }
          } }"""
    )
    names = ["http://e.org/deep", "http://e.org/named"]
    kb = KnowledgeBase({KB: TURTLE})
    assert [name.value for name in kb.missing(query)] == names
    with pytest.raises(
        KnowledgeError, match=r"not supplied: <http://e\.org/deep>; supplied: <http://e\.org/kb>"
    ):
        kb.require(query)
    assert KnowledgeBase(dict.fromkeys([KB, *names], TURTLE)).missing(query) == ()


def test_a_variable_ranges_over_the_graphs() -> None:
    one, two = "<http://e.org/a> <http://e.org/p> 1 .", "<http://e.org/a> <http://e.org/p> 2 ."
    kb = KnowledgeBase({"http://e.org/one": one, "http://e.org/two": two})
    assert values(kb, "GRAPH ?g { ?s e:p ?v }", "g") == ["http://e.org/one", "http://e.org/two"]
    named = kb.restrict([NamedNode("http://e.org/two")])
    assert values(named, "GRAPH ?g { ?s e:p ?v }", "g") == ["http://e.org/two"]
    assert values(named, "GRAPH e:one { ?s e:p ?v }") == ["1"]
    assert values(kb.restrict([]), "GRAPH ?g { ?s e:p ?v }") == ["1", "2"]
    assert values(named, "GRAPH ?g { ?s e:p+ ?v }") == ["2"]  # on the general route
    assert values(kb, "GRAPH ?g { VALUES ?g { e:one e:else } ?s e:p ?v }") == ["1"]


def test_a_pattern_is_evaluated_once() -> None:
    kb, dictionary = KnowledgeBase({KB: TURTLE}), Dictionary()
    pattern = graph("GRAPH e:kb { ?s e:p ?v FILTER(?v > 1) }")
    assert kb.solutions(pattern, dictionary) is kb.solutions(pattern, dictionary)
    context = {"v": dictionary.intern(Literal(2))}
    replaced = kb.solutions(pattern, dictionary, context)
    assert (len(replaced), list(replaced.columns)) == (1, ["s"])
    another = Dictionary()
    assert len(kb.solutions(pattern, another)) == 2


def test_engines_forget_nothing_of_a_shared_knowledge_base() -> None:
    kb, pattern = KnowledgeBase({KB: TURTLE}), graph("GRAPH e:kb { ?s e:p ?v BIND(?v + 40 AS ?w) }")
    found = []
    dictionaries = [Dictionary(), Dictionary()]
    users = [kb.unshared(), kb.unshared()]
    tables = [
        user.solutions(pattern, dictionary) for user, dictionary in zip(users, dictionaries, strict=True)
    ]
    for solutions, dictionary in zip(tables, dictionaries, strict=True):
        dictionary.sweep()
        found.append(sorted(dictionary.term(i).value for i in solutions.columns["w"].tolist()))
    assert found == [["41", "42", "43"]] * 2
