"""A smoke test of each part of ``spaseq.spark`` on each PySpark that pyproject.toml allows.

``python -m tests.spark.versions [VERSION…]`` makes an environment for each version in a temporary folder
(or uses ``FOLDER/VERSION``, with ``--in FOLDER``) and runs ``smoke`` there. CI does not: it takes minutes and
some 600 MB of downloads a version.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
import warnings
from pathlib import Path

VERSIONS = ("3.5", "4.0", "4.1")
ROOT = Path(__file__).resolve().parents[2]

E = "http://example.org/"
QUERY = f"""SELECT ?k ?a ?b WITHIN 5 SECONDS SLIDING PARTITION BY ?k FROM STREAM S <{E}s> WHERE {{ SEQ(A ; B)
  DEFINE GPM A ON S {{ ?k <{E}v> ?a }} DEFINE GPM B ON S {{ ?k <{E}v> ?b }} }}"""
KB = f"FROM KNOWLEDGE <{E}kb>"


def smoke(folder: Path) -> None:
    """Run each part, and print a line for each."""
    import pyspark

    import spaseq
    from spaseq.paths import load
    from spaseq.spark import (
        analyze,
        drive,
        events,
        folder_sink,
        knowledge,
        matches,
        path_pairs,
        planned,
        run,
        save,
        state,
    )
    from spaseq.spark import session as start

    spark = start("local[2]", partitions=2, memory="1g")
    has_streams = not pyspark.__version__.startswith("3.")
    rows = spark.createDataFrame(
        [(i, f"key {i % 2}", i / 2) for i in range(8)], "at long, id string, v double"
    )
    lifted = events(rows, stream=f"{E}s", time="at", n="at", template=f"<{E}{{id}}> <{E}v> ?v .")
    found = matches(lifted, QUERY, columns={"k": "{id}", "a": "double"})
    wanted = found.count()
    assert wanted
    assert found.join(rows.select("id").distinct(), found.k == rows.id).count() == wanted
    assert analyze(lifted, QUERY).where("part = 'state 2' AND what = 'ended'").first()["count"] == wanted  # type: ignore[index]
    print("columns: ok")

    file = folder / "in.nq"
    time, integer = "http://www.w3.org/ns/prov#generatedAtTime", "http://www.w3.org/2001/XMLSchema#integer"
    lines = [
        f'<{E}g{i}> <{time}> "{i}"^^<{integer}> .\n<{E}k{i % 2}> <{E}v> "{i}" <{E}g{i}> .\n' for i in range(8)
    ]
    file.write_text("".join(lines))
    streams = {"S": str(file)}
    assert run(spark, QUERY, streams).where("kind = 'match'").count() == wanted
    save(run(spark, QUERY, streams), QUERY, folder / "out")
    assert _lines(folder / "out") == wanted
    print("files: ok")

    triples = spark.createDataFrame(
        [(f"{E}k{i}", f"{E}in", f"{E}it") for i in range(2)], "s string, p string, o string"
    )
    ask = QUERY.replace("?a }", f"?a GRAPH <{E}kb> {{ ?k <{E}in> ?w }} }}")
    for limit in (1_000, 0):
        kb = knowledge(spark, {f"{E}kb": triples}, broadcast_limit=limit)
        assert run(spark, ask, streams, kb).where("kind = 'match'").count() == wanted
    print("knowledge: ok")

    graph = load([(f"{E}{s}", f"{E}p", f"{E}{o}") for s, o in ("ab", "bc")])
    assert path_pairs(spark, graph, f"<{E}p>+").count() == 3
    print("paths: ok")

    try:
        stream = run(spark, QUERY, streams, checkpoint=folder / "cp")
    except spaseq.EngineError as error:
        assert not has_streams
        print(f"streams: {error}")
        return
    running = save(stream, QUERY, folder / "streamed", checkpoint=folder / "cp")
    assert running is not None
    running.processAllAvailable()
    running.stop()
    assert _lines(folder / "streamed") == wanted
    assert state(spark, folder / "cp").count() == 2  # a bucket for each key
    print("streams: ok")

    query = spaseq.prepare(QUERY)
    plan = planned(spark, query, streams, checkpoint=folder / "cp2")
    driven = drive(plan, folder / "cp2", folder_sink(folder / "driven", query))
    driven.processAllAvailable()
    driven.stop()
    assert _lines(folder / "driven") == wanted
    print("drive: ok")


def _lines(folder: Path) -> int:
    return sum(len(file.read_text().splitlines()) for file in folder.glob("matches-*"))


def _environment(folder: Path, version: str) -> Path:
    """Return the interpreter of an environment with this PySpark."""
    python = folder / version / "bin" / "python"
    if not python.exists():
        venv.create(folder / version, with_pip=True)
        wanted = [f"{ROOT}[spark]", f"pyspark=={version}.*"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def main() -> int:
    """Run the smoke test on each version; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--in", dest="folder", type=Path)
    parser.add_argument(
        "--smoke", action="store_true", help="run it here, on the PySpark of this environment"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if given.smoke:
            warnings.simplefilter("ignore")
            smoke(Path(made))
            return 0
        failed = 0
        for version in given.versions:
            print(f"PySpark {version}", flush=True)
            python = _environment(given.folder or Path(made), version)
            environment = os.environ | {"PYTHONPATH": str(ROOT)}
            done = subprocess.run(
                [python, "-m", "tests.spark.versions", "--smoke"], cwd=ROOT, env=environment
            )
            failed += done.returncode != 0
        return failed


if __name__ == "__main__":
    sys.exit(main())
