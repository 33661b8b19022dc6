"""Background graphs that are joined as DataFrames give the answers of those that every worker has."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.chunks import extent, hashed
from spaseq.errors import SpaseqWarning
from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.language import checked
from spaseq.patterns.kb import KnowledgeBase
from spaseq.sources import BadEvent
from spaseq.spark.background._asking import lookups
from spaseq.terms.dictionary import Dictionary
from tests.spark.cases import Case, Happening, write
from tests.spark.running import finished, without_n
from tests.spark.stages import Cluster, comparable, pushed
from tests.streams import NS, letters, query

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

import pyarrow as pa  # noqa: E402  # after the skip
from pyspark.errors import StreamingQueryException  # noqa: E402
from pyspark.sql import DataFrame, Row, SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812  # Spark's own name for it
from pyspark.sql.streaming.query import StreamingQuery  # noqa: E402

from spaseq.spark import _jobs, answers, drive, knowledge, planned, run  # noqa: E402
from spaseq.spark.background._asking import Asking, records  # noqa: E402
from spaseq.spark.background._background import Local, asked_once, tables  # noqa: E402
from spaseq.spark.background._joined import _chunks, keyed, names_of, on_found, texts, width  # noqa: E402
from spaseq.spark.source._rows import EVENTS  # noqa: E402
from spaseq.spark.stages._job import Job, Joined, needs, pattern_of  # noqa: E402
from spaseq.spark.stages._stateless import Passed, Piece  # noqa: E402
from tests.conftest import examples  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:the query runs as one group"),
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


# --- the stages by hand, and the join between them --------------------------------------------------


@dataclass(frozen=True)
class Joining(Cluster):
    """A cluster on which all background graphs that can be are joined by key."""

    def _made(  # type: ignore[override]  # it is run as a stage is
        self, text: str, events: Sequence[Happening], kb: Mapping[str, str] | None
    ) -> tuple[Job, _Stages]:
        pattern = pattern_of(text)
        asked = asked_once(pattern)
        assert asked is not None
        dictionary, visible = Dictionary(), KnowledgeBase(kb or {}).restrict(pattern.query.knowledge)
        found = [visible.solutions(graph, dictionary) for graph in asked]
        there = [number for number, graph in enumerate(asked) if graph in lookups(pattern)]
        alone = needs(pattern).one_group is not None
        shipped = tables([None if n in there else table for n, table in enumerate(found)], dictionary)
        job = Job(
            text,
            Clock.TICKS,
            min((event.time for event in events), default=0),
            tuple(range(1 if alone else self.buckets)),
            self.matcher,
            Local(shipped),
            is_stream=True,
            joined=Joined(tuple(there), (0, 1)),
            # Not a random number, which Hypothesis makes the same for every example.
            background=blake2b(shipped).hexdigest(),
        )
        rows = []
        columns = width(asked[number] for number in there) if there else 0
        for number in there:
            terms = texts(found[number], names_of(asked[number]), dictionary)
            for batch in keyed(pattern, number, columns)(terms.to_batches()):
                rows += batch.to_pylist()
        return job, _Stages(job, rows, columns)


class _Stages:
    """Both stages, with the join: what ``Cluster`` takes for the stateless stage."""

    def __init__(self, job: Job, background: list[dict[str, object]], columns: int) -> None:
        self._job = job
        self._asking = Asking(job)
        self.dictionary = self._asking.dictionary
        self._background = background
        self._columns = columns
        self._task = 0

    def run(self, batches: Iterable[EventBatch], bad: list[BadEvent]) -> Iterator[Passed]:
        self._task += 1
        asked = pa.Table.from_batches(records(self._job, self._asking.run(batches, bad), self._task))
        joined = list(self._join(asked.to_pylist()))
        random.Random(len(joined)).shuffle(joined)
        schema = asked.schema
        for i in range(self._columns):
            schema = schema.append(pa.field(f"v{i}", pa.string()))
        table = pa.Table.from_pylist(joined, schema=schema)
        for batch in on_found(self._job, is_sorted=False)(table.to_batches(max_chunksize=3)):
            for row in batch.to_pylist():
                assert row["letter"] is None
                if row["chunk"] is not None:
                    piece = Piece(row["bucket"], row["begin"], row["chunk"])
                    yield Passed(0, None, [piece], [])
                if row["over"] is not None:
                    yield Passed(0, None, [], [], row["over"])

    def _join(self, asked: Iterable[dict[str, object]]) -> Iterator[dict[str, object]]:
        for row in asked:
            key = row["graph"], row["key"]
            matched = [other for other in self._background if (other["graph"], other["key"]) == key]
            for other in matched or [{f"v{i}": None for i in range(self._columns)}]:
                yield row | other


# --- what is asked for ----------------------------------------------------------------------------

KB, OTHER = f"{NS}kb", f"{NS}other"
GRAPH = f"GRAPH <{KB}> {{ ?k :in ?r }}"


@pytest.mark.parametrize(
    ("part", "key"),
    [
        (f"?a :k ?k . {GRAPH}", ["k"]),
        (f"{GRAPH} ?a :k ?k .", ["k"]),
        (f"?a :k ?k ; :r ?r . {GRAPH}", ["k", "r"]),
        (f"{{ ?a :k ?k }} {GRAPH}", ["k"]),
        (f"?a :k ?k . {{ {GRAPH} }} UNION {{ ?a :r ?r }}", ["k"]),
        (f"?a :k ?k . {{ ?a :r ?r . {GRAPH} }}", ["k", "r"]),
        (f"?a :k ?k . OPTIONAL {{ {GRAPH} }}", ["k"]),
        (f"?a :k ?k . OPTIONAL {{ ?a :r ?r . {GRAPH} }}", ["k", "r"]),
        (f"?a :k ?k . MINUS {{ {GRAPH} }}", ["k"]),
        (f"?a :k ?k . VALUES ?r {{ 1 2 }} {GRAPH}", ["k", "r"]),
        (f"?a :k ?k . VALUES ?r {{ 1 UNDEF }} {GRAPH}", ["k"]),
        # A row that the GRAPH extends may not be joined any more with what comes after the OPTIONAL.
        (f"?a :k ?k . OPTIONAL {{ {GRAPH} }} ?a :r ?r .", ["k"]),
        (f"OPTIONAL {{ {GRAPH} }} ?a :k ?k .", None),
        # What the GRAPH takes away in the inner group is not seen from outside.
        (f"?a :k ?k . {{ ?a :w ?w OPTIONAL {{ ?a :r ?r }} MINUS {{ {GRAPH} }} }}", None),
        (f"OPTIONAL {{ ?a :k ?k }} {GRAPH}", None),
        (f"BIND(:k AS ?k) {GRAPH}", None),
        (f"?a :k ?k . {{ SELECT ?k ?r {{ {GRAPH} }} }}", None),
        (f"?a :k ?j . {GRAPH}", None),
    ],
)
def test_keys(part: str, key: list[str] | None) -> None:
    found = lookups(pattern_of(query("A", gpms={"A": part})))
    assert [list(lookup.key) for lookup in found.values()] == ([] if key is None else [key])


def test_a_graph_that_two_gpms_ask_by_different_variables_has_no_key() -> None:
    gpms = {"A": f"?a :k ?k . {GRAPH}", "B": f"?b :r ?r . {GRAPH}"}
    assert not lookups(pattern_of(query("A ; B", gpms=gpms)))


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        (f"?a :k ?k . {GRAPH} FILTER(?av > 3) FILTER(?r > 3)", ["k"]),
        (f"?a :k ?k . OPTIONAL {{ {GRAPH} FILTER(?av > 3) }}", ["k", "l"]),
        (f"?a :k ?k . {GRAPH} FILTER(RAND() > ?av)", ["k", "l"]),
    ],
)
def test_only_events_that_a_gpm_may_want_ask(part: str, asked: list[str]) -> None:
    events = [
        Happening("g1", "S", 1, f"@prefix : <{NS}> . [] a :a ; :v 5 ; :k :k ."),
        Happening("g2", "S", 2, f"@prefix : <{NS}> . [] a :a ; :v 2 ; :k :l ."),
        Happening("g3", "S", 3, f"@prefix : <{NS}> . [] a :b ; :v 5 ; :k :m ."),
    ]
    job, _ = Joining()._made(query("A", gpms={"A": part}), events, {KB: f"<{NS}k> <{NS}in> 4 ."})
    asking = Asking(job)
    builder = BatchBuilder(asking.dictionary, ox.NamedNode(f"{NS}S"), Clock.TICKS)
    for n, event in enumerate(events):
        quads = ox.parse(event.turtle.encode(), format=ox.RdfFormat.TURTLE)
        builder.add(event.time, n, [quad.triple for quad in quads], ox.NamedNode(NS + event.name))
    (got,) = asking.run([builder.build()], [])
    terms = [asking.dictionary.intern(ox.NamedNode(NS + key)) for key in asked]
    wanted = [hashed(asking.dictionary, [np.array([term])])[0] for term in terms]
    assert sorted(got.keys[0].tolist()) == sorted(wanted)
    assert got.body is not None
    assert extent(got.body).events == len(asked)


@pytest.mark.parametrize("is_sorted", [False, True])
def test_the_rows_of_a_chunk_come_together(is_sorted: bool) -> None:
    chunks = [1, 1, 2, 2, 2, 3, 1 if not is_sorted else 3, 7]
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        table = pa.table({"chunk": chunks, "row": range(len(chunks))})
        for batch in table.to_batches(max_chunksize=2):
            read.append(len(batch))
            yield batch

    found = _chunks(batches(), is_sorted)
    first = next(found).to_pydict()
    assert len(read) == (2 if is_sorted else 4)
    tables = [first, *(table.to_pydict() for table in found)]
    assert [set(table["chunk"]) for table in tables] == [{1}, {2}, {3}, {7}]
    assert tables[0]["row"] == ([0, 1] if is_sorted else [0, 1, 6])
    assert sum(len(table["row"]) for table in tables) == len(chunks)


# --- random queries -------------------------------------------------------------------------------

#: Parts of GPM X: ``?x`` is its node, ``?k`` one of its keys; ``%`` is X in lower case.
PARTS = [
    f"GRAPH <{KB}> {{ ?k :in ?r }}",
    f"GRAPH <{KB}> {{ ?k :in ?r . ?r :of ?s%  }} FILTER(?s% = :north)",
    "GRAPH ?g% { ?k :in ?r }",
    f"GRAPH <{KB}> {{ ?k :in ?r }} GRAPH <{OTHER}> {{ ?r :of ?s% }}",
    f"GRAPH <{KB}> {{ ?k :in ?r }} GRAPH <{OTHER}> {{ ?k :rate ?n% }} FILTER(?%v > ?n%)",
    f"FILTER(?%v > 4) GRAPH <{KB}> {{ ?k :in ?r }}",
    f"{{ GRAPH <{KB}> {{ ?k :in ?r }} }} UNION {{ GRAPH <{OTHER}> {{ ?k :of ?r }} }}",
    f"{{ SELECT ?% ?r {{ ?% :k ?k . GRAPH <{KB}> {{ ?k :in ?r }} }} }}",
    f"{{ SELECT ?k ?r {{ GRAPH <{KB}> {{ ?k :in ?r }} }} }}",
    f"{{ ?% :w ?w% . GRAPH <{KB}> {{ ?w% :in ?r }} MINUS {{ GRAPH <{OTHER}> {{ ?w% :of ?o% }} }} }}",
    f"OPTIONAL {{ ?% :w ?w% }} GRAPH <{KB}> {{ ?w% :in ?r }}",
    f"BIND(?k AS ?j%) GRAPH <{KB}> {{ ?j% :in ?r }}",
    f"VALUES (?k ?u%) {{ (:k 1) (:l 2) (UNDEF 3) }} GRAPH <{KB}> {{ ?k :in ?r }}",
]
#: Those that may leave ``?r`` unbound.
LOOSE = [
    f"OPTIONAL {{ GRAPH <{KB}> {{ ?k :in ?r% }} }}",
    f"OPTIONAL {{ GRAPH <{KB}> {{ ?k :in ?r% }} FILTER(?%v > 4) }}",
    f"OPTIONAL {{ GRAPH <{KB}> {{ ?k :in ?r% }} }} OPTIONAL {{ GRAPH <{OTHER}> {{ ?k :of ?r% }} }}",
    f"OPTIONAL {{ ?% :w ?w% . GRAPH <{KB}> {{ ?w% :in ?r% }} OPTIONAL {{ GRAPH ?g% {{ ?w% :of ?s% }} }} }}",
    f"OPTIONAL {{ GRAPH <{KB}> {{ ?w% :in ?r% }} }} ?% :w ?w% .",
    f"MINUS {{ GRAPH <{KB}> {{ ?k :in :r1 }} }}",
    f"MINUS {{ GRAPH <{KB}> {{ ?k :in ?x% }} FILTER(?x% != :r1) }}",
    f"MINUS {{ ?% :w ?w% . GRAPH <{KB}> {{ ?w% :in ?x% }} }}",
    f"OPTIONAL {{ ?% :w ?w% }} MINUS {{ GRAPH <{KB}> {{ ?w% :in ?x% }} }}",
    "",
]
SEQUENCES = ["A ; B", "A , B", "A : B", "A ; B+ ; C", "A ; !B ; C", "A ; (B | C)", "A ; B? ; C"]
WINDOWS = ["4 SECONDS SLIDING", "8 SECONDS", "3 EVENTS", "4 EVENTS SLIDING"]


def case(rng: random.Random) -> tuple[Case, dict[str, str]]:
    """A query with GRAPH patterns, a stream whose events have several keys, and two background graphs."""
    sequence = rng.choice(SEQUENCES)
    by = rng.choice(["", "?k", "?r"])
    gpms = {}
    names = sorted({name for name in sequence if name in "ABC"})
    for name in names:
        chosen = rng.choice(PARTS if by == "?r" else PARTS + LOOSE + LOOSE)
        body = f"?% :k ?k . {chosen}"
        for shared in ("?k", "?r"):
            if shared != by and rng.random() < 0.7:
                body = re.sub(rf"\{shared}\b", f"{shared}{name}", body)
        gpms[name] = body.replace("%", name.lower())
    text = query(sequence, rng.choice(WINDOWS), gpms, streams=("S", "S2"), partition=by)
    kinds = "".join(names).lower() * 3 + "x"
    time, events = 0, []
    for i in range(rng.randint(2, 12)):
        time += rng.choice([0, 1, 1, 2])
        keys = ", ".join(rng.sample([":k", ":l", ":m", ":n", '"k"', "3"], rng.randint(1, 3)))
        more = f"; :w {rng.choice([':k', ':l', ':m'])}" if rng.random() < 0.6 else ""
        turtle = (
            f"@prefix : <{NS}> . :e{i} a :{rng.choice(kinds)} ; :v {rng.randint(1, 9)} ; :k {keys} {more}."
        )
        events.append((time, rng.choice(["S", "S2"]), turtle))
    events.sort(key=lambda event: event[:2])
    happened = tuple(Happening(f"g{i}", s, t, turtle) for i, (t, s, turtle) in enumerate(events))
    return Case(text, happened), {KB: background(rng), OTHER: background(rng)}


def background(rng: random.Random) -> str:
    """Some keys have no region, some several; a region may be a blank node."""
    lines = [f"@prefix : <{NS}> ."]
    for key in (":k", ":l", ":m", ":r1", "_:r2"):
        for verb, values in {
            "in": [":r1", "_:r2", '"r3"@en'],
            "of": [":north", ":r1"],
            "rate": [3, 6],
        }.items():
            lines += [f"{key} :{verb} {v} ." for v in values if rng.random() < 0.7]
    return "\n".join(lines)


clusters = st.builds(
    Joining,
    buckets=st.integers(1, 3),
    sizes=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    cold=st.booleans(),
    seed=st.integers(0, 1000),
)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**64 - 1), clusters)
def test_same_answers(seed: int, cluster: Joining) -> None:
    drawn, kb = case(random.Random(seed))
    got = cluster.run(drawn.text, drawn.events, kb)  # type: ignore[arg-type]
    assert comparable(got) == comparable(pushed(drawn.text, drawn.events, kb)), (drawn, kb)  # type: ignore[arg-type]


# --- on Spark -------------------------------------------------------------------------------------

IS_LONG = (settings.default or settings()).max_examples > 1_000
CASES = 40 if IS_LONG else 3

#: A key has no region, one or two; the region of two keys is a blank node.
PLACES = {
    KB: f"""@prefix : <{NS}> . :k0 :in _:x . :k1 :in _:y , :r1 . :k2 :in _:x . :k9 :in :r1 .
            _:x :of :north . _:y :of :south . :r1 :of :north .""",
    OTHER: f"@prefix : <{NS}> . :k0 :rate 2 . :k1 :rate 3 , 6 . :k3 :rate 1 .",
}


def by_region(*streams: str) -> str:
    """A query in which two GRAPH patterns, one of them in three GPMs, join, extend and take away."""
    region = f"GRAPH <{KB}> {{ ?k% :in ?r }}"
    gpms = {
        "A": f"{region} OPTIONAL {{ GRAPH <{OTHER}> {{ ?k% :rate ?n% }} FILTER(?n% > 2) }}",
        "B": f"{region} MINUS {{ GRAPH <{OTHER}> {{ ?k% :rate ?n% }} FILTER(?n% > ?bv) }}",
        "C": region,
    }
    gpms = {name: f"?% :k ?k% . {part}".replace("%", name.lower()) for name, part in gpms.items()}
    return query("A , B+ ; C", "9 SECONDS SLIDING", gpms, streams=streams, partition="?r")


def rows_of(case: Case) -> Iterator[tuple[object, ...]]:
    """The rows of ``EVENTS``."""
    for n, event in enumerate(case.events):
        graph, payload = f"{NS}{event.name}", event.triples.encode()
        yield NS + event.stream, Clock.TICKS.value, event.time, n, graph, payload, None


def keyed_events(count: int, *streams: str) -> tuple[Happening, ...]:
    rng = random.Random(count)
    events = []
    for i in range(count):
        keys = ", ".join(rng.sample([":k0", ":k1", ":k2", ":k3", ":k4"], rng.randint(1, 3)))
        turtle = f"@prefix : <{NS}> . :e{i} a :{rng.choice('abbc')} ; :v {rng.randint(1, 9)} ; :k {keys} ."
        events.append(Happening(f"g{i}", rng.choice(streams), i // 2, turtle))
    return tuple(sorted(events, key=lambda event: (event.time, event.stream)))


def plan_of(frame: DataFrame) -> str:
    return own_steps(str(frame._jdf.queryExecution().executedPlan().toString()))


def own_steps(plan: str) -> str:
    """A plan without how the tables came about that it finds in memory."""
    kept: list[str] = []
    inside = 1_000
    for line in plan.splitlines():
        depth = len(line) - len(line.lstrip(" +-:*|"))
        if depth <= inside:
            inside = depth if "InMemoryRelation" in line else 1_000
            kept.append(line)
    return "\n".join(kept)


def test_a_batch(spark: SparkSession) -> None:
    drawn = Case(by_region("S", "S2"), keyed_events(120, "S", "S2"))
    want = pushed(drawn.text, drawn.events, PLACES)  # type: ignore[arg-type]  # it takes these letters
    assert len(want) > 20
    events = spark.createDataFrame(list(rows_of(drawn)), EVENTS)
    # So many are the solutions of the one GRAPH pattern, but not of the other.
    kb = knowledge(spark, PLACES, broadcast_limit=4)
    found = answers(events, drawn.text, kb, clock=Clock.TICKS, start=drawn.start)
    plan = plan_of(found)
    assert "SortMergeJoin" in plan
    assert "Broadcast" not in plan
    rows = found.collect()
    assert {row.kind for row in rows} == {"match"}
    assert without_n(row.json for row in rows) == without_n(want)
    sent = answers(events, drawn.text, knowledge(spark, PLACES), clock=Clock.TICKS, start=drawn.start)
    assert "Join" not in plan_of(sent)


def test_random_queries(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their background graphs are evaluated in this process, which makes no difference to the rest."""
    monkeypatch.setattr(_jobs, "BROADCAST_LIMIT", 0)
    drawn = (case(random.Random(seed)) for seed in range(1_000))
    # Those with answers, so that there is something to be wrong.
    chosen = list(islice(((one, kb) for one, kb in drawn if pushed(one.text, one.events, kb)), CASES))  # type: ignore[arg-type]
    parts = []
    for number, (one, kb) in enumerate(chosen):
        events = spark.createDataFrame(list(rows_of(one)), EVENTS)
        found = answers(events, one.text, kb, clock=Clock.TICKS, start=one.start)
        parts.append(found.withColumn("case", F.lit(number)))
    whole = reduce(DataFrame.union, parts)
    assert "SortMergeJoin" in plan_of(whole)
    got = whole.collect()
    for number, (one, kb) in enumerate(chosen):
        mine = [row.json for row in got if row.case == number]
        assert without_n(mine) == without_n(pushed(one.text, one.events, kb)), (one, kb)  # type: ignore[arg-type]


