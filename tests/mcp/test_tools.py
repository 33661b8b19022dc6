"""The tools over a graph and over an engine, asked by the official client in this process."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from spaseq import Engine
from spaseq.errors import LimitError
from spaseq.mcp import Bounds
from spaseq.paths import load

pytest.importorskip("mcp", reason="the package mcp is not installed: spaseq[mcp]")

from mcp import Client

from spaseq.mcp import server
from spaseq.mcp.bounds import Workers

GRAPH = load(
    [
        ("urn:film:Kismet", "urn:starred", "urn:person:Edward_Arnold"),
        ("urn:film:Kismet", "urn:directed_by", "urn:person:William_Dieterle"),
        ("urn:film:Kismet", "urn:release_year", "1944"),
        ("urn:film:Meet_Nero_Wolfe", "urn:starred", "urn:person:Edward_Arnold"),
        ("urn:film:Meet_Nero_Wolfe", "urn:directed_by", "urn:person:Herbert_Biberman"),
    ]
)
FALLS = """PREFIX : <http://example.org/>
SELECT ?who ?p ?q WITHIN 10 SECONDS FROM STREAM S <http://example.org/s>
WHERE { SEQ(A ; B) DEFINE GPM A ON S { ?who :price ?p }
                   DEFINE GPM B ON S { ?who :price ?q . FILTER(?q < ?p) } }"""
STREAM = "http://example.org/s"

Call = tuple[str, dict[str, Any]]


def price(value: int, time: int | str) -> dict[str, Any]:
    return {"graph": f"<urn:acme> <http://example.org/price> {value} .", "time": time}


def asked(*calls: Call, bounds: Bounds | None = None) -> list[Any]:
    """What each call gives: its value, or the text of its error."""

    async def ask() -> list[Any]:
        async with Client(server(GRAPH, Engine(), bounds), read_timeout_seconds=500) as client:
            answers = [await client.call_tool(tool, arguments) for tool, arguments in calls]
        return [
            answer.content[0].text if answer.is_error else answer.structured_content for answer in answers
        ]

    return asyncio.run(ask())


def names(made: Any) -> set[str]:
    async def ask() -> set[str]:
        async with Client(made, read_timeout_seconds=500) as client:
            tools = (await client.list_tools()).tools
        assert all(tool.description for tool in tools)
        return {tool.name for tool in tools}

    return asyncio.run(ask())


def test_tools_are_those_of_what_is_served() -> None:
    graph, events = (
        {"relations", "paths", "retrieve", "explain"},
        {"check", "register", "push", "matches", "cancel"},
    )
    assert names(server(GRAPH)) == graph
    assert names(server(engine=Engine())) == events
    assert names(server(GRAPH, Engine())) == graph | events
    with pytest.raises(ValueError, match="a graph, an engine or both"):
        server()


def test_relations_then_retrieve() -> None:
    relations, retrieved = asked(
        ("relations", {"topic": "Edward Arnold"}),
        ("retrieve", {"topic": "Edward Arnold", "relations": [["^starred", "directed_by"]]}),
    )
    assert relations["topics"] == ["Edward Arnold"]
    assert ["^starred", "directed_by"] in [one["path"] for one in relations["relations"]]
    assert len(retrieved["paths"]) == 2
    assert "(Kismet, directed by, William Dieterle)" in retrieved["text"].splitlines()


def test_what_models_write_is_read() -> None:
    """A name that is misspelled, one path instead of a list, an object round it, text with JSON in it."""
    wanted, *found = asked(
        *(
            ("retrieve", {"topic": topic, "relations": relations})
            for topic, relations in (
                ("Edward Arnold", [["^starred", "directed_by"]]),
                (["Edwrd Arnold"], ["^starred", "directed_by"]),
                ({"topics": ["Edward Arnold"]}, {"paths": [["^starred", "directed_by"]]}),
                ('["Edward Arnold"]', '<think>…</think>```json\n[["^starred", "directed_by"]]\n```'),
            )
        )
    )
    assert len(wanted["paths"]) == 2
    assert [one["paths"] for one in found] == [wanted["paths"]] * 3
    assert found[0]["warnings"] == ["no node is called Edwrd Arnold: Edward Arnold is taken"]
    (relations,) = asked(("relations", {"topic": "Edwrd Arnold"}))
    assert relations["topics"] == ["Edward Arnold"]
    assert relations["warnings"] == ["no node is called Edwrd Arnold: Edward Arnold is taken"]


def test_modes_of_a_retrieval() -> None:
    given = {"topic": "Kismet", "relations": [["starred", "^starred", "starred"]]}
    walked, trails = asked(("retrieve", {**given, "mode": "WALK"}), ("retrieve", given))
    assert (len(walked["paths"]), len(trails["paths"])) == (2, 0)


@pytest.mark.slow
def test_paths_and_pairs() -> None:
    expression = "^<urn:starred>/<urn:directed_by>"
    pairs, paths, explained = asked(
        ("paths", {"expression": expression, "sources": "Edward Arnold", "targets": "William Dieterle"}),
        ("paths", {"expression": expression, "sources": ["Edward Arnold"], "mode": "TRAIL"}),
        ("explain", {"expression": expression}),
    )
    assert pairs["pairs"] == [
        {"source": "<urn:person:Edward_Arnold>", "target": "<urn:person:William_Dieterle>"}
    ]
    assert {path["text"].rpartition(" → ")[2] for path in paths["paths"]} == {
        "William Dieterle",
        "Herbert Biberman",
    }
    assert "automaton" in explained["text"]


def test_rows_are_bounded_and_that_is_told() -> None:
    calls = [
        ("paths", {"expression": ".", "rows": 1}),
        ("paths", {"expression": ".", "mode": "TRAIL", "rows": 1000}),
        ("relations", {"topic": "Edward Arnold", "rows": 1000}),
        ("retrieve", {"topic": "Edward Arnold", "relations": ["^<urn:starred>"], "rows": 1000}),
    ]
    pairs, paths, relations, retrieved = asked(*calls, bounds=Bounds(rows=1))
    assert len(pairs["pairs"]) == len(paths["paths"]) == len(retrieved["paths"]) == 1
    assert len(relations["relations"]) == 1
    assert "there are more than 1" in pairs["warnings"]
    assert "there are more than 1" in paths["warnings"]
    assert relations["warnings"] == ["there are more relation paths"]


def test_what_is_doubtful_is_told() -> None:
    (told,) = asked(("paths", {"expression": "<urn:starring>", "sources": "<urn:nobody>"}))
    assert told["pairs"] == []
    assert any("did you mean <urn:starred>" in warning for warning in told["warnings"])
    assert any("no node <urn:nobody>" in warning for warning in told["warnings"])
    (left,) = asked(("retrieve", {"topic": "Kismet", "relations": [["starring"], ["starred"]]}))
    assert "no predicate of the graph is called starring" in left["warnings"][0]
    (doubted,) = asked(("check", {"query": FALLS.replace("?who :price ?q", "?whom :price ?q")}))
    assert "plan" in doubted


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("paths", {"expression": "<urn:a>/("}), ("<path>:1:", "^")),
        (("explain", {"expression": "nosuch:p"}), ("<path>:1:1", "^")),
        (("paths", {"expression": ".", "mode": "TRIAL"}), ("did you mean TRAIL",)),
        (("paths", {"expression": ".", "rows": -1}), ("rows=-1",)),
        (("relations", {"topic": "Greta Garbo"}), ("<topic>:1:1: no node of the graph is called so", "^")),
        (("retrieve", {"topic": "Kismet", "relations": "none"}), ('["^starred", "directed_by"]', "none: ")),
        (("retrieve", {"topic": "Kismet", "relations": [["starring"]]}), ("did you mean starred",)),
        (("check", {"query": "SELECT ?x"}), ("<query>:1:10", "^")),
        (("register", {"query": FALLS.replace("FILTER(?q", "FILTER(?z")}),
         ("<query>:4:64: no GPM binds ?z", "^")),
        (("register", {"query": FALLS.replace("?who :price ?q", "SERVICE <urn:x> { ?who :price ?q }")}),
         ("SERVICE would reach the network",)),
        (("push", {"stream": STREAM, "events": [price(1, "yesterday")]}), ("'yesterday' is no time",)),
        (("push", {"stream": "no IRI", "events": [price(1, 1)]}), ("IRI",)),
        (("matches", {"name": "q7"}), ("no query is called q7: there are none",)),
    ],
)  # fmt: skip
@pytest.mark.few(1)
def test_errors_say_where_and_what_to_do(call: Call, told: tuple[str, ...]) -> None:
    (error,) = asked(call)
    assert isinstance(error, str)
    for text in told:
        assert text in error


@pytest.mark.filterwarnings("ignore::spaseq.errors.SpaseqWarning")
def test_a_query_over_events() -> None:
    registered, pushed, found, none, again, cancelled, gone = asked(
        ("register", {"query": FALLS}),
        ("push", {"stream": STREAM, "events": [price(7, 1), price(5, 2), {"graph": "<urn:", "time": 3}]}),
        ("matches", {"name": "q1"}),
        ("matches", {"name": "q1"}),
        ("push", {"stream": STREAM, "events": [price(4, 3)]}),
        ("cancel", {"name": "q1"}),
        ("matches", {"name": "q1"}),
    )
    assert registered == {"name": "q1", "streams": [STREAM], "warnings": []}
    assert (pushed["added"], pushed["bad"], pushed["late"]) == (2, 1, 0)
    assert len(pushed["reasons"]) == 1
    assert [(match["start"], match["end"]) for match in found["matches"]] == [(1, 2)]
    assert found["matches"][0]["bindings"][0]["q"]["value"] == "5"
    assert none["matches"] == []
    assert again["added"] == 1
    assert [match["end"] for match in cancelled["matches"]] == [3] * len(cancelled["matches"])
    assert cancelled["matches"]
    assert "no query is called q1" in gone


def test_times_may_be_instants() -> None:
    events = [price(7, "2026-01-31T12:00:00Z"), price(5, "2026-01-31T12:00:01Z")]
    *_, found = asked(
        ("register", {"query": FALLS}),
        ("push", {"stream": STREAM, "events": events}),
        ("matches", {"name": "q1"}),
    )
    assert len(found["matches"]) == 1


def test_matches_come_in_portions() -> None:
    events = [price(20 - i, i) for i in range(5)]
    _, _, first, rest = asked(
        ("register", {"query": FALLS}),
        ("push", {"stream": STREAM, "events": events}),
        ("matches", {"name": "q1", "rows": 2}),
        ("matches", {"name": "q1"}),
    )
    assert len(first["matches"]) == 2
    assert first["may_have_more"]
    assert len(first["matches"]) + len(rest["matches"]) == rest["found_in_all"] == 4
    assert not rest["may_have_more"]


def test_queries_are_bounded() -> None:
    first, second, _, third = asked(
        ("register", {"query": FALLS}),
        ("register", {"query": FALLS}),
        ("cancel", {"name": "q1"}),
        ("register", {"query": FALLS}),
        bounds=Bounds(queries=1),
    )
    assert first["name"] == "q1"
    assert "1 queries are registered" in second
    assert third["name"] == "q2"


def test_searches_that_do_not_end_are_left_and_counted() -> None:
    go_on = threading.Event()
    workers = Workers(seconds=0.05)

    async def ask() -> None:
        for _ in range(8):
            with pytest.raises(LimitError, match=r"more than 0\.05 seconds"):
                await workers.search(lambda: go_on.wait(120))
        with pytest.raises(LimitError, match="8 searches are still at work"):
            await workers.search(lambda: None)
        assert await workers.run(lambda: 7, reads=False) == 7

    try:
        asyncio.run(ask())
    finally:
        go_on.set()
        for thread in threading.enumerate():
            if thread.name == "spaseq-mcp":
                thread.join(120)
    assert asyncio.run(workers.search(lambda: 7)) == 7


def test_what_changes_something_is_waited_for() -> None:
    go_on = threading.Event()

    async def ask() -> bool:
        changing = asyncio.create_task(Workers(seconds=0.01).run(lambda: go_on.wait(120), reads=False))
        done, _ = await asyncio.wait([changing], timeout=0.2)
        assert not done
        go_on.set()
        return await changing

    assert asyncio.run(ask())


def test_what_a_call_raises_is_raised() -> None:
    def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        asyncio.run(Workers(seconds=60).run(fail, reads=True))


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"seconds": -1}, {"queries": 0}])
def test_bounds_are_above_0(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Bounds(**wrong)


# --- searches that find nothing for long


def maze() -> Any:
    """``p{3,}/q`` from a to t is on no simple path: to leave the clique is to come by g again."""
    clique = [f"urn:c{i}" for i in range(40)]
    inside = [(one, "urn:p", other) for one in clique for other in [*clique, "urn:g"] if one != other]
    return load(
        [("urn:a", "urn:p", "urn:g"), ("urn:g", "urn:p", "urn:c0"), ("urn:g", "urn:q", "urn:t"), *inside]
    )


HARD: Call = (
    "paths",
    {"expression": "<urn:p>{3,}/<urn:q>", "sources": "<urn:a>", "targets": "<urn:t>", "mode": "ALL SIMPLE"},
)


def test_searches_end_with_their_time_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search ends after a share of the call's seconds. The rest is long, however slow the machine is."""

    async def ask() -> list[Any]:
        made = server(maze(), Engine(), Bounds(seconds=400))
        async with Client(made, read_timeout_seconds=500) as client:
            monkeypatch.setattr("spaseq.mcp.bounds._SHARE", 0.0005)
            answers = [await client.call_tool(*HARD) for _ in range(9)]
            monkeypatch.undo()
            answers.append(await client.call_tool("paths", {"expression": "<urn:q>"}))
            answers.append(await client.call_tool("check", {"query": FALLS}))
            return [answer.structured_content for answer in answers]

    *hard, pairs, checked = asyncio.run(ask())
    for answer in hard:
        assert answer["paths"] == []
        assert "there may be more: after 400 seconds the search was ended" in answer["warnings"][0]
    assert len(pairs["pairs"]) == 1
    assert checked["plan"]


