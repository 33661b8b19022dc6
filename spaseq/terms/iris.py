"""A relative IRI and a base → the absolute IRI (RFC 3986, section 5)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pyoxigraph import NamedNode, RdfFormat
from pyoxigraph import parse as parse_rdf

#: What an IRI reference is made of: the characters that Turtle allows between ``<`` and ``>``.
_REFERENCE: Final = re.compile(r'[^\x00-\x20<>"{}|^`\\]*')


@lru_cache(maxsize=1 << 10)
def resolve(base: str, reference: str) -> NamedNode:
    """Return the absolute IRI of a reference. Raises ValueError if there is none.

    >>> resolve("http://example.org/a/b", "../c").value
    'http://example.org/c'
    """
    if _REFERENCE.fullmatch(reference) is None:
        raise ValueError(f"{reference!r} has characters that no IRI has")
    try:
        # pyoxigraph has no function for the resolution; its parser does it.
        triple = next(iter(parse_rdf(f"<{reference}> a <> .", RdfFormat.TURTLE, base_iri=base)))
    except SyntaxError as problem:
        raise ValueError(str(problem)) from None
    if not isinstance(triple.subject, NamedNode):
        raise TypeError(triple.subject)
    return triple.subject
