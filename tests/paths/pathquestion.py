"""PathQuestion (Zhou et al., COLING 2018): its graphs, and its questions with their gold relation paths."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spaseq.paths import KnowledgeGraph, load

BASE = "http://example.org/"
SETS = ("pq-2h", "pql-3h")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, where its path begins, the relations of the path, and the names of its answers."""

    text: str
    topic: str
    relations: tuple[str, ...]
    answers: frozenset[str]


def iri(name: str) -> str:
    """Return the IRI of a name, as ``graph`` has it."""
    return BASE + quote(name, safe="")


def graph(data: Path, name: str) -> KnowledgeGraph:
    """Return the graph of a set of questions."""
    lines = (data / f"{name}-kb.tsv").read_text(encoding="utf-8").splitlines()
    return load([(iri(s), BASE + p, iri(o)) for s, p, o in (line.split("\t") for line in lines)])


def questions(data: Path, name: str) -> list[Question]:
    """Return the questions whose answers are those of their gold path, as a walk finds them in the graph."""
    edges: dict[tuple[str, str], set[str]] = {}
    for line in (data / f"{name}-kb.tsv").read_text(encoding="utf-8").splitlines():
        s, p, o = line.split("\t")
        edges.setdefault((s, p), set()).add(o)
    found = []
    for line in (data / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        text, topic, relations, answers = line.split("\t")
        question = Question(text, topic, tuple(relations.split("/")), frozenset(answers.split("|")))
        reached = {topic}
        for relation in question.relations:
            reached = {o for s in reached for o in edges.get((s, relation), ())}
        if reached == question.answers:
            found.append(question)
    return found