def test_a_stream_that_fails_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    drawn = Case(by_region("S"), keyed_events(80, "S"))
    want = pushed(drawn.text, drawn.events, PLACES)  # type: ignore[arg-type]
    streams = write(drawn, tmp_path / "in")
    checkpoint = tmp_path / "cp"
    rows: list[Row] = []
    taken: list[int] = []
    fails = True

    def take(batch: DataFrame, number: int) -> None:
        if number == 1 and fails:
            raise RuntimeError("stop here")
        taken.append(number)
        rows.extend(batch.collect())

    def started() -> StreamingQuery:
        kb = knowledge(spark, PLACES, broadcast_limit=0)
        frame = run(
            spark, drawn.text, streams, kb, checkpoint=checkpoint, most_bytes=12_000, piece_bytes=6_000
        )
        return frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()

    failing = started()
    with pytest.raises(StreamingQueryException, match="stop here"):
        failing.processAllAvailable()
    assert taken == [0]
    fails = False
    running = started()
    try:
        running.processAllAvailable()
        plan = own_steps(running._jsq.explainInternal(False))
    finally:
        running.stop()
    assert len(taken) == len(set(taken)) > 3
    assert {row.kind for row in rows} == {"match"}
    assert without_n(row.json for row in rows) == without_n(want)
    assert "SortMergeJoin" in plan
    assert "InMemoryTableScan" in plan
    assert "Broadcast" not in plan


