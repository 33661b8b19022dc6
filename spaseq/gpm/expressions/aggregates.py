"""Aggregates: over solutions (SPARQL 1.1, section 18.5.1), and over a loop's iterations (semantics, 4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from spaseq.gpm.expressions.comparison import arithmetic, sort_key
from spaseq.gpm.expressions.compiled import ExpressionError, Solution, compile_value
from spaseq.gpm.expressions.early import Reason, compile_reason
from spaseq.gpm.expressions.functions import FUNCTIONS
from spaseq.language.rewrite import substitute
from spaseq.language.syntax import Aggregate, Expression, Prev, Var
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.values import INTEGER, STRING, Value

#: Iterations of a loop, each as its solutions.
Iterations = Sequence[Sequence[Solution]]


class EarlyError(ExpressionError):
    """An aggregate has no value only because PREV has no such iteration, in any iteration."""


class Summary:
    """An aggregate, ready to be computed.

    Over iterations (``of_loop``), one in which the argument has no value contributes nothing, if the only
    reasons are unbound variables and PREV. Otherwise the aggregate is SPARQL's: COUNT, SAMPLE, FIRST and LAST
    pass over solutions in which the argument is an error, and the others are an error themselves.

    >>> from spaseq.language.syntax import Var
    >>> d = Dictionary()
    >>> d.term(Summary(Aggregate("COUNT", Var("x")), d)([[{"x": 1}, {}]])).value
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
        """Why the argument has no value. Raises ``ExpressionError`` if the aggregate has none therefore."""
        reason = self._why(solution, absent)
        if reason is None or reason is Reason.OTHER:
            raise ExpressionError(f"{self.node.name} of an expression that is an error in an iteration")
        return reason

    def _before(self, iterations: Iterations, number: int) -> tuple[dict[str, int], frozenset[str]]:
        """The values of PREV in an iteration, and the names of those without an iteration."""
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
    """Return what PREV takes of an iteration: the last value in the order of ORDER BY, None without any."""
    values = in_order((solution.get(name) for solution in solutions), dictionary)
    return values[-1] if values else None


def in_order(ids: Iterable[int | None], dictionary: Dictionary) -> list[int]:
    """Ids of terms in the order of ORDER BY, without None."""
    bound = [identifier for identifier in ids if identifier is not None]
    if len(bound) < 2:
        return bound
    return sorted(bound, key=lambda identifier: sort_key(dictionary.value(identifier)))


def aggregate_ids(node: Aggregate, ids: Sequence[int], complete: bool, dictionary: Dictionary) -> int:
    """Return the id of an aggregate over its argument's values.

    ``complete`` is False if the argument had none in some solution: then only COUNT, SAMPLE, FIRST and LAST
    have one. Raises ``ExpressionError`` where there is no value.
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
