"""The stream catalogue: our own is well-formed, broken ones are refused, by the shapes and by the reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import NamedNode
from pyshacl import validate
from rdflib import Graph, URIRef

from spaseq.errors import SourceError
from spaseq.sources import GENERATED_AT, SourceOptions, load_catalog, open_source
from spaseq.sources._options import FORMATS, OPTIONS
from spaseq.terms.dictionary import Dictionary

# pyshacl still uses what rdflib deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")

ROOT = Path(__file__).parents[2]
SHAPES = ROOT / "vocab" / "catalog-shapes.ttl"
PREFIXES = """
@prefix : <http://example.org/> . @prefix dcat: <http://www.w3.org/ns/dcat#> .
@prefix dcterms: <http://purl.org/dc/terms/> . @prefix spaseq: <https://w3id.org/spaseq#> .
@prefix stax: <https://w3id.org/stax/ontology#> . @prefix vocals: <http://w3id.org/rsp/vocals#> .
"""
STREAM = """
:s a vocals:RDFStream ; dcterms:title "A stream" ;
    stax:hasStreamTypeUsage [ a stax:RdfStreamTypeUsage ; stax:hasStreamType stax:flatTripleStream ] ;
    spaseq:timePredicate spaseq:arrival ;
    vocals:hasEndpoint [ a vocals:StreamEndpoint ; dcat:accessURL <data/ticks.nt> ;
        spaseq:triplesPerEvent 2 ] .
