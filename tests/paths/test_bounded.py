"""Path queries under a latency and a memory: nothing that is no path, what is said of what was given up."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.bounds import WorkClock
from spaseq.errors import LimitError, SpaseqWarning
from spaseq.limits import Limits
from spaseq.paths import Budget, KnowledgeGraph, load
from spaseq.paths.language.expression import Expression, Path
from spaseq.paths.language.modes import endless
from spaseq.paths.language.parser import parse
from tests.paths.naive import Triple
from tests.paths.strategies import NODES, graphs, paths

quietly = pytest.mark.filterwarnings("ignore:paths:spaseq.errors.SpaseqWarning")

_HOUR = timedelta(hours=1)
#: Paths of WALK that are compared.
_MOST = 3_000


def _complete(size: int) -> KnowledgeGraph:
    return load([(f"urn:{i}", "urn:p", f"urn:{j}") for i in range(size) for j in range(size)], {"": "urn:"})


def _units(count: int) -> timedelta:
    return timedelta(microseconds=count)


@quietly
@given(
    graphs(edges=7, nodes=5),
    paths,
    st.sampled_from(["WALK", "TRAIL", "SIMPLE", "ACYCLIC"]),
    st.sampled_from(["", "ANY ", "ALL SHORTEST ", "SHORTEST 2 "]),
    st.sampled_from(["sharp", "random-state", "selective"]),
    st.integers(1, 200),
    st.sampled_from(["sources", "targets"]),
)
def test_what_is_found_is_found_without_a_bound(
    triples: frozenset[Triple], path: Path, mode: str, selector: str, policy: str, units: int, side: str
) -> None:
    if not selector and mode == "WALK" and endless(path):
        return
    expression, graph = Expression(path, {}, parse("<urn:x>").source), load(triples)
    asked: dict[str, Any] = {side: [*NODES[:2]], "mode": f"{selector}{mode}"}
    every = [str(path) for path in graph.paths(expression, max_paths=_MOST, **asked)]
    bounds: list[dict[str, Any]] = [{"latency": _units(units)}, {"memory": 20 * units}]
    for bound in bounds:
        found = graph.paths(expression, budget=Budget(policy=policy, clock=WorkClock(), **bound), **asked)
        some = [str(path) for path in found]
        assert found.shed is not None
        assert len(set(some)) == len(some)
        assert {*some} <= {*every} or len(every) == _MOST
        assert len(some) == len(every) or found.shed.active
        assert found.shed.active == bool(found.shed.partial_matches) == (found.shed.recall is None)
        assert found.shed.partial_matches == sum(found.shed.by_state.values())
    whole = graph.paths(expression, budget=Budget(latency=_HOUR, memory=1 << 40), max_paths=_MOST, **asked)
    assert len(every) == _MOST or {str(path) for path in whole} == {*every}
    assert whole.shed is not None
    assert not whole.shed.active


@quietly
@pytest.mark.parametrize("mode", ["SIMPLE", "SHORTEST 1000000"])
def test_the_bound_holds_in_work_units(mode: str) -> None:
    graph, clock = _complete(9), WorkClock()
    found = list(graph.paths(":p+", ":0", ":1", mode, budget=Budget(latency=_units(2_000), clock=clock)))
    assert found
    assert clock.units <= 1.1 * 2_000
    assert found == list(
        graph.paths(":p+", ":0", ":1", mode, budget=Budget(latency=_units(2_000), clock=WorkClock()))
    )


def _blind_alleys() -> KnowledgeGraph:
    """Two hundred nodes, each a way on, and a long way back from each; ends beyond those with the most."""
    edges = [("urn:0", "urn:p", f"urn:way{i}") for i in range(200)]
    edges += [(f"urn:way{i}", "urn:p", f"urn:end{i}") for i in range(100)]
    edges += [(f"urn:way{i}", "urn:p", f"urn:way{j}") for i in range(200) for j in range(0, 200, 7)]
    return load([*edges, *((f"urn:end{i}", "urn:q", "urn:goal") for i in range(100))], {"": "urn:"})


@quietly
def test_what_is_nearest_to_an_end_goes_on_first() -> None:
    graph, counts = _blind_alleys(), dict[str, int]()
    for policy in ("sharp", "random-state", "selective"):
        budget = Budget(latency=_units(10_000), policy=policy, clock=WorkClock())
        counts[policy] = sum(1 for _ in graph.paths(":p{2,9}/:q", ":0", ":goal", "SIMPLE", budget=budget))
    assert counts["sharp"] > 2 * max(counts["random-state"], counts["selective"])


@quietly
def test_memory_keeps_fewer_paths_in_the_making() -> None:
    budget = Budget(memory=200_000)
    found = _complete(8).paths(":p+", ":0", ":1", "ACYCLIC", budget=budget)
    assert sum(1 for _ in found) > 100
    assert found.shed is not None
    assert found.shed.by_state.keys() == {"paths not walked on"}
    # At the bound it sheds, at the limit it ends.
    edges = [(f"urn:{i}", "urn:p", f"urn:{j}") for i in range(9) for j in range(9)]
    small = load(edges, limits=Limits(query_bytes=100_000))
    with pytest.raises(LimitError):
        list(small.paths("<urn:p>+", "urn:0", "urn:1", "ACYCLIC", budget=Budget(memory=1 << 30)))
    assert list(small.paths("<urn:p>+", "urn:0", "urn:1", "ACYCLIC", budget=Budget(memory=50_000)))


def test_one_warning_says_that_paths_are_given_up() -> None:
    graph = _complete(8)
    with pytest.warns(SpaseqWarning, match=r"paths :p\+: not all paths are walked") as told:
        list(graph.paths(":p+", ":0", mode="TRAIL", budget=Budget(memory=50_000, latency=_units(50_000))))
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert graph.paths(":p", ":0", budget=Budget()).shed is None
        found = graph.paths(":p", ":0", budget=Budget(latency=_HOUR))
        assert sum(1 for _ in found) == 8
        assert found.shed is not None
        assert found.shed.recall == 1.0


def test_who_reads_slowly_has_no_less_time() -> None:
    now = 0.0

    def clock() -> float:
        return now

    found = _complete(5).paths(":p{1,3}", ":0", budget=Budget(latency=_units(1), clock=clock))

    def slowly() -> Iterator[object]:
        nonlocal now
        for path in found:
            now += 1.0
            yield path

    assert sum(1 for _ in slowly()) == 5 + 25 + 125
    assert found.shed is not None
    assert (found.shed.active, found.shed.latency) == (False, 0.0)
