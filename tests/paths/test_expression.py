"""Path expressions: what they say, how they are printed, and what is wrong with wrong ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from pyoxigraph import Literal, NamedNode

from spaseq.errors import QuerySyntaxError
from spaseq.paths.language.expression import (
    Alternative,
    Concatenation,
    Condition,
    NodeTest,
    Path,
    Repetition,
    Step,
    endless,
    inverse,
    show,
)
from spaseq.paths.language.parser import parse, parse_term
from tests.paths.strategies import paths

PREFIXES = {"": "http://example.org/", "foaf": "http://xmlns.com/foaf/0.1/"}
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def iri(name: str) -> NamedNode:
    return NamedNode(f"http://example.org/{name}")


A, B = Step((iri("a"),)), Step((iri("b"),))


@pytest.mark.parametrize(
    ("text", "root"),
    [
        (":a", A),
        ("<http://example.org/a>", A),
        ("PREFIX x: <http://example.org/> x:a", A),
        ("BASE <http://example.org/> <a>", A),
        ("a", Step((TYPE,))),
        ("^:a", Step((iri("a"),), inverse=True)),
        ("^(^:a)", A),
        (".", Step((), negated=True)),
        ("!()", Step((), negated=True)),
        ("!:a", Step((iri("a"),), negated=True)),
        ("!^:a", Step((iri("a"),), negated=True, inverse=True)),
        ("!(^:a|a)", Alternative((Step((TYPE,), True), Step((iri("a"),), True, True)))),
        ("^!(:a)", Step((iri("a"),), negated=True, inverse=True)),
        (":a/:b", Concatenation((A, B))),
        (":a|:b/:a", Alternative((A, Concatenation((B, A))))),
        ("^(:a/:b)", Concatenation((inverse(B), inverse(A)))),
        ("^:a*", Repetition(inverse(A), 0, None)),
        (":a+", Repetition(A, 1, None)),
        (":a?", Repetition(A, 0, 1)),
        (":a{3}", Repetition(A, 3, 3)),
        (":a{3,}", Repetition(A, 3, None)),
        (":a{ 2 , 3 }", Repetition(A, 2, 3)),
        (":a{,3}", Repetition(A, 0, 3)),
        ("(:a|:b){0}", Repetition(Alternative((A, B)), 0, 0)),
        ("[a :F]", NodeTest((Condition(TYPE, False, iri("F")),))),
        ("[:y 'x'@en, 1.5]", NodeTest((Condition(iri("y"), False, Literal("x", language="en")),
                                      Condition(iri("y"), False, parse_term("1.5", {}))))),
        ("[^:y :a ; :z]", NodeTest((Condition(iri("y"), True, iri("a")), Condition(iri("z"), False, None)))),
        (":a # the end\n/ :b", Concatenation((A, B))),
    ],
)  # fmt: skip
def test_what_is_written_is_what_is_meant(text: str, root: Path) -> None:
    expression = parse(text, PREFIXES)
    assert expression.root == root
    assert parse(str(expression), PREFIXES).root == root


@given(paths)
def test_printed_expressions_mean_the_same(path: Path) -> None:
    again = parse(show(path, {})).root
    assert show(again, {}) == show(parse(show(again, {})).root, {})
    assert inverse(inverse(path)) == path
    assert _flat(again) == _flat(path)


def _flat(path: Path) -> Path:
    """Without alternatives in alternatives, which parentheses alone could tell."""
    match path:
        case Alternative(parts):
            flat = [_flat(part) for part in parts]
            return Alternative(
                tuple(p for part in flat for p in (part.parts if isinstance(part, Alternative) else (part,)))
            )
        case Concatenation(parts):
            return Concatenation(tuple(map(_flat, parts)))
        case Repetition(part, minimum, maximum):
            return Repetition(_flat(part), minimum, maximum)
    return path


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        (":a/", 4, "found the end", None),
        (":a||:b", 4, "found '|'", None),
        (":a**", 4, "found '*'", None),
        ("(:a/:b", 7, "expected ')'", "not closed"),
        (":a{3,2}", 1, "at least 3 and at most 2", "{2,3}"),
        (":a/foa:b", 4, "prefix 'foa:' is not declared", "foaf:"),
        (":a/rdf:type", 4, "not declared", "rdf-syntax-ns#"),
        (":a/[:b", 7, "expected ']'", "not closed"),
        ("<a>", 1, "is relative", "BASE"),
        (":a/<http://x y>", 4, "not closed by '>'", None),
        ("", 1, "found the end", None),
    ],
)
def test_errors_point_at_their_place(text: str, place: int, message: str, hint: str | None) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text, PREFIXES)
    assert (caught.value.lineno, caught.value.offset) == (1, place)
    assert message in caught.value.msg
    assert (hint is None) == (caught.value.hint is None)
    assert hint is None or hint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        (":a{1,9}", None),
        (":a/(:b|:a*)", ":a*"),
        ("([:a])*", None),
        ("(:a{2,}){3}", ":a{2,}"),
        ("(:a*){0}", None),
        ("(:a{0})*", None),
        ("(:a{0}|[:a]/(:b*){0})+", None),
        ("(:a{0}|:b)*", "(:a{0}|:b)*"),
    ],
)
def test_endless_paths(text: str, culprit: str | None) -> None:
    found = endless(parse(text, PREFIXES).root)
    assert (found and show(found, PREFIXES)) == culprit
