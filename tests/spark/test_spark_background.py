"""Background graphs of streams: large ones in the stateful stage, and other ones after a restart."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import rdflib

import spaseq
from spaseq.gpm.kb import KnowledgeBase
from spaseq.results.writers._json import line_of

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.errors import StreamingQueryException  # noqa: E402  # after the skip
from pyspark.sql import SparkSession  # noqa: E402

from spaseq.errors import KnowledgeError  # noqa: E402
from spaseq.spark import knowledge, run  # noqa: E402
from spaseq.spark._jobs import KbChanged  # noqa: E402
from spaseq.spark.background._background import ship  # noqa: E402
from spaseq.spark.background._contents import contents  # noqa: E402
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


GRAPH = "\n".join(
    [f"<{NS}k{i}> <{NS}in> <{NS}r{i % 3}> ." for i in range(40)]
    + [f"_:b{i} <{NS}of> <{NS}k{i}> . _:b{i} <{NS}to> _:b{i + 1} ." for i in range(5)]
    + [f"<{NS}k0> <{NS}kind> _:c . _:c <{NS}name> 'é'@fr ."]
)

#: Prints what Spark says of a graph that rdflib has read.
SAYS = """
import sys
import rdflib
from spaseq.spark import knowledge, session
from spaseq.spark.background._contents import contents
graph = rdflib.Graph().parse(sys.argv[1], format="turtle")
spark = session("local[2]", partitions=2, memory="1g")
print(contents(knowledge(spark, {"http://example.org/kb": graph})))
spark.stop()
"""


@pytest.mark.slow
def test_graphs_of_rdflib_are_the_same_in_every_process(tmp_path: Path) -> None:
    """Two processes, two hash seeds, and a file whose lines are in the other order."""
    printed = []
    for seed, lines in (("1", GRAPH.splitlines()), ("2", GRAPH.splitlines()[::-1])):
        path = tmp_path / f"{seed}.ttl"
        path.write_text("\n".join(lines))
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-c", SAYS, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-2_000:]
        printed.append(done.stdout)
    assert printed[0] == printed[1] != ""


def test_what_graphs_say_as_data_frames(spark: SparkSession) -> None:
    """Whatever order they are in, and whatever labels blank nodes have; nothing else is the same."""

    def of(text: str) -> str:
        return contents(knowledge(spark, {KB: text}))

    said = of(GRAPH)
    assert said == of("\n".join(GRAPH.replace("_:b", "_:z").splitlines()[::-1]))
    for before, after in (("r1", "r2"), ("_:b4 ", "_:b3 "), ("'é'@fr", "'é'"), ("_:c <", "_:d <")):
        assert said != of(GRAPH.replace(before, after)), before


def test_a_stream_goes_on_with_the_same_graph_of_rdflib(spark: SparkSession, tmp_path: Path) -> None:
    gpms = {n: f"?{n.lower()} :k ?k . GRAPH <{KB}> {{ ?k :in ?r }}" for n in "AB"}
    text = query("A ; B", "20 SECONDS SLIDING", gpms)
    (tmp_path / "in").mkdir()
    found = []
    for number, (words, lines) in enumerate((("a1/k0 a2/k1", 1), ("b3/k0 x50/k9", -1))):
        path = write(Case(text, happenings(words)), tmp_path / str(number))[f"{NS}S"]
        Path(path).rename(tmp_path / "in" / f"{number}.nq")
        graph = rdflib.Graph().parse(data="\n".join(GRAPH.splitlines()[::lines]), format="turtle")
        kb = knowledge(spark, {KB: graph})
        streams = {"S": f"{tmp_path / 'in'}?format=nq"}
        frame = run(spark, text, streams, kb, checkpoint=tmp_path / "cp", follow=True)
        found += [json.loads(row.json)["end"] for row in finished(frame, tmp_path / "cp")[0]]
    assert found == [3]


def test_graphs_in_a_folder_that_is_a_url(spark: SparkSession, tmp_path: Path) -> None:
    """As s3a: and hdfs: are: what is there is asked of Spark."""
    folder = f"file://{tmp_path}/kb"
    with pytest.raises(KnowledgeError, match=f"{folder}: no background graphs were written there"):
        knowledge(spark, parquet=folder)
    written = knowledge(spark, {KB: GRAPH}, parquet=folder)
    read = [knowledge(spark, parquet=place) for place in (folder, tmp_path / "kb")]
    assert [graphs.names for graphs in (written, *read)] == [(KB,)] * 3
    assert {contents(graphs) for graphs in (written, *read)} == {contents(knowledge(spark, {KB: GRAPH}))}


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
