"""What a retrieval has found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import rdflib

from spaseq.bounds import Shed
from spaseq.paths.graph.linking.candidates import Candidate
from spaseq.paths.graph.names import names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.path import Path
from spaseq.paths.rendering import Numbers, path_json, rdf, triple, triple_text
from spaseq.results.writers._json import json_term
from spaseq.terms.interop import RdflibTerm


@dataclass(frozen=True, slots=True)
class Ranked:
    """A path, its score, its text by labels, and the places of the expressions that it meets."""

    path: Path
    score: float
    text: str
    expressions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """An expression that was left out, by its place among those given, and why."""

    place: int
    expression: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Retrieval:
    """The best paths, best first; iterating gives them.

    ``candidates``: so many distinct paths were compared; ``looked``: so many edges looked at. ``rejected``
    are expressions that could not be used, ``warnings`` say what is doubtful about others, ``unknown`` are
    topics that the graph does not have, ``linked`` what names were taken for. ``truncated``: the budget in
    paths was too small for all. ``tokens``: what the text has of them. ``shed``: under a latency or a memory,
    what was given up, and ``shed.recall`` the share of the paths that were compared (None if some were not
    even walked).
    """

    graph: Snapshot = field(repr=False)
    question: str | None
    topics: tuple[int, ...]
    paths: tuple[Ranked, ...] = field(repr=False)
    candidates: int
    looked: int
    tokens: int
    truncated: bool
    rejected: tuple[Rejected, ...] = field(repr=False)
    warnings: tuple[str, ...]
    unknown: tuple[RdflibTerm, ...]
    linked: tuple[Candidate, ...] = ()
    shed: Shed | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.paths)

    @property
    def edges(self) -> tuple[Numbers, ...]:
        """The distinct edges of the paths, those of better ones first, as numbers of the graph."""
        return tuple(dict.fromkeys(edge for ranked in self.paths for edge in ranked.path.edges))

    @property
    def triples(self) -> tuple[tuple[RdflibTerm, RdflibTerm, RdflibTerm], ...]:
        """The same as terms."""
        return tuple(triple(self.graph, edge) for edge in self.edges)

    def text(self) -> str:
        """The triples by their labels, one a line, none twice; without those that only give a label."""
        names = names_of(self.graph)
        return "\n".join(triple_text(edge, names) for edge in self.edges if not names.is_told(edge))

    def metadata(self, ranked: Ranked) -> dict[str, Any]:
        """Return what goes with a path's text: nodes, triples, and names taken for others."""
        taken = [candidate.as_json() for candidate in self.linked if not candidate.is_called_so]
        return {**path_json(ranked.path), **({"linked": taken} if taken else {})}

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values; terms as in the SPARQL 1.1 results format."""
        return {
            "question": self.question,
            "topics": [json_term(self.graph.term(topic)) for topic in self.topics],
            "paths": [
                {
                    "score": ranked.score,
                    "text": ranked.text,
                    "expressions": list(ranked.expressions),
                    **path_json(ranked.path),
                }
                for ranked in self.paths
            ],
            "candidates": self.candidates,
            "tokens": self.tokens,
            "truncated": self.truncated,
            "rejected": [
                {"place": r.place, "expression": r.expression, "reason": r.reason} for r in self.rejected
            ],
            "warnings": list(self.warnings),
            "unknown": [json_term(term) for term in self.unknown],
            "linked": [candidate.as_json() for candidate in self.linked],
            **({} if self.shed is None else {"shed": dict(self.shed.by_state)}),
        }

    def rdf(self) -> rdflib.Graph:
        """The triples as a graph."""
        return rdf(self.graph, self.edges)
