"""Random small graphs and random path expressions over them."""

from __future__ import annotations

from hypothesis import strategies as st
from pyoxigraph import NamedNode

from spaseq.paths.language.expression import (
    Alternative,
    Concatenation,
    Condition,
    NodeTest,
    Path,
    Repetition,
    Step,
)
from tests.paths.naive import Triple

PREDICATES = tuple(NamedNode(f"urn:{letter}") for letter in "abc")
NODES = tuple(NamedNode(f"urn:{i}") for i in range(6))

#: Nobody's neighbour.
STRANGER = NamedNode("urn:stranger")


def graphs(edges: int = 9, nodes: int = 6) -> st.SearchStrategy[frozenset[Triple]]:
    """Some triples."""
    node = st.sampled_from(NODES[:nodes])
    return st.frozensets(st.tuples(node, st.sampled_from(PREDICATES), node), min_size=1, max_size=edges)


_single = st.sampled_from(PREDICATES).map(lambda p: (p,))
_several = st.lists(st.sampled_from(PREDICATES), max_size=2, unique=True).map(tuple)
_steps = st.one_of(
    st.builds(Step, _single, st.just(False), st.booleans()),
    st.builds(Step, _several, st.just(True), st.booleans()),
)
_conditions = st.builds(
    Condition, st.sampled_from(PREDICATES), st.booleans(), st.none() | st.sampled_from(NODES[:3])
)
_tests = st.builds(NodeTest, st.lists(_conditions, min_size=1, max_size=2).map(tuple))
_bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, None), (2, 2), (1, 3), (0, 2), (0, 0)])


def _larger(part: st.SearchStrategy[Path]) -> st.SearchStrategy[Path]:
    several = st.lists(part, min_size=2, max_size=3).map(tuple)
    repeated = st.tuples(part, _bounds).map(lambda drawn: Repetition(drawn[0], *drawn[1]))
    return st.one_of(several.map(Concatenation), several.map(Alternative), repeated)


#: Anything.
paths: st.SearchStrategy[Path] = st.recursive(_steps | _tests, _larger, max_leaves=5)

#: What SPARQL can say, once bounds are written out.
sparql_paths: st.SearchStrategy[Path] = st.recursive(_steps, _larger, max_leaves=6)

#: Sources or targets: all, or some that are given.
ends = st.none() | st.lists(st.sampled_from((*NODES, STRANGER)), min_size=1, max_size=3, unique=True)
