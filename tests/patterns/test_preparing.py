"""What is done to prepare a query, and with an event, grows with the query's length, not with its square."""

from __future__ import annotations

import random
import sys
import warnings
from types import FrameType
from typing import Any

import pytest

import spaseq

HEAD = "SELECT ?x0 WITHIN 10 SECONDS FROM STREAM S <urn:s> WHERE {"


def disjunction(size: int) -> tuple[str, str]:
    gpms = " ".join(f"DEFINE GPM A{i} ON S {{ ?x{i} <urn:p{i}> ?y{i} }}" for i in range(size))
    text = f"{HEAD} SEQ({' | '.join(f'A{i}' for i in range(size))}) {gpms} }}"
    return text, "<urn:n> <urn:p0> <urn:m> ."


def pattern(triple: str, size: int) -> tuple[str, str]:
    order = list(range(size))
    random.Random(size).shuffle(order)
    triples = " ".join(triple.format(i=i, j=i + 1) for i in order)
    event = " ".join(f"<urn:n0> <urn:p{i}> <urn:n0> ." for i in range(size))
    return f"{HEAD} SEQ(A) DEFINE GPM A ON S {{ {triples} }} }}", event


def calls(text: str, event: str) -> int:
    """How many calls of Python's a query takes until it has found its first match."""
    count = 0

    def counted(frame: FrameType, what: str, argument: Any) -> None:
        nonlocal count
        del frame, what, argument
        count += 1

    sys.setprofile(counted)
    try:
        engine = spaseq.Engine()
        handle = engine.register(text)
        engine.push_many("urn:s", [(event, 1)])
        found = len(list(handle.matches()))
    finally:
        sys.setprofile(None)
    assert found == 1
    return count


@pytest.mark.parametrize(
    "triple", ["", "?x0 <urn:p{i}> ?y{i} .", "?x{i} <urn:p{i}> ?x{j} .", "?x{i} <urn:p{i}> ?y{i} ."]
)
@pytest.mark.few(1)
def test_four_times_as_long_is_four_times_as_much(triple: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # First of all a third, so that compiled code is loaded; what is made of a text may be kept.
        _, few, many = (
            calls(*(pattern(triple, size) if triple else disjunction(size))) for size in (90, 100, 400)
        )
    assert many < 5 * few  # the square would be 16


@pytest.mark.parametrize("operator", [" ; ", " : ", " , "])
@pytest.mark.slow
def test_a_thousand_elements_in_a_row(operator: str) -> None:
    few, many = 400, 1_000
    gpms = " ".join(f"DEFINE GPM A{i} ON S {{ ?x <urn:p{i}> ?y }}" for i in range(few))
    names = [f"A{i % few}" for i in range(many)]
    names[1:-1:2] = [f"!{name}" if operator == " : " else name for name in names[1:-1:2]]
    text = (
        f"SELECT * WITHIN 1000 SECONDS FROM STREAM S <urn:s> WHERE {{ SEQ({operator.join(names)}) {gpms} }}"
    )
    handle = spaseq.Engine().register(text)
    assert not handle.is_over


def test_an_automaton_has_a_limit() -> None:
    gpms = " ".join(f"DEFINE GPM A{i} ON S {{ ?x{i} <urn:p> ?y{i} }}" for i in range(90))
    text = f"{HEAD} SEQ({' ; '.join(f'A{i}?' for i in range(89))} ; A89) {gpms} }}"
    with spaseq.Engine() as engine:
        with pytest.raises(spaseq.QueryMeaningError, match="more than 60,000 actions"):
            engine.register(text)
        handle = engine.register(disjunction(2)[0])
        engine.push("urn:s", "<urn:n> <urn:p0> <urn:m> .", 1)
        assert len(list(handle.matches())) == 1
