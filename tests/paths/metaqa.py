"""MetaQA (Zhang et al., AAAI 2018): its knowledge graph, its questions, and the paths that answer them.

A question's type says which path answers it: ``actor_to_movie_to_year`` goes from an actor back to movies,
and on to their years. Names of the data are entities; one name is one entity, as there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import numpy as np
from pyoxigraph import NamedNode

from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.graph.names import Names
from spaseq.paths.retrieval.prefixes import Prefixes
from spaseq.paths.retrieval.walking import walk
from spaseq.paths.search._kernel import Nodes

BASE = "http://example.org/"

#: The relation between a movie and what a question type calls it.
RELATIONS = {
    "actor": "starred_actors",
    "director": "directed_by",
    "writer": "written_by",
    "genre": "has_genre",
    "year": "release_year",
    "language": "in_language",
    "tag": "has_tags",
    "tags": "has_tags",
}


@dataclass(frozen=True)
class Question:
    """A question about a topic, its answers, and the relations to them, ``^`` before inverse ones."""

    text: str
    topic: str
    answers: frozenset[str]
    relations: tuple[str, ...]


def triples(data: Path) -> list[tuple[str, str, str]]:
    """The names in the knowledge graph."""
    lines = (data / "kb_rebuilt.txt").read_text(encoding="utf-8").splitlines()
    return [(s, p, o) for s, p, o in (line.split("|") for line in lines)]


@cache
def entity(name: str) -> NamedNode:
    """The IRI of a name."""
    return NamedNode(BASE + quote(name, safe=""))


def knowledge_graph(data: Path) -> KnowledgeGraph:
    """The knowledge graph, its names as IRIs."""
    return load((entity(s), entity(p), entity(o)) for s, p, o in triples(data))


def questions(data: Path, hops: int) -> list[Question]:
    """The test questions with so many hops."""
    folder = data / "data" / "MetaQA" / f"{hops}-hop"
    texts = (folder / "test.txt").read_text(encoding="utf-8").splitlines()
    types = (folder / "qa_test_qtype.txt").read_text(encoding="utf-8").splitlines()
    return [_question(*pair) for pair in zip(texts, types, strict=True)]


def _question(line: str, kind: str) -> Question:
    text, answers = line.split("\t")
    topic = re.search(r"\[(.*)\]", text)
    assert topic is not None
    return Question(text, topic[1], frozenset(answers.split("|")), relations(kind))


def relations(kind: str) -> tuple[str, ...]:
    """The path that a question type names.

    >>> relations("actor_to_movie_to_year")
    ('^starred_actors', 'release_year')
    """
    places = kind.split("_to_")
    return tuple(
        f"^{RELATIONS[before]}" if after == "movie" else RELATIONS[after]
        for before, after in pairwise(places)
    )


def answer(graph: KnowledgeGraph, asked: Sequence[Question]) -> list[Nodes]:
    """The nodes that each question's path leads to from its topic, without coming back to it, in order.

    All questions with the same path are answered by one walk.
    """
    names = Names(graph)
    nodes = [graph.node(entity(question.topic)) for question in asked]
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, question in enumerate(asked):
        groups[question.relations].append(number)
    found: list[Nodes] = [np.zeros(0, dtype=np.int32)] * len(asked)
    for path, numbers in groups.items():
        there = [number for number in numbers if nodes[number] is not None]
        topics = np.array([nodes[number] for number in there], dtype=np.int64)
        begins, ends = walk(Prefixes(graph.snapshot, [names.expression(path)]), np.unique(topics)).ends()
        low, high = (np.searchsorted(begins, topics, side).tolist() for side in ("left", "right"))
        for number, i, j in zip(there, low, high, strict=True):
            found[number] = ends[i:j]
    return found


#: Relation, ``^`` before it or not → name → names.
Index = Mapping[str, Mapping[str, set[str]]]


def index(named: Iterable[tuple[str, str, str]]) -> Index:
    """What dictionaries of sets make of the knowledge graph."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for s, p, o in named:
        found[p][s].add(o)
        found[f"^{p}"][o].add(s)
    return found


def follow(known: Index, question: Question, *, returning: bool = False) -> set[str]:
    """The answers by dictionaries of sets: the topic is removed after each step, unless ``returning``."""
    reached = {question.topic}
    for relation in question.relations:
        step = known[relation]
        reached = {after for name in reached for after in step.get(name, ())}
        if not returning:
            reached.discard(question.topic)
    return reached
