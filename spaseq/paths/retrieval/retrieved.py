"""What a retrieval has found."""

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


@dataclass(slots=True)
class Citations:
    """Writes edges as lines that cite their sources, and numbers the sources as they come, from 1."""

    graph: Snapshot
    numbers: dict[str, int] = field(default_factory=dict)

    def lines(self, edges: Iterable[Numbers]) -> list[str]:
        """Return a line for each edge that does not only give a label: its triple, then ``[1] [2]``."""
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
    """Return a source in the list of sources."""
    return f"[{number}] {source}" if passage is None else f"[{number}] {source}: {one_line(passage)}"


@dataclass(frozen=True, slots=True, eq=False)
class Retrieval:
    """The best paths, best first; iterating gives them.

    ``candidates``: so many distinct paths were compared; ``looked``: so many edges looked at. ``rejected``
    are expressions that could not be used, ``warnings`` say what is doubtful about others, ``unknown`` are
    topics that the graph does not have, ``linked`` what names were taken for. ``truncated``: the budget in
    paths was too small for all. ``tokens``: what the text has of them. ``shed``: under a latency or a memory,
    what was given up, and ``shed.recall`` the share of the paths that were compared (None if some were not
    even walked). ``chunks``: the passages behind the paths, by their sources, as far as the tokens suffice.
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
        """The distinct edges of the paths, those of better ones first, as numbers of the graph."""
        return tuple(dict.fromkeys(edge for ranked in self.paths for edge in ranked.path.edges))

    @property
    def triples(self) -> tuple[tuple[RdflibTerm, RdflibTerm, RdflibTerm], ...]:
        """The same as terms."""
        return tuple(triple(self.graph, edge) for edge in self.edges)

    def text(self) -> str:
        """Return the triples by their labels, one a line, none twice, but for triples that only give a label.

        Triples with sources cite them, as ``[1]``; the list of sources stands at the end, with passages.
        """
        cited = Citations(self.graph)
        return "\n".join([*cited.lines(self.edges), *cited.listed(self.chunks)])

    def sources(self, ranked: Ranked) -> tuple[str, ...]:
        """Return the sources of a path's edges, each once."""
        return tuple(dict.fromkeys(s for edge in ranked.path.edges for s in self.graph.sources_of(edge)))

    def metadata(self, ranked: Ranked) -> dict[str, Any]:
        """Return what goes with a path's text: nodes, triples, sources, passages, names taken for others."""
        sources = self.sources(ranked)
        more = {
            "sources": list(sources),
            "chunks": {source: self.chunks[source] for source in sources if source in self.chunks},
            "linked": [candidate.as_json() for candidate in self.linked if not candidate.is_called_so],
        }
        return {**path_json(ranked.path), **{name: value for name, value in more.items() if value}}

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
        """The triples as a graph."""
        return rdf(self.graph, self.edges)
