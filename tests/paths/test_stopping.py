"""Searches that are ended from outside, on every way there is; the graph answers as before afterwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from spaseq.errors import LimitError
from spaseq.paths import KnowledgeGraph, load, retrieve
from spaseq.paths.search import reach
from spaseq.paths.search.running import Stop, stopped_by

ROWS = [
    (f"urn:{s}", "urn:p", f"urn:{o}") for s, o in np.random.default_rng(1).integers(0, 200, (800, 2)).tolist()
]
ROWS += [("urn:0", "urn:rare", "urn:1")]
SEARCHES: dict[str, Callable[[KnowledgeGraph], object]] = {
    "one by one": lambda graph: graph.pairs("<urn:p>+", 0),
    "one pair": lambda graph: graph.pairs("<urn:p>{9}", 0, 1),
    "together": lambda graph: graph.pairs("<urn:p>+"),
    "in batches": lambda graph: list(graph.batches("<urn:p>+")),
    "from the middle": lambda graph: graph.pairs("(<urn:p>|^<urn:p>){6}/<urn:rare>/(<urn:p>|^<urn:p>){6}"),
    "all paths": lambda graph: list(graph.paths("<urn:p>{2}", 0)),
    "the shortest": lambda graph: list(graph.paths("<urn:p>+", 0, mode="ANY")),
    "the shortest of a pair": lambda graph: list(graph.paths("<urn:p>{9}", 0, 1, "ANY")),
    "relations": lambda graph: graph.relations_of("<urn:0>"),
    "retrieval": lambda graph: retrieve(graph, ["<urn:p>/<urn:p>"], "<urn:0>"),
}


@pytest.fixture(params=["", "masks", "components"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(reach, "_TRIED", -1)
        monkeypatch.setattr(reach, "_MASK_COST", 0)
    if request.param == "components":
        monkeypatch.setattr(reach, "_COMPONENT_COST", 0)


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.few(1, ci=10)
def test_a_stopped_search_ends_and_leaves_the_graph_as_it_was(name: str) -> None:
    graph, fresh, search = load(ROWS), load(ROWS), SEARCHES[name]
    stop = Stop()
    stop.set("enough")
    for _ in range(2):
        with stopped_by(stop), pytest.raises(LimitError, match="enough"):
            search(graph)
        assert repr(search(graph)) == repr(search(fresh))
