"""Best-effort retrieval within a latency and a memory: the most promising edges are walked first.

The promise of an expression is its weight times one plus the cosine between the question and the names of its
relations. The promise of an unfinished path is the highest promise of an expression that it may still match.
A frontier extends the paths of highest promise first, and among equals those with the highest promise per
edge to look at. Then complete paths are embedded, highest promise first, until the time or the memory is used
up.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq.bounds import Policy, Shed, WorkClock
from spaseq.paths.graph.names import names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.modes import Mode
from spaseq.paths.path import Path, one_line, path_text
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.frontier import WALKING, Floats, Frontier, most_promised
from spaseq.paths.retrieval.prefixes import Prefixes
from spaseq.paths.retrieval.ranking import Embed, cosine, embedded
from spaseq.paths.retrieval.together import Plan, Walked, prefixes_of
from spaseq.paths.retrieval.walking import walk
from spaseq.paths.search._kernel import Ids, Nodes

#: Work units of embedding a path, for a clock that counts work; a look at an edge is 1.
_RANKED: Final = 40.0
#: This many paths are embedded first, to measure the time of one; then as many as ``_NEXT`` of the time left
#: allows.
_FIRST: Final = 8
_NEXT: Final = 0.6


def best_effort(
    graph: Snapshot,
    place: int,
    plan: Plan,
    mode: Mode | None,
    budget: Budget,
    embed: Embed,
    *,
    returning: bool,
) -> tuple[Walked, dict[str, float], Shed]:
    """Return the paths found within the budget, the similarity of texts to the question, and what was shed.

    The path of highest promise is compared in any case.
    """
    begin = budget.clock()
    prefixes = prefixes_of(graph, ((used.expression, used.plain) for used in plan.usable))
    about = [_words(graph, prefixes, i) for i in range(len(plan.usable))]
    vectors = embedded(embed, [] if plan.question is None else [plan.question, *about])
    weights = np.array([used.weight for used in plan.usable])
    # All that is no less like the question than another may still be the best.
    promises = weights * (1.0 + cosine(vectors[0], vectors[1:])) if plan.question is not None else weights
    frontier = Frontier(prefixes, promises, budget)
    memory = graph.memory(f"retrieve by {len(plan.usable):,} expressions from {len(plan.topics):,} topics")
    walks = walk(
        prefixes,
        plan.topics,
        mode or Mode.TRAIL,
        returning=returning,
        most=budget.paths,
        memory=memory,
        frontier=frontier,
    )
    complete = walks.complete()
    order = complete[_order(prefixes, walks.state[complete], promises, Policy(budget.policy))]
    accepted: dict[Path, set[int]] = {}
    texts: dict[Path, str] = {}
    likeness: dict[str, float] = {}
    at = 0
    while at < len(order):
        size = _next(budget, plan, begin, at, len(order) - at)
        if not size:
            break
        for number in order[at : at + size].tolist():
            path = walks.path(number)
            # A loop is one edge either way, so that two readings may have found it.
            accepted.setdefault(path, set()).update(prefixes.accepts(int(walks.state[number])))
            texts[path] = path_text(path, names_of(graph))
        new = sorted(set(texts.values()) - likeness.keys())
        likeness |= _likeness(plan.question, new, embed)
        at += size
        if isinstance(budget.clock, WorkClock):
            budget.clock.add(_RANKED * size)
    memory.take(at * plan.path_bytes, f"{at:,} paths")
    shed = _shed(frontier.passed, len(order) - at, at, budget.clock() - begin)
    return (
        Walked(place, plan, accepted, texts, walks.looked, walks.truncated, at * plan.path_bytes),
        likeness,
        shed,
    )


def _next(budget: Budget, plan: Plan, begin: float, at: int, left: int) -> int:
    """Return how many of the ``left`` paths to compare next, after ``at`` of them."""
    size = left if at else min(left, _FIRST)
    if budget.latency is not None and at:
        spent = budget.clock() - begin
        rest = budget.latency.total_seconds() - spent
        size = min(size, int(_NEXT * rest / max(spent / at, 1e-9)) if rest > 0 else 0)
    elif budget.latency is not None and isinstance(budget.clock, WorkClock):
        rest = budget.latency.total_seconds() - (budget.clock() - begin)
        size = min(size, max(1, int(rest / (_RANKED * budget.clock.unit))))
    if budget.memory is not None:
        size = min(size, max(1, int((1 - WALKING) * budget.memory / plan.path_bytes)) - at)
    return max(size, 0)


def _order(prefixes: Prefixes, states: Nodes, promises: Floats, policy: Policy) -> Ids:
    """Return the order in which paths in these states are compared."""
    if policy is Policy.RANDOM_STATE:
        return np.random.default_rng(2).permutation(len(states))
    counts = np.bincount(states, minlength=len(prefixes))
    if policy is Policy.SELECTIVE:
        return np.argsort(counts[states], kind="stable")
    promise = np.array([most_promised(promises, prefixes.accepts(q)) for q in range(len(prefixes))])
    return np.argsort(-promise[states], kind="stable")


def _words(graph: Snapshot, prefixes: Prefixes, number: int) -> str:
    """Return the names of an expression's relations, first relations first."""
    return " ".join(one_line(names_of(graph).predicate(p)) for p in prefixes.predicates(number))


def _likeness(question: str | None, texts: list[str], embed: Embed) -> dict[str, float]:
    if question is None or not texts:
        return dict.fromkeys(texts, 1.0)
    vectors = embedded(embed, [question, *texts])
    return dict(zip(texts, cosine(vectors[0], vectors[1:]).tolist(), strict=True))


def _shed(passed: int, left: int, compared: int, seconds: float) -> Shed:
    """Return what was shed: edges left out by the frontier, and complete paths that were not compared."""
    states = {"edges not walked": passed, "paths not compared": left}
    return Shed(
        partial_matches=passed + left,
        by_state={state: count for state, count in states.items() if count},
        active=passed + left > 0,
        latency=seconds,
        # The number of paths over edges that were not looked at is unknown.
        recall=None if passed else compared / max(1, compared + left) if left else 1.0,
    )
