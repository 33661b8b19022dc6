"""MetaQA (Zhang et al., AAAI 2018): its knowledge graph, and its questions with the paths that answer them.

A question's type says which path answers it: ``actor_to_movie_to_year`` goes from an actor back to movies, and
on to their years. Names of the data are entities; one name is one entity, as there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pyoxigraph import NamedNode

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
    """A question about a topic, its answers, and the relations that lead there; ``^`` from object to subject."""

    text: str
    topic: str
    answers: frozenset[str]
    relations: tuple[str, ...]


def triples(data: Path) -> Iterator[tuple[str, str, str]]:
    """The names in the knowledge graph."""
    with (data / "kb_rebuilt.txt").open(encoding="utf-8") as lines:
        for line in lines:
            s, p, o = line.rstrip("\n").split("|")
            yield s, p, o


def entity(name: str) -> NamedNode:
    """The IRI of a name."""
    return NamedNode(BASE + quote(name, safe=""))


def as_terms(names: tuple[str, str, str]) -> tuple[NamedNode, NamedNode, NamedNode]:
    """A triple of names as one of terms."""
    s, p, o = names
    return entity(s), entity(p), entity(o)


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
        for before, after in zip(places, places[1:], strict=False)
    )
