"""The fast path of N-Quads and N-Triples: the same events and bad events as the slow one, on any bytes."""

from __future__ import annotations

import itertools
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spaseq.events import EventBatch
from spaseq.limits import Limits
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources._options import GENERATED_AT
from spaseq.sources.assembly import assemble as _assemble
from spaseq.sources.assembly import delivered as _delivered
from spaseq.sources.assembly.assemble import GraphAssembler, TripleGroups
from spaseq.sources.assembly.sink import EventSink
from spaseq.sources.formats import lines
from spaseq.sources.scan._kernel import ODD as ODD_LINE
from spaseq.sources.scan.fast import FastLines, Quads
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.identified import beyond_rdf11
from tests.conftest import examples

from .reading import EX, STREAM, XSD, pieces
from .test_w3c import _tests

_PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"


def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fast path have even the smallest block."""
    monkeypatch.setattr(lines, "SMALL", 0)


# --- one document as quads --------------------------------------------------------------------------


def _quads(text: bytes, form: str = "nq") -> list[str] | None:
    """The quads of the fast path, as N-Quads; None if it leaves the text to the slow one."""
    dictionary = Dictionary()
    quads = Quads(form, dictionary, Limits())
    if not quads.read(text):
        return None
    term = dictionary.term
    found = []
    for s, p, o, g in quads.rows[:4, : quads.count].T:
        if s == ODD_LINE:  # a line without a quad
            continue
        graph = f" {term(int(g))}" if g != UNBOUND else ""
        found.append(f"{term(int(s))} {term(int(p))} {term(int(o))}{graph}")
    return found


def _expected(text: bytes, form: str = "nq") -> list[str] | None:
    """What pyoxigraph makes of a text; None if it is not RDF 1.1."""
    try:
        quads = list(ox.parse(text, format=ox.RdfFormat.N_QUADS if form == "nq" else ox.RdfFormat.N_TRIPLES))
    except SyntaxError:
        return None
    if any(beyond_rdf11(quad.object) for quad in quads):
        return None
    return [str(quad) for quad in quads]


def _plain(text: bytes) -> list[int]:
    """The lines of a text that the kernel takes itself."""
    found = []
    for number, line in enumerate(text.splitlines(keepends=True)):
        quads = Quads("nq", Dictionary(), Limits())
        judged: list[object] = []
        quads._judge = lambda *_, judged=judged: bool(judged.append(None))  # type: ignore[method-assign]
        if quads.read(line) and quads.count:
            found.append(number)
    return found


PLAIN = [
    "<http://e.org/a> <http://e.org/b#c> <urn:x:y> .",
    "<http://e.org:80/a?b=c&d=%41#e/f?> <a:b> <http://e.org> <http://e.org/> .",
    '<a:b> <a:b> "plain" .',
    '<a:b> <a:b> "" <a:g> .',
    '<a:b> <a:b> "é € 😀 \u0080" <a:g> .',
    '<a:b> <a:b> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <a:g> .',
    '<a:b> <a:b> "word"@en .',
    '<a:b> <a:b> "word"@en-gb .',
    '<a:b> <a:b> "word"@en-GB <a:g> .',
    "_:b0 <a:b> _:B_1 _:g .",
    "\t<a:b> \t <a:b>\t<a:b>  <a:g> \t. \t",
]
ODD = [
    '<a:b> <a:b> "a\\nb" .',
    '<a:b> <a:b> "a\\u00e9b" .',
    '<a:b> <a:b> "tab\there" .',
    '<a:b> <a:b> "\x7f" .',
    '<a:b> <a:b> "s"^^<http://www.w3.org/2001/XMLSchema#string> .',
    '<a:b> <a:b> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML> .',
    '<a:b> <a:b> "x"@en-Latn-GB .',
    "<a:b> <a:b> <http://é.org/> .",
    "<a:\\u0062> <a:b> <a:b> .",
    "<http://[::1]/> <a:b> <a:b> .",
    "<http://user@host/> <a:b> <a:b> .",
    "<a:b> <a:b> <a:b>.",
    "<a:b><a:b><a:b> .",
    "<a:b> <a:b> <a:b> . # comment",
    '<a:b> <a:b> "x" @en .',
    "_:a.b <a:b> _:é .",
]
WRONG = [
    "<a b> <a:b> <a:b> .",
    "<rel> <a:b> <a:b> .",
    "<a:%4> <a:b> <a:b> .",
    "<a:b#c#d> <a:b> <a:b> .",
    "<http://a:8a/> <a:b> <a:b> .",
    '"x" <a:b> <a:b> .',
    "<a:b> _:p <a:b> .",
    '<a:b> <a:b> <a:b> "g" .',
    '<a:b> <a:b> "open .',
    '<a:b> <a:b> "x"^^<rel> .',
    '<a:b> <a:b> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    '<a:b> <a:b> "x"@toolonglanguage .',
    '<a:b> <a:b> "x"@en- .',
    "<a:b> <a:b> <a:b>",
    "<a:b> <a:b> .",
    "<a:b> <a:b> <a:b> <a:b> <a:b> .",
    "<a:b> <a:b> <a:b> . <a:b> <a:b> <a:b> .",
    "VERSION \"1.2\"",
]  # fmt: skip


@pytest.mark.parametrize("line", PLAIN)
def test_plain_lines_need_no_parser(line: str) -> None:
    text = f"{line}\n".encode()
    assert _plain(text) == [0]
    assert _quads(text) == _expected(text) != None  # noqa: E711  # a chain: both are the same list


@pytest.mark.parametrize("line", ODD)
def test_odd_lines_are_the_parsers(line: str) -> None:
    text = f"{line}\n".encode()
    assert _plain(text) == []
    assert _quads(text) == _expected(text) != None  # noqa: E711


@pytest.mark.parametrize("line", WRONG)
def test_wrong_lines_are_nobodys(line: str) -> None:
    for text in (f"{line}\n".encode(), f"<a:b> <a:b> <a:b> .\n{line}\n<a:b> <a:b> <a:b> .\n".encode()):
        assert _expected(text) is None
        assert _quads(text) is None


@pytest.mark.parametrize(
    "text",
    [
        b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
        b"\xef\xbf\xbe", b"\xe2\x82", b"\xf8\x88\x80\x80\x80",
    ],
)  # fmt: skip
def test_bytes_that_are_no_text(text: bytes) -> None:
    line = b'<a:b> <a:b> "' + text + b'" .\n'
    assert _plain(line) == []
    assert _quads(line) == _expected(line)


_IRIS = [
    "a:b", "a:/b", "a:/b/c", "a://h/b", "a://h", "a://h/", "a:b/c#d", "a:b/c#", "a:?/b", "a:#b", "a:#",
    "a:b#/c", "a:b/c?d/e", "a://h:8/b", "a://h:8a/b", "a:///b", "a://u@h/b", "a://h/b%41", "a://h/b%4",
    "a:b/#c#d", "a:",
]  # fmt: skip


@pytest.mark.parametrize("one", _IRIS)
def test_an_iri_after_another(one: str) -> None:
    """What is remembered of one must not make another valid."""
    for other in _IRIS:
        text = f"<{one}> <p:p> <{one}> .\n<{other}> <p:p> <{other}x> .\n".encode()
        assert _quads(text) == _expected(text), other


def test_terms_that_are_alike() -> None:
    """Terms of every length, to end at each byte of a word, beside others that differ in one byte."""
    iri = "http://e.org/abcdefghijkl"
    iris = [iri[:i] + c + iri[i + 1 :] for i in range(12, len(iri)) for c in "xy/"] + [
        f"a:{iri[13 : 13 + n]}" for n in range(13)
    ]
    strings = [f'"{iri[:n]}"' for n in range(20)]
    literals = [s + end for s in strings for end in ("", "@en", f"^^<{XSD}date>", "^^<a:b>")]
    chance = random.Random(3)
    names = [f"<{iri}>" for iri in iris]
    lines = [
        f"{chance.choice(names)} {chance.choice(names)} {chance.choice(literals + names)} "
        + chance.choice(["", *(f"{name} " for name in names[:6])])
        for _ in range(5000)
    ]
    text = "".join(f"{line}.\n" for line in lines).encode()
    assert _quads(text) == _expected(text) != None  # noqa: E711  # a chain: both are the same list
    for n in range(1, 40):  # a line that ends anywhere is wrong, whatever comes after it
        whole = f'<{iri}> <{iri}> "{iri[:n]}"^^<{XSD}date> <{iri}> .\n'
        for cut in (10, 30, 55, 60 + n, 75 + n):
            assert _quads(f"{whole}{whole[:cut]}\n{whole[cut:]}{whole}".encode()) is None


def test_line_ends_and_comments() -> None:
    text = b"# \xc3\xa9\r\n\r\n \t\n<a:b> <a:b> <a:b> .\r\n  # x\n<a:b> <a:b> <a:c> ."
    assert _quads(text) == _expected(text) == ["<a:b> <a:b> <a:b>", "<a:b> <a:b> <a:c>"]
    alone = b"# a\r<a:b> <a:b> <a:b> .\n"
    assert _expected(alone) == ["<a:b> <a:b> <a:b>"]
    assert _quads(alone) is None, "a carriage return alone ends a line, too: the slow path's"


def test_every_character() -> None:
    """Each one in a literal and in an IRI, in a line of its own."""
    text = []
    for code in [*range(0x20, 0x300), *range(0x2000, 0x2100), *range(0xD7F0, 0xD800), *range(0xE000, 0xE010),
                 *range(0xFFF0, 0x10010), 0x1FFFE, 0x10FFFF]:  # fmt: skip
        text += [
            f'<a:b> <a:b> "{chr(code)}" .\n'.encode(),
            f"<http://e.org/{chr(code)}x> <a:b> <a:b> .\n".encode(),
        ]
    for line in text:
        assert _quads(line) == _expected(line), line


def test_a_term_that_is_known_is_taken_as_it_is() -> None:
    dictionary = Dictionary()
    known = dictionary.intern(ox.NamedNode("http://é.org/"))
    text = ox.Literal("word", language="en-latn-gb")
    other = dictionary.intern(text)
    quads = Quads("nq", dictionary, Limits())
    quads._judge = lambda *_: False  # type: ignore[method-assign]
    assert quads.read('<http://é.org/> <http://é.org/> "word"@en-Latn-GB .\n'.encode())
    assert quads.rows[:4, 0].tolist() == [known, known, other, UNBOUND]


@pytest.mark.parametrize("suite", ["rdf11/rdf-n-quads", "rdf11/rdf-n-triples", "rdf12/rdf-n-quads/syntax"])
def test_w3c_suites(shared: Callable[[str], Path], suite: str) -> None:
    form = "nt" if "triples" in suite else "nq"
    for name, (file, is_negative) in _tests(shared("w3c-rdf-tests") / "rdf" / suite).items():
        text = file.read_bytes()
        expected = _expected(text, form)
        if not suite.startswith("rdf12"):
            assert (expected is None) == is_negative, name
        lone = re.search(rb"\r(?!\n)", text)
        assert _quads(text, form) == (None if lone else expected), name


# --- byte soup --------------------------------------------------------------------------------------

_SEEDS = [f"{line}\n".encode() for line in (*PLAIN, *ODD)]
_BYTES = b'<>"_:@^.\\ \t\r\n#%abcG09-+/?[]{}|`\x00\x7f\x80\xc3\xa9\xff'


def _soup(chance: random.Random) -> bytes:
    """Lines with some bytes changed, left out, put in, or moved."""
    text = bytearray(b"".join(chance.choices(_SEEDS, k=chance.randint(1, 3))))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text))
        match chance.randrange(5):
            case 0:
                text[at] = chance.choice(_BYTES)
            case 1:
                del text[at : at + chance.randint(1, 3)]
            case 2:
                text.insert(at, chance.choice(_BYTES))
            case 3:
                text[at] = chance.randrange(256)
            case _:
                end = min(len(text), at + chance.randint(1, 20))
                text[at:at] = text[at:end]
        text = text or bytearray(b"\n")
    return bytes(text)


@pytest.mark.parametrize("form", ["nq", "nt"])
def test_byte_soup(form: str) -> None:
    """A fresh dictionary for each: no term is known. Then one for all: many are."""
    chance = random.Random(20)
    soups = [_soup(chance) for _ in range(3000)]
    for text in soups:
        lone = re.search(rb"\r(?!\n)", text)
        found, expected = _quads(text, form), _expected(text, form)
        assert found == expected or (found is None and lone), text
    dictionary = Dictionary()
    for text in soups:
        quads, alone = Quads(form, dictionary, Limits()), Quads(form, Dictionary(), Limits())
        assert quads.read(text) == alone.read(text), text
        assert quads.count == alone.count


# --- events -----------------------------------------------------------------------------------------

Outcome = tuple[list[tuple[object, ...]], list[BadEvent], list[str]]


def _run(
    read: Callable[..., Iterator[None]], form: str, blocks: list[bytes], options: SourceOptions
) -> Outcome:
    """Events, bad events and warnings of one path."""
    bad: list[BadEvent] = []
    batches: list[EventBatch] = []
    sink = EventSink(STREAM, Dictionary(), options, bad.append, Limits())
    assembler = TripleGroups(sink, options.triples) if options.triples else GraphAssembler(sink)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in read(form, iter(blocks), sink, assembler):
            batches += filter(None, [sink.take()])
        batches += filter(None, [sink.take()])
    events = [event for batch in batches for event in _events(batch)]
    return events, bad, [str(warning.message) for warning in caught]


def _events(batch: EventBatch) -> Iterator[tuple[object, ...]]:
    term = batch.dictionary.term
    for event in range(len(batch)):
        labels: dict[str, str] = {}

        def show(identifier: int, labels: dict[str, str] = labels) -> str:
            text = str(term(identifier))
            return labels.setdefault(text, f"_:{len(labels)}") if text.startswith("_:") else text

        graph = int(batch.graph[event])
        yield (
            batch.clock,
            "" if graph == UNBOUND else show(graph),
            *batch.stamp(event)[::2],
            [" ".join(map(show, row)) for row in batch.triples(event)],
        )


def _assert_same(form: str, blocks: list[bytes], options: SourceOptions) -> Outcome:
    fast = _run(lines.read_lines, form, blocks, options)
    slow = _run(lines.read_lines_slowly, form, blocks, options)
    assert fast == slow
    return fast


_GRAPHS = [f"<{EX}g{n}>" for n in range(4)]
_TIMES = [
    f'"{text}"^^<{XSD}{datatype}>'
    for text, datatype in [
        ("5", "integer"), ("+07", "integer"), ("-3", "integer"), ("9223372036854775808", "integer"),
        ("2024-02-29T23:59:59.1234567+05:30", "dateTime"), ("2024-01-01T00:00:00", "dateTime"),
        ("2023-02-29T00:00:00Z", "dateTime"), ("2024-01-01", "date"), ("4", "date"), ("x", "integer"),
        ("2024-01-01T24:00:00Z", "dateTime"), ("8", "long"),
    ]
]  # fmt: skip
_OBJECTS = [f"<{EX}a>", '"x"', '"a\\nb"', "_:b0", "_:b1", '"é"@EN', _TIMES[0]]


def _quad(chance: random.Random, graph: str) -> str:
    subject = chance.choice([f"<{EX}a>", f"<{EX}b>", "_:b0", graph])
    predicate = _PROV if chance.random() < 0.05 else f"<{EX}p{chance.randrange(2)}>"
    return f"{subject} {predicate} {chance.choice(_OBJECTS)} {graph} ."


def _stream(chance: random.Random) -> bytes:
    """Graphs with times, mostly as they should be, with all that can go wrong here and there."""
    wrong = chance.choice([0, 0, 0.01, 0.05, 0.2])
    metadata = chance.choice([0, 0, 0, 0.05])
    order = chance.choice(["before", "after", "inside", "mixed"])
    times = chance.choice([_TIMES[:3], _TIMES[:3], _TIMES[4:6], _TIMES])
    found: list[str] = []
    for number in range(chance.randint(0, 40)):
        graph = f"<{EX}e{number}>"
        if chance.random() < wrong:
            graph = chance.choice([*_GRAPHS, "_:g", f"<{EX}e{max(0, number - 1)}>"])
        body = [_quad(chance, graph) for _ in range(chance.randint(1, 4))]
        if chance.random() < 0.2:
            body.append(chance.choice(body))
        stamp = f"{graph} {_PROV} {chance.choice(times)} ."
        here = chance.choice(["before", "after", "inside", "middle"]) if order == "mixed" else order
        if here == "inside":
            body.insert(chance.randint(0, len(body)), f"{graph} {_PROV} {chance.choice(times)} {graph} .")
        elif chance.random() >= wrong:
            at = {"before": 0, "after": len(body), "middle": chance.randint(0, len(body))}[here]
            body.insert(at, stamp)
        if chance.random() < wrong:
            body.insert(
                chance.randint(0, len(body)),
                chance.choice([
                    "oops", "# comment", "", stamp, "<a:> <b:> .",
                    f"{chance.choice(_GRAPHS)} {_PROV} {_TIMES[0]} .",
                    f"{graph} {_PROV} {chance.choice(_TIMES)} .", f"<{EX}a> <{EX}p> <{EX}b> .",
                    f"_:b0 {_PROV} {_TIMES[0]} .", f"<a b> <a:b> <a:c> {graph} .",
                    f"<a:b> <a:b> <<( <a:b> <a:b> <a:b> )>> {graph} .",
                ]),
            )  # fmt: skip
        found += body
        if chance.random() < metadata:
            found.append(f"<{EX}meta> {_PROV} {_TIMES[0]} .")
    if chance.random() < wrong:
        chance.shuffle(found)
    end = chance.choice(["\n", "\r\n"])
    return (end.join(found) + (end if chance.random() < 0.8 else "")).encode()


@settings(max_examples=examples(400))
@given(st.randoms(use_true_random=False), st.sampled_from([150, 700, 2000, 5000, 1 << 20]), st.booleans())
def test_events_of_graphs(chance: random.Random, size: int, arrival: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _always(patch)
        options = SourceOptions(time="arrival" if arrival else GENERATED_AT)
        _assert_same("nq", list(pieces(_stream(chance), size)), options)


@settings(max_examples=examples(150))
@given(st.randoms(use_true_random=False), st.sampled_from([40, 150, 1 << 20]), st.integers(1, 5))
def test_events_of_triples(chance: random.Random, size: int, triples: int) -> None:
    found = []
    for _ in range(chance.randint(0, 40)):
        body = [f"<{EX}a> <{EX}p{chance.randrange(2)}> {chance.choice(_OBJECTS)} ." for _ in range(triples)]
        body[chance.randrange(triples)] = f"<{EX}a> {_PROV} {chance.choice(_TIMES[:2])} ."
        if chance.random() < 0.05:
            body[0] = chance.choice(
                ["oops", f"<{EX}a> {_PROV} {chance.choice(_TIMES)} .", "# none", body[-1]]
            )
        found += body
    text = "".join(f"{line}\n" for line in found).encode()
    time = chance.choice(["arrival", GENERATED_AT])
    with pytest.MonkeyPatch.context() as patch:
        _always(patch)
        _assert_same("nt", list(pieces(text, size)), SourceOptions(time=time, triples=triples))


@settings(max_examples=examples(100))
@given(st.randoms(use_true_random=False))
def test_few_names_are_remembered(chance: random.Random) -> None:
    """With little memory, names are forgotten and may come again."""
    numbers = [chance.randrange(8) for _ in range(60)]
    text = "".join(
        f"<{EX}g{n}> <{EX}p> <{EX}o> <{EX}g{n}> .\n<{EX}g{n}> {_PROV} {_TIMES[0]} .\n" for n in numbers
    ).encode()
    with pytest.MonkeyPatch.context() as patch:
        _always(patch)
        for module in (_assemble, _delivered):
            patch.setattr(module, "REMEMBERED", 4)
        _assert_same("nq", list(pieces(text, chance.choice([100, 1000, 1 << 20]))), SourceOptions())


#: Lines of two graphs: quads (a, b), times (t, T, u), times inside, about the graph (i) or not (j).
_LINES = {
    "a": f"<{EX}s> <{EX}p> <{EX}o> <{EX}A> .",
    "b": f"<{EX}s> <{EX}p> <{EX}o> <{EX}B> .",
    "t": f"<{EX}A> {_PROV} {_TIMES[0]} .",
    "T": f"<{EX}A> {_PROV} {_TIMES[1]} .",
    "u": f"<{EX}B> {_PROV} {_TIMES[0]} .",
    "i": f"<{EX}A> {_PROV} {_TIMES[2]} <{EX}A> .",
    "j": f"<{EX}s> {_PROV} {_TIMES[1]} <{EX}A> .",
}


@pytest.mark.parametrize("length", [1, 2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 5))])
def test_every_order_of_a_few_lines(
    monkeypatch: pytest.MonkeyPatch, delivered: list[int], length: int
) -> None:
    """Between usual events, in one block: four lines of all kinds, five of some."""
    _always(monkeypatch)
    usual = _usual(4).splitlines(keepends=True)
    for letters in itertools.product(_LINES if length < 5 else "abtTu", repeat=length):
        middle = "".join(f"{_LINES[letter]}\n" for letter in letters).encode()
        _assert_same("nq", [b"".join(usual[:6]) + middle + b"".join(usual[6:])], SourceOptions())
    assert sum(delivered) > 0


def _usual(count: int, time: Callable[[int], str] = lambda n: f'"{n}"^^<{XSD}integer>') -> bytes:
    return "".join(
        f'<{EX}s{n % 9}> <{EX}p> _:b <{EX}e{n}> .\n_:b <{EX}p> "v{n}" <{EX}e{n}> .\n'
        f"<{EX}e{n}> {_PROV} {time(n)} .\n"
        for n in range(count)
    ).encode()


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events the fast path delivered, block by block."""
    counts: list[int] = []
    deliver = FastLines._deliver

    def counted(self: FastLines, count: int) -> bool:
        good = deliver(self, count)
        counts.append(count if good else 0)
        return good

    monkeypatch.setattr(FastLines, "_deliver", counted)
    return counts


