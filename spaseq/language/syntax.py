"""The syntax tree of a SPAseq query: frozen dataclasses that say what was written, and where.

Terms are pyoxigraph's (``NamedNode``, ``BlankNode``, ``Literal``): immutable, hashable, and printed
as N-Triples by ``str``. Every node that an error can point at carries a ``Span``; spans never take
part in comparison, so two queries are equal when they say the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.terms import Term


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node stands in the query text: offsets in characters, line and column from 1."""

    start: int
    end: int
    line: int
    column: int


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False, kw_only=True)


# --- terms and property paths -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """A variable, without its ``?``. Also an expression."""

    name: str
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class PathSequence:
    """``p1/p2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative:
    """``p1|p2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathInverse:
    """``^p``"""

    path: Path


@dataclass(frozen=True, slots=True)
class PathRepeat:
    """``p*`` (0, None), ``p+`` (1, None), ``p?`` (0, 1)."""

    path: Path
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class PathNegated:
    """``!(p1|^p2)``: the forward predicates and the inverse ones that are excluded."""

    forward: tuple[NamedNode, ...]
    inverse: tuple[NamedNode, ...]


Path = NamedNode | PathSequence | PathAlternative | PathInverse | PathRepeat | PathNegated

# --- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """An IRI or a literal in an expression."""

    term: NamedNode | Literal
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Unary:
    """``!``, ``-`` or ``+`` before an expression."""

    operator: str
    operand: Expression
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """``|| && = != < > <= >= + - * /``; chains associate to the left."""

    operator: str
    left: Expression
    right: Expression
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class In:
    """``operand IN (items)``, or ``NOT IN``."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function by its upper-case name: ``BOUND``, ``IF``, ``STRLEN``, ``REGEX``…"""

    name: str
    arguments: tuple[Expression, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function named by an IRI: casts such as ``xsd:integer(?x)``, extensions."""

    function: NamedNode
    arguments: tuple[Expression, ...]
    distinct: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Exists:
    """``EXISTS { }`` or ``NOT EXISTS { }``."""

    pattern: Group
    negated: bool
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``COUNT SUM AVG MIN MAX SAMPLE GROUP_CONCAT``, and SPAseq's ``FIRST LAST``.

    ``argument`` is None for ``COUNT(*)``.
    """

    name: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Prev:
    """``PREV(?v)``: the value of a group variable in the iteration before this one."""

    variable: Var
    span: Span | None = _span()


Expression = Var | Constant | Unary | Binary | In | Call | FunctionCall | Exists | Aggregate | Prev

# --- graph patterns ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """Subject, predicate (a term, variable or path), object. Collections and ``[]`` are spelt out."""

    subject: Term | Var
    predicate: Path | Var
    object: Term | Var
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Triples:
    """Neighbouring triple patterns of a group: a basic graph pattern."""

    patterns: tuple[TriplePattern, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Filter:
    """``FILTER(condition)``"""

    condition: Expression
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Bind:
    """``BIND(expression AS ?variable)``"""

    expression: Expression
    variable: Var
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Values:
    """``VALUES (?a ?b) { (1 UNDEF) }``: None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Optional:
    """``OPTIONAL { }``"""

    pattern: Group
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Union:
    """``{ } UNION { }``"""

    branches: tuple[Group, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Minus:
    """``MINUS { }``"""

    pattern: Group
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Graph:
    """``GRAPH name { }``: evaluated on the background knowledge base, not on the event."""

    name: NamedNode | Var
    pattern: Group
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Service:
    """``SERVICE name { }``: parsed so that the static check can refuse it with its place."""

    name: NamedNode | Var
    pattern: Group
    silent: bool
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Projection:
    """One item of SELECT: ``?v`` (expression None) or ``(expression AS ?v)``."""

    variable: Var
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT's own part. ``items`` is None for ``*``."""

    items: tuple[Projection, ...] | None
    distinct: bool = False
    reduced: bool = False
    span: Span | None = _span()


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
class SubSelect:
    """A subquery, with its trailing VALUES block if it has one."""

    select: Select
    pattern: Group
    modifiers: Modifiers
    values: Values | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Group:
    """``{ … }``: its elements in the order written.

    A FILTER does not end a basic graph pattern (SPARQL 1.1, section 5.1.1): triples before and after
    one are a single ``Triples``, at the place of the first.
    """

    elements: tuple[Pattern, ...]
    span: Span | None = _span()


Pattern = Triples | Filter | Bind | Values | Optional | Union | Minus | Graph | Service | SubSelect | Group

# --- sequence expressions ---------------------------------------------------------------------


class Strategy(StrEnum):
    """Event selection strategy between two elements (SPAseq paper, 4.2.2)."""

    STRICT = ","
    NEXT = ";"
    ANY = ":"


@dataclass(frozen=True, slots=True)
class Ref:
    """The name of a GPM in SEQ."""

    name: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Sequence:
    """``X1 op1 X2 op2 X3``: one operator fewer than elements; always two elements or more."""

    elements: tuple[Seq, ...]
    operators: tuple[Strategy, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """``X & Y``"""

    operands: tuple[Seq, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Disjunction:
    """``X | Y``"""

    operands: tuple[Seq, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class All:
    """``ALL(σ1, σ2, …)``: one match of each, in any order."""

    operands: tuple[Seq, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Repeat:
    """``X+`` (1, None), ``X*`` (0, None), ``X?`` (0, 1), ``X{n,m}``; ``strategy`` is inside the loop."""

    element: Seq
    minimum: int
    maximum: int | None
    strategy: Strategy = Strategy.NEXT
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Not:
    """``!X``"""

    element: Seq
    span: Span | None = _span()


Seq = Ref | Sequence | Conjunction | Disjunction | All | Repeat | Not

# --- the query --------------------------------------------------------------------------------


class WindowKind(StrEnum):
    """How windows follow each other (semantics, section 5)."""

    TUMBLING = "TUMBLING"
    SLIDING = "SLIDING"


#: Microseconds of a unit of WITHIN; None for EVENTS, which counts.
UNITS: Final[Mapping[str, int | None]] = {
    "MILLISECONDS": 1_000,
    "SECONDS": 1_000_000,
    "MINUTES": 60_000_000,
    "HOURS": 3_600_000_000,
    "DAYS": 86_400_000_000,
    "EVENTS": None,
}


@dataclass(frozen=True, slots=True)
class Window:
    """``WITHIN size unit kind``; ``unit`` is a key of ``UNITS``."""

    size: int
    unit: str
    kind: WindowKind = WindowKind.TUMBLING
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class StreamDeclaration:
    """``FROM STREAM name <iri>``"""

    name: str
    iri: NamedNode
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Gpm:
    """``DEFINE GPM name ON streams AT ?time AS ?graph { pattern }``"""

    name: str
    streams: tuple[str, ...]
    pattern: Group
    time: Var | None = None
    graph: Var | None = None
    span: Span | None = _span()


class RegisterKind(StrEnum):
    """What REGISTER makes of the query's answers."""

    QUERY = "QUERY"
    STREAM = "STREAM"


@dataclass(frozen=True, slots=True)
class Register:
    """``REGISTER STREAM <iri> AS``"""

    kind: RegisterKind
    iri: NamedNode
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Ask:
    """``ASK``"""

    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Construct:
    """``CONSTRUCT { template }``; blank nodes of the template are fresh per solution."""

    template: tuple[TriplePattern, ...]
    span: Span | None = _span()


class Emit(StrEnum):
    """Which of the matches with the same last event are kept (semantics, section 6)."""

    ALL = "ALL"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"


class Consume(StrEnum):
    """What emitting a match does to partial matches."""

    NONE = "NONE"
    ANY = "ANY"


@dataclass(frozen=True, slots=True)
class Query:
    """A SPAseq query. ``str`` gives its canonical text, which parses to an equal tree.

    ``warnings`` are the findings of the static checks that do not stop it.
    """

    form: Select | Ask | Construct
    window: Window
    streams: tuple[StreamDeclaration, ...]
    sequence: Seq
    gpms: tuple[Gpm, ...]
    partition: tuple[Var, ...] = ()
    knowledge: tuple[NamedNode, ...] = ()
    filters: tuple[Filter, ...] = ()
    emit: Emit = Emit.ALL
    consume: Consume = Consume.NONE
    modifiers: Modifiers = Modifiers()
    register: Register | None = None
    prefixes: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)
    filename: str = field(default="<query>", compare=False, repr=False)
    warnings: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        from spaseq.language.printer import print_query

        return print_query(self)

    def gpm(self, name: str) -> Gpm:
        """The GPM of that name; KeyError if the query defines none."""
        for gpm in self.gpms:
            if gpm.name == name:
                return gpm
        raise KeyError(name)

    def stream(self, name: str) -> NamedNode:
        """The IRI of the stream that the query calls ``name``; KeyError if it declares none."""
        for declaration in self.streams:
            if declaration.name == name:
                return declaration.iri
        raise KeyError(name)
