"""Rarely used operations, which are delegated to Oxigraph: dates, durations, regular expressions, hashes.

Arguments are written into ``SELECT (f(…) AS ?r) {}``, asked of an empty store. Answers are kept for
the terms asked last, since events repeat them.
"""

from __future__ import annotations

from functools import cache, lru_cache

from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store, Triple

from spaseq.terms.values import Value, decode


class ExpressionError(Exception):
    """SPARQL's type error: the expression has no value. A filter then rejects the solution."""


@cache
def _store() -> Store:
    return Store()


@lru_cache(maxsize=1 << 14)
def _ask(template: str, arguments: tuple[NamedNode | Literal, ...]) -> NamedNode | BlankNode | Literal | None:
    expression = template.format(*map(str, arguments))
    answers = _store().query(f"SELECT ({expression} AS ?r) {{}}")
    assert isinstance(answers, QuerySolutions)
    for answer in answers:
        term = answer["r"]
        return None if isinstance(term, Triple) else term
    return None


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
    answer = _ask(template, tuple(terms))
    if answer is None:
        raise ExpressionError(f"no value: {template} of {terms}")
    return decode(answer)
