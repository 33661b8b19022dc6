"""The command line with many small micro-batches: ``python -m tests.spark.small_cli …``."""

from __future__ import annotations

import sys
from functools import partial

from spaseq.cli import main
from spaseq.cli.running import spark
from spaseq.spark.queries import planned

if __name__ == "__main__":
    spark._MOST = 60_000  # type: ignore[misc]  # a constant elsewhere
    spark.planned = partial(planned, piece_bytes=30_000)  # type: ignore[assignment]  # the same but for this
    sys.argv[0] = "spaseq"
    main()
