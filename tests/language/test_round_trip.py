"""Whatever is printed parses to the tree it was printed from."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from pyoxigraph import Store

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.checking.rules import check_group_rules
from spaseq.language.reading.parser import parse, parse_group
from spaseq.language.reading.source import QueryText
from spaseq.language.syntax.printing import print_expression, print_group, print_path, print_sequence
from tests.conftest import examples
from tests.language import strategies

#: What is not SPARQL, or Oxigraph refuses though it is: an empty `!()`, DISTINCT in a function call, blank
#: nodes in an EXISTS that it reads twice.
_NOT_FOR_OXIGRAPH = re.compile(r"!\(\)|\(DISTINCT|SERVICE|\b(FIRST|LAST|PREV)\(")


@given(strategies.queries)
@settings(max_examples=examples(120))
def test_a_query(query: s.Query) -> None:
    text = str(query)
    parsed = parse(text)
    assert parsed == query
    assert parsed.prefixes == query.prefixes
    assert str(parsed) == text


@given(strategies.groups)
@settings(max_examples=examples(150))
def test_a_group(group: s.Group) -> None:
    assert parse_group(print_group(group)) == group


@given(strategies.expressions)
@settings(max_examples=examples(300))
def test_an_expression(expression: s.Expression) -> None:
    parsed = parse_group(f"{{ FILTER({print_expression(expression)}) }}")
    assert parsed == s.Group((s.Filter(expression),))


@given(strategies.paths)
@settings(max_examples=examples(150))
def test_a_path(path: s.Path) -> None:
    parsed = parse_group(f"{{ ?s {print_path(path)} ?o }}")
    assert parsed == s.Group((s.Triples((s.TriplePattern(s.Var("s"), path, s.Var("o")),)),))


@given(strategies.sequences)
@settings(max_examples=examples(300))
def test_a_sequence(sequence: s.Seq) -> None:
    text = f"""ASK WITHIN 1 EVENTS FROM STREAM S <urn:s>
        WHERE {{ SEQ({print_sequence(sequence)}) DEFINE GPM A ON S {{ }} }}"""
    assert parse(text).sequence == sequence


@given(strategies.groups)
@settings(
    max_examples=examples(150), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@pytest.mark.slow
def test_a_group_is_sparql(group: s.Group) -> None:
    """What is printed of a group that keeps SPARQL's rules, another parser of SPARQL takes."""
    text = print_group(group)
    assume(not _NOT_FOR_OXIGRAPH.search(text) and not ("EXISTS" in text and "_:" in text))
    try:
        check_group_rules(parse_group(text), QueryText(text, "<pattern>"))
    except QuerySyntaxError:
        assume(False)
    try:
        Store().query(f"SELECT * WHERE {text}")
    except RuntimeError as problem:
        assert "custom function" in str(problem)  # noqa: PT017  # the only thing it may lack
