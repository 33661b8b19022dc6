"""Turn the caller's terms, texts and numbers into terms, and into the numbers of a graph's nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode
from rdflib.term import Literal as RdflibLiteral

from spaseq.errors import QueryMeaningError
from spaseq.language.reading.hints import nearest
from spaseq.language.reading.source import QueryText
from spaseq.paths.graph.loading import term
from spaseq.paths.graph.saved.contents import Contents
from spaseq.paths.language.parser import parse_term
from spaseq.paths.search._kernel import Ids
from spaseq.terms.dictionary import UNBOUND, Term

#: A text with one of these schemes is an IRI.
_SCHEME: Final = re.compile(
    "about|ark|arn|cid|data|did|doi|file|ftp|geo|hdl|https?|info|ipfs|ipns|isbn|ldap|mailto|mid|news|ni|oid"
    "|sip|sms|tag|tel|urn|uuid|wss?|xmpp",
    re.IGNORECASE,
)

_PREFIX: Final = re.compile(r"(?:[^\W\d_][\w.-]*)?")


def read_term(
    value: Any, prefixes: Mapping[str, str], known: Callable[[Term], bool] = lambda _: False
) -> Term:
    """Return the term for a term of rdflib or pyoxigraph, or for text as in an expression or N-Triples.

    A text with an undeclared prefix is an IRI if this IRI is ``known``. Raises QueryError, with the place,
    for a text that is not a term, and TypeError for another object.

    >>> read_term("ex:a", {"ex": "http://example.org/"})
    <NamedNode value=http://example.org/a>
    """
    if isinstance(value, NamedNode | BlankNode | Literal):
        return value
    if type(value) is not str:
        return term(value)
    if value.startswith("_:"):
        return BlankNode(value[2:])
    name, colon, rest = value.partition(":")
    if value.startswith(("<", '"', "'", "+", "-")) or not colon or name in prefixes:
        return parse_term(value, prefixes)
    with suppress(ValueError):
        iri = term(value)
        if _SCHEME.fullmatch(name) or rest.startswith("//") or known(iri):
            return iri
    raise _no_iri(value, name, prefixes)


def _no_iri(text: str, name: str, prefixes: Mapping[str, str]) -> QueryMeaningError:
    """Return the error for a text with a colon that is not an IRI."""
    source = QueryText(text, "<term>")
    if _SCHEME.fullmatch(name) or not _PREFIX.fullmatch(name):
        return source.error(QueryMeaningError, "this is not an IRI", 0)
    alike = nearest(name, prefixes)
    known = ", ".join(f"{prefix}:" for prefix in sorted(prefixes))
    hint = f"the graph declares {known}" if known else "the graph declares no prefixes"
    hint = f"{hint}; an IRI is written <{text}>" if name and " " not in text else hint
    hint = f"did you mean '{alike}:'?" if alike else hint
    return source.error(QueryMeaningError, f"the prefix '{name}:' is not declared", 0, hint)


# Tuples, because a union type would be built at each use.
_TERMS: Final = (NamedNode, BlankNode, Literal)
_NUMBERS: Final = (int, np.integer)
_ONE: Final = (str, int, *_TERMS)

#: At most this many terms and texts are kept.
_MOST_KEPT: Final = 1 << 20


def no_node(number: int, nodes: int) -> KeyError:
    """Return the error for a number that is not a node's, in a graph with ``nodes`` nodes."""
    return KeyError(
        f"the graph has no node {number}: numbers are those of nodes, here all below {nodes:,}; "
        f"the literal is written as text, '{number}' for the integer, '\"{number}\"' for the string"
    )


class Numbering:
    """Turns terms and texts into numbers of nodes, with a cache. Threads may share it."""

    def __init__(self, contents: Contents, prefixes: Mapping[str, str]) -> None:
        self._contents = contents
        self._nodes = contents.nodes
        self._prefixes = prefixes
        self._terms: dict[Any, int] = {}  # and texts
        self._literals: dict[tuple[str, str | None, str | None], int] = {}  # rdflib's

    def term(self, value: Any) -> Term:
        """Return ``value`` as a term; see ``spaseq.paths.graph.numbering.read_term``."""
        return read_term(value, self._prefixes, lambda iri: self._contents.dictionary.find(iri) != UNBOUND)

    def numbers(self, values: Any) -> tuple[Ids, tuple[Term, ...]]:
        """Return terms, or one term, as distinct numbers of nodes, and the terms that are not nodes."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            ids = values.astype(np.int64)
            if not (ids[1:] > ids[:-1]).all():
                ids = np.unique(ids)
            if len(ids) and not 0 <= ids[0] <= ids[-1] < self._nodes:
                raise no_node(int(ids[0] if ids[0] < 0 else ids[-1]), self._nodes)
            return ids, ()
        if isinstance(values, _ONE) or not isinstance(values, Iterable):
            values = [values]
        elif not isinstance(values, list | tuple):
            values = list(values)
        literals = self._literals
        try:
            if RdflibLiteral in set(map(type, values)):  # comparing these literals is slow
                ready = [
                    literals.get((str(value), value.datatype, value.language))
                    if type(value) is RdflibLiteral
                    else self._terms.get(value)
                    for value in values
                ]
            else:
                ready = [*map(self._terms.get, values)]
        except TypeError:  # an object that is not a term may not be hashable
            return self._looked_up(values)
        if None in ready:
            return self._looked_up(values)
        return np.array([*dict.fromkeys(ready)], dtype=np.int64), ()

    def _looked_up(self, values: Sequence[Any]) -> tuple[Ids, tuple[Term, ...]]:
        found: dict[int, None] = {}
        given: list[Term] = []
        keys: list[Any] = []
        for value in values:
            if isinstance(value, _NUMBERS) and not isinstance(value, bool):
                if not 0 <= value < self._nodes:
                    raise no_node(int(value), self._nodes)
                found[int(value)] = None
            else:
                given.append(value if isinstance(value, _TERMS) else self.term(value))
                keys.append(value)
        if not given:
            return np.array([*found], dtype=np.int64), ()
        ids = np.array(list(map(self._contents.dictionary.find, given)), dtype=np.int64)
        ids[ids >= len(self._contents.node_of)] = UNBOUND
        numbers = self._contents.node_of[ids].tolist()
        found.update(dict.fromkeys(numbers))
        self._remember(keys, numbers)
        strange: tuple[Term, ...] = ()
        if -1 in found:
            del found[-1]
            strange = tuple(
                dict.fromkeys(term for term, number in zip(given, numbers, strict=True) if number < 0)
            )
        return np.array(list(found), dtype=np.int64), strange

    def _remember(self, keys: Iterable[Any], numbers: Iterable[int]) -> None:
        """Cache the numbers of the terms that are nodes."""
        if len(self._terms) > _MOST_KEPT:
            self._terms.clear()
        if len(self._literals) > _MOST_KEPT:
            self._literals.clear()
        for key, number in zip(keys, numbers, strict=True):
            if number >= 0 and type(key) is RdflibLiteral:
                self._literals[str(key), key.datatype, key.language] = number
            elif number >= 0:
                self._terms[key] = number
