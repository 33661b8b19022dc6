"""Options of a source: what is understood, and what is refused, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.sources import SourceOptions, open_source, parse_source
from spaseq.sources._options import FORMATS, OPTIONS, read_option, resolve_format, write_options
from spaseq.terms.dictionary import Dictionary

from .reading import STREAM


def test_parse_source() -> None:
    assert parse_source("ticks.nq") == ("ticks.nq", SourceOptions())
    assert parse_source("-?format=trig") == ("-", SourceOptions(format="trig"))
    assert parse_source("ticks.nt?triples=2&time=arrival") == (
        "ticks.nt",
        SourceOptions(time="arrival", triples=2),
    )
    spec = "t.csv?context=c.json&header=a,%20b&delimiter=%20&time=http://www.w3.org/ns/sosa/x%23y"
    assert parse_source(spec) == (
        "t.csv",
        SourceOptions(
            time=NamedNode("http://www.w3.org/ns/sosa/x#y"),
            context=Path("c.json"),
            header=("a", "b"),
            delimiter=" ",
        ),
    )
    assert parse_source("t.csv?time=at")[1].time == "at"
    assert parse_source("t.nq?order=time")[1].order == "time"
    assert parse_source("t.nq?time=<http://example.org/at+b>")[1].time == NamedNode("http://example.org/at+b")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("t.nq?tripels=2", "format, time, .*triples, .*context, .*header, delimiter, order"),
        ("t.nq?format=rdfxml", "trig, nq, nt"),
        ("t.nt?triples=0", "1, 2"),
        ("t.nt?triples=two", "1, 2"),
        ("t.nq?order=name", "neither .arrival. nor .time."),
        ("t.nt?triples=", "no value"),
        ("t.nt?triples", "no value"),
        ("t.nt?triples=1&triples=2", "twice"),
        ("t.nq?time=foo:at/dct:created", "unknown prefix 'foo'"),
        ("t.nq?time=<http://example.org/a b>/dct:created", "is not an IRI"),
        ("t.csv?time_format=%25Q", "bad directive"),
        ("t.csv?time_format=%H:%M", "no year"),
        ("t.csv?unit=weeks", "seconds, milliseconds"),
        ("t.csv?delimiter=;;", "one character"),
        ("t.csv?header=a,,b", "every column"),
        ("t.csv?header=a,a", "every column"),
        ("?format=nq", "no location"),
    ],
)
def test_refused(spec: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        parse_source(spec)


def test_options_are_written_as_they_are_read() -> None:
    spec = (
        "t.csv?format=csv&time=dct:created/<urn:at>&time_format=%Y-%m-%d&unit=ticks&triples=2&context=/c.json"
        "&header=a,b&delimiter=;&order=time&max_ahead=1.5h"
    )
    options = parse_source(spec)[1]
    written = write_options(options)
    assert set(written) <= set(OPTIONS)
    assert SourceOptions(**{name: read_option(name, text) for name, text in written.items()}) == options  # type: ignore[arg-type]
    assert write_options(SourceOptions()) == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.trig", "trig"), ("a.nq", "nq"), ("a.NQ.gz", "nq"), ("a.b.nt.zst", "nt"), ("a.ttl", "ttl"),
        ("a.jsonld", "jsonld"), ("a.ndjsonld", "ndjsonld"), ("a.jsonl", "ndjsonld"),
        ("a.messages", "messages"), ("a.jelly.gz", "jelly"), ("a.csv", "csv"), ("a.ndjson", "ndjson"),
    ],
)  # fmt: skip
def test_format_by_extension(name: str, expected: str) -> None:
    assert resolve_format(name, SourceOptions()) == expected


def test_format_by_option() -> None:
    for form in FORMATS:
        assert resolve_format("-", SourceOptions(format=form)) == form


@pytest.mark.parametrize("name", ["-", "events", "events.gz", "events.xml", ".nq"])
def test_unknown_format(name: str) -> None:
    with pytest.raises(SourceError, match=r"add \?format="):
        resolve_format(name, SourceOptions())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no-such-file.nq", "no such file"),
        ("-", "format"),
        ("x.nq?triples=2", "'triples' is for nt and ttl"),
        ("x.nq?context=c.json", "'context' is for csv and ndjson"),
        ("x.ndjson?header=a", "'header' is for csv"),
        ("x.nq?time=soon", "arrival"),
        ("x.nq?unit=seconds", "'unit' is for csv and ndjson"),
        ("x.csv?unit=seconds", "time=COLUMN"),
        ("x.csv?time=at&unit=seconds&time_format=%Y", "not both"),
    ],
)
def test_open_refuses_at_once(spec: str, message: str) -> None:
    location, options = parse_source(spec)
    with pytest.raises(SourceError, match=message):
        open_source(location, STREAM, Dictionary(), options, on_bad=lambda _: None)


def test_rows_need_a_context(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(SourceError, match="context=FILE"):
        open_source(tmp_path / "t.csv", STREAM, Dictionary(), on_bad=lambda _: None)