def test_in_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    drawn = Case(by_region("S"), keyed_events(60, "S"))
    streams = write(drawn, tmp_path / "in")
    kb = knowledge(spark, PLACES, broadcast_limit=0)
    plan = planned(spark, checked(drawn.text), streams, kb, checkpoint=tmp_path / "cp")
    assert plan.job.joined is not None
    got: list[str] = []
    running = drive(plan, tmp_path / "cp", lambda _, lines: got.extend(line for _, line in lines))
    try:
        running.processAllAvailable()
    finally:
        running.stop()
    assert without_n(got) == without_n(pushed(drawn.text, drawn.events, PLACES))  # type: ignore[arg-type]


def test_late_events_are_told_once(spark: SparkSession, tmp_path: Path) -> None:
    """One that asks for several keys, and one that no GPM wants."""
    words = "a1 x50 a51 a5 x6 b52"
    events = tuple(
        Happening(letter.name, "S", letter.time, letter.turtle.replace(" :k :k", " :k :k0, :k1, :k3"))
        for letter in letters(words)
    )
    gpms = {n: f"?{n.lower()} :k ?k . GRAPH <{KB}> {{ ?k :in ?r }}" for n in "AB"}
    text = query("A ; B", "9 SECONDS SLIDING", gpms, partition="?r")
    folder = tmp_path / "in"
    for number, part in enumerate((events[:3], events[3:])):
        write(Case(text, part), tmp_path / str(number))
        folder.mkdir(exist_ok=True)
        (tmp_path / str(number) / "S.nq").rename(folder / f"{number}.nq")
    kb = knowledge(spark, PLACES, broadcast_limit=0)
    streams = {"S": f"{folder}?format=nq"}
    frame = run(spark, text, streams, kb, checkpoint=tmp_path / "cp", most_bytes=1)
    rows, _ = finished(frame, tmp_path / "cp")
    late = [json.loads(row.json)["reason"] for row in rows if row.kind == "late"]
    assert sorted(late) == [f"late: its time {time} is before the watermark, 51" for time in (5, 6)]
    assert sum(row.kind == "match" for row in rows) == 3  # a51 b52, for each region of k0 and k1


