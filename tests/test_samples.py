"""The use cases: what the generator plants is all there is to find, and every file says the same.

Three ways to the matches must agree: what the generator planted, the plain searches over the files
(``sample_searches.py``), and the engine's answer.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.samples import EVENTS, SEED, USE_CASES, UseCase, files, use_case
from spaseq.sources import load_catalog, parse_source
from tests.sample_searches import SEARCHES, Knowledge, found, local, python, records

ROOT = Path(__file__).parents[1]


def planted(case: UseCase, query: str) -> list[Any]:
    return sorted(tuple(sorted(match.items())) for match in case.planted[query])


@pytest.mark.parametrize(("seed", "events"), [(SEED, EVENTS), (2, 300), (3, 1500), (4, 2500)])
@pytest.mark.parametrize("name", USE_CASES)
@pytest.mark.few(0, ci=8)
def test_planted_matches_are_all_matches(name: str, seed: int, events: int) -> None:
    case = use_case(name, seed, events)
    streams, kb = records(case), Knowledge(case)
    assert set(case.queries) == set(case.planted)
    for query in case.queries:
        assert sorted(SEARCHES[query](streams, kb)) == planted(case, query), query


def answers(case: UseCase, query: str) -> list[spaseq.Match]:
    """The engine's matches over the committed files."""
    text = case.queries[query]
    streams = {
        stream.iri: str(ROOT / "streams" / stream.file) + (f"?{stream.options}" if stream.options else "")
        for stream in case.streams
        if f"<{stream.iri}>" in text
    }
    kb = {case.knowledge_iri: str(ROOT / "kb" / f"{case.name}.ttl")}
    return list(spaseq.run(spaseq.prepare(text), streams=streams, kb=kb))


@pytest.mark.parametrize(("name", "query"), [(name, q) for name in USE_CASES for q in use_case(name).queries])
@pytest.mark.few(1, ci=6)
def test_the_engine_finds_the_planted_matches(name: str, query: str) -> None:
    case = use_case(name)
    time = {e.graph.value: e.time for stream in case.streams for e in stream.events}
    matches = answers(case, query)
    chosen = [{gpm: events for gpm, events in match.events.items() if events} for match in matches]
    assert sorted(found(**events) for events in chosen) == planted(case, query)
    for match, events in zip(matches, chosen, strict=True):
        times = [time[str(event.graph)] for gpm in events.values() for event in gpm]
        assert (match.start, match.end) == (min(times), max(times))
        assert match.bindings


@pytest.mark.slow
def test_rows_join_events_and_background() -> None:
    (row,) = answers(use_case("stocks"), "stocks-head-and-shoulders")[0].bindings
    assert str(row["name"]) == "Brightwell"
    assert row["head"].toPython() > row["shoulder"].toPython() > row["base"].toPython()
    for match in answers(use_case("card-fraud"), "card-fraud"):
        (row,) = match.bindings
        assert row["probes"].toPython() == len(match.events["A"])
        assert str(row["holderName"]).removeprefix("Cardholder ") == str(row["card"]).rpartition("-")[2]


def test_constructed_streams_tell_each_match() -> None:
    case = use_case("trajectories")
    for match in answers(case, "trajectories"):
        graph = match.graph()
        (trip,) = set(graph.subjects())
        assert str(trip) == f"{match.events['C'][0].graph}-report"
        assert len(graph) == 5


@pytest.mark.parametrize("name", USE_CASES)
def test_every_query_has_matches(name: str) -> None:
    for query, matches in use_case(name).planted.items():
        assert matches, query


@pytest.mark.parametrize("name", USE_CASES)
@pytest.mark.few(1)
def test_files_say_what_the_events_are(name: str) -> None:
    case = use_case(name)
    streams = records(case)
    for stream in case.streams:
        read = streams[local(stream.iri)]
        assert [(r.graph, r.time) for r in read] == [(e.graph.value, e.time) for e in stream.events]
        assert [r.time for r in read] == sorted(r.time for r in read)
        for record, event in zip(read, stream.events, strict=True):
            values = {local(t.predicate.value): python(t.object) for t in event.triples}
            assert record.values == values


@pytest.mark.parametrize("name", USE_CASES)
@pytest.mark.few(1)
def test_committed_files_are_those_of_the_generator(name: str) -> None:
    for path, text in files(use_case(name)).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, path


@pytest.mark.slow
def test_the_catalogue_knows_the_streams() -> None:
    entries = load_catalog(ROOT / "streams" / "catalog.ttl")
    known = {(iri.value, entry.location, entry.options) for iri, entry in entries.items()}
    for name in USE_CASES:
        for stream in use_case(name).streams:
            _, options = parse_source(f"{stream.file}?{stream.options}")
            assert (stream.iri, ROOT / "streams" / stream.file, options) in known


@pytest.mark.slow
def test_same_seed_same_bytes(tmp_path: Path) -> None:
    out = [tmp_path / name for name in ("one", "two", "other")]
    for folder, seed in zip(out, ("5", "5", "6"), strict=True):
        options = ["--seed", seed, "--events", "300", "--out", str(folder)]
        command = [sys.executable, "-m", "spaseq.samples", *options]
        subprocess.run(command, check=True, capture_output=True, env={"PYTHONHASHSEED": seed})
    one, two, other = (
        {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*.*"))}
        for folder in out
    )
    assert one == two
    assert one != other


def test_vocabularies_define_every_term_of_ours_that_is_used() -> None:
    base = "https://w3id.org/spaseq/example/"
    defined, described = set(), set()
    for path in (ROOT / "vocab").glob("*.ttl"):
        for quad in ox.parse(path=path):
            if quad.subject.value.startswith(base) and "#" in quad.subject.value:
                defined.add(quad.subject.value)
                if quad.predicate.value.endswith("#comment"):
                    described.add(quad.subject.value)
    used = set()
    for name in USE_CASES:
        case = use_case(name)
        triples = [t for stream in case.streams for event in stream.events for t in event.triples]
        for triple in (*triples, *case.knowledge):
            used |= {t.value for t in (triple.predicate, triple.object) if isinstance(t, ox.NamedNode)}
        for text in case.queries.values():
            for prefix, iri in case.prefixes.items():
                used |= {iri + word for word in words(text, f"{prefix}:")}
    ours = {iri for iri in used if iri.startswith(base) and "#" in iri}
    assert len(ours) > 40
    assert ours <= defined == described


def words(text: str, prefix: str) -> set[str]:
    """The local names that follow a prefix in a query."""
    ends = (part for part in text.split(prefix)[1:] if part[:1].isalpha())
    return {"".join(c if c.isalnum() else " " for c in part).split()[0] for part in ends}
