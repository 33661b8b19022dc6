"""The query processor: SPAseq over a recorded stream in a Dataset."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rdflib.graph import Graph
from rdflib.query import Processor
from rdflib.term import Node, Variable

from spaseq.engine import Engine
from spaseq.errors import EngineError, SpaseqWarning
from spaseq.language.syntax import Ask, Construct, Query
from spaseq.patterns.kb import Source as Knowledge
from spaseq.rdf.prepared import bound, prepare
from spaseq.rdf.recorded import knowledge, sources
from spaseq.results.batch import Match
from spaseq.results.writers._base import columns
from spaseq.sources import BadEvent


class SpaseqProcessor(Processor):
    """The processor behind ``Dataset.query(text, processor="spaseq")``.

    Its events are the dataset's named graphs that have a ``prov:generatedAtTime`` in the default graph.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def query(  # type: ignore[override]  # a query of ours is no rdflib.plugins.sparql.sparql.Query
        self,
        strOrQuery: str | Query,  # noqa: N803  # rdflib's names
        initBindings: Mapping[str, Node] | None = None,  # noqa: N803
        initNs: Mapping[str, str] | None = None,  # noqa: N803
        DEBUG: bool = False,  # noqa: N803, ARG002  # rdflib's, without a meaning in any processor
        *,
        base: str | None = None,
        kb: Mapping[str, Knowledge] | None = None,
        catalog: str | Path | None = None,
        strict: bool = False,
    ) -> Mapping[str, Any]:
        """Evaluate a query; return the arguments of a Result.

        ``kb`` adds background graphs to the dataset's own. A stream that ``catalog`` lists is read from its
        file. Malformed events cause a warning and are kept in the result's ``rejected``; with ``strict`` the
        first one raises. Raises ``QueryError``, ``SourceError``, ``KnowledgeError`` and ``EngineError``.
        """
        query = _parsed(strOrQuery, initBindings or {}, initNs, base)
        matches: list[Match] = []
        rejected: list[BadEvent] = []
        graphs = knowledge(self._graph, query, kb)
        with Engine(graphs, dead_letters=rejected.append, strict=strict) as engine:
            handle = engine.register(query, on_match=matches.append)
            found = sources(self._graph, query, catalog, rejected.append)
            if not handle.done:
                engine.feed(*found)
        if rejected:
            first = rejected[0]
            message = (
                f"{len(rejected)} events were not read: {first.stream}, {first.position}: {first.reason}"
            )
            warnings.warn(f"{message} (all are in the result's rejected)", SpaseqWarning, stacklevel=4)
        return _found(query, matches, rejected)


def _parsed(
    given: str | Query,
    bindings: Mapping[str, Node],
    prefixes: Mapping[str, str] | None,
    base: str | None,
) -> Query:
    if isinstance(given, str):
        given = prepare(given, initNs=prefixes, base=base)
    if not isinstance(given, Query):
        raise EngineError(
            "this is not a SPAseq query: give its text, or what spaseq.prepare makes of it; "
            "a SPARQL query is asked without processor='spaseq'"
        )
    return bound(given, bindings)


def _found(query: Query, matches: list[Match], rejected: list[BadEvent]) -> dict[str, Any]:
    """Return the result in the terms of rdflib's own Result, so that ``result="sparql"`` can hold it, too."""
    graph: Graph | None = None
    kind = "SELECT"
    if isinstance(query.form, Construct):
        kind, graph = "CONSTRUCT", Graph()
        for prefix, iri in query.prefixes:
            graph.bind(prefix, iri)
        for match in matches:
            graph += match.graph()
    elif isinstance(query.form, Ask):
        kind = "ASK"
    rows = [{Variable(v): term for v, term in row.items()} for match in matches for row in match.bindings]
    return {
        "type_": kind,
        "vars_": [Variable(name) for name in columns(query)] if kind == "SELECT" else None,
        "bindings": rows if kind == "SELECT" else None,
        "askAnswer": bool(matches) if kind == "ASK" else None,
        "graph": graph,
        "query": query,
        "matches": matches,
        "rejected": rejected,
    }
