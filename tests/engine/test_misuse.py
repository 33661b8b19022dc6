"""What callers get wrong: each error says what to write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pytest
import rdflib

import spaseq
from spaseq.engine import arguments
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.mcp.bounds import Bounds
from spaseq.mcp.events import EventTools
from spaseq.patterns import kb
from tests.streams import NS, letters, query

STREAM = NS + "S"
A = letters("a1")[0].turtle

#: An instant of the year 10000, in UTC, and one of the year 0.
FAR = datetime(9999, 12, 31, 23, 59, 55, tzinfo=timezone(-timedelta(hours=14)))
EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))


def _each(engine: spaseq.Engine, stream: str, events: list[Any]) -> None:
    for graph, time in events:
        engine.push(stream, graph, time)


@pytest.mark.parametrize("far", [FAR, EARLY])
@pytest.mark.parametrize("push", [_each, spaseq.Engine.push_many])
def test_an_instant_that_no_datetime_shows_is_malformed(far: datetime, push: Callable[..., None]) -> None:
    """It was taken, and each later push raised an OverflowError."""
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    with pytest.warns(spaseq.SpaseqWarning, match="event 1: a bad event .* outside the years 1 to 9999"):
        push(engine, STREAM, [(A, far), (A, last)])
    assert (engine.bad, engine.events, engine.late) == (1, 1, 0)
    assert [match.start for match in handle.matches()] == [last]
    assert engine.watermark == last


def test_no_time_is_promised_that_no_datetime_shows() -> None:
    engine = spaseq.Engine()
    with pytest.raises(spaseq.EngineError, match="outside the years 1 to 9999"):
        engine.advance(FAR)


@pytest.mark.parametrize("push", [_each, spaseq.Engine.push_many])
def test_a_mapping_is_no_graph(push: Callable[..., None]) -> None:
    """Its keys were taken for triples, and after the first warning nothing was said."""
    engine, row = spaseq.Engine(), {"id": 1}
    engine.register(query("A"))
    for _ in range(2):
        with pytest.raises(spaseq.EngineError, match=r"not dict: rows become events by spaseq\.table"):
            push(engine, STREAM, [(row, 1)])
    assert not engine.events


def test_each_cause_of_a_bad_event_is_warned_of() -> None:
    engine = spaseq.Engine()
    engine.register(query("A"))
    engine.push(STREAM, A, 1)
    with pytest.warns(spaseq.SpaseqWarning, match="event 2: a bad event"):
        engine.push(STREAM, "no Turtle", 2)
    with pytest.warns(spaseq.SpaseqWarning, match=r"event 3: .* give all times .* as integers \(ticks\)"):
        engine.push(STREAM, A, datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.push("S", A, 1),
        lambda engine: engine.push_many("S", [(A, 1)]),
        lambda engine: engine.advance(1, "S"),
        lambda engine: engine.feed(spaseq.Source("S", "x.nq")),
    ],
)
def test_a_stream_is_called_by_its_iri(call: Callable[[spaseq.Engine], Any]) -> None:
    with pytest.raises(spaseq.EngineError, match=r"'S' is not an IRI .* such as 'http://example.org/s'"):
        call(spaseq.Engine())


@pytest.mark.parametrize("kb", ["kb.ttl", ["kb.ttl"], rdflib.Graph()])
def test_background_graphs_have_iris(kb: Any) -> None:
    with pytest.raises(spaseq.KnowledgeError, match=r"kb={'http://example.org/kb': 'kb.ttl'}"):
        spaseq.Engine(kb=kb)


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({"S": pd.DataFrame({"a": [1]})}, r"a DataFrame is read as spaseq\.table"),
        ({"S": [{"a": 1}]}, r"a source is a path, .* not \[\{'a': 1\}\]"),
        ({"S": None}, "a source is a path"),
        ("events.nq", "say which stream it is, such as {'S': 'events.nq'}"),
    ],
)
def test_what_is_no_source_is_told(streams: Any, message: str) -> None:
    with pytest.raises(spaseq.SourceError, match=message):
        spaseq.run(query("A"), streams)


def test_what_is_fed_is_a_source() -> None:
    with pytest.raises(spaseq.EngineError, match=r"give spaseq\.Source\(STREAM, 'x.nq'\)"):
        spaseq.Engine().feed("x.nq")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["file.rq", "queries/file.spaseq"])
def test_the_name_of_a_file_is_no_query(name: str) -> None:
    with pytest.raises(spaseq.QuerySyntaxError, match="read_text"):
        spaseq.Engine().register(name)


def test_mcp_refuses_such_an_instant_and_goes_on() -> None:
    tools = EventTools(spaseq.Engine(), Bounds())
    tools.register(query("A"))
    with pytest.warns(spaseq.SpaseqWarning):
        told = tools.push(
            STREAM,
            [{"graph": A, "time": "9999-12-31T23:59:55-14:00"}, {"graph": A, "time": "9999-12-31T23:59:55Z"}],
        )
    assert (told["added"], told["bad"]) == (1, 1)
    assert "years 1 to 9999" in told["reasons"][0]


def _out_of_memory(*_: object, **__: object) -> None:
    raise MemoryError


def _as_compiled_code_says_it(*_: object) -> None:
    raise SystemError("returned a result with an exception set") from MemoryError()


@pytest.mark.parametrize("error", [_out_of_memory, _as_compiled_code_says_it])
def test_a_query_without_memory_says_which_limit_to_set(
    error: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A"))
    monkeypatch.setattr(Pipeline, "_process", error)
    engine.push_many(STREAM, [(A, time) for time in range(3)])
    with pytest.raises(spaseq.LimitError, match=r"no memory .* Limits\(query_bytes=…\)") as raised:
        list(handle.matches())
    assert raised.value.limit == "query_bytes"


@pytest.mark.parametrize("graph", [f"{A} # text that is not plain", [()]], ids=["text", "triples"])
def test_an_event_without_memory_says_which_limit_to_set(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    letters: list[spaseq.BadEvent] = []
    engine = spaseq.Engine(dead_letters=letters.append)
    monkeypatch.setattr(arguments.ox, "parse", _out_of_memory)
    monkeypatch.setattr(arguments, "_three", _out_of_memory)
    engine.push(STREAM, graph, 1)
    engine.push_many(STREAM, [(graph, 2)])
    assert ["Limits(term_bytes=…)" in letter.reason for letter in letters] == [True, True]


def test_a_background_graph_without_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kb, "parse", lambda *_, **__: map(_out_of_memory, [0]))
    with pytest.raises(spaseq.KnowledgeError, match=r"Turtle of <urn:kb>: no memory was left to read it"):
        spaseq.Engine(kb={"urn:kb": A})
