"""Path queries over knowledge graphs: regular path expressions, on the automata that sequences compile to."""

from __future__ import annotations

from spaseq.paths.drawing import to_networkx
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.linking.candidates import Candidate
from spaseq.paths.graph.opening import build, load, open
from spaseq.paths.path import Path
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.chunks import ChunkStore, Entities
from spaseq.paths.retrieval.neighbourhood import Neighbourhood
from spaseq.paths.retrieval.ranking import CachedEmbed
from spaseq.paths.retrieval.retrieve import Question, retrieve, retrieve_many
from spaseq.paths.retrieval.retrieved import Retrieval
from spaseq.paths.retrieval.trie import RelationTrie
from spaseq.paths.search.enumeration.paths import Paths
from spaseq.paths.search.pairs import Pairs

__all__ = [
    "Budget",
    "CachedEmbed",
    "Candidate",
    "ChunkStore",
    "Entities",
    "KnowledgeGraph",
    "Neighbourhood",
    "Pairs",
    "Path",
    "Paths",
    "Question",
    "RelationTrie",
    "Retrieval",
    "build",
    "load",
    "open",
    "retrieve",
    "retrieve_many",
    "to_networkx",
]
