"""gMark's queries on gMark's graphs, against Oxigraph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, QuerySolutions

from spaseq.paths import load
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib
from tests.paths.gmark import PREFIXES, as_sparql, expressions, store, triples

#: From and to so many nodes of each expression.
ENDS = 4


@pytest.mark.parametrize(("scenario", "edges", "count"), [("test", 78_582, 127), ("social", 226_014, 167)])
def test_as_oxigraph(scenario: str, edges: int, count: int, shared: Callable[[str], Path]) -> None:
    folder = shared("gmark")
    found = triples(folder, scenario)
    graph, oxigraph = load(found, PREFIXES), store(found)
    texts = expressions(folder, scenario)
    assert (len(graph), len(texts)) == (edges, count)
    answers = 0
    for text in texts:
        sparql = as_sparql(graph.snapshot.compile(text).expression.root)
        for backwards in (False, True):
            nodes = graph.snapshot.product(text, backwards=backwards).candidates()
            for node in nodes[:: max(1, len(nodes) // ENDS)].tolist():
                end = graph.ox_term(node)
                assert isinstance(end, NamedNode)
                ours = graph.pairs(text, targets=node) if backwards else graph.pairs(text, sources=node)
                others = {from_rdflib(pair[0 if backwards else 1]) for pair in ours}
                ends = f"?x {sparql} {end}" if backwards else f"{end} {sparql} ?x"
                rows = oxigraph.query(f"SELECT DISTINCT ?x {{ {ends} }}")
                assert isinstance(rows, QuerySolutions)
                theirs: set[Term | None] = {row["x"] for row in rows}  # type: ignore[misc]  # no triple terms
                assert others == theirs, (text, end)
                answers += len(theirs)
    assert answers > 1_000
