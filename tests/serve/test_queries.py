"""``/queries``: registered, listed, explained and ended over HTTP."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.matching import planner
from spaseq.serve.routes import queries
from tests.serve.running import PATIENCE, limited, running, until
from tests.streams import NS, query


def test_a_query_from_registration_to_its_end() -> None:
    with running() as server:
        answer = server.http.post("/queries", content=query("A ; B"), params={"name": "ab"})
        assert answer.status_code == 201
        told = answer.json()
        assert told["id"] == "q1"
        assert told["name"] == "ab"
        assert told["text"] == query("A ; B")
        assert (told["streams"], told["form"]) == ([NS + "S"], "SELECT")
        assert told["variables"] == ["a", "av", "b", "bv"]
        assert server.http.get(answer.headers["Location"]).json()["id"] == "q1"
        server.send("a1 b2 a3 b4")
        (listed,) = server.http.get("/queries").json()["queries"]
        assert (listed["matches"], listed["done"], listed["error"]) == (2, False, None)
        assert server.http.get("/queries/ab").json()["matches"] == 2
        assert server.http.delete("/queries/q1").status_code == 204
        assert server.http.get("/queries/q1").status_code == 404
        assert server.http.get("/queries").json()["queries"] == []


def test_a_query_that_ends_by_itself_is_done() -> None:
    with running() as server:
        key = server.register(query("A", tail="LIMIT 1"))
        server.send("a1 a2")
        told = server.http.get(f"/queries/{key}").json()
        assert (told["matches"], told["done"], told["error"]) == (1, True, None)


def test_a_wrong_query_is_told_with_its_place() -> None:
    with running() as server:
        answer = server.http.post("/queries", content="SELECT ?x WITHIN 3 SECNDS")
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (error["kind"], error["line"], error["column"]) == ("syntax", 1, 20)
        assert error["caret"].splitlines() == ["SELECT ?x WITHIN 3 SECNDS", " " * 19 + "^"]
        answer = server.http.post("/queries", content=query("A ; B", gpms={"B": "FILTER(?bv > ?aw)"}))
        error = answer.json()["error"]
        assert (answer.status_code, error["kind"]) == (400, "meaning")
        assert "?aw" in error["message"]
        assert "did you mean ?a" in error["hint"]
        assert server.http.get("/queries").json()["queries"] == []


def test_a_dry_run_only_checks() -> None:
    with running() as server:
        answer = server.http.post("/queries", content=query("A"), params={"dry": 1})
        assert answer.status_code == 200
        assert answer.json()["id"] is None
        assert answer.json()["variables"] == ["a", "av"]
        assert server.http.get("/queries").json()["queries"] == []


@pytest.mark.parametrize("dry", [0, 1])
def test_a_graph_that_is_not_there_is_no_file_to_be_read(dry: int) -> None:
    text = query("A", gpms={"A": "GRAPH <file:///etc/passwd> { ?a ?p ?o }"})
    with running() as server:
        answer = server.http.post("/queries", content=text, params={"dry": dry})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "meaning")
        assert "not supplied" in answer.json()["error"]["message"]


def test_names_are_used_once() -> None:
    with running() as server:
        server.register(query("A"), "same")
        answer = server.http.post("/queries", content=query("B"), params={"name": "same"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (409, "conflict")


@pytest.mark.parametrize("dry", [0, 1])
def test_a_name_that_looks_like_an_id_is_refused(dry: int) -> None:
    """`DELETE /queries/q4` ended the fourth query, not the one of this name."""
    with running() as server:
        for name, status in (("q4", 400), ("q1", 400), ("q", 201), ("q4a", 201), ("Q4", 201)):
            answer = server.http.post("/queries", content=query("A"), params={"name": name, "dry": dry})
            assert answer.status_code == (200 if dry and status == 201 else status), name
            if status == 400:
                error = answer.json()["error"]
                assert error["kind"] == "name"
                assert f"'{name}' looks like an id" in error["message"]


def test_ids_are_no_names_of_queries_in_a_state(tmp_path: Path) -> None:
    """An engine takes any name, and a server may have its state."""
    state = tmp_path / "s.state"
    with spaseq.Engine(state=state) as engine:
        engine.register(query("A"), name="q2")
        engine.register(query("B"), name="other")
    with running(state=state) as server:
        known = {one["id"]: one["name"] for one in server.http.get("/queries").json()["queries"]}
        assert set(known) == {"q1", "q3"}
        assert server.http.get("/queries/q2").json()["name"] == "q2"


def test_a_parameter_that_is_none_is_told() -> None:
    with running() as server:
        key = server.register(query("A"))
        for path, name, hint in (
            (f"/queries/{key}/matches?folow=0", "folow", "did you mean follow=?"),
            ("/letters?limits=3", "limits", "did you mean limit=?"),
            ("/streams?since=3", "since", None),
        ):
            answer = server.http.get(path)
            assert answer.status_code == 400
            error = answer.json()["error"]
            assert (error["kind"], error["message"]) == (
                "parameter",
                f"{name}: there is no such parameter here",
            )
            assert error.get("hint") == hint
        assert server.http.get("/sparql", params={"query": "ASK {}", "timeout": 3}).status_code == 200


def test_limits_on_queries() -> None:
    with running(limited(queries=1, text_bytes=500)) as server:
        answer = server.http.post("/queries", content=query("A") + " " * 500)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "limit")
        assert "text_bytes" in answer.json()["error"]["message"]
        server.register(query("A"))
        answer = server.http.post("/queries", content=query("A"))
        assert (answer.status_code, answer.json()["error"]["kind"]) == (429, "limit")
        answer = server.http.post("/queries", content=b"\xff")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "syntax")


def test_what_is_not_there_is_told_alike() -> None:
    with running() as server:
        for method, path in [("GET", "/queries/q9"), ("DELETE", "/queries/q9"), ("GET", "/nothing")]:
            answer = server.http.request(method, path)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "not-found")
        answer = server.http.put("/queries")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (405, "method")
        answer = server.http.get("/queries/q9/matches", params={"since": "x"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "parameter")


def test_explain_has_the_automaton_with_its_counts() -> None:
    with running() as server:
        key = server.register(query("A ; B"))
        server.send("a1 a2 b3")
        text = server.http.get(f"/queries/{key}/explain")
        assert text.headers["Content-Type"].startswith("text/plain")
        assert "SEQ" in text.text or "sequence" in text.text
        drawn = server.http.get(f"/queries/{key}/explain", params={"format": "svg"})
        assert drawn.headers["Content-Type"] == "image/svg+xml"
        assert re.search(r"<svg", drawn.text)
        told = server.http.get(f"/queries/{key}/explain", params={"format": "json"}).json()
        assert [state["id"] for state in told["states"]] == [0, 1, 2]
        assert told["states"][1]["partial_matches"] == 2
        first, second = told["edges"]
        assert (first["from"], first["to"], first["gpm"], first["count"]) == (0, 1, "A", 2)
        assert (second["from"], second["to"], second["gpm"], second["matched"]) == (1, 2, "B", 1)
        assert told["counted"]["events"] == 3


def test_why_is_found_out_beside_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are taken, and their matches found, while somebody is told why there were none."""
    begun, may_end = threading.Event(), threading.Event()
    diagnose = queries.diagnose

    def slowly(*given: Any) -> Any:
        begun.set()
        assert may_end.wait(60)
        return diagnose(*given)

    monkeypatch.setattr(queries, "diagnose", slowly)
    with running() as server, ThreadPoolExecutor() as pool:
        key = server.register(query("A ; B"))
        server.send("a1 c2")
        asked = pool.submit(server.http.get, f"/queries/{key}/why")
        assert begun.wait(60)
        try:
            server.send("b3")
            assert len(server.matches(key)) == 1
        finally:
            may_end.set()
        assert "GPM B matched none" in asked.result().json()["cause"]