"""


def conforms(text: str) -> bool:
    data = Graph().parse(data=PREFIXES + text, format="turtle", publicID="http://example.org/catalog")
    return bool(validate(data, shacl_graph=str(SHAPES), shacl_graph_format="turtle")[0])


def test_our_catalogue() -> None:
    path = ROOT / "streams" / "catalog.ttl"
    ok, _, report = validate(str(path), shacl_graph=str(SHAPES))
    assert ok, report
    entries = load_catalog(path)
    assert len(entries) >= 5
    graph = Graph().parse(path)
    listed = set(graph.objects(None, URIRef("http://www.w3.org/ns/dcat#dataset")))
    assert {str(iri) for iri in listed} == {stream.value for stream in entries}


def test_options_of_times_and_boundaries(tmp_path: Path) -> None:
    (tmp_path / "c.ttl").write_text(
        """PREFIX dcat: <http://www.w3.org/ns/dcat#> PREFIX vocals: <http://w3id.org/rsp/vocals#>
        PREFIX spaseq: <https://w3id.org/spaseq#> PREFIX dcterms: <http://purl.org/dc/terms/>
        <urn:s> a vocals:RDFStream ; spaseq:time "Date" ; vocals:hasEndpoint [ dcat:accessURL <s.csv> ;
          spaseq:timeFormat "%d.%m.%Y" ] .
        <urn:t> a vocals:RDFStream ; spaseq:time "dct:date/<urn:at>" ; vocals:hasEndpoint [
          dcat:accessURL <t.nt> ; spaseq:by spaseq:subject ] .
        <urn:u> a vocals:RDFStream ; vocals:hasEndpoint [ dcat:accessURL <u.nt> ; spaseq:by <urn:member> ] .
        """
    )
    found = {stream.value: entry.options for stream, entry in load_catalog(tmp_path / "c.ttl").items()}
    assert (found["urn:s"].time, found["urn:s"].time_format) == ("Date", "%d.%m.%Y")
    assert str(found["urn:t"].time) == "<http://purl.org/dc/terms/date>/<urn:at>"
    assert found["urn:t"].by == "subject"
    assert str(found["urn:u"].by) == "<urn:member>"


def test_the_vocabulary_knows_every_option() -> None:
    """``order`` and ``max_ahead`` say how a run takes a stream, not what it is."""
    names = {
        "time": "timePredicate", "time_format": "timeFormat", "triples": "triplesPerEvent",
    }  # fmt: skip
    terms = {names.get(name, name) for name in OPTIONS if name not in ("format", "order", "max_ahead")}
    for file in ("vocab/spaseq.ttl", "vocab/catalog-shapes.ttl"):
        used = {str(term).rpartition("#")[2] for triple in Graph().parse(ROOT / file) for term in triple}
        assert terms <= used, file


def test_our_terms_are_those_of_the_vocabulary() -> None:
    vocabulary = Graph().parse(ROOT / "vocab" / "spaseq.ttl")
    ours = "https://w3id.org/spaseq#"
    defined = {str(s) for s in vocabulary.subjects() if str(s).startswith(ours)}
    for file in ("streams/catalog.ttl", "vocab/catalog-shapes.ttl"):
        used = {str(term) for triple in Graph().parse(ROOT / file) for term in triple}
        shapes = {term for term in used if term.endswith("Shape")}
        assert {term for term in used if term.startswith(ours)} - shapes <= defined


def test_shapes_know_the_formats() -> None:
    for form in FORMATS:
        assert conforms(STREAM.replace("spaseq:triplesPerEvent 2", f'dcterms:format "{form}"'))


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ('dcterms:title "A stream" ;', ""),
        ("dcat:accessURL <data/ticks.nt> ;", ""),
        ("<data/ticks.nt>", '"data/ticks.nt"'),
        ("<data/ticks.nt>", "<data/ticks.nt>, <other.nt>"),
        ("spaseq:triplesPerEvent 2", "spaseq:triplesPerEvent 0"),
        ("spaseq:triplesPerEvent 2", 'spaseq:triplesPerEvent "2"'),
        ("spaseq:triplesPerEvent 2", 'dcterms:format "rdfxml"'),
        ("spaseq:triplesPerEvent 2", "dcat:mediaType <http://example.org/trig>"),
        ("spaseq:triplesPerEvent 2", 'spaseq:delimiter "::"'),
        ("spaseq:timePredicate spaseq:arrival", 'spaseq:timePredicate "arrival"'),
        ("stax:flatTripleStream", "stax:rdfStream"),
        ("a stax:RdfStreamTypeUsage ;", ""),
        ("a vocals:StreamEndpoint ;", ""),
        (":s a", "_:s a"),
    ],
)
def test_shapes_refuse(part: str, instead: str) -> None:
    assert conforms(STREAM)
    assert part in STREAM
    assert not conforms(STREAM.replace(part, instead))


def catalog(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a catalogue.ttl"
    path.write_text(PREFIXES + text)
    return path


def test_entries(tmp_path: Path) -> None:
    more = """
    :t a vocals:RDFStream ; vocals:hasEndpoint [ dcat:accessURL <rows> ; spaseq:context <../c%20d.jsonld> ;
        dcat:mediaType <https://www.iana.org/assignments/media-types/text/csv> ;
        spaseq:header "a,b" ; spaseq:delimiter " " ] ; spaseq:timePredicate :at .
    :u a vocals:RDFStream ; vocals:hasEndpoint [ dcat:accessURL <u.trig> ] .
    """
    entries = load_catalog(catalog(tmp_path, STREAM + more))
    s, t, u = (entries[NamedNode(f"http://example.org/{name}")] for name in "stu")
    assert s.title == "A stream"
    assert s.location == tmp_path / "data" / "ticks.nt"
    assert s.options == SourceOptions(time="arrival", triples=2)
    assert t.options == SourceOptions(
        format="csv",
        time=NamedNode("http://example.org/at"),
        context=tmp_path.parent / "c d.jsonld",
        header=("a", "b"),
        delimiter=" ",
    )
    assert (u.title, u.options.time) == ("http://example.org/u", GENERATED_AT)


def test_an_entry_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ticks.nt").write_text("<s:1> <p:p> <o:1> .\n<s:1> <p:q> <o:1> .\n")
    (entry,) = load_catalog(catalog(tmp_path, STREAM)).values()
    batches = list(open_source(entry.location, entry.stream, Dictionary(), entry.options, on_bad=print))
    assert [len(batch) for batch in batches] == [1]


@pytest.mark.parametrize(
    ("part", "instead", "message"),
    [
        ("dcat:accessURL <data/ticks.nt> ;", "", "accessURL"),
        ("vocals:hasEndpoint [", "vocals:hasEndpoint [ dcat:accessURL <x.nt> ] , [", "2 values"),
        ("<data/ticks.nt>", "<ftp://example.org/s>", "neither a file nor a URL of kafka"),
        ("spaseq:triplesPerEvent 2", "spaseq:triplesPerEvent 0", "triples='0'"),
        ("spaseq:triplesPerEvent 2", "dcat:mediaType <http://example.org/x>", "media type"),
        ("spaseq:triplesPerEvent 2", 'dcterms:format "rdfxml"', "unknown format"),
        (":s a", "undeclared:s a", "not Turtle"),
    ],
)
def test_reader_refuses(tmp_path: Path, part: str, instead: str, message: str) -> None:
    path = catalog(tmp_path, STREAM.replace(part, instead))
    with pytest.raises(SourceError, match=message):
        load_catalog(path)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        load_catalog(tmp_path / "none.ttl")