def test_usual_streams_are_read_fast(delivered: list[int]) -> None:
    text = _usual(6000)
    events, bad, _ = _assert_same("nq", list(pieces(text, 1 << 16)), SourceOptions())
    assert (len(events), bad) == (6000, [])
    assert sum(delivered) > 5900, "all but the borders of blocks"


def test_fast_again_after_something_unusual(monkeypatch: pytest.MonkeyPatch, delivered: list[int]) -> None:
    _always(monkeypatch)
    text = _usual(3000).split(b"\n")
    text.insert(0, f"<{EX}stream> {_PROV} {_TIMES[0]} .".encode())
    text.insert(4000, b"oops")
    text.insert(6000, text[10])
    events, bad, _ = _assert_same("nq", list(pieces(b"\n".join(text), 1 << 14)), SourceOptions())
    assert len(events) > 2990
    assert len(bad) >= 2
    assert sum(delivered) > 2500


def test_small_inputs_do_not_wait_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spaseq.sources.scan.fast", None)  # cannot be imported
    text = _usual(6000)
    events, _, _ = _run(lines.read_lines, "nq", list(pieces(text, 1 << 16)), SourceOptions())
    assert len(events) == 6000
    monkeypatch.setattr(lines, "WARM_UP", len(text) // 2)
    with pytest.raises(ImportError):
        _run(lines.read_lines, "nq", list(pieces(text, 1 << 16)), SourceOptions())


@pytest.mark.parametrize("zone", ["", "Z", "+00:00", "-05:30", "+14:00", "+13:59"])
def test_times_are_exact(monkeypatch: pytest.MonkeyPatch, zone: str, delivered: list[int]) -> None:
    _always(monkeypatch)
    chance = random.Random(5)

    def moment(_: int) -> str:
        year, month, day = (
            chance.choice([1, 4, 1582, 1900, 1969, 1970, 2000, 2023, 2024, 9998]),
            chance.randint(1, 12),
            chance.randint(1, 28),
        )
        clock = f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}"
        fraction = chance.choice(["", ".5", ".000001", ".1234567890", ".999999999"])
        return f'"{year:04}-{month:02}-{day:02}T{clock}{fraction}{zone}"^^<{XSD}dateTime>'

    _, bad, _ = _assert_same("nq", [_usual(500, moment)], SourceOptions())
    assert bad == []
    assert sum(delivered) > 450


@example(b'<a:b> <a:b> "x')
@given(st.binary(max_size=60))
def test_any_bytes(text: bytes) -> None:
    found = _quads(text)
    assert found == _expected(text) or (found is None and b"\r" in text)
