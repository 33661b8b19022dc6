"""Matches that one event ends in several partitions come in an order of terms, whatever came before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from tests.conftest import examples

NS = "http://example.org/"
#: Terms in the order of their N-Triples forms: by code points, literals before IRIs.
KEYS = ['"10"', '"9"', '"a"@en', '"é"', f"<{NS}a>", f"<{NS}b>", f"<{NS}é>"]
#: Each way to find matches, with a query that it can run.
WAYS = {
    "nfa": "A ; B",
    "interpreter": "A ; B",
    "reference": "A ; B",
    "tecs": "A : B",
    "lazy": "A : B",
    "tree": "A : B",
    "kmp": "A , B",
    "nfa, skip": "A , B",
}


def text(sequence: str, more: str = "", left: int = 1) -> str:
    """A query over two events that may each have several values of the keys."""
    return f"""PREFIX : <{NS}> SELECT ?k ?j WITHIN 100 SECONDS SLIDING PARTITION BY ?k ?j
        FROM STREAM S :s WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ ?a :left {left} ; :k ?k ; :j ?j }}
        DEFINE GPM B ON S {{ ?b :right 1 ; :k ?k ; :j ?j }} }} {more}"""


def event(side: str, keys: Sequence[str]) -> str:
    return f"<{NS}e> <{NS}{side}> 1 ; <{NS}k> {', '.join(keys)} ; <{NS}j> {', '.join(reversed(keys))} ."


def push(engine: spaseq.Engine, keys: Sequence[str], before: Sequence[str], at_once: bool) -> None:
    """Events that both GPMs match in all partitions, after one that nobody asks for."""
    graphs = [event("none", before), event("left", keys), event("right", keys[::-1])]
    if at_once:
        engine.push_many(f"{NS}s", [(graph, time) for time, graph in enumerate(graphs)])
        return
    for time, graph in enumerate(graphs):
        engine.push(f"{NS}s", graph, time)


def expected(keys: Sequence[str]) -> list[tuple[str, str]]:
    ordered = [key.strip('<>"').removesuffix('"@en') for key in sorted(keys, key=KEYS.index)]
    return [(k, j) for k in ordered for j in ordered]


def found(handle: spaseq.Handle) -> list[tuple[str, str]]:
    return [(str(row["k"]), str(row["j"])) for match in handle.matches() for row in match.bindings]


keys = st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("matcher", WAYS)
@settings(max_examples=examples(15))
@given(keys, st.permutations(KEYS), st.booleans())
def test_every_matcher(matcher: str, values: list[str], before: list[str], at_once: bool) -> None:
    skip = "AFTER MATCH SKIP PAST LAST EVENT" if matcher.endswith("skip") else ""
    engine = spaseq.Engine(matcher=matcher.partition(",")[0])
    handle = engine.register(text(WAYS[matcher], skip))
    push(engine, values, before, at_once)
    assert found(handle) == expected(values)


@pytest.mark.parametrize("sequence", ["A ; B", "A : B", "A , B", "(A ; B) ; !A", "A ; B+"])
@settings(max_examples=examples(10))
@given(keys, st.permutations(KEYS), st.booleans())
def test_queries_that_share(sequence: str, values: list[str], before: list[str], at_once: bool) -> None:
    """What begins alike, and what differs by a constant."""
    engine = spaseq.Engine()
    others = [text(sequence), text(sequence, left=2), text(sequence, "LIMIT 3"), text(sequence + " ; A")]
    handles = [engine.register(other) for other in others]
    push(engine, values, before, at_once)
    engine.finish()
    answers = [found(handle) for handle in handles]
    assert answers == [expected(values), [], expected(values)[:3], []]


@settings(max_examples=examples(15))
@given(keys, st.permutations(KEYS), st.permutations(KEYS), st.sampled_from(sorted({*WAYS.values()})))
@pytest.mark.slow
def test_after_a_restart(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], one: list[str], other: list[str], way: str
) -> None:
    """A process that gives terms other ids, since it has seen others before, goes on where LIMIT was."""
    path = tmp_path_factory.mktemp("state") / "s.db"
    texts = {"q": text(way, "LIMIT 3"), "all": text(way)}
    with spaseq.Engine(state=path, commit_every=None) as engine:
        for name, said in texts.items():
            engine.register(said, name=name)
        for time, graph in enumerate([event("none", one), event("left", values)]):
            engine.push(f"{NS}s", graph, time)
    with spaseq.Engine(state=path, commit_every=None) as engine:
        whole = engine.register(text(way).replace("100 SECONDS", "99 SECONDS"), name="later")
        for time, graph in enumerate([event("none", other), event("right", values)], 2):
            engine.push(f"{NS}s", graph, time)
        assert found(engine.queries["q"]) == expected(values)[:3]
        assert found(engine.queries["all"]) == expected(values)
        assert found(whole) == []


@pytest.mark.parametrize("way", WAYS)
def test_blank_nodes_are_taken_apart(way: str) -> None:
    """They have no order that another process would know; none is lost."""
    engine = spaseq.Engine(matcher=way.partition(",")[0])
    handle = engine.register(text(WAYS[way], "AFTER MATCH SKIP PAST LAST EVENT" * way.endswith("skip")))
    for time, side in enumerate(("left", "right")):
        engine.push(f"{NS}s", event(side, ["[]", '"x"', "[]"]), time)
    assert found(handle) == [("x", "x")]
