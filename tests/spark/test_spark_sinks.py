"""Answers as files, each once: every form, as a stream that crashes too; dead letters beside them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spaseq
from spaseq.results.writers._json import line_of
from tests.streams import NS, letters, matches, query

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402  # after the skip
from pyspark.sql import functions as F  # noqa: E402, N812  # Spark's own name for it
from pyspark.sql.streaming.query import StreamingQuery  # noqa: E402

from spaseq.spark import answer_messages, expanded, folder_sink, save  # noqa: E402
from spaseq.spark import matches as query_matches  # noqa: E402
from tests.spark.test_spark import stocks  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PAIRS = query("A ; B", "10 SECONDS SLIDING", head="CONSTRUCT { ?a :then ?b ; :by [ :v ?bv ] }")
OTHER = query("A ; B", "9 SECONDS SLIDING", head="CONSTRUCT { ?a :then ?b ; :by [ :v ?bv ] }")
FOUND = list(matches(PAIRS, letters("a1 b2 a3 b4 a5 a6 b7")))
LINES = [line_of(match) for match in FOUND]
LATE = json.dumps({"stream": f"{NS}S", "position": "event 3", "reason": "late", "payload": "a"})
BAD = json.dumps({"stream": f"{NS}S", "position": "line 9", "reason": "no quad", "payload": "b"})
ANSWERS = [("match", line) for line in LINES[:2]] + [("late", LATE), ("bad", BAD)]
ANSWERS += [("match", line) for line in LINES[2:]]


def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ANSWERS, "kind string, json string")


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The answers, one in each micro-batch."""
    folder.mkdir()
    for number, (kind, line) in enumerate(ANSWERS):
        file = folder / f"{number}.json"
        file.write_text(json.dumps({"kind": kind, "json": line}))
        # Spark takes them in the order of their times, and those of one millisecond in any.
        os.utime(file, (number + 1, number + 1))
    reader = spark.readStream.schema("kind string, json string").option("maxFilesPerTrigger", "1")
    return reader.json(str(folder))


def text_of(folder: Path, pattern: str) -> list[str]:
    return sorted(line for file in folder.glob(pattern) for line in file.read_text().splitlines())


def ended(running: StreamingQuery | None) -> StreamingQuery:
    assert running is not None
    try:
        running.processAllAvailable()
    finally:
        running.stop()
    return running


def test_ndjson_is_a_match_a_line(spark: SparkSession, tmp_path: Path) -> None:
    assert save(frame(spark), PAIRS, tmp_path / "out", letters=tmp_path / "dead") is None
    assert text_of(tmp_path / "out", "*") == sorted(LINES)
    assert text_of(tmp_path / "dead", "letters-*.ndjson") == sorted([LATE, BAD])


def test_batches_of_several_queries_share_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark).coalesce(1)
    save(rows, PAIRS, tmp_path)
    save(rows, OTHER, tmp_path)
    assert text_of(tmp_path, "matches-*") == sorted(2 * LINES)
    with pytest.raises(spaseq.EngineError, match="has answers of this query: give another folder, or mode="):
        save(rows, PAIRS, tmp_path)
    save(rows, PAIRS, tmp_path, mode="append")
    assert text_of(tmp_path, "matches-*") == sorted(3 * LINES)
    save(rows.where("kind = 'match'"), PAIRS, tmp_path, mode="overwrite")
    assert text_of(tmp_path, "matches-*") == sorted(2 * LINES)
    assert text_of(tmp_path, "letters-*") == sorted([LATE, BAD])


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize(
    ("form", "extension"), [("nquads", "nq"), ("trig", "trig"), ("messages", "messages")]
)
def test_graphs_are_a_stream_of_events_again(
    spark: SparkSession, tmp_path: Path, form: str, extension: str
) -> None:
    one = frame(spark).coalesce(1).orderBy(F.get_json_object("json", "$.end").cast("int"))
    save(one, PAIRS, tmp_path, form)
    (file,) = tmp_path.glob(f"matches-*.{extension}")
    again = "PREFIX : <http://example.org/> SELECT ?x WITHIN 1 SECONDS FROM STREAM S :out WHERE { SEQ(A) "
    again += "DEFINE GPM A ON S { ?x :then ?y ; :by/:v ?z } }"
    read = list(spaseq.run(again, {"S": str(file)}))
    assert [match.end for match in read] == [match.end for match in FOUND]
    assert text_of(tmp_path, "letters-*.ndjson") == sorted([LATE, BAD])


