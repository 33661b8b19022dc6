"""Run by ``test_spark_graphframes`` with GraphFrames' jars: path queries over GraphFrames itself.

Prints, as JSON, what was found by Pregel and by motifs, what is expected, and a rank of every node.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from spaseq.spark import graphframe, session
from spaseq.spark.paths import graphframes
from tests.spark.path_graphs import ENDS, EXPRESSIONS, PREFIXES, expected, graph, shown


def main(jars: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    builder.config("spark.sql.shuffle.partitions", "2").getOrCreate().sparkContext.setLogLevel("ERROR")
    spark = session()
    result: dict[str, list[object]] = {"expected": [], "pregel": [], "default": []}
    for number, expression in enumerate(EXPRESSIONS):
        g, _ = graph(number)
        sources, targets = ENDS[number % len(ENDS)]
        result["expected"].append(expected(g, expression, sources, targets))
        frame = graphframe(spark, g)
        for way, longest in (("default", graphframes.SHORT), ("pregel", 0)):
            graphframes.SHORT = longest
            found = graphframes.path_pairs_of_graphframe(
                frame, expression, sources, targets, prefixes=PREFIXES
            )
            result[way].append(shown(found))
    ranks = frame.pageRank(maxIter=2).vertices.collect()
    print(json.dumps({**result, "ranked": sorted(row.id for row in ranks)}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
