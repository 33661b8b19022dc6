"""The entry points: what rdflib finds, and what that costs those who never stream anything."""

from __future__ import annotations

import inspect
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


def test_what_is_found_by_entry_points() -> None:
    assert plugin.get("spaseq", Processor) is SpaseqProcessor
    assert plugin.get("spaseq", Result) is SpaseqResult
    for name in ("ndjson", "messages", "tsv"):
        assert plugin.get(name, ResultSerializer).__module__ == "spaseq.rdf.serializers"
    ours = [e for e in distribution("spaseq").entry_points if e.group.startswith("rdf.plugins")]
    assert len(ours) == 5
    for entry_point in ours:
        assert callable(entry_point.load())


def test_what_is_found_by_an_import() -> None:
    """Not in rdflib's registry without it: some open every store that is there, and write to it."""
    assert plugin.get("spaseq-window", Store) is WindowStore
    modules_after("""
import rdflib.plugin, rdflib.store
def ours(): return [p.name for p in rdflib.plugin.plugins(None, rdflib.store.Store) if "spaseq" in p.name]
assert ours() == []
import spaseq.rdf
assert ours() == ["spaseq-window"]
""")


def modules_after(statements: str) -> set[str]:
    """What is in memory after statements in a new interpreter."""
    code = f"{statements}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(found)


def test_programs_of_others_are_left_alone() -> None:
    """Nothing of ours is loaded or wrapped, whatever they ask, until they ask for us."""
    loaded = modules_after("""
import rdflib, rdflib.plugins.sparql
query, update = rdflib.Graph.query, rdflib.Graph.update
for store in "Memory", "Oxigraph":
    graph = rdflib.Dataset(store=store)
    graph.update("INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:b> <urn:c> } }")
    assert len(graph.query(query_object="SELECT * { GRAPH ?g { ?s ?p ?o OPTIONAL { ?s ?q ?r } } }")) == 1
    graph.query("SELECT * { ?s ?p ?o }").serialize(format="json")
assert rdflib.Graph.query is query and rdflib.Graph.update is update
assert not hasattr(query, "__wrapped__") and not rdflib.plugins.sparql.CUSTOM_EVALS
""")
    assert not {name for name in loaded if name.partition(".")[0] in ("spaseq", "numba", "lark")}


@pytest.mark.slow
def test_the_name_of_the_processor_is_enough() -> None:
    modules_after(f"""
import warnings, rdflib
warnings.simplefilter("ignore", DeprecationWarning)  # rdflib's parser of TriG
data = "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> ."
for t, price in enumerate([3, 2]):
    data += f":e{{t}} prov:generatedAtTime {{t}} . GRAPH :e{{t}} {{{{ :acme :price {{price}} }}}} "
dataset = rdflib.Dataset()
dataset.parse(data=data, format="trig")
rows = dataset.query({PREFIXED!r}, processor="spaseq", result="spaseq")
assert [row.p2.toPython() for row in rows] == [2]
""")


def test_to_import_us_costs_no_engine() -> None:
    loaded = modules_after("import spaseq.rdf")
    assert not {"numba", "spaseq.engine", "spaseq.rdf.service"} & loaded


@pytest.mark.parametrize("method", ["query", "update"])
def test_the_signatures_are_rdflibs(method: str) -> None:
    """As said and as called: the issue was a parameter of another name."""
    asked = getattr(Graph, method)
    assert asked.__module__ == "rdflib.graph"
    assert asked.__doc__ == asked.__wrapped__.__doc__
    assert inspect.signature(asked) == inspect.signature(asked.__wrapped__)
    first = list(inspect.signature(asked).parameters)[1]
    text = {"query": "ASK {}", "update": "INSERT DATA { <urn:a> <urn:b> <urn:c> }"}[method]
    asked(Graph(), **{first: text})
    asked(self=Graph(), **{first: text})
    for wrong in ({}, {first: text, "self": Graph()}, {"text": text}):
        with pytest.raises(TypeError):
            asked(Graph(), **wrong)


@pytest.mark.parametrize("store", trades.STORES)
def test_the_processor_may_be_given_in_every_way(store: str) -> None:
    dataset = recorded(store)
    for arguments in (
        (PREFIXED, "spaseq", "spaseq"),
        (PREFIXED, "spaseq", "spaseq", None, {"company": trades.E.acme}),
        (PREFIXED, "spaseq", "spaseq", None, None, False),
    ):
        assert len(dataset.query(*arguments)) > 1
    for result in (
        dataset.query(PREFIXED, SpaseqProcessor(dataset), "spaseq"),
        dataset.query(PREFIXED, SpaseqProcessor(dataset), "spaseq", use_store_provided=False),
        dataset.query(query_object=PREFIXED, processor="spaseq", result="spaseq", kb={}, strict=True),
    ):
        assert len(result) == 3


def test_queries_of_others_are_asked_as_before() -> None:
    graph = Graph().add((trades.E.a, trades.E.b, Literal(1)))
    assert rdflib.Graph.query.__doc__
    assert [row.o.toPython() for row in graph.query("SELECT ?o { ?s ?p ?o }")] == [1]
    assert [
        row.o.toPython() for row in graph.query("SELECT ?o { ?s ?p ?o }", "sparql", "sparql", {}, {})
    ] == [1]
