"""Every format, byte for byte, and as a stream."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import BytesIO

import pyoxigraph as ox
import pytest
from rdflib.namespace import XSD
from rdflib.term import BNode, Literal, URIRef

from spaseq.errors import FormatError
from spaseq.language import syntax as s
from spaseq.results import Format, writer

from .making import EX, STREAM, events, match, query, select, written

ROWS_QUERY = query(select("a", "b"), {"ex": EX, "": EX + "deep/"})
ROW_1 = {"a": URIRef(EX + "x"), "b": Literal('say "hi"\n<&>, it\'s', lang="en")}
ROW_2 = {"a": BNode("n1")}
ROW_3 = {"a": Literal("7", datatype=XSD.integer), "b": Literal("plain")}
MATCHES = (match(ROWS_QUERY, [ROW_1, ROW_2]), match(ROWS_QUERY, [ROW_3], start=3, end=40))
CONSTRUCT = query(s.Construct(()), {"ex": EX})

JSON = (
    '{"head":{"vars":["a","b"]},"results":{"bindings":[\n'
    '{"a":{"type":"uri","value":"http://example.org/x"},'
    '"b":{"type":"literal","value":"say \\"hi\\"\\n<&>, it\'s","xml:lang":"en"}},\n'
    '{"a":{"type":"bnode","value":"n1"}},\n'
    '{"a":{"type":"literal","value":"7","datatype":"http://www.w3.org/2001/XMLSchema#integer"},'
    '"b":{"type":"literal","value":"plain"}}\n'
    "]}}\n"
)
XML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
    '<head><variable name="a"/><variable name="b"/></head>\n'
    "<results>\n"
    '<result><binding name="a"><uri>http://example.org/x</uri></binding>'
    '<binding name="b"><literal xml:lang="en">say "hi"\n&lt;&amp;&gt;, it\'s</literal></binding></result>\n'
    '<result><binding name="a"><bnode>n1</bnode></binding></result>\n'
    '<result><binding name="a">'
    '<literal datatype="http://www.w3.org/2001/XMLSchema#integer">7</literal></binding>'
    '<binding name="b"><literal>plain</literal></binding></result>\n'
    "</results>\n</sparql>\n"
)
CSV = 'a,b\r\nhttp://example.org/x,"say ""hi""\n<&>, it\'s"\r\n_:n1,\r\n7,plain\r\n'
TSV = (
    "?a\t?b\n"
    '<http://example.org/x>\t"say \\"hi\\"\\n<&>, it\'s"@en\n'
    "_:n1\t\n"
    '"7"^^<http://www.w3.org/2001/XMLSchema#integer>\t"plain"\n'
)
TABLE = (
    "start  end  ?a    ?b\n"
    '1      2    ex:x  "say \\"hi\\"\\n<&>, it\'s"@en\n'
    "1      2    _:n1\n"
    '3      40   7     "plain"\n'
)
NO_MATCH = {
    "json": '{"head":{"vars":["a","b"]},"results":{"bindings":[\n]}}\n',
    "xml": XML.partition("<result>")[0] + "</results>\n</sparql>\n",
    "csv": "a,b\r\n",
    "tsv": "?a\t?b\n",
    "table": "start  end  ?a  ?b\n",
    "ndjson": "",
}


@pytest.mark.parametrize(
    ("name", "expected"), [("json", JSON), ("xml", XML), ("csv", CSV), ("tsv", TSV), ("table", TABLE)]
)
def test_select(name: str, expected: str) -> None:
    assert written(name, ROWS_QUERY, *MATCHES).decode() == expected


@pytest.mark.parametrize("name", NO_MATCH)
def test_select_without_matches(name: str) -> None:
    assert written(name, ROWS_QUERY).decode() == NO_MATCH[name]


@pytest.mark.parametrize("name", ["json", "xml", "csv", "tsv", "table"])
def test_select_with_matches_that_have_no_rows(name: str) -> None:
    assert written(name, ROWS_QUERY, match(ROWS_QUERY)).decode() == NO_MATCH[name]


@pytest.mark.parametrize(
    ("name", "head", "tail"),
    [
        ("json", '{"head":{},"boolean":', "}\n"),
        (
            "xml",
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n<head/>\n<boolean>',
            "</boolean>\n</sparql>\n",
        ),
        ("csv", "", "\r\n"),
        ("tsv", "", "\n"),
        ("table", "", "\n"),
    ],
)
def test_ask(name: str, head: str, tail: str) -> None:
    ask = query(s.Ask())
    assert written(name, ask).decode() == f"{head}false{tail}"
    assert written(name, ask, match(ask), match(ask)).decode() == f"{head}true{tail}"


def test_ask_is_answered_at_the_first_match() -> None:
    ask, out = query(s.Ask()), BytesIO()
    writer("json", ask, out).match(match(ask))
    assert json.loads(out.getvalue()) == {"head": {}, "boolean": True}


@pytest.mark.parametrize("name", ["table", "json", "xml", "csv", "tsv", "ndjson"])
def test_what_a_match_gives_is_there_before_the_next(name: str) -> None:
    out = BytesIO()
    results = writer(name, ROWS_QUERY, out)
    results.match(match(ROWS_QUERY, [{"a": Literal("one")}]))
    assert b"one" in out.getvalue()
    results.match(match(ROWS_QUERY, [{"a": Literal("two")}]))
    assert b"two" in out.getvalue()
    results.close()
    assert not out.closed


def test_each_match_is_one_write_and_one_flush() -> None:
    """So that an interrupt between two calls never leaves half a row."""

    class Counting(BytesIO):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[str] = []

        def write(self, data: bytes) -> int:  # type: ignore[override]  # bytes is all that is written
            self.calls.append("write")
            return super().write(data)

        def flush(self) -> None:
            self.calls.append("flush")

    out = Counting()
    writer("json", ROWS_QUERY, out).match(MATCHES[0])
    assert out.calls == ["write", "flush"]


@pytest.mark.parametrize("name", ["table", "json", "xml", "csv", "tsv", "ndjson"])
def test_select_star_has_the_variables_bound_outside_negations(name: str) -> None:
    pytest.importorskip("spaseq.language.syntax.printing")
    everything = query(s.Select(None))
    negated = s.Gpm("B", ("S",), s.Group((s.Triples((s.TriplePattern(s.Var("no"), STREAM, STREAM),)),)))
    everything = s.Query(
        form=everything.form,
        window=everything.window,
        streams=everything.streams,
        sequence=s.Sequence((s.Ref("A"), s.Not(s.Ref("B")), s.Ref("A")), (s.Strategy.NEXT, s.Strategy.NEXT)),
        gpms=(*everything.gpms, negated),
    )
    text = written(name, everything).decode()
    if name == "csv":
        assert text == "s,o,t\r\n"
    assert "no" not in text


# --- one match a line ---------------------------------------------------------------------------


def test_ndjson() -> None:
    begin = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    chosen = events(begin, begin + timedelta(microseconds=1), graph=ox.NamedNode(EX + "g"))
    found = match(
        ROWS_QUERY,
        [ROW_1, {}],
        start=begin,
        end=begin + timedelta(microseconds=1),
        chosen={"A": chosen[:1], "B": chosen[1:], "C": []},
        partition={"k": Literal("7", datatype=XSD.integer)},
    )
    text = written("ndjson", ROWS_QUERY, found, found).decode()
    first, second = text.splitlines()
    assert first == second
    assert json.loads(first) == {
        "start": "2026-01-02T03:04:05Z",
        "end": "2026-01-02T03:04:05.000001Z",
        "partition": {"k": {"type": "literal", "value": "7", "datatype": str(XSD.integer)}},
        "events": {
            "A": [{"stream": STREAM.value, "graph": EX + "g", "time": "2026-01-02T03:04:05Z", "n": 0}],
            "B": [{"stream": STREAM.value, "graph": EX + "g", "time": "2026-01-02T03:04:05.000001Z", "n": 1}],
            "C": [],
        },
        "bindings": [
            {
                "a": {"type": "uri", "value": EX + "x"},
                "b": {"type": "literal", "value": str(ROW_1["b"]), "xml:lang": "en"},
            },
            {},
        ],
    }


def test_ndjson_of_ticks_unnamed_graphs_and_blank_names() -> None:
    [unnamed] = events(5)
    [blank] = events(6, graph=ox.BlankNode("g"))
    line = json.loads(written("ndjson", ROWS_QUERY, match(ROWS_QUERY, chosen={"A": [unnamed, blank]})))
    assert (line["start"], line["end"]) == (1, 2)
    assert [event["time"] for event in line["events"]["A"]] == [5, 6]
    assert line["events"]["A"][0]["graph"] is None
    assert line["events"]["A"][1]["graph"].startswith("_:")


def test_ndjson_of_ask_has_the_match_and_of_construct_the_graph() -> None:
    ask = query(s.Ask())
    assert "bindings" not in json.loads(written("ndjson", ask, match(ask, [ROW_3])))
    triple = (URIRef(EX + "x"), URIRef(EX + "p"), Literal("a\nb"))
    line = json.loads(written("ndjson", CONSTRUCT, match(CONSTRUCT, [ROW_3], triples=[triple])))
    assert "bindings" not in line
    assert line["graph"] == f'<{EX}x> <{EX}p> "a\\nb" .\n'


# --- event streams ------------------------------------------------------------------------------

TRIPLES = [
    (URIRef(EX + "x"), URIRef(EX + "p"), Literal("line\n@prefix no: <http://no/> .")),
    (URIRef(EX + "x"), URIRef(EX + "q"), BNode("b1")),
]


def test_a_graph_is_written_in_the_order_of_its_text() -> None:
    """rdflib's is that of a set: another one in each process."""
    triples = [(URIRef(EX + f"s{n}"), URIRef(EX + "p"), URIRef(EX + "o")) for n in range(50)]
    lines = json.loads(written("ndjson", CONSTRUCT, match(CONSTRUCT, triples=triples)))["graph"].splitlines()
    assert lines == sorted(lines)


