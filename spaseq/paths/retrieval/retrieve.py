"""Retrieval for language models: follow relation paths from a topic, and rank the paths for a question.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from spaseq.bounds import Shed
from spaseq.errors import RetrievalError, SpaseqError
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.linking.candidates import topics
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.modes import Mode, read_mode
from spaseq.paths.path import Numbers
from spaseq.paths.retrieval.bounded import best_effort
from spaseq.paths.retrieval.budget import Budget, budget_given
from spaseq.paths.retrieval.ranking import Chunks, Embed, cosine, embedded, hashed_words
from spaseq.paths.retrieval.retrieved import Citations, Ranked, Retrieval, cited_text
from spaseq.paths.retrieval.together import Plan, Together, Walked
from spaseq.paths.retrieval.wanted import Weighted, read_expressions
from spaseq.terms.interop import to_rdflib

#: Scores are rounded to this many decimals, because further ones depend on the machine.
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Question:
    """One question for ``retrieve_many``: expressions, topic and question as ``retrieve`` takes them."""

    expressions: Iterable[Weighted] | str | Expression
    topic: Any
    question: str | None = None


def retrieve(
    graph: KnowledgeGraph,
    expressions: Iterable[Weighted] | str | Expression,
    topic: Any,
    k: int = 10,
    embed: Embed | None = None,
    budget: Budget | None = None,
    *,
    question: str | None = None,
    mode: str | None = None,
    returning: bool = True,
    labels: Any = (),
    chunks: Chunks | None = None,
) -> Retrieval:
    """Return the ``k`` best paths from a topic (a term, or several) that match one of the expressions.

    A topic that is not a term of the graph may be a name, ``"Edward Arnold"``: a label, or the last segment
    of an IRI. All nodes with this name are topics. ``graph.link`` returns them, or nodes with similar names.
    ``labels`` are more predicates (or one) with names as values.

    An expression is a list of relation names as a language model writes them, such as ``["^starred_actors",
    "release_year"]``. Names are local names, labels, prefixed names or IRIs of predicates; ``^`` goes from
    object to subject. An expression may also be a path expression, as text or as a tree. ``(expression,
    0.5)`` gives a weight; the default is 1. All expressions are walked together, and common prefixes only
    once (``spaseq.paths.retrieval.prefixes``). Expressions that cannot be used are left out and listed in
    ``rejected``.

    A path's score is the cosine between the vectors of its text and of the question, times the weight of its
    expression. If a path matches several expressions, the highest score counts. Without a question, the
    score is the weight. Among equal scores, shorter paths come first, then the order is by text. ``embed``
    returns vectors for texts, a row for each; the default hashes words and their trigrams
    (``spaseq.paths.retrieval.ranking``). Results are deterministic, but if the budget cuts off paths, which
    ones depends on the order in which the graph was loaded.

    Without a ``mode``, a list of relation names is walked: a path may take an edge again, as ``["spouse",
    "spouse", "spouse"]`` must, but never turns straight back along its last edge. A path expression is a
    trail: no edge twice. ``mode`` sets one of WALK, TRAIL, SIMPLE and ACYCLIC for all expressions.
    ``returning=False`` leaves out paths that come back to the topic, and so answers that are the topic or lie
    behind it. Paths without edges are left out.

    The text of the returned paths has at most ``budget.tokens`` tokens; a path that needs more than are left
    is skipped. The text cites the sources of triples (``KnowledgeGraph.add``). ``chunks`` returns the
    passages of sources (``ChunkStore``, or an adapter of LangChain's or LlamaIndex's stores). The text ends
    with as many passages as there are tokens for. With ``budget.latency`` or ``budget.memory``, retrieval is
    best effort, and ``shed`` reports the dropped paths.

    Raises QueryError for a name that no node has and for labels that no edge has, RetrievalError for a budget
    or vectors that cannot be used, QueryMeaningError for an unknown mode, LimitError for more memory than
    ``graph.limits`` lets a query take.
    """
    settings = _settings(k, embed, budget, mode, returning, chunks)
    now = graph.snapshot
    plan = _plan(now, Question(expressions, topic, question), settings.mode, labels)
    (found,) = _answers(now, [plan], settings)
    return found


def retrieve_many(
    graph: KnowledgeGraph,
    questions: Iterable[Question],
    k: int = 10,
    embed: Embed | None = None,
    budget: Budget | None = None,
    *,
    mode: str | None = None,
    returning: bool = True,
    labels: Any = (),
    chunks: Chunks | None = None,
) -> list[Retrieval]:
    """Return for each question what ``retrieve`` returns, in the same order, but faster.

    ``embed`` is called once, with all distinct questions and texts, or several times if ranking would take
    more than ``limits.query_bytes``. Questions with the same topics are walked together if the budget has
    room for all their paths; ``looked`` then counts the edges of this walk. ``budget`` and ``k`` apply to
    each question. If the budget has a latency or a memory, each question is walked and embedded alone. From
    asyncio: ``await asyncio.to_thread(retrieve_many, graph, questions)``.

    Raises what ``retrieve`` raises. Errors of topics are raised before anything is walked, with a note that
    gives the number of the question.
    """
    settings = _settings(k, embed, budget, mode, returning, chunks)
    now, plans = graph.snapshot, list[Plan]()
    for place, asked in enumerate(questions):
        try:
            plans.append(_plan(now, asked, settings.mode, labels))
        except SpaseqError as error:
            error.add_note(f"this is questions[{place}]")
            raise
    return _answers(now, plans, settings)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The arguments that are the same for all questions."""

    k: int
    embed: Embed
    budget: Budget
    mode: Mode | None
    returning: bool
    chunks: Chunks | None


