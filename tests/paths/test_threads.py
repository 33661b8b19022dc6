"""Searches from many nodes in threads find what one thread does, also where memory does not suffice."""

from __future__ import annotations

import numpy as np
import pytest

from spaseq.errors import LimitError
from spaseq.limits import Limits
from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.search import reach
from spaseq.paths.search.running import Stop, stopped_by

_NODES = 700


def graph(limits: Limits | None = None) -> KnowledgeGraph:
    rng = np.random.default_rng(3)
    rows = zip(*(rng.integers(0, size, 4_000).tolist() for size in (_NODES, 2, _NODES)), strict=True)
    triples = [(f"urn:n{s}", f"urn:{'pq'[p]}", f"urn:n{o}") for s, p, o in rows]
    return load(triples, {"": "urn:"}, limits=limits)


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_WORTH_THREADS", -1)
    monkeypatch.setattr(reach, "_WORTH_APART", -1)
    monkeypatch.setattr(reach, "_TRIED", 0)
    monkeypatch.setattr(reach, "_cores", lambda: 3)


@pytest.mark.parametrize("expression", [":p/:q", "(:p|^:q){1,3}", ":p{2}/[:q]", "!(:p){0,2}"])
@pytest.mark.parametrize("targets", [None, [f":n{i}" for i in range(0, _NODES, 3)]])
@pytest.mark.parametrize("masks", [True, False])
def test_threads_find_what_one_does(
    expression: str, targets: list[str] | None, masks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = list[bool]()
    if not masks:
        monkeypatch.setattr(reach, "_MASK_COST", 1 << 30)
    threads = reach.Search._in_threads

    def counted(search: reach.Search, *, masks: bool) -> bool:
        split.append(masks)
        return threads(search, masks=masks)

    monkeypatch.setattr(reach.Search, "_in_threads", counted)
    known = graph()
    sources = [f":n{i}" for i in range(500)]
    found = known.pairs(expression, sources, targets)
    alone = known.pairs(expression, sources, targets, limit=10**9)  # which one thread finds
    assert masks in split
    assert (found.begins == alone.begins).all()
    assert (found.offsets == alone.offsets).all()
    assert {*zip(*found.arrays, strict=True)} == {*zip(*alone.arrays, strict=True)}


@pytest.mark.parametrize("cost", [reach._MASK_COST, 1 << 30])
def test_threads_share_the_memory_of_the_query(cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_MASK_COST", cost)
    whole = len(graph().pairs(":p{1,3}"))
    for size in (1_000_000, 10_000_000):  # too little for several, enough
        assert len(graph(Limits(query_bytes=size)).pairs(":p{1,3}")) == whole


@pytest.mark.parametrize("cost", [reach._MASK_COST, 1 << 30])
def test_threads_are_stopped(cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_MASK_COST", cost)
    known, stop = graph(), Stop()
    stop.set("enough")
    with stopped_by(stop), pytest.raises(LimitError, match="enough"):
        known.pairs(":p{1,3}")
