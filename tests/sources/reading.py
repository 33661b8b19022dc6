"""Reads text as a stream, and makes events to write and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO, RawIOBase
from pathlib import Path
from typing import IO

import pyoxigraph as ox
from hypothesis import strategies as st

from spaseq.events import Clock, EventBatch
from spaseq.sources import GENERATED_AT, BadEvent, SourceOptions, open_source, parse_source
from spaseq.terms.dictionary import UNBOUND, Dictionary

STREAM = ox.NamedNode("http://example.org/stream")
XSD = "http://www.w3.org/2001/XMLSchema#"
EX = "http://example.org/"
#: Prolog of the texts in these tests.
PREFIXES = f"PREFIX : <{EX}> PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX xsd: <{XSD}>\n"


@dataclass
class Reading:
    """What came of a source: batches and bad events."""

    batches: list[EventBatch] = field(default_factory=list)
    bad: list[BadEvent] = field(default_factory=list)

    @property
    def times(self) -> list[int]:
        return [time for batch in self.batches for time in batch.time.tolist()]

    @property
    def numbers(self) -> list[int]:
        return [n for batch in self.batches for n in batch.n.tolist()]

    @property
    def graphs(self) -> list[str | None]:
        """The graph names, without the examples' namespace."""
        found = []
        for batch in self.batches:
            for name in batch.graph.tolist():
                term = batch.dictionary.term(name) if name != UNBOUND else None
                found.append(None if term is None else term.value.removeprefix(EX))
        return found

    @property
    def positions(self) -> list[str]:
        return [event.position for event in self.bad]

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.bad]

    @property
    def clocks(self) -> set[Clock]:
        return {batch.clock for batch in self.batches}

    def triples(self, event: int = 0) -> set[str]:
        """The triples of one event, as N-Triples."""
        for batch in self.batches:
            if event < len(batch):
                terms = batch.dictionary.term
                return {" ".join(str(terms(i)) for i in row) for row in batch.triples(event)}
            event -= len(batch)
        raise IndexError(event)


def read(
    source: str | bytes | Path | IO[bytes], spec: str = "", options: SourceOptions | None = None
) -> Reading:
    """Read text, a file or a pipe; ``spec`` are options as on the command line: ``format=nq&triples=2``."""
    if isinstance(source, str):
        source = source.encode()
    if isinstance(source, bytes):
        source = BytesIO(source)
    reading = Reading()
    options = options or parse_source(f"-?{spec}")[1]
    reading.batches.extend(open_source(source, STREAM, Dictionary(), options, on_bad=reading.bad.append))
    return reading


class Trickle(RawIOBase):
    """A pipe that gives the parts one at a time, and says how many it gave."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = iter(parts)
        self.given = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        del size  # the tests' parts are small
        for part in self._parts:
            self.given += 1
            return part
        return b""


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


# --- random events ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """An event: its name, its time in ticks, its triples."""

    name: ox.NamedNode
    time: int
    triples: tuple[ox.Triple, ...]

    @property
    def stamp(self) -> ox.Quad:
        return ox.Quad(self.name, GENERATED_AT, integer(self.time))

    @property
    def quads(self) -> list[ox.Quad]:
        return [ox.Quad(*triple, self.name) for triple in self.triples]


def integer(value: int) -> ox.Literal:
    return ox.Literal(str(value), datatype=ox.NamedNode(XSD + "integer"))


_NAMES = st.sampled_from(["a", "b", "c.d", "é", "x/y#z"]).map(lambda name: ox.NamedNode(EX + name))
_BLANK = st.sampled_from(["b0", "b1"]).map(ox.BlankNode)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['" . }', "'''", '"""', "# no comment", "\nMESSAGE\n", "{ <", "\\", "} .\n@message .\n", "\r\n"]
)
_LITERALS = st.one_of(
    _TEXT.map(ox.Literal),
    _TEXT.map(lambda text: ox.Literal(text, language="en-GB")),
    st.integers(-9, 99).map(integer),
    st.sampled_from(["1.5", "-.5"]).map(lambda v: ox.Literal(v, datatype=ox.NamedNode(XSD + "decimal"))),
)
_TRIPLES = st.builds(ox.Triple, _NAMES | _BLANK, _NAMES, _NAMES | _BLANK | _LITERALS)


@st.composite
def samples(draw: st.DrawFn) -> list[Sample]:
    """A stream's events, in order of arrival; times may come in any order."""
    bodies = draw(st.lists(st.lists(_TRIPLES, min_size=1, max_size=4, unique=True), max_size=6))
    return [
        Sample(ox.NamedNode(f"{EX}g{number}"), draw(st.integers(-5, 50)), tuple(body))
        for number, body in enumerate(bodies)
    ]


def assert_same(reading: Reading, expected: list[Sample], *, named: bool = True) -> None:
    """The events read are those written, up to the names of blank nodes."""
    assert reading.bad == []
    assert reading.times == [sample.time for sample in expected]
    assert reading.numbers == list(range(len(expected)))
    names = [sample.name.value.removeprefix(EX) if named else None for sample in expected]
    assert reading.graphs == names
    for number, sample in enumerate(expected):
        assert _canonical(_graph(reading, number)) == _canonical(sample.triples)


def _graph(reading: Reading, event: int) -> list[ox.Triple]:
    text = "".join(f"{line} .\n" for line in reading.triples(event))
    return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES)]


def _canonical(triples: Iterable[ox.Triple]) -> set[str]:
    dataset = ox.Dataset(ox.Quad(*triple) for triple in triples)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in dataset}
