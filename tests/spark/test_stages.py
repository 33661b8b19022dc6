"""The distributed stages give the answers of the embedded engine, however events are cut and shuffled."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, RdfFormat, parse

import spaseq
from spaseq.chunks import extent, unpack_header
from spaseq.errors import EngineError
from spaseq.events import BatchBuilder, Clock
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.shapes import text_of
from spaseq.results.writers._json import line_of
from spaseq.spark.stages._bucket import Bucket, State, keeps_all
from spaseq.spark.stages._job import Job, bucket_numbers, canonical, needs, pattern_of
from spaseq.spark.stages._stateless import Stateless
from tests.conftest import examples
from tests.spark.cases import of_the_whole_language, queries, streams
from tests.spark.stages import BEGINNING, Cluster, comparable, pushed
from tests.streams import NS, Letter, letters, matches, query

clusters = st.builds(
    Cluster,
    buckets=st.integers(1, 3),
    sizes=st.lists(st.integers(0, 5), max_size=4).map(tuple),
    cold=st.booleans(),
    seed=st.integers(0, 1000),
)


@settings(max_examples=examples(150))
@given(queries(), streams(), clusters)
def test_same_answers(text: str, events: list[Letter], cluster: Cluster) -> None:
    assert comparable(cluster.run(text, events)) == comparable(pushed(text, events))


@settings(max_examples=examples(100))
@given(st.integers(0, 2**64 - 1), clusters)
def test_same_answers_of_the_whole_language(seed: int, cluster: Cluster) -> None:
    case = of_the_whole_language(random.Random(seed))
    assert comparable(cluster.run(case.text, case.events)) == comparable(pushed(case.text, case.events)), case


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("matcher", ["interpreter", "reference", None])
def test_every_matcher_is_brought_back(matcher: str | None, cold: bool) -> None:
    text = query("A , B+[,] , C", "20 SECONDS SLIDING", {n: f"?{n.lower()} :k ?k ." for n in "ABC"},
                 partition="?k")  # fmt: skip
    events = letters("a1/k a2/l b3/l b4/k c5/l b6/k c7/k a8/k b9/k c10/k")
    cluster = Cluster(sizes=(1,) * 9, cold=cold, matcher=matcher)
    assert comparable(cluster.run(text, events)) == comparable(pushed(text, events))
    assert len(pushed(text, events)) == 3


@pytest.mark.parametrize("cold", [False, True])
def test_what_was_consumed_is_not_brought_back(cold: bool) -> None:
    """The match a1 b5 drops the run of c4. When that comes back from a state, a1 is no longer in it."""
    text = query("(A ; B) | (C ; D ; E)", "4 SECONDS SLIDING", tail="CONSUME ANY")
    events = letters("a1 c4 b5 x6 d7 e8 x9")
    found = Cluster(sizes=(3, 1, 1, 1), cold=cold).run(text, events)
    assert comparable(found) == comparable(pushed(text, events))
    assert len(found) == 1


def test_what_a_later_event_makes_certain_drops_its_run_too() -> None:
    """When x5 comes, no B can follow a2 at once; a5 is consumed with it, also in what comes back."""
    text = query("A , !B", "4 SECONDS SLIDING", tail="CONSUME ANY")
    events = letters("a2 a5 x6 x20")
    found = Cluster(sizes=(1,) * 4, cold=True).run(text, events)
    assert comparable(found) == comparable(pushed(text, events))
    assert len(found) == 1


@settings(max_examples=examples(120))
@given(
    st.sampled_from(["A , !B", "A ; !B", "A , B?", "A ; B ; !A", "A , B*[,]", "A ; B?", "A , !B ; C?"]),
    st.sampled_from(["4 SECONDS SLIDING", "3 EVENTS SLIDING", "5 SECONDS TUMBLING"]),
    st.sampled_from(["CONSUME ANY", "EMIT LAST CONSUME ANY", "EMIT MAX CONSUME ANY"]),
    st.lists(
        st.tuples(st.sampled_from("aabbcx"), st.sampled_from("kl"), st.integers(1, 3)),
        min_size=5,
        max_size=12,
    ),
    st.booleans(),
)
def test_what_waits_and_is_consumed(
    sequence: str, window: str, tail: str, said: list[tuple[str, str, int]], is_partitioned: bool
) -> None:
    gpms = {name: f"?{name.lower()} :k ?k ." for name in "ABC"} if is_partitioned else None
    text = query(sequence, window, gpms, partition="?k" if is_partitioned else "", tail=tail)
    times = accumulate(step for *_, step in said)
    names = (f"{letter}{time}/{key}" for (letter, key, _), time in zip(said, times, strict=True))
    events = letters(" ".join(names))
    found = Cluster(sizes=(1,) * 12, cold=True).run(text, events)
    assert comparable(found) == comparable(pushed(text, events))


@pytest.mark.parametrize("seed", range(4))
def test_windows_of_events_keep_chunks_that_overlap(seed: int) -> None:
    """The chunk of x2 and a4 is newer than that of a3, but not by two events."""
    text = query("A+[,]", "2 EVENTS SLIDING", streams=("S", "S2"))
    events = letters("S2.x2 a3 S2.a4 a6 S2.a8")
    found = Cluster(sizes=(3, 2), cold=True, seed=seed).run(text, events)
    assert comparable(found) == comparable(pushed(text, events))
    assert len(found) == 9


# --- strict contiguity ----------------------------------------------------------------------------


def surviving(text: str, events: str) -> int:
    """How many events come to the stateful stage."""
    return sum(extent(piece.data).events for piece in Cluster(buckets=1).pieces(text, letters(events)))


def test_what_no_gpm_wants_goes_no_further() -> None:
    assert surviving(query("A ; B"), "a1 x2 x3 b4 x5") == 2


def test_strict_contiguity_in_one_group_needs_the_place_of_every_event() -> None:
    text, events = query("A , B"), "a1 x2 b3 a4 b5 x6"
    assert needs(pattern_of(text)).all_events
    assert surviving(text, events) == 6
    found = Cluster().run(text, letters(events))
    assert comparable(found) == comparable(pushed(text, letters(events)))
    assert len(found) == 1  # a4 b5


def test_strict_contiguity_in_a_partition_is_broken_by_whatever_binds_its_key() -> None:
    """X is in no sequence position between A and B, but it binds the key: it survives, and it breaks."""
    gpms = {n: f"?{n.lower()} :k ?k ." for n in "ABX"}
    text = query("(A , B) | X", "20 SECONDS", gpms, partition="?k")
    assert not needs(pattern_of(text)).all_events
    events = letters("a1/k x2/k b3/k a4/k x5/l b6/k z7/k")
    assert surviving(text, "a1/k x2/k b3/k a4/k x5/l b6/k z7/k") == 6
    got = Cluster(buckets=3).run(text, events)
    assert comparable(got) == comparable(pushed(text, events))
    assert sum('"A":[{' in line for line in got) == 1  # a4 b6, and not a1 b3


def test_a_negated_event_without_the_key_counts_in_every_partition_that_its_event_is_in() -> None:
    """N binds no key, and X binds that of the same event."""
    gpms = {n: f"?{n.lower()} :k ?k ." for n in "ABX"}
    text = query("(A ; !N ; B) | X", "20 SECONDS SLIDING", gpms, partition="?k")
    text = text.replace("?x a :x", "?x a :n")
    events = letters("a1/k n2/k b3/k a4/l n5/l b6/l a7/m n8/m b9/m")
    got = Cluster(buckets=3).run(text, events)
    assert comparable(got) == comparable(pushed(text, events))
    assert len(got) == 3  # of X alone


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (query("A ; B"), "no PARTITION BY"),
        (
            query("A ; B", "3 EVENTS", {"A": "?a :k ?k .", "B": "?b :k ?k ."}, partition="?k"),
            "counts the events",
        ),
        (query("A", "3 SECONDS", {"A": "?a :k ?k ."}, partition="?k", tail="LIMIT 1"), "LIMIT"),
        (query("A", "3 SECONDS", {"A": "?a :k ?k ."}, partition="?k", head="ASK"), "ASK"),
        (query("A", "3 SECONDS", {"A": "?a :k ?k ."}, partition="?k"), None),
    ],
)
def test_why_a_query_runs_as_one_group(text: str, reason: str | None) -> None:
    found = needs(pattern_of(text)).one_group
    assert (found is None) if reason is None else (reason in str(found))


# --- time -----------------------------------------------------------------------------------------


def test_late_events_are_told() -> None:
    text = query("A ; B", "10 SECONDS SLIDING")
    late: list[Any] = []
    found = Cluster(sizes=(2, 1)).run(text, letters("a1 x9 a5 b10"), late=late)
    assert [(letter.position, letter.reason) for letter in late] == [
        ("event 3", "late: its time 5 is before the watermark, 9")
    ]
    # The triples that A asks for, since no more of the event came along.
    assert sorted(late[0].payload.splitlines()) == [
        f'<{NS}e/a5> <{NS}v> "5"^^<http://www.w3.org/2001/XMLSchema#integer> <{NS}a5> .',
        f"<{NS}e/a5> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}a> <{NS}a5> .",
    ]
    assert comparable(found) == comparable(pushed(text, letters("a1 x9 a5 b10")))


def test_state_is_as_large_as_the_window() -> None:
    text = query("A ; B", "10 SECONDS SLIDING", {n: f"?{n.lower()} :k ?k ." for n in "AB"}, partition="?k")
    states: list[bytes] = []
    events = [letter for i in range(1, 601) for letter in letters(f"a{i}/k")]
    Cluster(buckets=1, sizes=(20,) * 30).run(text, events, states=states)
    sizes = list(map(len, states))
    assert len(sizes) == 31
    assert max(sizes[10:]) < 1.5 * max(sizes[:6])


@pytest.mark.parametrize(
    ("sequence", "tail", "matcher", "partial"),
    [
        ("A ; C", "", "nfa", [2, 1, 0]),
        ("A ; C", "", "interpreter", [2, 1, 0]),
        ("A ; C", "AFTER MATCH SKIP PAST LAST EVENT", None, [2, 1, 0]),
        ("A : C", "", "tecs", [None, None, 0]),
    ],
)
def test_what_a_bucket_holds(
    sequence: str, tail: str, matcher: str | None, partial: list[int | None]
) -> None:
    """Two chunks, and partial matches as they expire; none without events."""
    text, events = query(sequence, "4 SECONDS SLIDING", tail=tail), letters("a1 a3 a8 c9")
    cluster = Cluster(buckets=1, matcher=matcher)
    bucket = Bucket(cluster.made(text, events)[0])
    for part in (events[:2], events[2:3]):
        for piece in cluster.pieces(text, part):
            bucket.add(piece.data, BEGINNING)
    held = []
    for watermark in (4, 9, 20):
        assert not [*bucket.release(watermark)]
        head = unpack_header(bucket.state().head)
        held.append((head["events"], head["partial_matches"]))
    assert held == list(zip([3, 1, 0], partial, strict=True))


@pytest.mark.parametrize("partition", ["", "?k"])
def test_counts_of_a_batch(partition: str) -> None:
    """They are those of ``Handle.why``, summed over buckets; where windows end is a matter of each bucket."""
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    from spaseq.spark.stages.arrow import counts_at_once, record, rows_of

    gpms = {name: f"?{name.lower()} :k ?k ." for name in "ABC"} if partition else None
    gpms = gpms and gpms | {"D": "?d :k ?k . FILTER(?dv > ?av)"}  # only its key counts
    text = query("A ; B+ ; C", "4 SECONDS SLIDING", gpms, partition=partition)
    events = letters(" ".join(f"{kind}{t}/{t // 12}" for t, kind in enumerate("abacbbxcabbc" * 5)))
    job, _ = Cluster(buckets=3).made(text, events)
    job = replace(job, counted=True, matcher="interpreter", is_stream=False)
    stage = Stateless(job)
    builder = BatchBuilder(stage.dictionary, NamedNode(f"{NS}S"), Clock.TICKS)
    for n, letter in enumerate(events):
        builder.add(letter.time, n, [quad.triple for quad in parse(letter.turtle, RdfFormat.TURTLE)])
    between = pa.Table.from_batches(record(rows_of(job, one)) for one in stage.run([builder.build()], []))
    ordered = between.sort_by([("bucket", "ascending"), ("begin", "ascending")]).to_batches()
    found: Counter[tuple[str, str]] = Counter()
    for batch in counts_at_once(job, 1_000)(ordered):
        for row in batch.to_pylist():
            found[row["part"], row["what"].partition(":")[0]] += row["count"]
    engine = spaseq.Engine()
    handle = engine.register(text)
    for letter in events:
        engine.push(f"{NS}S", letter.turtle, letter.time)
    engine.close()
    why = handle.why(60)
    assert found["events", "all"] == why.events == 60
    for name, gpm in why.gpms.items():
        assert (found[f"GPM {name}", "events"], found[f"GPM {name}", "solutions"]) == (gpm.matched, gpm.rows)
    for state in why.states[1:]:
        counts = (state.came, state.went_on, state.ended, sum(state.died.values()))
        assert (
            tuple(found[f"state {state.state}", what] for what in ("came", "went on", "ended", "died"))
            == counts
        )
    assert {
        edge.label: found[f"{edge.source} → {edge.target} {edge.label}", "taken"] for edge in why.edges
    } == {edge.label: edge.taken for edge in why.edges}
    assert sum(state.ended for state in why.states) > 5


def test_a_step_stores_little_more_than_what_is_new() -> None:
    """However much the window holds; what is of no use any more is dropped, and never written again."""
    text = query("A ; B", "500 SECONDS SLIDING", {n: f"?{n.lower()} :k ?k ." for n in "AB"}, partition="?k")
    job = Job(text, Clock.TICKS, None, (0,), is_stream=True)
    cluster, bucket = Cluster(buckets=1), Bucket(job)
    held: set[int] = set()
    for start in range(1, 1_001, 20):
        events = [letter for i in range(start, start + 20) for letter in letters(f"a{i}/k")]
        new = [piece.data for piece in cluster.pieces(text, events)]
        for data in new:
            assert not bucket.add(data, BEGINNING)
        list(bucket.release(start + 10))
        changes = bucket.changes()
        assert len(changes.head) + sum(map(len, changes.added.values())) < 2 * sum(map(len, new))
        held = held - set(changes.dropped) | changes.added.keys()
    assert 25 <= len(held) < 200
    assert held == bucket.state().chunks.keys()


@settings(max_examples=examples(150))
@given(queries(), streams(), st.integers(0, 12), clusters)
def test_streams_that_ended_go_on(text: str, events: list[Letter], split: int, cluster: Cluster) -> None:
    """What was told at their end stays so; then come the matches that end in what is new."""
    if any(word in text for word in ("CONSUME", "SKIP", "EMIT", "LIMIT", "ASK")):
        return  # of these, what was told decides what there is to tell
    before = [letter for letter in events if letter.time < split]
    later = [letter for letter in events if letter.time >= split]
    want = pushed(text, before) if before else []
    want += [line for line in pushed(text, events) if json.loads(line)["end"] >= split]
    assert comparable(cluster.gone_on(text, before, later)) == comparable(want)


def test_a_match_that_waited_for_the_end_is_told_once() -> None:
    """It would be told again when its window ends; and what contradicts it comes too late."""
    text = query("A ; B ; !C", "10 SECONDS SLIDING")
    found = Cluster().gone_on(text, letters("a1 b2"), letters("x4 a5 b6 c7 a8 b9 x40"))
    ends = sorted(json.loads(line)["end"] for line in found)
    assert ends.count(2) == 1
    assert 9 in ends


def test_events_before_the_end_of_the_streams_are_late() -> None:
    text = query("A ; B", "10 SECONDS SLIDING")
    cluster = Cluster(buckets=1)
    job, _ = cluster.made(text, letters("a1"))
    bucket = Bucket(job)
    late = []
    for events in ("a1 a9", "b5 b10"):
        for piece in cluster.pieces(text, letters(events)):
            late += bucket.add(piece.data, BEGINNING)
        found = list(bucket.close())
        bucket = Bucket.from_state(bucket.state(), job)
    assert [letter.reason for letter in late] == ["late: its time 5 is before the watermark, 10"]
    assert len(found) == 2


def test_a_query_that_is_over_keeps_nothing() -> None:
    text = query("A", "100 SECONDS", tail="LIMIT 1")
    states: list[bytes] = []
    assert len(Cluster(buckets=1, sizes=(2,) * 5).run(text, letters("a1 a2 a3 a4 a5 a6"), states=states)) == 1
    assert len(states[-1]) < len(states[0])


def test_a_state_is_of_its_query() -> None:
    states: list[bytes] = []
    text = query("A ; B", "10 SECONDS SLIDING")
    Cluster(buckets=1, sizes=(2,)).run(text, letters("a1 a2 b3"), states=states)
    other = Job(query("A ; C", "10 SECONDS SLIDING"), Clock.TICKS, 1, (0,))
    state, _ = State.unpacked(states[0])
    with pytest.raises(EngineError, match="another query"):
        Bucket.from_state(state, other)
    with pytest.raises(EngineError, match="layout"):
        Bucket.from_state(State(b"SPQ0" + state.head[4:], {}), other)


def test_the_driver_refuses_the_checkpoint_of_another_query(tmp_path: Path) -> None:
    """Before a stream starts; other prefixes, comments and white space are the same query."""
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    from spaseq.spark._jobs import Settings
    from spaseq.spark.driver import _Driver
    from spaseq.spark.queries import Prepared

    def begun(text: str) -> Job:
        job = Job(canonical(spaseq.prepare(text)), Clock.TICKS, None, (0,))
        _Driver(Prepared(job, job.query, (), Settings()), str(tmp_path), print)
        return job

    text = query("A ; B", "10 SECONDS SLIDING")
    state = Bucket(begun(text)).state()
    (tmp_path / "7.commit").write_bytes(state.packed({"answers": [], "newest": []}))
    begun(f"PREFIX other: <{NS}>\n# as before\n{text}".replace("within", "WITHIN"))
    said = r"7.commit: this checkpoint is of another query, which has 'WITHIN 10 SECONDS.* has 'WITHIN 9"
    with pytest.raises(EngineError, match=said) as caught:
        begun(text.replace("10 SECONDS", "9 SECONDS"))
    assert "\n" not in str(caught.value)


def test_a_state_is_of_its_background_graphs() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    from spaseq.spark.background._contents import contents

    text = query("A ; B", "10 SECONDS SLIDING")
    one, same, other = (
        contents(KnowledgeBase({"http://example.org/kb": f"@prefix : <{NS}> . {triples}"}))
        for triples in (":k :of :x ; :in _:y .", ":k :in _:other . :k :of :x .", ":k :of :y ; :in _:y .")
    )
    job = Job(text, Clock.TICKS, None, (0,), graphs=one)
    state = Bucket(job).state()
    Bucket.from_state(state, replace(job, graphs=same))
    with pytest.raises(EngineError, match="the background graphs are not those"):
        Bucket.from_state(state, replace(job, graphs=other))


def test_what_background_graphs_say_in_any_order() -> None:
    """Blank nodes count by what is said of them, whatever their labels are."""
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    from spaseq.spark.background._contents import contents

    def of(text: str) -> str:
        return contents(KnowledgeBase({"http://example.org/kb": f"@prefix : <{NS}> . {text}"}))

    one = of("_:x :of :k ; :in :l . _:y :of :m .")
    assert one == of("_:b :of :m . _:a :in :l . _:a :of :k . _:b :of :m .")
    assert one != of("_:x :of :k . _:y :of :m ; :in :l .")  # the same words, on other nodes
    assert of(":a :in [ :of [ :of [ :is 1 ] ] ] , [ :of [ :of [ :is 2 ] ] ] .") == of(
        ":a :in [ :of [ :of [ :is 2 ] ] ] , [ :of [ :of [ :is 1 ] ] ] ."
    )


# --- background graphs ----------------------------------------------------------------------------


def test_blank_nodes_of_background_graphs_are_the_same_everywhere() -> None:
    kb = {"http://example.org/kb": "@prefix : <http://example.org/> . _:x :of :k ; :in :l ."}
    graph = "GRAPH <http://example.org/kb> {{ ?n :{} ?g . }} ?{} :k ?g ."
    gpms = {
        "A": graph.format("of", "a").replace("?g", "?p"),
        "B": graph.format("in", "b").replace("?g", "?q"),
    }
    text = query("A ; B", "20 SECONDS SLIDING", gpms)
    events = letters("a1/k b2/k a3/k b4/l")
    got = Cluster(sizes=(1, 1, 1)).run(text, events, kb)
    assert comparable(got) == comparable(pushed(text, events, kb))
    assert len(got) == 2


# --- buckets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 16, 200])
def test_buckets_spread_evenly_over_any_number_of_partitions(partitions: int) -> None:
    numbers = bucket_numbers(256)
    assert len(set(numbers)) == 256
    assert [partition_of(number, partitions) for number in numbers] == [i % partitions for i in range(256)]


def partition_of(number: int, partitions: int) -> int:
    """Where Spark's hash partitioning puts an integer: Murmur3 with seed 42, modulo."""

    def rotated(word: int, by: int) -> int:
        return ((word << by) | (word >> (32 - by))) & 0xFFFFFFFF

    word = rotated(number * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    code = (rotated(42 ^ word, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    code ^= 4  # bytes
    code = (code ^ (code >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    code = (code ^ (code >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    code ^= code >> 16
    return (code - (1 << 32) if code >> 31 else code) % partitions


@pytest.mark.parametrize(
    "condition",
    ["?av > PREV(MAX(?av))", "MAX(?av - PREV(?av)) > 1", "SUM(?av - PREV(?av)) >= 0", "PREV(SUM(?av)) < 4"],
)
def test_aggregates_over_loops(condition: str) -> None:
    """Also in what SELECT computes, where a match is put together."""
    head = "SELECT (SUM(?av - PREV(?av)) AS ?far) (AVG(?av) AS ?mean)"
    text = query("A+[,]", gpms={"A": f"FILTER({condition})"}, head=head)
    events = letters("a1=1 a2=3 a3=2 a4=7")
    expected = comparable(pushed(text, events))
    assert len(expected) > 4
    assert comparable(Cluster(2, (1, 2)).run(text, events)) == expected


def test_events_that_do_not_conform_go_no_further() -> None:
    shapes = f"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{NS}> .
        :Positive sh:targetSubjectsOf :v ; sh:property [ sh:path :v ; sh:minExclusive 0 ] ."""
    text, events = query("A , B", "9 SECONDS SLIDING"), letters("a1 b2=0 b3 a4=-1 a5 b6")
    job, _ = Cluster().made(text, events, None)
    stage = Stateless(replace(job, shapes=text_of(shapes)))
    builder = BatchBuilder(stage.dictionary, NamedNode(f"{NS}S"), Clock.TICKS)
    for n, letter in enumerate(events):
        quads = parse(letter.turtle, RdfFormat.TURTLE)
        builder.add(letter.time, n, [quad.triple for quad in quads], NamedNode(f"{NS}{letter.name}"))
    (passed,) = stage.run([builder.build()], [])
    assert [letter.position for letter in passed.letters] == ["event 2", "event 4"]
    assert all("does not conform" in letter.reason for letter in passed.letters)
    bucket = Bucket(job)
    for piece in passed.pieces:
        bucket.add(piece.data, BEGINNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        want = [line_of(match) for match in matches(text, events, shapes=shapes)]
    assert [*bucket.close()] == want
    assert len(want) == 2


@pytest.mark.parametrize("cold", [False, True])
def test_where_a_match_skipped_to_is_brought_back(cold: bool) -> None:
    """The window kept begins with d2, which the match c1 d2 has skipped: d2 e4 is none."""
    gpms = " ".join(f"DEFINE GPM {name} ON S {{ [] <{NS}v> ?{name} }}" for name in "AB")
    text = (
        f"SELECT * WITHIN 2 SECONDS SLIDING FROM STREAM S <{NS}S> WHERE {{ SEQ(A ; B) {gpms} }} "
        "AFTER MATCH SKIP PAST LAST EVENT"
    )
    events = letters("a@0 b@0 c@1 d@2 e@4 f@5")
    cluster = Cluster(buckets=1, sizes=(5,), cold=cold)
    assert comparable(cluster.run(text, events)) == comparable(pushed(text, events))


@pytest.mark.parametrize(
    ("sequence", "events"),
    [
        ("A , !A ; B", "c3 c6 c9 b11 c14 a16 b19 b20"),
        ("A , !A ; B", "a1 b2 b3 b6 c7 b9 c10 c11 b12"),
        ("A ; !A ; B", "c2 c3 a6 c7 a10 b11 b13 a16 b19 a22"),
    ],
)
@pytest.mark.parametrize("window", ["8 SECONDS SLIDING", "4 SECONDS SLIDING", "5 EVENTS SLIDING"])
def test_what_is_negated_too_is_brought_back_behind_a_skip(sequence: str, events: str, window: str) -> None:
    """A match ends with b19, which skips a16; it must be shown as what !A forbids, and not as an A again."""
    text = query(sequence, window, tail="AFTER MATCH SKIP PAST LAST EVENT")
    found = Cluster(buckets=1, sizes=(1,) * 12).run(text, letters(events))
    assert comparable(found) == comparable(pushed(text, letters(events)))
    job = Job(text, Clock.TICKS, None, (0,), is_stream=True)
    assert "what A asks for" in str(keeps_all(job.pattern))
