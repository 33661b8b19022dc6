"""Mutated bytes of every format, through the public API. A process of its own runs it: it may crash.

``python -m tests.attack.fuzz FORM SEED COUNT FILE`` tries so many inputs; before each, FILE says which one it
is. What is checked of each: no exception but those that the API promises; and no event lost without a word,
as far as pyoxigraph can tell what there was.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyoxigraph as ox

import spaseq
import spaseq.paths
from spaseq import Engine
from spaseq.engine import Progress, Source
from spaseq.errors import KnowledgeError, QueryError, SourceError
from spaseq.language import checked
from spaseq.patterns.kb import KnowledgeBase
from spaseq.sources import BadEvent, SourceOptions
from tests.sources.reading import Trickle, pieces

EX: Final = "http://example.org/"
STREAM: Final = f"{EX}s"
TIME: Final = "http://www.w3.org/ns/prov#generatedAtTime"
INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
QUERY: Final = (
    f"SELECT ?x ?v WITHIN 10 SECONDS FROM STREAM S <{STREAM}> "
    f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x <{EX}p> ?v FILTER(?v > 1 || STRLEN(STR(?v)) < 9) }} }}"
)
EVENTS: Final = 6

_WORDS: Final = r"""
    <<( )>> << >> ' ''' " \ \u0000 \uD800 @ar--rtl @en ^^ . # { } [ ] ( ) , ; : _:b < > <x> <urn:é> -1 null
    MESSAGE @message VERSION"1.2-messages" PREFIX @base<> "@context": "@graph": "@id": 1e999 NaN {"@list":[1]}
    <!ENTITY"e"> &e; &#0; <![CDATA[ ]]> <!-- --> SEQ( FILTER( GRAPH 2026-01-02T03:04:05Z 24:00:00 99999999999
"""

TOKENS: Final = [
    *(word.encode() for word in _WORDS.split()),
    *(bytes([number]) for number in (0, 9, 10, 13, 27, 32, 127, 195, 240, 255)),
    *(b"\r\n", b'"""', b"MESSAGE\n", b" .\n", b"\xef\xbb\xbf", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"),
    *(b"x" * 300, b"[" * 150, b"(" * 150, b"<<( <a:> <a:> " * 150),
]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A few changes: bits, tokens, and pieces that go, come twice, change places, or end the text."""
    text = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice([1, 1, 3, 20, 200]))
        match chance.randrange(7):
            case 0 if at < len(text):
                text[at] ^= 1 << chance.randrange(8)
            case 1:
                text[at:at] = chance.choice(TOKENS)
            case 2:
                text[at:end] = chance.choice(TOKENS)
            case 3:
                del text[at:end]
            case 4:
                text[at:at] = text[at:end]
            case 5:
                other = chance.randrange(len(text) + 1)
                piece = bytes(text[at:end])
                text[other:other] = piece
            case 6 if chance.random() < 0.3:
                del text[at:]
    return bytes(text)


# --- what is mutated ----------------------------------------------------------------------------


def _quads() -> list[ox.Quad]:
    quads = []
    for number in range(EVENTS):
        graph, subject = ox.NamedNode(f"{EX}g{number}"), ox.NamedNode(f"{EX}x")
        time = ox.Literal(str(number), datatype=ox.NamedNode(INTEGER))
        quads += [
            ox.Quad(graph, ox.NamedNode(TIME), time),
            ox.Quad(subject, ox.NamedNode(f"{EX}p"), ox.Literal(f'é "{number}"'), graph),
            ox.Quad(ox.BlankNode("b"), ox.NamedNode(f"{EX}q"), ox.Literal("x", language="en"), graph),
        ]
    return quads


def _serialized(form: ox.RdfFormat) -> bytes:
    prefixes = {"": EX} if form in (ox.RdfFormat.TRIG, ox.RdfFormat.TURTLE, ox.RdfFormat.RDF_XML) else None
    return ox.serialize(_quads(), format=form, prefixes=prefixes) or b""


def _triples(form: ox.RdfFormat) -> bytes:
    return ox.serialize([quad.triple for quad in _quads()], format=form) or b""


def _messages() -> bytes:
    parts = [f"<{EX}g{n}> <{TIME}> {n} . GRAPH <{EX}g{n}> {{ <{EX}x> <{EX}p> {n} }}" for n in range(EVENTS)]
    return ('VERSION "1.2-messages"\n' + "\nMESSAGE\n".join(parts)).encode()


def _documents() -> bytes:
    context = {"@vocab": EX, "time": {"@id": TIME}}
    rows = [{"@context": context, "@id": f"{EX}x", "p": n, "time": n} for n in range(EVENTS)]
    return "\n".join(map(json.dumps, rows)).encode()


def _rows(form: str) -> bytes:
    if form == "csv":
        return "\n".join(["x,p,time", *(f'urn:x{n},"a ""{n}""",{n}' for n in range(EVENTS))]).encode()
    return "\n".join(json.dumps({"x": f"urn:x{n}", "p": "é", "time": n}) for n in range(EVENTS)).encode()


def _jelly() -> bytes:
    import rdflib
    from pyjelly.integrations.rdflib import serialize  # noqa: F401  # registers the format

    dataset = rdflib.Dataset()
    dataset.parse(data=_serialized(ox.RdfFormat.N_QUADS), format="nquads")
    return dataset.serialize(format="jelly", encoding="utf-8")


