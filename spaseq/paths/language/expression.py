"""The syntax tree of a path expression, with inverses pushed down to the steps.

Terms are pyoxigraph's. Comparing trees ignores spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from pyoxigraph import NamedNode

from spaseq.language.reading.source import QueryText
from spaseq.language.syntax import Span
from spaseq.language.syntax.printing import print_term
from spaseq.patterns.expressions.comparison import COMPARISONS, ExpressionError
from spaseq.terms.dictionary import Term
from spaseq.terms.values import RDF_TYPE, decode


@dataclass(frozen=True, slots=True)
class Step:
    """One edge: ``:p`` or ``^:p``. If ``negated``, any predicate but these: ``!(:p|:q)``; ``.`` has none."""

    predicates: tuple[NamedNode, ...]
    negated: bool = False
    inverse: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a node: ``:p value``, it has this value; ``:p > value``, a larger one; ``:p``, any.

    ``^:p …`` is inverse. Without an ``operator``, terms are compared; with one, values, as in SPARQL.
    """

    predicate: NamedNode
    inverse: bool
    value: Term | None
    operator: str = ""

    def admits(self, term: Term) -> bool:
        """Return whether a node with the value ``term`` passes. Values that cannot be compared do not."""
        if self.value is None or not self.operator:
            return self.value is None or term == self.value
        try:
            return COMPARISONS[self.operator](decode(term), decode(self.value))
        except ExpressionError:
            return False


@dataclass(frozen=True, slots=True)
class NodeTest:
    """``[a :Film ; :year 1999]``: takes no edge, and passes nodes that meet all conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Concatenation:
    """``e1/e2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """``e1|e2``"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """``e{n,m}``: at least ``minimum`` and at most ``maximum`` iterations; None means any number."""

    part: Path
    minimum: int
    maximum: int | None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


Path = Step | NodeTest | Concatenation | Alternative | Repetition

#: A predicate, and whether it is read backwards.
Verb = tuple[NamedNode, bool]

#: What one position of an expression reads: an edge, or only a test of the node.
Symbol = Step | NodeTest


@dataclass(frozen=True, slots=True)
class Expression:
    """A path expression; expressions are equal if their trees are, whatever their text."""

    root: Path
    prefixes: Mapping[str, str] = field(compare=False, hash=False, repr=False)
    source: QueryText = field(compare=False, repr=False)

    def __str__(self) -> str:
        return show(self.root, self.prefixes)


def either(parts: Iterable[Path]) -> Alternative:
    """Return ``e1|e2``, without nested alternatives."""
    inner = (part.parts if isinstance(part, Alternative) else (part,) for part in parts)
    return Alternative(tuple(chain.from_iterable(inner)))


def excluding(verbs: Iterable[Verb]) -> Path:
    """Return ``!(:p|^:q)``: any predicate but these."""
    found = dict.fromkeys(verbs)
    forward = tuple(predicate for predicate, backwards in found if not backwards)
    backward = tuple(predicate for predicate, backwards in found if backwards)
    ahead, back = Step(forward, negated=True), Step(backward, negated=True, inverse=True)
    if not backward:
        return ahead
    return Alternative((ahead, back)) if forward else back


def inverse(path: Path) -> Path:
    """Return ``^path``: the same path, read from its end."""
    match path:
        case Step(predicates, negated, backwards):
            return Step(predicates, negated, not backwards)
        case NodeTest():
            return path
        case Concatenation(parts):
            return Concatenation(tuple(map(inverse, reversed(parts))))
        case Alternative(parts):
            return Alternative(tuple(map(inverse, parts)))
        case Repetition():
            return replace(path, part=inverse(path.part))


def read(path: Path) -> tuple[Symbol, ...]:
    """Return all steps and tests of an expression, in the order written."""
    match path:
        case Step() | NodeTest():
            return (path,)
        case Concatenation(parts) | Alternative(parts):
            return tuple(symbol for part in parts for symbol in read(part))
        case Repetition(part):
            return read(part)


def steps(path: Path) -> tuple[Step, ...]:
    """Return all steps of an expression, in the order written."""
    return tuple(symbol for symbol in read(path) if isinstance(symbol, Step))


def takes_edges(path: Path) -> bool:
    """Return whether an expression can match a path with edges: ``:a{0}`` and node tests cannot."""
    match path:
        case Step():
            return True
        case NodeTest():
            return False
        case Concatenation(parts) | Alternative(parts):
            return any(map(takes_edges, parts))
        case Repetition(part, maximum=maximum):
            return maximum != 0 and takes_edges(part)


def endless(path: Path) -> Repetition | None:
    """Return the first unbounded repetition that can take edges, and so allows paths of any length."""
    match path:
        case Repetition(part, maximum=None) if takes_edges(part):
            return path
        case Repetition(part, maximum=maximum):
            return endless(part) if maximum != 0 else None
        case Concatenation(parts) | Alternative(parts):
            return next(filter(None, map(endless, parts)), None)
        case _:
            return None


def show(path: Path, prefixes: Mapping[str, str], level: int = 0) -> str:
    """Return an expression as text, in parentheses if it binds more loosely than ``level``.

    >>> show(Repetition(Step((NamedNode("http://e.org/p"),), inverse=True), 2, 5), {"": "http://e.org/"})
    '(^:p){2,5}'
    """
    match path:
        case Step(predicates):
            own, text = _show_step(path, [_show_predicate(p, prefixes) for p in predicates])
        case NodeTest(conditions):
            return f"[{' ; '.join(_show_condition(c, prefixes) for c in conditions)}]"
        case Alternative(parts):
            own, text = 1, "|".join(show(part, prefixes, 2) for part in parts)
        case Concatenation(parts):
            own, text = 2, "/".join(show(part, prefixes, 3) for part in parts)
        case Repetition(part, minimum, maximum):
            own, text = 4, show(part, prefixes, 5) + _bounds(minimum, maximum)
    return f"({text})" if own < level else text


def _show_step(step: Step, names: list[str]) -> tuple[int, str]:
    """Return how tightly a step binds, and its text."""
    if not step.negated:
        return (3, f"^{names[0]}") if step.inverse else (5, names[0])
    if not names:
        return (3, "^.") if step.inverse else (5, ".")
    if step.inverse:
        names = [f"^{name}" for name in names]
    return 5, f"!({'|'.join(names)})"


def _show_condition(condition: Condition, prefixes: Mapping[str, str]) -> str:
    verb = ("^" if condition.inverse else "") + _show_predicate(condition.predicate, prefixes)
    value = "" if condition.value is None else print_term(condition.value, prefixes)
    return " ".join(filter(None, (verb, condition.operator, value)))


def _show_predicate(predicate: NamedNode, prefixes: Mapping[str, str]) -> str:
    return "a" if predicate == RDF_TYPE else print_term(predicate, prefixes)


def _bounds(minimum: int, maximum: int | None) -> str:
    sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((minimum, maximum))
    if sign is not None:
        return sign
    if minimum == maximum:
        return f"{{{minimum}}}"
    return f"{{{minimum},{'' if maximum is None else maximum}}}"
