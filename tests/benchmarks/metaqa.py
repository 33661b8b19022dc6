"""All test questions of MetaQA by their paths, beside dictionaries of sets that do the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measure import Measurement, check, side_by_side
from tests.conftest import SHARED
from tests.paths.metaqa import answer, entity, follow, index, knowledge_graph, questions, triples

_DATA: Path = SHARED / "metaqa"


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Questions of one, two and three hops, where the data is there."""
    if not _DATA.exists():
        yield Measurement("metaqa", "not measured", None, "the data is not there")
        return
    graph, known = knowledge_graph(_DATA), index(triples(_DATA))
    for hops in (1, 2, 3):
        asked = questions(_DATA, hops)[:: 100 if quick else 1]
        found = sum(map(len, answer(graph, asked)))
        check("answers", found, sum(len(follow(known, question)) for question in asked))
        for question in asked:
            entity(question.topic)  # the name as an IRI, which dictionaries of names do not need
        ours, plain = side_by_side(
            1 if quick else 5,
            lambda a=asked: answer(graph, a),
            lambda a=asked: [follow(known, question) for question in a],
        )
        rates = {"questions": len(asked) / ours, "plain questions": len(asked) / plain}
        yield Measurement(
            "metaqa", f"{hops} hops", plain / ours, "dictionaries of sets", rates, {"answers": found}
        )
