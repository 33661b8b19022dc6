"""The tools over a knowledge graph, as plain values in and out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from spaseq.errors import QueryMeaningError, RetrievalError
from spaseq.language.syntax.printing import print_term
from spaseq.mcp.bounds import Bounds
from spaseq.paths import KnowledgeGraph, Path
from spaseq.paths import retrieve as retrieve_paths
from spaseq.paths.explain import explain as explain_path
from spaseq.paths.graph.linking.candidates import taken_for
from spaseq.paths.graph.linking.candidates import topics as find_topics
from spaseq.paths.graph.names import names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.modes import read_mode
from spaseq.paths.path import path_text
from spaseq.paths.retrieval.answers import read_paths, read_topics
from spaseq.paths.search.enumeration.paths import find_paths
from spaseq.paths.search.pairs import find_batches
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib

Topics = Annotated[
    str | list[str] | dict[str, Any],
    Field(
        description="What it is about: a name (a label, or the end of an IRI), an IRI, or a list of these."
    ),
]
Ends = Annotated[str | list[str] | None, Field(description="Names or terms; any node if it is not given.")]
Expression = Annotated[
    str,
    Field(
        description="A path expression: IRIs or prefixed names joined by / | * + ? ^ (…) !(…) as in SPARQL, "
        "{n,m} times, . any predicate, [a :Film] only at such nodes. "
        "Relation names alone are for the tool retrieve."
    ),
]
Relations = Annotated[
    list[Any] | dict[str, Any] | str,
    Field(
        description="A list of relation paths. Each is a list of relation names as the tool relations gives "
        'them, ^ before those from object to subject, as [["^starred", "directed_by"]]; or a path expression '
        "as text."
    ),
]
Rows = Annotated[int | None, Field(description="At most so many answers; the server has a limit, too.")]


@dataclass(frozen=True)
class GraphTools:
    """The tools over a graph. Each method is a tool, and a model reads its docstring as the description."""

    graph: KnowledgeGraph
    bounds: Bounds

    def relations(
        self,
        topic: Topics,
        hops: Annotated[int, Field(ge=1, le=4, description="Paths of so many relations.")] = 2,
        rows: Rows = None,
    ) -> dict[str, Any]:
        """List the relations that lead away from a topic in the knowledge graph, with examples of their ends.

        Call this first: retrieve takes relation paths that consist of these names.
        """
        most = self.bounds.most(rows)
        now = self.graph.now
        nodes, warnings = _topics(now.snapshot, topic)
        found = now.relations_of(nodes, hops, most)
        names = now.names
        shown = found.paths[:most]
        return {
            "topics": [names.node(node) for node in found.topics],
            "relations": [
                {
                    "path": list(path.relations),
                    "count": path.count,
                    "examples": [names.node(node) for node in path.examples],
                }
                for path in shown
            ],
            "warnings": [
                *warnings,
                *(["there are more relation paths"] if found.truncated or len(shown) < len(found) else []),
            ],
        }

    def paths(
        self,
        expression: Expression,
        sources: Ends = None,
        targets: Ends = None,
        mode: Annotated[
            str | None,
            Field(
                description="For the paths themselves instead of pairs of nodes: ALL, ANY, ANY SHORTEST, "
                "ALL SHORTEST or SHORTEST k, then WALK, TRAIL, SIMPLE or ACYCLIC."
            ),
        ] = None,
        rows: Rows = None,
    ) -> dict[str, Any]:
        """Return the pairs of nodes that a path expression joins in the knowledge graph; with a mode, the
        paths.
        """
        now = self.graph.now
        begins, strange_begins = _ends(now.snapshot, sources)
        ends, strange_ends = _ends(now.snapshot, targets)
        prefixes = now.prefixes
        warnings = [
            *now.check(expression),
            *(f"the graph has no node {print_term(t, prefixes)}" for t in (*strange_begins, *strange_ends)),
        ]
        most = self.bounds.most(rows)
        answers: Iterator[Any]
        if mode is None:
            pairs = chain.from_iterable(find_batches(now.snapshot, expression, begins, ends))
            answers = ({"source": _shown(now, s), "target": _shown(now, t)} for s, t in pairs)
        else:
            walks = find_paths(now.snapshot, expression, begins, ends, read_mode(mode), most + 1)
            answers = map(_path, walks)
        found, more = self.bounds.taken(answers, most)
        told = warnings if more is None else [*warnings, more]
        return {"pairs" if mode is None else "paths": found, "warnings": told}

    def retrieve(
        self,
        topic: Topics,
        relations: Relations,
        question: Annotated[str | None, Field(description="What the paths are ranked by.")] = None,
        mode: Annotated[
            str | None,
            Field(
                description="WALK, TRAIL (no edge twice), SIMPLE or ACYCLIC (no node twice). If it is not "
                "given, relation names are walked, but never straight back; path expressions are trails."
            ),
        ] = None,
        rows: Rows = None,
    ) -> dict[str, Any]:
        """Return what the knowledge graph says about a topic along relation paths: the best for the question.

        text has the facts, one a line, with their sources as [1]; paths shows how they are connected.
        """
        most = min(10, self.bounds.rows) if rows is None else self.bounds.most(rows)
        now = self.graph.now
        planned = read_paths(relations)
        nodes, warnings = _topics(now.snapshot, topic)
        found = retrieve_paths(now, planned, nodes, most, question=question, mode=mode)
        if planned and len(found.rejected) == len(planned):
            reasons = "\n".join(rejected.reason for rejected in found.rejected)
            raise RetrievalError(f"none of the relations can be used\n{reasons}")
        return {
            "text": found.text(),
            "paths": [
                {"score": ranked.score, "text": ranked.text}
                | ({"sources": [*sources]} if (sources := found.sources(ranked)) else {})
                for ranked in found
            ],
            "warnings": [
                *warnings,
                *(f"left out {rejected.expression}: {rejected.reason}" for rejected in found.rejected),
                *found.warnings,
                *(["there are more paths: some were not looked at"] if found.truncated else []),
            ],
        }

    def explain(self, expression: Expression) -> dict[str, Any]:
        """Explain how a path expression is understood, and what is doubtful about it in this graph."""
        explanation = explain_path(expression, self.graph)
        return {"text": str(explanation), "warnings": [*explanation.warnings]}


def _topics(graph: Snapshot, given: str | list[str] | dict[str, Any]) -> tuple[list[int], list[str]]:
    """Return the nodes that names and terms stand for, and warnings about guesses and unknown terms."""
    is_name = isinstance(given, str) and not given.lstrip().startswith(("[", "{"))
    nodes, strangers, linked = find_topics(graph, given if is_name else read_topics(given), alike=True)
    missing = [f"the graph has no node {print_term(term, graph.prefixes)}" for term in strangers]
    return nodes.tolist(), [*taken_for(linked), *missing]


def _ends(graph: Snapshot, given: str | list[str] | None) -> tuple[Any, tuple[Term, ...]]:
    """Return the nodes that names and terms stand for, and the terms that are not nodes of the graph.

    None instead of nodes means any node.
    """
    if given is None:
        return None, ()
    nodes, strangers, _ = find_topics(graph, given)
    if not len(nodes) and not strangers:
        raise QueryMeaningError("no node is given", filename="<nodes>", text=str(given))
    return nodes, strangers


def _shown(graph: KnowledgeGraph, term: Any) -> str:
    return print_term(from_rdflib(term), graph.prefixes)


def _path(path: Path) -> dict[str, str]:
    return {"text": path_text(path, names_of(path.graph)), "path": str(path)}
