"""What editors put before a text, and terms that are longer than a parser's buffer."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

import spaseq
from spaseq.errors import KnowledgeError
from spaseq.paths import load
from spaseq.sources.catalog import load_catalog
from tests.sources.reading import Trickle, pieces, read

MARK = b"\xef\xbb\xbf"
STREAM = "http://example.org/s"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
QUERY = (
    f"SELECT ?x WITHIN 9 SECONDS FROM STREAM S <{STREAM}> "
    "WHERE { SEQ(A) DEFINE GPM A ON S { ?x <urn:p> 1 } }"
)

TEXTS = {
    "nq": f'<urn:g> {TIME} "1"^^{INTEGER} .\n<urn:a> <urn:p> "1"^^{INTEGER} <urn:g> .\n',
    "trig": f"<urn:g> {TIME} 1 . <urn:g> {{ <urn:a> <urn:p> 1 }}\n",
    "nt": f'<urn:a> <urn:p> "1"^^{INTEGER} .\n<urn:a> {TIME} "1"^^{INTEGER} .\n',
    "ttl": f"<urn:a> <urn:p> 1 . <urn:a> {TIME} 1 .",
    "ndjsonld": f'{{"@id": "urn:g", "urn:p": 1, "{TIME[1:-1]}": 1}}\n',
    "jsonld": f'{{"@id": "urn:g", "{TIME[1:-1]}": 1, "@graph": {{"@id": "urn:a", "urn:p": 1}}}}',
    "messages": f'VERSION "1.2-messages"\n<urn:g> {TIME} 1 . GRAPH <urn:g> {{ <urn:a> <urn:p> 1 }}\n',
}

#: No parser's buffer holds it.
LONG = "x" * ((1 << 24) + 1)


@pytest.mark.parametrize("size", [1, 2, 1 << 20])
@pytest.mark.parametrize("form", TEXTS)
def test_a_mark_before_a_stream(form: str, size: int) -> None:
    options = f"format={form}" + ("&triples=2" if form in ("nt", "ttl") else "")
    reading = read(Trickle(pieces(MARK + TEXTS[form].encode(), size)), options)
    assert reading.bad == []
    assert reading.times == [1]


@pytest.mark.parametrize("name", ["s.nq.gz", "s.nq.zst"])
def test_a_mark_before_a_compressed_stream(name: str, tmp_path: Path) -> None:
    pack = gzip.compress if name.endswith("gz") else zstandard.compress
    file = tmp_path / name
    file.write_bytes(pack(MARK + TEXTS["nq"].encode()))
    assert len(list(spaseq.run(QUERY, {"S": file}))) == 1


def test_a_mark_alone() -> None:
    for text in (b"", MARK, MARK[:2]):
        assert read(text, "format=nq").times == []


@pytest.mark.parametrize("name", ["kb.ttl", "kb.nt", "kb.ttl.gz", "kb.nt.zst"])
def test_a_mark_before_a_background_graph(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    text = MARK + b"<urn:a> <urn:p> <urn:b> .\n"
    packed = {".gz": gzip.compress, ".zst": zstandard.compress}.get(file.suffix)
    file.write_bytes(packed(text) if packed else text)
    query = QUERY.replace("?x <urn:p> 1", "?x <urn:p> 1 GRAPH <urn:kb> { ?x <urn:p> <urn:b> }")
    engine = spaseq.Engine(kb={"urn:kb": file})
    handle = engine.register(query)
    engine.push(STREAM, "<urn:a> <urn:p> 1 .", 1)
    assert len(list(handle.matches())) == 1
    assert len(load(file)) == 1


def test_a_mark_before_a_query_and_a_catalogue(tmp_path: Path) -> None:
    assert spaseq.prepare("\ufeff" + QUERY) == spaseq.prepare(QUERY)
    file = tmp_path / "catalog.ttl"
    file.write_bytes(MARK + b"PREFIX : <http://example.org/>\n")
    assert load_catalog(file) == {}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["nq", "trig", "jsonld", "ndjsonld"])
def test_a_term_beyond_the_buffer_costs_its_event(form: str) -> None:
    good = TEXTS[form]
    bad = good.replace("urn:g", "urn:h")
    for value in (f'"1"^^{INTEGER} <', "1 }", "1,"):
        bad = bad.replace(value, value.replace(value.rstrip(" <},"), f'"{LONG}"'))
    whole = bad if form == "jsonld" else good + bad + good.replace("urn:g", "urn:i")
    reading = read(whole, f"format={form}")
    assert reading.times == ([] if form == "jsonld" else [1, 1])
    assert "a term of more than 16777216 bytes" in reading.reasons[0]


def test_a_term_beyond_the_buffer_is_no_event_when_pushed() -> None:
    engine = spaseq.Engine()
    handle = engine.register(QUERY)
    with pytest.warns(spaseq.SpaseqWarning, match="a term of more than 16777216 bytes"):
        engine.push(STREAM, f'<urn:a> <urn:p> "{LONG}", 1 .', 1)
    engine.push_many(STREAM, [(f'<urn:a> <urn:p> "{LONG}", 1 .', 1), ("<urn:a> <urn:p> 1 .", 2)])
    assert (engine.bad, len(list(handle.matches()))) == (2, 1)


def test_a_term_beyond_the_buffer_in_a_background_graph(tmp_path: Path) -> None:
    file = tmp_path / "kb.ttl"
    file.write_text(f'<urn:a> <urn:p> "{LONG}" .')
    with pytest.raises(KnowledgeError, match="a term of more than 16777216 bytes"):
        load(file)
    query = QUERY.replace("?x <urn:p> 1", "GRAPH <urn:kb> { ?x <urn:p> ?y }")
    with pytest.raises(KnowledgeError, match="a term of more than 16777216 bytes"):
        spaseq.Engine(kb={"urn:kb": file}).register(query)
