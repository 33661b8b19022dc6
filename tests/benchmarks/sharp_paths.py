"""Retrieval under a bound on MetaQA: what is still found within a share of the work, or the memory, without.

The plan of a question is all relation paths of as many hops that MetaQA's questions know; its default ranking
has to find the right one. ``accuracy``: the first path ends in an answer; ``hit``: one of the ten best does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import mean

import numpy as np

from spaseq.effort import WorkClock
from spaseq.paths import Budget, KnowledgeGraph, retrieve
from tests.benchmarks.measure import Measurement
from tests.conftest import SHARED
from tests.paths.metaqa import Question, entity, knowledge_graph, questions

_DATA: Path = SHARED / "metaqa"
_K = 10
#: The units of work, and the bytes, of a path that is ranked and of an edge that is looked at.
_RANKED, _RANKED_BYTES, _EDGE_BYTES = 40, 6_096, 160

Asked = list[tuple[Question, Sequence[tuple[str, ...]]]]


@dataclass(frozen=True)
class Answered:
    """Whether the first of the paths found and one of the best are right, which share is found, the work."""

    first: bool
    hit: bool
    recall: float
    units: float
    size: int


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Each policy at a half and a tenth of the mean work of a question, and of its memory."""
    if not _DATA.exists():
        yield Measurement("sharp-paths", "retrieval: not measured", None, "the data is not there")
        return
    graph, asked = knowledge_graph(_DATA), list[tuple[Question, Sequence[tuple[str, ...]]]]()
    for hops in (1, 2, 3):
        known = questions(_DATA, hops)
        plans = sorted({question.relations for question in known})
        some = known[:: 1_000 if quick else 100]
        asked += [(question, plans) for question in some if graph.node(entity(question.topic)) is not None]
    whole = [_answer(graph, *each, Budget(paths=100_000)) for each in asked]
    yield _told("no bound", whole, None, None)
    units, size = mean(a.units for a in whole), mean(a.size for a in whole)
    for share in (0.5, 0.1):
        for policy in ("random-state", "sharp", "selective"):
            bound = timedelta(microseconds=share * units)
            within = [_answer(graph, *each, _budget(policy, latency=bound)) for each in asked]
            yield _told(f"{share:.0%} of the work, {policy}", within, whole, share * units)
            memory = int(share * size)
            within = [_answer(graph, *each, _budget(policy, memory=memory)) for each in asked]
            yield _told(f"{share:.0%} of the memory, {policy}", within, whole, None)


def _budget(policy: str, latency: timedelta | None = None, memory: int | None = None) -> Budget:
    return Budget(paths=100_000, latency=latency, memory=memory, policy=policy, clock=WorkClock())


def _answer(
    graph: KnowledgeGraph, question: Question, plans: Sequence[tuple[str, ...]], budget: Budget
) -> Answered:
    text = question.text.replace("[", "").replace("]", "")
    topic = entity(question.topic).value
    found = retrieve(graph, plans, topic, _K, budget=budget, question=text, returning=False)
    gold = {graph.node(entity(name)) for name in question.answers}
    ends = [ranked.path.nodes[-1] for ranked in found]
    clock = budget.clock
    return Answered(
        bool(ends) and ends[0] in gold,
        bool(gold & set(ends)),
        len(gold & set(ends)) / min(_K, len(gold)),
        clock.units if isinstance(clock, WorkClock) else found.looked + _RANKED * found.candidates,
        _EDGE_BYTES * found.looked + _RANKED_BYTES * found.candidates,
    )


def _told(
    case: str, answers: Sequence[Answered], whole: Sequence[Answered] | None, bound: float | None
) -> Measurement:
    first = mean(a.first for a in answers)
    facts = {
        "accuracy": first,
        "hit": mean(a.hit for a in answers),
        f"recall at {_K}": mean(a.recall for a in answers),
        "questions": float(len(answers)),
    }
    if bound is not None:
        facts["p99 / bound"] = float(np.quantile([a.units for a in answers], 0.99)) / bound
    ratio = None if whole is None else first / max(mean(a.first for a in whole), 1e-9)
    return Measurement("sharp-paths", f"retrieval, {case}", ratio, "accuracy without a bound", facts=facts)
