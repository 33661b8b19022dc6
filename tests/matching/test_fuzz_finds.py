"""What random cases have found: each bug as the smallest case of it, on every matcher that can run it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyoxigraph import Literal

from spaseq.events import Stamp
from spaseq.matching.model import Occurrence, StreamWindow
from tests.matching.kernel_cases import Yields, by_kernel, by_reference, by_runs
from tests.matching.random_sequences import Query, Sample, pattern_of

#: An event: its stream, its time, and what each GPM finds in it.
Row = tuple[int, int, Mapping[str, Mapping[str, int]]]


def case(
    seq: str, gpms: Mapping[str, str], rows: list[Row], window: StreamWindow, partition: str = ""
) -> Sample:
    defined = " ".join(f"DEFINE GPM {name} ON S1, S2 {{ {body} }}" for name, body in gpms.items())
    text = (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS {partition} "
        f"FROM STREAM S1 :s1 FROM STREAM S2 :s2 WHERE {{ SEQ({seq}) {defined} }}"
    )
    query = Query(text, pattern_of(text), {}, {}, {})
    intern = query.dictionary.intern
    counts: dict[int, int] = {}
    events = []
    for position, (stream, time, found) in enumerate(rows):
        n = counts.setdefault(stream, 0)
        counts[stream] += 1
        solutions = {g: ({v: intern(Literal(i)) for v, i in one.items()},) for g, one in found.items()}
        events.append(Occurrence(Stamp(time, stream, n), position, solutions))
    return Sample(query, window, tuple(events))


def everywhere(sample: Sample) -> Yields:
    """What the reference gives, and every other matcher that can run the query."""
    expected = by_reference(sample)
    assert by_runs(sample) == expected
    if sample.query.misfit is None:
        assert by_kernel(sample) == expected
    return expected


def test_an_event_chosen_twice_does_not_decide_the_order() -> None:
    """Two matches with the same last event, one of which chose an event for two GPMs."""
    both = {"A": {"a": 1}, "B": {"b": 1}}
    rows: list[Row] = [(1, 0, both), (1, 0, {"B": {"b": 2}}), (1, 1, {"C": {"c": 1}})]
    gpms = {"A": "[] :v ?a", "B": "[] :v ?b", "C": "[] :v ?c"}
    sample = case("(A & B) ; C", gpms, rows, StreamWindow(5, False, True, 0))
    assert [len(step) for step in everywhere(sample)] == [2, 0]


def test_the_parts_of_an_and_do_not_decide_the_order() -> None:
    """The cheapest part is looked for first, and need not be the earliest event."""
    rows: list[Row] = [
        (2, 1, {"A": {"a": 3}, "C": {"c": 3}}),
        (1, 1, {"C": {"c": 3}}),
        (2, 1, {"B": {"b": 1}}),
    ]
    gpms = {"A": "[] :v ?a OPTIONAL { [] :m ?m }", "B": "[] :v ?b", "C": "[] :v ?c"}
    found = everywhere(case("A & B & C", gpms, rows, StreamWindow(15, False, False, 0)))
    assert [len(step) for step in found] == [2, 0]


@pytest.mark.parametrize("same", [True, False])
def test_a_negated_gpm_without_the_key_counts_where_its_event_has_it(same: bool) -> None:
    """``C`` binds no key: its event is of the partition to which another GPM takes it, or of none."""
    with_b: Row = (1, 3, {"B": {"b": 1, "k": 1}, "C": {"c": 1}})
    apart: list[Row] = [(1, 3, {"B": {"b": 1, "k": 1}}), (1, 3, {"C": {"c": 1}})]
    rows = [*([with_b] if same else apart), (2, 4, {"A": {"a": 1, "k": 1}})]
    gpms = {"A": "[] :v ?a ; :k ?k", "B": "[] :v ?b ; :k ?k", "C": "[] :v ?c"}
    sample = case("!(B & C) , A", gpms, rows, StreamWindow(6, False, True, 0), "PARTITION BY ?k")
    assert [len(step) for step in everywhere(sample)] == [0 if same else 1, 0]


@pytest.mark.parametrize(("seq", "found"), [("E? ; (B{0,1} : A+)", 7), ("E? ; (B : A+)", 4)])
def test_the_same_events_for_other_gpms_are_another_element(seq: str, found: int) -> None:
    """B5 A6 has no E before it, since E0 ``;`` would wait for B2. That E0 goes on to A5 A6 is no matter."""
    rows: list[Row] = [
        (1, 0, {"E": {"e": 1}}),
        (2, 2, {"B": {"b": 1}}),
        (1, 5, {"A": {"a": 1}, "B": {"b": 1}}),
        (1, 6, {"A": {"a": 1}}),
    ]
    gpms = {"A": "[] :v ?a", "B": "[] :v ?b", "E": "[] :v ?e"}
    sample = case(seq, gpms, rows, StreamWindow(20, False, True, 0))
    assert [len(step) for step in everywhere(sample)] == [found, 0]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("DISTANCE(PREV(?b), ?b, <METRE>) < 9 || ?b != PREV(?b)", 3),
        ("DISTANCE(PREV(?b, 2), ?b, <METRE>) < 9 || ?b > 5", 2),
        ("DISTANCE(?a, ?b, <METRE>) < 9 || ?b != PREV(?b)", 0),
        ("DISTANCE(PREV(?b), ?b, <METRE>) < 9", 1),
    ],
)
def test_what_is_no_point_errs_later_than_an_iteration_that_is_not_there(condition: str, found: int) -> None:
    """The distance from what was not there yet is an error for that reason alone, whatever else it is of."""
    condition = condition.replace("DISTANCE", "<http://www.opengis.net/def/function/geosparql/distance>")
    condition = condition.replace("METRE", "http://www.opengis.net/def/uom/OGC/1.0/metre")
    rows: list[Row] = [
        (1, 0, {"A": {"a": 1}}),
        *((1, t, {"B": {"b": b}}) for t, b in enumerate([2, 3, 3, 4], 1)),
    ]
    gpms = {"A": "[] :v ?a", "B": f"[] :v ?b . FILTER({condition})"}
    sample = case("A ; B+", gpms, rows, StreamWindow(9, False, True, 0))
    assert sum(map(len, everywhere(sample))) == found
