"""Path queries over knowledge graphs: regular path expressions, on the automata that sequences compile to."""

from __future__ import annotations

from spaseq.paths.knowledge import KnowledgeGraph, load
from spaseq.paths.pairs import Pairs
from spaseq.paths.path import Path
from spaseq.paths.search import Paths

__all__ = ["KnowledgeGraph", "Pairs", "Path", "Paths", "load"]
