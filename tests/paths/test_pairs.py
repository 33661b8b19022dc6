"""Pairs: as the algebra of relations and as Oxigraph's property paths have them, on every way there is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

import spaseq
from spaseq.errors import QueryMeaningError
from spaseq.limits import Limits
from spaseq.paths import KnowledgeGraph, Pairs, load
from spaseq.paths.explain import explain
from spaseq.paths.graph import snapshot
from spaseq.paths.language.expression import Expression, Path
from spaseq.paths.language.parser import parse
from spaseq.paths.search import pairs, reach, workspace
from spaseq.paths.search.running import Memory
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib
from tests.paths.gmark import as_sparql
from tests.paths.naive import Triple, nodes_of, relation
from tests.paths.strategies import ends, graphs, paths, sparql_paths

Found = set[tuple[Term, Term]]


#: Together, by components after the first batch, one by one.
WAYS = ((1, 0, 1 << 40), (1, 0, -1), (1 << 20, 2, 4))


def answers(graph: KnowledgeGraph, path: Path, *given: object) -> Found:
    found = graph.pairs(Expression(path, {}, parse("<urn:x>").source), *given)
    rows = [(from_rdflib(source), from_rdflib(target)) for source, target in found]
    assert len(rows) == len(set(rows)) == len(found)
    sources, targets = found.arrays
    numbers = zip(sources.tolist(), targets.tolist(), strict=True)
    assert {(from_rdflib(found.term(s)), from_rdflib(found.term(t))) for s, t in numbers} == set(rows)
    return set(rows)


def in_batches(graph: KnowledgeGraph, path: Path, *given: object) -> list[tuple[Term, Term]]:
    """The pairs of all batches, in order: none may come twice."""
    found = list(graph.batches(Expression(path, {}, parse("<urn:x>").source), *given))
    assert all(found)
    return sorted(((from_rdflib(s), from_rdflib(t)) for some in found for s, t in some), key=str)


def expected(
    triples: frozenset[Triple], path: Path, sources: list[NamedNode] | None, targets: list[NamedNode] | None
) -> Found:
    """By the algebra; a given term that is no node is joined with itself if nothing need be there."""
    nodes = frozenset(nodes_of(triples))
    found = relation(path, triples, nodes | {*(sources or ()), *(targets or ())})
    return {
        (s, t) for s, t in found if (sources is None or s in sources) and (targets is None or t in targets)
    }


@given(graphs(), paths, ends, ends)
def test_as_the_algebra(
    triples: frozenset[Triple], path: Path, sources: list[NamedNode] | None, targets: list[NamedNode] | None
) -> None:
    assert answers(load(triples), path, sources, targets) == expected(triples, path, sources, targets)


@given(graphs(), paths, ends)
def test_many_sources_together_and_one_by_one(
    triples: frozenset[Triple], path: Path, targets: list[NamedNode] | None
) -> None:
    graph = load(triples)
    wanted = expected(triples, path, None, targets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "cheaper_end", lambda *_: (0, False))
        patch.setattr(reach, "_TRIED", 0)
        patch.setattr(workspace, "_ROOM", 1)
        for many, cost, components in WAYS:
            patch.setattr(reach, "_MANY", many)
            patch.setattr(reach, "_MASK_COST", cost)
            patch.setattr(reach, "_COMPONENT_COST", components)
            patch.setattr(reach, "_BITS", 3)
            patch.setattr(reach, "_WORDS", 2)
            patch.setattr(reach, "_AT_ONCE", 2)
            assert answers(graph, path, None, targets) == wanted
            for part in (1 << 16, 3):
                patch.setattr(reach, "_PART", part)
                assert in_batches(graph, path, None, targets) == sorted(wanted, key=str)


@given(graphs(), paths, ends, ends, st.sampled_from(WAYS))
def test_from_the_middle(
    triples: frozenset[Triple],
    path: Path,
    sources: list[NamedNode] | None,
    targets: list[NamedNode] | None,
    way: tuple[int, int, int],
) -> None:
    wanted = expected(triples, path, sources, targets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_WORTH", 1)
        patch.setattr(pairs, "_RARER", 0)
        patch.setattr(reach, "_TRIED", 0)
        for name, value in zip(("_MANY", "_MASK_COST", "_COMPONENT_COST"), way, strict=True):
            patch.setattr(reach, name, value)
        graph = load(triples)
        for _ in range(2):  # what was marked is unmarked for the next one
            assert answers(graph, path, sources, targets) == wanted
            assert in_batches(graph, path, sources, targets) == sorted(wanted, key=str)


@given(graphs(), paths, ends, ends, st.sampled_from([0, 1 << 40]))
def test_in_chunks_on_copied_arrays(
    triples: frozenset[Triple],
    path: Path,
    sources: list[NamedNode] | None,
    targets: list[NamedNode] | None,
    rarer: int,
) -> None:
    """As Spark has it: only the plan knows the graph."""
    graph = load(triples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_WORTH", 1)
        patch.setattr(pairs, "_RARER", rarer)
        asked = Expression(path, {}, parse("<urn:x>").source)
        plan = pairs.plan_pairs(graph.snapshot, asked, sources, targets)
    room = workspace.Workspace(graph.nodes, Memory(Limits(), "a path"))
    arrays = plan.product.alone()
    found: Found = {(term, term) for term in plan.strangers}
    for begin in range(0, len(plan.begins), 2):
        chunk = plan.begins[begin : begin + 2].astype(np.int32)
        part = reach.Search(arrays, room, chunk, plan.wanted).run()
        ones = np.repeat(chunk, np.diff(part.offsets)).tolist()
        for one, other in zip(ones, part.found.tolist(), strict=True):
            pair = graph.ox_term(one), graph.ox_term(other)
            found.add(pair[::-1] if plan.backwards else pair)
    assert found == expected(triples, path, sources, targets)


@given(graphs(edges=20), paths)
def test_every_path_takes_one_edge_of_the_cut(triples: frozenset[Triple], path: Path) -> None:
    graph = load(triples)
    product = graph.snapshot.product(Expression(path, {}, parse("<urn:x>").source))
    if (cut := product.cut) is None:
        return
    assert cut.edges == sum(product.relations.size(row) for _, row, _ in cut.transitions)
    ends = product.automaton.accepting
    assert cut.edges <= product.first_edges(None) + sum(
        product.relations.size(row)
        for state in range(product.size)
        for row, reached in product.transitions[product.leaving[state] : product.leaving[state + 1]].tolist()
        if reached in ends
    )
    # How often each state may be reached across the cut: never, and once, but not twice.
    crossings = {(state, 0) for state in product.automaton.initial}
    waiting = list(crossings)
    while waiting:
        state, crossed = waiting.pop()
        for row, reached in product.transitions[product.leaving[state] : product.leaving[state + 1]].tolist():
            after = (reached, crossed + ((state, row, reached) in cut.transitions))
            assert after[1] <= 1
            if after not in crossings:
                crossings.add(after)
                waiting.append(after)
    assert {crossed for state, crossed in crossings if state in ends} <= {1}


@pytest.mark.parametrize(
    "path", ["<urn:a>/(<urn:b>|<urn:c>)*/<urn:d>", "<urn:a>*", "<urn:a>/<urn:b>?/[<urn:c>]"]
)
@pytest.mark.slow
def test_hundreds_of_sources(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    nodes, letters = rng.integers(0, 900, (3_000, 2)).tolist(), rng.integers(0, 4, 3_000).tolist()
    graph = load(
        [(f"urn:{s}", f"urn:{'abcd'[p]}", f"urn:{o}") for (s, o), p in zip(nodes, letters, strict=True)]
    )
    found = []
    for many, cost, components in WAYS:
        monkeypatch.setattr(reach, "_TRIED", 0)
        monkeypatch.setattr(reach, "_MANY", many)
        monkeypatch.setattr(reach, "_MASK_COST", cost)
        monkeypatch.setattr(reach, "_COMPONENT_COST", components)
        for targets in (None, np.arange(100)):
            found.append(np.stack(graph.pairs(path, targets=targets).arrays))
    assert [len(columns) for columns in found] == [2] * 6
    for one, other in ((0, 2), (1, 3), (0, 4), (1, 5)):
        assert set(map(tuple, found[one].T.tolist())) == set(map(tuple, found[other].T.tolist()))
        assert found[one].shape == found[other].shape


@given(graphs(), sparql_paths, ends, ends)
def test_as_oxigraph(
    triples: frozenset[Triple], path: Path, sources: list[NamedNode] | None, targets: list[NamedNode] | None
) -> None:
    if (written := as_sparql(path)) is None:
        return
    store = Store()
    store.extend(Quad(*triple) for triple in triples)
    # Oxigraph joins no term with itself that is not in the graph, against SPARQL 1.1, section 18.4 (ALP).
    nodes = nodes_of(triples)
    ours = {pair for pair in answers(load(triples), path, sources, targets) if nodes.issuperset(pair)}
    theirs: Found = set()
    for source in sources or [None]:
        for target in targets or [None]:
            theirs |= set(_oxigraph(store, written, source, target))
    assert ours == theirs


def _oxigraph(
    store: Store, text: str, source: NamedNode | None, target: NamedNode | None
) -> Iterator[tuple[Term, Term]]:
    found = store.query(f"SELECT DISTINCT ?s ?t {{ {source or '?s'} {text} {target or '?t'} }}")
    assert isinstance(found, QuerySolutions)
    for row in found:
        yield source or row["s"], target or row["t"]  # type: ignore[misc]  # there are no triple terms


# --- by hand

CHAIN = [(f"urn:{i}", "urn:p", f"urn:{i + 1}") for i in range(100)]


def as_text(found: Pairs) -> set[tuple[str, str]]:
    return {(str(s)[4:], str(t)[4:]) for s, t in found}


def test_bounds_count_iterations() -> None:
    graph = load(CHAIN)
    assert as_text(graph.pairs("(<urn:p>/<urn:p>){2,3}", sources="urn:0")) == {("0", "4"), ("0", "6")}
    assert as_text(graph.pairs("<urn:p>{,2}", sources="urn:0")) == {("0", "0"), ("0", "1"), ("0", "2")}
    assert len(graph.pairs("<urn:p>{98,}")) == 3 + 2 + 1


def test_node_tests() -> None:
    graph = load(
        [
            ("urn:a", "urn:p", "urn:b"),
            ("urn:b", "urn:p", "urn:c"),
            ("urn:b", "urn:y", 1999),
            ("urn:c", "urn:y", "1"),
        ]
    )
    assert as_text(graph.pairs("<urn:p>/[<urn:y> 1999]")) == {("a", "b")}
    assert as_text(graph.pairs("<urn:p>/[<urn:y>]")) == {("a", "b"), ("b", "c")}
    assert as_text(graph.pairs("[<urn:y>]/<urn:p>")) == {("b", "c")}
    assert as_text(graph.pairs("[<urn:y> 1999, 2000]")) == set()
    assert as_text(graph.pairs("[^<urn:p> <urn:a> ; <urn:y>]")) == {("b", "b")}


def test_nothing_joins_a_term_with_itself_wherever_it_is() -> None:
    graph = load(CHAIN)
    assert as_text(graph.pairs("<urn:p>*", sources="urn:nobody")) == {("nobody", "nobody")}
    assert as_text(graph.pairs("<urn:p>*", targets="urn:nobody")) == {("nobody", "nobody")}
    assert as_text(graph.pairs("<urn:p>*", "urn:nobody", "urn:0")) == set()
    assert as_text(graph.pairs("<urn:p>+", sources="urn:nobody")) == set()
    assert as_text(graph.pairs("[<urn:p>]?", sources="urn:nobody")) == {("nobody", "nobody")}
    assert as_text(graph.pairs("<urn:p>?/[<urn:p>]", sources="urn:nobody")) == set()
    assert len(graph.pairs("<urn:p>{0}")) == graph.nodes == 101


def test_the_search_begins_where_there_is_less_to_see() -> None:
    star = [("urn:hub", "urn:p", f"urn:{i}") for i in range(50)]
    star += [(f"urn:{i}", "urn:p", "urn:x") for i in range(3)] + [("urn:x", "urn:q", "urn:y")]
    graph = load(star)
    assert graph.pairs("<urn:p>/<urn:q>").backwards
    assert not graph.pairs("^<urn:q>/^<urn:p>").backwards
    assert graph.pairs("<urn:p>*", sources="urn:hub", targets=["urn:y", "urn:0"]).backwards
    assert not graph.pairs("<urn:p>*", sources="urn:x", targets="urn:0").backwards
    assert graph.pairs("<urn:p>", targets="urn:0").backwards
    assert not graph.pairs("<urn:p>", sources="urn:hub").backwards


def rare_in_the_middle() -> KnowledgeGraph:
    """``:a`` leads to 40 nodes of 100 from each, so does ``:b``; ``:r`` leads from 2 of them to 3."""
    rows = [
        (f"urn:{s}", f"urn:{p}", f"urn:{(7 * s + t) % 100}")
        for s in range(100)
        for t in range(40)
        for p in "ab"
    ]
    rare = [("urn:1", "urn:r", "urn:50"), ("urn:1", "urn:r", "urn:51"), ("urn:2", "urn:r", "urn:51")]
    return load(rows + rare, {"": "urn:"})


def test_the_search_begins_in_the_middle_where_a_step_is_rare() -> None:
    graph = rare_in_the_middle()
    for path, steps, edges in (
        (":a/:r/:b", (":r",), 3),
        (":a/(:r|^:r)/:b", (":r", "^:r"), 6),
        ("(:a/:r|:b/:b/:r)/:b+", (":r",), 3),
        (":a+/:r/^:a+", (":r",), 3),
    ):
        assert explain(path, graph).middle == (steps, edges)
        found = graph.pairs(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pairs, "_RARER", 1 << 40)
            assert explain(path, graph).middle is None
            plain = graph.pairs(path)
        assert as_text(found) == as_text(plain)
        assert len(found) == len(plain) > 0
    assert len(graph.pairs(":a/:r/:b").begins) < 100
    for path in (":a/:b", ":r/:a", ":a/:r?/:b", "(:a/:r)*"):
        assert explain(path, graph).middle is None
    assert "from the middle, :r, unless" in str(explain(":a/:r/:b", graph))
    assert explain(":a/:r/:b", graph).as_json()["middle"] == {"steps": [":r"], "edges": 3}


def test_limits() -> None:
    graph = load(CHAIN)
    for limit in (0, 1, 70, 5049, 5050):
        found = graph.pairs("<urn:p>+", limit=limit)
        assert (len(found), found.truncated) == (limit, limit < 5050)
        assert len(set(found)) == limit
    assert len(graph.pairs("<urn:p>+", limit=10_000)) == 5050
    assert as_text(graph.pairs("<urn:p>*", sources=["urn:nobody"], limit=5)) == {("nobody", "nobody")}


def test_sources_in_every_form() -> None:
    graph = spaseq.paths.load(CHAIN, {"": "urn:", "p": "urn:q"})
    one = graph.node("urn:1")
    assert one is not None
    forms = (":1", "<urn:1>", "urn:1", rdflib.URIRef("urn:1"), NamedNode("urn:1"), one, [one])
    for form in (*forms, np.array([one])):
        assert as_text(graph.pairs(":p", sources=form)) == {("1", "2")}
    assert as_text(graph.pairs(":p", sources=[":1", "urn:1", "urn:2"])) == {("1", "2"), ("2", "3")}
    assert as_text(graph.pairs(":p", sources=[])) == set()
    for wrong in (101, -1, np.array([101]), [3, 200]):
        with pytest.raises(KeyError):
            graph.pairs(":p", sources=wrong)
    with pytest.raises(spaseq.QuerySyntaxError, match="expected"):
        graph.pairs(":p", sources="Alice in Wonderland")


def test_a_graph_of_nothing() -> None:
    graph = load([])
    assert (len(graph), graph.nodes, graph.predicates) == (0, 0, 0)
    assert len(graph.pairs(".*")) == len(graph.pairs("<urn:p>+")) == len(list(graph.paths("<urn:p>"))) == 0
    assert as_text(graph.pairs(".*", sources="urn:x")) == {("x", "x")}


def test_predicates_that_no_edge_has() -> None:
    graph = load([("http://e.org/a", "http://e.org/knows", "http://e.org/b")], {"": "http://e.org/"})
    assert graph.check(":knows/:nows|[:knowz 1]") == (
        "no edge has the predicate :nows: did you mean :knows?",
        "no edge has the predicate :knowz: did you mean :knows?",
    )
    assert len(graph.pairs(":nows*")) == 2
    with pytest.raises(QueryMeaningError):
        graph.pairs(":knows{9999}")


def test_ends_that_are_no_nodes() -> None:
    graph = load([("http://e.org/a", "http://e.org/knows", "http://e.org/b")], {"": "http://e.org/"})
    assert graph.check(":knows", [":a", ":c"], "<x:b>") == (
        "the graph has no node :c",
        "the graph has no node <x:b>: did you mean :b?",
    )


def test_wrong_arguments_are_refused() -> None:
    graph = load(CHAIN, {"": "urn:"})
    with pytest.raises(ValueError, match="limit=-1"):
        graph.pairs(":p", limit=-1)
    with pytest.raises(ValueError, match="max_paths=-2"):
        graph.paths(":p", max_paths=-2)
    with pytest.raises(TypeError, match="not a path expression: 5"):
        graph.pairs(5)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(spaseq.QuerySyntaxError) as caught:
        graph.pairs(":p/knows")
    assert (caught.value.offset, caught.value.hint) == (
        4,
        "names are written with a prefix or as an IRI: :knows",
    )
    with pytest.raises(spaseq.QuerySyntaxError, match=r"mode='ANY SHORTEST TRAIL' or --mode"):
        graph.pairs("ANY SHORTEST :p+")


def test_pairs_say_how_many_they_are() -> None:
    graph = load(CHAIN, {"": "urn:"})
    assert repr(graph.pairs(":p{99,}")) == "<Pairs: 3>"
    assert repr(graph.pairs(":p+", limit=2000)) == "<Pairs: 2,000, and there are more>"


def test_very_many_pairs_are_shown_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_AT_A_TIME", 7)
    monkeypatch.setattr(snapshot, "_MOST_SHOWN", 20)
    graph = load(CHAIN, {"": "urn:"})
    for ends_ in ((None, None), (None, [":50", ":70"]), ([":90", ":nobody", ":100"], None)):
        found = graph.pairs(":p*", *ends_)
        shown = list(found)
        numbers = zip(*map(np.ndarray.tolist, found.arrays), strict=True)
        assert shown == [(found.term(source), found.term(target)) for source, target in numbers]
    assert len(shown) == 11 + 1 + 1
