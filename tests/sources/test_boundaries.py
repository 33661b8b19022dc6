"""``by=``: where an event ends, by subjects, by members of a document, by messages."""

from __future__ import annotations

from itertools import pairwise

import pyoxigraph as ox
import pytest

from spaseq.connect.messages import Decoder, Message
from spaseq.errors import SourceError, SpaseqWarning
from spaseq.limits import Limits
from spaseq.sources import BadEvent, open_source, parse_source
from spaseq.sources.assembly import subjects as _subjects
from spaseq.terms.dictionary import Dictionary

from .reading import STREAM, Trickle, pieces, read

EX = "http://example.org/"
AT = f"time=<{EX}at>"
RECORDS = """@prefix : <http://example.org/> .
:a :at 1 ; :in [ :deep [ :v 5 ] ] .
:b :v 6 ; :note "x" , "y" ; :at 2 .
:c :at 3 .
"""


def as_lines(text: str) -> str:
    quads = ox.parse(text, format=ox.RdfFormat.TURTLE)
    return (ox.serialize(quads, format=ox.RdfFormat.N_TRIPLES) or b"").decode()


@pytest.mark.parametrize("form", ["ttl", "nt"])
@pytest.mark.parametrize("size", [7, 1 << 18])
def test_by_subject(form: str, size: int) -> None:
    text = RECORDS if form == "ttl" else as_lines(RECORDS)
    reading = read(Trickle(pieces(text.encode(), size)), f"format={form}&by=subject&{AT}")
    assert (reading.times, reading.bad) == ([1, 2, 3], [])
    assert reading.graphs == ["a", "b", "c"]
    assert [len(reading.triples(n)) for n in range(3)] == [4, 4, 1]


