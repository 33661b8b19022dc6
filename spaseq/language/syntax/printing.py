"""Parts of a syntax tree → text; ``query`` prints a whole query.

Each function prints SPARQL with absolute IRIs, valid for a SPARQL engine except for SPAseq's extensions
(PREV, FIRST, LAST).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.language.syntax.clauses import Ask, Construct, Gpm
from spaseq.language.syntax.patterns import (
    Aggregate,
    Binary,
    Bind,
    Call,
    Constant,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Graph,
    Group,
    GroupCondition,
    In,
    Minus,
    Modifiers,
    Optional,
    OrderCondition,
    Pattern,
    Prev,
    Projection,
    Select,
    ServicePattern,
    SubSelect,
    TriplePattern,
    Triples,
    Unary,
    Union,
    Values,
)
from spaseq.language.syntax.sequences import (
    All,
    Bounded,
    Conjunction,
    Disjunction,
    Not,
    Ref,
    Repeat,
    Seq,
    Sequence,
    Strategy,
)
from spaseq.language.syntax.terms import (
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Var,
)
from spaseq.terms.dictionary import Term
from spaseq.terms.values import RDF_TYPE, XSD

#: Lexical forms that need neither quotes nor a datatype.
_PLAIN: Final = {
    NamedNode(XSD + "integer"): re.compile(r"[+-]?[0-9]+"),
    NamedNode(XSD + "decimal"): re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    NamedNode(XSD + "double"): re.compile(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    NamedNode(XSD + "boolean"): re.compile(r"true|false"),
}

_LOCAL: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_-]*)?")

INDENT: Final = "  "

# Precedence of operators, loosest first.
_LEVELS: Final = {"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5}
_COMPARISON: Final = 3
_UNARY: Final = 6
_PRIMARY: Final = 7


def print_group(group: Group) -> str:
    """Return ``{ … }`` as SPARQL."""
    return Printer().group(group, "")


def print_expression(expression: Expression) -> str:
    """Return an expression as SPARQL.

    >>> print_expression(Binary("*", Binary("+", Var("a"), Var("b")), Var("c")))
    '(?a + ?b) * ?c'
    """
    return Printer().expression(expression)


def print_term(term: Term | Var, prefixes: Mapping[str, str]) -> str:
    """Return a term as SPARQL.

    >>> print_term(NamedNode("http://example.org/p"), {"ex": "http://example.org/"})
    'ex:p'
    """
    return Printer(prefixes.items()).term(term)


def print_path(path: Path | Var) -> str:
    """Return a property path as SPARQL.

    >>> print_path(PathRepeat(PathInverse(NamedNode("http://example.org/p")), 0, None))
    '(^<http://example.org/p>)*'
    """
    return Printer().path(path)


def print_sequence(seq: Seq) -> str:
    """Return a sequence expression as SPAseq.

    >>> print_sequence(Sequence((Ref("A"), Repeat(Ref("B"), 1, None)), (Strategy.NEXT,)))
    'A ; B+'
    """
    return _seq(seq, 0)


class Printer:
    """Prints parts of a query, with its prefixes."""

    def __init__(self, prefixes: Iterable[tuple[str, str]] = ()) -> None:
        #: What IRI() resolves against, if something printed so far uses it.
        self.base: Term | None = None
        # The longest namespace that fits is preferred.
        self._prefixes = sorted(prefixes, key=lambda item: -len(item[1]))

    # --- clauses

    def form(self, form: Select | Ask | Construct) -> str:
        """Return SELECT, ASK or CONSTRUCT."""
        match form:
            case Select():
                return self._select(form)
            case Ask():
                return "ASK"
            case Construct(template):
                lines = (f"{INDENT}{self._triple(triple)}\n" for triple in template)
                return f"CONSTRUCT {{\n{''.join(lines)}}}"

    def _select(self, select: Select) -> str:
        how = " DISTINCT" if select.distinct else " REDUCED" if select.reduced else ""
        items = "*" if select.items is None else " ".join(map(self._projection, select.items))
        return f"SELECT{how} {items}"

    def _projection(self, item: Projection) -> str:
        if item.expression is None:
            return str(item.variable)
        return f"({self.expression(item.expression)} AS {item.variable})"

    def gpm(self, gpm: Gpm) -> str:
        """Return a GPM."""
        time = "" if gpm.time is None else f" AT {gpm.time}"
        graph = "" if gpm.graph is None else f" AS {gpm.graph}"
        head = f"DEFINE GPM {gpm.name} ON {', '.join(gpm.streams)}{time}{graph}"
        return f"{head} {self.group(gpm.pattern, INDENT)}"

    def modifiers(self, modifiers: Modifiers) -> Iterator[str]:
        """Yield the lines of the solution modifiers."""
        if modifiers.group_by:
            yield f"GROUP BY {' '.join(map(self._group_condition, modifiers.group_by))}"
        if modifiers.having:
            yield f"HAVING {' '.join(f'({self.expression(e)})' for e in modifiers.having)}"
        if modifiers.order_by:
            yield f"ORDER BY {' '.join(map(self._order_condition, modifiers.order_by))}"
        if modifiers.limit is not None:
            yield f"LIMIT {modifiers.limit}"
        if modifiers.offset:
            yield f"OFFSET {modifiers.offset}"

    def _group_condition(self, condition: GroupCondition) -> str:
        if condition.variable is not None:
            return f"({self.expression(condition.expression)} AS {condition.variable})"
        if isinstance(condition.expression, Var):
            return str(condition.expression)
        return f"({self.expression(condition.expression)})"

    def _order_condition(self, condition: OrderCondition) -> str:
        if not condition.descending and isinstance(condition.expression, Var):
            return str(condition.expression)
        return f"{'DESC' if condition.descending else 'ASC'}({self.expression(condition.expression)})"

    # --- patterns

    def group(self, group: Group, margin: str) -> str:
        """Return ``{ … }``. Each line begins with ``margin``."""
        if not group.elements:
            return "{ }"
        inner = margin + INDENT
        lines = (f"{inner}{self.element(element, inner)}\n" for element in group.elements)
        return f"{{\n{''.join(lines)}{margin}}}"

    def element(self, element: Pattern, margin: str) -> str:
        """Return one part of a group."""
        match element:
            case Triples(patterns):
                return f"\n{margin}".join(map(self._triple, patterns))
            case Filter(condition):
                return f"FILTER({self.expression(condition, margin)})"
            case Bind(expression, variable):
                return f"BIND({self.expression(expression, margin)} AS {variable})"
            case Values():
                return self._values(element)
            case Optional(pattern):
                return f"OPTIONAL {self.group(pattern, margin)}"
            case Union(branches):
                return " UNION ".join(self.group(branch, margin) for branch in branches)
            case Minus(pattern):
                return f"MINUS {self.group(pattern, margin)}"
            case Graph(name, pattern):
                return f"GRAPH {self.term(name)} {self.group(pattern, margin)}"
            case ServicePattern(name, pattern, silent):
                how = "SERVICE SILENT" if silent else "SERVICE"
                return f"{how} {self.term(name)} {self.group(pattern, margin)}"
            case SubSelect():
                return f"\n{margin}".join(self._sub_select(element, margin))
            case Group():
                return self.group(element, margin)

    def _triple(self, triple: TriplePattern) -> str:
        verb = "a" if triple.predicate == RDF_TYPE else self.path(triple.predicate)
        return f"{self.term(triple.subject)} {verb} {self.term(triple.object)} ."

    def _values(self, values: Values) -> str:
        rows = (
            f"({' '.join('UNDEF' if term is None else self.term(term) for term in row)})"
            for row in values.rows
        )
        return f"VALUES ({' '.join(map(str, values.variables))}) {{ {' '.join(rows)} }}"

    def _sub_select(self, query: SubSelect, margin: str) -> Iterator[str]:
        yield self._select(query.select)
        yield f"WHERE {self.group(query.pattern, margin)}"
        yield from self.modifiers(query.modifiers)
        if query.values is not None:
            yield self._values(query.values)

    # --- expressions

    def expression(self, expression: Expression, margin: str = "", level: int = 0) -> str:
        """Return the expression, in parentheses if it binds more loosely than ``level``."""

        def inside(operand: Expression, level: int = 0) -> str:
            return self.expression(operand, margin, level)

        match expression:
            case Var():
                return str(expression)
            case Constant(term):
                return self.term(term)
            case Unary(operator, operand):
                # A sign must not run into a number: -(5) is not the literal -5.
                signed = operator in "+-" and isinstance(operand, Constant)
                text = operator + (f"({inside(operand)})" if signed else inside(operand, _PRIMARY))
                own = _UNARY
            case Binary(operator, left, right):
                own = _LEVELS.get(operator, _COMPARISON)
                left_level = own + 1 if own == _COMPARISON else own
                text = f"{inside(left, left_level)} {operator} {inside(right, own + 1)}"
            case In(operand, items, negated):
                own = _COMPARISON
                word = "NOT IN" if negated else "IN"
                text = f"{inside(operand, own + 1)} {word} ({', '.join(map(inside, items))})"
            case Call("IRI", (argument, Constant(base))):
                self.base = base
                return f"IRI({inside(argument)})"
            case Call(name, arguments):
                return f"{name}({', '.join(map(inside, arguments))})"
            case FunctionCall(function, arguments, distinct):
                how = "DISTINCT " if distinct else ""
                return f"{self.term(function)}({how}{', '.join(map(inside, arguments))})"
            case Exists(pattern, negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.group(pattern, margin)}"
            case Aggregate(name, argument, distinct, separator, offset, before):
                how = "DISTINCT " if distinct else ""
                what = "*" if argument is None else inside(argument)
                end = f", {offset}" if offset else ""
                end += "" if separator is None else f" ; SEPARATOR = {Literal(separator)}"
                whole = f"{name}({how}{what}{end})"
                return f"PREV({whole})" if before else whole
            case Prev(variable, offset):
                return f"PREV({variable})" if offset == 1 else f"PREV({variable}, {offset})"
        return f"({text})" if own < level else text

    # --- terms and paths

    def term(self, term: Term | Var) -> str:
        """Return a term, by a prefix if one fits."""
        if isinstance(term, Literal) and term.language is None:
            plain = _PLAIN.get(term.datatype)
            return term.value if plain is not None and plain.fullmatch(term.value) else str(term)
        if isinstance(term, NamedNode):
            for name, namespace in self._prefixes:
                local = term.value[len(namespace) :]
                if term.value.startswith(namespace) and _LOCAL.fullmatch(local):
                    return f"{name}:{local}"
        return str(term)

    def path(self, path: Path | Var, level: int = 0) -> str:
        """Return the path, in parentheses if it binds more loosely than ``level``."""
        match path:
            case Var() | NamedNode():
                return self.term(path)
            case PathNegated(forward, inverse):
                steps = [*map(self.term, forward), *(f"^{self.term(p)}" for p in inverse)]
                return f"!({'|'.join(steps)})"
            case PathAlternative(parts):
                own, text = 1, "|".join(self.path(part, 2) for part in parts)
            case PathSequence(parts):
                own, text = 2, "/".join(self.path(part, 3) for part in parts)
            case PathInverse(inner):
                own, text = 3, f"^{self.path(inner, 4)}"
            case PathRepeat(inner, minimum, maximum):
                sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}[minimum, maximum]
                own, text = 4, f"{self.path(inner, 5)}{sign}"
        return f"({text})" if own < level else text


# --- sequences


def _seq(seq: Seq, level: int) -> str:
    """Return the sequence, in parentheses if it binds more loosely than ``level``."""
    match seq:
        case Ref(name):
            return name
        case All(operands):
            return f"ALL({', '.join(_seq(operand, 4) for operand in operands)})"
        case Disjunction(operands):
            own, text = 1, " | ".join(_seq(operand, 2) for operand in operands)
        case Conjunction(operands):
            own, text = 2, " & ".join(_seq(operand, 3) for operand in operands)
        case Sequence(elements, operators):
            rest = zip(operators, elements[1:], strict=True)
            own, text = 3, _seq(elements[0], 4) + "".join(f" {op} {_seq(e, 4)}" for op, e in rest)
        case Not(element):
            own, text = 5, f"!{_seq(element, 6)}"
        case Repeat(element, strategy=strategy, reluctant=reluctant):
            inside = "?" * reluctant + ("" if strategy is Strategy.NEXT else f"[{strategy}]")
            own, text = 6, f"{_seq(element, 7)}{_bounds(seq)}{inside}"
        case Bounded(element, within):
            own, text = 4, f"{_seq(element, 5)} WITHIN {within}"
    return f"({text})" if own < level else text


def _bounds(repeat: Repeat) -> str:
    minimum, maximum = repeat.minimum, repeat.maximum
    sign = {(0, None, True): "*", (1, None, False): "+", (0, 1, True): "?"}.get(
        (minimum, maximum, repeat.optional)
    )
    if sign is not None:
        return sign
    if maximum is None:
        return f"{{{minimum},}}"
    return f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{maximum}}}"
