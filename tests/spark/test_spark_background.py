"""Background graphs of streams: large ones in the stateful stage, and other ones after a restart."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import spaseq
from spaseq.gpm.kb import KnowledgeBase
from spaseq.results.writers._json import line_of

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import SparkSession  # noqa: E402  # after the skip

from spaseq.spark import run  # noqa: E402
from spaseq.spark.background._background import ship  # noqa: E402
from spaseq.spark.stages._job import pattern_of  # noqa: E402
from tests.spark.cases import Case, Happening, write  # noqa: E402
from tests.spark.running import finished, without_n  # noqa: E402
from tests.streams import NS, letters, query  # noqa: E402

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Some of the queries run as one group.
    pytest.mark.filterwarnings("ignore:the query runs as one group"),
]

KB = "http://example.org/kb"


def happenings(words: str) -> tuple[Happening, ...]:
    return tuple(Happening(one.name, one.stream, one.time, one.turtle) for one in letters(words))


def test_a_large_graph_that_a_stream_asks_by_exists(spark: SparkSession, tmp_path: Path) -> None:
    """Of more than 1 MB: PySpark makes a broadcast of such a function, which not all its processes read."""
    rng = random.Random(7)
    lines = [f'<{NS}v{i}> <{NS}of> "{rng.getrandbits(512):x}" .' for i in range(24_000)]
    lines += [f"<{NS}k{i}> <{NS}near> <{NS}k{i + 2}> ." for i in range(20)]
    kb = {KB: "\n".join(lines)}
    gpms = {"A": "?a :k ?ak .", "B": f"?b :k ?bk . FILTER EXISTS {{ GRAPH <{KB}> {{ ?ak :near ?bk }} }}"}
    text = query("A ; B", "9 SECONDS SLIDING", gpms)
    assert len(ship(KnowledgeBase(kb), pattern_of(text))) > 1 << 20
    drawn = Case(text, happenings(" ".join(f"{'ab'[i % 2]}{i}/k{i // 2}" for i in range(40))))
    streams = write(drawn, tmp_path / "in")
    want = [line_of(match) for match in spaseq.run(text, streams, kb)]
    assert len(want) > 5
    frame = run(spark, text, streams, kb, checkpoint=tmp_path / "cp", most_bytes=5_000, piece_bytes=2_500)
    rows, _ = finished(frame, tmp_path / "cp")
    assert without_n(row.json for row in rows) == without_n(want)
