"""Sources of triples, what retrieved paths cite, passages behind them, and nodes by embedding."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import spaseq.paths
from spaseq.cli import app
from spaseq.errors import KnowledgeError, RetrievalError
from spaseq.paths import Budget, ChunkStore, Entities, KnowledgeGraph, load, retrieve
from spaseq.paths.retrieval.ranking import count_tokens, hashed_words

BASE = "urn:"
PASSAGES = {"doc7#p3": "Ada Lovelace was\nborn in London.", "doc8": "London is in England.", "doc9": "Tea."}


def cited() -> KnowledgeGraph:
    graph = load([("ada", "born_in", "london")], base=BASE)
    graph.add([("urn:ada", "urn:born_in", "urn:london")], source="doc7#p3")
    graph.add([("urn:london", "urn:country", "urn:england")], source=["doc8", "doc7#p3"])
    graph.add([("urn:england", "urn:drinks", "urn:tea")])
    return graph


def sources(graph: KnowledgeGraph) -> dict[str, tuple[str, ...]]:
    edges = zip(*(column.tolist() for column in graph.edges()), strict=True)
    return {str(graph.predicate(e[1])): found for e in edges if (found := graph.snapshot.sources_of(e))}


WANTED = {"urn:born_in": ("doc7#p3",), "urn:country": ("doc8", "doc7#p3")}


def test_sources_are_kept_by_changes_files_and_pickle(tmp_path: Path) -> None:
    graph = cited()
    before = graph.now
    assert sources(graph) == WANTED
    graph.add([("urn:ada", "urn:born_in", "urn:london")], source="doc9")
    assert sources(graph)["urn:born_in"] == ("doc7#p3", "doc9")
    assert sources(before) == WANTED
    assert graph.link("london")[0].label == "london"
    graph.remove([("urn:london", "urn:country", "urn:england")])
    assert [*sources(graph)] == ["urn:born_in"]
    before.save(tmp_path / "g.spaseq")
    opened = spaseq.paths.open(tmp_path / "g.spaseq")
    assert sources(opened) == WANTED == sources(pickle.loads(pickle.dumps(before)))
    opened.add([("urn:x", "urn:born_in", "urn:london")])
    assert sources(opened) == WANTED


def test_sources_that_were_never_added_are_no_sources() -> None:
    graph = load([("a", "p", "b")], base=BASE)
    graph.add([("urn:a", "urn:p", "urn:c")], source="s")
    graph.remove([("urn:a", "urn:p", "urn:c")])
    assert sources(graph) == {}
    graph.add([("urn:a", "urn:p", "urn:c")])
    assert sources(graph) == {}


def test_annotations_and_named_graphs_of_files(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text(
        '@prefix : <urn:> .\n:a :p :b {| :from "doc7" ; :from :doc8 ; :sure 3 |} .\n:c :from "here" .\n'
        '<<:a :p :x>> :from "doc9" .\n'
    )
    graph = load(path, sources="urn:from")
    assert sources(graph) == {"urn:p": ("doc7", "urn:doc8")}
    assert len(graph) == 3  # what else the annotation says, and the triple that annotates nothing
    path = tmp_path / "kb.nq"
    path.write_text(
        "<urn:a> <urn:p> <urn:b> <urn:g> .\n<urn:a> <urn:p> <urn:b> <urn:h> .\n<urn:a> <urn:q> <urn:b> .\n"
    )
    assert sources(load(path, sources="graph")) == {"urn:p": ("urn:g", "urn:h")}
    assert sources(load(path)) == {}
    built = CliRunner().invoke(app, ["graph", "build", str(path), "--sources", "graph"])
    assert built.exit_code == 0, built.output
    assert sources(spaseq.paths.open(path.with_suffix(".spaseq"))) == {"urn:p": ("urn:g", "urn:h")}
    with pytest.raises(KnowledgeError, match="sources='from where': 'graph' is wanted, or the IRI"):
        load(path, sources="from where")
    with pytest.raises(KnowledgeError, match="sources='graph' is for files"):
        load([("urn:a", "urn:p", "urn:b")], sources="graph")


TEXT = "(ada, born in, london) [1]\n(london, country, england) [2] [1]\n[1] doc7#p3\n[2] doc8"


def test_texts_cite_sources() -> None:
    found = retrieve(cited(), [["born_in", "country"]], "ada")
    assert found.text() == TEXT
    (ranked,) = found
    assert found.sources(ranked) == ("doc7#p3", "doc8")
    assert found.metadata(ranked)["sources"] == ["doc7#p3", "doc8"]
    assert found.as_json()["paths"][0]["sources"] == ["doc7#p3", "doc8"]
    assert found.tokens == sum(map(count_tokens, TEXT.splitlines()))
    plain = retrieve(cited(), [["drinks"]], "england")
    assert plain.text() == "(england, drinks, tea)"
    assert "sources" not in plain.metadata(plain.paths[0])


def test_passages_behind_paths(tmp_path: Path) -> None:
    made = ChunkStore.of(PASSAGES, hashed_words)
    made.save(tmp_path / "chunks.arrow")
    store = ChunkStore.open(tmp_path / "chunks.arrow")
    assert len(store) == 3
    found = retrieve(cited(), [["born_in"]], "ada", chunks=store)
    assert found.chunks == {"doc7#p3": PASSAGES["doc7#p3"]}
    assert found.text().splitlines()[-1] == "[1] doc7#p3: Ada Lovelace was born in London."
    assert found.tokens == sum(map(count_tokens, found.text().splitlines()))
    assert found.metadata(found.paths[0])["chunks"] == found.chunks == found.as_json()["chunks"]
    assert [name for name, _ in store.similar("Who drinks tea?", hashed_words, 1)] == ["doc9"]
    few = retrieve(cited(), [["born_in"]], "ada", chunks=store, budget=Budget(tokens=found.tokens - 1))
    assert (len(few), few.chunks) == (1, {})
    with pytest.raises(RetrievalError, match="no embeddings"):
        ChunkStore.of(PASSAGES).similar("tea", hashed_words)
    with pytest.raises(RetrievalError, match="text is missing"):
        ChunkStore(pa.table({"id": ["a"]}))


def test_passages_of_langchain_and_llamaindex() -> None:
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.vectorstores import InMemoryVectorStore
    from llama_index.core.schema import TextNode
    from llama_index.core.storage.docstore import SimpleDocumentStore

    from spaseq.paths import langchain, llamaindex

    vectors = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    vectors.add_documents([Document(text, id=name) for name, text in PASSAGES.items()])
    nodes = SimpleDocumentStore()
    nodes.add_documents([TextNode(id_=name, text=text) for name, text in PASSAGES.items()])
    for chunks in (langchain.chunks_of(vectors), llamaindex.chunks_of(nodes)):
        assert chunks(["doc8", "unknown"]) == {"doc8": PASSAGES["doc8"]}
    model = FakeListChatModel(responses=['["ada"]', '[["born_in"]]'])
    asked = langchain.SpaseqRetriever(graph=cited(), model=model, chunks=langchain.chunks_of(vectors))
    (document,) = asked.invoke("Where was Ada born?")
    assert document.metadata["sources"] == ["doc7#p3"]
    assert document.metadata["chunks"] == {"doc7#p3": PASSAGES["doc7#p3"]}


def test_nodes_by_name_and_by_embedding() -> None:
    meanings = {"ada": 0, "countess": 0, "london": 1, "big smoke": 1, "england": 2, "tea": 3}

    def embed(texts: list[str]) -> Any:
        return np.eye(5)[[meanings.get(text.casefold(), 4) for text in texts]]

    entities = Entities(cited(), embed)
    found = entities.link("countess")
    assert (found[0].label, found[0].by, found[0].score) == ("ada", "embedding", 0.79)
    exact = entities.link("London", 2)
    assert (exact[0].label, exact[0].by) == ("london", "last segment")
    assert entities.link("countess", 0) == []


def test_retrievers_take_names_by_embedding() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.language_models import FakeListChatModel

    from spaseq.paths.langchain import SpaseqRetriever

    def embed(texts: list[str]) -> Any:
        return np.eye(2)[[int(text in ("london", "Big Smoke")) for text in texts]]

    graph = cited()
    model = FakeListChatModel(responses=['["Big Smoke"]', '[["country"]]'])
    asked = SpaseqRetriever(graph=graph, model=model, entities=Entities(graph, embed))
    found = asked.retrieval("Where is the Big Smoke?")
    assert [ranked.text for ranked in found] == ["london → country → england"]
    assert found.warnings == ("no node is called Big Smoke: london is taken",)
