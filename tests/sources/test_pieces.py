"""Text that comes in small pieces: the same events as at once, for work that is linear in its length."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.sources.formats import _parse

from .reading import Trickle, pieces, read

VERSION = b'VERSION "1.2-messages"\n'
BODY = b'<s:s> <p:p> "v" .\n'


def _graph(size: int) -> bytes:
    return b"<g:g> {" + BODY * (size // len(BODY)) + b"}"


def _literal(size: int) -> bytes:
    return b'<g:g> { <s:s> <p:p> """' + b'ab. } \\" MESSAGE ' * (size // 18) + b'""" }'


def _message(size: int) -> bytes:
    return VERSION + BODY * (size // len(BODY)) + b"MESSAGE\n"


def _long_message(size: int) -> bytes:
    return VERSION + b'<s:s> <p:p> "' + b"MESSAGE . " * (size // 10) + b'" .\nMESSAGE\n'


def _comments(size: int) -> bytes:
    return b"# a comment, one of many\n" * (size // 25) + b"<g:g> { <s:s> <p:p> 1 }"


def _prefixes(size: int) -> bytes:
    declared = b"".join(b"PREFIX p%d: <x:%d/>\n" % (n, n) for n in range(size // 40))
    return declared + b"".join(b"p%d:g { p1:s p2:p 1 }\n" % n for n in range(size // 40))


def _broken(size: int) -> bytes:
    declared = b"".join(b"PREFIX p%d: <x:%d/>\n" % (n, n) for n in range(size // 40))
    return declared + b"x y .\n" * (size // 20)


def _taking_turns(size: int) -> bytes:
    return b"".join(b'<s:s> <p:p> "%d" <g:%d> .\n' % (n, n % 2) for n in range(size // 24))


def _word(size: int) -> bytes:
    return VERSION + b":" + b"a" * size + b" .\nMESSAGE\n"


CASES = {
    "graph": (_graph, "format=trig&time=arrival"),
    "literal": (_literal, "format=trig&time=arrival"),
    "message": (_message, "format=nq&time=arrival"),
    "literal of a message": (_long_message, "format=messages&time=arrival"),
    "word": (_word, "format=messages&time=arrival"),
    "comments": (_comments, "format=trig&time=arrival"),
    "prefixes": (_prefixes, "format=trig&time=arrival"),
    "broken statements": (_broken, "format=trig&time=arrival"),
    "graphs that take turns": (_taking_turns, "format=nq"),
}


def _seconds(make: Callable[[int], bytes], size: int, spec: str) -> float:
    """The processor's time to read a text in pieces of 300 bytes: the least of three."""
    data, taken = make(size), []
    for _ in range(3):
        begun = time.process_time()
        read(Trickle(pieces(data, 300)), spec)
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.few(1, ci=4)
def test_work_is_linear(case: str) -> None:
    """Eight times the text takes about eight times as long; 64 times as long if it is read anew each time."""
    make, spec = CASES[case]
    assert _seconds(make, 8 * 30_000, spec) < 24 * _seconds(make, 30_000, spec)


@pytest.mark.parametrize("case", ["graph", "message", "prefixes", "broken statements"])
def test_the_parser_gets_each_byte_a_few_times(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given_bytes = 0

    def counted(text: bytes, **options: object) -> ox.QuadParser:
        nonlocal given_bytes
        given_bytes += len(text)
        return ox.parse(text, **options)  # type: ignore[arg-type]  # as it was given

    monkeypatch.setattr(_parse, "parse", counted)
    make, spec = CASES[case]
    data = make(200_000)
    read(Trickle(pieces(data, 300)), spec)
    # What is broken is parsed with its block, and by itself. Up to 4 kB of declarations come with each block.
    assert given_bytes < 20 * len(data)


_MARKS = ['"', "'", '"""', "'''", "<", ">", "<<", "#", ".", "{", "}", "|", "\\", "@", ":", "\n", " ", " .\n"]
_WORDS = ["MESSAGE", "message", "@message", "@en", "é", "x", "abcdefghijk"]
_PARTS = ["<a:b>", '"x"', "<g:g> {", "<a:b> <a:b> 1.5 ."]
_TOKENS = st.sampled_from([*_MARKS, *_WORDS, *_PARTS])


@given(st.lists(_TOKENS, max_size=30).map("".join), st.sampled_from([1, 2, 7]))
@pytest.mark.parametrize("form", ["trig", "ttl", "messages"])
def test_any_text_is_read_as_at_once(form: str, text: str, size: int) -> None:
    """Broken or not: where the pieces end makes no difference."""
    data = text.encode() if form != "messages" else VERSION + text.encode()
    spec = f"format={form}&time=arrival" + ("&triples=1" if form == "ttl" else "")
    whole, parts = read(data, spec), read(Trickle(pieces(data, size)), spec)
    assert parts.numbers == whole.numbers
    assert parts.graphs == whole.graphs
    assert [parts.triples(n) for n in parts.numbers] == [whole.triples(n) for n in whole.numbers]
    assert parts.positions == whole.positions


def test_of_many_prefixes_a_piece_gets_those_that_it_uses() -> None:
    declared = (
        "".join(f"PREFIX p{n}: <x:{n}/> PREFIX é.{n}-x: <y:{n}/>\n" for n in range(500)) + "PREFIX : <z:>\n"
    )
    used = 'p7:g { :s é.8-x:p p9:o, "p1:"^^p10:d . :s :p 5.é.12-x:s :p 1 }\n'
    read_at_once, in_pieces = (
        read(source, "format=trig&time=arrival")
        for source in ((declared + used).encode(), Trickle([declared.encode(), used.encode()]))
    )
    assert (read_at_once.bad, in_pieces.bad) == ([], [])
    assert in_pieces.triples() == read_at_once.triples()


@pytest.mark.parametrize(
    ("form", "kind", "before", "after"),
    [
        (
            "trig",
            "statement",
            b"<g:1> { <s:s> <p:p> 1 }\n<g:g> { ",
            b"<s:s> <p:p> 2 } <g:3> { <s:s> <p:p> 3 }",
        ),
        ("messages", "message", VERSION + BODY + b"MESSAGE\n", BODY + b"MESSAGE\n" + BODY),
    ],
)
def test_of_what_is_too_long_nothing_is_an_event(
    form: str, kind: str, before: bytes, after: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of it is left out, too, up to where the next one begins."""
    for module in ("turtle", "messages"):
        monkeypatch.setattr(f"spaseq.sources.formats.{module}.LONGEST", 1_000)
    data = before + BODY * 100 + after
    reading = read(Trickle(pieces(data, 300)), f"format={form}&time=arrival")
    assert reading.numbers == [0, 1]
    assert reading.reasons == [f"a {kind} of more than 1000 bytes"]
