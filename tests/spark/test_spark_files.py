"""Locations of files, as sources, outputs and checkpoints have them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from spaseq import SourceError, SourceOptions  # after the skip
from spaseq.spark import folder_sink, kafka_events, run
from spaseq.spark.source._files import delete, info, join, listed, names, normal, opened, write
from spaseq.spark.source.datasource import SpaseqDataSource
from tests.spark.running import finished
from tests.streams import query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceStreamReader

# PySpark's sockets to its JVM and workers are closed when they are collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PAIRS = query("A ; B", "5 SECONDS SLIDING")


def reader(location: str | Path, **options: str) -> DataSourceStreamReader:
    """What Spark makes in a new process; its first call says whether there is a checkpoint to go on with."""
    source = SpaseqDataSource({"path": str(location), "stream": "urn:s", **options})
    return source.streamReader(None)  # type: ignore[arg-type]  # it has its own schema


def planned(here: DataSourceStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    """The pieces of a micro-batch: file and bytes."""
    tasks: list[Any] = list(here.partitions(start, end))
    rows = [row for task in tasks for row in task.rows if row["ended"] is None]
    return [(row["path"].rpartition("/")[2], row["begin"], row["end"], row["first"]) for row in rows]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A folder with a stream of two files of 10 events, 100 bytes each."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.ndjson", "b.ndjson"):
        (folder / name).write_text(("x" * 99 + "\n") * 10)
    return folder


SMALL = {"context": "c", "pieceBytes": "99", "maxBytesPerTrigger": "300"}


def test_a_restart_goes_on_where_spark_says(lines: Path) -> None:
    """Without an option that says where that is: Spark plans an empty range at its last offset first."""
    first = reader(lines, **SMALL)
    zero, one = first.initialOffset(), first.latestOffset()
    two = first.latestOffset()
    done = planned(first, zero, one) + planned(first, one, two)
    again = reader(lines, **SMALL)
    assert planned(again, two, two) == []
    # What was logged and not committed is planned again, and what follows is new.
    assert planned(again, one, two) == done[-3:]
    three = again.latestOffset()
    assert planned(again, two, three)[0] == ("a.ndjson", 600, 700, 600)
    assert done == [("a.ndjson", at, at + 100, at) for at in range(0, 600, 100)]


def test_a_logged_batch_is_planned_again_with_its_pieces(lines: Path) -> None:
    first = reader(lines, **SMALL)
    zero, one = first.initialOffset(), first.latestOffset()
    done = planned(first, zero, one)
    again = reader(lines, **SMALL | {"pieceBytes": "1000"})
    assert planned(again, one, one) == []
    assert planned(again, zero, one) == done
    assert planned(again, one, again.latestOffset()) == [("a.ndjson", 300, 1000, 300)]


def test_a_checkpoint_of_another_stream_is_an_error(lines: Path, tmp_path: Path) -> None:
    one = reader(lines, **SMALL).latestOffset()
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(SourceError, match=r"other: the checkpoint is of another stream, .*in/a\.ndjson"):
        reader(other, **SMALL).partitions(one, one)
    with pytest.raises(SourceError, match="the checkpoint is of other streams, urn:s, than urn:t"):
        reader(lines, **SMALL | {"stream": "urn:t"}).partitions(one, one)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Path.unlink, r"a\.ndjson: deleted after 300 of its 1,000 bytes were read"),
        (lambda path: os.truncate(path, 500), r"a\.ndjson: shortened after 300 of its 1,000"),
        (lambda path: os.utime(path, (7, 7)), r"a\.ndjson: changed after 300 of its 1,000"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_named(
    lines: Path, change: Callable[[Path], None], told: str
) -> None:
    one = reader(lines, **SMALL).latestOffset()
    change(lines / "a.ndjson")
    with pytest.raises(SourceError, match=told):
        reader(lines, **SMALL).partitions(one, one)


def test_a_file_that_is_read_whole_may_not_grow(tmp_path: Path) -> None:
    """Its events would be read twice, as Spark's offsets are bytes."""
    path = tmp_path / "a.nt"
    path.write_text("<urn:a> <urn:v> <urn:b> .\n")
    one = reader(tmp_path, by="subject").latestOffset()
    again = reader(tmp_path, by="subject")
    assert planned(again, one, one) == []
    with path.open("a") as file:
        file.write("<urn:b> <urn:v> <urn:b> .\n")
    with pytest.raises(SourceError, match=r"a\.nt: it grew after its first 26 bytes .* to new files"):
        again.latestOffset()


def test_a_file_that_was_read_may_go(lines: Path) -> None:
    """Bytes before it count all the same, so that arrival numbers grow on."""
    whole = SMALL | {"maxBytesPerTrigger": "1000"}
    one = reader(lines, **whole).latestOffset()
    (lines / "a.ndjson").unlink()
    again = reader(lines, **whole)
    again.partitions(one, one)
    assert planned(again, one, again.latestOffset())[0] == ("b.ndjson", 0, 100, 1000)


