"""``items=``: elements of an array as events; ``contexts=``: local copies of contexts named by URL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from spaseq.connect.messages import Decoder, Message
from spaseq.errors import SourceError
from spaseq.limits import Limits
from spaseq.sources import BadEvent, parse_source
from spaseq.terms.dictionary import Dictionary

from .reading import read

CONTEXT = {
    "@vocab": "http://example.org/",
    "at": {
        "@id": "http://www.w3.org/ns/prov#generatedAtTime",
        "@type": "http://www.w3.org/2001/XMLSchema#integer",
    },
}
FEED = {"head": {"at": "9"}, "feed": {"entity": [{"v": 1, "in": {"at": "5"}}, {"v": 2}, {"v": 3, "at": "7"}]}}


@pytest.fixture
def context(tmp_path: Path) -> Path:
    path = tmp_path / "c.jsonld"
    path.write_text(json.dumps({"@context": CONTEXT}))
    return path


def test_elements_of_rows(context: Path) -> None:
    text = json.dumps(FEED) + "\n" + json.dumps({"at": "1"}) + "\n"
    reading = read(text, f"format=ndjson&context={context}&items=feed.entity")
    assert reading.times == [5, 9, 7]
    assert reading.positions == ["line 2"]
    assert "items=feed.entity: there is no array of that name; there are at" in reading.reasons[0]
    assert len(reading.triples(1)) == 1, "what is around an element gives its time only"


def test_the_column_of_an_element_or_of_what_is_around(context: Path) -> None:
    text = json.dumps({"t": 3, "entity": [{"v": 1, "t": 4}, {"v": 2}]})
    assert read(text, f"format=ndjson&context={context}&items=entity&time=t").times == [4, 3]


@pytest.mark.parametrize("form", ["ndjsonld", "jsonld"])
def test_elements_of_documents(form: str) -> None:
    document = {"@context": CONTEXT, **FEED}
    reading = read(json.dumps(document) + "\n", f"format={form}&items=feed.entity")
    assert (reading.times, reading.bad) == ([5, 9, 7], [])


def test_an_element_without_any_time_is_malformed(context: Path) -> None:
    reading = read('{"entity": [{"v": 1}]}', f"format=ndjson&context={context}&items=entity")
    assert reading.positions == ["line 1, item 1"]
    assert "no time" in reading.reasons[0]


@pytest.mark.parametrize("form", ["ndjson", "ndjsonld"])
def test_messages_of_brokers(context: Path, form: str) -> None:
    value = json.dumps({"@context": CONTEXT, **FEED} if form == "ndjsonld" else FEED).encode()
    lift = f"&context={context}" if form == "ndjson" else ""
    options = parse_source(f"x?format={form}&items=feed.entity{lift}")[1]
    bad: list[BadEvent] = []
    decoder = Decoder("x", NamedNode("urn:s"), Dictionary(), options, on_bad=bad.append, limits=Limits())
    batch = decoder.read([Message(value, "m1", 0), Message(b'{"a": 1}', "m2", 0), Message(value, "m3", 0)])
    assert batch is not None
    assert batch.time.tolist() == [5, 9, 7] * 2
    assert [letter.position for letter in bad] == ["m2"]


URL = "https://example.org/ns/feed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "contexts" / "example.org" / "ns").mkdir(parents=True)
    (tmp_path / "contexts" / "example.org" / "ns" / "feed.jsonld").write_text(
        json.dumps({"@context": ["https://example.org/base", CONTEXT]})
    )
    (tmp_path / "contexts" / "base.json").write_text('{"@context": {"id": "@id"}}')
    return tmp_path / "contexts"


def test_contexts_by_url(folder: Path, tmp_path: Path) -> None:
    document = json.dumps({"@context": URL, "id": "urn:x", "at": "5", "v": 1.5})
    for form in ("ndjsonld", "jsonld", "ndjson"):
        text = document if form != "jsonld" else f'{{"@graph": [{document}], "@id": "urn:g"}}'
        reading = read(text + "\n", f"format={form}&contexts={folder}")
        assert (reading.times, reading.bad) == ([5], [])
        assert all(triple.startswith("<urn:x>") for triple in reading.triples())
    (tmp_path / "c.jsonld").write_text(json.dumps({"@context": [URL, {"v": "urn:v"}]}))
    spec = f"format=ndjson&context={tmp_path}/c.jsonld&contexts={folder}"
    assert read('{"at": "6", "v": "x"}\n', spec).times == [6]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "is not in contexts="),
        ({"feed.jsonld": '{"@context": "https://example.org/ns/feed"}'}, "names itself"),
        ({"feed.jsonld": "{"}, "cannot be read"),
        ({"feed.jsonld": "{}"}, 'has no "@context"'),
    ],
)
def test_contexts_that_are_wrong(tmp_path: Path, files: dict[str, str], says: str) -> None:
    (tmp_path / "f").mkdir()
    for name, text in files.items():
        (tmp_path / "f" / name).write_text(text)
    reading = read(json.dumps({"@context": URL, "at": 5}) + "\n", f"format=ndjsonld&contexts={tmp_path}/f")
    assert says in reading.reasons[0]


def test_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        read("{}\n", f"format=ndjsonld&contexts={tmp_path}/none")
    (tmp_path / "map.json").write_text("[1]")
    with pytest.raises(SourceError, match="neither a folder nor a map"):
        read("{}\n", f"format=ndjsonld&contexts={tmp_path}/map.json")
    with pytest.raises(SourceError, match="'items' is for ndjson"):
        read("", "format=csv&items=a")
    with pytest.raises(SourceError, match="is not the path of an array"):
        parse_source("x.ndjson?items=a..b")
    assert parse_source("x.ndjson?items=$.a.b[*]")[1].items == "a.b"
    reading = read(json.dumps({"@context": URL, "at": 5}) + "\n", "format=ndjsonld")
    assert "contexts=FOLDER" in reading.reasons[0]
