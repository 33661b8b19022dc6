"""``vocab/spaseq.ttl``: matches keep to its shapes, and the code to its terms, both ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyshacl import validate
from rdflib import Graph, Literal, URIRef
from rdflib.namespace import DCTERMS, OWL, PROV, RDF, RDFS

import spaseq
from spaseq.rdf import description as vocabulary
from spaseq.rdf import register
from tests.rdf import trades
from tests.rdf.trades import CONSTRUCTED, PREFIXED, TRADES, E

# pyshacl still uses what rdflib deprecates.
pytestmark = [*trades.pytestmark, pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")]

ROOT = Path(__file__).parents[2]
OURS = "https://w3id.org/spaseq#"
SHAPES = ROOT / "vocab" / "match-shapes.ttl"


def described(query: str = PREFIXED) -> Graph:
    """What a service says of matches, of events with and without a name."""
    engine = spaseq.Engine()
    with register(engine, query, "described") as service:
        for tick, price in enumerate([3, 2, 1]):
            name = None if tick == 1 else E[f"e{tick}"]
            engine.push(TRADES, f"<{E.acme}> <{E.price}> {price} .", tick, name=name)
        assert len(service) >= 2
        asked = f"CONSTRUCT {{ ?s ?p ?o }} {{ SERVICE <{service.iri}> {{ ?s ?p ?o }} }}"
        found = Graph().query(asked).graph
        assert found is not None
        assert (None, RDF.type, vocabulary.MATCH) in found
        return found


@pytest.mark.parametrize("query", [PREFIXED, CONSTRUCTED, PREFIXED.replace("A , B", "A ; B+")])
def test_matches_keep_to_the_shapes(query: str) -> None:
    ok, _, report = validate(described(query), shacl_graph=str(SHAPES), shacl_graph_format="turtle")
    assert ok, report


@pytest.mark.parametrize(
    "predicate",
    [
        RDFS.label,
        vocabulary.OF_QUERY,
        vocabulary.START,
        vocabulary.MATCHED_EVENT,
        vocabulary.BY_GPM,
        PROV.generatedAtTime,
        PROV.wasDerivedFrom,
        PROV.qualifiedDerivation,
        PROV.entity,
        DCTERMS.isPartOf,
        DCTERMS.hasPart,
    ],
)
def test_the_shapes_miss_whatever_is_missing(predicate: URIRef) -> None:
    graph = described()
    graph.remove((None, predicate, None))
    assert not validate(graph, shacl_graph=str(SHAPES), shacl_graph_format="turtle")[0]


def test_the_shapes_refuse_an_end_before_the_start() -> None:
    graph = described()
    match = next(graph.subjects(RDF.type, vocabulary.MATCH))
    graph.set((match, vocabulary.START, Literal(99)))
    assert not validate(graph, shacl_graph=str(SHAPES), shacl_graph_format="turtle")[0]


def test_the_terms_of_the_code_are_those_of_the_vocabulary() -> None:
    vocabulary_ = Graph().parse(ROOT / "vocab" / "spaseq.ttl")
    defined = {str(s).removeprefix(OURS) for s in vocabulary_.subjects() if str(s).startswith(OURS)}
    source = "".join(path.read_text() for path in Path(spaseq.__file__).parent.rglob("*.py"))
    used = set(re.findall(r'_OURS \+ "(\w+)"', source))
    assert used == defined
    assert len(re.findall(re.escape(f'"{OURS}"'), source)) == len(re.findall("_OURS: Final =", source))


def test_every_term_is_documented() -> None:
    graph = Graph().parse(ROOT / "vocab" / "spaseq.ttl")
    kinds = {OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty, OWL.NamedIndividual}
    for term in {s for s in graph.subjects() if str(s).startswith(OURS)}:
        assert set(graph.objects(term, RDF.type)) & kinds
        assert len(list(graph.objects(term, RDFS.label))) == len(list(graph.objects(term, RDFS.comment))) == 1
        assert list(graph.objects(term, RDFS.isDefinedBy)) == [URIRef(OURS.rstrip("#"))]


def test_the_shapes_use_terms_of_the_vocabulary() -> None:
    vocabulary_ = Graph().parse(ROOT / "vocab" / "spaseq.ttl")
    used = {str(term) for triple in Graph().parse(SHAPES) for term in triple if str(term).startswith(OURS)}
    assert {term for term in used if not term.endswith("Shape")} <= {str(s) for s in vocabulary_.subjects()}
