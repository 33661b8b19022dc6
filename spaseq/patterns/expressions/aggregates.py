"""Aggregates: over solutions (SPARQL 1.1, section 18.5.1), and over a loop's iterations (semantics, 4.6).

Before them: the reasons why an expression has no value: a missing iteration, an unbound variable, or another
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import reduce

from spaseq.language.rewrite import substitute
from spaseq.language.scope import operands
from spaseq.language.syntax import Aggregate, Call, Expression, Prev, Var
from spaseq.patterns.expressions.comparison import arithmetic, sort_key
from spaseq.patterns.expressions.compiled import (
    ExistsCallback,
    ExpressionError,
    Solution,
    compile_filter,
    compile_value,
)
from spaseq.patterns.expressions.functions import FUNCTIONS
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.values import INTEGER, STRING, Value

# Why an expression has no value: PREV without an iteration, an unbound variable, or another error (semantics,
# 4.6).


class Reason(Enum):
    """Why an expression has no value.

    ``EARLY``: only because PREV has no such iteration. ``UNBOUND``: only because of that, or of unbound
    variables.
    """

    EARLY = auto()
    UNBOUND = auto()
    OTHER = auto()


_Why = Callable[[Solution, frozenset[str]], Reason | None]


def errs_for_want_of(
    expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None = None
) -> Callable[[Solution, frozenset[str]], bool]:
    """Return a function that says whether an expression errs only because certain variables are unbound.

    Its arguments are a solution and the names of these variables.

    >>> from pyoxigraph import Literal
    >>> from spaseq.language.syntax import Binary
    >>> errs = errs_for_want_of(Binary("+", Var("a"), Var("p")), d := Dictionary())
    >>> two = d.intern(Literal(2))
    >>> errs({"a": two}, frozenset("p")), errs({}, frozenset("p"))
    (True, False)
    """
    why = compile_reason(expression, dictionary, exists)
    return lambda solution, absent: why(solution, absent) is Reason.EARLY


def compile_reason(
    expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None = None
) -> _Why:
    """Return a function that says why an expression errs, None if it does not.

    It takes a solution, and the names of the variables in it that stand for a PREV without an iteration.
    """
    evaluate = compile_value(expression, dictionary, exists)
    inner = [compile_reason(operand, dictionary, exists) for operand in operands(expression)]
    name = expression.name if isinstance(expression, Var) else None
    branches = isinstance(expression, Call) and expression.name == "IF"
    condition = compile_filter(operands(expression)[0], dictionary, exists) if branches else None

    def why(solution: Solution, absent: frozenset[str]) -> Reason | None:
        if name in absent:
            return Reason.EARLY
        try:
            evaluate(solution)
        except ExpressionError:
            pass
        else:
            return None
        if name is not None:
            return Reason.UNBOUND
        asked = inner
        if condition is not None and inner[0](solution, absent) is None:
            asked = inner[1:2] if condition(solution) else inner[2:]
        # An operator errs because an operand does. If no operand errs, the operator is the reason.
        reasons = {reason for operand in asked if (reason := operand(solution, absent)) is not None}
        if not reasons or Reason.OTHER in reasons:
            return Reason.OTHER
        return Reason.UNBOUND if Reason.UNBOUND in reasons else Reason.EARLY

    return why


# Aggregates: over solutions (SPARQL 1.1, section 18.5.1), and over a loop's iterations (semantics, 4.6).

#: Iterations of a loop, each as its solutions.
Iterations = Sequence[Sequence[Solution]]


class EarlyError(ExpressionError):
    """An aggregate has no value, in any iteration, only because PREV has no such iteration."""


class AggregateSummary:
    """An aggregate, ready to be computed.

    Over iterations (``of_loop``), one in which the argument has no value contributes nothing, if the only
    reasons are unbound variables and PREV. Otherwise the aggregate is SPARQL's: COUNT, SAMPLE, FIRST and LAST
    pass over solutions in which the argument is an error, and the others are an error themselves.

    >>> from spaseq.language.syntax import Var
    >>> d = Dictionary()
    >>> d.term(AggregateSummary(Aggregate("COUNT", Var("x")), d)([[{"x": 1}, {}]])).value
    '1'
    """

    def __init__(self, node: Aggregate, dictionary: Dictionary) -> None:
        self.node = node
        self._dictionary = dictionary
        self._previous: list[tuple[str, Prev]] = []
        if node.argument is not None:
            argument = substitute(node.argument, self._take_out)
            self._evaluate = compile_value(argument, dictionary)
            self._why = compile_reason(argument, dictionary)

    def _take_out(self, node: Expression) -> Expression | None:
        if not isinstance(node, Prev):
            return None
        self._previous.append((f" {len(self._previous)}previous", node))
        return Var(self._previous[-1][0])

    def __call__(self, *histories: Iterations, of_loop: bool = False) -> int:
        """Return the id of the value over several histories, each of which has iterations of its own.

        Raises ``ExpressionError`` where there is no value, ``EarlyError`` if that is only because of PREV.
        """
        if self.node.argument is None:
            return self._count(solution for history in histories for part in history for solution in part)
        found: list[int] = []
        reasons: set[Reason] = set()
        for iterations in histories:
            for number, solutions in enumerate(iterations):
                previous, absent = self._before(iterations, number)
                values = []
                for solution in solutions:
                    seen = {**solution, **previous} if previous else solution
                    try:
                        values.append(self._evaluate(seen))
                    except ExpressionError:
                        reasons.add(self._reason(seen, absent) if of_loop else Reason.OTHER)
                ordered = of_loop or self.node.name in ("FIRST", "LAST")
                found += in_order(values, self._dictionary) if ordered else values
        if not found and reasons == {Reason.EARLY}:
            return self._over_nothing()
        return aggregate_ids(self.node, found, of_loop or not reasons, self._dictionary)

    def _reason(self, solution: Solution, absent: frozenset[str]) -> Reason:
        """Return why the argument has no value. Raises ``ExpressionError`` if the aggregate has none for that
        reason.
        """
        reason = self._why(solution, absent)
        if reason is None or reason is Reason.OTHER:
            raise ExpressionError(f"{self.node.name} of an expression that is an error in an iteration")
        return reason

    def _before(self, iterations: Iterations, number: int) -> tuple[dict[str, int], frozenset[str]]:
        """Return the values of PREV in an iteration, and the names of the PREVs without one."""
        if not self._previous:
            return {}, frozenset()
        found, absent = {}, set()
        for name, node in self._previous:
            if number < node.offset:
                absent.add(name)
            elif value := last_of(iterations[number - node.offset], node.variable.name, self._dictionary):
                found[name] = value
        return found, frozenset(absent)

    def _over_nothing(self) -> int:
        try:
            return aggregate_ids(self.node, [], True, self._dictionary)
        except ExpressionError as error:
            raise EarlyError(str(error)) from None

    def _count(self, solutions: Iterable[Solution]) -> int:
        """``COUNT(*)``"""
        if self.node.distinct:
            solutions = {frozenset(solution.items()): solution for solution in solutions}.values()
        return self._dictionary.intern(Value(INTEGER, sum(1 for _ in solutions)).term)


def last_of(solutions: Sequence[Solution], name: str, dictionary: Dictionary) -> int | None:
    """Return the value of PREV in an iteration: the last in the order of ORDER BY, None without any."""
    values = in_order((solution.get(name) for solution in solutions), dictionary)
    return values[-1] if values else None


def in_order(ids: Iterable[int | None], dictionary: Dictionary) -> list[int]:
    """Return ids of terms in the order of ORDER BY, without None."""
    bound = [identifier for identifier in ids if identifier is not None]
    if len(bound) < 2:
        return bound
    return sorted(bound, key=lambda identifier: sort_key(dictionary.value(identifier)))


def aggregate_ids(node: Aggregate, ids: Sequence[int], complete: bool, dictionary: Dictionary) -> int:
    """Return the id of an aggregate over its argument's values.

    ``complete`` is False if the argument had no value in some solution: then only COUNT, SAMPLE, FIRST and
    LAST have a value. Raises ``ExpressionError`` where there is no value.
    """
    if node.distinct:
        ids = list(dict.fromkeys(ids))
    match node.name:
        case "COUNT":
            return dictionary.intern(Value(INTEGER, len(ids)).term)
        case "SAMPLE" | "FIRST":
            return _one(ids, node.offset)
        case "LAST":
            return _one(ids, -1 - node.offset)
    if not complete:
        raise ExpressionError(f"{node.name} of an expression without a value")
    match node.name:
        case "MIN" | "MAX":
            _one(ids, 0)
            choose = min if node.name == "MIN" else max
            return choose(ids, key=lambda identifier: sort_key(dictionary.value(identifier)))
        case "GROUP_CONCAT":
            separator = " " if node.separator is None else node.separator
            texts = [FUNCTIONS["STR"](dictionary.value(identifier)).data for identifier in ids]
            dictionary.limits.check_text(sum(map(len, texts)) + len(separator) * len(texts))
            return dictionary.intern(Value(STRING, separator.join(texts)).term)
    zero = Value(INTEGER, 0)
    total = reduce(lambda a, b: arithmetic("+", a, b), map(dictionary.value, ids), zero)
    if node.name == "AVG" and ids:
        total = arithmetic("/", total, Value(INTEGER, len(ids)))
    return dictionary.intern(total.term)


def _one(ids: Sequence[int], position: int) -> int:
    try:
        return ids[position]
    except IndexError:
        raise ExpressionError("an aggregate over too little") from None
