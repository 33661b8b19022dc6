"""The process from which Spark forks its Python workers, with all that they need already loaded.

Spark uses it with ``spark.python.daemon.module=spaseq.spark.daemon``, which ``session`` sets. Without it
queries run as well, but each worker loads everything by itself, which takes seconds.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from pyspark import daemon

from spaseq.spark._workers import freeze_worker
from spaseq.spark.stages import _keepers

_QUERY = """SELECT ?a ?b WITHIN 5 SECONDS SLIDING PARTITION BY ?k
FROM STREAM S <urn:s>
WHERE { SEQ(A ; B+)
  DEFINE GPM A ON S { ?k <urn:v> ?a }
  DEFINE GPM B ON S { ?k <urn:v> ?b . FILTER(?b > ?a) } }"""


def main() -> None:
    """Load what workers need, freeze what they will share, and run PySpark's daemon."""
    # PySpark's daemon prints its address on standard output, so nothing else may go there.
    with redirect_stdout(sys.stderr):
        exercise()
    freeze_worker()
    _keepers.start()
    daemon.manager()  # type: ignore[no-untyped-call]  # PySpark's


def exercise() -> list[str]:
    """Run a small query through all stages, to load their compiled code; return its matches."""
    from spaseq.events import Clock
    from spaseq.language import checked
    from spaseq.sources import SourceOptions
    from spaseq.spark.source._blocks import options_text, read_row
    from spaseq.spark.stages._bucket import Bucket
    from spaseq.spark.stages._job import Job
    from spaseq.spark.stages._stateless import Stateless

    job = Job(str(checked(_QUERY)), Clock.TICKS, None, (0,))
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    lines = (
        f'<urn:g{i}> {time} "{i}"^^{integer} .\n<urn:k> <urn:v> "{i}"^^{integer} <urn:g{i}> .\n'
        for i in range(9)
    )
    block = {"stream": "urn:s", "first": 0, "options": options_text(SourceOptions(), "nq")}
    block |= {"data": "".join(lines).encode()}
    stage = Stateless(job)
    bucket = Bucket(job)
    for passed in stage.run(read_row(block, stage.dictionary, []), []):
        for piece in passed.pieces:
            bucket.add(piece.data, 0)
    found = list(bucket.release(6))
    return found + list(Bucket.from_state(bucket.state(), job).close())


if __name__ == "__main__":
    main()
