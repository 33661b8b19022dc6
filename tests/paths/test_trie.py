"""The trie of relation paths: those of `relations_of`, what may follow, grammars that allow only these."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from spaseq.errors import LimitError, QueryError
from spaseq.limits import Limits
from spaseq.paths import KnowledgeGraph, load
from tests.conftest import examples

FILMS = [
    ("urn:Kismet", "urn:starred", "urn:Edward_Arnold"),
    ("urn:Kismet", "urn:directed_by", "urn:William_Dieterle"),
    ("urn:Nero_Wolfe", "urn:starred", "urn:Edward_Arnold"),
    ("urn:Nero_Wolfe", "urn:year", "1936"),
    ("urn:William_Dieterle", "urn:says", "urn:Nero_Wolfe"),
]


@pytest.fixture(scope="module")
def films() -> KnowledgeGraph:
    return load(FILMS[:4])


def test_next_relations(films: KnowledgeGraph) -> None:
    trie = films.relation_trie("Edward Arnold", hops=3)
    assert trie.next() == ("^starred",)
    assert set(trie.next(["^starred"])) == {"directed_by", "year"}  # not straight back
    assert trie.next(["^starred", "year"]) == ()
    assert trie.next(["year"]) == trie.next(["nothing"]) == ()
    assert ["^starred", "year"] in trie
    assert ["year"] not in trie
    assert [] not in trie
    circle = load([*FILMS, ("urn:Nero_Wolfe", "urn:starred", "urn:William_Dieterle")])
    path = ["^starred", "directed_by", "^starred"]
    assert "starred" in circle.relation_trie("Edward Arnold", hops=4).next(path)
    assert "starred" not in circle.relation_trie("Edward Arnold", hops=4, returning=False).next(path)
    with pytest.raises(QueryError, match="did you mean Edward Arnold"):
        films.relation_trie("Edwrad Arnold")
    with pytest.raises(ValueError, match="hops=0"):
        films.relation_trie("Kismet", hops=0)


def test_continuations(films: KnowledgeGraph) -> None:
    trie = films.relation_trie("Edward Arnold")
    assert trie.continuations("") == ["["]
    assert trie.continuations("[") == ['"^starred"']
    assert trie.continuations('["^st') == ['arred"']
    assert trie.continuations('["^starred"') == [", ", "]"]
    assert trie.continuations('["^starred", ') == ['"directed_by"', '"year"']
    assert trie.continuations('["^starred", "directed_by"') == ["]"]
    assert trie.continuations('["^starred"]') == []
    assert trie.continuations('["year') == []


def test_any_way_through_the_continuations_is_a_path(films: KnowledgeGraph) -> None:
    trie = films.relation_trie("Edward Arnold", hops=3)
    waiting, written = [""], set()
    while waiting:
        text = waiting.pop()
        more = trie.continuations(text)
        waiting += [text + end for end in more]
        if not more:
            written.add(tuple(json.loads(text)))
    assert written == set(trie)


def test_schema_and_its_limit(films: KnowledgeGraph) -> None:
    trie = films.relation_trie("Edward Arnold")
    schema = trie.json_schema()
    assert [one["const"] for one in schema["items"]["oneOf"]] == [list(path) for path in trie]
    with pytest.raises(LimitError, match="more than 2 relation paths"):
        trie.json_schema(2)


NODES = st.sampled_from("abcde").map("urn:n:{}".format)
NAMES = st.sampled_from(["urn:p", "urn:q", "urn:R%22%5C"])
EDGES = st.lists(st.tuples(NODES, NAMES, NODES), min_size=1, max_size=10, unique=True)


@settings(max_examples=examples(40), deadline=None)
@given(EDGES, st.integers(1, 3), st.booleans())
def test_the_paths_of_relations_of(edges: list[tuple[str, str, str]], hops: int, returning: bool) -> None:
    graph = load(edges)
    trie = graph.relation_trie(edges[0][0], hops, returning=returning)
    wanted = {path.relations for path in graph.relations_of(edges[0][0], hops, 10_000, returning=returning)}
    found = list(trie)
    assert set(found) == wanted
    assert len(found) == len(wanted)
    parser = Lark(trie.lark())
    parser.parse("[]")
    names = sorted({name for path in wanted for name in path})
    for path in wanted:
        parser.parse(json.dumps([path], ensure_ascii=False))
        for wrong in ([*path, name] for name in names):
            if tuple(wrong) not in wanted:
                with pytest.raises(LarkError):
                    parser.parse(json.dumps([wrong], ensure_ascii=False))
    rules = dict(line.split(" ::= ", 1) for line in trie.gbnf().splitlines())
    assert set(re.findall(r"\br\d+\b", re.sub(r'"(?:[^"\\]|\\.)*"', "", " ".join(rules.values())))) == {
        rule for rule in rules if rule.startswith("r") and rule != "root"
    }


def test_memory_has_a_bound() -> None:
    triples = [("urn:hub", f"urn:p{i % 3}", f"urn:n{i}") for i in range(500)]
    trie = load(triples, limits=Limits(query_bytes=4 << 10)).relation_trie("urn:hub")
    with pytest.raises(LimitError, match="the relations of a topic"):
        trie.next()
