"""RDF terms as integers: what columns hold.

An id is a positive ``int64``; ``UNBOUND`` (0) is "no term". Equal terms have equal ids, except that
every blank node of an event gets an id of its own (``fresh``), since blank nodes are scoped to
their event.
"""

from __future__ import annotations

from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode

Term = NamedNode | BlankNode | Literal

UNBOUND: Final = 0


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

    def __len__(self) -> int:
        return len(self._terms) - 1

    def intern(self, term: Term) -> int:
        """The id of ``term``, new if it was never seen."""
        identifier = self._ids.get(term)
        if identifier is None:
            identifier = self._ids[term] = len(self._terms)
            self._terms.append(term)
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
