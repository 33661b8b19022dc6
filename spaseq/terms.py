"""RDF terms as integers: what columns hold.

An id is a positive ``int64``; ``UNBOUND`` (0) is "no term". Equal terms have equal ids, except that
every blank node of an event gets an id of its own (``fresh``), since blank nodes are scoped to
their event.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.values import DECIMAL, DOUBLE, Value, decode

Term = NamedNode | BlankNode | Literal

UNBOUND: Final = 0

_NOT_DECODED: Final = -1
NO_NUMBER: Final = 0
EXACT_ORDER: Final = 1
IS_DOUBLE: Final = 2


class Dictionary:
    """Terms ⇄ ids. Ids are dense, in the order in which terms were first seen.

    >>> from pyoxigraph import NamedNode
    >>> d = Dictionary()
    >>> d.intern(NamedNode("http://example.org/a")), d.intern(NamedNode("http://example.org/a"))
    (1, 1)
    >>> d.term(1)
    <NamedNode value=http://example.org/a>
    """

    def __init__(self) -> None:
        self._ids: dict[Term, int] = {}
        self._terms: list[Term | None] = [None]
        self._values: list[Value | None] = [None]
        self._number: npt.NDArray[np.float64] = np.empty(0)
        self._rank: npt.NDArray[np.int8] = np.empty(0, dtype=np.int8)

    def __len__(self) -> int:
        return len(self._terms) - 1

    def intern(self, term: Term) -> int:
        """The id of ``term``, new if it was never seen."""
        identifier = self._ids.get(term)
        if identifier is None:
            identifier = self._ids[term] = len(self._terms)
            self._terms.append(term)
            self._values.append(None)
        return identifier

    def find(self, term: Term) -> int:
        """The id of ``term``, or ``UNBOUND`` if it was never seen."""
        return self._ids.get(term, UNBOUND)

    def fresh(self) -> int:
        """The id of a new blank node that is equal to no other."""
        return self.intern(BlankNode())

    def term(self, identifier: int) -> Term:
        """The term of an id that this dictionary gave."""
        term = self._terms[identifier]
        if term is None:
            raise KeyError(identifier)
        return term

    def value(self, identifier: int) -> Value:
        """The typed value of an id, decoded at the first call."""
        value = self._values[identifier]
        if value is None:
            value = self._values[identifier] = decode(self.term(identifier))
        return value

    def numbers(self, ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
        """Of each id, the double nearest to its numeric value, and how much that double says.

        The second array holds ``EXACT_ORDER`` for integers and decimals (rounding keeps their order,
        but may make two of them equal), ``IS_DOUBLE`` for doubles, and ``NO_NUMBER`` for everything
        else, ``UNBOUND`` and ``xsd:float`` (which promotes differently) included.
        """
        if len(self._rank) < len(self._terms):
            room = 2 * len(self._terms) - len(self._rank)  # doubled, so that growing costs O(1) a term
            self._number = np.concatenate([self._number, np.zeros(room)])
            self._rank = np.concatenate([self._rank, np.full(room, _NOT_DECODED, dtype=np.int8)])
            self._rank[UNBOUND] = NO_NUMBER
        for identifier in np.unique(ids[self._rank[ids] == _NOT_DECODED]).tolist():
            value = self.value(identifier)
            self._rank[identifier] = NO_NUMBER
            if value.kind <= DECIMAL:
                try:
                    self._number[identifier] = float(value.data)
                except OverflowError:  # an integer beyond the doubles
                    continue
                self._rank[identifier] = EXACT_ORDER
            elif value.kind == DOUBLE:
                self._number[identifier] = value.data
                self._rank[identifier] = IS_DOUBLE
        return self._number[ids], self._rank[ids]
