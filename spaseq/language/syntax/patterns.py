"""Expressions and graph patterns of SPARQL, which contain each other (EXISTS)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyoxigraph import Literal, NamedNode

from spaseq.language.syntax.terms import Path, SyntaxNode, Var
from spaseq.terms.dictionary import Term


@dataclass(frozen=True, slots=True)
class Constant(SyntaxNode):
    """An IRI or a literal in an expression."""

    term: NamedNode | Literal


@dataclass(frozen=True, slots=True)
class Unary(SyntaxNode):
    """``!``, ``-`` or ``+`` before an expression."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(SyntaxNode):
    """``|| && = != < > <= >= + - * /``; chains associate to the left."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(SyntaxNode):
    """``operand IN (items)``, or ``NOT IN``."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Call(SyntaxNode):
    """A built-in function by its upper-case name: ``BOUND``, ``IF``, ``STRLEN``, ``REGEX``…

    ``IRI`` has the query's BASE as a second argument, if there is one.
    """

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A Python function named by an IRI, see ``spaseq.function``.

    ``plain``: it takes plain values, not rdflib's terms. ``identity`` distinguishes functions, because not
    every callable can be compared.
    """

    call: Callable[..., Any] = field(compare=False)
    identity: int
    plain: bool = True
    deterministic: bool = True
    vectorized: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall(SyntaxNode):
    """A function named by an IRI: casts such as ``xsd:integer(?x)``, extensions, user functions.

    ``own``: the user function that had the IRI when the query was parsed, or None.
    """

    function: NamedNode
    arguments: tuple[Expression, ...]
    distinct: bool = False
    own: OwnFunction | None = None


@dataclass(frozen=True, slots=True)
class Exists(SyntaxNode):
    """``EXISTS { }`` or ``NOT EXISTS { }``."""

    pattern: Group
    negated: bool


@dataclass(frozen=True, slots=True)
class Aggregate(SyntaxNode):
    """``COUNT SUM AVG MIN MAX SAMPLE GROUP_CONCAT``, and SPAseq's ``FIRST LAST``.

    ``argument`` is None for ``COUNT(*)``. ``offset`` counts forward from the first value, or back from the
    last. ``before``: this is ``PREV`` of the aggregate, which leaves out the current iteration.
    """

    name: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None
    offset: int = 0
    before: bool = False


@dataclass(frozen=True, slots=True)
class Prev(SyntaxNode):
    """``PREV(?v, n)``: the value of a group variable in the n-th iteration before this one."""

    variable: Var
    offset: int = 1


Expression = Var | Constant | Unary | Binary | In | Call | FunctionCall | Exists | Aggregate | Prev


@dataclass(frozen=True, slots=True)
class TriplePattern(SyntaxNode):
    """Subject, predicate (a term, variable or path), object. Collections and ``[]`` are spelt out."""

    subject: Term | Var
    predicate: Path | Var
    object: Term | Var


@dataclass(frozen=True, slots=True)
class Triples(SyntaxNode):
    """Neighbouring triple patterns of a group: a basic graph pattern."""

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Filter(SyntaxNode):
    """``FILTER(condition)``"""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind(SyntaxNode):
    """``BIND(expression AS ?variable)``"""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Values(SyntaxNode):
    """``VALUES (?a ?b) { (1 UNDEF) }``: None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Optional(SyntaxNode):
    """``OPTIONAL { }``"""

    pattern: Group


@dataclass(frozen=True, slots=True)
class Union(SyntaxNode):
    """``{ } UNION { }``"""

    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Minus(SyntaxNode):
    """``MINUS { }``"""

    pattern: Group


@dataclass(frozen=True, slots=True)
class Graph(SyntaxNode):
    """``GRAPH name { }``: evaluated on the background knowledge base, not on the event."""

    name: NamedNode | Var
    pattern: Group


@dataclass(frozen=True, slots=True)
class ServicePattern(SyntaxNode):
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
class Select(SyntaxNode):
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
class SubSelect(SyntaxNode):
    """A subquery, with its trailing VALUES block if it has one."""

    select: Select
    pattern: Group
    modifiers: Modifiers
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class Group(SyntaxNode):
    """``{ … }``: its elements in the order written.

    A FILTER does not end a basic graph pattern (SPARQL 1.1, section 5.1.1): triples before and after a FILTER
    are a single ``Triples``, at the place of the first.
    """

    elements: tuple[Pattern, ...]


Pattern = (
    Triples | Filter | Bind | Values | Optional | Union | Minus | Graph | ServicePattern | SubSelect | Group
)
