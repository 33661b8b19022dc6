"""GPMs that ask the same are evaluated once; few events give the answers that many give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Triple

from spaseq.events import EventBatch
from spaseq.language.syntax import Gpm, Group
from spaseq.patterns.algebra import Row
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.sharing import FEW_EVENTS, Sharing, different, question
from spaseq.patterns.spectra.joins import Spectra
from spaseq.patterns.spectra.solutions import Solutions, from_rows
from spaseq.terms.dictionary import Dictionary, Term
from tests.patterns.strategies import batch, graphs, groups
from tests.patterns.test_evaluator import events, gpm

SAME = [
    ("{ ?x e:p ?v FILTER(?v > 1) }", "{ ?n e:p ?m FILTER(?m > 1) }"),
    ("{ ?x e:p ?v . ?v e:q ?x }", "{ ?v e:p ?x . ?x e:q ?v }"),
    ("{ [] e:p ?v OPTIONAL { ?v e:q ?w } }", "{ [] e:p ?a OPTIONAL { ?a e:q ?b } }"),
    ("AT ?t AS ?g { ?x e:p ?v }", "AT ?u AS ?h { ?x e:p ?v }"),
]
DIFFERENT = [
    ("{ ?x e:p ?v }", "{ ?x e:p ?x }"),
    ("{ ?x e:p ?v }", "{ ?x e:q ?v }"),
    ("AT ?t { ?x e:p ?v }", "{ ?x e:p ?v }"),
    ("AT ?t { ?x e:p ?v }", "AT ?x { ?x e:p ?v }"),
    ("{ ?x e:p ?v FILTER(?v > 1) }", "{ ?x e:p ?v FILTER(?x > 1) }"),
    ("{ ?x e:p ?v BIND(RAND() AS ?r) }", "{ ?x e:p ?v BIND(RAND() AS ?r) }"),
]


def asked(text: str) -> object:
    of = gpm(text)
    return question(of, of.pattern)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_question(one: str, other: str) -> None:
    assert asked(one) == asked(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_question(one: str, other: str) -> None:
    assert asked(one) != asked(other)


@pytest.mark.parametrize("size", [1, FEW_EVENTS, 40])
def test_is_evaluated_once_and_each_has_its_names(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dictionary, sharing = Dictionary(), Sharing()
    first, second = gpm("{ ?x e:p ?v }"), gpm("{ ?v e:p ?x }")
    evaluators = [
        GpmEvaluator(of, of.pattern, dictionary, None, None, sharing) for of in (first, second, first)
    ]
    calls = 0
    plain = Spectra.evaluate

    def counted(spectra: Spectra, *arguments: Any) -> Solutions:
        nonlocal calls
        calls += 1
        return plain(spectra, *arguments)

    monkeypatch.setattr(Spectra, "evaluate", counted)
    data = events(dictionary, "s", [f"e:a e:p {n}" for n in range(size)])
    one, other, again = (evaluator.by_event(data) for evaluator in evaluators)
    assert one == again
    assert calls == (size >= FEW_EVENTS)
    for event in range(size):
        ((row,), (swapped,)) = one[event], other[event]
        assert (row["x"], row["v"]) == (swapped["v"], swapped["x"])
    found = [evaluator.evaluate(data).columns for evaluator in evaluators]
    assert found[0]["x"].tolist() == found[1]["v"].tolist() == found[2]["x"].tolist()
    assert calls == (size >= FEW_EVENTS)


def test_only_of_the_batch_at_hand() -> None:
    dictionary, of = Dictionary(), gpm("{ ?x e:p ?v }")
    evaluator = GpmEvaluator(of, of.pattern, dictionary)
    assert list(evaluator.by_event(events(dictionary, "s", ["e:a e:p 1", "e:a e:q 1"]))) == [0]
    assert list(evaluator.by_event(events(dictionary, "s", ["e:a e:q 1", "e:a e:p 1"]))) == [1]


@pytest.mark.parametrize("size", [1, FEW_EVENTS])
def test_what_it_remembers_is_not_forgotten(size: int) -> None:
    dictionary, sharing = Dictionary(), Sharing()
    of = gpm("{ ?x e:p ?v BIND(?v + 40 AS ?w) }")
    evaluator = GpmEvaluator(of, of.pattern, dictionary, None, None, sharing)
    data = events(dictionary, "s", [f"e:a e:p {n}" for n in range(size)])
    evaluator.by_event(data)
    dictionary.sweep()
    found = [dictionary.term(row["w"]).value for (row,) in evaluator.by_event(data).values()]
    assert found == [str(40 + n) for n in range(size)]


@given(groups(), st.lists(graphs, min_size=FEW_EVENTS, max_size=FEW_EVENTS + 2), st.booleans())
def test_few_events_are_as_many(group: Group, data: list[list[Triple]], named: bool) -> None:
    dictionary = Dictionary()
    of = replace(gpm("AT ?at AS ?as { }" if named else "{ }"), pattern=group)
    many = batch(data, dictionary)
    found = _answers(of, many, dictionary)
    for event in range(len(data)):
        one = many.take(np.array([event]))
        assert _answers(of, one, dictionary).get(0) == found.get(event)


def _answers(of: Gpm, data: EventBatch, dictionary: Dictionary) -> dict[int, list[list[tuple[str, str]]]]:
    evaluator = GpmEvaluator(of, of.pattern, dictionary)
    found = evaluator.by_event(data)
    assert {e: _shown(rows, dictionary) for e, rows in evaluator.evaluate(data).by_event().items()} == {
        e: _shown(rows, dictionary) for e, rows in found.items()
    }
    return {event: _shown(rows, dictionary) for event, rows in found.items()}


def _shown(rows: tuple[Row, ...], dictionary: Dictionary) -> list[list[tuple[str, str]]]:
    def text(term: Term) -> str:
        return "_:" if isinstance(term, BlankNode) else str(term)

    return sorted(sorted((name, text(dictionary.term(i))) for name, i in row.items()) for row in rows)


def test_rows_as_columns() -> None:
    found = from_rows(["a", "b"], {4: ({"a": 1}, {"b": 2}), 2: ({"a": 3, "b": 4},)})
    assert found.event is not None
    assert found.event.tolist() == [4, 4, 2]
    assert found.columns["a"].tolist() == [1, 0, 3]
    assert found.by_event() == {4: ({"a": 1}, {"b": 2}), 2: ({"a": 3, "b": 4},)}


@given(st.lists(st.integers(0, 20), max_size=40), st.booleans())
def test_events_are_counted_once_whatever_their_order(events: list[int], in_order: bool) -> None:
    given_so = sorted(events) if in_order else events
    assert different(np.array(given_so, dtype=np.int64)) == len(set(events))
