"""What the trees of many queries have in common: of thousands of one template each leaf is there once.

Such queries differ in a constant or two. Places, variables and names are the larger part of a tree; they are
frozen, so that one may stand in any number of trees. Those that were seen lately are kept.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.language import syntax as s

#: So many of a kind are kept: what some tens of long templates hold.
_MOST: Final = 4_096


@lru_cache(_MOST)
def span(start: int, end: int, line: int, column: int) -> s.Span:
    """A place in a text."""
    return s.Span(start, end, line, column)


@lru_cache(_MOST)
def variable(name: str, place: s.Span) -> s.Var:
    """A variable at a place."""
    return s.Var(name, span=place)


@lru_cache(_MOST)
def constant(term: NamedNode | Literal, place: s.Span) -> s.Constant:
    """A constant at a place."""
    return s.Constant(term, span=place)


@lru_cache(_MOST)
def named_node(iri: str) -> NamedNode:
    """An IRI. Raises ValueError for what is none."""
    return NamedNode(iri)


@lru_cache(_MOST)
def literal(text: str, datatype: NamedNode) -> Literal:
    """A literal of a datatype."""
    return Literal(text, datatype=datatype)


def name(token: str) -> str:
    """A name, without the place that a token has."""
    return sys.intern(str(token))


@lru_cache(_MOST)
def ref(of: str, place: s.Span) -> s.Ref:
    """The name of a GPM at a place in SEQ."""
    return s.Ref(name(of), span=place)


@lru_cache(_MOST)
def declaration(of: str, iri: NamedNode, place: s.Span) -> s.StreamDeclaration:
    """A stream's declaration at a place."""
    return s.StreamDeclaration(name(of), iri, span=place)


@lru_cache(_MOST)
def names(of: tuple[str, ...]) -> tuple[str, ...]:
    """Several names."""
    return of


@lru_cache(_MOST)
def prefixes(declared: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Prefixes, each with what it stands for."""
    return declared