FORMS: Final[dict[str, tuple[Callable[[], bytes], SourceOptions]]] = {
    "nq": (lambda: _serialized(ox.RdfFormat.N_QUADS), SourceOptions(format="nq")),
    "trig": (lambda: _serialized(ox.RdfFormat.TRIG), SourceOptions(format="trig")),
    "jsonld": (lambda: _serialized(ox.RdfFormat.JSON_LD), SourceOptions(format="jsonld")),
    "nt": (lambda: _triples(ox.RdfFormat.N_TRIPLES), SourceOptions(format="nt", triples=3, time="arrival")),
    "ttl": (lambda: _triples(ox.RdfFormat.TURTLE), SourceOptions(format="ttl", triples=3, time="arrival")),
    "messages": (_messages, SourceOptions(format="messages")),
    "ndjsonld": (_documents, SourceOptions(format="ndjsonld")),
    "csv": (lambda: _rows("csv"), SourceOptions(format="csv")),
    "ndjson": (lambda: _rows("ndjson"), SourceOptions(format="ndjson")),
    "jelly": (_jelly, SourceOptions(format="jelly")),
}
PARSERS: Final = {
    "nq": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
    "nt": ox.RdfFormat.N_TRIPLES,
    "ttl": ox.RdfFormat.TURTLE,
}
KNOWLEDGE: Final = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "ttl": ox.RdfFormat.TURTLE,
    "rdf": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}


# --- what is checked ----------------------------------------------------------------------------


def _check_stream(form: str, data: bytes, chance: random.Random, folder: Path) -> None:
    options = FORMS[form][1]
    if form in ("csv", "ndjson"):
        context = folder / "context.jsonld"
        if not context.exists():
            context.write_text(json.dumps({"@context": {"x": "@id", "p": f"{EX}p", "time": TIME}}))
        options = SourceOptions(format=form, context=context)
    size = chance.choice([1, 50, 1 << 20])
    letters: list[BadEvent] = []
    reports: list[Progress] = []
    source = Source(STREAM, Trickle(pieces(data, size)), options)
    try:
        for match in spaseq.run(QUERY, {"S": source}, dead_letters=letters.append, progress=reports.append):
            repr(match)
    except SourceError:
        return
    events, bad = reports[-1].events, reports[-1].bad
    assert bad == len([letter for letter in letters if not letter.reason.startswith("late")])
    least = _least(form, data)
    assert events + bad >= least, f"{events} events and {bad} dead letters of {least}"


def _least(form: str, data: bytes) -> int:
    """How many events there must have been, or dead letters instead."""
    if form == "ndjson":
        lines = [line.decode(errors="replace").strip() for line in data.split(b"\n")]
        return len([line for line in lines if line])
    if form in ("nq", "trig", "nt", "ttl") and b"message" not in data.lower():
        try:
            if data.count(b"<<") > 50:
                return 1
            quads = list(ox.parse(data, format=PARSERS[form]))
        except SyntaxError:
            return 1
        if form in ("nt", "ttl"):
            return -(-len(quads) // 3)
        return len({quad.graph_name for quad in quads if not isinstance(quad.graph_name, ox.DefaultGraph)})
    return 0


def _check_push(data: bytes) -> None:
    engine = Engine(dead_letters=lambda _: None)
    handle = engine.register(QUERY)
    text = data.decode(errors="surrogateescape")
    engine.push(STREAM, text, 1)
    engine.push(STREAM, f"<{EX}x> <{EX}p> 5 .", 2)
    engine.close()
    assert engine.bad in (0, 1)
    assert list(handle.matches())[-1].end == 2, "what comes after a bad event is found"


def _check_knowledge(form: str, data: bytes, folder: Path) -> None:
    path = folder / f"kb.{form}"
    path.write_bytes(data)
    for load in (lambda: KnowledgeBase({f"{EX}kb": path}), lambda: spaseq.paths.load(path)):
        try:
            load()
        except KnowledgeError:
            continue


def _check_query(data: bytes) -> None:
    try:
        query = checked(data.decode(errors="replace"))
    except QueryError:
        return
    str(query)
    try:
        Engine().register(query)
    except KnowledgeError:
        return


def check(form: str, data: bytes, chance: random.Random, folder: Path) -> None:
    """Raises AssertionError, or whatever must not be raised."""
    if form == "push":
        _check_push(data)
    elif form == "query":
        _check_query(data)
    elif form.startswith("kb-"):
        _check_knowledge(form[3:], data, folder)
    else:
        _check_stream(form, data, chance, folder)


def sample(form: str) -> bytes:
    """What is well-formed."""
    if form == "push":
        return f"@prefix : <{EX}> . :x :p 1 , 'é', [ :q (1 2 \"x\"@en) ] . # a comment\n".encode()
    if form == "query":
        return QUERY.encode()
    if form.startswith("kb-"):
        return _triples(KNOWLEDGE[form[3:]])
    return FORMS[form][0]()


ALL: Final = [*FORMS, "push", "query", *(f"kb-{form}" for form in KNOWLEDGE)]


def main(form: str, seed: str, count: str, file: str) -> None:
    """Try ``count`` inputs; leave the one that is being tried in ``file``."""
    chance = random.Random(f"{form} {seed}")
    good = sample(form)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(form, good, chance, Path(folder))
        for _ in range(int(count)):
            data = mutated(good, chance)
            Path(file).write_bytes(data)
            check(form, data, chance, Path(folder))
    print(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
