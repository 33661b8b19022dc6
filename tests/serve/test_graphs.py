"""Background graphs over HTTP: read, changed between events, asked by SPARQL and by paths."""

from __future__ import annotations

import socket

import pytest

from spaseq.serve import Settings
from tests.serve.running import TURTLE, limited, running, until
from tests.streams import query

KB = "http://example.org/kb"
TRIPLES = "<urn:a> <urn:knows> <urn:b> . <urn:b> <urn:knows> <urn:c> ."
WRITING = Settings(port=0, allow_write=True)


def test_reading_a_graph() -> None:
    with running(kb={KB: TRIPLES}) as server:
        assert server.http.get("/graphs").json() == {"graphs": [{"iri": KB, "triples": 2}]}
        for accept in ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json"):
            answer = server.http.get("/graphs", params={"graph": KB}, headers={"Accept": accept})
            assert answer.headers["Content-Type"].startswith(accept)
            assert "urn:knows" in answer.text or "knows" in answer.text
        assert server.http.head("/graphs", params={"graph": KB}).status_code == 200
        for params in ({"graph": "urn:none"}, {"default": ""}):
            answer = server.http.get("/graphs", params=params)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "not-found")


def test_writing_needs_permission() -> None:
    with running(kb={KB: TRIPLES}) as server:
        for method in ("PUT", "POST", "DELETE"):
            answer = server.http.request(
                method, "/graphs", params={"graph": KB}, content="", headers={"Content-Type": TURTLE}
            )
            assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "auth")
        assert server.http.get("/graphs").json()["graphs"][0]["triples"] == 2


@pytest.mark.parametrize(
    "gpm", ["GRAPH <{kb}> {{ ?a :ok true }}", "FILTER EXISTS {{ GRAPH <{kb}> {{ ?a :ok true }} }}"]
)
def test_events_after_a_change_see_it(gpm: str) -> None:
    """By the row-wise route, which single events take, and by columns."""
    ok = "<http://example.org/e/{0}> <http://example.org/ok> true ."
    text = query("A", gpms={"A": gpm.format(kb=KB)})
    with running(WRITING, kb={KB: ok.format("a1")}) as server:
        key = server.register(text)
        at = {"params": {"graph": KB}, "headers": {"Content-Type": TURTLE}}
        server.send("a1 a2")
        assert server.http.put("/graphs", content=ok.format("a3"), **at).status_code == 204  # type: ignore[arg-type]
        server.send("a3 a4")
        assert server.http.post("/graphs", content=ok.format("a6"), **at).status_code == 204  # type: ignore[arg-type]
        server.send("a5 a6")
        assert server.http.delete("/graphs", params={"graph": KB}).status_code == 204
        server.send("a7")
        answer = server.http.put("/graphs", content=ok.format("a8"), **at)  # type: ignore[arg-type]
        assert answer.status_code == 201
        server.send("a8")
        assert [match["start"] for match in server.matches(key)] == [1, 3, 6, 8]


def test_a_graph_that_cannot_be_read_changes_nothing() -> None:
    with running(WRITING, kb={KB: TRIPLES}) as server:
        for body, kind in [
            ("<urn:a> <urn:b ", TURTLE),
            ("/etc/passwd", TURTLE),
            ("<urn:a> <urn:b> <urn:c> {| <urn:source> <urn:d> |} .", TURTLE),
            ("<urn:a> <urn:b> <urn:c> .", "text/plain"),
            ('{"@context": "http://127.0.0.1:9/c", "@id": "urn:a", "x": 1}', "application/ld+json"),
        ]:
            answer = server.http.put(
                "/graphs", params={"graph": KB}, content=body, headers={"Content-Type": kind}
            )
            assert answer.status_code == 400, body
        assert server.http.get("/graphs").json()["graphs"][0]["triples"] == 2


def test_sparql() -> None:
    ask = "SELECT ?o { <urn:a> <urn:knows>+ ?o } ORDER BY ?o"
    with running(WRITING, kb={KB: TRIPLES}) as server:
        answer = server.http.get("/sparql", params={"query": ask})
        rows = answer.json()["results"]["bindings"]
        assert [row["o"]["value"] for row in rows] == ["urn:b", "urn:c"]
        form = server.http.post("/sparql", data={"query": ask}, headers={"Accept": "text/csv"})
        assert form.text.split() == ["o", "urn:b", "urn:c"]
        body = {"Content-Type": "application/sparql-query"}
        assert server.http.post("/sparql", content="ASK { <urn:a> ?p ?o }", headers=body).json()["boolean"]
        made = server.http.post(
            "/sparql",
            content="CONSTRUCT WHERE { ?s ?p ?o }",
            headers={**body, "Accept": "application/n-triples"},
        )
        assert len(made.text.splitlines()) == 2
        server.http.put("/graphs", params={"graph": KB}, content="", headers={"Content-Type": TURTLE})
        assert server.http.get("/sparql", params={"query": ask}).json()["results"]["bindings"] == []
        wrong = server.http.get("/sparql", params={"query": "SELECT * { ?s "})
        assert (wrong.status_code, wrong.json()["error"]["kind"]) == (400, "syntax")
        for params in (
            {"query": "ASK FROM <http://example.org/other> {}"},
            {"query": "ASK {}", "default-graph-uri": "urn:x"},
        ):
            answer = server.http.get("/sparql", params=params)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "meaning")


