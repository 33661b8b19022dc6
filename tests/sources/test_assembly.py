"""Which quads make an event, when it is complete, and what is reported instead of delivered."""

from __future__ import annotations

from itertools import permutations

import pytest

from spaseq.events import Clock
from spaseq.sources import open_source, parse_source
from spaseq.sources.assembly import assemble as _assemble
from spaseq.sources.assembly import delivered as _delivered
from spaseq.terms.dictionary import Dictionary

from .reading import PREFIXES, STREAM, Reading, Trickle, read


def trig(text: str, spec: str = "") -> tuple[Reading, list[tuple[str | None, int]], list[str]]:
    reading = read(PREFIXES + text, f"format=trig&{spec}")
    return reading, list(zip(reading.graphs, reading.times, strict=True)), reading.reasons


def test_time_before_after_and_at_the_end() -> None:
    reading, events, _ = trig("""
        :a prov:generatedAtTime 1 .  :a { :x :p 1 }
        :b { :x :p 2 }  :b prov:generatedAtTime 2 .
        :c { :x :p 3 }  :d { :x :p 4 }
        :d prov:generatedAtTime 4 .  :c prov:generatedAtTime 3 .
    """)
    assert events == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    assert reading.numbers == [0, 1, 2, 3]
    assert reading.bad == []


def test_all_times_first() -> None:
    _, events, reasons = trig("""
        { :b prov:generatedAtTime 2 . :a prov:generatedAtTime 1 . :a :label "a" }
        :a { :x :p 1 }  :b { :x :p 2 }
    """)
    assert (events, reasons) == ([("a", 1), ("b", 2)], [])


def test_a_graph_that_waits_for_its_time_is_passed_by_others() -> None:
    reading, events, _ = trig("""
        :late { :x :p 1 }
        :a { :x :p 2 }  :a prov:generatedAtTime 2 .
        :b { :x :p 3 }  :b prov:generatedAtTime 3 .
        :late prov:generatedAtTime 1 .
    """)
    assert events == [("a", 2), ("late", 1), ("b", 3)]
    assert reading.bad == []


def test_a_graph_that_waited_comes_with_its_time() -> None:
    _, events, reasons = trig("""
        :late { :x :p 1 }  :a { :x :p 2 }  :a prov:generatedAtTime 2 .
        :late prov:generatedAtTime 1 .
        :b { :x :p 3 }  :b prov:generatedAtTime 3 .  :c { :x :p 4 }  :c prov:generatedAtTime 4 .
    """)
    assert (events, reasons) == ([("late", 1), ("a", 2), ("b", 3), ("c", 4)], [])


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_any_order_of_two_waiting_graphs(order: tuple[int, ...]) -> None:
    """Whatever stands first, both events come, whole."""
    parts = [
        ":a { :x :p 1 . :x :p 2 }",
        ":b { :x :p 3 }",
        ":a prov:generatedAtTime 1 .",
        ":b prov:generatedAtTime 2 .",
    ]
    reading, events, reasons = trig("\n".join(parts[i] for i in order))
    assert sorted(events) == [("a", 1), ("b", 2)]
    assert reasons == []
    assert len(reading.triples(events.index(("a", 1)))) == 2


def test_a_graph_may_go_on_until_its_time_is_known() -> None:
    reading, events, reasons = trig("""
        :a { :x :p 1 }  :b { :x :p 2 }  :a { :x :p 3 }
        :a prov:generatedAtTime 1 .  :b prov:generatedAtTime 2 .
    """)
    assert reasons == []
    assert sorted(events) == [("a", 1), ("b", 2)]
    assert len(reading.triples(events.index(("a", 1)))) == 2


def test_a_graph_that_goes_on_after_it_was_complete() -> None:
    reading, events, reasons = trig("""
        :a { :x :p 1 }  :a prov:generatedAtTime 1 .
        :b { :x :p 2 }  :b prov:generatedAtTime 2 .
        :a { :x :p 3 }
        :c { :x :p 4 }  :c prov:generatedAtTime 3 .
    """)
    assert events == [("a", 1), ("b", 2), ("c", 3)]
    assert len(reasons) == 1
    assert "goes on after it was complete" in reasons[0]
    assert reading.positions == ["event 3"]
    assert '"3"' in reading.bad[0].payload