def _settings(
    k: int,
    embed: Embed | None,
    budget: Budget | None,
    mode: str | None,
    returning: bool,
    chunks: Chunks | None,
) -> _Settings:
    if k < 0:
        raise RetrievalError(f"the best {k} paths: k is a number from 0 on")
    given = budget_given(budget) or Budget()
    return _Settings(k, embed or hashed_words, given, mode_given(mode), returning, chunks)


def mode_given(mode: str | None) -> Mode | None:
    """Return a mode for all expressions, if one is given. Raises QueryMeaningError or RetrievalError."""
    if mode is None:
        return None
    choice = read_mode(mode)
    if not choice.everything:
        raise RetrievalError(f"mode {mode!r}: all paths are ranked, so it is one of {', '.join(Mode)}")
    return choice.mode


def _plan(graph: Snapshot, asked: Question, mode: Mode | None, labels: Any) -> Plan:
    usable, rejected, warnings = read_expressions(graph, asked.expressions, mode)
    found, strangers, linked = topics(graph, asked.topic, labels)
    return Plan(
        asked.question, tuple(usable), tuple(rejected), tuple(warnings), found, strangers, linked
    )  # fmt: skip


def _answers(graph: Snapshot, plans: list[Plan], settings: _Settings) -> list[Retrieval]:
    if settings.budget.is_bound:
        return [_bound(graph, place, plan, settings) for place, plan in enumerate(plans)]
    together = Together(graph, settings.mode, settings.budget.paths, returning=settings.returning)
    found = dict[int, Retrieval]()
    for batch in _batches(together.walk(plans), graph.limits.query_bytes):
        for walked, likeness in zip(batch, _likeness(batch, settings.embed), strict=True):
            found[walked.place] = _answer(graph, walked, likeness, settings)
    return [found[place] for place in range(len(plans))]


def _bound(graph: Snapshot, place: int, plan: Plan, settings: _Settings) -> Retrieval:
    mode, returning = settings.mode, settings.returning
    walked, likeness, shed = best_effort(
        graph, place, plan, mode, settings.budget, settings.embed, returning=returning
    )
    return _answer(graph, walked, likeness, settings, shed)


