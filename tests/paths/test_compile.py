"""Expressions as automata: the class that sequences have, small ones, and the same paths from either end."""

from __future__ import annotations

import pytest
from hypothesis import given

from spaseq.automaton.draw import as_json, dot, svg
from spaseq.automaton.nfa import NFA
from spaseq.automaton.pattern import Atom
from spaseq.automaton.show import show
from spaseq.errors import QueryMeaningError
from spaseq.language.syntax.printing import print_group
from spaseq.paths.explain import explain
from spaseq.paths.language.compile import Compiled, compile_path
from spaseq.paths.language.expression import Expression, Path, Step
from spaseq.paths.language.parser import parse
from spaseq.paths.language.transitions import automaton_of
from tests.paths.strategies import paths

PREFIXES = {"": "http://example.org/"}


def compiled(text: str) -> Compiled:
    return compile_path(parse(text, PREFIXES))


@pytest.mark.parametrize(
    ("text", "sequence", "states", "edges", "moved"),
    [
        (":a", ":a", 2, 1, 2),
        (":a/(:b|:c)*/:d", ":a , (:b | :c)*[,] , :d", 3, 4, 3),
        (":a+", ":a+[,]", 2, 2, 1),
        (":a*", ":a*[,]", 1, 1, 1),
        ("(:a|:a)/:b", "(:a | :a) , :b", 3, 2, 3),
        (":a{2,4}", ":a{2,4}[,]", 5, 4, 5),
        (":a{2,}", ":a{2,}[,]", 3, 3, 3),
        (":a{0}", ":a{0}[,]", 1, 0, 1),
        ("[:x 1]/:a?", "[:x 1] , :a?", 3, 2, 2),
    ],
)
def test_automata_are_small(text: str, sequence: str, states: int, edges: int, moved: int) -> None:
    """``moved``: states once tests are parts of edges, and the start is shared."""
    found = compiled(text)
    assert isinstance(found.nfa, NFA)
    assert (show(found.nfa.root), found.nfa.size, len(found.nfa.edges)) == (sequence, states, edges)
    assert automaton_of(found).size == moved


def test_steps_are_gpms_of_one_triple() -> None:
    gpms = compiled(":a/^:b/!(:c)/[:d 1]").nfa.pattern.gpms
    assert [" ".join(print_group(part.stateless).split()) for part in gpms.values()] == [
        "{ ?here <http://example.org/a> ?next . }",
        "{ ?next <http://example.org/b> ?here . }",
        "{ ?here !(<http://example.org/c>) ?next . }",
        "{ ?here <http://example.org/d> 1 . }",
    ]


@given(paths)
def test_every_automaton_is_drawn_and_turned(path: Path) -> None:
    found = compile_path(Expression(path, {}, parse("<urn:x>").source))
    assert dot(found.nfa).startswith("digraph")
    assert svg(found.nfa).startswith("<svg")
    assert as_json(found.nfa)["states"] == found.nfa.size
    units = [edge.predicate.unit for edge in found.nfa.edges]
    read = [found.symbols[unit.gpm] for unit in units if isinstance(unit, Atom)]
    assert read == [found.states.symbols[number] for _, number, _ in found.states.edges]
    ahead = automaton_of(found)
    assert ahead.reversed().reversed() == ahead
    for move in ahead.transitions:
        assert isinstance(move.relation.step, Step)
        assert max(move.source, move.target) < ahead.size


def test_too_large_an_automaton_is_refused() -> None:
    with pytest.raises(QueryMeaningError) as caught:
        compiled(":a/(:b{100}){100}")
    assert (caught.value.offset, caught.value.msg) == (
        4,
        "with its bounds written out this path has 10,001 steps, more than 4,096",
    )
    assert compiled(":a{4000}").nfa.size == 4001


@pytest.mark.parametrize(
    "text", ["(:a{0}){999999999}", "(:a{0}){999999999,}", "(:a{0}/(:b{0})*){,999999999}"]
)
def test_nothing_however_often_is_nothing(text: str) -> None:
    states = compiled(text).states
    assert (states.size, len(states.edges), sorted(states.accepting)) == (1, 0, [0])


def test_explanations() -> None:
    explanation = explain(":a/(:b|:c){1,2}", prefixes=PREFIXES)
    assert str(explanation).splitlines() == [
        "path       :a/(:b|:c){1,2}",
        "sequence   SEQ(:a , (:b | :c){1,2}[,])",
        "automaton  4 states, 5 edges",
        "    0 → 1  :a",
        "    1 → 2  :b",
        "    1 → 2  :c",
        "    2 → 3  :b",
        "    2 → 3  :c",
        "    2 ends a path",
        "    3 ends a path",
        "length     bounded",
    ]
    assert explanation.as_json()["automaton"]["states"] == 4
