"""Small random graphs, expressions and ends, for every way to ask a path query on Spark."""

from __future__ import annotations

import random

from pyspark.sql import DataFrame

import spaseq.paths
from spaseq.interop import from_rdflib

Ends = list[str] | None

PREFIXES = {"": "urn:"}

EXPRESSIONS = [
    ":a",
    "^:b/:a",
    ":a/(:b|:c)*/:a",
    ":a+",
    "(:a|^:b){2,3}",
    "!(:a|^:b)",
    "./:c?",
    "[:b]/:a*/[:c <urn:1>]",
    ":b*",
    "(:a/:b)+|:c",
]

ENDS: list[tuple[Ends, Ends]] = [
    (None, None),
    (["urn:1", "urn:none"], None),
    (None, ["urn:2"]),
    (["urn:1"], ["urn:2", "urn:3"]),
]


def graph(seed: int) -> tuple[spaseq.paths.KnowledgeGraph, list[tuple[str, str, str]]]:
    """A small random graph, and its edges as N-Triples."""
    rng = random.Random(seed)
    triples = {
        (f"urn:{rng.randrange(12)}", f"urn:{rng.choice('abc')}", f"urn:{rng.randrange(12)}")
        for _ in range(24)
    }
    edges = sorted((f"<{s}>", f"<{p}>", f"<{o}>") for s, p, o in triples)
    return spaseq.paths.load(sorted(triples), PREFIXES), edges


def expected(
    g: spaseq.paths.KnowledgeGraph, expression: object, sources: object, targets: object
) -> list[list[str]]:
    """The pairs found in this process, as N-Triples."""
    return sorted(
        [str(from_rdflib(s)), str(from_rdflib(t))] for s, t in g.pairs(expression, sources, targets)
    )


def shown(rows: DataFrame) -> list[list[str]]:
    """The pairs in a DataFrame, in order."""
    return sorted([row.source, row.target] for row in rows.collect())
