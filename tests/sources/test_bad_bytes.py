"""Malformed input costs what it breaks, is reported with its place, and what follows is read."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import BadEventError
from spaseq.sources import BadEvent, SourceOptions, _bytes, open_source
from spaseq.sources.formats import turtle
from spaseq.terms.dictionary import Dictionary

from .reading import PREFIXES, STREAM, Sample, Trickle, pieces, read, samples

TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


def event(name: str, time: int, *bodies: str) -> str:
    graph = f"<http://example.org/{name}>"
    body = "".join(f"<s:s> <p:p> {body} {graph} .\n" for body in bodies or ["<o:o>"])
    return f'{graph} {TIME} "{time}"^^{INTEGER} .\n{body}'


@pytest.mark.parametrize(
    ("line", "part", "spares_next"),
    [
        ("<s:s> <p:p> oops <http://example.org/b> .", "object", True),
        ('<s:s> <p:p> "unclosed <http://example.org/b> .', "", True),
        ("<s:s> <p:p> <o:o> <http://example.org/b>", "", True),
        ("<s:s> <p:p> <relative> <http://example.org/b> .", "IRI", True),
        ('<s:s> <p:p> "\\q" <http://example.org/b> .', "", True),
        # These could be the beginning of the next event.
        ("<s:s> <p:p> <o:o> <http://example.org/b> . trailing", "", False),
        ("\x00\x01\x02", "", False),
        ("<s:s> <p:p", "", False),
    ],
)
def test_nquads_line(line: str, part: str, spares_next: bool) -> None:
    text = event("a", 1) + event("b", 2, "<o:1>") + line + "\n" + event("c", 3) + event("d", 4)
    for size in (1, 1 << 20):
        reading = read(Trickle(pieces(text.encode(), size)), "format=nq")
        assert reading.graphs == (["a", "c", "d"] if spares_next else ["a", "d"])
        assert reading.positions == ["line 5", "event 2"] + ([] if spares_next else ["event 3"])
        assert reading.bad[0].payload == line
        assert part in reading.bad[0].reason
        assert set(reading.reasons[1:]) == {"incomplete: line 5 could not be read"}
        assert "<o:1>" in reading.bad[1].payload


def test_nquads_line_inside_an_event() -> None:
    """The line between two of an event cannot be of the next one."""
    line = "<s:s> <p:p> <o:o> <http://example.org/b> .\n"
    text = event("a", 1) + event("b", 2) + "oops\n" + line + event("c", 3)
    assert read(text, "format=nq").graphs == ["a", "c"]


def test_nquads_line_of_another_event() -> None:
    """The line says itself whose it is: of one not yet begun, or waiting."""
    broken = "<s:s> <p:p> oops <http://example.org/c> .\n"
    reading = read(event("a", 1) + broken + event("b", 2) + event("c", 3) + event("d", 4), "format=nq")
    assert reading.graphs == ["a", "b", "d"]
    assert reading.positions == ["line 3", "event 3"]


def test_nquads_invalid_utf8() -> None:
    broken = event("b", 2, '"é"').encode("latin-1")
    reading = read(event("a", 1).encode() + broken + event("c", 3).encode(), "format=nq")
    assert reading.graphs == ["a", "c"]
    assert reading.positions[0] == "line 4"


def test_nquads_two_on_a_line_is_an_error() -> None:
    reading = read(event("a", 1, "<o:o> <http://example.org/a> . <s:s> <p:p> <o:2>"), "format=nq")
    assert reading.graphs == []
    assert reading.positions == ["line 2"]


def test_nquads_message_without_version() -> None:
    reading = read(event("a", 1) + "MESSAGE\n" + event("b", 1) + event("c", 1), "format=nq")
    assert reading.graphs == ["c"]
    assert reading.positions == ["line 3", "event 1", "event 2"]


def test_line_ends_and_comments() -> None:
    text = ("# first\n\n" + event("a", 1) + "  # more\n" + event("b", 2)).replace("\n", "\r\n").rstrip()
    assert read(text, "format=nq").graphs == ["a", "b"]


@given(samples(), st.data())
def test_a_broken_line_costs_only_its_event(events: list[Sample], data: st.DataObject) -> None:
    """Cut any one line anywhere: its event is not delivered, and the others are."""
    lines = [(n, f"{quad} .") for n, e in enumerate(events) for quad in (*e.quads, e.stamp)]
    if not lines:
        return
    index = data.draw(st.integers(0, len(lines) - 1))
    owner, line = lines[index]
    cut = data.draw(st.integers(1, len(line) - 2))
    texts = [text for _, text in lines]
    texts[index] = line[:cut]
    reading = read("\n".join(texts) + "\n", "format=nq")
    if not line[:cut].strip().startswith("#"):
        assert reading.positions[0] == f"line {index + 1}"
    delivered = [int(str(graph)[1:]) for graph in reading.graphs]
    missing = set(range(len(events))) - set(delivered)
    assert delivered == sorted(delivered)
    assert owner in missing
    assert missing <= {owner - 1, owner, owner + 1}, "no event that the line cannot have been part of"
    assert len(reading.bad) >= len(missing), "each one is reported"


def test_trig_statements() -> None:
    text = (
        PREFIXES
        + """# …
