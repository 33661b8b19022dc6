"""Streams and background graphs as text: the same events always give the same bytes.

The file's extension decides the format: TriG, N-Quads, N-Triples, JSON-LD, RDF Messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad, Triple

from spaseq.samples._model import COMMON_PREFIXES, PROV, RDF, XSD, Object, SampleEvent, SampleStream, moment

_LOCAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_GENERATED: Final = PROV("generatedAtTime")
_BARE: Final = (XSD("integer"), XSD("decimal"))


class _Turtle:
    """Terms and triples in Turtle, abbreviated by prefixes; keeps track of the prefixes used."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = {**COMMON_PREFIXES, **prefixes}
        self._used: set[str] = set()

    def header(self) -> str:
        return "".join(f"PREFIX {name}: <{self._prefixes[name]}>\n" for name in sorted(self._used))

    def term(self, term: Object | Triple) -> str:
        if isinstance(term, NamedNode):
            return self._iri(term)
        if isinstance(term, Literal) and term.datatype in _BARE:
            return term.value
        if isinstance(term, Literal) and term.language is None and term.datatype != XSD("string"):
            return f"{json.dumps(term.value, ensure_ascii=False)}^^{self._iri(term.datatype)}"
        return str(term)

    def _iri(self, iri: NamedNode) -> str:
        for name, base in self._prefixes.items():
            if iri.value.startswith(base) and _LOCAL.fullmatch(iri.value[len(base) :]):
                self._used.add(name)
                return f"{name}:{iri.value[len(base) :]}"
        return str(iri)

    def triples(self, triples: Iterable[Triple], indent: str = "") -> str:
        """Return consecutive triples of one subject as one block, its properties separated by ``;``."""
        lines: list[str] = []
        subject = None
        for triple in triples:
            predicate = "a" if triple.predicate == RDF("type") else self.term(triple.predicate)
            pair = f"{predicate} {self.term(triple.object)}"
            if triple.subject == subject:
                lines[-1] += f" ; {pair}"
            else:
                lines.append(f"{indent}{self.term(triple.subject)} {pair}")
                subject = triple.subject
        return "".join(f"{line} .\n" for line in lines)

    def event(self, event: SampleEvent) -> str:
        name = self.term(event.graph)
        body = self.triples(event.triples, "  ")
        return f"{name} {self.term(_GENERATED)} {self.term(moment(event.time))} .\n{name} {{\n{body}}}\n"


def turtle(triples: Iterable[Triple], prefixes: Mapping[str, str]) -> str:
    """Return a graph in Turtle."""
    writer = _Turtle(prefixes)
    body = writer.triples(triples)
    return f"{writer.header()}\n{body}"


def _trig(stream: SampleStream, prefixes: Mapping[str, str]) -> str:
    writer = _Turtle(prefixes)
    body = "\n".join(writer.event(event) for event in stream.events)
    return f"{writer.header()}\n{body}"


def _messages(stream: SampleStream, prefixes: Mapping[str, str]) -> str:
    """Return RDF Messages: one event per message, with its own blank nodes."""
    writer = _Turtle(prefixes)
    body = "MESSAGE\n".join(writer.event(event) for event in stream.events)
    return f'VERSION "1.2-messages"\n{writer.header()}{body}'


def _nquads(stream: SampleStream, _: Mapping[str, str]) -> str:
    def lines() -> Iterator[str]:
        for event in stream.events:
            yield f"{Triple(event.graph, _GENERATED, moment(event.time))} .\n"
            for triple in event.triples:
                yield f"{Quad(triple.subject, triple.predicate, triple.object, event.graph)} .\n"

    return "".join(lines())


def _ntriples(stream: SampleStream, _: Mapping[str, str]) -> str:
    """Return a fixed number of triples per event, the last one its time; the graph names are lost."""

    def lines() -> Iterator[str]:
        for event in stream.events:
            for triple in event.triples:
                yield f"{triple} .\n"
            yield f"{Triple(event.triples[0].subject, _GENERATED, moment(event.time))} .\n"

    return "".join(lines())


def _jsonld(stream: SampleStream, prefixes: Mapping[str, str]) -> str:
    """Return one JSON-LD document, one line per event: a named graph with its time beside it."""
    short = {**COMMON_PREFIXES, **prefixes}
    typed = {
        predicate
        for event in stream.events
        for triple in event.triples
        if isinstance(triple.object, NamedNode) and (predicate := triple.predicate) != RDF("type")
    }

    def compact(iri: str) -> str:
        for name, base in short.items():
            if iri.startswith(base) and _LOCAL.fullmatch(iri[len(base) :]):
                return f"{name}:{iri[len(base) :]}"
        return iri

    def value(term: Object | Triple) -> Any:
        if isinstance(term, NamedNode):
            return compact(term.value)
        assert isinstance(term, Literal), "no blank nodes in JSON-LD samples"
        if term.datatype == XSD("integer"):
            return int(term.value)
        if term.datatype == XSD("string"):
            return term.value
        return {"@value": term.value, "@type": compact(term.datatype.value)}

    def line(event: SampleEvent) -> str:
        nodes: dict[str, dict[str, Any]] = {}
        for triple in event.triples:
            assert isinstance(triple.subject, NamedNode), "no blank nodes in JSON-LD samples"
            subject = compact(triple.subject.value)
            key = "@type" if triple.predicate == RDF("type") else compact(triple.predicate.value)
            nodes.setdefault(subject, {"@id": subject})[key] = value(triple.object)
        return json.dumps(
            {
                "@id": compact(event.graph.value),
                "prov:generatedAtTime": moment(event.time).value,
                "@graph": list(nodes.values()),
            },
            ensure_ascii=False,
        )

    context: dict[str, Any] = {
        **dict(sorted(short.items())),
        "prov:generatedAtTime": {"@type": "xsd:dateTime"},
        **{compact(predicate.value): {"@type": "@id"} for predicate in sorted(typed, key=str)},
    }
    events = ",\n".join(line(event) for event in stream.events)
    return f'{{"@context": {json.dumps(context)},\n"@graph": [\n{events}\n]}}\n'


_WRITERS: Final[Mapping[str, Callable[[SampleStream, Mapping[str, str]], str]]] = {
    "trig": _trig,
    "nq": _nquads,
    "nt": _ntriples,
    "jsonld": _jsonld,
    "messages": _messages,
}


def stream_text(stream: SampleStream, prefixes: Mapping[str, str]) -> str:
    """Return the stream in the format of its file's extension."""
    return _WRITERS[stream.file.rpartition(".")[2]](stream, prefixes)