def test_bytes_that_are_gone_are_an_error(lines: Path) -> None:
    first = reader(lines, **SMALL)
    (task,) = first.partitions(first.initialOffset(), first.latestOffset())[-1:]
    path = lines / "a.ndjson"
    for change, told in ((lambda: os.truncate(path, 150), "shortened"), (path.unlink, "deleted")):
        change()
        with pytest.raises(SourceError, match=rf"a\.ndjson: {told} before bytes 200 to 300 were read"):
            list(first.read(task))


def test_an_end_is_not_for_ever(lines: Path) -> None:
    """In its own process it is; the next one goes on with the files that came since."""
    first = reader(lines, context="c")
    one = first.latestOffset()
    (lines / "c.ndjson").write_text("x" * 50)
    assert first.latestOffset() == one
    again = reader(lines, context="c")
    again.partitions(one, one)
    two = again.latestOffset()
    assert planned(again, one, two) == [("c.ndjson", 0, 50, 2000)]
    assert again.latestOffset() == two
    following = reader(lines, context="c", follow="true")
    following.partitions(two, two)
    three = following.latestOffset()
    assert planned(following, two, three) == []
    (lines / "d.ndjson").write_text("x" * 50)
    assert planned(following, three, following.latestOffset()) == [("d.ndjson", 0, 50, 2050)]


@pytest.mark.parametrize("scheme", ["hdfs", "abfss", "gs"])
def test_other_schemes_are_refused_by_name(scheme: str) -> None:
    there = f"{scheme}://host/folder"
    with pytest.raises(SourceError, match=f"files of {scheme}: are neither read nor written"):
        folder_sink(there, PAIRS)
    with pytest.raises(SourceError, match=f"files of {scheme}:"):
        listed(there)
    with pytest.raises(SourceError, match=f"files of {scheme}:"):
        reader(there).latestOffset()


def test_what_is_no_file_is_refused_before_spark_is_asked() -> None:
    none = cast("SparkSession", None)
    with pytest.raises(SourceError, match="files of hdfs: are neither read nor written"):
        run(none, PAIRS, {"S": "hdfs://host/folder"})
    with pytest.raises(SourceError, match="files of kafka:"):
        run(none, PAIRS, {"S": "kafka://broker/topic"})
    with pytest.raises(SourceError, match="names a host, elsewhere: write file:///PATH"):
        run(none, PAIRS, {"S": "file://elsewhere/a.nq"})


def test_a_file_is_read_by_its_url(tmp_path: Path) -> None:
    (tmp_path / "a b.nq").write_text("")
    for location in ("/a%20b.nq", "", "/*.nq"):
        assert list(listed(f"file:{tmp_path}{location}")) == [str(tmp_path / "a b.nq")]
    for before in ("file:", "file://", "file://localhost"):
        assert normal(f"{before}{tmp_path}") == str(tmp_path)
    for wrong in ("file://elsewhere/a", "file://ticks"):
        with pytest.raises(SourceError, match="names a host"):
            normal(wrong)
    assert normal("s3a://ticks/may/") == "s3a://ticks/may/"


@pytest.mark.slow
def test_files_are_there_as_a_whole(tmp_path: Path) -> None:
    folder = normal(tmp_path / "new")
    path = join(folder, "a")
    for text in (b"first", b"second"):
        write(path, text)
        with opened(path) as file:
            assert file.read() == text
    assert list(names(folder)) == [path]
    delete(path)
    delete(path)
    assert info(path) is None


def test_messages_with_options_that_do_not_fit_are_refused_before_spark_is_asked() -> None:
    topics = {"urn:s": "trades"}
    for options, told in (
        (SourceOptions(by="subject"), r"how are messages written\? Say SourceOptions\(format="),
        (SourceOptions(format="nq", by="subject"), "Kafka: by=subject is for nt, ttl, jelly, not for nq"),
    ):
        with pytest.raises(SourceError, match=told):
            kafka_events(None, "", topics, options=options)  # type: ignore[arg-type]


RISE = """PREFIX : <urn:>
    SELECT ?v ?w WITHIN 9 SECONDS SLIDING PARTITION BY ?k FROM STREAM S <urn:s> WHERE { SEQ(A , B)
      DEFINE GPM A ON S { [] :k ?k ; :v ?v } DEFINE GPM B ON S { [] :k ?k ; :v ?w . FILTER(?w > ?v) } }"""


def test_a_folder_that_is_followed_ends_events_by_subject(spark: SparkSession, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()
    found = []
    for name, times in (("a.ttl", (1, 2)), ("b.ttl", (3, 4))):
        lines = [f"<urn:{t}> <urn:at> {t} . <urn:{t}> <urn:v> {t} ; <urn:k> 1 .\n" for t in times]
        (folder / name).write_text("".join(lines))
        frame = run(spark, RISE, {"S": f"{folder}?by=subject&time=<urn:at>"}, checkpoint=checkpoint)
        rows, _ = finished(frame, checkpoint)
        found.append(sorted((json.loads(row.json)["start"], row.kind) for row in rows))
    assert found == [[(1, "match")], [(2, "match"), (3, "match")]]
