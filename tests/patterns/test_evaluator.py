"""The door of the room: streams, AT and AS, background graphs, EXISTS of correlated filters."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from spaseq.errors import KnowledgeError
from spaseq.events import BatchBuilder, Clock, EventBatch, concatenate
from spaseq.language.reading.parser import parse as parse_query
from spaseq.language.scope import split
from spaseq.language.syntax import Gpm
from spaseq.patterns.evaluator import GpmEvaluator, time_literal
from spaseq.patterns.expressions.compiled import compile_filter
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.oxigraph import General
from spaseq.terms.dictionary import Dictionary

PREFIX = "PREFIX e: <http://e.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def gpm(text: str) -> Gpm:
    head = f"{PREFIX} ASK WITHIN 9 SECONDS FROM STREAM S <http://e.org/s>"
    return parse_query(f"{head} WHERE {{ SEQ(A) DEFINE GPM A ON S {text} }}").gpm("A")


def events(
    dictionary: Dictionary, stream: str, graphs: list[str], clock: Clock = Clock.TICKS, step: int = 1
) -> EventBatch:
    builder = BatchBuilder(dictionary, NamedNode(f"http://e.org/{stream}"), clock)
    for n, text in enumerate(graphs):
        text = f"@prefix e: <http://e.org/> . {text + ' .' if text else ''}"
        triples = [quad.triple for quad in parse(text, RdfFormat.TURTLE)]
        builder.add(n * step, n, triples, NamedNode(f"http://e.org/{stream}/{n}"))
    return builder.build()


def answers(
    evaluator: GpmEvaluator, batch: EventBatch, dictionary: Dictionary
) -> dict[int, list[dict[str, str]]]:
    found: dict[int, list[dict[str, str]]] = {}
    for event, rows in evaluator.evaluate(batch).by_event().items():
        shown = [{name: dictionary.term(i).value for name, i in row.items()} for row in rows]
        found[event] = sorted(shown, key=lambda row: (row.get("x"), row.get("v")))
    return found


ROUTES = {"spectra": "?x e:p ?v", "general": "?x e:p+ ?v"}


@pytest.mark.parametrize("route", ROUTES)
def test_only_the_streams_of_the_gpm(route: str) -> None:
    dictionary = Dictionary()
    batch = concatenate(
        [
            events(dictionary, "s", ["e:a e:p 1", "e:a e:q 1"]),
            events(dictionary, "t", ["e:b e:p 2", "e:c e:p 3"]),
        ]
    ).take(__import__("numpy").array([0, 2, 1, 3]))
    of = gpm(f"{{ {ROUTES[route]} }}")
    streams = frozenset([dictionary.intern(NamedNode("http://e.org/t"))])
    evaluator = GpmEvaluator(of, of.pattern, dictionary, None, streams)
    assert evaluator.route == route
    assert answers(evaluator, batch, dictionary) == {
        1: [{"x": "http://e.org/b", "v": "2"}],
        3: [{"x": "http://e.org/c", "v": "3"}],
    }
    everything = GpmEvaluator(of, of.pattern, dictionary, None, None)
    assert sorted(answers(everything, batch, dictionary)) == [0, 1, 3]


@pytest.mark.parametrize("route", ROUTES)
def test_time_and_graph_are_seen_in_the_pattern(route: str) -> None:
    dictionary = Dictionary()
    batch = events(dictionary, "s", ["e:a e:p 1", "e:a e:p 2", "e:a e:p 3"])
    of = gpm(f"AT ?t AS ?g {{ {ROUTES[route]} OPTIONAL {{ ?x e:p ?w FILTER(?t > 1) }} FILTER(?t >= 1) }}")
    evaluator = GpmEvaluator(of, of.pattern, dictionary)
    assert evaluator.route == route
    common = {"x": "http://e.org/a"}
    assert answers(evaluator, batch, dictionary) == {
        1: [{**common, "v": "2", "t": "1", "g": "http://e.org/s/1"}],
        2: [{**common, "v": "3", "w": "3", "t": "2", "g": "http://e.org/s/2"}],
    }


def test_time_of_instants() -> None:
    dictionary = Dictionary()
    batch = events(dictionary, "s", ["e:a e:p 1"] * 2, Clock.INSTANTS, 1_500_000)
    of = gpm('AT ?t { ?x e:p ?v FILTER(?t > "1970-01-01T00:00:01Z"^^xsd:dateTime) }')
    found = answers(GpmEvaluator(of, of.pattern, dictionary), batch, dictionary)
    assert found == {1: [{"x": "http://e.org/a", "v": "1", "t": "1970-01-01T00:00:01.5Z"}]}
    assert time_literal(-1, Clock.INSTANTS).value == "1969-12-31T23:59:59.999999Z"
    assert time_literal(-1, Clock.TICKS) == Literal(-1)


def test_background_graph() -> None:
    dictionary = Dictionary()
    kb = KnowledgeBase({"http://e.org/kb": "@prefix e: <http://e.org/> . e:a e:max 1 . e:b e:max 5 ."})
    batch = events(dictionary, "s", ["e:a e:p 2", "e:b e:p 2", "e:c e:p 2"])
    of = gpm("{ ?x e:p ?v GRAPH e:kb { ?x e:max ?m } FILTER(?v > ?m) }")
    evaluator = GpmEvaluator(of, of.pattern, dictionary, kb)
    assert evaluator.route == "spectra"
    assert list(answers(evaluator, batch, dictionary)) == [0]
    with pytest.raises(KnowledgeError, match="GPM A asks a background graph"):
        GpmEvaluator(of, of.pattern, dictionary, None)


def test_background_graph_that_depends_on_the_event() -> None:
    dictionary = Dictionary()
    kb = KnowledgeBase({"http://e.org/kb": "@prefix e: <http://e.org/> . e:a e:since 1 ."})
    batch = events(dictionary, "s", ["e:a e:p 2"] * 3)
    of = gpm("AT ?t { ?x e:p ?v GRAPH e:kb { ?x e:since ?m FILTER(?t > ?m) } }")
    evaluator = GpmEvaluator(of, of.pattern, dictionary, kb)
    assert (evaluator.route, evaluator.reason) == ("general", "the event's time or graph in a GRAPH pattern")
    assert list(answers(evaluator, batch, dictionary)) == [2]


@pytest.mark.parametrize("route", ROUTES)
def test_exists_of_a_correlated_filter(route: str) -> None:
    dictionary = Dictionary()
    batch = events(dictionary, "s", ["e:a e:p 1", "e:b e:p 2 . e:c e:q 2"])
    of = gpm(f"{{ ?x e:p ?v FILTER EXISTS {{ ?before e:q ?v . {ROUTES[route]} FILTER(?before != ?x) }} }}")
    stateless, (correlated,) = split(of, frozenset(["before"]))
    evaluator = GpmEvaluator(of, stateless, dictionary)
    (row,) = evaluator.evaluate(batch).rows(1)
    keep = compile_filter(correlated.condition, dictionary, evaluator.exists(batch, 1))
    for name, expected in (("c", True), ("b", False)):
        assert keep({**row, "before": dictionary.intern(NamedNode(f"http://e.org/{name}"))}) is expected
    assert keep(row)  # ?before is free


def test_nothing_to_evaluate() -> None:
    dictionary = Dictionary()
    batch = events(dictionary, "s", [])
    for text in ROUTES.values():
        of = gpm(f"AT ?t {{ {text} }}")
        found = GpmEvaluator(of, of.pattern, dictionary).evaluate(batch)
        assert (len(found), set(found.columns)) == (0, {"x", "v", "t"})


def test_a_pattern_without_triples_holds_in_every_event() -> None:
    dictionary = Dictionary()
    batch = events(dictionary, "s", ["e:a e:p 1", ""])
    of = gpm("{ VALUES ?v { 1 2 } }")
    found = GpmEvaluator(of, of.pattern, dictionary).evaluate(batch)
    assert {event: len(rows) for event, rows in found.by_event().items()} == {0: 2, 1: 2}


@pytest.mark.parametrize("route", ROUTES)
def test_literals_keep_their_form(route: str) -> None:
    dictionary = Dictionary()
    batch = events(dictionary, "s", ["e:a e:p 01 , 1.50 . e:b e:p 1"])
    of = gpm(f"{{ ?x {ROUTES[route].split()[1]} ?v . ?y e:p ?v FILTER(?v = 1 || ?v > 1.4) }}")
    found = answers(GpmEvaluator(of, of.pattern, dictionary), batch, dictionary)
    a, b = "http://e.org/a", "http://e.org/b"
    assert found[0] == [
        {"x": a, "y": a, "v": "01"},
        {"x": a, "y": a, "v": "1.50"},
        {"x": b, "y": b, "v": "1"},
    ]


@pytest.mark.parametrize("triples", [3, 400])
@pytest.mark.parametrize("path", ["e:p+", "e:p*", "e:q?/e:p", "!e:q", "e:p/e:p*"])
def test_paths_of_many_events_are_those_of_the_general_route(path: str, triples: int) -> None:
    """Events of few triples are walked one by one, those of many are left to Oxigraph."""
    dictionary = Dictionary()
    graphs = [" . ".join(f"e:{n % 7} e:p e:{(n + i) % 5}, {i}" for i in range(3)) for n in range(20)]
    graphs[11] += " . " + " . ".join(f"e:{i} e:q {i}" for i in range(triples))
    batch = events(dictionary, "s", ["", *graphs])
    of = gpm(f"{{ ?x {path} ?v }}")
    found = GpmEvaluator(of, of.pattern, dictionary).evaluate(batch)
    expected = General(of.pattern, dictionary, None).evaluate(batch)
    assert found.by_event() == expected.by_event()
    assert len(found) > 20
