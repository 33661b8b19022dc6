"""SPARQL expressions, compiled to closures over solutions.

A solution is a mapping from variable names to term ids; an absent variable is unbound. Values that
only an expression sees are never interned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn, TypeVar

from spaseq.language.syntax import (
    Aggregate,
    Binary,
    Call,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    Group,
    In,
    Prev,
    Unary,
    Var,
)
from spaseq.patterns.expressions.casts import CASTS
from spaseq.patterns.expressions.comparison import (
    COMPARISONS,
    NUMERIC,
    ExpressionError,
    arithmetic,
    digits_of,
    equal,
    is_short,
    negative,
    truth,
)
from spaseq.patterns.expressions.extensions import EXTENSIONS, OwnCall
from spaseq.patterns.expressions.functions import (
    FUNCTIONS,
    LENGTHS,
    labelled_node,
    new_seed,
    replaced,
    replaced_at_most,
)
from spaseq.patterns.expressions.walk import labels
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import DECIMAL, DOUBLE, Value, boolean, decode

__all__ = ["ExistsCallback", "ExpressionError", "Solution", "compile_filter", "compile_test", "compile_value"]

Solution = Mapping[str, int]
ExistsCallback = Callable[[Group, Solution], bool]

#: A key in solutions that no variable has: the seed that keeps labelled blank nodes of solutions apart.
SEED: Final = " seed"

#: Functions named by IRIs.
NAMED: Final = {**CASTS, **EXTENSIONS}

_Evaluate = Callable[[Solution], Value]
_Test = Callable[[Solution], bool]
_Result = TypeVar("_Result")


def compile_value(
    expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None = None
) -> Callable[[Solution], int]:
    """Return a function from a solution to the id of the expression's value.

    It raises ``ExpressionError`` where SPARQL has an error. ``exists`` decides EXISTS; an expression that has
    one cannot be compiled without it (ValueError), nor can an aggregate or PREV.
    """
    if isinstance(expression, Var):
        return _variable_id(expression.name)
    evaluate = _seeded(_ExpressionCompiler(dictionary, exists).value(expression), expression)
    return lambda solution: dictionary.intern(evaluate(solution).term)


def compile_filter(
    expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None = None
) -> Callable[[Solution], bool]:
    """Return a function from a solution to the expression's effective boolean value; an error is False.

    >>> from pyoxigraph import Literal
    >>> d = Dictionary()
    >>> less = compile_filter(Binary("<", Var("a"), Var("b")), d)
    >>> less({"a": d.intern(Literal(2)), "b": d.intern(Literal(10))}), less({})
    (True, False)
    """
    test = compile_test(expression, dictionary, exists)

    def keep(solution: Solution) -> bool:
        try:
            return test(solution)
        except ExpressionError:
            return False

    return keep


def compile_test(
    expression: Expression, dictionary: Dictionary, exists: ExistsCallback | None = None
) -> Callable[[Solution], bool]:
    """Do ``compile_filter``, but raise errors as ``ExpressionError``."""
    return _seeded(_ExpressionCompiler(dictionary, exists).test(expression), expression)


def _seeded(evaluate: Callable[[Solution], _Result], expression: Expression) -> Callable[[Solution], _Result]:
    """Give each solution a seed, if equal labels in it are to be one blank node."""
    if labels(expression) < 2:
        return evaluate
    return lambda solution: evaluate(solution if SEED in solution else {**solution, SEED: new_seed()})


def _unbound(name: str) -> NoReturn:
    raise ExpressionError(f"?{name} is unbound")


def _variable_id(name: str) -> Callable[[Solution], int]:
    def get(solution: Solution) -> int:
        return solution.get(name, UNBOUND) or _unbound(name)

    return get


class _ExpressionCompiler:
    """Turns expressions into closures: ``value`` gives typed values, ``test`` truth."""

    def __init__(self, dictionary: Dictionary, exists: ExistsCallback | None) -> None:
        self._dictionary = dictionary
        self._exists = exists

    # --- truth --------------------------------------------------------------------------------

    def test(self, expression: Expression) -> _Test:
        match expression:
            case Binary("||", left, right):
                return self._either(self.test(left), self.test(right), True)
            case Binary("&&", left, right):
                return self._either(self.test(left), self.test(right), False)
            case Binary(operator, left, right) if operator in COMPARISONS:
                return self._compare(operator, left, right)
            case Unary("!", operand):
                inner = self.test(operand)
                return lambda solution: not inner(solution)
            case In(operand, items, negated):
                return self._in(operand, items, negated)
            case Exists(pattern, negated):
                if self._exists is None:
                    raise ValueError("EXISTS has no meaning here")
                decide = self._exists
                return lambda solution: decide(pattern, solution) != negated
            case Call("BOUND", (Var(name),)):
                return lambda solution: bool(solution.get(name, UNBOUND))
            case _:
                evaluate = self.value(expression)
                return lambda solution: truth(evaluate(solution))

    @staticmethod
    def _either(left: _Test, right: _Test, decisive: bool) -> _Test:
        """Three-valued OR (``decisive`` True) and AND (False): a decisive side outweighs an error."""

        def either(solution: Solution) -> bool:
            try:
                if left(solution) is decisive:
                    return decisive
            except ExpressionError:
                if right(solution) is decisive:
                    return decisive
                raise
            return right(solution)

        return either

    def _compare(self, operator: str, left: Expression, right: Expression) -> _Test:
        compare = COMPARISONS[operator]
        if not isinstance(left, Var) or not isinstance(right, Var | Constant):
            first, second = self.value(left), self.value(right)
            return lambda solution: compare(first(solution), second(solution))
        # Filters between events are mostly such comparisons: as few calls as possible.
        name, decoded, numeric = left.name, self._dictionary.value, NUMERIC[operator]
        if isinstance(right, Constant):
            constant = decode(right.term)

            def with_constant(solution: Solution) -> bool:
                a = decoded(solution.get(name, UNBOUND) or _unbound(name))
                if a.kind == constant.kind <= DOUBLE:
                    return numeric(a.data, constant.data)
                return compare(a, constant)

            return with_constant
        other = right.name

        def with_variable(solution: Solution) -> bool:
            a = decoded(solution.get(name, UNBOUND) or _unbound(name))
            b = decoded(solution.get(other, UNBOUND) or _unbound(other))
            if a.kind == b.kind <= DOUBLE:
                return numeric(a.data, b.data)
            return compare(a, b)

        return with_variable

    def _in(self, operand: Expression, items: tuple[Expression, ...], negated: bool) -> _Test:
        evaluate, candidates = self.value(operand), [self.value(item) for item in items]

        def contains(solution: Solution) -> bool:
            value, failure = evaluate(solution), None
            for candidate in candidates:
                try:
                    if equal(value, candidate(solution)):
                        return not negated
                except ExpressionError as error:
                    failure = error
            if failure is not None:
                raise failure
            return negated

        return contains

    # --- values -------------------------------------------------------------------------------

    def value(self, expression: Expression) -> _Evaluate:
        match expression:
            case Var(name):
                get, decoded = _variable_id(name), self._dictionary.value
                return lambda solution: decoded(get(solution))
            case Constant(term):
                constant = decode(term)
                return lambda solution: constant  # noqa: ARG005 # the shape of all closures
            case Binary("+" | "-" | "*" | "/" as operator, left, right):
                return self._arithmetic(operator, self.value(left), self.value(right))
            case Unary("-", operand):
                inner = self.value(operand)
                return lambda solution: negative(inner(solution))
            case Unary("+", operand):
                return self._number(self.value(operand))
            case Call("IF", (condition, then, otherwise)):
                test, yes, no = self.test(condition), self.value(then), self.value(otherwise)
                return lambda solution: yes(solution) if test(solution) else no(solution)
            case Call("COALESCE", arguments):
                return self._coalesce([self.value(argument) for argument in arguments])
            case Call("BNODE", (label,)):
                text = self.value(label)
                return lambda solution: labelled_node(text(solution), solution.get(SEED) or new_seed())
            case Call("BOUND", _) | Binary() | Unary() | In() | Exists():
                holds = self.test(expression)
                return lambda solution: boolean(holds(solution))
            case Call("REPLACE", arguments):
                return self._apply(self._replace, arguments)
            case Call(name, arguments):
                return self._apply(self._bounded(FUNCTIONS[name], LENGTHS.get(name)), arguments)
            case FunctionCall(function, arguments, own=own) if own is not None:
                return self._apply(OwnCall(function.value, own, self._dictionary), arguments)
            case FunctionCall(function, arguments):
                return self._apply(NAMED.get(function.value) or _unknown(function.value), arguments)
            case Aggregate() | Prev():
                raise ValueError(f"{type(expression).__name__} has no meaning here")

    def _apply(self, function: Callable[..., Value], arguments: tuple[Expression, ...]) -> _Evaluate:
        if len(arguments) == 1:
            single = self.value(arguments[0])
            return lambda solution: function(single(solution))
        compiled = [self.value(argument) for argument in arguments]
        return lambda solution: function(*[argument(solution) for argument in compiled])

    def _bounded(
        self, function: Callable[..., Value], length: Callable[..., int] | None
    ) -> Callable[..., Value]:
        """Return a function that makes a text. The limit is compared with ``length`` before the
        text is made.
        """
        if length is None:
            return function
        check, least = self._dictionary.limits.check_text, length

        def bounded(*arguments: Value) -> Value:
            check(least(*arguments))
            return function(*arguments)

        return bounded

    def _replace(self, *arguments: Value) -> Value:
        limits = self._dictionary.limits
        if limits.term_bytes is not None and replaced_at_most(*arguments) > limits.term_bytes:
            limits.check_text(replaced(*arguments))
        found: Value = FUNCTIONS["REPLACE"](*arguments)
        return found

    def _arithmetic(self, operator: str, first: _Evaluate, second: _Evaluate) -> _Evaluate:
        """Return ``first + second`` and so on. For long numbers, the length of the result is limited
        beforehand.
        """
        check = self._dictionary.limits.check_text

        def compute(solution: Solution) -> Value:
            a, b = first(solution), second(solution)
            if a.kind <= DECIMAL and b.kind <= DECIMAL and not (is_short(a) and is_short(b)):
                check(digits_of(operator, a, b), "a number")
            return arithmetic(operator, a, b)

        return compute

    @staticmethod
    def _number(evaluate: _Evaluate) -> _Evaluate:
        def number(solution: Solution) -> Value:
            value = evaluate(solution)
            if value.kind > DOUBLE:
                raise ExpressionError(f"{value} is not a number")
            return value

        return number

    @staticmethod
    def _coalesce(candidates: list[_Evaluate]) -> _Evaluate:
        def first(solution: Solution) -> Value:
            for candidate in candidates:
                try:
                    return candidate(solution)
                except ExpressionError:
                    continue
            raise ExpressionError("COALESCE found no value")

        return first


def _unknown(iri: str) -> Callable[..., Value]:
    def fail(*arguments: Value) -> Value:
        raise ExpressionError(f"<{iri}> of {arguments} is not a known function")

    return fail
