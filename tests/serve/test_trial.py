"""Queries tried over the last events, and the demo that makes these."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

pytest.importorskip("fastapi", reason="the server is an extra: pip install 'spaseq[serve]'")

from starlette.testclient import TestClient
from typer.testing import CliRunner

from spaseq import Engine, KnowledgeError, prepare
from spaseq.cli import app
from spaseq.events import Clock
from spaseq.patterns.kb import KnowledgeBase
from spaseq.samples import use_case
from spaseq.serve import demo
from spaseq.serve.app import create_app
from spaseq.serve.newest.recent import RecentEvents
from spaseq.serve.routes.trial import TrialResult, attempt

#: Streams need no reader to be kept.
pytestmark = pytest.mark.filterwarnings("ignore:no registered query reads")

S = "http://example.org/s"
T = "http://example.org/t"

FALLS = f"""
    PREFIX : <http://example.org/>
    SELECT ?x ?a ?b WITHIN 100 SECONDS SLIDING FROM STREAM S <{S}>
    WHERE {{ SEQ(A , B)
      DEFINE GPM A ON S {{ ?x :value ?a }}
      DEFINE GPM B ON S {{ ?x :value ?b . FILTER(?b < ?a) }} }}"""


def value(number: int) -> str:
    return f"<urn:x> <http://example.org/value> {number} ."


def kept(recent: RecentEvents, stream: str) -> list[int]:
    """The times of the events that are kept."""
    return [int(time) for part in recent.of([stream])[stream] for time in part.time]


def followed(recent: RecentEvents) -> Engine:
    engine = Engine()
    engine.follow(recent.add)
    return engine


def shown(recent: RecentEvents, text: str, **options: float) -> TrialResult:
    query = prepare(text)
    return attempt(query, recent.of([s.iri.value for s in query.streams]), KnowledgeBase({}), **options)  # type: ignore[arg-type]


def test_the_newest_events_of_each_stream_are_kept_and_no_more_than_twice_the_bound() -> None:
    recent = RecentEvents(events=100, triples=1_000)
    engine = followed(recent)
    for tick in range(1_000):
        engine.push(S, value(tick), tick)
    engine.push_many(T, ((value(tick), tick) for tick in range(500)))
    engine.turn.flush()
    times = kept(recent, S)
    assert times == list(range(1_000 - len(times), 1_000))
    assert 100 <= len(times) <= 200
    assert kept(recent, T) == list(range(400, 500))
    assert recent.of(["urn:none"]) == {"urn:none": []}


def test_triples_and_streams_are_bounded_too() -> None:
    recent = RecentEvents(events=100, triples=10, streams=2)
    engine = followed(recent)
    for tick in range(50):
        engine.push(S, " ".join(value(n) for n in range(5)), tick)
    for stream in (T, "urn:u"):
        engine.push(stream, value(1), 50)
    engine.turn.flush()
    assert kept(recent, S) == []  # silent for longest
    assert kept(recent, T) == [50]
    engine.push(S, " ".join(value(n) for n in range(50)), 51)
    engine.turn.flush()
    assert kept(recent, S) == [51]  # the newest event, however large


def test_a_trial_finds_what_the_query_would_have_found() -> None:
    recent = RecentEvents()
    engine = followed(recent)
    for tick, number in enumerate([5, 4, 6, 3, 9, 8, 7]):
        engine.push(S, value(number), tick)
    engine.turn.flush()
    trial = shown(recent, FALLS)
    assert [(match.start, match.end) for match in trial.matches] == [(0, 1), (2, 3), (4, 5), (5, 6)]
    assert (trial.streams, trial.more, trial.why, trial.stopped) == ({S: 7}, False, None, None)
    first = shown(recent, FALLS, most=2)
    assert len(first.matches) == 2
    assert first.more
    none = shown(recent, FALLS.replace("?b < ?a", "?b > 100"))
    assert none.matches == ()
    assert none.why is not None
    assert "FILTER" in none.why
    assert shown(recent, FALLS.replace(S, T)) == TrialResult({T: 0}, (), False, None, None)


def test_a_trial_stops_when_its_time_is_over() -> None:
    recent = RecentEvents()
    engine = followed(recent)
    engine.push_many(S, ((value(0), tick) for tick in range(500)))
    engine.turn.flush()
    trial = shown(recent, FALLS, seconds=0.0)
    assert trial.stopped == "stopped after 20 of 500 events, for which there was time"


def test_an_unknown_background_graph_is_refused() -> None:
    text = FALLS.replace("?x :value ?a }", "?x :value ?a . GRAPH <urn:kb> { ?x a ?type } }")
    with pytest.raises(KnowledgeError):
        shown(RecentEvents(), text)


def test_try_over_http() -> None:
    with TestClient(create_app(Engine()), base_url="http://127.0.0.1") as client:
        client.post("/queries", content=FALLS).raise_for_status()
        for tick, number in enumerate([5, 4]):
            sent = client.post(
                f"/streams/{S}",
                params={"time": tick},
                content=value(number),
                headers={"content-type": "text/turtle"},
            )
            assert sent.json()["events"] == 1
        found = client.post("/queries/try", content=FALLS).json()
        assert found["events"] == 2
        assert found["streams"] == [{"iri": S, "events": 2}]
        (match,) = found["matches"]
        assert match["bindings"][0]["x"] == {"type": "uri", "value": "urn:x"}
        assert [event["time"] for event in match["events"]["B"]] == [1]
        assert len(client.get("/queries").json()["queries"]) == 1  # nothing was registered
        wrong = client.post("/queries/try", content=FALLS.replace("?b <", "?c <"))
        assert wrong.status_code == 400
        assert wrong.json()["error"]["line"] == 6


def test_a_pass_of_the_demo_is_each_sample_in_order_and_the_next_one_is_later() -> None:
    samples = [use_case("stocks", events=300), use_case("traffic", events=300)]
    events = demo.schedule(samples)
    assert [due.at for due in events] == sorted(due.at for due in events)
    assert 0 <= events[0].at <= events[-1].at < 1
    for sample in samples:
        streams = {stream.iri for stream in sample.streams}
        own = [due for due in events if due.stream in streams and due.name is not None]
        expected = sum(len(stream.events) for stream in sample.streams)
        assert len(own) == expected + (sample.name == "stocks")  # the late one
        assert min(due.time for due in own) + own[0].period > max(due.time for due in own)
    assert set(demo.queries(samples)) == {name for sample in samples for name in sample.queries}


def test_the_events_that_are_kept_are_of_one_clock() -> None:
    recent = RecentEvents()
    engine = followed(recent)
    engine.push(S, value(1), 1)
    engine.push(S, value(1), datetime(2026, 6, 4, tzinfo=UTC))
    engine.turn.flush()
    (last,) = recent.of([S])[S]
    assert (last.clock, len(last)) == (Clock.INSTANTS, 1)


def test_a_demo_has_its_own_queries() -> None:
    result = CliRunner().invoke(app, ["serve", "--demo", "-s", "S=ticks.trig"])
    assert result.exit_code == 2
    assert "give it alone" in result.output
