"""Retrieval for language models on MetaQA and PathQuestion: recall, modes, CPU, saved graphs, changes.

The graph is as graphs come: IRIs that say nothing, names as ``rdfs:label``. Recall at k of a question is the
part of its answers that the k best paths end in. The plan is all relation paths of as many hops as the
question has that MetaQA's questions know, so that ranking by the question's words has to find the right one;
or the question's own path, as a planner that is always right would say.

On PathQuestion the plan is the gold path, or all gold paths of its questions; each mode is measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from spaseq.errors import QueryError
from spaseq.paths import Budget, KnowledgeGraph, load, retrieve
from spaseq.paths import open as open_graph
from tests.benchmarks.measure import Measurement, check, side_by_side
from tests.conftest import SHARED
from tests.paths import pathquestion
from tests.paths.metaqa import BASE, Question, questions, triples

_DATA: Path = SHARED / "metaqa"
_PATHS: Path = SHARED / "pathquestion"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_K = 10

Triples = list[tuple[str, str, str]]


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Everything that is measured, where the data is there."""
    if _PATHS.exists():
        for name in pathquestion.SETS:
            yield from _modes(name, 60 if quick else 12)
    if not _DATA.exists():
        yield Measurement("rag", "not measured", None, "the data is not there")
        return
    named = triples(_DATA)
    numbers = {name: i for i, name in enumerate(dict.fromkeys(n for s, _, o in named for n in (s, o)))}
    known = _labelled(named, numbers)
    graph = load(known)
    every = 500 if quick else 25
    for hops in (1, 2, 3):
        asked = questions(_DATA, hops)
        plans = sorted({question.relations for question in asked})
        some = asked[::every]
        yield from _recall(graph, numbers, hops, some, plans)
        yield from _returning(graph, numbers, hops, some)
    yield from _reopening(graph, known)
    yield from _updates(graph, quick)


def _modes(name: str, every: int) -> Iterator[Measurement]:
    """Gold paths shown and found, and hits at 1 when all gold paths of the set are the plan."""
    graph, asked = pathquestion.graph(_PATHS, name), pathquestion.questions(_PATHS, name)
    plans = sorted({question.relations for question in asked})
    asked, hops = asked[::every], len(asked[0].relations)
    topics = [pathquestion.iri(question.topic) for question in asked]
    gold = [{pathquestion.iri(answer) for answer in question.answers} for question in asked]
    shown = mean(
        question.relations in {path.relations for path in graph.relations_of(topic, hops, examples=0)}
        for question, topic in zip(asked, topics, strict=True)
    )
    for mode in (None, "TRAIL", "WALK"):
        found, hits = list[bool](), list[bool]()
        for question, topic, answers in zip(asked, topics, gold, strict=True):
            own = retrieve(graph, [question.relations], topic, 10_000, mode=mode)
            found.append({str(ranked.path.end) for ranked in own} >= answers)
            best = retrieve(graph, plans, topic, 1, question=question.text, mode=mode)
            hits.append(any(str(ranked.path.end) in answers for ranked in best))
        yield Measurement(
            "rag",
            f"gold path of {name} found, {mode or 'no mode'}",
            mean(found),
            "all questions",
            facts={"hits at 1": mean(hits), "among relations_of": shown, "questions": len(asked)},
        )


def _labelled(named: Triples, numbers: dict[str, int]) -> Triples:
    edges = [(_iri(numbers[s]), BASE + p, _iri(numbers[o])) for s, p, o in named]
    return edges + [(_iri(number), _LABEL, f'"{_escaped(name)}"') for name, number in numbers.items()]


def _iri(number: int) -> str:
    return f"{BASE}e{number}"


def _topic(numbers: dict[str, int], question: Question) -> str:
    return _iri(numbers.get(question.topic, -1))


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _recall(
    graph: KnowledgeGraph,
    numbers: dict[str, int],
    hops: int,
    asked: Sequence[Question],
    plans: Sequence[tuple[str, ...]],
) -> Iterator[Measurement]:
    for case, planned in (("all paths", plans), ("its own path", None)):
        by_label, by_iri = [], []
        begin = time.process_time()
        for question in asked:
            expressions = planned or [question.relations]
            by_label.append(_found(graph, numbers, question, expressions, question.topic))
        cpu = time.process_time() - begin
        for question in asked:
            topic = _topic(numbers, question)
            by_iri.append(_found(graph, numbers, question, planned or [question.relations], topic))
        yield Measurement(
            "rag",
            f"recall at {_K}, {hops} hops, {case}, topics by label",
            mean(by_label) / mean(by_iri),
            "topics by IRI",
            facts={
                "recall": mean(by_label),
                "recall by IRI": mean(by_iri),
                "questions": len(asked),
                "CPU ms a question": 1000 * cpu / len(asked),
            },
        )


def _found(
    graph: KnowledgeGraph,
    numbers: dict[str, int],
    question: Question,
    expressions: Sequence[tuple[str, ...]],
    topic: str,
    k: int = _K,
    **options: bool,
) -> float:
    """The question's recall; 0 where the graph has not even the topic."""
    text = question.text.replace("[", "").replace("]", "")
    budget = Budget(paths=100_000)
    try:
        found = retrieve(graph, expressions, topic, k, budget=budget, question=text, **options)
    except QueryError:  # nothing is called so
        return 0.0
    ends = {ranked.path.nodes[-1] for ranked in found}
    gold = {graph.node(_iri(numbers[name])) for name in question.answers if name in numbers}
    return len(gold & ends) / max(1, min(k, len(question.answers)))


def _returning(
    graph: KnowledgeGraph, numbers: dict[str, int], hops: int, asked: Sequence[Question]
) -> Iterator[Measurement]:
    """MetaQA's answers are never the topic, so that coming back can only cost there."""
    kept, dropped = (
        mean(_found(graph, numbers, q, [q.relations], _topic(numbers, q), returning=returning) for q in asked)
        for returning in (True, False)
    )
    yield Measurement(
        "rag",
        f"recall at {_K}, {hops} hops, its own path, returning",
        kept / dropped,
        "not returning",
        facts={"recall": kept, "recall not returning": dropped},
    )


def _reopening(graph: KnowledgeGraph, known: Triples) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "movies.spaseq"
        graph.save(file)
        check("edges", len(open_graph(file)), len(graph))
        loaded, opened = side_by_side(3, lambda: load(known), lambda: open_graph(file))
        yield Measurement(
            "rag",
            "reopening a saved graph",
            loaded / opened,
            "loading its triples",
            facts={"edges": len(graph), "ms": 1000 * opened},
        )


def _updates(graph: KnowledgeGraph, quick: bool) -> Iterator[Measurement]:
    """Triples added one by one, and the same with a question after each."""
    count, questions_ = (2_000, 3) if quick else (50_000, 20)
    predicate, topic = f"{BASE}starred_actors", _iri(0)
    new = [(f"{BASE}new{i}", predicate, topic) for i in range(count)]
    begin = time.process_time()
    for triple in new:
        graph.add([triple])
    added = time.process_time() - begin
    before = len(graph)
    check("edges", before, len(graph.now))
    begin = time.process_time()
    for i in range(questions_):
        graph.add([(f"{BASE}newer{i}", predicate, topic)])
        graph.pairs(f"<{predicate}>", targets=[topic], limit=1)
    asked = time.process_time() - begin
    check("edges", len(graph), before + questions_)
    yield Measurement(
        "rag",
        "updates",
        None,
        "CPU",
        {"added triples": count / added, "added triples, each with a question": questions_ / asked},
    )
