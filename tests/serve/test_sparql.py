"""``/sparql`` over the events in a query's window, and over the matches of registered queries."""

from __future__ import annotations

import io
import json
import random
import socket
from typing import Any

import pytest
import rdflib

import spaseq
import spaseq.rdf
from tests.serve.running import Running, limited, running
from tests.streams import NS

KB = "http://example.org/kb"
SECTORS = "<urn:a> <urn:sector> 'tools' . <urn:b> <urn:sector> 'food' ."
PROV = "PREFIX prov: <http://www.w3.org/ns/prov#>\nPREFIX s: <https://w3id.org/spaseq#>\n"

FALLS = f"""
    SELECT ?c ?p1 ?p2 WITHIN 5 SECONDS SLIDING FROM STREAM S <{NS}S>
    WHERE {{ SEQ(A ; B)
      DEFINE GPM A ON S {{ ?c <urn:price> ?p1 }}
      DEFINE GPM B ON S {{ ?c <urn:price> ?p2 . FILTER(?p2 < ?p1) }} }}"""


def trades(server: Running, *given: tuple[str, int, int]) -> None:
    """One event each: company, price, tick."""
    for company, price, tick in given:
        answer = server.post(f"<urn:{company}> <urn:price> {price} .", time=tick)
        assert answer.status_code == 200, answer.text


def rows(server: Running, query: str, **params: str) -> list[dict[str, str]]:
    """What an answer has, as values of variables."""
    answer = server.http.post("/sparql", data={"query": query, **params})
    assert answer.status_code == 200, answer.text
    found = answer.json()["results"]["bindings"]
    return [{name: term["value"] for name, term in row.items()} for row in found]


def refused(server: Running, query: str, **params: str) -> tuple[int, dict[str, Any]]:
    answer = server.http.post("/sparql", data={"query": query, **params})
    return answer.status_code, answer.json()["error"]


def test_matches_joined_with_a_background_graph() -> None:
    with running(kb={KB: SECTORS}) as server:
        server.register(FALLS, "falls")
        trades(server, ("a", 20, 0), ("b", 9, 1), ("a", 18, 2), ("b", 7, 3))
        told = rows(
            server,
            f"""SELECT ?p1 ?p2 ?sector {{ SERVICE <urn:x-spaseq:falls> {{ FILTER(?p1 > 15) }}
                GRAPH <{KB}> {{ ?c <urn:sector> ?sector }} }}""",
        )
        assert told == [{"p1": "20", "p2": "18", "sector": "tools"}]
        # By a prefix, by its id, by a SELECT in the block, and where it is one of several.
        for text in (
            "PREFIX q: <urn:x-spaseq:> SELECT * { SERVICE q:falls { } } ORDER BY ?p1",
            "SELECT * { SERVICE <urn:x-spaseq:q1> { } } ORDER BY ?p1",
            "SELECT * { SERVICE <urn:x-spaseq:falls> { SELECT * { } } } ORDER BY ?p1",
            "SELECT ?c ?p1 ?p2 { { SERVICE SILENT <urn:x-spaseq:falls> { } } UNION "
            "{ SERVICE <urn:x-spaseq:falls> { FILTER(false) } } } ORDER BY ?p1",
        ):
            assert [row["p1"] for row in rows(server, text)] == ["9", "20"], text
        more = rows(server, "SELECT (COUNT(*) AS ?n) { SERVICE <urn:x-spaseq:falls> { } }")
        trades(server, ("a", 17, 4))
        later = rows(server, "SELECT (COUNT(*) AS ?n) { SERVICE <urn:x-spaseq:falls> { } }")
        assert (more, later) == ([{"n": "2"}], [{"n": "3"}])


