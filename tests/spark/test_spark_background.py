"""Background graphs of streams: large ones in the stateful stage, and other ones after a restart."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib

import spaseq
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.writers._json import line_of

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402  # after the skip

from spaseq.errors import KnowledgeError, SpaseqWarning  # noqa: E402
from spaseq.events import Ids  # noqa: E402
from spaseq.spark import knowledge, run  # noqa: E402
from spaseq.spark._jobs import KbChanged  # noqa: E402
from spaseq.spark.background import _triples  # noqa: E402
from spaseq.spark.background._contents import contents  # noqa: E402
from spaseq.spark.background._triples import Source, numbers  # noqa: E402
from spaseq.spark.stages._job import pattern_of  # noqa: E402
from spaseq.terms.dictionary import Dictionary  # noqa: E402
from tests.spark.cases import Case, Happening, write  # noqa: E402
from tests.spark.running import finished, without_n  # noqa: E402
from tests.spark.stages import ship  # noqa: E402
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


def test_graphs_of_rdflib_are_the_same_in_every_process(spark: SparkSession, tmp_path: Path) -> None:
    """A process with another hash seed, and a file with its lines in reverse, give the same graph."""
    path = tmp_path / "kb.ttl"
    path.write_text("\n".join(GRAPH.splitlines()[::-1]))
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", SAYS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    here = rdflib.Graph().parse(data=GRAPH, format="turtle")
    assert done.stdout == f"{contents(knowledge(spark, {KB: here}))}\n"


def test_what_graphs_say_as_data_frames(spark: SparkSession) -> None:
    """Whatever order they are in, and whatever labels blank nodes have; nothing else is the same."""

    def of(text: str) -> str:
        return contents(knowledge(spark, {KB: text}))

    said = of(GRAPH)
    assert said == of("\n".join(GRAPH.replace("_:b", "_:z").splitlines()[::-1]))
    for before, after in (("r1", "r2"), ("_:b4 ", "_:b3 "), ("'é'@fr", "'é'"), ("_:c <", "_:d <")):
        assert said != of(GRAPH.replace(before, after)), before


def plain(spark: SparkSession, turtle: str) -> DataFrame:
    """The triples of a graph as plain IRIs and values."""
    rows = []
    for s, p, o in rdflib.Graph().parse(data=turtle, format="turtle"):
        kind, lang = (str(o.datatype or ""), o.language) if isinstance(o, rdflib.Literal) else (None, None)
        node = f"_:{o}" if isinstance(o, rdflib.BNode) else str(o)
        rows.append((f"_:{s}" if isinstance(s, rdflib.BNode) else str(s), str(p), node, kind, lang))
    schema = "subject string, predicate string, object string, datatype string, lang string"
    return spark.createDataFrame(rows[::-1], schema)


@pytest.mark.parametrize(
    "small", [pytest.param(1 << 20, id="here", marks=pytest.mark.long), pytest.param(-1, id="in workers")]
)
def test_what_a_background_graph_may_be(
    spark: SparkSession, tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it comes as, and wherever it is parsed, it says the same."""
    monkeypatch.setattr(_triples, "_SMALL", small)
    want = contents(KnowledgeBase({KB: GRAPH}))
    lines = [f"{quad.triple} ." for quad in ox.parse(GRAPH, format=ox.RdfFormat.TURTLE)]
    node = [line for line in lines if "_:" in line]
    others = [line for line in lines if "_:" not in line]
    folder = tmp_path / "kb"
    folder.mkdir()
    (folder / "a.nt").write_text("\n".join(others[:20]))
    (folder / "b.nq").write_text("# blank nodes\n" + "\n".join(f"{line[:-1]}<{KB}> ." for line in node))
    (folder / "c.ttl").write_text("\n".join(others[20:30]))
    (folder / "d.nt.gz").write_bytes(gzip.compress("\n".join(others[25:]).encode()))
    (tmp_path / "whole.ttl").write_text(GRAPH)
    terms = [line[:-2].split(" ", 2) for line in lines]
    frame = spark.createDataFrame(terms, "s string, p string, o string")
    frame.createOrReplaceTempView("background")
    sources: list[Source] = [
        GRAPH, tmp_path / "whole.ttl", f"file://{tmp_path}/whole.ttl", folder, f"{folder}/*", frame,
        "background",
        [f"{folder}/[ab].*", folder / "c.ttl", folder / "d.nt.gz"], plain(spark, GRAPH),
    ]  # fmt: skip
    for source in sources:
        kb = knowledge(spark, {KB: source})
        assert contents(kb) == want, source
    assert kb.names == (KB,)
    numbers = spark.createDataFrame([(f"{NS}a", f"{NS}of", 7)], "s string, p string, o int")
    assert contents(knowledge(spark, {KB: numbers})) == contents(KnowledgeBase({KB: f"<{NS}a> <{NS}of> 7 ."}))


