"""Retrieval for language models: the paths that relation paths find from a topic, the best for a question.

>>> import spaseq
>>> films = spaseq.paths.load([
...     ("urn:film:Kismet", "urn:starred_actors", "urn:person:Edward_Arnold"),
...     ("urn:film:Kismet", "urn:directed_by", "urn:person:William_Dieterle"),
...     ("urn:film:Kismet", "urn:release_year", "1944"),
...     ("urn:film:Meet_Nero_Wolfe", "urn:starred_actors", "urn:person:Edward_Arnold"),
...     ("urn:film:Meet_Nero_Wolfe", "urn:release_year", "1936"),
... ])
>>> found = spaseq.paths.retrieve(
...     films,
...     [["^starred_actors", "release_year"], (["^starred_actors", "directed_by"], 0.5), ["acted_by"]],
...     topic="urn:person:Edward_Arnold",
...     question="In which years were the films released that Edward Arnold starred in?",
...     k=2,
... )
>>> for ranked in found:
...     print(f"{ranked.score:.2f}", ranked.text)
0.30 Edward Arnold ← starred actors ← Kismet → release year → 1944
0.26 Edward Arnold ← starred actors ← Meet Nero Wolfe → release year → 1936
>>> print(found.text())
(Kismet, starred actors, Edward Arnold)
(Kismet, release year, 1944)
(Meet Nero Wolfe, starred actors, Edward Arnold)
(Meet Nero Wolfe, release year, 1936)
>>> [rejected.reason.splitlines()[0] for rejected in found.rejected]
['<relations>:1:1: no predicate of the graph is called acted_by']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import rdflib

from spaseq.errors import QueryError, RetrievalError
from spaseq.interop import RdflibTerm, to_rdflib
from spaseq.paths.expression import Expression
from spaseq.paths.linking.candidates import Candidate
from spaseq.paths.linking.candidates import topics as find_topics
from spaseq.paths.modes import Choice, Mode, check_finite, read_mode
from spaseq.paths.names import Names
from spaseq.paths.path import Path
from spaseq.paths.prefixes import Prefixes, Walks, walk
from spaseq.paths.ranking import Embed, cosines, count_tokens, hashed_words
from spaseq.paths.shown import Numbers, path_json, path_text, rdf, triple, triple_text
from spaseq.results._json import json_term

if TYPE_CHECKING:
    from spaseq.paths.knowledge import KnowledgeGraph

#: Relation names, or an expression as text or tree; with a weight or without.
Relations: TypeAlias = "Sequence[str] | str | Expression"
Weighted: TypeAlias = "Relations | tuple[Relations, float]"

#: What ranking takes for a path, and for the vector of its text.
_RANKED_BYTES: Final = 2_000
_VECTOR_BYTES: Final = 4_096

#: Scores that differ by less are equal: what is left of it depends on the machine.
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Budget:
    """What a retrieval may cost; None is no bound.

    ``paths``: so many paths are looked at, prefixes included; where there are more, half of what is left
    goes to each length, spread evenly. Those that are complete are given to ``embed``. ``tokens``: so many
    the text may have, as ``count`` counts those of a line; the default counts words and punctuation marks.
    """

    paths: int | None = 10_000
    tokens: int | None = None
    count: Callable[[str], int] = count_tokens

    def __post_init__(self) -> None:
        for name, value in (("paths", self.paths), ("tokens", self.tokens)):
            if value is not None and value < 0:
                raise RetrievalError(f"a budget of {value:,} {name}: it is a number from 0 on, or None")


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
    paths was too small for all. ``tokens``: what the text has of them.
    """

    graph: KnowledgeGraph = field(repr=False)
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
        """The triples by their labels, one a line, none twice."""
        names = self.graph.names
        return "\n".join(triple_text(edge, names) for edge in self.edges)

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
        }

    def rdf(self) -> rdflib.Graph:
        """The triples as a graph."""
        return rdf(self.graph, self.edges)


