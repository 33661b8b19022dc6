"""Sequences and their automata, as pairs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from spaseq.automaton.compile import build, compile_pattern
from spaseq.automaton.draw import as_json, dot, svg
from spaseq.automaton.nfa import NFA, Await, Decide, Forbid
from spaseq.automaton.normal import normalise
from spaseq.automaton.passes import passes
from spaseq.automaton.pattern import SequencePattern
from spaseq.automaton.show import ending, label, show
from spaseq.language.reading.parser import parse


def sequence(seq: str, bodies: dict[str, str] | None = None, where: str = "") -> SequencePattern:
    """A query whose GPMs are the single letters of ``seq``; letter X has the type ``:x``."""
    names = sorted(set(re.findall(r"\b[A-Z]\b", seq)))
    given = bodies or {}
    gpms = " ".join(
        f"DEFINE GPM {n} ON S {{ {given.get(n, f'?{n.lower()} a :{n.lower()}')} }}" for n in names
    )
    return normalise(
        parse(
            "PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS FROM STREAM S <http://example.org/s> "
            f"WHERE {{ SEQ({seq}) {gpms} {where} }}"
        )
    )


def automaton(seq: str) -> NFA:
    return compile_pattern(sequence(seq))


GOLDEN = {
    "A": ["0 A 1", "1."],
    "A , B ; C : D": ["0 A 1", "1 , B 2", "2 ; C 3", "3 : D 4", "4."],
    "A ; B+ ; C": ["0 A 1", "1 ; B 2", "2 ; B 2", "2 ; C 3", "3."],
    "A ; B{2,5}[,]": ["0 A 1", "1 ; B 2", "2 , B (<5×) 2", "2. ≥2×"],
    "A ; B{1}": ["0 A 1", "1 ; B 2", "2."],
    "A ; (B | C) : D": ["0 A 1", "1 ; B 2", "1 ; C 2", "2 : D 3", "3."],
    "A ; (B & C)": ["0 A 1", "1 ; B & C 2", "2."],
    "A ; ((B & C) | D)": ["0 A 1", "1 ; D 2", "1 ; B & C 2", "2."],
    "A ; !B : C": ["0 A 1", "1 !B : C 2", "2."],
    "A , !B , C": ["0 A 1", "1 , C 2", "2."],
    "!A ; B": ["0 !A B 1", "1."],
    "A ; B ; !C": ["0 A 1", "1 ; B 2", "2. !C"],
    "A ; B? , C": ["0 A 1", "1 ; B 2", "1 , C 3", "2 , C 3", "3."],
    "A ; B* : C": ["0 A 1", "1 ; B 2", "1 no B* : C 3", "2 ; B 2", "2 : C 3", "3."],
    "A ; (B , C)+ ; D": ["0 A 1", "1 ; B 2", "2 , C 3", "3 ; B 2", "3 ; D 4", "4."],
    "A : (B? ; C)": ["0 A 1", "1 : B 2", "1 no B? : C 3", "2 ; C 3", "3."],
    "(A , B) | (C ; D)": ["0 A 1", "0 C 3", "1 , B 2", "3 ; D 2", "2."],
    "A ; B{0,1} ; C": ["0 A 1", "1 ; B 2", "1 ; C 3", "2 ; C 3", "3."],
    "A , !B ; C": ["0 A 1", "1 !B ; C 2", "2."],
    "A ; !B WITHIN 1.5 SECONDS ; C": ["0 A 1", "1 !B WITHIN 1.5 SECONDS ; C 2", "2."],
    "(A ; B) WITHIN 2 SECONDS ; C": ["0 A 1", "1 ; B 2", "2 ; C (within 2 SECONDS) 3", "3."],
    "A ; B+ WITHIN 2 MINUTES": ["0 A 1", "1 ; B 2", "2 ; B 2", "2. within 2 MINUTES"],
    "(A ; !B)+ ; C": ["0 A 1", "1 !B ; A 1", "1 !B ; C 2", "2."],
    "A ; ALL(B, C : D) , A": ["0 A 1", "1 ; ALL(B, (C : D)) 2", "2 , A 3", "3."],
    "((A ; B+){2,3} | C) ; D": [
        "0 A 1",
        "0 C 3",
        "1 ; B 2",
        "2 ; B 2",
        "2 ; A (<3×) 1",
        "2 ; D (≥2×) 4",
        "3 ; D 4",
        "4.",
    ],
}


@pytest.mark.parametrize("seq", GOLDEN)
def test_golden(seq: str) -> None:
    nfa = automaton(seq)
    edges = [f"{edge.source} {label(edge)} {edge.target}" for edge in nfa.edges]
    accepts = [f"{accept.state}. {ending(accept)}".strip() for accept in nfa.accepts]
    assert sorted(edges) + accepts == sorted(GOLDEN[seq][: -len(accepts)]) + GOLDEN[seq][-len(accepts) :]


@pytest.mark.parametrize("seq", GOLDEN)
def test_show_gives_the_sequence_back(seq: str) -> None:
    again = show(sequence(seq).root)
    assert show(sequence(again).root) == again


def test_rivals_are_all_that_the_element_after_the_operator_can_start_with() -> None:
    nfa = automaton("A ; (B? , (C & D)+)")
    for edge in nfa.leaving(1):
        # What may be left out is there or not beforehand: ';' waits for what is taken.
        (rival,) = edge.predicate.rivals
        assert rival.unit == edge.predicate.unit
        assert len(rival.entered) == (0 if show(rival.unit) == "B" else 1)
    assert len(nfa.leaving(1)) == 2
    # Behind B, `,` has no rivals but every event.
    assert all(edge.predicate.rivals == () for edge in nfa.leaving(2) if edge.predicate.strategy == ",")


def test_gaps_are_closed_by_the_whole_element_that_follows() -> None:
    nfa = automaton("A ; !B ; (C ; D)")
    (into,) = nfa.leaving(1)
    (through,) = nfa.leaving(2)
    assert isinstance(into.ends[0], Forbid)
    (owner,) = (action.owner for action in into.begins if isinstance(action, Await))
    assert not any(isinstance(action, Decide) for action in through.ends)
    assert nfa.accepts[0].ends == (Decide(owner, ()),)


def test_open_gaps_of_an_all_are_closed_by_what_follows() -> None:
    nfa = automaton("ALL(A, B ; !C) ; D")
    (edge,) = nfa.leaving(1)
    assert any(isinstance(action, Await) for action in edge.begins)


def test_no_gap_needs_no_bookkeeping() -> None:
    pattern = sequence("A , !B , C")
    assert any(isinstance(a, Await) for edge in build(pattern).edges for a in edge.begins)
    nfa = compile_pattern(pattern)
    assert not any(edge.begins for edge in nfa.edges)
    assert not any(accept.ends for accept in nfa.accepts)


def test_keys_are_bound_by_the_run_the_unit_and_the_rivals() -> None:
    bodies = {"A": "?x :k ?k ; :j ?j", "B": "?y :k ?k ; :j ?j", "C": "?z :k ?k"}
    nfa = compile_pattern(sequence("A ; (B | C) ; B", bodies))
    assert [edge.key for edge in nfa.leaving(0)] == [()]
    assert {edge.key for edge in nfa.leaving(1)} == {("k",)}
    assert nfa.shared == ("k",)
    (last,) = nfa.leaving(2)
    assert last.key == ("j", "k")


def test_a_group_variable_is_no_key() -> None:
    bodies = {"A": "?x :k ?k", "B": "?y :v ?v ; :k ?k"}
    nfa = compile_pattern(sequence("A ; B+", bodies))
    (loop,) = nfa.leaving(2)
    assert loop.key == ("k",)


def test_filters_stand_where_their_last_variable_is_bound() -> None:
    bodies = {"A": "?a :v ?v", "B": "?b :v ?w FILTER(?w > ?v)", "C": "?c :v ?u"}
    nfa = compile_pattern(sequence("A ; B ; C", bodies, "FILTER(?u > ?v)"))
    assert [len(edge.filters) for edge in nfa.edges] == [0, 1, 1]


def test_cheap_conjuncts_come_first() -> None:
    bodies = {"A": "?a a :a ; :p ?p ; :q ?q", "B": "?b a :b"}
    assert label(compile_pattern(sequence("A & B", bodies)).edges[0]) == "B & A"


@pytest.mark.parametrize("seq", GOLDEN)
def test_every_pass_keeps_the_automaton_whole(seq: str) -> None:
    nfa = build(sequence(seq))
    for change in passes:
        nfa = change(nfa)
        used = {0, *(edge.source for edge in nfa.edges), *(edge.target for edge in nfa.edges)}
        assert used == set(range(nfa.size))
        assert {accept.state for accept in nfa.accepts} <= used


@pytest.mark.parametrize("seq", GOLDEN)
def test_drawings(seq: str) -> None:
    nfa = automaton(seq)
    drawn = ElementTree.fromstring(svg(nfa))
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {label(edge) for edge in nfa.edges} <= set(texts)
    assert {str(state) for state in range(nfa.size)} <= set(texts)
    assert dot(nfa).count(" -> ") == len(nfa.edges) + 1
    value = json.loads(json.dumps(as_json(nfa)))
    assert [edge["label"] for edge in value["edges"]] == [label(edge) for edge in nfa.edges]


def test_a_filter_on_a_group_variable_waits_for_the_end_of_its_kleene() -> None:
    bodies = {"A": "?a :v ?v", "B": "?b :v ?w", "C": "?c :v ?u"}
    where = "FILTER(?w > ?v)"
    nfa = compile_pattern(sequence("A ; B+ ; C", bodies, where))
    assert [(edge.source, edge.target) for edge in nfa.edges if edge.filters] == [(2, 3)]
    assert not any(edge.filters for edge in compile_pattern(sequence("A ; B+", bodies, where)).edges)