def test_matches_are_described_and_lead_to_their_events() -> None:
    with running() as server:
        server.register(FALLS, "falls")
        trades(server, ("a", 20, 0), ("a", 18, 2))
        text = f"""{PROV} SELECT ?match ?start ?price {{
            SERVICE <urn:x-spaseq:falls> {{ ?match s:matchedEvent ?event ; s:start ?start }}
            GRAPH ?event {{ ?x <urn:price> ?price }} }} ORDER BY ?price"""
        told = rows(server, text, window="falls")
        assert [row["price"] for row in told] == ["18", "20"]
        assert {row["match"] for row in told} == {"urn:x-spaseq:falls/matches/1"}
        assert rows(server, text) == []  # without the window there are no events


def test_a_window_as_named_graphs() -> None:
    with running(kb={KB: SECTORS}) as server:
        server.register(FALLS, "falls")
        trades(server, *(("a", 20 + tick, tick) for tick in range(12)))
        text = f"""{PROV} SELECT ?time ?price ?sector {{ ?e prov:generatedAtTime ?time .
            GRAPH ?e {{ ?c <urn:price> ?price }} ?c <urn:sector> ?sector }} ORDER BY ?time"""
        answer = server.http.get("/sparql", params={"query": text, "window": "falls"})
        assert answer.headers["spaseq-window"] == "events=6; whole=true"
        found = answer.json()["results"]["bindings"]
        assert [int(row["time"]["value"]) for row in found] == [6, 7, 8, 9, 10, 11]
        trades(server, ("a", 50, 13))
        assert [row["time"] for row in rows(server, text, window="falls")] == ["8", "9", "10", "11", "13"]
        # Without the window nothing of it is there, whoever asked before.
        assert rows(server, "SELECT * { GRAPH ?g { ?s <urn:price> ?o } }") == []
        assert rows(server, text) == []
        server.http.post(f"/streams/{NS.replace('/', '%2F')}S/watermark", params={"time": 17})
        assert [row["time"] for row in rows(server, text, window="falls")] == ["13"]


def test_an_event_with_the_name_of_a_background_graph() -> None:
    with running(kb={KB: SECTORS}) as server:
        server.register(FALLS, "falls")
        body = f"GRAPH <{KB}> {{ <urn:a> <urn:price> 1 ; <urn:sector> 'tools' }}"
        assert server.post(body, kind="application/trig", time=1).status_code == 200
        count = f"SELECT (COUNT(*) AS ?n) {{ GRAPH <{KB}> {{ ?s ?p ?o }} }}"
        price = "SELECT ?o { GRAPH ?g { ?s <urn:price> ?o } }"
        assert rows(server, count, window="falls") == [{"n": "2"}]
        assert rows(server, price, window="falls") == [{"o": "1"}]
        trades(server, ("b", 2, 20))
        assert rows(server, count, window="falls") == [{"n": "2"}]
        assert rows(server, price, window="falls") == [{"o": "2"}]


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        ("4 SECONDS TUMBLING", [7, 8]),  # windows of 4 from the first event at 3 on
        ("3 EVENTS TUMBLING", [6, 7, 8]),
        ("3 EVENTS SLIDING", [5, 6, 7, 8]),
        ("2 SECONDS SLIDING", [6, 7, 8]),
    ],
)
def test_windows_of_all_kinds(within: str, expected: list[int]) -> None:
    with running() as server:
        server.register(FALLS, "other")
        trades(server, ("a", 1, 1), ("a", 2, 2))  # before there is the query
        server.register(FALLS.replace("5 SECONDS SLIDING", within), "falls")
        trades(server, *(("a", 30, tick) for tick in range(3, 9)))
        text = f"{PROV} SELECT ?time {{ ?e prov:generatedAtTime ?time }} ORDER BY ?time"
        assert [int(row["time"]) for row in rows(server, text, window="falls")] == expected


