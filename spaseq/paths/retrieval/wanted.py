"""The expressions of a retrieval, as people and language models give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from spaseq.errors import QueryError, RetrievalError
from spaseq.paths.graph.doubts import doubts
from spaseq.paths.graph.names import Names, names_of
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.modes import Choice, Mode, check_finite
from spaseq.paths.retrieval.retrieved import Rejected

#: Relation names, or an expression as text or tree; with a weight or without.
Relations: TypeAlias = "Sequence[str] | str | Expression"
Weighted: TypeAlias = "Relations | tuple[Relations, float]"


@dataclass(frozen=True, slots=True)
class Usable:
    """An expression that can be used; ``place`` is its number among those given.

    ``plain``: it is a list of relation names, and no mode is given; so it is walked.
    """

    place: int
    expression: str | Expression
    weight: float
    plain: bool


def read_expressions(
    graph: Snapshot, expressions: Iterable[Weighted] | str | Expression, mode: Mode | None
) -> tuple[list[Usable], list[Rejected], list[str]]:
    """Return the usable expressions, the rejected ones, and warnings."""
    given = [expressions] if isinstance(expressions, str | Expression) else list(expressions)
    usable, rejected, warnings = list[Usable](), list[Rejected](), list[str]()
    for place, weighted in enumerate(given):
        relations, weight = _split(weighted)
        try:
            expression = _expression(names_of(graph), relations)
            check_finite(graph.compile(expression).expression, Choice(mode or Mode.TRAIL))
            if not (isfinite(weight) and weight >= 0):
                raise RetrievalError(f"its weight is {weight}, and not a number from 0 on")
            warnings += doubts(graph, expression)
        except (QueryError, RetrievalError) as error:
            rejected.append(Rejected(place, _printed(relations), str(error)))
        else:
            plain = mode is None and isinstance(relations, list | tuple)
            usable.append(Usable(place, expression, weight, plain))
    return usable, rejected, list(dict.fromkeys(warnings))


def _split(weighted: Weighted) -> tuple[Relations, float]:
    match weighted:
        case (relations, int() | float() as weight):
            return relations, float(weight)
        case _:
            return weighted, 1.0


def _expression(names: Names, relations: Relations) -> str | Expression:
    """Return the path expression of relations. Text stays text, the graph's key for compiled expressions."""
    if isinstance(relations, str | Expression):
        return relations
    if not isinstance(relations, list | tuple):
        kind = type(relations).__name__
        raise RetrievalError(f"a list of relation names or a path expression is wanted, not {kind}")
    return names.expression(relations)


def _printed(relations: Relations) -> str:
    return ", ".join(map(str, relations)) if isinstance(relations, list | tuple) else str(relations)
