"""Messages of a broker are decoded many at once, and each is what it would be alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

import spaseq
from spaseq.events import Clock
from spaseq.sources import BadEvent, SourceOptions, open_source
from spaseq.sources._options import parse_source
from spaseq.spark.sinks._lines import letter_line, letter_of_line, place_of
from spaseq.spark.source import _messages
from spaseq.spark.source._rows import read_rows, rows_of
from spaseq.spark.stages._bucket import Bucket
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._stateless import Stateless
from spaseq.terms.dictionary import Dictionary
from tests.conftest import examples
from tests.streams import NS, query

AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = f'_G {AT} "7"^^<{XSD}integer> .'

#: Messages, in which _G is the graph: plain ones, and all that makes them less so.
TEXTS = [
    f'{TIME}\n<urn:a> <urn:v> "x \\"_G\\" ." _G .\n<urn:a> <urn:w> "é\\n"@de _G .',
    f"<urn:a> <urn:v> <urn:b> _G .\n<urn:a> <urn:v> <urn:b> _G .\n{TIME}\n",
    f"{TIME}\n{TIME}\n_:x <urn:v> _:y _G .\n_:y <urn:v> _:x _G .\n",
    f'_G {AT} "2026-01-01T00:00:00Z"^^<{XSD}dateTime> .\n_:x <urn:v> "1"^^<{XSD}integer> _G .\n',
    f'<urn:a> <urn:v> "1" _G .\n<urn:a> {AT} "8"^^<{XSD}integer> _G .\n',
    f'{TIME}\n<urn:a> {AT} "8"^^<{XSD}integer> _G .\n',
    f'{TIME}\n_G {AT} "8"^^<{XSD}integer> .\n<urn:a> <urn:v> "1" _G .\n',
    f'{TIME}\n<urn:meta> <urn:v> "1" .\n<urn:a> <urn:v> "1" _G .\n',
    f"{TIME}\n<urn:a> <urn:v> <urn:b> _G .\n<urn:a> <urn:v> <urn:b> <urn:other> .\n",
    f'_:g {AT} "9"^^<{XSD}integer> .\n<urn:a> <urn:v> <urn:b> _:g .\n',
    f"# a comment\n\n{TIME}\r\n<urn:a> <urn:v> <urn:b> _G .",
    f'_G {AT} "soon" .\n<urn:a> <urn:v> <urn:b> _G .',
    "<urn:a> <urn:v> <urn:b> _G .",
    "<urn:a> <urn:v> <urn:b> .",
    TIME,
    f"{TIME}\n<urn:a> <urn:v> ",
    "no quads at all",
    "",
    None,
]


def record(texts: Sequence[str | None]) -> pa.RecordBatch:
    values = [
        None if text is None else text.replace("_G", f"<urn:g{i}>").encode() for i, text in enumerate(texts)
    ]
    count = len(texts)
    columns = {
        "topic": pa.array(["trades"] * count),
        "value": pa.array(values, pa.binary()),
        "offset": pa.array(range(100, 100 + count), pa.int64()),
        "partition": pa.array([i % 3 for i in range(count)], pa.int32()),
        "micros": pa.array(range(count), pa.int64()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def read(
    texts: Sequence[str | None], options: SourceOptions
) -> tuple[list[dict[str, object]], list[BadEvent]]:
    """The events, in the order of their messages, by what a DataFrame shows of them; and the letters."""
    letters: list[BadEvent] = []
    reading = _messages.MessageReading({"trades": f"{NS}S"}, options)
    found = [
        row
        for batch in reading.read(record(texts), Dictionary(), letters)
        for row in rows_of(batch).to_pylist()
    ]
    for row in found:
        row["payload"] = sorted(unlabelled(row["payload"]).splitlines())
        row["graph"] = re.sub(r"^_:.*", "_:", row["graph"] or "")
    return sorted(found, key=lambda row: row["n"] >> 10), sorted(letters, key=lambda letter: letter.position)


def unlabelled(payload: bytes) -> bytes:
    """Blank nodes numbered as they come."""
    labels: dict[bytes, bytes] = {}
    return re.sub(rb"_:\w+", lambda m: labels.setdefault(m[0], b"_:%d" % len(labels)), payload)


@settings(max_examples=examples(60))
@given(
    st.lists(st.sampled_from([*TEXTS, *TEXTS[:3] * 4]), max_size=24),
    st.sampled_from([SourceOptions(format="nq"), SourceOptions(format="nq", time="arrival")]),
)
def test_together_as_alone(texts: list[str | None], options: SourceOptions) -> None:
    together = read(texts, options)
    with patch.object(_messages, "_FEW", 1 << 30):
        assert together == read(texts, options)


def test_every_message_is_an_event_or_a_letter() -> None:
    found, letters = read(TEXTS, SourceOptions(format="nq"))
    assert len(found) + len(letters) == len(TEXTS) + 1  # one has an event, and a graph without a time
    assert [row["n"] for row in found[:3]] == [100 << 22, 101 << 22 | 1 << 10, 102 << 22 | 2 << 10]
    assert {row["clock"] for row in found} == set(Clock)
    assert "topic trades, partition 1, offset 118" not in {letter.position for letter in letters}
    assert {letter.position: letter.reason for letter in letters}[
        "topic trades, partition 0, offset 118"
    ] == "the message has no value"


ONE = f'<urn:a> {AT} "7"^^<{XSD}integer> .\n<urn:a> <urn:in> _:x .\n_:x <urn:v> "1" .\n'
TWO = ONE + f'<urn:b> {AT} "8"^^<{XSD}integer> .\n'
PAGE = "<urn:page> <urn:member> <urn:a> .\n<urn:page> <urn:note> <urn:b> .\n"
GRAPHS = f'<urn:a> {AT} "7"^^<{XSD}integer> <urn:g> .\n<urn:a> <urn:v> "1" <urn:h> .\n'


@pytest.mark.parametrize(
    ("text", "source", "triples"),
    [
        (ONE, "x.nt", 3),
        (ONE, "x.ttl?by=message", 3),
        (ONE, "x.ttl?by=subject", 3),
        (PAGE + TWO, "x.nt?by=<urn:member>", 3),
        (GRAPHS, "x.nq?by=message", 2),
        (f"<urn:g> {{ <urn:a> {AT} 7 }} <urn:h> {{ <urn:a> <urn:v> 1 }}", "x.trig?by=message", 2),
    ],
)
def test_a_message_is_one_event_by_its_options(text: str, source: str, triples: int) -> None:
    path, options = parse_source(source)
    found, letters = read([text], replace(options, format=Path(path).suffix[1:]))
    assert [(row["time"], row["n"], len(row["payload"])) for row in found] == [(7, 100 << 22, triples)]  # type: ignore[arg-type]
    assert not letters


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (TWO, "x.nt?by=subject"),
        (f'<urn:g> {AT} "7"^^<{XSD}integer> .\n<urn:h> {AT} "8"^^<{XSD}integer> .\n{GRAPHS}', "x.nq"),
        (f"<urn:g> {{ <urn:g> {AT} 7 }} <urn:h> {{ <urn:h> {AT} 8 }}", "x.trig"),
    ],
)
def test_a_message_of_several_events(text: str, source: str) -> None:
    """They are numbered one after the other, and a letter says where their message is."""
    path, options = parse_source(source)
    found, letters = read([None, text, text], replace(options, format=Path(path).suffix[1:]))
    first = [101 << 22 | 1 << 10, 102 << 22 | 2 << 10]
    assert [(row["time"], row["n"]) for row in found] == [(7 + i, n + i) for n in first for i in range(2)]
    assert {place_of("trades", n) for n in (first[0], first[0] + 1)} == {
        "topic trades, partition 1, offset 101"
    }
    assert [letter.reason for letter in letters] == ["the message has no value"]


def test_a_message_of_too_many_events_is_a_letter() -> None:
    text = "".join(f'<urn:{i}> {AT} "7"^^<{XSD}integer> <urn:{i}> .\n' for i in range(1_025))
    found, letters = read([text], SourceOptions(format="nq"))
    assert not found
    assert letters[0].reason == "a message has at most 1,024 events on Spark, and this one 1,025"


def test_few_are_parsed_alone() -> None:
    """A payload that does not parse takes few others with it."""
    texts = [TEXTS[0]] * 1_000
    texts[300] = texts[700] = "no quads at all"
    with patch.object(_messages._Messages, "_alone", autospec=True, return_value=None) as alone:
        found, _ = read(texts, SourceOptions(format="nq"))
    assert len(found) + alone.call_count == 1_000
    assert alone.call_count <= 2 * 2 * 4  # halves of halves, until they are few


@pytest.mark.parametrize("payload", [b"", b'<urn:a> <urn:v> _:x .\n<urn:a> <urn:v> "1" .'])
def test_rows_are_events_again(payload: bytes) -> None:
    """What a DataFrame shows is what ``matches`` reads."""
    dictionary, letters = Dictionary(), []  # type: ignore[var-annotated]
    row = {"stream": f"{NS}S", "clock": "ticks", "time": 1, "n": 2, "graph": "_:g", "payload": payload}
    (batch,) = read_rows(pa.RecordBatch.from_pylist([row]), dictionary, letters)
    (shown,) = rows_of(batch).to_pylist()
    assert len(shown["payload"].splitlines()) == len(payload.splitlines())
    assert (shown["stream"], shown["time"], shown["n"], shown["bad"]) == (f"{NS}S", 1, 2, None)
    assert shown["graph"].startswith("_:")
    assert not letters


def test_late_events_of_a_topic_say_where_they_are() -> None:
    text = query("A ; B", "9 SECONDS SLIDING", {n: f"?{n.lower()} :k ?k ." for n in "AB"}, partition="?k")
    job = Job(text, Clock.TICKS, None, (0,), is_stream=True, topics=((f"{NS}S", "trades"),))
    triples = f"<{NS}e> a <{NS}a> ; <{NS}v> 1 ; <{NS}k> <{NS}k0> ."
    quads = "".join(f"{t.strip()} _G .\n" for t in _triples(triples))
    stage, letters = Stateless(job), []  # type: ignore[var-annotated]
    reading = _messages.MessageReading({"trades": f"{NS}S"}, SourceOptions(format="nq"))
    (passed,) = stage.run(reading.read(record([TIME + "\n" + quads] * 5), stage.dictionary, letters), letters)
    (piece,) = passed.pieces
    late = Bucket(job).add(piece.data, 8)
    lines = [letter_of_line(letter_line(letter, job.topics)) for letter in late]
    assert {letter.position for letter in lines} == {
        f"topic trades, partition {i % 3}, offset {100 + i}" for i in range(5)
    }


def _triples(turtle: str) -> list[str]:
    import pyoxigraph as ox

    found = ox.parse(turtle.encode(), format=ox.RdfFormat.TURTLE)
    return [f"{quad.subject} {quad.predicate} {quad.object}" for quad in found]


def test_subjects_that_are_no_terms_yet_are_shown() -> None:
    """A table's subjects become terms when they are first read, which may be when the rows are made."""
    columns = {"id": ["a", "b", "c"], "v": [1, 2, 3]}
    source = spaseq.table(pa.table(columns), template="<urn:{id}> <urn:v> ?v .")
    (batch,) = open_source(source, NamedNode("urn:S"), Dictionary(), on_bad=print)
    payloads = [row["payload"].decode() for row in rows_of(batch).to_pylist()]
    assert payloads == [
        f'<urn:{s}> <urn:v> "{v}"^^<{XSD}integer> .\n' for s, v in (("a", 1), ("b", 2), ("c", 3))
    ]
