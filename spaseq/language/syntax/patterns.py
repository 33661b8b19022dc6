"""Graph patterns, and SELECT with its modifiers (subqueries have these, too)."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from spaseq.language.syntax.expressions import Expression
from spaseq.language.syntax.span import Placed
from spaseq.language.syntax.terms import Path, Var
from spaseq.terms.dictionary import Term


@dataclass(frozen=True, slots=True)
class TriplePattern(Placed):
    """Subject, predicate (a term, variable or path), object. Collections and ``[]`` are spelt out."""

    subject: Term | Var
    predicate: Path | Var
    object: Term | Var


@dataclass(frozen=True, slots=True)
class Triples(Placed):
    """Neighbouring triple patterns of a group: a basic graph pattern."""

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Filter(Placed):
    """``FILTER(condition)``"""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind(Placed):
    """``BIND(expression AS ?variable)``"""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Values(Placed):
    """``VALUES (?a ?b) { (1 UNDEF) }``: None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Optional(Placed):
    """``OPTIONAL { }``"""

    pattern: Group


@dataclass(frozen=True, slots=True)
class Union(Placed):
    """``{ } UNION { }``"""

    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Minus(Placed):
    """``MINUS { }``"""

    pattern: Group


@dataclass(frozen=True, slots=True)
class Graph(Placed):
    """``GRAPH name { }``: evaluated on the background knowledge base, not on the event."""

    name: NamedNode | Var
    pattern: Group


@dataclass(frozen=True, slots=True)
class Service(Placed):
    """``SERVICE name { }``: parsed so that the static check can reject it with its place."""

    name: NamedNode | Var
    pattern: Group
    silent: bool


@dataclass(frozen=True, slots=True)
class Projection:
    """One item of SELECT: ``?v`` (expression None) or ``(expression AS ?v)``."""

    variable: Var
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Select(Placed):
    """SELECT's own part. ``items`` is None for ``*``."""

    items: tuple[Projection, ...] | None
    distinct: bool = False
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """One item of GROUP BY: an expression, and the variable of ``(expression AS ?v)``."""

    expression: Expression
    variable: Var | None = None


@dataclass(frozen=True, slots=True)
class OrderCondition:
    """One item of ORDER BY."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Modifiers:
    """SPARQL's solution modifiers."""

    group_by: tuple[GroupCondition, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SubSelect(Placed):
    """A subquery, with its trailing VALUES block if it has one."""

    select: Select
    pattern: Group
    modifiers: Modifiers
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class Group(Placed):
    """``{ … }``: its elements in the order written.

    A FILTER does not end a basic graph pattern (SPARQL 1.1, section 5.1.1): triples before and after a FILTER
    are a single ``Triples``, at the place of the first.
    """

    elements: tuple[Pattern, ...]


Pattern = Triples | Filter | Bind | Values | Optional | Union | Minus | Graph | Service | SubSelect | Group
