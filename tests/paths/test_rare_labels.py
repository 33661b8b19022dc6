"""Searches from a rare step in the middle, where graphs are such that they begin there by themselves."""

from __future__ import annotations

from itertools import islice
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, QuerySolutions

from spaseq.paths import Path as FoundPath
from spaseq.paths import load
from spaseq.paths.explain import explain
from spaseq.paths.language.expression import (
    Alternative,
    Concatenation,
    Expression,
    Path,
    Repetition,
    Step,
    show,
)
from spaseq.paths.language.parser import parse
from spaseq.paths.search import pairs, rare_labels
from spaseq.paths.search.enumeration import paths as search
from tests.paths.gmark import as_sparql, store
from tests.paths.naive import Triple
from tests.paths.strategies import ends, graphs, paths

A, B, R = (NamedNode(f"urn:{letter}") for letter in "abr")

#: ``a`` and ``b`` have so many edges, inside of blocks; ``r`` has a few that lead anywhere.
FREQUENT = 1_300
NODES, BLOCK = 300, 10

# --- against Oxigraph


def skewed(seed: int, rare: int) -> list[Triple]:
    """A graph with a rare predicate, other ones each time."""
    rng = np.random.default_rng(seed)
    nodes = [NamedNode(f"urn:{i}") for i in range(NODES)]
    found = []
    for predicate in (A, B):
        inside = rng.choice(NODES * BLOCK, FREQUENT, replace=False).tolist()
        found += [
            (nodes[i // BLOCK], predicate, nodes[i // BLOCK // BLOCK * BLOCK + i % BLOCK]) for i in inside
        ]
    return found + [(nodes[s], R, nodes[o]) for s, o in rng.integers(0, NODES, (rare, 2)).tolist()]


_frequent: st.SearchStrategy[Path] = st.builds(
    Step, st.sampled_from([(A,), (B,)]), st.just(False), st.booleans()
)
_rare: st.SearchStrategy[Path] = st.builds(Step, st.just((R,)), st.just(False), st.booleans())
_two = st.tuples(_frequent, _frequent)
_bounds = st.sampled_from([(0, None), (1, None), (0, 1), (1, 2), (2, 2)])
_side: st.SearchStrategy[Path] = st.one_of(
    _frequent,
    _two.map(Concatenation),
    _two.map(Alternative),
    st.tuples(_frequent | _two.map(Alternative), _bounds).map(lambda drawn: Repetition(drawn[0], *drawn[1])),
)
_middle: st.SearchStrategy[Path] = st.one_of(
    _rare,
    st.tuples(_rare, _rare).map(Alternative),
    st.tuples(_rare, _frequent, _rare).map(Concatenation),
    st.tuples(_rare, _side).map(lambda drawn: Alternative((drawn[0], Concatenation((*drawn, drawn[0]))))),
    _rare.map(lambda rare: Repetition(rare, 1, None)),
)
_whole: st.SearchStrategy[Path] = st.tuples(_side, _middle, _side).map(Concatenation)

#: The ends that are given: all, most of them, one. From one, a search begins there.
_share = st.sampled_from([None, None, 0.97, 0.97, 1 / NODES])


def some(rng: np.random.Generator, share: float | None) -> list[NamedNode] | None:
    if share is None:
        return None
    return [NamedNode(f"urn:{i}") for i in rng.permutation(NODES)[: round(share * NODES)].tolist()]


def test_as_oxigraph() -> None:
    taken, asked, answers = 0, 0, 0

    @given(st.integers(0, 1 << 20), st.integers(1, 5), _whole, _share, _share)
    def compare(
        seed: int, rare: int, path: Path, source_share: float | None, target_share: float | None
    ) -> None:
        nonlocal taken, asked, answers
        triples, rng = skewed(seed, rare), np.random.default_rng(seed)
        graph = load(triples)
        rows = store(triples).query(f"SELECT DISTINCT ?s ?t {{ ?s {as_sparql(path)} ?t }}")
        assert isinstance(rows, QuerySolutions)
        theirs = {(row["s"], row["t"]) for row in rows}
        # From everywhere a search always begins in the middle: so of all searches at least half do.
        for shares in ((None, None), (source_share, target_share)):
            sources, targets = (some(rng, share) for share in shares)
            wanted = {
                (s, t)
                for s, t in theirs
                if (sources is None or s in sources) and (targets is None or t in targets)
            }
            with patch.object(pairs, "mark", wraps=rare_labels.mark) as mark:
                found = graph.pairs(Expression(path, {}, parse("<urn:x>").source), sources, targets)
            ones, others = (column.tolist() for column in found.arrays)
            ours = [(graph.ox_term(s), graph.ox_term(t)) for s, t in zip(ones, others, strict=True)]
            assert len(ours) == len(set(ours))
            assert set(ours) == wanted
            if sources is None and targets is None:
                assert mark.called
                assert explain(show(path, {}), graph).middle is not None
            taken += mark.called
            asked += 1
            answers += len(ours)

    compare()
    assert taken > asked / 2
    assert answers > 10 * asked


# --- paths


def by_length(found: list[FoundPath]) -> list[tuple[int, int, int]]:
    return sorted((path.nodes[0], path.nodes[-1], len(path)) for path in found)


#: Of those as long as the last one, any will do.
ANY_OF_THEM = ("ANY SHORTEST TRAIL", "SHORTEST 3")

_modes = st.sampled_from(["TRAIL", "SIMPLE", "ACYCLIC", "ALL SHORTEST", *ANY_OF_THEM])

#: Of more paths than that, only the number is compared.
MOST = 2_000


def test_paths_from_the_middle_are_those_from_the_ends() -> None:
    taken, asked = 0, 0

    @settings(max_examples=100)  # fewer would seldom go through the middle
    @given(graphs(edges=7, nodes=5), paths, ends, ends, _modes)
    def compare(
        triples: frozenset[Triple],
        path: Path,
        sources: list[NamedNode] | None,
        targets: list[NamedNode] | None,
        mode: str,
    ) -> None:
        nonlocal taken, asked
        graph, expression = load(triples), Expression(path, {}, parse("<urn:x>").source)

        def found(rarer: int) -> list[FoundPath]:
            with patch.object(pairs, "_WORTH", 1), patch.object(pairs, "_RARER", rarer):
                return list(islice(graph.paths(expression, sources, targets, mode), MOST))

        for _ in range(2):  # what was marked is unmarked for the next one
            with patch.object(search, "mark", wraps=rare_labels.mark) as mark:
                ours = found(0)
            plain = found(1 << 40)
            assert len(ours) == len(plain)
            if len(plain) < MOST:
                assert by_length(ours) == by_length(plain)
                if mode not in ANY_OF_THEM:
                    assert set(ours) == set(plain)
        taken += mark.called
        asked += 1

    compare()
    assert taken > asked / 10


def test_paths_begin_in_the_middle() -> None:
    graph = load(skewed(1, 3), {"": "urn:"})
    for mode in ("WALK", "ACYCLIC", "ALL SHORTEST", "SHORTEST 2"):
        with patch.object(search, "mark", wraps=rare_labels.mark) as mark:
            found = list(graph.paths(":a/:r/:b{1,2}", mode=mode))
            assert mark.call_count == 1
            list(graph.paths(":a/:r/:b{1,2}", sources=found[0].start, mode=mode))
            assert mark.call_count == 1
        joined = {(path.start, path.end) for path in found}
        assert joined
        assert mode == "ACYCLIC" or joined == set(graph.pairs(":a/:r/:b{1,2}"))


def test_marks_of_searches_do_not_meet() -> None:
    graph = load(skewed(2, 3), {"": "urn:"})
    every = len(list(graph.paths(":a/:r/:b")))
    left = graph.paths(":a/:r/:b")
    next(left)
    assert len(list(graph.paths(":a/:r/:b"))) == every  # while another search holds its marks
    del left
    assert len(list(graph.paths(":a/:r/:b"))) == every
