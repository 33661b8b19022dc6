"""Everything in a bucket: a stream that is broken off and goes on, its answers, letters and checkpoints.

``python s3_session.py ENDPOINT JARS FOLDER``: a process of its own, since jars are given to a session when it
starts. The last line that it prints is a JSON object of what it found.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import spaseq
from spaseq.results.writers._json import line_of
from spaseq.spark import _checkpoints, drive, folder_sink, planned, run, save, session
from spaseq.spark.source._files import names, opened, write
from tests.spark.running import without_n
from tests.spark.test_spark import quads, stocks

BUCKET = "s3a://ticks"
BAD = "nonsense .\n"


def lines(folder: str, begin: str) -> list[str]:
    """Of all files of a folder whose names begin so."""
    found = []
    for path in names(f"{BUCKET}/{folder}"):
        if path.rpartition("/")[2].startswith(begin):
            with opened(path) as file:
                found += file.read().decode().splitlines()
    return found


def main(endpoint: str, jars: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    spark = session("local[2]", partitions=2, memory="1g", jars=jars.split(","))
    options = spark.sparkContext._jsc.hadoopConfiguration()
    options.set("fs.s3a.endpoint", endpoint)
    options.set("fs.s3a.path.style.access", "true")
    # What it refuses now it will refuse again: seconds, and not minutes, until the test says so.
    options.set("fs.s3a.attempts.maximum", "1")
    options.set("fs.s3a.retry.limit", "1")
    query, _ = stocks(folder, 0)
    streams = {"S": f"{BUCKET}/in"}
    sizes = {"most_bytes": 30_000, "piece_bytes": 30_000}
    out = f"{BUCKET}/out"

    # The second run goes on with the file that came since.
    for name, numbers in (("1.nq", range(150)), ("2.nq", range(150, 250))):
        write(f"{BUCKET}/in/{name}", "".join([*map(quads, numbers), BAD]).encode())
        found = run(spark, query, streams, checkpoint=f"{BUCKET}/cp", **sizes)
        running = save(found, query, out, letters=f"{BUCKET}/dead", checkpoint=f"{BUCKET}/cp")
        assert running is not None
        running.processAllAvailable()
        running.stop()
    refused = ""
    try:
        save(found, query, out, checkpoint=f"{BUCKET}/other")
    except spaseq.EngineError as error:
        refused = str(error)

    # All at once, of a pattern; and in the driver.
    save(run(spark, query, {"S": f"{BUCKET}/in/*.nq"}), query, f"{BUCKET}/once")
    plan = planned(spark, query, streams, checkpoint=f"{BUCKET}/cp2", **sizes)
    running = drive(plan, f"{BUCKET}/cp2", folder_sink(f"{BUCKET}/driven", query))
    running.processAllAvailable()
    running.stop()

    # A third checkpoint, as in a session without Spark's committer for object stores.
    with (
        warnings.catch_warnings(record=True) as said,
        patch.object(_checkpoints, "_is_there", return_value=False),
    ):
        warnings.simplefilter("always", spaseq.SpaseqWarning)
        plan = planned(spark, query, streams, checkpoint=f"{BUCKET}/cp3", **sizes)
        running = drive(plan, f"{BUCKET}/cp3", lambda *_: None)
        running.processAllAvailable()
        running.stop()

    # The same files, side by side: what a line that is none spoils depends on where its file ends.
    here = folder / "in"
    here.mkdir()
    (here / "1.nq").write_text("".join([*map(quads, range(150)), BAD]))
    (here / "2.nq").write_text("".join([*map(quads, range(150, 250)), BAD]))
    letters: list[spaseq.BadEvent] = []
    want = [line_of(match) for match in spaseq.run(query, {"S": str(here)}, dead_letters=letters.append)]
    result = {
        "expected": without_n(want),
        "expected_letters": len(letters),
        "stream": without_n(lines("out", "matches-")),
        "once": without_n(lines("once", "matches-")),
        "driven": without_n(lines("driven", "matches-")),
        "letters": lines("dead", "letters-"),
        "drafts": [*lines("out", ".draft"), *lines("dead", ".draft")],
        "checkpoint": len(list(names(f"{BUCKET}/cp/commits"))),
        "refused": refused,
        "warned": [str(one.message).partition(": each file")[0] for one in said],
        "local": sorted(path.name for path in folder.iterdir()),
    }
    print(json.dumps(result))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
