"""Small random graphs, expressions and ends, for every way to ask a path query on Spark."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import HealthCheck, Phase, assume, settings
from pyspark.sql import DataFrame

import spaseq.paths
from spaseq.paths.language.compile import compile_path
from spaseq.paths.language.expression import Expression, Path
from spaseq.paths.language.transitions import automaton_of
from spaseq.terms.interop import from_rdflib
from tests.paths.naive import Triple

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
    g: spaseq.paths.KnowledgeGraph, expression: str | Expression, sources: object, targets: object
) -> list[list[str]]:
    """The pairs found in this process, as N-Triples."""
    return sorted(
        [str(from_rdflib(s)), str(from_rdflib(t))] for s, t in g.pairs(expression, sources, targets)
    )


def shown(rows: DataFrame) -> list[list[str]]:
    """The pairs in a DataFrame, in order."""
    return sorted([row.source, row.target] for row in rows.collect())


def few(examples: int) -> Callable[[Any], Any]:
    """Settings for a test in which every example takes seconds; to shrink what fails would take an hour."""
    return settings(
        max_examples=examples, phases=[Phase.generate], suppress_health_check=[HealthCheck.filter_too_much]
    )


def asked(
    triples: Iterable[Triple], path: Path, sources: object, targets: object
) -> tuple[spaseq.paths.KnowledgeGraph, Expression]:
    """A graph and an expression of which something can be learnt: states, and pairs that it joins."""
    g = spaseq.paths.load(sorted(triples, key=str))
    expression = Expression(path, {}, g.snapshot.compile("<urn:x>").expression.source)
    assume(automaton_of(compile_path(expression)).size > 1)
    assume(len(g.pairs(expression, sources, targets)) > 2)
    return g, expression
