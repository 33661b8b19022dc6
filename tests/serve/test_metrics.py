"""What ``/metrics`` tells, and the counts of a query that has seen more than its sample."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from spaseq import Engine
from spaseq.bounds import WorkClock
from tests.serve.running import Running, running
from tests.streams import NS, query

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def _metrics(server: Running) -> dict[str, float]:
    lines = server.http.get("/metrics").text.splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in found.items()}


def _quads(count: int, begin: int = 0) -> str:
    time = "http://www.w3.org/ns/prov#generatedAtTime"
    return "".join(
        f"<{NS}e{i}> {_TYPE} <{NS}{'ab'[i % 2]}> <urn:g{i}> .\n<{NS}e{i}> <{NS}v> {_int(i)} <urn:g{i}> .\n"
        f"<urn:g{i}> <{time}> {_int(i)} .\n"
        for i in range(begin, begin + count)
    )


def _int(number: int) -> str:
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_how_long_answers_took_is_a_histogram() -> None:
    with running() as server:
        server.register(query("A"), "q")
        server.send("a1 a2 a3")
        found = _metrics(server)
        text = server.http.get("/metrics").text
    route = 'route="/streams/{iri:path}"'
    counts = [
        (float(match[1]), count)
        for name, count in found.items()
        if route in name and (match := re.search(r'le="([^"]+)"', name))
    ]
    bounds, values = zip(*counts, strict=True)
    assert list(bounds) == sorted(bounds)
    assert list(values) == sorted(values)
    assert bounds[-1] == float("inf")
    assert values[-1] == found[f"spaseq_answer_seconds_count{{{route}}}"] == 3
    assert 0 < found[f"spaseq_answer_seconds_sum{{{route}}}"] < 3 * 120
    assert text.count("# TYPE spaseq_answer_seconds histogram") == 1


@pytest.mark.slow
def test_counts_go_on_beyond_the_sample() -> None:
    """``explain`` counts the automaton over the newest events, and says over how many; all else is of all."""
    with running() as server:
        key = server.register(query("A , B"), "q")
        for begin in (0, 3_000):
            sent = server.post(_quads(3_000, begin), kind="application/n-quads")
            assert sent.json() == {"events": 3_000, "bad": 0, "late": 0}
            events = begin + 3_000
            assert len(server.matches(key)) == events // 2
            stats = server.http.get(f"/queries/{key}/stats").json()
            assert (stats["events"], stats["matches"]) == (events, events // 2)
            assert stats["gpms"]["A"]["matched"] == events // 2
            drawn = server.http.get(f"/queries/{key}/explain", params={"format": "json"}).json()
            counted = drawn["counted"]
            assert (counted["of"], counted["matches"]) == (events, events // 2)
            assert 50 <= counted["events"] <= 2_000
            # Of an even number of the newest, half are A and half are B.
            assert [edge["count"] for edge in drawn["edges"]] == [counted["events"] // 2] * 2
            assert {edge["matched"] for edge in drawn["edges"] if "gpm" in edge} == {events // 2}
            found = _metrics(server)
            assert found["spaseq_events_total"] == events
            assert found['spaseq_matches_total{query="q"}'] == events // 2


@pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")
@pytest.mark.slow
def test_what_was_shed_and_what_is_left_is_told_of_queries_with_a_bound() -> None:
    given: dict[str, Any] = {"matcher": "nfa", "latency": timedelta(milliseconds=4)}
    # Compiled here, where no client waits for it.
    warm = Engine(**given)
    warm.register(query("A : B"))
    warm.push(f"{NS}S", f"<{NS}e> a <{NS}a> ; <{NS}v> 1 .", 1)
    with running(**given, clock=WorkClock(1e-3)) as server:
        server.register(query("A : B"), "q")
        server.register(query("A : B") + " EMIT LAST", "chosen")
        server.post(_quads(300), kind="application/n-quads")
        found = _metrics(server)
    assert found['spaseq_shed_partial_matches_total{query="q"}'] > 0
    assert found['spaseq_shed_passed_over_total{query="q"}'] >= 0
    assert 0 < found['spaseq_shed_recall{query="q"}'] < 1
    # Of matches that keep out others there is no estimate.
    assert 'spaseq_shed_recall{query="chosen"}' not in found
    with running() as server:
        server.register(query("A : B"), "q")
        assert not any("shed" in name for name in _metrics(server))
