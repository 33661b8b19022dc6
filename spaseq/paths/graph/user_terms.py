"""Terms as users give them: rdflib's, pyoxigraph's, or as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.errors import QueryMeaningError
from spaseq.language.reading.hints import nearest
from spaseq.language.reading.source import Source
from spaseq.paths.graph.loading import term
from spaseq.paths.language.parser import parse_term
from spaseq.terms.dictionary import Term

#: With these, a text is an IRI.
_SCHEME: Final = re.compile(
    "about|ark|arn|cid|data|did|doi|file|ftp|geo|hdl|https?|info|ipfs|ipns|isbn|ldap|mailto|mid|news|ni|oid"
    "|sip|sms|tag|tel|urn|uuid|wss?|xmpp",
    re.IGNORECASE,
)

_PREFIX: Final = re.compile(r"(?:[^\W\d_][\w.-]*)?")


def read_term(
    value: Any, prefixes: Mapping[str, str], known: Callable[[Term], bool] = lambda _: False
) -> Term:
    """A term, from one of rdflib's or pyoxigraph's, or from text as an expression or N-Triples writes it.

    A text that may be a name whose prefix nobody has declared is an IRI if it is ``known``. Raises
    QueryError, with its place, for a text that is none, and TypeError for what is neither.

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
    """What to say of a text with a colon that is no IRI."""
    source = Source(text, "<term>")
    if _SCHEME.fullmatch(name) or not _PREFIX.fullmatch(name):
        return source.error(QueryMeaningError, "this is not an IRI", 0)
    alike = nearest(name, prefixes)
    known = ", ".join(f"{prefix}:" for prefix in sorted(prefixes))
    hint = f"the graph declares {known}" if known else "the graph declares no prefixes"
    hint = f"{hint}; an IRI is written <{text}>" if name and " " not in text else hint
    hint = f"did you mean '{alike}:'?" if alike else hint
    return source.error(QueryMeaningError, f"the prefix '{name}:' is not declared", 0, hint)
