"""The entry points: what rdflib finds, and what that costs those who never stream anything."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution

import pytest
import rdflib
from rdflib import Graph, Literal, plugin
from rdflib.query import Processor, Result, ResultSerializer
from rdflib.store import Store

from spaseq.rdf.processor import SpaseqProcessor
from spaseq.rdf.result import SpaseqResult
from spaseq.rdf.window import WindowStore
from tests.rdf import trades
from tests.rdf.trades import PREFIXED, recorded

pytestmark = trades.pytestmark


def test_everything_is_found_by_entry_points() -> None:
    assert plugin.get("spaseq", Processor) is SpaseqProcessor
    assert plugin.get("spaseq", Result) is SpaseqResult
    assert plugin.get("spaseq-window", Store) is WindowStore
    for name in ("ndjson", "messages", "tsv"):
        assert plugin.get(name, ResultSerializer).__module__ == "spaseq.rdf.serializers"
    ours = [e for e in distribution("spaseq").entry_points if e.group.startswith("rdf.plugins")]
    assert len(ours) == 7
    for entry_point in ours:
        assert callable(entry_point.load())


def modules_after(statements: str) -> set[str]:
    """What is in memory after statements in a new interpreter."""
    code = f"{statements}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(found)


HEAVY = {
    "numpy",
    "numba",
    "pyoxigraph",
    "lark",
    "networkx",
    "spaseq.engine",
    "spaseq.errors",
    "spaseq.rdf.service",
}


def test_sparql_of_others_imports_the_hook_and_nothing_more() -> None:
    query = "import rdflib; list(rdflib.Graph().query('SELECT * { ?s ?p ?o OPTIONAL { ?s ?q ?r } }'))"
    loaded = modules_after(query)
    assert {name for name in loaded if name.partition(".")[0] == "spaseq"} == {
        "spaseq",
        "spaseq.rdf",
        "spaseq.rdf.hook",
    }
    assert not HEAVY & loaded


def test_a_service_of_ours_brings_the_rest() -> None:
    loaded = modules_after(
        "import rdflib\n"
        "query = 'SELECT * { SERVICE <urn:x-spaseq:nothing> { ?s ?p ?o } }'\n"
        "try: list(rdflib.Graph().query(query))\n"
        "except Exception as error: assert 'no query is registered' in str(error), error\n"
        "else: raise AssertionError"
    )
    assert "spaseq.rdf.service" in loaded


def test_a_user_imports_nothing() -> None:
    text = f"""
import warnings, rdflib
warnings.simplefilter("ignore", DeprecationWarning)  # rdflib's parser of TriG
data = "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> ."
for t, price in enumerate([3, 2]):
    data += f":e{{t}} prov:generatedAtTime {{t}} . GRAPH :e{{t}} {{{{ :acme :price {{price}} }}}} "
for store in "Memory", "Oxigraph":
    dataset = rdflib.Dataset(store=store)
    dataset.parse(data=data, format="trig")
    rows = dataset.query({PREFIXED!r}, processor="spaseq", result="spaseq")
    assert [row.p2.toPython() for row in rows] == [2]
"""
    modules_after(text)


@pytest.mark.parametrize("store", trades.STORES)
def test_the_processor_may_be_given_in_every_way(store: str) -> None:
    dataset = recorded(store)
    for arguments in (
        (PREFIXED, "spaseq", "spaseq"),
        (PREFIXED, "spaseq", "spaseq", None, {"company": trades.E.acme}),
        (PREFIXED, "spaseq", "spaseq", None, None, False),
    ):
        assert len(dataset.query(*arguments)) > 1
    result = dataset.query(PREFIXED, SpaseqProcessor(dataset), "spaseq", use_store_provided=False)
    assert len(result) == 3


def test_queries_of_others_are_asked_as_before() -> None:
    graph = Graph().add((trades.E.a, trades.E.b, Literal(1)))
    assert rdflib.Graph.query.__doc__
    assert [row.o.toPython() for row in graph.query("SELECT ?o { ?s ?p ?o }")] == [1]
    assert [
        row.o.toPython() for row in graph.query("SELECT ?o { ?s ?p ?o }", "sparql", "sparql", {}, {})
    ] == [1]
