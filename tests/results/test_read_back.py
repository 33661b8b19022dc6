"""What is written, other libraries' parsers read back as the same rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import BytesIO, StringIO

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Dataset
from rdflib.compare import to_isomorphic
from rdflib.namespace import PROV
from rdflib.query import Result
from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.events import EventBatch
from spaseq.language import syntax as s
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.interop import RdflibTerm, from_rdflib

from .making import EX, match, query, select, written

NAMES = ("a", "b", "été")
QUERY = query(select(*NAMES))
CONSTRUCT = query(s.Construct(()), {"ex": EX, "xsd": "http://www.w3.org/2001/XMLSchema#"})

#: What XML can write; a lone surrogate is no character, and NUL no part of an RDF string in practice.
text = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n\r \"'\\<>&,")
)
iris = st.sampled_from(["", "x", "a/b?c=d&e=f#g", "é", "%20"]).map(lambda tail: URIRef(EX + tail))
literals = st.one_of(
    st.builds(Literal, text),
    st.builds(Literal, text, lang=st.sampled_from(["en", "de-at"])),
    st.builds(Literal, text, datatype=st.just(URIRef(EX + "type"))),
    st.integers().map(Literal),
)
terms = st.one_of(iris, literals, st.sampled_from(["n1", "x"]).map(BNode))
rows = st.dictionaries(st.sampled_from(NAMES), terms)
matches = st.lists(st.lists(rows, max_size=3), max_size=3)

Rows = list[dict[str, RdflibTerm]]


def document(name: str, found: Sequence[Rows]) -> tuple[bytes, Rows]:
    data = written(name, QUERY, *(match(QUERY, some) for some in found))
    return data, [row for some in found for row in some]


@pytest.mark.parametrize("name", ["json", "xml"])
@given(found=matches)
def test_rdflib(name: str, found: list[Rows]) -> None:
    data, expected = document(name, found)
    result = Result.parse(BytesIO(data), format=name)
    assert result.vars == [Variable(n) for n in NAMES]
    assert [{str(k): v for k, v in row.items()} for row in result.bindings] == expected


@given(found=matches)
def test_rdflib_tsv(found: list[Rows]) -> None:
    data, expected = document("tsv", found)
    result = Result.parse(BytesIO(data), format="tsv")
    assert [{str(k): v for k, v in row.items()} for row in result.bindings] == expected


@pytest.mark.parametrize("name", ["json", "xml", "tsv"])
@given(found=matches)
def test_oxigraph(name: str, found: list[Rows]) -> None:
    data, expected = document(name, found)
    result = ox.parse_query_results(data, getattr(ox.QueryResultsFormat, name.upper()))
    assert isinstance(result, ox.QuerySolutions)
    assert [v.value for v in result.variables] == list(NAMES)
    read = [{n: row[n] for n in NAMES if row[n] is not None} for row in result]
    assert read == [{n: from_rdflib(term) for n, term in row.items()} for row in expected]


@given(found=matches)
def test_csv(found: list[Rows]) -> None:
    data, expected = document("csv", found)
    header, *lines = csv.reader(StringIO(data.decode(), newline=""))
    assert header == list(NAMES)
    assert lines == [
        [f"_:{row[n]}" if isinstance(row.get(n), BNode) else str(row.get(n, "")) for n in NAMES]
        for row in expected
    ]


def test_rdflib_csv() -> None:
    data, _ = document("csv", [[{"a": URIRef(EX + "x"), "b": Literal("y, z")}], [{"été": Literal("1")}]])
    result = Result.parse(BytesIO(data), format="csv")
    assert [{str(k): v for k, v in row.items()} for row in result.bindings] == [
        {"a": URIRef(EX + "x"), "b": Literal("y, z")},
        {"été": Literal("1")},
    ]


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("name", ["json", "xml", "tsv"])
def test_ask(name: str, matched: bool) -> None:
    ask = query(s.Ask())
    data = written(name, ask, *([match(ask)] if matched else []))
    answer = ox.parse_query_results(data, getattr(ox.QueryResultsFormat, name.upper()))
    assert bool(answer) is matched
    if name != "tsv":
        assert Result.parse(BytesIO(data), format=name).askAnswer is matched


graphs = st.lists(
    st.tuples(st.one_of(iris, st.sampled_from(["n1", "x"]).map(BNode)), iris, terms), min_size=1, max_size=4
)


@pytest.mark.filterwarnings("ignore:(Dataset|ConjunctiveGraph).*:DeprecationWarning")  # inside rdflib
@pytest.mark.parametrize("name", ["trig", "nquads"])
@given(found=st.lists(graphs, max_size=3))
def test_graphs_as_rdflib_reads_them(
    name: str, found: list[list[tuple[RdflibTerm, URIRef, RdflibTerm]]]
) -> None:
    expected = [match(CONSTRUCT, end=end, triples=triples) for end, triples in enumerate(found)]
    dataset = Dataset()
    dataset.parse(data=written(name, CONSTRUCT, *expected), format=name)
    for item in expected:
        [graph] = dataset.default_graph.subjects(PROV.generatedAtTime, Literal(item.end))
        assert to_isomorphic(dataset.graph(graph)) == to_isomorphic(item.graph())


@pytest.mark.parametrize("name", ["trig", "nq"])
def test_graphs_are_an_event_stream(name: str) -> None:
    sources = pytest.importorskip("spaseq.sources")
    triples = [(URIRef(EX + "x"), URIRef(EX + "p"), Literal(n)) for n in range(3)]
    found = [match(CONSTRUCT, end=end, triples=triples) for end in (3, 5, 5)]
    data = written({"nq": "nquads"}.get(name, name), CONSTRUCT, *found)
    bad: list[object] = []
    options = sources.SourceOptions(format=name)
    batches: list[EventBatch] = list(
        sources.open_source(BytesIO(data), ox.NamedNode(EX + "s"), Dictionary(), options, on_bad=bad.append)
    )
    assert bad == []
    assert [int(time) for batch in batches for time in batch.time] == [3, 5, 5]
    assert sum(len(batch.s) for batch in batches) == 9