def test_what_cannot_be_joined_is_sent_with_a_warning(spark: SparkSession) -> None:
    text = query("A", "9 SECONDS SLIDING", {"A": f"GRAPH <{KB}> {{ ?k :in ?r }}"})
    kb = knowledge(spark, PLACES, broadcast_limit=2)
    events = spark.createDataFrame(list(rows_of(Case(text, keyed_events(4, "S")))), EVENTS)
    with pytest.warns(SpaseqWarning, match="5 rows of background go to every worker, though only 2 should"):
        found = answers(events, text, kb, clock=Clock.TICKS, start=0)
    assert "SortMergeJoin" not in plan_of(found)


@pytest.mark.parametrize("limit", [0, 1_000])
def test_workers_do_not_take_one_background_for_another(spark: SparkSession, limit: int) -> None:
    """The same query twice, in the same processes."""
    text = query("A", "9 SECONDS SLIDING", {"A": f"?a :k ?k . GRAPH <{KB}> {{ ?k :in ?r }}"})
    events = spark.createDataFrame(list(rows_of(Case(text, keyed_events(12, "S")))), EVENTS)
    for region in ("r1", "r2"):
        kb = knowledge(
            spark,
            {KB: "".join(f"<{NS}k{i}> <{NS}in> <{NS}{region}> ." for i in range(5))},
            broadcast_limit=limit,
        )
        rows = answers(events, text, kb, clock=Clock.TICKS, start=0).collect()
        assert rows
        assert all(f"{NS}{region}" in row.json for row in rows)