def test_no_question_reaches_the_network() -> None:
    with socket.socket() as listener, running(kb={KB: TRIPLES}) as server:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        there = f"<http://127.0.0.1:{listener.getsockname()[1]}/sparql>"
        tricks = [
            f"SELECT * {{ SERVICE {there} {{ ?s ?p ?o }} }}",
            f"SELECT * {{ service SILENT {there} {{ ?s ?p ?o }} }}",
            f"SELECT * {{ \\u0053ERVICE {there} {{ ?s ?p ?o }} }}",
            f"SELECT * {{ ?s ?p 1SERVICE{there} {{ ?s ?p ?o }} }}",
            f"SELECT * {{ ?s ?p <http://x\\u0041#y>SERVICE {there} {{ ?s ?p ?o }} }}",
            f"SELECT * {{ ?s ?p '#' SERVICE {there} {{ ?s ?p ?o }} }}",
            f"PREFIX : {there} SELECT * {{ SERVICE: {{ ?s ?p ?o }} }}",
            f"SELECT * {{ ?s ?p ?o FILTER EXISTS {{ SERVICE {there} {{ ?s ?p ?o }} }} }}",
        ]
        for text in tricks:
            answer = server.http.get("/sparql", params={"query": text})
            assert answer.status_code in (400, 403), text
        with pytest.raises(TimeoutError):
            listener.accept()
        fine = "SELECT ?service { ?service ?p 'a SERVICE' } # SERVICE <urn:x> {}"
        assert server.http.get("/sparql", params={"query": fine}).status_code == 200


def test_long_answers_are_refused() -> None:
    triples = " ".join(f"<urn:{n}> <urn:p> {n} ." for n in range(200))
    with running(limited(rows=100, body_bytes=5_000), kb={KB: triples}) as server:
        answer = server.http.get("/sparql", params={"query": "SELECT * { ?s ?p ?o }"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "limit")
        answer = server.http.get("/sparql", params={"query": "CONSTRUCT WHERE { ?s ?p ?o }"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "limit")
        told = server.http.post("/paths", json={"path": "<urn:p>", "limit": 1000}).json()
        assert (len(told["pairs"]), told["truncated"]) == (100, True)


def test_paths() -> None:
    with running(kb={KB: TRIPLES}) as server:
        told = server.http.post("/paths", json={"path": "<urn:knows>+", "sources": ["urn:a"]}).json()
        assert told["pairs"] == [["<urn:a>", "<urn:b>"], ["<urn:a>", "<urn:c>"]]
        told = server.http.post("/paths", json={"path": "<urn:knows>+", "graph": KB, "mode": "TRAIL"}).json()
        assert sorted(path["length"] for path in told["paths"]) == [1, 1, 2]
        for wrong, status in [
            ({"path": "<urn:knows"}, 400),
            ({}, 400),
            ({"path": "<urn:p>", "graph": "urn:x"}, 404),
        ]:
            answer = server.http.post("/paths", json=wrong)
            assert answer.status_code == status, answer.text
            assert answer.json()["error"]["message"]


@pytest.mark.slow
def test_a_search_for_paths_ends_with_its_request() -> None:
    """``p{3,}/q`` from a to t is on no simple path, of which there are very many."""
    clique = [f"<urn:c{i}>" for i in range(40)]
    inside = [f"{one} <urn:p> {other} ." for one in clique for other in [*clique, "<urn:g>"] if one != other]
    ways = "<urn:a> <urn:p> <urn:g> . <urn:g> <urn:p> <urn:c0> . <urn:g> <urn:q> <urn:t> ."
    hard = {
        "path": "<urn:p>{3,}/<urn:q>",
        "sources": ["<urn:a>"],
        "targets": ["<urn:t>"],
        "mode": "SIMPLE",
    }
    with running(limited(seconds=1), kb={KB: ways + "\n".join(inside)}) as server:
        told = server.http.post("/paths", json={"path": "<urn:q>"}).json()
        assert told["pairs"] == [["<urn:g>", "<urn:t>"]]
        for _ in range(2):
            answer = server.http.post("/paths", json=hard)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "limit"), answer.text
            assert "limit seconds is 1" in answer.json()["error"]["message"]
        until(lambda: server.app.service.asking == 0)


def test_a_deep_query_does_not_end_the_server() -> None:
    """Oxigraph parses by recursion: 2,200 groups overflowed the stack, and the process was gone."""
    with running() as server:
        for opens, inner, closes in (
            ("{", "?s ?p ?o", "}"),
            ("{ FILTER(" + "(" * 20_000, "1", ")" * 20_000 + ") }"),
        ):
            many = 20_000 if opens == "{" else 1
            text = "SELECT * " + opens * many + inner + closes * many
            answer = server.http.post(
                "/sparql", content=text, headers={"Content-Type": "application/sparql-query"}
            )
            assert answer.status_code == 200, answer.text[:300]
        long = server.http.post(
            "/sparql",
            content="ASK {" + " " * 70_000 + "}",
            headers={"Content-Type": "application/sparql-query"},
        )
        assert long.status_code == 413
        assert "sparql_characters" in long.json()["error"]["message"]
        assert server.http.get("/healthz").status_code == 200
