"""Queries on Spark give the answers of the embedded engine: in batches, as streams, in the driver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

import spaseq
from spaseq.engine.running import StreamSource
from spaseq.results.writers._json import line_of
from tests.spark.running import finished, without_n
from tests.spark.stages import comparable
from tests.streams import NS, query

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.errors import AnalysisException  # noqa: E402  # after the skip
from pyspark.sql import Row, SparkSession  # noqa: E402
from pyspark.sql.types import DoubleType, TimestampType  # noqa: E402

from spaseq.spark import (  # noqa: E402
    answers_of,
    drive,
    events,
    expanded,
    folder_sink,
    knowledge,
    matches,
    planned,
    run,
    state,
)
from spaseq.spark.queries import Prepared  # noqa: E402
from spaseq.spark.sinks._columns import typed  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def stocks(tmp_path: Path, count: int = 400, start: int = 0) -> tuple[spaseq.Query, dict[str, StreamSource]]:
    """A query by key, and a file of trades in N-Quads: each goes up three times, and then down."""
    text = query(
        "A , B+[,] , C",
        "20 SECONDS SLIDING",
        {"A": "?a :k ?k .", "B": "?b :k ?k . FILTER(?bv > ?av)", "C": "?c :k ?k . FILTER(?cv < ?av)"},
        partition="?k",
    )
    path = tmp_path / "trades.nq"
    path.write_text("".join(quads(i, start=start) for i in range(count)))
    return spaseq.prepare(text), {"S": str(path)}


def quads(i: int, kind: str | None = None, start: int = 0) -> str:
    graph, node = f"<{NS}g{i}>", f"<{NS}e{i}>"
    turn = i // 3
    lines = [
        (node, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<{NS}{kind or 'abbc'[turn % 4]}>"),
        (node, f"<{NS}v>", f'"{[5, 7, 9, 1][turn % 4]}"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        (node, f"<{NS}k>", f"<{NS}k{i % 3}>"),
    ]
    time = f'"{start + i}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    head = f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
    return head + "".join(f"{s} {p} {o} {graph} .\n" for s, p, o in lines)


def local(text: spaseq.Query, streams: dict[str, StreamSource], **options: object) -> list[str]:
    return [line_of(match) for match in spaseq.run(text, streams, **options)]  # type: ignore[arg-type]


def found(rows: Sequence[Row], kind: str = "match") -> list[str]:
    return [row.json for row in rows if row.kind == kind]


def driven(plan: Prepared, checkpoint: Path) -> list[tuple[str, str]]:
    """All that ``drive`` brings until the stream ends."""
    got: list[tuple[str, str]] = []
    running = drive(plan, checkpoint, lambda _, some: got.extend(some))
    try:
        running.processAllAvailable()
    finally:
        running.stop()
    return got


def test_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    text, streams = stocks(tmp_path)
    want = local(text, streams)
    rows = run(spark, text, streams)
    assert comparable(found(rows.collect())) == comparable(want)
    assert len(want) > 50
    shown = expanded(rows, "ticks").orderBy("start", "end").first()
    assert shown is not None
    assert (shown.start, shown.end) == (0, 9)
    assert shown.events["A"][0].graph == f"{NS}g0"
    assert shown.partition["k"].value == f"{NS}k0"
    wanted = {"av": DoubleType(), "k": TimestampType()}
    first = typed(expanded(rows, "ticks"), wanted).orderBy("start").first()
    assert first is not None
    assert (first.av, first.k) == (5.0, None)


@pytest.mark.parametrize(("name", "told"), [("avv", r"no \?avv; did you mean 'av'"), ("x", "it selects")])
def test_columns_that_are_none(name: str, told: str) -> None:
    text = spaseq.prepare(query("A , B", "9 SECONDS", tail="", head="SELECT ?av"))
    with pytest.raises(spaseq.EngineError, match=told):
        matches(type("DataFrame", (), {})(), text, columns={name: "double"})  # it is not looked at


def test_files_cut_into_pieces_are_the_same_stream(spark: SparkSession, tmp_path: Path) -> None:
    text, streams = stocks(tmp_path)
    whole, cut = local(text, streams), found(run(spark, text, streams, piece_bytes=5_000).collect())
    # Arrival numbers count from the byte where a piece begins: other ones, in the same order.
    assert without_n(cut) == without_n(whole)


def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    text, streams = stocks(tmp_path, start=1_700_000_000_000_000)  # ticks that are microseconds since 1970
    frame = run(spark, text, streams, checkpoint=tmp_path / "cp", most_bytes=60_000, piece_bytes=30_000)
    rows, running = finished(frame, tmp_path / "cp")
    assert without_n(found(rows)) == without_n(local(text, streams))
    batches = [p for p in running.recentProgress if p.numInputRows]
    assert len(batches) >= 3  # two of up to 60,000 bytes, and the end
    assert {row.kind for row in rows} == {"match"}


def test_a_stream_in_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "letters.nq"
    path.write_text("".join(quads(i, "abx"[i % 3], -150) for i in range(300)))
    text, streams = spaseq.prepare(query("A , B", "20 SECONDS")), {"S": str(path)}
    with pytest.warns(spaseq.SpaseqWarning, match="one group"):
        plan = planned(
            spark, text, streams, checkpoint=tmp_path / "cp", most_bytes=30_000, piece_bytes=15_000
        )
    out = tmp_path / "out"
    seen: list[int] = []
    write = folder_sink(out, text)

    def sink(number: int, answers: Sequence[tuple[str, str]]) -> None:
        seen.append(number)
        write(number, answers)

    running = drive(plan, tmp_path / "cp", sink)
    running.processAllAvailable()
    running.stop()
    lines = [line for file in sorted(out.glob("matches-*")) for line in file.read_text().splitlines()]
    want = local(text, streams)
    assert without_n(lines) == without_n(want)
    assert len(want) > 50
    assert len(seen) >= 4
    (held,) = state(spark, tmp_path / "cp").collect()
    assert held == (0, 0, 0)  # all windows have ended


@pytest.mark.parametrize("mode", ["stream", "driver"])
def test_a_stream_that_ended_goes_on(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """With the files that came since; partial matches go on, and no event is late."""
    folder, checkpoint = tmp_path / "in", tmp_path / "cp"
    folder.mkdir()
    text, _ = stocks(tmp_path, 0)
    streams: dict[str, StreamSource] = {"S": str(folder)}
    got: list[tuple[str, str]] = []
    for name, numbers in (("1.nq", range(205)), ("2.nq", range(205, 300))):
        (folder / name).write_text("".join(map(quads, numbers)))
        # Whatever the size of pieces is, a run goes on where the one before was.
        sizes = {"most_bytes": 30_000, "piece_bytes": 30_000 if name == "1.nq" else 20_000}
        plan = planned(spark, text, streams, checkpoint=checkpoint, **sizes)
        before = len(got)
        if mode == "stream":
            got += [(row.kind, row.json) for row in finished(answers_of(plan), checkpoint)[0]]
        else:
            got += driven(plan, checkpoint)
        assert len(got) > before
    assert without_n(line for _, line in got) == without_n(local(text, streams))
    assert {kind for kind, _ in got} == {"match"}


def test_a_restart_on_other_shuffle_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """A checkpoint keeps how many tasks its state is in, whatever the session says, and how many buckets."""
    text, streams = stocks(tmp_path, 100)
    checkpoint = tmp_path / "checkpoint"
    rows, _ = finished(run(spark, text, streams, checkpoint=checkpoint), checkpoint)
    with (tmp_path / "trades.nq").open("a") as file:
        file.write("".join(quads(i) for i in range(100, 160)))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        with pytest.raises(spaseq.EngineError, match="begun with buckets=16, and now it is 32"):
            run(spark, text, streams, checkpoint=checkpoint, buckets=32)
        more, running = finished(run(spark, text, streams, checkpoint=checkpoint), checkpoint)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))
    said = [json.loads(operator.json) for p in running.recentProgress for operator in p.stateOperators]
    assert {operator["numShufflePartitions"] for operator in said} == {2}
    found = [row.json for row in [*rows, *more] if row.kind == "match"]
    assert without_n(found) == without_n([line_of(match) for match in spaseq.run(text, streams)])


def test_late_and_bad_events_are_told(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.nq").write_text(quads(50) + quads(60) + "nonsense .\n" + quads(70))
    # Of these one is on time; no GPM wants the second, nor any of the third file.
    (folder / "2.nq").write_text(quads(10) + quads(20, "x") + quads(80))
    (folder / "3.nq").write_text(quads(21, "x") + quads(22, "x"))
    text, streams = stocks(tmp_path, 0)[0], {"S": str(folder) + "?format=nq"}
    frame = run(spark, text, streams, checkpoint=tmp_path / "cp", most_bytes=1)
    rows, _ = finished(frame, tmp_path / "cp")
    late = sorted(map(json.loads, found(rows, "late")), key=lambda letter: letter["reason"])
    times = [letter["reason"].partition(" is before the watermark")[0] for letter in late]
    assert times == [f"late: its time {time}" for time in (10, 20, 21, 22)]
    assert {letter["stream"] for letter in late} == {f"{NS}S"}
    assert f"{NS}e10" in late[0]["payload"]
    letters: list[spaseq.BadEvent] = []
    whole = tmp_path / "whole.nq"
    whole.write_text("".join(path.read_text() for path in sorted(folder.iterdir())))
    local(text, {"S": str(whole)}, dead_letters=letters.append)
    assert sum(letter.reason.startswith("late") for letter in letters) == len(late)
    plan = planned(spark, text, streams, checkpoint=tmp_path / "driven", most_bytes=1)
    assert sorted(driven(plan, tmp_path / "driven")) == sorted((row.kind, row.json) for row in rows)
    bad = [json.loads(letter) for letter in found(rows, "bad")]
    assert {letter["stream"] for letter in bad} == {f"{NS}S"}
    assert any(letter["position"].endswith("1.nq, line 9") for letter in bad)
    assert any("nonsense" in letter["payload"] for letter in bad)
    events = spark.read.format("spaseq").option("stream", f"{NS}S").load(str(folder))
    assert events.where("bad IS NOT NULL").count() == len(bad)


def test_a_dataframe_that_a_user_has(spark: SparkSession, tmp_path: Path) -> None:
    text, streams = stocks(tmp_path)
    rows = [(i, "abbc"[i // 3 % 4], [5, 7, 9, 1][i // 3 % 4], f"k{i % 3}") for i in range(400)]
    trades = spark.createDataFrame(rows, "at long, kind string, value int, key string")
    template = f"PREFIX : <{NS}> <{NS}e{{at}}> a <{NS}{{kind}}> ; :v ?value ; :k <{NS}{{key}}> ."
    lifted = events(trades, stream=f"{NS}S", time="at", template=template, graph=f"{NS}g{{at}}")
    got = [row.json for row in matches(lifted, text, clock="ticks").collect()]
    assert without_n(got) == without_n(local(text, streams))


def test_the_format_gives_events(spark: SparkSession, tmp_path: Path) -> None:
    _, streams = stocks(tmp_path, 20)
    frame = spark.read.format("spaseq").option("stream", f"{NS}S").load(str(streams["S"]))
    rows = frame.orderBy("n").collect()
    assert [(row.time, row.n, row.clock) for row in rows] == [(i, i, "ticks") for i in range(20)]
    assert f'<{NS}v> "5"'.encode() in bytes(rows[0].payload)
    text, _ = stocks(tmp_path, 20)
    got = [row.json for row in matches(frame, text, clock="ticks").collect()]
    assert comparable(got) == comparable(local(text, streams))


def test_files_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    text, streams = stocks(tmp_path, 100)
    options = f"path '{streams['S']}', stream '{NS}S'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW ticks USING spaseq OPTIONS ({options})")
    matches(spark.table("ticks"), text).createOrReplaceTempView("found")
    want = sum(1 for _ in spaseq.run(text, streams))
    assert spark.sql("SELECT count(*) AS n FROM found").first() == (want,)


def test_available_now_is_everything(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever a micro-batch may take: in a new query, and in one that goes on; not with another trigger."""
    folder = tmp_path / "in"
    folder.mkdir()
    sizes: list[list[int]] = []
    for name, trigger in (
        ("1.nq", {"availableNow": True}),
        ("2.nq", {"availableNow": True}),
        ("3.nq", {"processingTime": "0 seconds"}),
    ):
        (folder / name).write_text("".join(map(quads, range(60))))
        bits = {"stream": f"{NS}S", "maxBytesPerTrigger": 10_000, "pieceBytes": 5_000}
        frame = spark.readStream.format("spaseq").options(**bits).load(str(folder))
        found: list[int] = []
        writer = frame.writeStream.foreachBatch(lambda rows, _, found=found: found.append(rows.count()))
        running = writer.trigger(**trigger).option("checkpointLocation", str(tmp_path / "cp")).start()
        try:
            running.awaitTermination(60) if "availableNow" in trigger else running.processAllAvailable()
        finally:
            running.stop()
        sizes.append(found)
    assert sizes[:2] == [[60], [60]]
    assert sum(sizes[2]) == 60
    assert len(sizes[2]) > 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "needs the option 'stream'"),
        ({"stream": f"{NS}S", "formt": "nq"}, "unknown option 'formt': one of format, "),
        ({"stream": f"{NS}S", "pieceBytes": "8M"}, "pieceBytes='8M' is not a positive number"),
        ({"stream": f"{NS}S", "follow": "yes"}, "follow='yes' is neither true nor false"),
    ],
)
def test_wrong_options_are_told_of_by_load(
    options: dict[str, str], told: str, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(AnalysisException, match=told):
        spark.readStream.format("spaseq").options(**options).load(str(tmp_path))


def test_tumbling_windows_of_a_stream_need_a_start(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format("spaseq").option("stream", f"{NS}S").load(str(tmp_path))
    with pytest.raises(spaseq.EngineError, match="start="):
        matches(frame, query("A", "5 SECONDS", {"A": "?a :k ?k ."}, partition="?k"))


PLACES = {
    f"{NS}kb": f"@prefix : <{NS}> . :k0 :in _:x . :k1 :in _:y . :k2 :in _:x ."
    " _:x :of :north . _:y :of :south .",
    f"{NS}other": f"@prefix : <{NS}> . :k0 :in :k0 . :k1 :of 1 .",
}


def test_background_graphs_as_dataframes(spark: SparkSession, tmp_path: Path) -> None:
    _, streams = stocks(tmp_path, 60)
    graph = f"GRAPH <{NS}kb> {{ ?k :in ?place . ?place :of ?region . }}"
    text = query(
        "A , B",
        "20 SECONDS SLIDING",
        {"A": f"?a :k ?k . {graph}", "B": "?b :k ?k . GRAPH ?which { ?k :in ?there }"},
        partition="?k",
    )
    prepared = spaseq.prepare(text)
    want = local(prepared, streams, kb=PLACES)
    kb = knowledge(spark, PLACES, parquet=tmp_path / "kb")
    assert kb.names == (f"{NS}kb", f"{NS}other")
    frame = run(spark, prepared, streams, kb)
    assert comparable(found(frame.collect())) == comparable(want)
    plan = frame._jdf.queryExecution().simpleString()
    assert f"graph_patterns GRAPH <{NS}kb>: 3 solutions in each worker; GRAPH ?which: " in plan
    again = knowledge(spark, parquet=tmp_path / "kb")
    batch = again.local().batch(spaseq.terms.dictionary.Dictionary())
    assert sorted(map(str, batch.offset)) == ["0", "5", "7"]
    assert '/north"' in "".join(want)
    assert any(len(json.loads(line)["bindings"]) == 2 for line in want)  # k0 is in both graphs


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("count", [5, pytest.param(12, marks=pytest.mark.long)])
def test_the_benchmark_runs(count: int) -> None:
    """CI: up to the first of its streams. All of it is ``long``."""
    from tests.benchmarks.spark import benchmark

    with closing(benchmark(True)) as found:
        measured = list(islice(found, 5) if count == 5 else found)
    assert [m.benchmark for m in measured] == ["spark"] * count