@pytest.mark.slow
def test_events_are_no_searches_and_cancelled_searches_end() -> None:
    async def ask() -> tuple[list[Any], Any, Any]:
        made = server(maze(), Engine(), Bounds(seconds=400))
        async with Client(made, read_timeout_seconds=500) as client:
            hard = [asyncio.create_task(client.call_tool(*HARD)) for _ in range(8)]
            while not (refused := await client.call_tool("explain", {"expression": "<urn:q>"})).is_error:
                await asyncio.sleep(0.01)
            events = [
                (await client.call_tool(tool, given)).structured_content
                for tool, given in (
                    ("register", {"query": FALLS}),
                    ("push", {"stream": STREAM, "events": [price(7, 1), price(5, 2)]}),
                    ("cancel", {"name": "q1"}),
                )
            ]
            for task in hard:
                task.cancel()
            await asyncio.gather(*hard, return_exceptions=True)
            while (again := await client.call_tool("explain", {"expression": "<urn:q>"})).is_error:
                await asyncio.sleep(0.01)
            return events, refused, again

    events, refused, again = asyncio.run(ask())
    assert "8 searches are still at work" in refused.content[0].text
    assert events[1]["added"] == 2
    assert len(events[2]["matches"]) == 1
    assert "automaton" in again.structured_content["text"]