def test_trig() -> None:
    found = [match(CONSTRUCT, end=end, triples=TRIPLES[:1]) for end in (2, 3)]
    assert written("trig", CONSTRUCT, *found).decode() == (
        f"@prefix ex: <{EX}> .\n"
        "_:match1 <http://www.w3.org/ns/prov#generatedAtTime> 2 .\n"
        '_:match1 {\n\tex:x ex:p "line\\n@prefix no: <http://no/> ." .\n}\n'
        "_:match2 <http://www.w3.org/ns/prov#generatedAtTime> 3 .\n"
        '_:match2 {\n\tex:x ex:p "line\\n@prefix no: <http://no/> ." .\n}\n'
    )
    assert written("trig", CONSTRUCT).decode() == f"@prefix ex: <{EX}> .\n"


def test_nquads() -> None:
    end = datetime(2026, 1, 2, tzinfo=UTC)
    text = written("nquads", CONSTRUCT, match(CONSTRUCT, end=end, triples=TRIPLES)).decode()
    time, *quads = text.splitlines()
    assert time == (
        "_:match1 <http://www.w3.org/ns/prov#generatedAtTime> "
        '"2026-01-02T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
    )
    assert sorted(quads) == [
        f'<{EX}x> <{EX}p> "line\\n@prefix no: <http://no/> ." _:match1 .',
        f"<{EX}x> <{EX}q> _:b1 _:match1 .",
    ]
    assert written("nquads", CONSTRUCT) == b""


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["table", "json", "xml", "csv", "tsv"])
def test_construct_has_no_rows(name: str) -> None:
    with pytest.raises(
        FormatError, match=f"{name} cannot hold the results of CONSTRUCT: use trig, nquads, ndjson"
    ):
        writer(name, CONSTRUCT, BytesIO())


@pytest.mark.parametrize("name", ["trig", "nquads"])
@pytest.mark.parametrize(("form", "word"), [(s.Ask(), "ASK"), (select("a"), "SELECT")])
def test_rows_are_no_graph(name: str, form: s.Ask | s.Select, word: str) -> None:
    with pytest.raises(FormatError, match=f"{name} cannot hold the results of {word}: use table, json"):
        writer(name, query(form), BytesIO())


def test_unknown_format() -> None:
    with pytest.raises(FormatError, match="unknown result format 'yaml': known are table, json"):
        writer("yaml", ROWS_QUERY, BytesIO())


def test_xml_refuses_what_it_cannot_write() -> None:
    with pytest.raises(FormatError, match=r"U\+0001.*use json"):
        written("xml", ROWS_QUERY, match(ROWS_QUERY, [{"a": Literal("\x01")}]))


def test_formats_are_named_as_on_the_command_line() -> None:
    assert [str(name) for name in Format] == "table json xml csv tsv ndjson trig nquads count".split()  # noqa: SIM905  # as the issue lists them
