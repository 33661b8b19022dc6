"""What is written in a format is read back as the same events, whatever the size of the reads."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyjelly import jelly
from pyjelly.integrations.generic.generic_sink import (
    IRI,
    BlankNode,
    DefaultGraph,
    Literal,
    Quad,
    Triple,
)
from pyjelly.integrations.generic.serialize import GenericSinkTermEncoder
from pyjelly.options import LookupPreset, StreamParameters, StreamTypes
from pyjelly.serialize.flows import BoundedFrameFlow, DatasetsFrameFlow, GraphsFrameFlow
from pyjelly.serialize.ioutils import write_delimited, write_single
from pyjelly.serialize.streams import GraphStream, QuadStream, SerializerOptions, TripleStream

from spaseq.sources import GENERATED_AT, write_messages

from .reading import PREFIXES, Sample, Trickle, assert_same, integer, pieces, read, samples

SIZES = st.sampled_from([1, 2, 7, 64, 1 << 20])


@given(samples(), SIZES, st.booleans())
def test_nquads(events: list[Sample], size: int, time_first: bool) -> None:
    lines = []
    for event in events:
        quads = [event.stamp, *event.quads] if time_first else [*event.quads, event.stamp]
        lines += [f"{quad} .\n" for quad in quads]
    assert_same(read(Trickle(pieces("".join(lines).encode(), size)), "format=nq"), events)


@given(samples(), SIZES, st.booleans())
def test_trig(events: list[Sample], size: int, time_first: bool) -> None:
    text = [PREFIXES]
    for event in events:
        body = "".join(f"  {triple} .\n" for triple in event.triples)
        graph, stamp = f"{event.name} {{\n{body}}}\n", f"{event.stamp} .\n"
        text.append(stamp + graph if time_first else graph + stamp)
    assert_same(read(Trickle(pieces("".join(text).encode(), size)), "format=trig"), events)


@given(samples())
def test_trig_as_pyoxigraph_writes_it(events: list[Sample]) -> None:
    quads = [quad for event in events for quad in (event.stamp, *event.quads)]
    assert_same(read(ox.serialize(quads, format=ox.RdfFormat.TRIG), "format=trig"), events)


@given(samples(), SIZES, st.sampled_from(["nq", "trig"]))
def test_messages(events: list[Sample], size: int, syntax: str) -> None:
    out = BytesIO()
    write_messages(([event.stamp, *event.quads] for event in events), out, syntax)
    assert_same(read(Trickle(pieces(out.getvalue(), size)), f"format={syntax}"), events)


@given(samples())
def test_messages_of_one_unnamed_graph(events: list[Sample]) -> None:
    inside = [
        Sample(event.name, event.time, (*event.triples, ox.Triple(*_stamp_of(event)))) for event in events
    ]
    out = BytesIO()
    write_messages(([ox.Quad(*triple) for triple in event.triples] for event in inside), out)
    assert_same(read(out.getvalue(), "format=nq"), inside, named=False)


@given(samples())
def test_json_ld_a_document_a_line(events: list[Sample]) -> None:
    # pyoxigraph's JSON-LD writer gives a document with a graph per name, which is what a line may be.
    lines = [
        ox.serialize([event.stamp, *event.quads], format=ox.RdfFormat.JSON_LD).replace(b"\n", b" ") + b"\n"
        for event in events
    ]
    assert_same(read(b"".join(lines), "format=ndjsonld"), events)


@given(samples())
def test_json_ld_one_document(events: list[Sample]) -> None:
    quads = [quad for event in events for quad in (event.stamp, *event.quads)]
    text = ox.serialize(quads, format=ox.RdfFormat.JSON_LD) if quads else b"{}"
    assert_same(read(text, "format=jsonld"), events)


@given(samples(), SIZES)
def test_jelly_flat_quads(events: list[Sample], size: int) -> None:
    stream = _jelly(
        QuadStream,
        jelly.PHYSICAL_STREAM_TYPE_QUADS,
        BoundedFrameFlow(logical_type=jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS, frame_size=3),
    )
    frames = [stream.quad(_jelly_quad(q)) for event in events for q in (event.stamp, *event.quads)]
    frames.append(stream.flow.to_stream_frame())
    assert_same(read(Trickle(pieces(_delimited(frames), size)), "format=jelly"), events)


@given(samples(), SIZES)
def test_jelly_frame_is_dataset(events: list[Sample], size: int) -> None:
    logical = jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS
    stream = _jelly(QuadStream, jelly.PHYSICAL_STREAM_TYPE_QUADS, DatasetsFrameFlow(logical_type=logical))
    frames = []
    for event in events:
        for quad in (*event.quads, event.stamp):
            stream.quad(_jelly_quad(quad))
        frames.append(stream.flow.frame_from_dataset())
    assert_same(read(Trickle(pieces(_delimited(frames), size)), "format=jelly"), events)


# Records whose time is about another subject than the rest.
@pytest.mark.filterwarnings("ignore:.*no triple connects")
@given(samples(), st.booleans())
def test_jelly_frame_is_graph(events: list[Sample], flat: bool) -> None:
    """Graphs with the time inside; and the same as a flat stream, cut into frames of another size."""
    inside = [
        Sample(event.name, event.time, (event.triples[0], ox.Triple(*_stamp_of(event)))) for event in events
    ]
    inside = [event for event in inside if len(set(event.triples)) == 2]
    logical = jelly.LOGICAL_STREAM_TYPE_FLAT_TRIPLES if flat else jelly.LOGICAL_STREAM_TYPE_GRAPHS
    flow = (
        BoundedFrameFlow(logical_type=logical, frame_size=3)
        if flat
        else GraphsFrameFlow(logical_type=logical)
    )
    stream = _jelly(TripleStream, jelly.PHYSICAL_STREAM_TYPE_TRIPLES, flow)
    frames = []
    for event in inside:
        frames += [stream.triple(Triple(*map(_jelly_term, triple))) for triple in event.triples]
        if not flat:
            frames.append(stream.flow.frame_from_graph())
    frames.append(stream.flow.to_stream_frame())
    spec = "format=jelly&triples=2" if flat else "format=jelly"
    assert_same(read(_delimited(frames), spec), inside, named=False)


@given(samples(), SIZES, st.booleans())
def test_jelly_graphs(events: list[Sample], size: int, flat: bool) -> None:
    """Physical graphs: flat, so that frames cut through events; or a frame a dataset."""
    logical = (
        jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS if flat else jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS
    )
    flow = (
        BoundedFrameFlow(logical_type=logical, frame_size=4)
        if flat
        else DatasetsFrameFlow(logical_type=logical)
    )
    stream = _jelly(GraphStream, jelly.PHYSICAL_STREAM_TYPE_GRAPHS, flow)
    frames: list[Any] = []
    for event in events:
        stamp = Triple(*map(_jelly_term, event.stamp.triple))
        frames += stream.graph(DefaultGraph, [stamp])
        body = [Triple(*map(_jelly_term, triple)) for triple in event.triples]
        frames += stream.graph(_jelly_term(event.name), body)
        if not flat:
            frames.append(stream.flow.frame_from_dataset())
    frames.append(stream.flow.to_stream_frame())
    assert_same(read(Trickle(pieces(_delimited(frames), size)), "format=jelly"), events)


def test_jelly_without_delimiters() -> None:
    event = Sample(ox.NamedNode("http://example.org/g0"), 7, ())
    stream = _jelly(
        QuadStream,
        jelly.PHYSICAL_STREAM_TYPE_QUADS,
        DatasetsFrameFlow(logical_type=jelly.LOGICAL_STREAM_TYPE_DATASETS),
    )
    body = ox.Quad(event.name, event.name, event.name, event.name)
    stream.quad(_jelly_quad(body))
    stream.quad(_jelly_quad(event.stamp))
    out = BytesIO()
    write_single(stream.flow.frame_from_dataset(), out)
    assert_same(read(out.getvalue(), "format=jelly"), [Sample(event.name, 7, (body.triple,))])


def _stamp_of(event: Sample) -> tuple[ox.NamedNode, ox.NamedNode, ox.Literal]:
    return event.name, GENERATED_AT, integer(event.time)


def _jelly(kind: Any, physical: Any, flow: Any) -> Any:
    options = SerializerOptions(
        flow=flow,
        logical_type=flow.logical_type,
        params=StreamParameters(),
        lookup_preset=LookupPreset.small(),
    )
    assert StreamTypes(physical, flow.logical_type)
    stream = kind(encoder=GenericSinkTermEncoder(options.lookup_preset), options=options)
    stream.enroll()
    return stream


def _jelly_term(term: ox.NamedNode | ox.BlankNode | ox.Literal) -> IRI | BlankNode | Literal:
    if isinstance(term, ox.NamedNode):
        return IRI(term.value)
    if isinstance(term, ox.BlankNode):
        return BlankNode(term.value)
    plain = term.language or term.datatype.value.endswith("#string")
    return Literal(term.value, term.language, None if plain else term.datatype.value)


def _jelly_quad(quad: ox.Quad) -> Quad:
    default = isinstance(quad.graph_name, ox.DefaultGraph)
    graph = DefaultGraph if default else _jelly_term(quad.graph_name)
    return Quad(*map(_jelly_term, quad.triple), graph)


def _delimited(frames: Iterable[Any]) -> bytes:
    out = BytesIO()
    for frame in frames:
        if frame is not None:
            write_delimited(frame, out)
    return out.getvalue()
