"""Path queries over knowledge graphs: regular path expressions, on the automata that sequences compile to."""

from __future__ import annotations

from spaseq.paths.drawing import to_networkx
from spaseq.paths.kept.graph import build, open
from spaseq.paths.knowledge import KnowledgeGraph, load
from spaseq.paths.linking.candidates import Candidate
from spaseq.paths.neighbourhood import Neighbourhood
from spaseq.paths.pairs import Pairs
from spaseq.paths.path import Path
from spaseq.paths.ranking import CachedEmbed
from spaseq.paths.retrieval import Budget, Question, retrieve, retrieve_many
from spaseq.paths.retrieved import Retrieval
from spaseq.paths.search import Paths

__all__ = [
    "Budget",
    "CachedEmbed",
    "Candidate",
    "KnowledgeGraph",
    "Neighbourhood",
    "Pairs",
    "Path",
    "Paths",
    "Question",
    "Retrieval",
    "build",
    "load",
    "open",
    "retrieve",
    "retrieve_many",
    "to_networkx",
]
