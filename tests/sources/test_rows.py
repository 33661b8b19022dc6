"""CSV and NDJSON rows, lifted by a JSON-LD context."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import SourceError

from .reading import Trickle, pieces, read

XSD = "http://www.w3.org/2001/XMLSchema#"
CONTEXT = {
    "@vocab": "http://example.org/",
    "time": {"@id": "http://www.w3.org/ns/prov#generatedAtTime", "@type": f"{XSD}integer"},
    "price": {"@type": f"{XSD}decimal"},
    "company": {"@type": "@vocab"},
}


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "context.jsonld"
    path.write_text(json.dumps({"@context": CONTEXT}))
    return path


def facts(triples: set[str]) -> set[str]:
    """Predicate and object: the subject is a blank node."""
    return {triple.partition(" ")[2] for triple in triples}


def test_csv(context: Path) -> None:
    text = 'time,company,price,note\n1,IBM,18.60,"a ""b"", c"\n2,Dell,5,\n3,IBM,7,"three\n\nlines"\n'
    for size in (1, 1 << 18):
        reading = read(Trickle(pieces(text.encode(), size)), f"format=csv&context={context}")
        assert reading.bad == []
        assert reading.times == [1, 2, 3]
        assert reading.graphs == [None] * 3
        assert facts(reading.triples(0)) == {
            f'<http://www.w3.org/ns/prov#generatedAtTime> "1"^^<{XSD}integer>',
            "<http://example.org/company> <http://example.org/IBM>",
            f'<http://example.org/price> "18.60"^^<{XSD}decimal>',
            '<http://example.org/note> "a \\"b\\", c"',
        }
        assert len(reading.triples(1)) == 3, "an empty cell is no triple"
        assert '<http://example.org/note> "three\\n\\nlines"' in facts(reading.triples(2))


def test_csv_without_header_line(context: Path) -> None:
    reading = read("5 IBM\n6 Dell\n", f"format=csv&context={context}&header=time,company&delimiter=%20")
    assert reading.times == [5, 6]


def test_csv_bad_rows(context: Path) -> None:
    text = "\ufefftime,price\n1,2\n1,2,3\n1\n\n,5\nnoon,5\n4,1\n"
    reading = read(text, f"format=csv&context={context}")
    assert reading.times == [1, 4]
    assert reading.positions == ["line 3", "line 4", "line 6", "line 7"]
    assert reading.bad[0].payload == "1,2,3"
    assert "3 cells, but there are 2 columns" in reading.reasons[0]
    assert "no time" in reading.reasons[2]


def test_csv_unclosed_quote(context: Path) -> None:
    reading = read('time,price\n1,2\n2,"3\n4,5\n', f"format=csv&context={context}")
    assert reading.times == [1]
    assert reading.positions == ["line 3"]
    assert reading.bad[0].payload == '2,"3\n4,5'


def test_ndjson(context: Path) -> None:
    rows = [
        {
            "@id": "http://example.org/t1",
            "time": "1",
            "price": "18.60",
            "tags": ["a", "b"],
            "by": {"name": "x"},
        },
        {"time": 2, "company": "IBM"},
    ]
    text = "\n".join(map(json.dumps, rows))
    reading = read(text, f"format=ndjson&context={context}")
    assert reading.bad == []
    assert reading.times == [1, 2]
    assert '<http://example.org/t1> <http://example.org/tags> "a"' in reading.triples(0)
    assert len(reading.triples(0)) == 6


def test_ndjson_bad_rows(context: Path) -> None:
    bad = [
        "{",
        "[1]",
        "7",
        '{"time":NaN}',
        '{"time":1}, {"time":2}',
        '{"@context":"http://example.org/c","time":1}',
        '{"time":1,"@graph":[{"time":3}]}',
        '{"@type":5,"time":1}',
        "{}",
        '{"@id":"x:x"}',
        '{"price":1}',
    ]
    text = '{"time":0}\n' + "\n".join(bad) + '\n{"time":9}\n'
    reading = read(text, f"format=ndjson&context={context}")
    assert reading.times == [0, 9]
    assert sorted(int(position.split()[1]) for position in reading.positions) == list(range(2, 2 + len(bad)))
    assert {event.payload for event in reading.bad if event.position == "line 2"} == {"{"}
    assert any("never fetched" in reason for reason in reading.reasons)


def test_ndjson_invalid_utf8(context: Path) -> None:
    reading = read(b'{"time":1}\n{"time":2,"a":"\xff"}\n{"time":3}', f"format=ndjson&context={context}")
    assert (reading.times, reading.positions) == ([1, 3], ["line 2"])


_VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).filter(lambda text: text.strip())


@given(st.lists(st.tuples(st.integers(0, 99), _VALUES), max_size=8), st.sampled_from([1, 9, 1 << 18]))
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_what_is_written_is_read(form: str, context: Path, rows: list[tuple[int, str]], size: int) -> None:
    if form == "csv":
        lines = ["time,note", *(f'{time},"{note.replace(chr(34), chr(34) * 2)}"' for time, note in rows)]
    else:
        lines = [json.dumps({"time": time, "note": note}, ensure_ascii=False) for time, note in rows]
    reading = read(Trickle(pieces("\n".join(lines).encode(), size)), f"format={form}&context={context}")
    assert reading.bad == []
    assert reading.times == [time for time, _ in rows]
    notes = {term.value for batch in reading.batches for term in map(batch.dictionary.term, batch.o.tolist())}
    assert {note for _, note in rows} <= notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "@context"),
        ('{"@context":"http://example.org/context"}', "never fetched"),
        ('{"@context":[{"a":"x:a"},"other.jsonld"]}', "other.jsonld"),
        ('{"@context":{"@import":"http://example.org/context"}}', "never fetched"),
        ('{"@context":{"a":{"@id":"x:a","@context":"http://example.org/context"}}}', "never fetched"),
        ('{"@context":{"a":{"@id":5}}}', "not a JSON-LD context"),
    ],
)
def test_bad_context(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "context.jsonld"
    path.write_text(text)
    with pytest.raises(SourceError, match=message):
        read("a\n", f"format=csv&context={path}")


def test_missing_context() -> None:
    with pytest.raises(SourceError, match="no-such"):
        read("a\n", "format=csv&context=no-such.jsonld")


def test_real_trades(shared: Callable[[str], Path], context: Path) -> None:
    """Trades as the exchange printed them: space separated, no header; the sequence number as time."""
    path = shared("stock-inet-ticks") / "TimeAndSales_AMAT.txt"
    rows = [line.split() for line in path.read_text().splitlines()[:5000]]
    spec = f"format=csv&context={context}&header=company,time,volume,price,clock,side&delimiter=%20"
    reading = read("\n".join(map(" ".join, rows)), spec)
    assert reading.bad == []
    assert reading.times == [int(row[1]) for row in rows]
    assert len(reading.triples(0)) == 6
