"""In no ordinary configuration is a result lost or doubled, and what is left out is told of."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import spaseq
from spaseq.results.writers._json import line_of
from tests.spark.running import without_n
from tests.streams import NS, query

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402  # after the skip

from spaseq.spark import answers, derived, events, matches, run  # noqa: E402
from spaseq.spark.source._rows import EVENTS  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PAIRS = query("A ; B", "5 SECONDS SLIDING", {"A": "?a :k ?k .", "B": "?b :k ?k ."}, partition="?k")
XSD = "http://www.w3.org/2001/XMLSchema#"
TEMPLATE = f"PREFIX : <{NS}> <{NS}e{{id}}> a <{NS}{{kind}}> ; :v ?id ; :k <{NS}{{key}}> ."


def trades(spark: SparkSession, rows: list[tuple[int, int, str, str]]) -> DataFrame:
    return spark.createDataFrame(rows, "id int, at long, kind string, key string")


def lifted(rows: DataFrame, stream: str = f"{NS}S", **more: str) -> DataFrame:
    return events(rows, stream=stream, time="at", template=TEMPLATE, graph=f"{NS}g{{id}}", **more)


ROWS = [(i, i, "ab"[i % 2], "kl"[i // 2 % 2]) for i in range(12)]


def embedded(rows: list[tuple[int, int, str, str]]) -> list[str]:
    engine = spaseq.Engine()
    handle = engine.register(PAIRS)
    for i, at, kind, key in rows:
        turtle = f"@prefix : <{NS}> . :e{i} a :{kind} ; :v {i} ; :k :{key} ."
        engine.push(f"{NS}S", turtle, at, name=f"{NS}g{i}")
    engine.close()
    return [line_of(match) for match in handle.matches()]


# --- clocks and streams ---------------------------------------------------------------------------


def test_the_clock_is_that_of_the_column(spark: SparkSession) -> None:
    got = matches(lifted(trades(spark, ROWS), n="id"), PAIRS)
    want = without_n(embedded(ROWS))
    assert len(want) > 4
    assert without_n(row.json for row in got.collect()) == want
    assert dict(got.dtypes)["end"] == "bigint"
    with pytest.raises(spaseq.EngineError, match="clock='instants', but the times of these events are ticks"):
        matches(lifted(trades(spark, ROWS), n="id"), PAIRS, clock="instants")


def test_what_matches_leaves_out_is_told(spark: SparkSession) -> None:
    """As where nobody knows of a clock before the workers do."""
    unknown = spark.createDataFrame(lifted(trades(spark, ROWS), n="id").collect(), EVENTS)
    assert without_n(row.json for row in matches(unknown, PAIRS).collect()) == without_n(embedded(ROWS))
    with pytest.warns(spaseq.SpaseqWarning, match="left out of matches.*time is in ticks"):
        assert matches(unknown, PAIRS, clock="instants").collect() == []
    letters = answers(unknown, PAIRS, clock="instants").collect()
    assert [row.kind for row in letters] == ["bad"] * len(ROWS)


@pytest.mark.parametrize("correlated", [False, True])
def test_ill_typed_literals_are_reported(spark: SparkSession, tmp_path: Path, correlated: bool) -> None:
    """Each stream and predicate once, whether a filter of one GPM reads them or one between GPMs."""
    (path := tmp_path / "s.nq").write_text(
        "".join(
            f'<{NS}g{i}> <http://www.w3.org/ns/prov#generatedAtTime> "{i}"^^<{XSD}integer> .\n'
            f"<{NS}e{i}> <{NS}k> <{NS}k1> <{NS}g{i}> .\n"
            f'<{NS}e{i}> <{NS}v> "{["2,5", "3.5", "4,5"][i % 3]}"^^<{XSD}decimal> <{NS}g{i}> .\n'
            for i in range(30)
        )
    )
    text = f"""
        PREFIX : <{NS}>
        SELECT ?a ?b WITHIN 5 SECONDS SLIDING PARTITION BY ?k FROM STREAM S <{NS}S>
        WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ ?x :k ?k ; :v ?a }}
          DEFINE GPM B ON S {{ ?y :k ?k ; :v ?b . FILTER({"?b >= ?a" if correlated else "?b > 0"}) }} }}"""
    with pytest.warns(spaseq.SpaseqWarning, match=rf"<{NS}S>, event \d+: <{NS}v> is .*ill-typed") as heard:
        got = run(spark, text, {f"{NS}S": str(path)}).where("kind = 'match'").count()
    assert got == (9 if correlated else 28)
    assert len([w for w in heard if "ill-typed" in str(w.message)]) == 1


def test_a_stream_that_the_query_does_not_read(spark: SparkSession) -> None:
    here = trades(spark, ROWS)
    said = rf"no stream <{NS}S3> \(did you mean <{NS}S>\?\)"
    with pytest.raises(spaseq.SourceError, match=said):
        matches(lifted(here, f"{NS}S3", n="id"), PAIRS)
    both = lifted(here, n="id").union(lifted(here, f"{NS}S3", n="id"))
    with pytest.warns(spaseq.SpaseqWarning, match="12 malformed events or more") as heard:
        got = matches(both.coalesce(1), PAIRS).collect()
    assert without_n(row.json for row in got) == without_n(embedded(ROWS))
    assert f"{NS}S3" in str(heard[0].message)
    assert heard[0].filename == __file__


def test_ties_are_told_of_and_have_an_order(spark: SparkSession) -> None:
    """``A ; B`` of one time, however the rows are spread."""
    rows = [(i, i // 6, "ab"[i % 2], "k") for i in range(36)]
    found = []
    for seed in range(2):
        random.Random(seed).shuffle(rows)
        with pytest.warns(spaseq.SpaseqWarning, match="have the time of others, and no n= says"):
            got = matches(lifted(trades(spark, rows).repartition(1 + seed)), PAIRS).collect()
        found.append(sorted(row.json for row in got))
    assert found[0] == found[1]
    assert len(found[0]) > 10
    assert all(event["n"] for line in found[0] for event in json.loads(line)["events"]["A"])


def test_derived_events_are_on_the_clock_of_their_matches(spark: SparkSession) -> None:
    """That of the column of their ends, which no caller has to repeat."""
    making = query("A ; B", head=f"REGISTER STREAM <{NS}out> AS CONSTRUCT {{ ?a :then ?b }}")
    for kind, clock, other in (("long", "ticks", "instants"), ("timestamp", "instants", "ticks")):
        found = spark.createDataFrame([], f"end {kind}, json string, graph string")
        made = derived(found, making)
        assert dict(made.dtypes)["time"] == "bigint"
        assert derived(found, making, clock=clock).schema == made.schema
        with pytest.raises(
            spaseq.EngineError, match=f"clock='{other}', but the times of these matches are {clock}"
        ):
            derived(found, making, clock=other)


def test_no_buckets_are_an_error(spark: SparkSession) -> None:
    with pytest.raises(spaseq.EngineError, match="buckets=0: at least one"):
        matches(lifted(trades(spark, ROWS), n="id"), PAIRS, buckets=0)
