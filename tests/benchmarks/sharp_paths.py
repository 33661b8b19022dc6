"""Retrieval under a bound on MetaQA: what is still found within a share of the work, or the memory, without.

The plan of a question is all relation paths of as many hops that MetaQA's questions know; its default ranking
has to find the right one. ``accuracy``: the first path ends in an answer; ``hit``: one of the ten best does;
``recall``: the share of the answers that the paths compared end in, however they are ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import mean

import numpy as np

from spaseq.bounds import WorkClock
from spaseq.paths import Budget, KnowledgeGraph, retrieve
from tests.benchmarks.measure import Measurement
from tests.conftest import SHARED
from tests.paths.metaqa import Question, entity, knowledge_graph, questions

_DATA: Path = SHARED / "metaqa"
_K = 10
_MOST = 100_000
#: The units of work, and the bytes, of a path that is ranked and of an edge that is looked at.
_RANKED, _RANKED_BYTES, _EDGE_BYTES = 40, 6_096, 160

Asked = list[tuple[Question, Sequence[tuple[str, ...]]]]


@dataclass(frozen=True)
class Answered:
    """Whether the first of the paths found and one of the best are right; of the answers, which share is
    among the best, and among all that were compared; and the work."""

    hops: int
    first: bool
    hit: bool
    best: float
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
    whole = [_answer(graph, *each, Budget(paths=_MOST)) for each in asked]
    yield from _told("no bound", whole, None)
    units, size = mean(a.units for a in whole), mean(a.size for a in whole)
    for share in (0.5, 0.1):
        for policy in ("random-state", "sharp", "selective"):
            for words, of in (
                ("the work", [units] * len(whole)),
                ("each question's work", [a.units for a in whole]),
            ):
                within = [
                    _answer(graph, *each, _budget(policy, latency=timedelta(microseconds=share * most)))
                    for each, most in zip(asked, of, strict=True)
                ]
                spent = [a.units / (share * most) for a, most in zip(within, of, strict=True)]
                yield from _told(f"{share:.0%} of {words}, {policy}", within, whole, spent)
            memory = int(share * size)
            within = [_answer(graph, *each, _budget(policy, memory=memory)) for each in asked]
            yield from _told(f"{share:.0%} of the memory, {policy}", within, whole)


def _budget(policy: str, latency: timedelta | None = None, memory: int | None = None) -> Budget:
    return Budget(paths=_MOST, latency=latency, memory=memory, policy=policy, clock=WorkClock())


def _answer(
    graph: KnowledgeGraph, question: Question, plans: Sequence[tuple[str, ...]], budget: Budget
) -> Answered:
    text = question.text.replace("[", "").replace("]", "")
    topic = entity(question.topic).value
    found = retrieve(graph, plans, topic, _MOST, budget=budget, question=text, returning=False)
    gold = {graph.node(entity(name)) for name in question.answers}
    ends = [ranked.path.nodes[-1] for ranked in found]
    best, clock = set(ends[:_K]), budget.clock
    return Answered(
        len(question.relations),
        bool(ends) and ends[0] in gold,
        bool(gold & best),
        len(gold & best) / min(_K, len(gold)),
        len(gold & set(ends)) / len(gold),
        clock.units if isinstance(clock, WorkClock) else found.looked + _RANKED * found.candidates,
        _EDGE_BYTES * found.looked + _RANKED_BYTES * found.candidates,
    )


def _told(
    case: str,
    answers: Sequence[Answered],
    whole: Sequence[Answered] | None,
    spent: Sequence[float] | None = None,
) -> Iterator[Measurement]:
    """All questions, then those of each number of hops. ``spent``: of each bound, the share that was."""
    for hops in (None, 1, 2, 3):
        some = [n for n, a in enumerate(answers) if hops in (None, a.hops)]
        here = [answers[n] for n in some]
        first = mean(a.first for a in here)
        facts = {
            "accuracy": first,
            "hit": mean(a.hit for a in here),
            f"recall at {_K}": mean(a.best for a in here),
            "recall": mean(a.recall for a in here),
            "questions": float(len(here)),
        }
        if spent is not None:
            facts["p99 / bound"] = float(np.quantile([spent[n] for n in some], 0.99))
        ratio = None if whole is None else first / max(mean(whole[n].first for n in some), 1e-9)
        words = "" if hops is None else f"{hops} hop{'s' * (hops > 1)}, "
        told = f"retrieval, {words}{case}"
        yield Measurement("sharp-paths", told, ratio, "accuracy without a bound", facts=facts)
