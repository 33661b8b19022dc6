"""What a watched path tells is what asking anew after each change tells."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from spaseq.errors import LimitError, QuerySyntaxError
from spaseq.limits import Limits
from spaseq.paths import load
from spaseq.paths.graph.updates import watching
from spaseq.paths.language.expression import Expression, Path
from spaseq.paths.language.parser import parse
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib
from tests.paths.naive import Triple
from tests.paths.strategies import ends, graphs, paths
from tests.paths.test_pairs import expected

Pairs = set[tuple[Term, Term]]
Ends = list[NamedNode] | None


def as_ox(pairs: Iterable[tuple[object, object]]) -> list[tuple[Term, Term]]:
    return [(from_rdflib(source), from_rdflib(target)) for source, target in pairs]  # type: ignore[arg-type]


def compiled(path: Path) -> Expression:
    return Expression(path, {}, parse("<urn:x>").source)


@given(graphs(), paths, ends, ends, st.lists(st.tuples(st.booleans(), graphs(3)), max_size=6))
def test_as_asked_anew(
    start: frozenset[Triple],
    path: Path,
    sources: Ends,
    targets: Ends,
    changes: list[tuple[bool, frozenset[Triple]]],
) -> None:
    graph = load(start)
    watch, there = graph.watch(compiled(path), sources, targets), start
    joined: Pairs = expected(there, path, sources, targets)
    assert set(as_ox(watch.pairs())) == joined
    assert not watch.new()
    for is_added, some in changes:
        (graph.add if is_added else graph.remove)(sorted(some, key=str))
        there = there | some if is_added else there - some
        before, joined = joined, expected(there, path, sources, targets)
        new = as_ox(watch.new())
        assert set(new) == joined - before
        assert len(new) == len(set(new))
        assert set(as_ox(watch.pairs())) == joined


@given(
    graphs(3),
    paths,
    ends,
    st.lists(st.tuples(st.integers(0, 4), graphs(2)), max_size=10),
    st.integers(1, 8),
    st.booleans(),
)
def test_through_a_window(
    start: frozenset[Triple],
    path: Path,
    sources: Ends,
    changes: list[tuple[int, frozenset[Triple]]],
    window: int,
    is_asked: bool,
) -> None:
    """A triple counts from the last time that it came, for so long; what was there before always does."""
    graph = load(start)
    watch = graph.watch(compiled(path), sources, window=window)
    came: dict[Triple, int] = {}
    now, told = 0, list[tuple[Term, Term]]()
    joined: Pairs = expected(start, path, sources, None)
    wanted = list[Pairs]()
    for later, some in changes:
        now += later
        counts = {triple for triple, time in came.items() if time > now - window}
        joined &= expected(frozenset(start | counts), path, sources, None)
        graph.add(sorted(some, key=str), time=now)
        came |= dict.fromkeys(some, now)
        counts |= some
        before, joined = joined, expected(frozenset(start | counts), path, sources, None)
        wanted.append(joined - before)
        if is_asked:
            assert set(as_ox(watch.pairs())) == joined
            assert set(as_ox(watch.new())) == wanted.pop()
    if not is_asked:  # all at the end tells the same
        told = as_ox(watch.new())
        assert len(told) == sum(map(len, wanted))
        for some_pairs in wanted:
            assert set(told[: len(some_pairs)]) == some_pairs
            told = told[len(some_pairs) :]
        assert set(as_ox(watch.pairs())) == joined


def test_what_the_window_left_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.paths.graph.updates.watching._FEW", 10)
    graph = load([])
    watch = graph.watch("<urn:p>+", window=5)
    sizes = []
    for i in range(500):
        graph.add([(f"urn:{i}", "urn:p", f"urn:{i + 1}")], time=i)
        assert len(watch.new()) == min(i + 1, 5)
        sizes.append(watch._memory.taken)
    assert max(sizes) < 200 * watching._PLACE


def test_a_limit_ends_a_watch_and_an_interrupt_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = load([], limits=Limits(query_bytes=100_000))
    watch = graph.watch("<urn:p>+")
    some = [(f"urn:{i}", "urn:p", f"urn:{i + 1}") for i in range(10)]
    graph.add(some)
    enter, calls = watch._reached.enter, []

    def interrupted(*given: object) -> bool:
        calls.append(given)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return enter(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(watch._reached, "enter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watch.new()
    assert len(watch.new()) == len(set(watch.pairs())) == 55  # each once
    assert not watch.new()
    graph.add([(f"urn:{i}", "urn:p", f"urn:{i + 1}") for i in range(10, 1_000)])
    for _ in range(2):
        with pytest.raises(LimitError, match="are watched"):
            watch.new()
    assert len(graph.pairs("<urn:p>+", sources=["urn:0"])) == 1_000  # the graph goes on


def test_what_nobody_asks_for_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.paths.graph.updates.watching._MOST_TOLD", 5)
    graph = load([], limits=Limits(pending_matches=20))
    watch = graph.watch("<urn:p>")
    for i in range(20):
        graph.add([("urn:a", "urn:p", f"urn:{i}")])
        assert len(watch._told) <= 5
    assert len(watch.new()) == 20
    for i in range(30):
        graph.add([("urn:b", "urn:p", f"urn:{i}")])
    with pytest.raises(LimitError, match="21 pairs that nobody asked for"):
        watch.new()
    assert not watch._told
    assert len(graph.pairs("<urn:p>")) == 50


def test_what_makes_no_sense() -> None:
    graph = load([("urn:a", "urn:p", "urn:b")])
    with pytest.raises(QuerySyntaxError):
        graph.watch("<urn:p>+/")
    for wrong in (1.5, "60"):
        with pytest.raises(TypeError):
            graph.watch("<urn:p>+", window=wrong)
        with pytest.raises(TypeError):
            graph.add([("urn:x", "urn:p", "urn:y")], time=wrong)
    assert len(graph) == 1
    with pytest.raises(ValueError, match="at least 1"):
        graph.watch("<urn:p>+", window=0)
    watch = graph.watch("<urn:p>+", window=3)
    graph.add([("urn:b", "urn:p", "urn:c")], time=7)
    with pytest.raises(ValueError, match="time=6: what is watched through a window is at 7 already"):
        graph.add([("urn:b", "urn:p", "urn:d")], time=6)
    assert len(graph) == 2
    assert len(watch.new()) == 2


@pytest.mark.slow
def test_a_graph_does_not_keep_its_watches() -> None:
    graph = load([])
    watch = graph.watch("<urn:p>")
    assert len(graph._watches) == 1
    del watch
    gc.collect()
    assert not graph._watches
