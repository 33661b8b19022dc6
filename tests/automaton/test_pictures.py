"""Pictures: no label hides another, a place, or the head of an arrow, in any automaton or set of paths."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.automaton import draw
from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.normal import normalise
from spaseq.language import checked
from spaseq.paths import drawing
from tests.automaton.pictures import Shown, hidden, shown
from tests.conftest import examples
from tests.matching.random_sequences import random_query

GO = """PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS FROM STREAM S <http://example.org/s>
WHERE {{ SEQ({seq})
  DEFINE GPM Start ON S {{ ?a :start ?x }} DEFINE GPM Stop ON S {{ ?a :stop ?y }}
  DEFINE GPM Go ON S {{ ?a :go ?z }} DEFINE GPM End ON S {{ ?a :end ?e }} }}"""


@pytest.mark.parametrize(
    "seq",
    [
        "Start ; (Stop ; Go)*",
        "Start ; (Stop ; Go)* ; End",
        "Start ; (Stop ; Go?)+[:] , End",
        "(Start | Stop){2,5} ; (Go ; End){3,}",
        "ALL(Start, Stop+, Go ; End)",
        "Start ; !Stop ; (Go+ ; End)+",
        "Start ; (Stop ; Go)+ ; !End",
    ],
)
def test_sequences(seq: str) -> None:
    query = checked(GO.format(seq=seq))
    assert hidden(draw.svg(compile_pattern(normalise(query)))) == []


@given(st.integers(0, 2**32))
@settings(max_examples=examples(150))
def test_any_automaton(seed: int) -> None:
    query = random_query(random.Random(seed), most=8, depth=3)
    assert hidden(draw.svg(compile_pattern(query.pattern))) == []


LABELS = ["p", "knows", "directed by", "a predicate with a long label"]


@st.composite
def networks(draw: st.DrawFn) -> Any:
    """What ``to_networkx`` may give: nodes at depths without gaps, and edges in any direction."""
    network: Any = nx.MultiDiGraph()
    depth = draw(st.integers(1, 5))
    depths = [*range(depth), *draw(st.lists(st.integers(0, depth - 1), max_size=9))]
    for number, at in enumerate(depths):
        label = draw(st.sampled_from(["a", "alice", "http://example.org/of-many-parts"]))
        network.add_node(number, label=f"{label}{number}", depth=at)
    node = st.integers(0, len(depths) - 1)
    for s, o, label in draw(st.sets(st.tuples(node, node, st.sampled_from(LABELS)), max_size=25)):
        network.add_edge(s, o, key=label, label=label)
    return network


@given(networks())
@settings(max_examples=examples(150))
def test_any_paths(network: Any) -> None:
    assert hidden(drawing.svg(network)) == []


def test_the_picture_of_the_readme() -> None:
    root = Path(__file__).parents[2]
    query, picture = root / "streams" / "stocks.rq", (root / "docs" / "stocks.svg").read_text()
    assert hidden(picture) == []
    assert picture.strip() == draw.svg(compile_pattern(normalise(spaseq.prepare(query.read_text())))).strip()


def test_what_is_hidden_is_found() -> None:
    """The measure itself: a picture with a label over each kind of thing."""
    text = '<text x="{}" y="{}">label</text>'
    picture = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-100 -100 400 200">{}</svg>'
    circle = '<circle class="state" cx="0" cy="0" r="20"/>'
    arrow = '<path class="edge" d="M0 50C10 50 20 50 30 50L60 50"/>'
    assert hidden(picture.format(circle + arrow + text.format(0, 4) + text.format(100, 50))) == []
    for wrong, what in [
        (circle + text.format(30, 0), "place"),
        (arrow + text.format(60, 54), "head"),
        (text.format(100, 0) + text.format(110, 10), "label"),
        (text.format(290, 0), "cut off"),
    ]:
        (found,) = hidden(picture.format(wrong))
        assert what in found.removeprefix("label")
    (head,) = (thing for thing in shown(picture.format(arrow)) if thing.kind == "head")
    assert head == Shown("head", head.what, (49.9, 45.5, 61.1, 54.5))