def test_an_event_that_comes_twice_is_not_blamed_on_the_order_of_its_quads() -> None:
    event = ":a { :x :p 1 }  :a prov:generatedAtTime 1 .\n"
    other = ":b { :x :p 2 . :b prov:generatedAtTime 2 }\n"
    _, events, reasons = trig(event + other + event + other)
    assert events == [("a", 1), ("b", 2)]
    assert ["came twice" in reason for reason in reasons] == [True, True]


def test_no_time() -> None:
    reading, events, reasons = trig(":a { :x :p 1 }  :b prov:generatedAtTime 2 .  :b { :x :p 1 }")
    assert events == [("b", 2)]
    assert reading.positions == ["event 1"]
    assert "generatedAtTime" in reasons[0]
    assert "time=" in reasons[0]
    assert reading.bad[0].payload.startswith("<http://example.org/x> <http://example.org/p>")
    assert reading.bad[0].stream == "http://example.org/stream"


def test_two_times() -> None:
    reading, events, reasons = trig("""
        :a prov:generatedAtTime 1, 2 .  :a { :x :p 1 }
        :b prov:generatedAtTime 3, "03"^^xsd:int .  :b { :x :p 1 }
        :c { :x :p 1 }  :c prov:generatedAtTime 5 .
        :d { :x :p 1 }  :d prov:generatedAtTime 6 .
        :c prov:generatedAtTime 7 .
    """)
    assert events == [("b", 3), ("c", 5), ("d", 6)]
    assert reading.positions == ["event 4", "event 1"] or reading.positions == ["event 1", "event 4"]
    assert any("two different times" in reason for reason in reasons)
    assert any("a further time for" in reason for reason in reasons)


@pytest.mark.parametrize(
    "time", ['"noon"^^xsd:dateTime', '"10"', ":x", '"2020-02-30"^^xsd:date', '"1.5"^^xsd:decimal', "_:b"]
)
def test_a_time_that_is_none(time: str) -> None:
    _, events, reasons = trig(
        f":a prov:generatedAtTime {time} . :a {{ :x :p 1 }} :b prov:generatedAtTime 1 . :b {{ :x :p 1 }}"
    )
    assert events == [("b", 1)]
    assert len(reasons) == 1
    assert "its time" in reasons[0]


def test_one_clock_per_stream() -> None:
    reading, events, reasons = trig("""
        :a prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime .  :a { :x :p 1 }
        :b prov:generatedAtTime 1 .  :b { :x :p 1 }
        :c prov:generatedAtTime "1970-01-02"^^xsd:date .  :c { :x :p 1 }
    """)
    assert events == [("a", 1_000_000), ("c", 86_400_000_000)]
    assert reading.clocks == {Clock.INSTANTS}
    assert "ticks" in reasons[0]


def test_time_inside_the_graph() -> None:
    reading, events, reasons = trig("""
        :a { :x :p 1 ; prov:generatedAtTime 1 }
        :b { :x prov:generatedAtTime 8 . :b prov:generatedAtTime 2 }
        :c { :x prov:generatedAtTime 3 . :y prov:generatedAtTime 3 }
        :d { :x prov:generatedAtTime 4 . :y prov:generatedAtTime 5 }
        :e prov:generatedAtTime 6 . :e { :x prov:generatedAtTime 9 }
    """)
    assert events == [("a", 1), ("b", 2), ("c", 3), ("e", 6)]
    assert "two different times" in reasons[0]
    assert len(reading.triples(0)) == 2, "the time stays part of the graph"


def test_another_time_predicate() -> None:
    text = ":a prov:generatedAtTime 9 ; :at 1 . :a { :x :p 1 } :b { :x :at 2 }"
    _, events, reasons = trig(text, "time=http://example.org/at")
    assert (events, reasons) == ([("a", 1), ("b", 2)], [])


def test_arrival() -> None:
    reading, events, reasons = trig(
        ":a prov:generatedAtTime 9 . :a { :x :p 1 } :b { :x :p 2 } { :x :p 3 } :c { :x :p 4 }", "time=arrival"
    )
    assert (events, reasons) == ([("a", 0), ("b", 1), ("c", 2)], [])
    assert reading.clocks == {Clock.TICKS}