def test_two_terms_of_one_number(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are noticed, and all terms numbered again."""
    seeds = []

    def poor(dictionary: Dictionary, ids: Ids, seed: int = 0) -> Ids:
        seeds.append(seed)
        found = numbers(dictionary, ids, seed)
        return found if seed else found % 5 + 1

    monkeypatch.setattr(_triples, "numbers", poor)
    kb = knowledge(spark, {KB: GRAPH})
    assert set(seeds) == {0, 1}
    assert kb.triples.count() == 52


@pytest.mark.few(0, ci=4)
@pytest.mark.parametrize("small", [1 << 20, -1], ids=["here", "in workers"])
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.nt", "<x:a> <x:b> <x:c> .\n<x:a> <x:b> nonsense .\n", "a.nt"),
        ("a.nq", "<x:a> <x:b> <x:c> <x:other> .\n", "a.nq.* has a graph <x:other>"),
        ("a.ttl", "<x:a> <x:b> .", "a.ttl, line 1"),
        ("a.doc", "", "no RDF format has the extension 'doc'"),
    ],
)
def test_background_graphs_that_are_wrong(
    spark: SparkSession, tmp_path: Path, small: int, name: str, text: str, told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(_triples, "_SMALL", small)
    (tmp_path / name).write_text(text)
    with pytest.raises(KnowledgeError, match=told) as caught:
        knowledge(spark, {KB: tmp_path / name})
    assert len(str(caught.value)) < 400
    assert small > 0 or name != "a.nt" or str(caught.value).endswith("<x:a> <x:b> nonsense .")


def test_empty_files_are_empty_graphs(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a folder, 50%"
    folder.mkdir()
    for name in ("none.nt", "none.ttl"):
        (folder / name).write_text("")
    assert knowledge(spark, {KB: folder}).triples.count() == 0
    (folder / "some.ttl").write_text("<x:a> <x:b> <x:c> .")
    assert knowledge(spark, {KB: f"file://{folder}"}).triples.count() == 1


def test_sources_that_are_no_background_graphs(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("x:a", "x:b", None)], "s string, p string, o string")
    for source, told in (
        (frame.select("s"), "columns s, p, o or subject, predicate, object.*this one has s"),
        (frame, "a subject, a predicate or an object is null"),
        (tmp_path / "none", "none: no such file, folder, pattern or table"),
    ):
        with pytest.raises(KnowledgeError, match=told):
            knowledge(spark, {KB: source})
    (tmp_path / "new.nt").write_text(
        "<x:a> <x:b> <<( <x:a> <x:b> <x:c> )>> .\n<x:a> <x:b> 'c' .\n".replace("'", '"')
    )
    with pytest.warns(SpaseqWarning, match=r"new.nt: 1 triple is left out"):
        kb = knowledge(spark, {KB: [f"file://{tmp_path}/new.nt"]})
    assert kb.triples.count() == 1


def test_a_stream_goes_on_with_the_same_graph(spark: SparkSession, tmp_path: Path) -> None:
    """Of rdflib in a dictionary first, and as a DataFrame in another order after the restart."""
    gpms = {n: f"?{n.lower()} :k ?k . GRAPH <{KB}> {{ ?k :in ?r }}" for n in "AB"}
    text = query("A ; B", "20 SECONDS SLIDING", gpms)
    (tmp_path / "in").mkdir()
    found = []
    for number, (words, lines) in enumerate((("a1/k0 a2/k1", 1), ("b3/k0 x50/k9", -1))):
        path = write(Case(text, happenings(words)), tmp_path / str(number))[f"{NS}S"]
        Path(path).rename(tmp_path / "in" / f"{number}.nq")
        graph = rdflib.Graph().parse(data="\n".join(GRAPH.splitlines()[::lines]), format="turtle")
        kb = knowledge(spark, {KB: plain(spark, GRAPH)}) if number else {KB: graph}
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
        with pytest.raises(spaseq.EngineError, match=f"^{checkpoint}: the background graphs are not those"):
            ran(more, "2", after)
        return
    got = ran(more, "2", after)
    anew = [line for line in found(f"{first} {more}", after) if json.loads(line)["end"] > 5]
    # One begins with an event that no GPM wanted on the graphs before.
    assert [json.loads(line)["start"] for line in anew].count(3) == 1
    assert without_n(got) == without_n(anew)
