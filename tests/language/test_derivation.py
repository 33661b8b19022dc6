"""What is built while a text is read, against the tree that lark makes of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from lark import Lark, Token, Tree

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.derivation import Derivation, Extent
from spaseq.language.reading.parser import parse, parse_group
from spaseq.language.reading.source import QueryText
from spaseq.language.syntax.printing import print_group
from tests.conftest import examples
from tests.language import strategies


@cache
def _grammars() -> tuple[Lark, Derivation]:
    grammar = files("spaseq.language.reading").joinpath("spaseq.lark").read_text(encoding="utf-8")
    starts = ["query", "bare_group"]
    trees = Lark(grammar, parser="lalr", start=starts, propagate_positions=True)
    names = {str(rule.alias or rule.origin.name) for rule in trees.rules}
    methods = {name: _node(name) for name in names if not name.startswith("_")}
    return trees, Derivation(Lark(grammar, parser="lalr", start=starts), type("Nodes", (), methods))


def _node(name: str) -> Any:
    return lambda _builder, place, children: (name, tuple(place), [_plain(child) for child in children])


def _plain(node: Any) -> Any:
    """A tree of lark's, or a token, with nothing but names, places and children."""
    if isinstance(node, Tree):
        place = (0, 0) if node.meta.empty else (node.meta.start_pos, node.meta.end_pos)
        return (str(node.data), place, [_plain(child) for child in node.children])
    if isinstance(node, Token):
        return (str(node.type), str(node), node.start_pos, node.end_pos)
    return node


def _is_as_larks(text: str, start: str) -> None:
    trees, derivation = _grammars()
    source = QueryText(text, "<text>")
    assert derivation.build((None,), source, start) == _plain(trees.parse(source.expanded, start=start))


@given(strategies.queries)
@settings(max_examples=examples(60))
def test_a_query(query: s.Query) -> None:
    _is_as_larks(str(query), "query")


@given(strategies.groups)
@settings(max_examples=examples(60))
@pytest.mark.slow
def test_a_group(group: s.Group) -> None:
    _is_as_larks(print_group(group), "bare_group")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "# a comment\n{ ?s ?p ( 1 [ ?q 'x'@en ] ) . # another\n }\r\n",
        "{ ?s ?p ?o ; ; FILTER((((?o)) -1 * 2) IN ()) }",
        "BASE <urn:a> PREFIX : <b> { { SELECT (COUNT(*) AS ?n) { } GROUP BY ?x LIMIT 3 } UNION { } }",
        "{ VALUES (?x ?y) { (1 UNDEF) () } ?s !(^a|<urn:b>)/(a+|a?)* true }",
    ],
)
def test_what_is_absent_dropped_or_nested(text: str) -> None:
    _is_as_larks(text, "bare_group")


@pytest.mark.parametrize("text", ["", "{", "{ } }", "{ ?s ?p }", "{ ?s ? }", "{ FILTER( }", "\0"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(QuerySyntaxError, match="expected"):
        parse_group(text)


def test_what_cannot_be_read_is_told_before_what_cannot_be_built() -> None:
    with pytest.raises(QuerySyntaxError, match="not declared"):
        parse_group("{ ?s x:p ?o . ?s ?p ?q }")
    with pytest.raises(QuerySyntaxError, match="expected"):
        parse_group("{ ?s x:p ?o . ?s ?p }")


def test_an_empty_rule_is_nowhere() -> None:
    _, derivation = _grammars()
    built = derivation.build((None,), QueryText("  {}", "<text>"), "bare_group")
    assert built[2][0] == ("prologue", Extent(0, 0), [])


def test_threads_read_at_once() -> None:
    texts = [
        f"ASK WITHIN {n} DAYS FROM STREAM S <urn:s> {{ SEQ(A+) DEFINE GPM A ON S {{ ?x <urn:p{n}> {n} }} }}"
        for n in range(1, 200)
    ]
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(parse, texts))
    assert [query.window.size for query in read] == list(range(1, 200))
    assert all(f"urn:p{n}>" in str(query) for n, query in enumerate(read, 1))
