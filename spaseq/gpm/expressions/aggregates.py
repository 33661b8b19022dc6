"""Aggregates over solutions: SPARQL 1.1, section 18.5.1, and SPAseq's FIRST and LAST."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from spaseq.gpm.expressions.comparison import arithmetic, sort_key
from spaseq.gpm.expressions.compiled import ExistsCallback, ExpressionError, Solution, compile_value
from spaseq.gpm.expressions.functions import FUNCTIONS
from spaseq.language.syntax import Aggregate
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.values import INTEGER, STRING, Value


def aggregate(
    node: Aggregate,
    iterations: Sequence[Sequence[Solution]],
    dictionary: Dictionary,
    exists: ExistsCallback | None = None,
) -> int:
    """The id of an aggregate's value over solutions, iteration by iteration.

    COUNT, SAMPLE, FIRST and LAST pass over solutions in which the argument has no value; for the
    others that is an error, as in SPARQL. FIRST and LAST take the values of one iteration in the order of
    ORDER BY. Raises ``ExpressionError`` where there is no value.

    >>> from spaseq.language.syntax import Var
    >>> d = Dictionary()
    >>> d.term(aggregate(Aggregate("COUNT", Var("x")), [[{"x": 1}, {}]], d)).value
    '1'
    """
    if node.argument is None:
        solutions = [solution for iteration in iterations for solution in iteration]
        rows = [frozenset(solution.items()) for solution in solutions] if node.distinct else solutions
        count = len(set(rows)) if node.distinct else len(rows)
        return dictionary.intern(Value(INTEGER, count).term)
    evaluate = compile_value(node.argument, dictionary, exists)
    found: list[int] = []
    complete = True
    for iteration in iterations:
        values: list[int] = []
        for solution in iteration:
            try:
                values.append(evaluate(solution))
            except ExpressionError:
                complete = False
        found += in_order(values, dictionary) if node.name in ("FIRST", "LAST") else values
    return aggregate_ids(node, found, complete, dictionary)


def in_order(ids: Iterable[int | None], dictionary: Dictionary) -> list[int]:
    """Ids of terms in the order of ORDER BY, without None."""
    bound = [identifier for identifier in ids if identifier is not None]
    if len(bound) < 2:
        return bound
    return sorted(bound, key=lambda identifier: sort_key(dictionary.value(identifier)))


def aggregate_ids(node: Aggregate, ids: Sequence[int], complete: bool, dictionary: Dictionary) -> int:
    """The same over the argument's values; ``complete`` is False if it had none somewhere."""
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
