"""Columns in, columns out: what a template may name, and what a DataFrame of matches has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import spaseq
from tests.spark.running import finished, without_n
from tests.streams import NS

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

import pyarrow as pa  # noqa: E402  # after the skip
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql.functions import current_timestamp  # noqa: E402
from pyspark.sql.types import DoubleType, StringType, StructField, StructType  # noqa: E402

from spaseq.results.writers._json import line_of  # noqa: E402
from spaseq.spark import answers, events, matches, save  # noqa: E402
from spaseq.spark.sinks._columns import Columns  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:the query runs as one group"),
    pytest.mark.filterwarnings("ignore:.* events or more have the time of others"),
]

VALUES = f"[] <{NS}v> ?"
PAIRS = (
    "SELECT ?v1 ?v2 ?k WITHIN 9 SECONDS SLIDING PARTITION BY ?k FROM STREAM S <urn:s> WHERE { SEQ(A , B) "
    f"DEFINE GPM A ON S {{ {VALUES}v1 ; <{NS}k> ?k }} DEFINE GPM B ON S {{ {VALUES}v2 ; <{NS}k> ?k }} }}"
)
TEMPLATE = f"<{NS}{{id}}> <{NS}v> ?v ; <{NS}k> ?k ."


def rows(spark: SparkSession, count: int = 8) -> DataFrame:
    data = [(i, f"e{i}", i / 2 if i % 5 else None, f"k{i % 2}") for i in range(count)]
    return spark.createDataFrame(data, "at long, id string, v double, k string")


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize(
    "columns",
    [
        "v1 double, k string",
        StructType([StructField("v1", DoubleType()), StructField("k", StringType())]),
        {"v1": "double", "k": StringType()},
    ],
    ids=["ddl", "schema", "mapping"],
)
def test_columns_of_matches(spark: SparkSession, columns: Columns) -> None:
    found = matches(events(rows(spark), stream="urn:s", time="at", template=TEMPLATE), PAIRS, columns=columns)
    assert [found.schema[name].dataType for name in ("v1", "k")] == [DoubleType(), StringType()]
    assert sorted((row.v1, row.k) for row in found.collect()) == [
        (0.5, "k1"),
        (1.0, "k0"),
        (1.5, "k1"),
        (2.0, "k0"),
    ]


def test_names_alone_are_texts(spark: SparkSession) -> None:
    lifted = events(rows(spark), stream="urn:s", time="at", template=TEMPLATE)
    found = matches(lifted, PAIRS, columns=["v1", "k"], lateness="10 seconds")
    assert sorted((row.v1, row.k) for row in found.collect()) == [
        ("0.5", "k1"),
        ("1", "k0"),
        ("1.5", "k1"),
        ("2", "k0"),
    ]


def test_keys_come_back_as_the_columns_values(spark: SparkSession) -> None:
    keys = ["key 17", "a+b", "ü/<>", "a%41"]
    data = [(i, keys[i // 2], i / 2) for i in range(8)]
    frame = spark.createDataFrame(data, "at long, id string, v double")
    template = f"<{NS}{{id}}/{{at}}> <{NS}v> ?v ; <{NS}k> <urn:key/{{id}}/x> ."
    lifted = events(frame, stream="urn:s", time="at", template=template)
    found = matches(lifted, PAIRS, columns={"k": "{id}", "v1": "{v}", "v2": "double"})
    assert [found.schema[name].dataType for name in ("k", "v1")] == [StringType(), DoubleType()]
    joined = found.join(frame, (found.k == frame.id) & (found.v1 == frame.v))
    assert sorted(row.id for row in joined.collect()) == sorted(keys)
    with pytest.raises(spaseq.EngineError, match=r"made of \{at\} alone, but of \{id\}, \{v\}"):
        matches(lifted, PAIRS, columns={"k": "{at}"})
    with pytest.raises(spaseq.EngineError, match="filter before events"):
        matches(lifted.where("time > 0"), PAIRS, columns={"k": "{id}"})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"columns": "v1"}, "'<v1>' is not read: name each column and its type, as in 'price double"),
        ({"columns": {"v1": "dubble"}}, "'dubble' is not read: write a type of Spark's"),
        ({"columns": ["v3"]}, r"selects no \?v3; it selects"),
        ({"lateness": "10 parsecs"}, "lateness=: '10 parsecs' is not a duration"),
        ({"latency": "fast"}, "latency=: 'fast' is not a duration"),
    ],
)
def test_options_that_are_wrong(spark: SparkSession, options: dict[str, object], told: str) -> None:
    lifted = events(rows(spark), stream="urn:s", time="at", template=TEMPLATE)
    with pytest.raises(spaseq.EngineError, match=told):
        matches(lifted, PAIRS, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="latenes"):
        answers(lifted, PAIRS, latenes="1s")  # type: ignore[call-arg]


def test_fields_of_structs_and_names_with_spaces(spark: SparkSession) -> None:
    """They are the columns of the same values."""
    flat = rows(spark)
    nested = flat.selectExpr("at", "struct(id, struct(v) AS in) AS st", "k AS `the key`")
    template = f"<{NS}{{st.id}}> <{NS}v> ?st.in.v ; <{NS}k> ?{{the key}}."
    plain = events(flat, stream="urn:s", time="at", template=TEMPLATE, graph=f"{NS}g/{{k}}", n="at")
    named = events(nested, stream="urn:s", time="at", template=template, graph=f"{NS}g/{{the key}}", n="at")
    want = [row.json for row in matches(plain, PAIRS).collect()]
    assert sorted(row.json for row in matches(named, PAIRS).collect()) == sorted(want)
    assert len(want) == 4
    assert f"{NS}g/k1" in "".join(want)


@pytest.mark.parametrize(
    ("kind", "term"),
    [("array(v)", "?it"), ("map(id, v)", "?it"), ("struct(v)", "?it"), ("array(v)", f"<{NS}{{it}}>")],
)
def test_parts_are_refused_when_the_plan_is_made(spark: SparkSession, kind: str, term: str) -> None:
    frame = rows(spark).selectExpr("at", f"{kind} AS it")
    with pytest.raises(spaseq.SourceError, match=r"\?it is a column of .*, and a term has one value"):
        events(frame, stream="urn:s", time="at", template=f"<{NS}e> <{NS}v> {term} .")


def test_a_dataframe_without_events(spark: SparkSession) -> None:
    frame = rows(spark)
    told = r"holds no events \(no column 'stream'\): make events of its rows by events\(df, stream="
    for asked in (matches, answers):
        with pytest.raises(spaseq.SourceError, match=told):
            asked(frame, PAIRS)
    lifted = events(frame, stream="urn:s", time="at", template=TEMPLATE)
    lifted = lifted.withColumn("time", current_timestamp())
    with pytest.raises(spaseq.SourceError, match=r"\('time' is a column of timestamp\)"):
        matches(lifted, PAIRS)


def test_columns_give_the_events_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """As ``spaseq.table`` does, read at once or as events in between; what is no event is a letter."""
    data = [(i if i != 7 else None, f"e{i}", None if i == 4 else i / 2, f"k {i % 2}") for i in range(60)]
    schema = "at long, id string, v double, k string"
    frame = spark.createDataFrame(data, schema)
    template = f"<{NS}{{id}}> <{NS}v> ?v . <{NS}{{id}}> <{NS}k> ?k . [] <{NS}of> <{NS}{{id}}> ."
    lifted = events(frame, stream="urn:s", time="at", template=template, graph=f"{NS}g/{{id}}", n="at")
    between = lifted.where("stream IS NOT NULL")
    columns = dict(zip(("at", "id", "v", "k"), map(list, zip(*data, strict=True)), strict=True))
    table = spaseq.table(pa.table(columns), time="at", template=template, graph=f"{NS}g/{{id}}")
    want = without_n(line_of(match) for match in spaseq.run(PAIRS, {"S": table}, dead_letters=print))
    assert len(want) > 50
    for some in (lifted, between):
        found = answers(some, PAIRS).collect()
        assert without_n(row.json for row in found if row.kind == "match") == want
        (letter,) = [json.loads(row.json) for row in found if row.kind == "bad"]
        assert letter["reason"] == "its time is null"
        assert '"id": "e7"' in letter["payload"]
    frame.coalesce(1).write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema(schema).parquet(f"{tmp_path}/in")
    lifted = events(stream, stream="urn:s", time="at", template=template, n="at")
    got, _ = finished(answers(lifted, PAIRS), tmp_path / "cp")
    ends = sorted(json.loads(row.json)["end"] for row in got if row.kind == "match")
    assert ends[:40] == sorted(json.loads(line)["end"] for line in want)[:40]


def test_a_checkpoint_that_is_named_late(spark: SparkSession, tmp_path: Path) -> None:
    """``save`` tells what a checkpoint refuses before the stream starts, and other prefixes go on."""
    rows(spark).coalesce(1).write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema("at long, id string, v double, k string").parquet(f"{tmp_path}/in")
    lifted = events(stream, stream="urn:s", time="at", template=TEMPLATE, n="at")

    def saved(text: str) -> None:
        running = save(answers(lifted, text), text, tmp_path / "out", checkpoint=tmp_path / "cp")
        assert running is not None
        running.processAllAvailable()
        running.stop()

    saved(PAIRS)
    saved(f"PREFIX x: <{NS}>\n# the same\n" + PAIRS.replace(f"<{NS}k>", "x:k").replace("DEFINE", "\n define"))
    with pytest.raises(
        spaseq.EngineError, match=r"another query, which has 'WITHIN 9 .* this one has 'WITHIN 8"
    ):
        saved(PAIRS.replace("WITHIN 9", "WITHIN 8"))


def test_stateful_operators_behind_matches(spark: SparkSession, tmp_path: Path) -> None:
    """On ticks Spark gives them no watermark: a warning says so when the stream starts."""
    schema = "at long, id string, v double, k string"
    rows(spark).write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema(schema).parquet(f"{tmp_path}/in")
    found = matches(events(stream, stream="urn:s", time="at", template=TEMPLATE, n="at"), PAIRS)
    writer = found.groupBy("end").count().writeStream.format("memory").queryName("counts")
    with pytest.warns(
        spaseq.SpaseqWarning, match="no event time for Spark .* so Aggregate behind them returns no rows"
    ):
        running = writer.outputMode("complete").option("checkpointLocation", f"{tmp_path}/cp").start()
    running.stop()
    marked = stream.selectExpr("*", "timestamp_seconds(at) AS t").withWatermark("t", "1 second")
    with pytest.raises(spaseq.EngineError, match="have a watermark already: leave withWatermark out"):
        matches(events(marked, stream="urn:s", time="t", template=TEMPLATE, n="at"), PAIRS)
