"""Path expression → automaton: the position automaton (Glushkov's), as SEQ's is.

Unlike SEQ's, Kleene bounds are unrolled, since a node of the product with the graph has no counters, and
``?`` means "or nothing". A node test is a place that takes no edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from spaseq.automaton.nfa import NFA
from spaseq.errors import QueryMeaningError
from spaseq.paths.language.expression import (
    Alternative,
    Concatenation,
    Expression,
    NodeTest,
    Path,
    Repetition,
    Step,
    Symbol,
    read,
    show,
)
from spaseq.paths.language.nfa import as_nfa
from spaseq.paths.language.states import States, merge

#: So many places of an automaton are more than anybody means; memory grows with states × nodes.
MOST_PLACES: Final = 4_096

#: The same of edges: where parts may be left out, they grow with the square of the places.
MOST_EDGES: Final = 1 << 16


@dataclass(frozen=True)
class Compiled:
    """An expression and its automaton."""

    expression: Expression
    states: States

    @cached_property
    def symbols(self) -> Mapping[str, Symbol]:
        """The steps and tests of the expression, by how they are written."""
        prefixes = self.expression.prefixes
        return {show(symbol, prefixes): symbol for symbol in read(self.expression.root)}

    @cached_property
    def nfa(self) -> NFA:
        """The automaton as that of a sequence, with a GPM for each of the symbols."""
        return as_nfa(self.expression, self.states, self.symbols)


def compile_path(expression: Expression) -> Compiled:
    """The automaton of an expression, equivalent states merged.

    Raises QueryMeaningError if its bounds make it too large.

    >>> from spaseq.paths.language.parser import parse
    >>> compiled = compile_path(parse(":a/(:b|:c)*/:d", {"": "http://e.org/"}))
    >>> compiled.nfa.size, len(compiled.nfa.edges)
    (3, 4)
    """
    places = _Places(expression)
    try:
        whole = places.add(expression.root)
    except RecursionError:
        raise expression.source.error(QueryMeaningError, "this path is nested too deeply", 0) from None
    return Compiled(expression, merge(places.automaton(whole)))


def too_large(expression: Expression, what: str) -> QueryMeaningError:
    """Return the error for an expression with too large an automaton."""
    culprit = _longest(expression.root)
    return expression.source.error(
        QueryMeaningError,
        f"with its bounds written out this path has {what}",
        culprit.span.start if culprit and culprit.span else 0,
        "make the bounds smaller, or leave the upper one out: {n,}",
    )


def _size(path: Path) -> int:
    match path:
        case Step() | NodeTest():
            return 1
        case Concatenation(parts) | Alternative(parts):
            return sum(map(_size, parts))
        case Repetition(part, minimum, maximum):
            return _size(part) * (max(minimum, 1) if maximum is None else maximum)


def _longest(path: Path) -> Repetition | None:
    """The outermost repetition that makes it long."""
    match path:
        case Repetition():
            return path
        case Concatenation(parts) | Alternative(parts):
            return max(filter(None, map(_longest, parts)), key=_size, default=None)
        case _:
            return None


# --- the position automaton


class _Part(NamedTuple):
    """A piece of the expression: whether it may be empty, the places it begins and ends with."""

    empty: bool
    first: tuple[int, ...]
    last: tuple[int, ...]


_NOTHING: Final = _Part(True, (), ())


class _Places:
    """Numbers the places of an expression from 1, and says which may follow which."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._symbols: dict[Symbol, int] = {}
        self._read: list[int] = []
        self._follow: list[dict[int, None]] = [{}]
        self._links = 0

    def automaton(self, whole: _Part) -> States:
        follow = [dict.fromkeys(whole.first), *self._follow[1:]]
        edges = [(i, self._read[j - 1], j) for i, after in enumerate(follow) for j in after]
        accepting = frozenset(whole.last) | ({0} if whole.empty else frozenset())
        return States(len(follow), tuple(self._symbols), tuple(edges), accepting)

    def add(self, path: Path) -> _Part:
        match path:
            case Step() | NodeTest():
                return self._place(path)
            case Concatenation(parts):
                whole = _NOTHING
                for part in parts:
                    whole = self._then(whole, self.add(part))
                return whole
            case Alternative(parts):
                added = [self.add(part) for part in parts]
                return _Part(
                    any(part.empty for part in added),
                    tuple([place for part in added for place in part.first]),
                    tuple([place for part in added for place in part.last]),
                )
            case Repetition(part, minimum, None):
                loop = self.add(part)
                if not loop.first:
                    return _NOTHING
                whole = _NOTHING
                for _ in range(minimum - 1):
                    whole, loop = self._then(whole, loop), self.add(part)
                self._link(loop.last, loop.first)
                if minimum == 0:
                    loop = _Part(True, loop.first, loop.last)
                return self._then(whole, loop)
            case Repetition(part, minimum, int(maximum)):
                copies = [self.add(part)] if maximum else []
                if not any(copy.first for copy in copies):
                    return _NOTHING
                copies += [self.add(part) for _ in range(maximum - 1)]
                optional = _NOTHING
                for copy in reversed(copies[minimum:]):  # (e(e(e)?)?)?
                    longer = self._then(copy, optional)
                    optional = _Part(True, longer.first, longer.last)
                whole = _NOTHING
                for copy in copies[:minimum]:
                    whole = self._then(whole, copy)
                return self._then(whole, optional)
        raise TypeError(path)

    def _place(self, symbol: Symbol) -> _Part:
        number = len(self._follow)
        if number > MOST_PLACES:
            size = _size(self._expression.root)
            raise too_large(self._expression, f"{size:,} steps, more than {MOST_PLACES:,}")
        self._read.append(self._symbols.setdefault(symbol, len(self._symbols)))
        self._follow.append({})
        return _Part(False, (number,), (number,))

    def _then(self, before: _Part, after: _Part) -> _Part:
        if before is _NOTHING:
            return after
        self._link(before.last, after.first)
        return _Part(
            before.empty and after.empty,
            (*before.first, *after.first) if before.empty else before.first,
            (*after.last, *before.last) if after.empty else after.last,
        )

    def _link(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        self._links += len(before) * len(after)
        if self._links > MOST_EDGES:
            raise too_large(self._expression, f"more than {MOST_EDGES:,} ways from step to step")
        new = dict.fromkeys(after)
        for place in before:
            self._follow[place].update(new)
