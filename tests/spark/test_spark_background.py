"""Background graphs of streams: large ones in the stateful stage, and other ones after a restart."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import spaseq
from spaseq.gpm.kb import KnowledgeBase
from spaseq.results.writers._json import line_of

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.errors import StreamingQueryException  # noqa: E402  # after the skip
from pyspark.sql import SparkSession  # noqa: E402

from spaseq.spark import run  # noqa: E402
from spaseq.spark._jobs import KbChanged  # noqa: E402
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


@pytest.mark.parametrize("mode", ["error", "replay"])
def test_graphs_that_changed_between_restarts(spark: SparkSession, tmp_path: Path, mode: KbChanged) -> None:
    """Some matches begin before the restart, with events that the new graph wants, and gives keys."""
    gpms = {n: f"?{n.lower()} :k ?k{n} . GRAPH <{KB}> {{ ?k{n} :in ?r }}" for n in "AB"}
    text = query("A ; B", "20 SECONDS SLIDING", gpms, partition="?r")
    before = {KB: f"<{NS}k0> <{NS}in> <{NS}r0> . <{NS}k1> <{NS}in> <{NS}r1> ."}
    after = {KB: f"<{NS}k0> <{NS}in> <{NS}r1> . <{NS}k1> <{NS}in> <{NS}r1> . <{NS}k2> <{NS}in> <{NS}r1> ."}
    first, more = "a1/k0 b2/k0 a3/k2 a4/k1 x5/k0", "b6/k1 a7/k0 b8/k2 x50/k9"
    folder = tmp_path / "in"
    folder.mkdir()
    streams = {"S": f"{folder}?format=nq"}
    checkpoint = tmp_path / "cp"

    def ran(words: str, name: str, kb: dict[str, str]) -> list[str]:
        case = Case(text, happenings(words))
        Path(write(case, tmp_path / name)[f"{NS}S"]).rename(folder / f"{name}.nq")
        frame = run(spark, text, streams, kb, checkpoint=checkpoint, follow=True, kb_changed=mode)
        return [row.json for row in finished(frame, checkpoint)[0]]

    def found(words: str, kb: dict[str, str]) -> list[str]:
        path = write(Case(text, happenings(words)), tmp_path / str(len(list(tmp_path.iterdir()))))
        return [line_of(match) for match in spaseq.run(text, {"S": path[f"{NS}S"]}, kb)]

    told = ran(first, "1", before)
    assert without_n(told) == without_n(found(first, before))
    if mode == "error":
        with pytest.raises(StreamingQueryException, match="the background graphs are not those"):
            ran(more, "2", after)
        return
    got = ran(more, "2", after)
    anew = [line for line in found(f"{first} {more}", after) if json.loads(line)["end"] > 5]
    # One begins with an event that no GPM wanted on the graphs before.
    assert [json.loads(line)["start"] for line in anew].count(3) == 1
    assert without_n(got) == without_n(anew)