def test_blank_nodes_may_stand_before_or_after_their_subject() -> None:
    text = f"""_:x <{EX}v> "5" .
<{EX}a> <{EX}at> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<{EX}a> <{EX}in> _:x .
_:y <{EX}v> "6" .
<{EX}b> <{EX}in> _:y .
<{EX}b> <{EX}at> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .
_:z <{EX}v> "7" .
<{EX}c> <{EX}at> "3"^^<http://www.w3.org/2001/XMLSchema#integer> .
<{EX}d> <{EX}at> "4"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
    reading = read(text, f"format=nt&by=subject&{AT}")
    assert reading.times == [1, 2, 3, 4]
    assert [len(reading.triples(n)) for n in range(4)] == [3, 3, 1, 1]
    assert len(reading.bad) == 1
    assert "no subject beside it reaches the blank node" in reading.reasons[0]


def test_a_subject_that_comes_again_begins_a_new_event() -> None:
    text = "@prefix : <http://example.org/> . :a :at 1 . :b :at 2 . :a :at 3 . :b :at 4 ."
    with pytest.warns(SpaseqWarning, match="event 3: <http://example.org/a> comes again") as caught:
        reading = read(text, f"format=ttl&by=subject&{AT}")
    assert reading.times == [1, 2, 3, 4]
    assert len(caught) == 1


def test_a_broken_line_spoils_its_subject_only() -> None:
    lines = as_lines(RECORDS.replace("[ :deep [ :v 5 ] ]", ":x")).splitlines()
    at = next(n for n, line in enumerate(lines) if "note" in line)
    for broken in (f"<{EX}b> <{EX}v> <oops", f"<{EX}b> nonsense ."):
        text = "\n".join([*lines[:at], broken, *lines[at + 1 :]])
        reading = read(text, f"format=nt&by=subject&{AT}")
        assert reading.times == [1, 3]
        assert reading.reasons[-1].startswith("incomplete")
    reading = read(RECORDS.replace(":v 6", ":v oops oops"), f"format=ttl&by=subject&{AT}")
    assert reading.times == [1, 3]
    for lost in ("oops", "oops\noops"):  # of an unknown subject: of the one before, or of the next
        text = "\n".join([*lines[:at], lost, *lines[at:]])
        assert read(text, f"format=nt&by=subject&{AT}").times == [1, 3]


PAGE = """@prefix tree: <https://w3id.org/tree#> . @prefix : <http://example.org/> .
:stream tree:member :m1 , :m2 , :gone .
:m1 :at 2 ; :in [ :v 5 ] . :other :at 9 .
:m2 :at 1 .
:m1 :note "late" .
"""


@pytest.mark.parametrize("form", ["ttl", "nt", "trig", "jsonld"])
def test_by_a_predicate(form: str) -> None:
    text = PAGE if form in ("ttl", "trig") else as_lines(PAGE)
    if form == "jsonld":
        quads = ox.parse(PAGE, format=ox.RdfFormat.TURTLE)
        text = (ox.serialize(quads, format=ox.RdfFormat.JSON_LD) or b"").decode()
    reading = read(text, f"format={form}&by=tree:member&{AT}")
    assert sorted(zip(reading.times, reading.graphs, strict=True)) == [(1, "m2"), (2, "m1")]
    assert len(reading.triples(reading.times.index(2))) == 4
    assert [reason.partition("> ")[2] for reason in reading.reasons] == ["has no triples in this document"]
    reading = read(text, f"format={form}&by=<urn:none>&{AT}")
    assert "nothing in the document says <urn:none>" in reading.reasons[0]


def test_a_document_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_subjects, "DOCUMENT", 3)
    with pytest.raises(SourceError, match="more than 3 triples"):
        read(PAGE, f"format=ttl&by=tree:member&{AT}")


NANO = """@prefix : <http://example.org/> .
:head { :np :has :assertion . } :assertion { :g :causes :d . } :info { :np :at 7 . } :np :seen :x .
"""


def test_by_message() -> None:
    text = f'VERSION "1.2-messages"\n{NANO}MESSAGE\n{NANO.replace("7", "8")}'
    reading = read(text, f"format=trig&by=message&{AT}")
    assert (reading.times, reading.bad) == ([7, 8], [])
    assert reading.graphs == [None, None]
    assert len(reading.triples()) == 4
    assert read(NANO, f"format=messages&by=message&{AT}").times == [7]
    with pytest.raises(SourceError, match="format=messages"):
        read(NANO, f"format=trig&by=message&{AT}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x.nq?by=subject", "by=subject is for nt, ttl, jelly"),
        ("x.csv?by=message", "by=message is for"),
        ("x.jelly?by=tree:member", "by=IRI is for"),
        ("x.nt?by=subject&triples=2", "not by both"),
    ],
)
def test_refused(spec: str, message: str) -> None:
    location, options = parse_source(spec)
    with pytest.raises(SourceError, match=message):
        open_source(location, STREAM, Dictionary(), options, on_bad=lambda _: None)
    with pytest.raises(SourceError, match="neither 'subject' nor 'message'"):
        parse_source("x.nt?by=name")


@pytest.mark.parametrize(
    ("spec", "value", "expected"),
    [
        ("format=ttl&by=subject", RECORDS, [1, 2, 3]),
        ("format=ttl&by=tree:member", PAGE, [1, 2]),
        ("format=trig&by=message", NANO, [7]),
    ],
)
def test_messages_of_brokers(spec: str, value: str, expected: list[int]) -> None:
    bad: list[BadEvent] = []
    options = parse_source(f"x?{spec}&{AT}")[1]
    decoder = Decoder("x", STREAM, Dictionary(), options, on_bad=bad.append, limits=Limits())
    batch = decoder.read([Message(value.encode(), "m1", 0)])
    assert batch is not None
    assert sorted(batch.time.tolist()) == expected


def test_groups_of_triples_that_mix_records_name_the_option() -> None:
    lines = as_lines(RECORDS.replace("[ :deep [ :v 5 ] ]", ":x")).splitlines()
    assert all(a <= b for a, b in pairwise(line.split()[0] for line in lines))
    with pytest.warns(SpaseqWarning, match="with by=subject instead"):
        read("\n".join(lines[:6]) + "\n", f"format=nt&triples=3&{AT}")
