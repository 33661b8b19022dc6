"""Expressions walked together: as each one alone and trying all paths have it, and every prefix once."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.language.expression import Expression, NodeTest, Path, endless, read
from spaseq.paths.language.modes import Mode
from spaseq.paths.language.parser import parse
from spaseq.paths.retrieval.prefixes import Prefixes
from spaseq.paths.retrieval.walking import Walks, walk
from spaseq.terms.dictionary import Term
from tests.paths.naive import Triple, Walk, matching, nodes_of, walks
from tests.paths.strategies import graphs, paths

LONGEST = 5
MOST = 1_500
ROOM = 5_000


def as_walk(found: Walks, number: int) -> Walk:
    path = found.path(number)
    graph = path.graph
    triples = ((graph.ox_term(s), graph.ox_predicate(p), graph.ox_term(o)) for s, p, o in path.edges)
    return Walk(tuple(map(graph.ox_term, path.nodes)), tuple(triples))


def expressions(some: list[Path]) -> list[Expression]:
    return [Expression(path, {}, parse("<urn:x>").source) for path in some]


@given(
    graphs(edges=5, nodes=4),
    st.lists(paths, min_size=1, max_size=3),
    st.sampled_from(list(Mode)),
    st.booleans(),
)
def test_as_trying_all_paths_has_it(
    triples: frozenset[Triple], some: list[Path], mode: Mode, returning: bool
) -> None:
    nodes = nodes_of(triples)
    if mode is Mode.WALK and any(map(endless, some)):
        return
    if sum(1 for node in nodes for _ in islice(walks(node, triples, LONGEST, mode), MOST)) >= MOST:
        return
    graph = load(triples)
    prefixes = Prefixes(graph.snapshot, expressions(some))
    found = walk(prefixes, np.arange(graph.nodes), mode, returning=returning, most=ROOM)
    if found.truncated:
        return
    wanted: dict[Walk, set[int]] = {}
    for number, path in enumerate(some):
        for node in nodes:
            for one in matching(path, triples, node, LONGEST, mode):
                if one.triples and (returning or node not in one.nodes[1:]):
                    wanted.setdefault(one, set()).add(number)
    got: dict[Walk, set[int]] = {}
    for index in found.complete().tolist():
        one = as_walk(found, index)
        if len(one.triples) <= LONGEST:
            got.setdefault(one, set()).update(prefixes.accepts(int(found.state[index])))
    assert got == wanted
    if not any(isinstance(symbol, NodeTest) for path in some for symbol in read(path)):
        edges = zip(found.before.tolist(), found.predicate, found.inverse, found.node, strict=True)
        taken = [edge for edge in edges if edge[0] >= 0]
        assert len(set(taken)) == len(taken)  # no prefix is there twice
    ends = {(graph.ox_term(a), graph.ox_term(b)) for a, b in zip(*found.ends(), strict=True)}
    short = {(w.nodes[0], w.nodes[-1]) for w in wanted}
    assert short <= ends


def tree(width: int) -> KnowledgeGraph:
    """A root, ``width`` children by :a, of each one leaf by :b and one by :c."""
    triples: list[tuple[str, str, str]] = []
    for i in range(width):
        triples += [("urn:root", "urn:a", f"urn:{i}")]
        triples += [(f"urn:{i}", f"urn:{p}", f"urn:{i}{p}") for p in "bc"]
    return load(triples)


def walked(graph: KnowledgeGraph, *some: str, most: int | None = None) -> Walks:
    return walk(Prefixes(graph.snapshot, some), np.array([graph.node("urn:root")]), most=most)


def test_a_common_prefix_is_walked_once() -> None:
    graph = tree(10)
    ab, ac = "<urn:a>/<urn:b>", "<urn:a>/<urn:c>"
    assert [walked(graph, one).looked for one in (ab, ac)] == [20, 20]
    together = walked(graph, ab, ac)
    assert together.looked == 30
    assert len(together) == 1 + 10 + 20
    assert len(together.prefixes) == 4  # the beginning, after a, after b, after c: a trie
    assert walked(graph, ab, ab, ab).looked == 20


def test_a_prefix_is_shared_however_it_is_written() -> None:
    graph = tree(10)
    assert walked(graph, "(<urn:a>|<urn:x>)/<urn:b>", "<urn:a>/<urn:c>", ".").looked == 30


def test_expressions_that_end_on_the_way() -> None:
    graph = tree(3)
    found = walked(graph, "<urn:a>", "<urn:a>/<urn:b>?")
    accepted = [found.prefixes.accepts(int(found.state[i])) for i in found.complete()]
    assert accepted == [(0, 1)] * 3 + [(1,)] * 3


def test_nothing_to_walk() -> None:
    graph = tree(3)
    assert len(walked(graph)) == 1
    assert len(walked(graph, "<urn:b>")) == 1
    assert len(walk(Prefixes(graph.snapshot, ["<urn:a>"]), np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("most", [0, 1, 2, 5, 16, 100, 299, 300, 10_000])
def test_a_budget_leaves_room_for_longer_paths(most: int) -> None:
    graph = tree(100)
    found = walked(graph, "<urn:a>/(<urn:b>|<urn:c>)", most=most)
    paths_ = len(found) - 1
    assert paths_ <= most
    assert found.truncated == (paths_ < 300)
    if most >= 2:
        assert len(found.complete()) > 0


def test_what_is_left_of_many_is_spread_evenly() -> None:
    graph = tree(100)
    found = walked(graph, "<urn:a>", most=19)
    numbers = [int(str(found.path(i).end).removeprefix("urn:")) for i in found.complete().tolist()]
    assert numbers == list(range(0, 100, 10))


@pytest.mark.parametrize(
    ("mode", "returning", "ends"),
    [
        (Mode.TRAIL, False, ["b", "c"]),
        (Mode.TRAIL, True, ["b", "c", "a"]),
        (Mode.SIMPLE, True, ["b", "c", "a"]),
        (Mode.SIMPLE, False, ["b", "c"]),
        (Mode.ACYCLIC, True, ["b", "c"]),
    ],
)
def test_coming_back(mode: Mode, returning: bool, ends: list[str]) -> None:
    graph = load([(f"urn:{s}", "urn:p", f"urn:{o}") for s, o in ("ab", "bc", "ca")])
    topic = np.array([graph.node("urn:a")])
    found = walk(Prefixes(graph.snapshot, ["<urn:p>+"]), topic, mode, returning=returning)
    terms: list[Term] = [graph.ox_term(int(found.node[i])) for i in found.complete()]
    assert [str(term) for term in terms] == [f"<urn:{end}>" for end in ends]


def test_a_circle_is_complete() -> None:
    graph = load([(f"urn:{s}", "urn:p", f"urn:{o}") for s, o in ("ab", "ba", "ac")])
    topic = np.array([graph.node("urn:a")])
    found = walk(Prefixes(graph.snapshot, ["<urn:p>+"]), topic, Mode.SIMPLE, returning=True)
    assert sorted(len(found.path(i)) for i in found.complete().tolist()) == [1, 1, 2]


def test_a_loop_is_one_edge_whichever_way_it_is_taken() -> None:
    graph = load([("urn:a", "urn:p", "urn:a")])
    topic = np.array([graph.node("urn:a")])
    found = walk(Prefixes(graph.snapshot, ["<urn:p>|^<urn:p>"]), topic, returning=True)
    assert len({found.path(i) for i in found.complete().tolist()}) == 1