:a prov:generatedAtTime 1 . :a { :x :p 1 }
:b prov:generatedAtTime 2 . :b { :x :p }
:c prov:generatedAtTime 3 . :c { :x :p "} . '" }
undeclared:d prov:generatedAtTime 3 .
:e prov:generatedAtTime 4 . :e { :x :p "unclosed }
:f prov:generatedAtTime 5 . :f { :x :p 1.5 }
}
:g prov:generatedAtTime 6 . GRAPH :g { :x :p ''' } ''' }
:h { :x :p 1 . # } no end
"""
    )
    for size in (1, 13, 1 << 20):
        reading = read(Trickle(pieces(text.encode(), size)), "format=trig")
        # :e's unclosed string takes the next line with it, up to a closing brace: resynchronised after it.
        assert reading.graphs[:2] == ["a", "c"]
        assert reading.graphs[-1] == "g"
        assert reading.positions[:2] == ["line 4", "line 6"]
        assert reading.bad[0].payload == ":b { :x :p }"
        assert "undeclared" in reading.bad[1].payload
        assert reading.positions[-1] == "line 12"


def test_trig_other_parts_of_a_broken_graph() -> None:
    reading = read(
        PREFIXES + ":a { :x :p 1 } :a { :x :p } :a { :x :p 2 } :a prov:generatedAtTime 1 .", "format=trig"
    )
    assert reading.graphs == []
    assert reading.positions == ["line 2", "event 1"]
    assert reading.reasons[1] == "incomplete: line 2 could not be read"


def test_trig_prefixes_of_a_broken_statement_count() -> None:
    reading = read(
        "@prefix e: <http://example.org/> . e:a { e:x e:p } PREFIX f: <http://example.org/f/>\n"
        f"f:b {{ e:x e:p 1 }} f:b {TIME} 1 . BASE <http://example.org/base/> "
        f"<b> {{ e:x e:p <> }} <b> {TIME} 2 .",
        "format=trig",
    )
    assert reading.graphs == ["f/b", "base/b"]
    assert len(reading.bad) == 1


@given(st.binary(max_size=60), st.sampled_from([1, 9, 1 << 20]))
@pytest.mark.parametrize(
    "spec", ["nq", "trig", "nt&triples=2", "ttl&triples=2", "messages", "jsonld", "ndjsonld", "jelly"]
)
def test_any_bytes(spec: str, data: bytes, size: int) -> None:
    """Whatever the bytes, reading ends, without an exception."""
    texts = [data, b"<a:> { <b:> <c:> <d:> }\n" + data]
    if "triples" not in spec:
        texts.append(b'VERSION "1.2-messages"\n' + data)
    for text in texts:
        if "triples" in spec and text.lstrip().startswith(b"VERSION"):
            continue  # what says that it is RDF Messages is refused with triples=
        if not text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):  # compressed, see test_transport
            assert read(Trickle(pieces(text, size)), f"format={spec}").times == []


def test_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bytes, "LONGEST", 1000)
    monkeypatch.setattr(turtle, "LONGEST", 1000)
    line = f'<s:s> <p:p> "{"x" * 5000}" <http://example.org/b> .\n'
    text = event("a", 1) + event("b", 2) + line + event("c", 3) + event("d", 4)
    reading = read(Trickle(pieces(text.encode(), 300)), "format=nq")
    assert reading.graphs == ["a", "d"]
    assert reading.positions == ["line 5", "event 2", "event 3"]
    assert "more than 1000 bytes" in reading.reasons[0]
    block = f'\n:b {{ :x :p "{"x" * 5000}" }}\n'
    text = PREFIXES + ":a { :x :p 1 }" + block + ":c { :x :p 1 }"
    reading = read(Trickle(pieces(text.encode(), 300)), "format=trig&time=arrival")
    assert reading.graphs[0] == "a"
    assert reading.graphs[-1] == "c"
    assert "more than 1000 bytes" in reading.reasons[0]


def test_jelly_stops_where_it_is_damaged() -> None:
    assert read(b"\x05not jelly", "format=jelly").positions == ["frame 1"]
    assert read(b"\xff" * 20, "format=jelly").positions == ["frame 1"]
    assert read(b"", "format=jelly").bad == []


@pytest.mark.parametrize("form", ["jsonld", "ndjsonld"])
def test_json_ld(form: str) -> None:
    good = '{"@id":"http://example.org/a","http://www.w3.org/ns/prov#generatedAtTime":1,"@graph":[{"@id":"x:x","p:p":1}]}'
    assert read(good, f"format={form}").graphs == ["a"]
    remote = '{"@context":"http://example.org/context","@id":"x:x","p":1}'
    reading = read(remote, f"format={form}")
    assert "never fetched" in reading.reasons[0]
    assert read('{"@id":', f"format={form}").bad[0].payload == '{"@id":'
    if form == "ndjsonld":
        reading = read(f"{good}\n{remote}\n\n{{\n{good}\n", f"format={form}")
        assert reading.graphs == ["a", "a"]
        assert reading.positions == ["line 2", "line 4"]


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("nq", b"oops\n"),
        ("trig", b"oops .\n"),
        ("messages", b'VERSION "1.2-messages"\noops .\n'),
        ("jsonld", b"{"),
        ("ndjsonld", b"{\n"),
        ("jelly", b"\xff" * 20),
    ],
)
def test_who_is_told_may_stop_the_reading(form: str, data: bytes) -> None:
    """What ``on_bad`` raises comes through: that is how ``strict`` works."""

    def stop(bad: BadEvent) -> None:
        raise BadEventError(bad.reason, stream=bad.stream, position=bad.position)

    batches = open_source(BytesIO(data), STREAM, Dictionary(), SourceOptions(format=form), on_bad=stop)
    with pytest.raises(BadEventError, match=STREAM.value):
        list(batches)
