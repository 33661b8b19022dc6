"""Which Kleene a variable belongs to, by alternative (semantics, section 4, *Group variables*)."""

from __future__ import annotations

import pytest

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import Absent, Either, Kleene, SequencePattern, starts, walk
from spaseq.automaton.show import show
from spaseq.language import checked


def pattern(sequence: str, bound: dict[str, str], head: str = "") -> SequencePattern:
    """GPM X binds ``?x`` and what ``bound`` says."""
    gpms = "\n".join(
        f"DEFINE GPM {name} ON S {{ ?{name.lower()} a :{name} . "
        + " ".join(f"?{name.lower()} :{v} ?{v} ." for v in bound.get(name, "").split())
        + " }"
        for name in "ABCDE"
    )
    return normalise(
        checked(
            f"PREFIX : <http://example.org/> SELECT * WITHIN 9 SECONDS {head} FROM STREAM S <urn:s>"
            f"{{ SEQ({sequence}) {gpms} }}"
        )
    )


def owned(found: SequencePattern) -> list[tuple[str, str]]:
    """Each Kleene with what it owns, in the order written."""
    kleenes = (node for node in walk(found.root) if isinstance(node, Kleene))
    return [(show(node), " ".join(sorted(node.own))) for node in kleenes]


ONE = [
    ("A ; B+", {}, [("B+", "b")]),
    ("A ; B+ ; B", {}, [("B+", "")]),
    ("(A ; B)+", {"A": "k", "B": "k"}, [("(A ; B)+", "a b k")]),
    ("(A ; B)+ ; C", {"A": "k", "B": "k", "C": "k"}, [("(A ; B)+", "a b")]),
    ("(A ; B+)+", {"A": "k", "B": "k"}, [("(A ; B+)+", "a b k"), ("B+", "b")]),
    ("A ; !B ; B+ ; C", {}, [("B+", "b")]),
    ("(A ; !B ; C)+", {"B": "k", "C": "k"}, [("(A ; !B ; C)+", "a b c k")]),
    ("A+ ; !B ; C", {"A": "k", "B": "k"}, [("A+", "a")]),
    ("(A , E+[,]) | (B , E+[,])", {}, [("E+[,]", "e"), ("E+[,]", "e")]),
    ("((A , B) | (C , B+[,]))+", {}, [("((A , B) | (C , B+[,]))+", "a b c"), ("B+[,]", "b")]),
    ("(A | B)+ ; C", {"A": "k", "B": "k"}, [("(A | B)+", "a b k")]),
    ("E+ ; !E ; C", {}, [("E+", "e")]),
]


@pytest.mark.parametrize(("sequence", "bound", "kleenes"), ONE)
def test_what_a_kleene_owns(sequence: str, bound: dict[str, str], kleenes: list[tuple[str, str]]) -> None:
    found = pattern(sequence, bound)
    assert owned(found) == kleenes
    assert not any(isinstance(node, Either) and node.closed for node in walk(found.root))


def test_a_partition_variable_has_one_value() -> None:
    found = pattern("A+", dict.fromkeys("ABCDE", "k"), "PARTITION BY ?k")
    assert owned(found) == [("A+", "a")]


def test_alternatives_are_written_out_where_a_side_decides_elsewhere() -> None:
    found = pattern("(E | B) ; (E+ | C)", {})
    assert isinstance(found.root, Either)
    assert found.root.apart
    assert [show(node) for node in found.root.operands] == ["E ; (E+ | C)", "B ; (E+ | C)"]
    taken = [node.own for one in found.root.operands for node in walk(one) if isinstance(node, Kleene)]
    assert taken == [frozenset(), frozenset("e")]
    first = found.root.operands[0]
    assert [unit.gpm for _, unit in starts(first)] == ["E", "B"]  # what ';' must not skip is both sides


def test_each_iteration_takes_sides_of_its_own() -> None:
    found = pattern("((E | B) ; (E+ | C))+ ; D", {})
    outer = next(node for node in walk(found.root) if isinstance(node, Kleene))
    assert isinstance(outer.element, Either)
    assert outer.element.apart
    assert len(outer.element.operands) == 2


def test_variables_of_several_scopes_are_told() -> None:
    assert pattern("(A , E+) | (B , E+)", {}).mixed == {"e"}
    assert len(pattern("(A , E+) | (B , E+)", {}).owners["e"]) == 2
    assert pattern("(A , E) | (B , E+)", {}).mixed == {"e"}
    assert pattern("(A ; B+)+ | C", {}).mixed == frozenset()
    assert pattern("A ; B+ ; B", {}).owners == {}


def test_the_negation_beside_a_kleene_joins_nothing() -> None:
    negations = [
        node.free
        for sequence in (
            "E+ ; !E ; C",
            "A ; !E ; E+",
            "E{0,2} ; !B ; !E WITHIN 3 SECONDS ; A",
            "E+ ; A ; !E ; B",
        )
        for node in walk(pattern(sequence, {"E": "k", "C": "k"}).root)
        if isinstance(node, Absent)
    ]
    assert negations == [{"e"}, {"e", "k"}, set(), {"e", "k"}, set()]
