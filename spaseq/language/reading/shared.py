"""Shared parts of syntax trees: thousands of queries of one template hold each leaf once.

Such queries differ in a few constants. Places, variables and names are the larger part of a tree. They are
immutable, so one object may be in any number of trees. Recent short ones are cached.
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

#: The entries cached per kind: enough for some tens of long templates.
_MOST: Final = 4_096
#: The most characters of a cached entry, so that received queries cannot fill the memory.
_SHORT: Final = 1_024

_Part = TypeVar("_Part")


@lru_cache(_MOST)
def span(start: int, end: int, line: int, column: int) -> s.Span:
    """Return a place in a text."""
    return s.Span(start, end, line, column)


def name(token: str) -> str:
    """Return a name, without the place that a token has."""
    return sys.intern(str(token))


def names(of: tuple[str, ...]) -> tuple[str, ...]:
    """Return several names."""
    return _kept(_same, sum(map(len, of)), of)


def prefixes(declared: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return prefixes, each with its namespace."""
    return _kept(_same, sum(map(len, chain.from_iterable(declared))), declared)


def variable(of: str, place: s.Span) -> s.Var:
    """Return a variable at a place."""
    return _kept(_variable, len(of), of, place)


def ref(of: str, place: s.Span) -> s.Ref:
    """Return the name of a GPM at a place in SEQ."""
    return _kept(_ref, len(of), of, place)


def declaration(of: str, iri: NamedNode, place: s.Span) -> s.StreamDeclaration:
    """Return a stream's declaration at a place."""
    return _kept(_declaration, len(of) + len(iri.value), of, iri, place)


def constant(term: NamedNode | Literal, place: s.Span) -> s.Constant:
    """Return a constant at a place."""
    return _kept(_constant, len(term.value), term, place)


def named_node(iri: str) -> NamedNode:
    """Return an IRI. Raises ValueError for an invalid one."""
    return _kept(_named_node, len(iri), iri)


def literal(text: str, datatype: NamedNode) -> Literal:
    """Return a literal of a datatype."""
    return _kept(_literal, len(text) + len(datatype.value), text, datatype)


def _kept(make: _lru_cache_wrapper[_Part], size: int, *of: Any) -> _Part:
    """Call ``make``, from the cache if the arguments are short enough."""
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