def test_a_window_with_more_events_than_are_kept_says_so() -> None:
    with running(limited(window_events=50)) as server:
        server.register(FALLS.replace("5 SECONDS", "1 HOUR"), "falls")
        for tick in range(0, 300, 30):
            body = "\n".join(
                f"GRAPH <urn:e{at}> {{ <urn:a> <urn:price> {at} }} "
                f"<urn:e{at}> <http://www.w3.org/ns/prov#generatedAtTime> {at} ."
                for at in range(tick, tick + 30)
            )
            assert server.post(body, kind="application/trig").status_code == 200
        answer = server.http.get("/sparql", params={"query": "SELECT * { ?e ?p ?o }", "window": "falls"})
        events, whole = answer.headers["spaseq-window"].split("; ")
        assert 50 <= int(events.removeprefix("events=")) < 300
        assert whole == "whole=false"


def test_what_is_refused() -> None:
    with socket.socket() as listener, running(kb={KB: SECTORS}) as server:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        there = f"<http://127.0.0.1:{listener.getsockname()[1]}/sparql>"
        server.register(FALLS, "falls")
        for inside in (
            f"SERVICE {there} {{ }}",
            f"SERVICE <urn:x-spaseq:falls> {{ SERVICE {there} {{ }} }}",
            f"SERVICE <urn:x-spaseq:falls> {{ }} SERVICE SILENT {there} {{ }}",
            "SERVICE ?where { }",
            "SERVICE <urn:x-spaseq:falls>",
            f"SERVICE <urn:x-spaseq:falls> {{ }} \\u0053ERVICE {there} {{ }}",
        ):
            status, error = refused(server, f"SELECT * {{ {inside} }}")
            assert (status, error["kind"]) == (403, "auth"), inside
        with pytest.raises(TimeoutError):
            listener.accept()
        status, error = refused(server, "SELECT * { SERVICE <urn:x-spaseq:fall> { } }")
        assert (status, error["kind"]) == (400, "meaning")
        assert "fall>" in error["message"]
        assert error["hint"] == "did you mean <urn:x-spaseq:falls>?"
        assert rows(server, "SELECT * { SERVICE SILENT <urn:x-spaseq:fall> { ?x ?y ?z } }") == [{}]
        assert refused(server, "ASK {}", window="fall")[0] == 404
        status, error = refused(server, "SELECT *\n{ SERVICE SILENT <urn:x-spaseq:falls> { ?a } }")
        assert (status, error["kind"], error["line"], error["column"]) == (400, "syntax", 2, 47)
        many = " ".join(f"SERVICE <urn:x-spaseq:{name}> {{ }}" for name in _registered(server, 9))
        assert refused(server, f"SELECT * {{ {many} }}")[0] == 413


def test_very_many_blocks_are_refused_at_once() -> None:
    """Each was read to its end, while every other request waited: 4,500 in each other for 14 s."""
    with running() as server:
        server.register(FALLS, "f")
        text = "PREFIX q:<urn:x-spaseq:> ASK { " + "SERVICE q:f{" * 4_500 + "}" * 4_500 + "}"
        status, error = refused(server, text)
        assert (status, error["kind"]) == (413, "limit")
        nested = "PREFIX q:<urn:x-spaseq:> SELECT * { " + "SERVICE q:f{" * 30 + "}" * 30 + "}"
        assert rows(server, nested) == []


def _registered(server: Running, count: int) -> list[str]:
    return [server.register(FALLS, f"n{number}") for number in range(count)]


def test_from_names_graphs_and_hides_others() -> None:
    with running(kb={KB: SECTORS, "http://example.org/other": "<urn:x> <urn:y> <urn:z> ."}) as server:
        server.register(FALLS, "falls")
        trades(server, ("a", 20, 0), ("a", 18, 2))
        count = "SELECT (COUNT(*) AS ?n) {} {{ ?s ?p ?o }}"
        assert rows(server, count.format(f"FROM <{KB}>")) == [{"n": "2"}]
        assert rows(server, count.format("")) == [{"n": "3"}]
        text = (
            f"SELECT ?p1 ?sector FROM <{KB}> {{ SERVICE <urn:x-spaseq:falls> {{ }} ?c <urn:sector> ?sector }}"
        )
        assert rows(server, text) == [{"p1": "20", "sector": "tools"}]
        text = "PREFIX e: <http://example.org/> SELECT * FROM NAMED e:other { GRAPH ?g { ?s ?p ?o } }"
        assert [row["g"] for row in rows(server, text)] == ["http://example.org/other"]


