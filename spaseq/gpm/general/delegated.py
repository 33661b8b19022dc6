"""Rarely used operations, which are delegated to Oxigraph: dates, durations, regular expressions, hashes.

Arguments are written into ``SELECT (f(…) AS ?r) {}``, asked of an empty store. Answers are kept for
the short terms asked last, since events repeat them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store, Triple

from spaseq.terms.values import Value, decode

#: Up to so many characters of arguments their answer is kept: REPLACE makes at most some 4,000 of them.
_SHORT: Final = 128


_Arguments = tuple[NamedNode | Literal, ...]


class ExpressionError(Exception):
    """SPARQL's type error: the expression has no value. A filter then rejects the solution."""


@cache
def _store() -> Store:
    return Store()


def _ask(template: str, arguments: _Arguments) -> NamedNode | BlankNode | Literal | None:
    expression = template.format(*map(str, arguments))
    answers = _store().query(f"SELECT ({expression} AS ?r) {{}}")
    assert isinstance(answers, QuerySolutions)
    for answer in answers:
        term = answer["r"]
        return None if isinstance(term, Triple) else term
    return None


@lru_cache(maxsize=1 << 14)
def _kept(template: str, arguments: _Arguments) -> NamedNode | BlankNode | Literal | None:
    return _ask(template, arguments)


def delegated(template: str, *arguments: Value) -> Value:
    """The value of an expression over values, which stand in ``template`` as ``{}``.

    Raises ``ExpressionError`` where SPARQL has an error.

    >>> delegated("YEAR({})", decode(Literal("2024-05-01", datatype=NamedNode(
    ...     "http://www.w3.org/2001/XMLSchema#date")))).data
    2024
    """
    terms: list[NamedNode | Literal] = []
    for argument in arguments:
        term = argument.term
        if isinstance(term, BlankNode):
            raise ExpressionError("a blank node has no such value")
        terms.append(term)
    ask = _kept if sum(len(term.value) for term in terms) <= _SHORT else _ask
    answer = ask(template, tuple(terms))
    if answer is None:
        raise ExpressionError(f"no value: {template} of {terms}")
    return decode(answer)
