"""The result of a retrieval: ranked paths, rejected expressions, citations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import rdflib

from spaseq.bounds import Shed
from spaseq.paths.graph.linking.candidates import Candidate
from spaseq.paths.graph.names import Names, names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.path import Numbers, Path, one_line, path_json, rdf, triple, triple_text
from spaseq.results.writers._json import json_term
from spaseq.terms.interop import RdflibTerm


@dataclass(frozen=True, slots=True)
class Ranked:
    """A path, its score, its text with labels, and the numbers of the expressions that it matches."""

    path: Path
    score: float
    text: str
    expressions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """An expression that was left out: its number among those given, its text, and the reason."""

    place: int
    expression: str
    reason: str


@dataclass(slots=True)
class Citations:
    """Writes edges as lines that cite their sources; sources are numbered from 1 as they are first cited."""

    graph: Snapshot
    numbers: dict[str, int] = field(default_factory=dict)

    def lines(self, edges: Iterable[Numbers]) -> list[str]:
        """Return a line for each edge: its triple, ``[1] [2]``. Edges that only give a label have no line."""
        names = names_of(self.graph)
        return [self._line(edge, names) for edge in edges if not names.is_told(edge)]

    def _line(self, edge: Numbers, names: Names) -> str:
        cited = [
            self.numbers.setdefault(source, len(self.numbers) + 1) for source in self.graph.sources_of(edge)
        ]
        return " ".join([triple_text(edge, names), *(f"[{number}]" for number in cited)])

    def listed(self, chunks: Mapping[str, str], after: int = 0) -> list[str]:
        """Return a line for each source with a number above ``after``, with its passage if there is one."""
        return [
            cited_text(number, source, chunks.get(source))
            for source, number in self.numbers.items()
            if number > after
        ]


def cited_text(number: int, source: str, passage: str | None = None) -> str:
    """Return the line of a source in the list of sources."""
    return f"[{number}] {source}" if passage is None else f"[{number}] {source}: {one_line(passage)}"


@dataclass(frozen=True, slots=True, eq=False)
class Retrieval:
    """The result of a retrieval; iterating yields its paths, best first.

    ``candidates`` is the number of distinct paths compared, ``looked`` the number of edges looked at.
    ``rejected`` are expressions that could not be used; ``warnings`` are doubts about the others. ``unknown``
    are topics that the graph does not have. ``linked`` are the nodes that names were linked to.
    ``truncated``: ``budget.paths`` cut off some paths. ``tokens`` is the number of tokens of the text.
    ``shed``: under a latency or a memory, what was dropped; ``shed.recall`` is the share of the paths that
    were compared (None if some were not even walked). ``chunks`` are the passages of the paths' sources, as
    far as the tokens suffice.
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
    chunks: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.paths)

    @property
    def edges(self) -> tuple[Numbers, ...]:
        """The distinct edges of the paths, in the order of the paths, as numbers of the graph."""
        return tuple(dict.fromkeys(edge for ranked in self.paths for edge in ranked.path.edges))

    @property
    def triples(self) -> tuple[tuple[RdflibTerm, RdflibTerm, RdflibTerm], ...]:
        """The distinct edges of the paths, as triples of rdflib terms."""
        return tuple(triple(self.graph, edge) for edge in self.edges)

    def text(self) -> str:
        """Return the distinct triples with labels for terms, one per line.

        Triples that only give a label are left out. Triples with sources cite them, as ``[1]``; the list of
        sources, with passages, is at the end.
        """
        cited = Citations(self.graph)
        return "\n".join([*cited.lines(self.edges), *cited.listed(self.chunks)])

    def sources(self, ranked: Ranked) -> tuple[str, ...]:
        """Return the sources of a path's edges, each once."""
        return tuple(dict.fromkeys(s for edge in ranked.path.edges for s in self.graph.sources_of(edge)))

    def metadata(self, ranked: Ranked) -> dict[str, Any]:
        """Return a path's metadata: nodes, triples, sources, passages, and nodes linked by similar names."""
        sources = self.sources(ranked)
        more = {
            "sources": list(sources),
            "chunks": {source: self.chunks[source] for source in sources if source in self.chunks},
            "linked": [candidate.as_json() for candidate in self.linked if not candidate.is_called_so],
        }
        return {**path_json(ranked.path), **{name: value for name, value in more.items() if value}}

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values; terms as in the SPARQL 1.1 results format."""
        return {
            "question": self.question,
            "topics": [json_term(self.graph.term(topic)) for topic in self.topics],
            "paths": [
                {
                    "score": ranked.score,
                    "text": ranked.text,
                    "expressions": list(ranked.expressions),
                    **path_json(ranked.path),
                    **({"sources": list(sources)} if (sources := self.sources(ranked)) else {}),
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
            **({"chunks": dict(self.chunks)} if self.chunks else {}),
        }

    def rdf(self) -> rdflib.Graph:
        """Return the triples as an rdflib graph."""
        return rdf(self.graph, self.edges)