def retrieve(
    graph: KnowledgeGraph,
    expressions: Iterable[Weighted] | str | Expression,
    topic: Any,
    k: int = 10,
    embed: Embed | None = None,
    budget: Budget | None = None,
    *,
    question: str | None = None,
    mode: str = "TRAIL",
    returning: bool = False,
) -> Retrieval:
    """The ``k`` best paths from a topic (a term, or several), of all that meet one of the expressions.

    A topic that is no term of the graph may be a name, ``"Edward Arnold"``: a label, or the last segment of
    an IRI. All nodes that are called so are topics; ``graph.link`` tells them, and those spelled alike.

    An expression is a list of relation names as a language model writes them (``["^starred_actors",
    "release_year"]``: local names, labels, prefixed names or IRIs of predicates, ``^`` from object to
    subject), or a path expression, as text or as a tree; with a weight, ``(expression, 0.5)``, or else of
    weight 1. All are walked together, what their paths have in common at the beginning once
    (``spaseq.paths.prefixes``). What cannot be used is left out, and said in ``rejected``.

    A path's score is the cosine between the vectors of its text and of the question, times the weight of
    its expression (the one that gives most, if it meets several); without a question it is the weight. Equal
    scores: the shorter path first, then by text. ``embed`` makes vectors of texts, a row for each; the
    default hashes words and their trigrams (``spaseq.paths.ranking``). The same arguments always give
    the same; where the budget cuts paths off, which ones depends on the order in which the graph was loaded.

    ``mode`` is WALK, TRAIL, SIMPLE or ACYCLIC; unless ``returning``, paths do not come back to the topic.
    Paths of no edges say nothing and are left out. The text of the paths that are returned has at most
    ``budget.tokens`` tokens: a path with more than are left is passed over.

    Raises QueryError for a topic that is a name of no node, RetrievalError for a budget or vectors that
    cannot be used, QueryMeaningError for a mode that is none, LimitError for more memory than
    ``graph.limits`` lets a query take.
    """
    budget = budget or Budget()
    choice = read_mode(mode)
    if not choice.everything:
        raise RetrievalError(f"mode {mode!r}: all paths are ranked, so it is one of {', '.join(Mode)}")
    if k < 0:
        raise RetrievalError(f"the best {k} paths: k is a number from 0 on")
    names = graph.names
    usable, rejected, warnings = _read(graph, names, expressions, choice.mode)
    topics, strangers, linked = find_topics(graph, topic)
    memory = graph.memory(f"retrieve by {len(usable):,} expressions from {len(topics):,} topics")
    walks = walk(
        Prefixes(graph, [used.expression for used in usable]),
        topics,
        choice.mode,
        returning=returning,
        most=budget.paths,
        memory=memory,
    )
    complete = len(walks.complete())
    memory.take(complete * (_RANKED_BYTES + _VECTOR_BYTES * (question is not None)), f"{complete:,} paths")
    candidates = _rank(walks, usable, names, question, embed or hashed_words)
    chosen, tokens = _within(candidates, k, budget, names)
    return Retrieval(
        graph=graph,
        question=question,
        topics=tuple(topics.tolist()),
        paths=tuple(chosen),
        candidates=len(candidates),
        looked=walks.looked,
        tokens=tokens,
        truncated=walks.truncated,
        rejected=tuple(rejected),
        warnings=tuple(warnings),
        unknown=tuple(map(to_rdflib, strangers)),
        linked=linked,
    )


@dataclass(frozen=True, slots=True)
class _Usable:
    place: int
    expression: str | Expression
    weight: float


def _read(
    graph: KnowledgeGraph, names: Names, expressions: Iterable[Weighted] | str | Expression, mode: Mode
) -> tuple[list[_Usable], list[Rejected], list[str]]:
    """The expressions that can be used, those that cannot, and what is doubtful."""
    given = [expressions] if isinstance(expressions, str | Expression) else list(expressions)
    usable, rejected, warnings = list[_Usable](), list[Rejected](), list[str]()
    for place, weighted in enumerate(given):
        relations, weight = _split(weighted)
        try:
            expression = _expression(names, relations)
            check_finite(graph.compile(expression).expression, Choice(mode))
            if not (isfinite(weight) and weight >= 0):
                raise RetrievalError(f"its weight is {weight}, and not a number from 0 on")
            warnings += graph.check(expression)
        except (QueryError, RetrievalError) as error:
            rejected.append(Rejected(place, _shown(relations), str(error)))
        else:
            usable.append(_Usable(place, expression, weight))
    return usable, rejected, list(dict.fromkeys(warnings))


def _split(weighted: Weighted) -> tuple[Relations, float]:
    match weighted:
        case (relations, int() | float() as weight):
            return relations, float(weight)
        case _:
            return weighted, 1.0


def _expression(names: Names, relations: Relations) -> str | Expression:
    """What the graph is asked for; text stays text, by which the graph keeps what it has compiled."""
    if isinstance(relations, str | Expression):
        return relations
    if not isinstance(relations, list | tuple):
        kind = type(relations).__name__
        raise RetrievalError(f"a list of relation names or a path expression is wanted, not {kind}")
    return names.expression(relations)


def _shown(relations: Relations) -> str:
    return ", ".join(map(str, relations)) if isinstance(relations, list | tuple) else str(relations)


def _rank(
    walks: Walks, usable: Sequence[_Usable], names: Names, question: str | None, embed: Embed
) -> list[Ranked]:
    """The complete paths of the tree, best first."""
    met: dict[Path, set[int]] = {}
    for number in walks.complete().tolist():
        accepted = walks.prefixes.accepts(int(walks.state[number]))
        met.setdefault(walks.path(number), set()).update(accepted)
    texts = {path: path_text(path, names) for path in met}
    distinct = sorted(set(texts.values()))  # in an order that does not depend on how the graph was loaded
    likeness = dict.fromkeys(distinct, 1.0)
    if question is not None and distinct:
        likeness = dict(zip(distinct, cosines(embed, question, distinct).tolist(), strict=True))
    ranked = [
        Ranked(
            path,
            max(round(usable[i].weight * likeness[texts[path]], _DIGITS) for i in accepted),
            texts[path],
            tuple(sorted(usable[i].place for i in accepted)),
        )
        for path, accepted in met.items()
    ]
    namesakes = Counter(texts.values())

    def order(r: Ranked) -> tuple[float, int, str, str]:
        return -r.score, len(r.path), r.text, str(r.path) if namesakes[r.text] > 1 else ""

    return sorted(ranked, key=order)


def _within(candidates: Iterable[Ranked], k: int, budget: Budget, names: Names) -> tuple[list[Ranked], int]:
    """The first ``k`` that the budget in tokens has room for, and the tokens of their text."""
    chosen, shown, tokens = list[Ranked](), set[Numbers](), 0
    for ranked in candidates:
        if len(chosen) == k:
            break
        new = [edge for edge in dict.fromkeys(ranked.path.edges) if edge not in shown]
        cost = sum(budget.count(triple_text(edge, names)) for edge in new)
        if budget.tokens is None or tokens + cost <= budget.tokens:
            chosen.append(ranked)
            shown.update(new)
            tokens += cost
    return chosen, tokens
