"""What is read without the grammar is read as by the grammar."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from spaseq.errors import QuerySyntaxError
from spaseq.language.reading.source import QueryText
from spaseq.paths.language import parser
from spaseq.paths.language.expression import Path, show
from spaseq.paths.language.parser import parse, parse_term
from spaseq.paths.language.quick import read_name_quickly, read_quickly
from tests.paths.strategies import paths

PREFIXES = {"": "urn:", "x": "http://example.org/", "é.ß": "urn:e:", "a": "urn:of-a:", "no": "not an IRI "}

#: Tokens, and what looks like one.
TOKENS = (
    *"/|^*+?!.(){}[],;aA-#\\%<>:=&@'\"",
    *(":a", "x:b.c", "x:b.", "x:", ":", "a:b", "a:", "x:b:c", "x:1", ":-a", ":a-", ":_", ":%20", r":\("),
    *("_:b", "é.ß:é", "é.ß:\u0300", ":a\u00b7", ":\u00aa", ":²", ":\U0001f600", "\u00e9", "a\u00e9", "no:b"),
    *("<urn:a>", "<a>", "<urn:é>", "<urn:a b>", "<>", r"<urn:\u0061>", r"\u003a\u0061", "BASE", "PREFIX x:"),
    *("{2}", "{2,3}", "{3,2}", "{,2}", "{2,}", "{ 1 , 2 }", "{,}", "{}", "{0}", "{01}", "{²}", "{٣}"),
    *("()", "[:a]", "[:a :b]", "[a x:b, :c;^:d]", "[:a 1]", "[:a 'b']", "[:a true]", "[]", "[a a]", "y:b"),
    *("!(:a|^a)", "!()", "||", "^^", "!=", "12", "-1", "+1", ".5", "ab", "\t", "\r\n", "\f", "\u00a0", " "),
    *("# /:a\n", "# ", "\x00", "{9999999999}", "'b'", '"b"', "''", '""', '"a#b"', "@en", "@en-GB", "@a-b-c-"),
    *("[:a 'b'@en]", '[:a "b"@en-]', "[:a '''b''']", "[:a 'b'^^:c]", "[:a 1, 'b', :c]", "[:a 1.5]"),
    *("[:a 1.]", "[:a 'b\\n']", "[:a 'b\n']", "[:a '']", "true", "[:a '\\u0062']"),
)  # fmt: skip


def by_the_grammar(text: str) -> Path | None:
    """What the grammar alone makes of a text; None if it is wrong."""
    with patch.object(parser, "read_quickly", lambda *_: None):
        try:
            return parse(text, PREFIXES).root
        except QuerySyntaxError:
            return None


def spans(path: object) -> list[object]:
    """What trees are not compared by."""
    if isinstance(path, tuple):
        return [span for part in path for span in spans(part)]
    names = [name for name in ("part", "parts") if hasattr(path, name)]
    return [getattr(path, "span", None), *(span for name in names for span in spans(getattr(path, name)))]


def agree(text: str) -> bool:
    """Whether a text is read quickly, and then as by the grammar."""
    found = read_quickly(QueryText(text, "<path>"), PREFIXES)
    if found is None:
        return False
    expected = by_the_grammar(text)
    assert found == expected
    assert spans(found) == spans(expected)
    return True


@given(st.lists(st.sampled_from(TOKENS), max_size=8).map("".join))
def test_of_any_text_the_same_or_nothing(text: str) -> None:
    agree(text)


@given(paths, st.lists(st.sampled_from(TOKENS), max_size=2), st.data())
def test_of_a_path_with_something_in_it_the_same_or_nothing(
    path: Path, tokens: list[str], data: st.DataObject
) -> None:
    text = show(path, {"": "urn:"})
    for token in tokens:
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + token + text[place:]
    agree(text)


@given(st.lists(st.sampled_from(TOKENS), max_size=3).map("".join))
def test_of_any_term_the_same_or_nothing(text: str) -> None:
    found = read_name_quickly(QueryText(text, "<term>"), PREFIXES)
    if found is not None:
        with patch.object(parser, "read_name_quickly", lambda *_: None):
            assert found == parse_term(text, PREFIXES)


@pytest.mark.parametrize(
    ("text", "iri"),
    [("x:b.c", "http://example.org/b.c"), (" <urn:é> ", "urn:é"), ("1999", None), ("a", None)],
)
def test_names_are_read_quickly(text: str, iri: str | None) -> None:
    assert read_name_quickly(QueryText(text, "<term>"), PREFIXES) == (iri and NamedNode(iri))


@given(paths)
def test_every_path_is_read_quickly(path: Path) -> None:
    assert agree(show(path, {"": "urn:"}))
    assert agree(show(path, {}))


@pytest.mark.parametrize(
    "text",
    [
        *(":a", "a", ".", "!()", "^x:b.c", "é.ß:é", "x:", "x:b:c", "<urn:é>", r"<urn:\u0061>"),
        *(":a {2}", ":a{,2}", ":a{ 2 , }", ":a # not\n/ :b", "\t:a\r\n", "^(:a/^(:b|!^a)?)+"),
        *("[a x:b, :c ; ^:d 'e', \"é\" @en, 12]", "[:a '', \"#'b\"]"),
    ],
)
def test_what_is_read_quickly(text: str) -> None:
    assert agree(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", ":a/", ":a:b c", "aa", "a1", ":a{3,2}", ":a{,}", ":a{²}", "y:a", "no:a", "<a>", "[]", "[a a]"),
        *("BASE <urn:> <a>", "PREFIX y: <urn:> y:a", r":a\(b", ":a%20b", ":a{9999999999}", "(" * 5_000),
        *("[:a 1.5]", "[:a 'b'^^x:c]", r"[:a 'b\'']", "[:a 'b'@e-]", "[:a true]", '[:a """b"""]'),
    ],
)
def test_what_is_left_to_the_grammar(text: str) -> None:
    assert not agree(text)


def test_counts_that_are_no_numbers_any_more() -> None:
    with pytest.raises(QuerySyntaxError, match="the number has 9,000 digits") as caught:
        parse(f":a{{{'9' * 9_000}}}", PREFIXES)
    assert caught.value.offset == 4
