"""PathQuestion: the gold path is among the relations that are shown, and is found when it is planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spaseq.paths import retrieve
from tests.paths import pathquestion


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every", "shown"), [("pq-2h", 12, 0.995), ("pql-3h", 10, 0.9)])
def test_gold_paths(shared: Callable[[str], Path], name: str, every: int, shown: float) -> None:
    data = shared("pathquestion")
    graph, asked = pathquestion.graph(data, name), pathquestion.questions(data, name)[::every]
    listed = 0
    for question in asked:
        topic = pathquestion.iri(question.topic)
        found = retrieve(graph, [question.relations], topic, 10_000)
        ends = {str(ranked.path.end) for ranked in found}
        assert ends == {pathquestion.iri(answer) for answer in question.answers}, question
        paths = graph.relations_of(topic, len(question.relations), examples=0)
        listed += question.relations in {path.relations for path in paths}
    assert listed >= shown * len(asked)
