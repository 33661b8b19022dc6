"""``POST /paths``: path queries over a background graph."""

from __future__ import annotations

from itertools import chain, islice
from typing import Annotated, Any, Literal

import pyoxigraph as ox
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.language.modes import read_mode
from spaseq.paths.search.enumeration.paths import find_paths
from spaseq.paths.search.pairs import find_batches
from spaseq.paths.search.running import Stop, stopped_by
from spaseq.serve.asking import asked, kept
from spaseq.serve.errors import ApiError
from spaseq.serve.routes.depends import Given
from spaseq.serve.service import ServerState
from spaseq.terms.interop import from_rdflib
from spaseq.terms.iris import WELL_KNOWN

router = APIRouter(tags=["background graphs"])

_Terms = Annotated[list[str] | None, Field(description="IRIs, or terms as the expression writes them.")]


class PathQuestion(BaseModel):
    """A path query: the pairs that a path joins or, with a mode, the paths."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="A regular path expression.")
    graph: str | None = Field(None, description="A background graph; all of them if it is left out.")
    sources: _Terms = None
    targets: _Terms = None
    mode: Literal["WALK", "TRAIL", "SIMPLE", "ACYCLIC"] | None = None
    shortest: int | None = Field(None, ge=1)
    limit: int | None = Field(None, ge=0)


@router.post("/paths", summary="Find paths in a background graph")
async def paths(service: Given, question: PathQuestion) -> dict[str, Any]:
    """Answer a path query over a background graph. Terms are written as in N-Triples. The search ends with
    its request."""
    if question.graph is not None and not any(n.value == question.graph for n in service.kb.graphs):
        raise ApiError(404, "not-found", f"there is no background graph <{question.graph[:200]}>")
    stop = Stop()

    def stopped() -> dict[str, Any]:
        with stopped_by(stop):
            return _found(service, question)

    try:
        return await asked(service, stopped)
    finally:
        stop.set("the request has ended")


def _found(service: ServerState, question: PathQuestion) -> dict[str, Any]:
    known: KnowledgeGraph = kept(service, question.graph, lambda: _loaded(service, question.graph))
    graph = known.snapshot
    most = min(question.limit if question.limit is not None else 1_000, service.settings.limits.rows)
    ends = (question.sources, question.targets)
    doubts = list(known.check(question.path, *ends))
    if question.mode is None and question.shortest is None:
        pairs = chain.from_iterable(find_batches(graph, question.path, *ends))
        shown = [[_text(source), _text(target)] for source, target in islice(pairs, most)]
        return {"pairs": shown, "truncated": next(pairs, None) is not None, "warnings": doubts}
    choice = read_mode(question.mode or "WALK", question.shortest)
    found = find_paths(graph, question.path, *ends, choice, most)
    shown_paths = [
        {
            "source": _text(path.start),
            "target": _text(path.end),
            "length": len(path),
            "nodes": [_text(node) for node in path.terms],
            "triples": [[_text(term) for term in triple] for triple in path.triples],
        }
        for path in found
    ]
    return {"paths": shown_paths, "truncated": found.truncated, "warnings": doubts}


def _loaded(service: ServerState, name: str | None) -> KnowledgeGraph:
    graphs = service.kb.graphs
    chosen = [t for n, t in graphs.items() if name is None or n.value == name]
    triples = ((triple.subject, triple.predicate, triple.object) for of in chosen for triple in of)
    return load(triples, WELL_KNOWN)


def _text(term: Any) -> str:
    return str(term if isinstance(term, (ox.NamedNode, ox.BlankNode, ox.Literal)) else from_rdflib(term))
