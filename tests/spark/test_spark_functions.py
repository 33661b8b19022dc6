"""Functions of the user's own on Spark: the answers of the embedded engine, and failed calls counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spaseq
from spaseq.language import functions
from spaseq.results.writers._json import line_of
from tests.spark.running import finished, without_n
from tests.streams import NS

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import SparkSession  # noqa: E402  # after the skip

from spaseq.errors import EngineError  # noqa: E402
from spaseq.spark import answers_of, planned  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

GEO = "http://www.opengis.net/ont/geosparql#"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_own", {})


def events(path: Path, *values: str) -> str:
    lines = []
    for tick, value in enumerate(values):
        time = f'"{tick}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(f"<urn:g{tick}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .")
        lines.append(f"<urn:x> <{NS}v> {value} <urn:g{tick}> .")
        lines.append(f"<urn:x> <{NS}k> <urn:k> <urn:g{tick}> .")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def query(first: str, second: str) -> spaseq.Query:
    return spaseq.prepare(
        f"PREFIX : <{NS}> PREFIX geo: <{GEO}> PREFIX geof: <http://www.opengis.net/def/function/geosparql/> "
        f"SELECT ?v ?w WITHIN 5 SECONDS SLIDING PARTITION BY ?k FROM STREAM S <{NS}s> "
        f"WHERE {{ SEQ(A , B) DEFINE GPM A ON S {{ ?x :v ?v ; :k ?k . FILTER({first}) }} "
        f"DEFINE GPM B ON S {{ ?x :v ?w ; :k ?k . FILTER({second}) }} }}"
    )


@pytest.mark.parametrize(("vectorized", "is_stream"), [(False, True), (True, False)])
def test_failed_calls_are_counted_and_told_once(
    spark: SparkSession, tmp_path: Path, vectorized: bool, is_stream: bool
) -> None:
    def f(value: float) -> float:
        return float(12 / (value - 3))

    def array(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.array([f(value) for value in values.tolist()])

    spaseq.function(f"{NS}f", array if vectorized else f, vectorized=vectorized)
    text = query(":f(?v) > 2", ":f(?w) > ?v")
    path = events(
        tmp_path / "s.nq", *(f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in (4, 3, 4, 5))
    )
    with pytest.warns(spaseq.SpaseqWarning, match="failed"):
        expected = [line_of(match) for match in spaseq.run(text, {"S": path})]
    checkpoint = tmp_path / "checkpoint" if is_stream else None
    plan = planned(spark, text, {"S": path}, checkpoint=checkpoint)
    answers = answers_of(plan)
    with pytest.warns(spaseq.SpaseqWarning, match=r"(?s)f> failed.*ZeroDivisionError") as told:
        rows = finished(answers, tmp_path / "checkpoint")[0] if is_stream else answers.collect()
    assert without_n([row.json for row in rows if row.kind == "match"]) == without_n(expected)
    assert {row.kind for row in rows} == {"match"}
    assert len([warning for warning in told if "failed" in str(warning.message)]) == 1
    assert plan.failed is not None
    assert plan.failed.value[f"{NS}f"][0] == 2


def test_geometries(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("shapely")
    zone = "'POLYGON((4 52, 5 52, 5 53, 4 53, 4 52))'^^geo:wktLiteral"
    text = query(f"!geof:sfWithin(?v, {zone})", f"geof:sfWithin(?w, {zone})")
    path = events(
        tmp_path / "s.nq", *(f'"POINT({x} 52.5)"^^<{GEO}wktLiteral>' for x in (3, 4.5, 6, 4.6, 4.7))
    )
    expected = [line_of(match) for match in spaseq.run(text, {"S": path})]
    rows = answers_of(planned(spark, text, {"S": path})).collect()
    assert len(expected) == 2
    assert without_n([row.json for row in rows]) == without_n(expected)


def test_a_checkpoint_takes_nothing_that_is_not_deterministic(spark: SparkSession, tmp_path: Path) -> None:
    spaseq.function(f"{NS}f", lambda _: 7, deterministic=False)
    path = events(tmp_path / "s.nq", '"4"', '"5"')
    with pytest.raises(EngineError, match="a query with a checkpoint cannot have it in a pattern or FILTER"):
        planned(spark, query(":f(?v) > 2", "true"), {"S": path}, checkpoint=tmp_path / "checkpoint")