def _batches(walked: Iterable[Walked], most: int | None) -> Iterator[list[Walked]]:
    """Yield batches of questions that ranking needs at most ``most`` bytes for, but at least one question."""
    batch, size = list[Walked](), 0
    for one in walked:
        if batch and most is not None and size + one.size > most:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.size
    if batch:
        yield batch


def _likeness(batch: list[Walked], embed: Embed) -> list[dict[str, float]]:
    """Return the similarity of each distinct text to its question, 1 without one; calls ``embed`` once."""
    texts = [walked.distinct for walked in batch]
    asked = [
        walked.plan.question if distinct else None for walked, distinct in zip(batch, texts, strict=True)
    ]
    rows = dict[str, int]()
    for question, distinct in zip(asked, texts, strict=True):
        if question is not None:
            for text in (question, *distinct):
                rows.setdefault(text, len(rows))
    vectors = embedded(embed, [*rows])
    return [
        dict.fromkeys(distinct, 1.0)
        if question is None
        else dict(
            zip(
                distinct,
                cosine(vectors[rows[question]], vectors[[rows[text] for text in distinct]]).tolist(),
                strict=True,
            )
        )
        for question, distinct in zip(asked, texts, strict=True)
    ]


def _answer(
    graph: Snapshot, walked: Walked, likeness: dict[str, float], settings: _Settings, shed: Shed | None = None
) -> Retrieval:
    candidates = _rank(walked, likeness)
    chosen, passages, tokens = _within(candidates, graph, settings)
    plan = walked.plan
    return Retrieval(
        graph=graph,
        question=plan.question,
        topics=tuple(plan.topics.tolist()),
        paths=tuple(chosen),
        candidates=len(candidates),
        looked=walked.looked,
        tokens=tokens,
        truncated=walked.truncated,
        rejected=plan.rejected,
        warnings=plan.warnings,
        unknown=tuple(map(to_rdflib, plan.unknown)),
        linked=plan.linked,
        shed=shed,
        chunks=passages,
    )


def _rank(walked: Walked, likeness: dict[str, float]) -> list[Ranked]:
    """Return the paths with their scores, best first."""
    usable, texts = walked.plan.usable, walked.texts
    ranked = [
        Ranked(
            path,
            max(round(usable[i].weight * likeness[texts[path]], _DIGITS) for i in accepted),
            texts[path],
            tuple(sorted(usable[i].place for i in accepted)),
        )
        for path, accepted in walked.accepted.items()
    ]
    namesakes = Counter(texts.values())

    def order(r: Ranked) -> tuple[float, int, str, str]:
        return -r.score, len(r.path), r.text, str(r.path) if namesakes[r.text] > 1 else ""

    return sorted(ranked, key=order)


def _within(
    candidates: Iterable[Ranked], graph: Snapshot, settings: _Settings
) -> tuple[list[Ranked], dict[str, str], int]:
    """Return the first ``k`` paths that fit the token budget, their passages, and the tokens used."""
    budget = settings.budget
    chosen, shown, tokens, cited = list[Ranked](), set[Numbers](), 0, Citations(graph)
    for ranked in candidates:
        if len(chosen) == settings.k:
            break
        new = [edge for edge in dict.fromkeys(ranked.path.edges) if edge not in shown]
        more = Citations(graph, dict(cited.numbers))
        lines = [*more.lines(new), *more.listed({}, len(cited.numbers))]
        cost = sum(map(budget.count, lines))
        if budget.tokens is None or tokens + cost <= budget.tokens:
            chosen.append(ranked)
            shown.update(new)
            tokens, cited = tokens + cost, more
    passages = dict[str, str]()
    found = settings.chunks([*cited.numbers]) if settings.chunks is not None and cited.numbers else {}
    for source, number in cited.numbers.items():
        if source in found:
            with_passage = budget.count(cited_text(number, source, found[source]))
            cost = with_passage - budget.count(cited_text(number, source))
            if budget.tokens is None or tokens + cost <= budget.tokens:
                passages[source] = found[source]
                tokens += cost
    return chosen, passages, tokens