def test_a_stream_that_crashes_leaves_each_match_once(spark: SparkSession, tmp_path: Path) -> None:
    rows = stream(spark, tmp_path / "in")
    out, checkpoint = tmp_path / "out", tmp_path / "cp"

    def run() -> StreamingQuery:
        return ended(save(rows, PAIRS, out, letters=tmp_path / "dead", checkpoint=checkpoint))

    # Spark also tells of times when nothing was observed, if a machine is slow.
    metrics = [progress.observedMetrics for progress in run().recentProgress]
    said = [observed["answers"] for observed in metrics if "answers" in observed]
    assert sum(row.matches for row in said) == len(LINES)
    assert (sum(row.late for row in said), sum(row.bad for row in said)) == (1, 1)
    before = sorted(out.glob("matches-*"))
    assert len(before) == len(LINES)
    # As if it had died in the middle of the last micro-batch, with more files than it makes next time.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    shutil.copy(before[-1], before[-1].with_name(before[-1].name.replace("-0000.", "-0007.")))
    shutil.copy(before[-1], out / f".draft-{before[-1].name}")
    # What another query has there, of the same micro-batch, and does there now.
    number = before[-1].name.split("-")[2]
    others = [out / f"matches-0123456789ab-{number}-0000.ndjson", out / ".draft-matches-0123456789ab-0"]
    for other in others:
        other.write_text("")
    run()
    assert sorted(out.glob("matches-*")) == sorted([*before, others[0]])
    assert list(out.glob(".draft-*")) == [others[1]]
    assert text_of(out, "matches-*") == sorted(LINES)
    assert text_of(tmp_path / "dead", "letters-*") == sorted([LATE, BAD])
    with pytest.raises(spaseq.EngineError, match="writes with checkpoint"):
        save(rows, PAIRS, out, checkpoint=tmp_path / "another")
    with pytest.raises(spaseq.EngineError, match="where this query writes as a stream"):
        save(frame(spark), PAIRS, out, mode="append")
    shutil.rmtree(checkpoint)
    with pytest.raises(spaseq.EngineError, match="this checkpoint has not made"):
        run()


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    rows = stream(spark, tmp_path / "in")
    out = tmp_path / "out"
    ended(save(rows, PAIRS, out, "parquet", checkpoint=tmp_path / "cp", availableNow=True))
    read = spark.read.parquet(str(out))
    assert sorted(row.json for row in read.where("kind = 'match'").collect()) == sorted(LINES)
    assert sorted(row.json for row in read.where("kind != 'match'").collect()) == sorted([LATE, BAD])
    ends = [row.end for row in expanded(read, "ticks").orderBy("end").collect()]
    assert ends == sorted(match.end for match in FOUND)  # type: ignore[type-var]  # ticks


def test_memory(spark: SparkSession, tmp_path: Path) -> None:
    """Of a query as it runs, up to the watermark: such a stream does not end."""
    text, streams = stocks(tmp_path, 60)
    events = spark.readStream.format("spaseq").option("stream", f"{NS}S").load(str(streams["S"]))
    rows = query_matches(events, text, clock="ticks").writeStream.format("memory").queryName("stocks")
    ended(rows.start())
    done = [match for match in spaseq.run(text, streams) if match.end != 59]
    assert len(done) > 10
    assert sorted(row.json for row in spark.table("stocks").collect()) == sorted(map(line_of, done))


@pytest.mark.long
def test_console(tmp_path: Path) -> None:
    """In its own process, whose output is read; ``long``: CI has ``test_memory`` for a stream's columns."""
    text, streams = stocks(tmp_path, 60)
    (tmp_path / "query.rq").write_text(str(text))
    given = [str(tmp_path / "query.rq"), str(streams["S"]), str(tmp_path / "cp")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.console_session", *given],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [[cell.strip() for cell in row.split("|")] for row in done.stdout.splitlines() if row[:1] == "|"]
    heads = [row for row in rows if row[1] == "start"]
    assert all(head[1:-1] == ["start", "end", "value", "json"] for head in heads)
    shown = [row for row in rows if row[1] != "start"]
    want = list(spaseq.run(text, streams))
    assert sorted(row[4] for row in shown) == sorted(map(line_of, want))
    spans = sorted((int(row[1]), int(row[2])) for row in shown)
    assert spans == sorted((match.start, match.end) for match in want)


def test_messages_for_kafka(spark: SparkSession) -> None:
    rows = answer_messages(frame(spark), "alarms", "dead").collect()
    assert sorted(row.value for row in rows if row.topic == "alarms") == sorted(LINES)
    assert sorted((row.key, row.value) for row in rows if row.topic == "dead") == [
        ("bad", BAD),
        ("late", LATE),
    ]


def test_what_cannot_be_written_is_told(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark)
    with pytest.raises(spaseq.FormatError, match="only CONSTRUCT"):
        save(rows, query("A ; B"), tmp_path, "nquads")
    with pytest.raises(spaseq.FormatError, match="known are ndjson, nquads, trig, messages, parquet"):
        save(rows, PAIRS, tmp_path, "html")
    with pytest.raises(spaseq.EngineError, match="checkpoint="):
        save(stream(spark, tmp_path / "in"), PAIRS, tmp_path / "out")
    with pytest.raises(spaseq.EngineError, match="parquet"):
        save(rows, PAIRS, tmp_path, "parquet", letters=tmp_path)


def test_the_drivers_folder(tmp_path: Path) -> None:
    write = folder_sink(tmp_path / "out", PAIRS, "nquads", letters=tmp_path / "dead")
    for _ in range(2):
        write(4, ANSWERS)
    (file,) = (tmp_path / "out").iterdir()
    assert re.fullmatch(r"matches-[0-9a-f]{12}-00000004.nq", file.name)
    assert text_of(tmp_path / "dead", "letters-*-00000004.ndjson") == sorted([LATE, BAD])
    folder_sink(tmp_path / "out", OTHER)(4, ANSWERS)
    assert len(list((tmp_path / "out").glob("matches-*"))) == 2
