"""What happens in Spark's Python processes besides the stages: they start with all loaded, and stay light."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spaseq
from spaseq.events import Clock
from spaseq.results.writers._json import line_of
from spaseq.sources import BadEvent, SourceOptions, parse_source
from spaseq.spark.sessions import told
from spaseq.spark.source._blocks import options_text, read_row
from spaseq.spark.stages._bucket import Bucket
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._stateless import Stateless
from spaseq.terms.dictionary import Dictionary

NS = "http://example.org/"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"

OBJECTS = [
    '"5"^^<' + XSD + "integer>",
    '"a \\"b\\"\\n\\\\"',
    '"süß"@de-AT',
    "<urn:ö>",
    "_:x",
    '"1.50"^^<urn:own>',
]


def n_quads(time: str) -> bytes:
    """Events, each with another object; the graph of the last one is a blank node."""
    lines = []
    for number, value in enumerate(OBJECTS):
        graph = "_:g" if number == len(OBJECTS) - 1 else f"<{NS}g{number}>"
        lines += [f"{graph} <{PROV}> {time.format(number)} .", f"<urn:k> <urn:v> {value} {graph} ."]
    return "\n".join([*lines, ""]).encode()


def staged(query: spaseq.Query, clock: Clock, data: bytes) -> list[str]:
    """The lines of the stages."""
    job = Job(str(query), clock, 0, (0,))
    stage, bucket = Stateless(job), Bucket(job)
    options = options_text(SourceOptions(), "nq")
    block = {"stream": f"{NS}S", "first": 0, "options": options, "data": data}
    for passed in stage.run(read_row(block, stage.dictionary, []), []):
        for piece in passed.pieces:
            bucket.add(piece.data, 0)
    return list(bucket.close())


def test_a_block_ends_its_events_as_the_options_say() -> None:
    data = b"".join(b"<urn:%d> <urn:v> 1 . <urn:%d> <urn:in> [ <urn:at> %d ] .\n" % (n, n, n) for n in (1, 2))
    options = parse_source("x.ttl?by=subject&time=<urn:in>/<urn:at>")[1]
    block = {"stream": f"{NS}S", "first": 0, "options": options_text(options, "ttl"), "data": data}
    letters: list[BadEvent] = []
    batches = read_row(block, Dictionary(), letters)
    assert [time for batch in batches for time in batch.time.tolist()] == [1, 2]
    assert letters == []


@pytest.mark.parametrize("clock", list(Clock))
@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("SELECT *", ""),
        ("SELECT ?b", ""),
        ("SELECT DISTINCT ?k", ""),
        ("SELECT (STR(?a) AS ?text)", ""),
        ("SELECT ?b", "ORDER BY ?b"),
        ("SELECT ?a", "LIMIT 3"),
        ("ASK", ""),
        ("CONSTRUCT { ?k <urn:w> ?b }", ""),
    ],
)
def test_a_line_is_that_of_the_match(clock: Clock, head: str, tail: str) -> None:
    query = spaseq.prepare(f"""{head} WITHIN 3 SECONDS SLIDING PARTITION BY ?k FROM STREAM S <{NS}S>
        WHERE {{ SEQ(A ; B? ; C) DEFINE GPM A ON S {{ ?k <urn:v> ?a }}
          DEFINE GPM B ON S {{ ?k <urn:v> ?b FILTER(isLiteral(?b)) }}
          DEFINE GPM C ON S {{ ?k <urn:v> ?c }} }} {tail}""")
    instant = f'"2026-01-01T00:00:0{{}}.5Z"^^<{XSD}dateTime>'
    data = n_quads(instant if clock is Clock.INSTANTS else f'"{{}}"^^<{XSD}integer>')
    source = spaseq.Source(f"{NS}S", io.BytesIO(data), SourceOptions(format="nq"))
    want = [line_of(match) for match in spaseq.run(query, {"S": source})]
    got = staged(query, clock, data)
    assert without_labels(got) == without_labels(want)
    assert len(want) >= (1 if head == "ASK" else 3)


def without_labels(lines: list[str]) -> list[str]:
    """Labels of blank nodes are new ones in each run."""
    return sorted(re.sub(r'("bnode","value":"|_:)\w+', r"\1x", line) for line in lines)


def test_tasks_leave_no_importers_of_archives(tmp_path: Path) -> None:
    """In a process of its own, since what is there then stays there."""
    script = """
import gc, sys, zipfile
from zipimport import zipimporter
from spaseq.spark._workers import freeze_worker
with zipfile.ZipFile("a.zip", "w") as archive:
    archive.writestr("first.py", "")
    archive.writestr("second.py", "")
sys.path.append("a.zip")
import first
assert any(isinstance(i, zipimporter) for i in sys.path_importer_cache.values())
freeze_worker()
assert not any(isinstance(i, zipimporter) for i in sys.path_importer_cache.values())
frozen = gc.get_freeze_count()
assert frozen > 1000
import second
freeze_worker()
assert gc.get_freeze_count() == frozen
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=60)


def test_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    """What ``spark-submit --py-files`` hands on is not."""
    package = Path(spaseq.__file__).parent
    shutil.make_archive(str(tmp_path / "a"), "zip", package.parent, package.name)
    script = "import sys; sys.path.insert(0, 'a.zip'); import spaseq.terms._table_kernel"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert re.search("ImportError: .* not from inside an archive: unpack .*a.zip .*--archives", done.stderr)


def test_processes_that_only_plan_load_little() -> None:
    """Spark starts some for each query."""
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    modules = "spaseq.spark.source.datasource, spaseq.spark.stages._processor"
    script = f"import sys, {modules}; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_daemon_loads_what_the_stages_run() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    from spaseq.spark.daemon import exercise

    assert len(exercise()) > 3


def test_what_spark_says_of_itself_is_left_out() -> None:
    said = b"""Streaming TransformWithStateInPandas Python worker starting execution.

error: one
Exception in thread "stateConnectionListenerThread" org.apache.spark.SparkException: crashed
\tat org.apache.spark.X
Caused by: java.nio.channels.ClosedChannelException
\t... 3 more
error: two
Caused by: nothing of the kind
"""
    heard = list(told(said.splitlines(keepends=True)))
    assert heard == [b"error: one\n", b"error: two\n", b"Caused by: nothing of the kind\n"]


def test_spark_connect_is_refused() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    from spaseq.spark.sessions import prepare_session

    connected = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(spaseq.EngineError, match="Spark Connect"):
        prepare_session(connected)


def test_a_task_writes_answers_as_they_come(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")
    import pyarrow as pa

    from spaseq.spark.sinks.files import AnswerFiles, OutputForm, Outputs

    query = spaseq.prepare(f"""SELECT * WITHIN 3 SECONDS FROM STREAM S <{NS}S>
        WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ ?k <urn:v> ?a }} DEFINE GPM B ON S {{ ?k <urn:v> ?b }} }}""")
    folder = str(tmp_path)
    files = AnswerFiles(Outputs(str(query), folder, folder), OutputForm.NDJSON)
    there: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(20):
            there.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
            yield pa.RecordBatch.from_pydict(
                {"kind": ["match", "late"] * 1_000, "json": [f'"{"x" * 100}"'] * 2_000}
            )

    written = files.drafts(batches(), "run")
    assert there[-1] > 18 * 2_000 * 100
    files.commit([(draft["what"], draft["path"]) for draft in written], 0)
    sizes = {path.name.partition("-")[0]: path.stat().st_size for path in tmp_path.glob("[ml]*")}
    assert sizes == dict.fromkeys(("matches", "letters"), 20 * 1_000 * 103)