def test_numbers_count_delivered_events() -> None:
    reading, events, _ = trig(
        ":a prov:generatedAtTime 1 . :a { :x :p 1 } :b { :x :p 2 } :c prov:generatedAtTime 1 . :c { :x :p 4 }"
    )
    assert events == [("a", 1), ("c", 1)]
    assert reading.numbers == [0, 1]


def test_no_named_graph_at_all() -> None:
    reading = read(PREFIXES + ":x :p 1 . :x prov:generatedAtTime 1 .", "format=trig")
    assert reading.times == []
    assert "no named graph" in reading.reasons[0]


def test_metadata_is_ignored() -> None:
    _, events, reasons = trig(
        ":a :source :s ; prov:generatedAtTime 1 . :a { :x :p 1 } :doc prov:generatedAtTime 7 ."
    )
    assert (events, reasons) == ([("a", 1)], [])


def test_blank_nodes_are_scoped_to_their_event() -> None:
    reading, events, reasons = trig("""
        :a { _:x :p _:x, _:y }  :a prov:generatedAtTime 1 .
        :b { _:x :p 1 }  :b prov:generatedAtTime 2 .
        _:g { :x :p 1 }  _:g prov:generatedAtTime 3 .
    """)
    assert reasons == []
    assert len(events) == 3

    def labels(event: int) -> set[str]:
        return {t for line in reading.triples(event) for t in line.split() if t.startswith("_:")}

    assert len(labels(0)) == 2
    assert len(labels(1)) == 1
    assert not labels(0) & labels(1)


def test_repeated_triples_count_once() -> None:
    reading, _, _ = trig(":a { :x :p 1, 1 . :x :p 1 } :a prov:generatedAtTime 1 .")
    assert len(reading.triples()) == 1


def test_triple_terms_are_not_rdf_1_1() -> None:
    _, events, reasons = trig(
        ":a { :x :p <<( :x :p 1 )>> } :a prov:generatedAtTime 1 . :b { :x :p 1 } :b prov:generatedAtTime 1 ."
    )
    assert events == [("b", 1)]
    assert "triple term" in reasons[0]


def test_an_event_is_delivered_when_it_is_complete() -> None:
    stamp = b"<g:%d> <http://www.w3.org/ns/prov#generatedAtTime> %d .\n"
    body = b"<s:s> <p:p> <o:o> <g:%d> .\n"
    integer = b'"%d"^^<http://www.w3.org/2001/XMLSchema#integer>'
    parts = []
    for n in range(4):
        parts += [stamp.replace(b" %d .", b" " + integer + b" .") % (n, n), body % n]
    pipe = Trickle(parts)
    reading = Reading()
    seen = []
    options = parse_source("-?format=nq")[1]
    for batch in open_source(pipe, STREAM, Dictionary(), options, on_bad=reading.bad.append):
        seen.append((batch.time.tolist(), pipe.given))
    # Event n is complete with the first quad of graph n + 1, which is part 2n + 4; the last at the end.
    assert seen == [([0], 4), ([1], 6), ([2], 8), ([3], 8)]


def test_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_assemble, "HELD", 10)
    waiting = "".join(f":w{n} {{ :x :p {n} }}" for n in range(20))
    reading, events, reasons = trig(waiting + ":w0 prov:generatedAtTime 1 . :w19 prov:generatedAtTime 2 .")
    assert events == [("w19", 2)]
    assert any("no time within the 10 triples" in reason for reason in reasons)
    assert len(reading.bad) == 20, "19 events, and a time that came too late for one of them"

    large = ":a { " + "".join(f":x :p {n} . " for n in range(15)) + "} :a prov:generatedAtTime 1 ."
    reading, events, reasons = trig(large + ":b { :x :p 1 } :b prov:generatedAtTime 2 .")
    assert events == [("b", 2)]
    assert reasons == ["more than 10 triples in one event"]


def test_bounded_memory_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_assemble, "REMEMBERED", 3)
    monkeypatch.setattr(_delivered, "REMEMBERED", 3)
    text = "".join(f":g{n} prov:generatedAtTime {n} . :g{n} {{ :x :p 1 }}" for n in range(9))
    _, events, reasons = trig(text)
    assert (len(events), reasons) == (9, [])
