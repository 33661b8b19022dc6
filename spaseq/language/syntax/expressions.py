"""Expressions: what FILTER, BIND and SELECT compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, NamedNode

from spaseq.language.syntax.span import Placed
from spaseq.language.syntax.terms import Var

if TYPE_CHECKING:
    from spaseq.language.syntax.patterns import Group


@dataclass(frozen=True, slots=True)
class Constant(Placed):
    """An IRI or a literal in an expression."""

    term: NamedNode | Literal


@dataclass(frozen=True, slots=True)
class Unary(Placed):
    """``!``, ``-`` or ``+`` before an expression."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Placed):
    """``|| && = != < > <= >= + - * /``; chains associate to the left."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(Placed):
    """``operand IN (items)``, or ``NOT IN``."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Call(Placed):
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
class FunctionCall(Placed):
    """A function named by an IRI: casts such as ``xsd:integer(?x)``, extensions, user functions.

    ``own``: the user function that had the IRI when the query was parsed, or None.
    """

    function: NamedNode
    arguments: tuple[Expression, ...]
    distinct: bool = False
    own: OwnFunction | None = None


@dataclass(frozen=True, slots=True)
class Exists(Placed):
    """``EXISTS { }`` or ``NOT EXISTS { }``."""

    pattern: Group
    negated: bool


@dataclass(frozen=True, slots=True)
class Aggregate(Placed):
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
class Prev(Placed):
    """``PREV(?v, n)``: the value of a group variable in the n-th iteration before this one."""

    variable: Var
    offset: int = 1


Expression = Var | Constant | Unary | Binary | In | Call | FunctionCall | Exists | Aggregate | Prev
