"""RDF Messages: the community group's cases, and messages as events."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.limits import Limits
from spaseq.sources import write_messages
from spaseq.sources.formats.messages import QuadMessage, split_messages

from .reading import PREFIXES, Sample, Trickle, pieces, read, samples

VERSION = 'VERSION "1.2-messages"\n'
_SYNTAX = {"turtle": "ttl", "nquads": "nq", "trig": "trig", "ntriples": "nt"}


def split(form: str, text: bytes, size: int) -> list[QuadMessage]:
    return [message for group in split_messages(form, pieces(text, size), Limits()) for message in group]


def _terms(quad: ox.Quad) -> list[str]:
    return [term.value for term in (*quad.triple, quad.graph_name) if not isinstance(term, ox.DefaultGraph)]


@pytest.mark.parametrize("size", [1, 10, 1 << 18])
def test_community_cases(shared: Callable[[str], Path], size: int) -> None:
    cases = json.loads((shared("rdf-messages") / "cases.json").read_text())["cases"]
    assert len(cases) == 14
    for case in cases:
        messages = split(_SYNTAX[case["syntax"]], case["input"].encode(), size)
        expected = case["messages"]
        if expected == "error":
            assert any(message.error for message in messages), case["name"]
            continue
        assert not any(message.error for message in messages), case["name"]
        assert [message.number for message in messages] == list(range(1, len(messages) + 1))
        if isinstance(expected, str):  # the one about blank nodes, told in words: see the next test
            assert [len(message.quads) for message in messages] == [1, 1]
        else:
            assert [[_terms(quad) for quad in m.quads] for m in messages] == expected, case["name"]


def test_blank_nodes_are_scoped_per_message() -> None:
    reading = read(VERSION + "_:b <p:p> <o:1> .\nMESSAGE\n_:b <p:p> <o:2> .\n", "format=nt&time=arrival")
    first, second = reading.triples(0), reading.triples(1)
    assert first.pop().split()[0] != second.pop().split()[0]


@given(st.lists(samples().map(lambda events: [q for e in events for q in (e.stamp, *e.quads)]), max_size=4))
@pytest.mark.parametrize("syntax", ["nq", "trig"])
def test_writing_and_reading_gives_the_same_messages(syntax: str, datasets: list[list[ox.Quad]]) -> None:
    out = BytesIO()
    write_messages(datasets, out, syntax)
    messages = split(syntax, out.getvalue(), 1 << 18)
    assert [set(message.quads) for message in messages] == [set(quads) for quads in datasets]


def test_what_is_an_event_in_a_message() -> None:
    text = (
        VERSION
        + PREFIXES
        + """
        :a { :x :p 1 } :a prov:generatedAtTime 1 ; :meta "data" .
        MESSAGE
        :x :p 2 ; prov:generatedAtTime 2 .
        MESSAGE
        MESSAGE
        :b { :x :p 3 ; prov:generatedAtTime 3 } :c { :x :p 4 } :c prov:generatedAtTime 4 .
        @message .
        :d { :x :p 5 } :e { :x :p 6 } :e prov:generatedAtTime 6 .
        MESSAGE
        :x :p 7 .
        """
    )
    for form in ("trig", "messages"):
        reading = read(text, f"format={form}")
        assert list(zip(reading.graphs, reading.times, strict=True)) == [
            ("a", 1), (None, 2), ("b", 3), ("c", 4), ("e", 6),
        ]  # fmt: skip
        assert reading.positions == ["message 5", "message 6"]


def test_a_bad_message_costs_itself() -> None:
    text = VERSION + PREFIXES + ":x :p 1 .\nMESSAGE\n:x :p .\nMESSAGE\n:x :p 3 .\nMESSAGE\n:x unknown:p 4 ."
    reading = read(text, "format=trig&time=arrival")
    assert reading.times == [0, 1]
    assert reading.positions == ["message 2", "message 4"]
    assert reading.bad[0].payload == ":x :p ."


def test_a_prefix_of_a_bad_message_carries_over() -> None:
    text = VERSION + "PREFIX p: <p:>\n<s:s> p:p .\nMESSAGE\n<s:s> p:p <o:o> ."
    reading = read(text, "format=ttl&time=arrival")
    assert (reading.times, reading.positions) == ([0], ["message 1"])


def test_delimiters_need_the_version() -> None:
    reading = read("<s:s> <p:p> <o:o> .\nMESSAGE\n<s:s> <p:p> <o:2> .\n", "format=messages&time=arrival")
    assert reading.times == []
    assert reading.positions == ["message 1", "message 2"]
    assert "VERSION" in reading.reasons[0]


def test_version_after_comments_and_prefixes() -> None:
    for start in ("# log\n\n" + VERSION, PREFIXES + VERSION, '@version "1.2-messages" .\n'):
        reading = read(start + "<s:s> <p:p> 1 . MESSAGE <s:s> <p:p> 2 .", "format=ttl&time=arrival")
        assert reading.times == [0, 1], start


def test_a_message_is_delivered_with_its_delimiter() -> None:
    parts = [VERSION.encode(), b"<s:s> <p:p> <o:1> .\n", b"MESSAGE\n", b"<s:s> <p:p> <o:2> .\n"]
    pipe = Trickle(parts)
    given: list[int] = []
    for group in split_messages("nq", iter(pipe.read, b""), Limits()):
        given += [pipe.given] * len(group)
    assert given == [3, 4]


@given(samples(), st.sampled_from([1, 5, 1 << 18]))
def test_what_looks_like_a_delimiter(events: list[Sample], size: int) -> None:
    """Only a delimiter at the level of tokens is one: not in strings, IRIs, comments, names, tags."""
    tricky = (
        PREFIXES
        + 'PREFIX message: <http://example.org/message/>\n'
        + ':MESSAGE :message message:MESSAGE, """\nMESSAGE\n""", "x"@message , <x:MESSAGE> . # MESSAGE\n'
    )  # fmt: skip
    body = "".join(f"{triple} .\n" for event in events for triple in event.triples)
    messages = split("trig", (VERSION + tricky + body + "message\n" + tricky).encode(), size)
    assert [message.error for message in messages] == ["", ""]
    assert len(messages[1].quads) == 4