def test_another_query_of_the_same_name() -> None:
    with running() as server:
        text = "SELECT ?p2 { SERVICE <urn:x-spaseq:falls> { } }"
        server.register(FALLS, "falls")
        trades(server, ("a", 20, 0), ("a", 18, 2))
        assert rows(server, text) == [{"p2": "18"}]
        server.http.delete("/queries/falls")
        assert refused(server, text)[0] == 400
        server.register(FALLS, "falls")
        assert rows(server, text) == []
        trades(server, ("a", 9, 3), ("a", 8, 4))
        assert rows(server, text) == [{"p2": "8"}]


def test_no_more_matches_than_are_kept() -> None:
    with running(limited(matches=3)) as server:
        server.register(FALLS.replace("SEQ(A ; B)", "SEQ(A , B)"), "falls")
        for price in range(9, 0, -1):
            trades(server, ("a", price, 10 - price))
            found = rows(server, "SELECT ?p2 { SERVICE <urn:x-spaseq:falls> { } } ORDER BY ?p2")
            assert [int(row["p2"]) for row in found] == list(range(price, min(9, price + 3)))


BLOCKS = [
    "",
    "FILTER(?p1 > 12)",
    "BIND(?p1 - ?p2 AS ?d)",
    "?match s:start ?start",
    "?match s:matchedEvent/prov:generatedAtTime ?t FILTER(?t > 3)",
    "OPTIONAL { ?match s:start ?start FILTER(?start > 4) }",
    "SELECT ?c (MAX(?p1) AS ?m) { } GROUP BY ?c",
    "?m a s:Match . FILTER NOT EXISTS { ?m s:start 1 }",
    "{ FILTER(true) } UNION { ?match a s:Match }",
    "VALUES ?c { <urn:a> }",
    "[] ?p 2",
    "?match ?p +1",
    "FILTER(?p1 - ?p2 > 1)",
]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.few(0, ci=1)
def test_a_service_means_what_it_means_inside_rdflib(seed: int) -> None:
    """The same events, queries and questions, answered here and by rdflib's evaluation of the plugin."""
    rng = random.Random(seed)
    given = [(rng.choice("abc"), rng.randint(8, 16), tick) for tick in range(12)]
    engine, graph = spaseq.Engine(), rdflib.Graph()
    with running() as server, spaseq.rdf.register(engine, FALLS, "falls"):
        server.register(FALLS, "falls")
        trades(server, *given)
        for company, price, tick in given:
            engine.push(NS + "S", f"<urn:{company}> <urn:price> {price} .", tick)
        for block in BLOCKS:
            for around in ("{} ", "{} SERVICE <urn:x-spaseq:falls> {{ FILTER(?p2 > 9) }}"):
                inside = f"SERVICE <urn:x-spaseq:falls> {{ {block} }}"
                text = f"{PROV} SELECT * {{ {around.format(inside)} }}"
                answer = server.http.post("/sparql", data={"query": text})
                assert answer.status_code == 200, answer.text
                here = rdflib.query.Result.parse(io.BytesIO(answer.content), format="json")
                # rdflib's own evaluation: its store in memory has no SPARQL.
                assert _counted(here) == _counted(graph.query(text)), (block, around)


def _counted(result: rdflib.query.Result) -> list[str]:
    """Rows without the names of matches, which are blank nodes there."""
    return sorted(
        json.dumps({str(v): str(t) for v, t in row.items() if str(v) not in ("match", "m")}, sort_keys=True)
        for row in result.bindings
    )
