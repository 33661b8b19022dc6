"""Whatever is printed parses to the tree it was printed from."""

from __future__ import annotations

from hypothesis import given, settings

from spaseq.language import syntax as s
from spaseq.language.parser import parse, parse_group
from spaseq.language.printer import print_expression, print_group, print_path, print_sequence
from tests.language import strategies


@given(strategies.queries)
@settings(max_examples=120)
def test_a_query(query: s.Query) -> None:
    text = str(query)
    parsed = parse(text)
    assert parsed == query
    assert parsed.prefixes == query.prefixes
    assert str(parsed) == text


@given(strategies.groups)
@settings(max_examples=150)
def test_a_group(group: s.Group) -> None:
    assert parse_group(print_group(group)) == group


@given(strategies.expressions)
@settings(max_examples=300)
def test_an_expression(expression: s.Expression) -> None:
    parsed = parse_group(f"{{ FILTER({print_expression(expression)}) }}")
    assert parsed == s.Group((s.Filter(expression),))


@given(strategies.paths)
@settings(max_examples=150)
def test_a_path(path: s.Path) -> None:
    parsed = parse_group(f"{{ ?s {print_path(path)} ?o }}")
    assert parsed == s.Group((s.Triples((s.TriplePattern(s.Var("s"), path, s.Var("o")),)),))


@given(strategies.sequences)
@settings(max_examples=300)
def test_a_sequence(sequence: s.Seq) -> None:
    text = f"""ASK WITHIN 1 EVENTS FROM STREAM S <urn:s>
        WHERE {{ SEQ({print_sequence(sequence)}) DEFINE GPM A ON S {{ }} }}"""
    assert parse(text).sequence == sequence
