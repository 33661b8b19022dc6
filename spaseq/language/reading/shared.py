"""What the trees of many queries have in common: of thousands of one template each leaf is there once.

Such queries differ in a constant or two. Places, variables and names are the larger part of a tree; they are
frozen, so that one may stand in any number of trees. Those that were seen lately are kept, if they are short.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyoxigraph import Literal, NamedNode

from spaseq.language import syntax as s

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

#: So many of a kind are kept: what some tens of long templates hold.
_MOST: Final = 4_096
#: And of so many characters: whoever may send queries must not fill the memory with what nobody has any more.
_SHORT: Final = 1_024

_Part = TypeVar("_Part")


@lru_cache(_MOST)
def span(start: int, end: int, line: int, column: int) -> s.Span:
    """A place in a text."""
    return s.Span(start, end, line, column)


def name(token: str) -> str:
    """A name, without the place that a token has."""
    return sys.intern(str(token))


def names(of: tuple[str, ...]) -> tuple[str, ...]:
    """Several names."""
    return _kept(_same, sum(map(len, of)), of)


def prefixes(declared: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Prefixes, each with what it stands for."""
    return _kept(_same, sum(map(len, chain.from_iterable(declared))), declared)


def variable(of: str, place: s.Span) -> s.Var:
    """A variable at a place."""
    return _kept(_variable, len(of), of, place)


def ref(of: str, place: s.Span) -> s.Ref:
    """The name of a GPM at a place in SEQ."""
    return _kept(_ref, len(of), of, place)


def declaration(of: str, iri: NamedNode, place: s.Span) -> s.StreamDeclaration:
    """A stream's declaration at a place."""
    return _kept(_declaration, len(of) + len(iri.value), of, iri, place)


def constant(term: NamedNode | Literal, place: s.Span) -> s.Constant:
    """A constant at a place."""
    return _kept(_constant, len(term.value), term, place)


def named_node(iri: str) -> NamedNode:
    """An IRI. Raises ValueError for what is none."""
    return _kept(_named_node, len(iri), iri)


def literal(text: str, datatype: NamedNode) -> Literal:
    """A literal of a datatype."""
    return _kept(_literal, len(text) + len(datatype.value), text, datatype)


def _kept(make: _lru_cache_wrapper[_Part], size: int, *of: Any) -> _Part:
    """What is made of these; the one that there is, if it is short enough to be kept."""
    return make(*of) if size <= _SHORT else make.__wrapped__(*of)


@lru_cache(_MOST)
def _same(of: Any) -> Any:
    return of


@lru_cache(_MOST)
def _variable(of: str, place: s.Span) -> s.Var:
    return s.Var(of, span=place)


@lru_cache(_MOST)
def _ref(of: str, place: s.Span) -> s.Ref:
    return s.Ref(of, span=place)


@lru_cache(_MOST)
def _declaration(of: str, iri: NamedNode, place: s.Span) -> s.StreamDeclaration:
    return s.StreamDeclaration(of, iri, span=place)


@lru_cache(_MOST)
def _constant(term: NamedNode | Literal, place: s.Span) -> s.Constant:
    return s.Constant(term, span=place)


@lru_cache(_MOST)
def _named_node(iri: str) -> NamedNode:
    return NamedNode(iri)


@lru_cache(_MOST)
def _literal(text: str, datatype: NamedNode) -> Literal:
    return Literal(text, datatype=datatype)