def test_stats_and_why() -> None:
    with running() as server:
        key = server.register(query("A , B"))
        server.send("a1 x2 b3")
        assert server.http.get(f"/queries/{key}/stats").json()["gpms"]["A"]["matched"] == 1
        told = server.http.get(f"/queries/{key}/why").json()
        assert "SEQ(A ; B)" in told["cause"]
        assert told["text"].startswith(told["cause"])


def test_a_stream_that_feeds_itself_is_refused() -> None:
    text = query("A", head=f"REGISTER STREAM <{NS}S> AS CONSTRUCT {{ ?a :v ?av }}")
    with running() as server:
        answer = server.http.post("/queries", content=text)
        assert answer.status_code in (400, 409)
        assert "feed itself" in answer.json()["error"]["message"]


def test_the_server_answers_while_a_large_query_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    began, gate = threading.Event(), threading.Event()
    choose = planner.choose

    def slow(pattern: Any) -> planner.MatcherChoice:
        """As for a query whose automaton takes long."""
        began.set()
        gate.wait(PATIENCE)
        return choose(pattern)

    with running() as server, ThreadPoolExecutor(1) as beside:
        key = server.register(query("A"))
        monkeypatch.setattr(planner, "choose", slow)
        # A sequence that no other query has: what was chosen is kept by its shape.
        registering = beside.submit(server.register, query("A ; B , C : A ; B : C ; A"))
        try:
            until(lambda: began.is_set() or registering.done())
            assert server.http.get("/healthz").status_code == 200
            server.send("a1")
            assert len(server.matches(key)) == 1
        finally:
            gate.set()
        assert registering.result(PATIENCE) != key
