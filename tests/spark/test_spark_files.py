"""Locations of files, as sources, outputs and checkpoints have them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from spaseq import SourceError  # after the skip
from spaseq.spark import folder_sink
from spaseq.spark._files import delete, info, join, names, normal, opened, write
from spaseq.spark._pieces import files
from spaseq.spark.source import SpaseqDataSource
from tests.streams import query

PAIRS = query("A ; B", "5 SECONDS SLIDING")


@pytest.mark.parametrize("scheme", ["hdfs", "abfss", "gs"])
def test_other_schemes_are_refused_by_name(scheme: str, tmp_path: Path) -> None:
    there = f"{scheme}://host/folder"
    with pytest.raises(SourceError, match=f"files of {scheme}: are neither read nor written"):
        folder_sink(there, PAIRS)
    with pytest.raises(SourceError, match=f"files of {scheme}:"):
        files(there)
    (tmp_path / "a.nq").write_text("")
    source = SpaseqDataSource({"path": str(tmp_path), "stream": "urn:s", "checkpoint": there})
    reader = source.streamReader(None)  # type: ignore[arg-type]  # it has its own schema
    with pytest.raises(SourceError, match=f"files of {scheme}:"):
        reader.latestOffset()


def test_a_file_is_read_by_its_url(tmp_path: Path) -> None:
    (tmp_path / "a b.nq").write_text("")
    assert files(f"file://{tmp_path}/a%20b.nq") == files(f"file:{tmp_path}") == [tmp_path / "a b.nq"]
    assert files(f"file://{tmp_path}/*.nq") == [tmp_path / "a b.nq"]
    assert normal(f"file:{tmp_path}") == str(tmp_path)


def test_streams_are_not_read_from_s3a() -> None:
    assert normal("s3a://ticks/may/") == "s3a://ticks/may/"
    with pytest.raises(SourceError, match="s3a://ticks/may: streams are not read from s3a: yet"):
        files("s3a://ticks/may")


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
