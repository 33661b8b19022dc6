"""Compile a query for the runs kernel: a pattern → its tables, or why it has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

import numpy as np
from pyoxigraph import NamedNode

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern, may_trail
from spaseq.language.rewrite import substitute
from spaseq.language.syntax import (
    All,
    Binary,
    Constant,
    Consume,
    Expression,
    Filter,
    Gpm,
    Query,
    Unary,
)
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.derived import split
from spaseq.matching.filters.postfix import BeyondTables
from spaseq.matching.nfa.tables.analysis import Analysis, NfaTables
from spaseq.matching.nfa.tables.writer import write
from spaseq.matching.obstacles import Obstacle, in_text, subsequences
from spaseq.matching.templates.form import ByOutline, Outline, outline
from spaseq.terms.dictionary import Term


def obstacles(pattern: SequencePattern) -> Iterator[Obstacle]:
    """Yield why the kernel cannot run a query: every ALL, or else the first thing that tables cannot hold."""
    alls = [part for part in subsequences(pattern.query.sequence) if isinstance(part, All)]
    for part in alls:
        yield Obstacle("nothing gathers events in any order", print_sequence(part), part.span)
    if not alls:
        try:
            compile_tables(pattern, lambda _: 1)
        except BeyondTables as reason:
            yield in_text(reason.obstacle, pattern.query)


def compile_tables(pattern: SequencePattern, intern: Callable[[Term], int]) -> NfaTables:
    """Return the tables of a query; its time bounds are filled in later, when the window is known.

    Raises ``BeyondTables``.
    """
    query = pattern.query
    if query.consume is Consume.ANY and may_trail(pattern.root):
        raise BeyondTables("no match that waits for its window's end is consumed", "CONSUME ANY")
    if len(query.streams) > 60:
        raise BeyondTables("there are at most 60 streams", str(len(query.streams)))
    taken = split(pattern)
    return write(Analysis(taken.pattern, taken.derived), taken.derived, intern)


# Tables of queries that differ only in names and constants: written once, and filled in for each of them.

#: The prefix of the IRIs that stand for constants in which queries differ.
_MARK: Final = "urn:x-spaseq:constant:"
#: Numbers up to this one stand for ids in tables that are not filled in yet; tables contain no such numbers
#: otherwise.
_HOLE: Final = -(1 << 40)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Tables with holes: the place of each (``at``), and which of the ``terms`` belongs there (``of``).

    A term is one that all queries have, or a number: the index of a constant in which queries differ.
    """

    compiled: NfaTables
    at: v.Ints
    of: v.Ints
    terms: tuple[Term | int, ...]

    def filled(self, constants: list[Term], intern: Callable[[Term], int]) -> NfaTables:
        """Return the tables of a query that has these constants."""
        terms = (constants[term] if isinstance(term, int) else term for term in self.terms)
        ids = np.array([intern(term) for term in terms], dtype=np.int64)
        tables = self.compiled.tables.copy()
        tables[self.at] = ids[self.of]
        return replace(self.compiled, tables=tables, constants=tuple(dict.fromkeys(ids.tolist())))


_KINDS: Final = ByOutline[_Kind | None]()


def tables_alike(
    pattern: SequencePattern, intern: Callable[[Term], int], key: Outline | None = None
) -> NfaTables:
    """Return the tables of a query. ``analysis``, ``candidates`` and ``accepts`` may be another query's.

    The other query differs only in constants of FILTERs, in its window, and in the names in its triple
    patterns. ``key``: the query's ``outline``, if it is known. Raises ``BeyondTables``.
    """
    query = pattern.query
    kind = _KINDS.of(key or outline(query), lambda: _kind(query))
    return compile_tables(pattern, intern) if kind is None else kind.filled([*_constants(query)], intern)


def like_tables(pattern: SequencePattern, intern: Callable[[Term], int], key: Outline) -> NfaTables:
    """Return what ``tables_alike`` does, but with ``tables`` and ``constants`` unfilled, for callers that
    read neither.
    """
    kind = _KINDS.of(key, lambda: _kind(pattern.query))
    return compile_tables(pattern, intern) if kind is None else kind.compiled


def _kind(query: Query) -> _Kind | None:
    """Return the tables of a query with holes; None if more than its tables depend on its constants."""
    terms: list[Term | int] = []
    holes: dict[Term, int] = {}

    def hole(term: Term) -> int:
        if term not in holes:
            holes[term] = _HOLE - len(holes)
            is_mark = isinstance(term, NamedNode) and term.value.startswith(_MARK)
            terms.append(int(term.value.removeprefix(_MARK)) if is_mark else term)
        return holes[term]

    try:
        compiled = compile_tables(normalise(_marked(query)), hole)
    except BeyondTables:  # the caller compiles again, and reports that in the words of the query
        return None
    if compiled.derived or compiled.lookups:
        return None
    at = np.flatnonzero(compiled.tables <= _HOLE)
    return _Kind(compiled, at, _HOLE - compiled.tables[at], tuple(terms))


def _constants(query: Query) -> Iterator[Term]:
    """Yield the constants that ``outline`` leaves out of FILTERs, in its order."""
    for gpm in query.gpms:
        for element in gpm.pattern.elements:
            if isinstance(element, Filter):
                yield from _operands(element.condition)


def _operands(expression: Expression) -> Iterator[Term]:
    match expression:
        case Constant(term):
            yield term
        case Binary(left=left, right=right):
            yield from _operands(left)
            yield from _operands(right)
        case Unary(operand=operand):
            yield from _operands(operand)


def _marked(query: Query) -> Query:
    """Return the query with numbered marks in place of the constants of its FILTERs."""
    numbers = count()
    return replace(query, gpms=tuple(_marked_gpm(gpm, numbers) for gpm in query.gpms))


def _marked_gpm(gpm: Gpm, numbers: Iterator[int]) -> Gpm:
    def mark(part: Expression) -> Expression | None:
        match part:
            case Constant():
                return replace(part, term=NamedNode(f"{_MARK}{next(numbers)}"))
            case Binary() | Unary():
                return None
            case _:
                return part

    elements = (
        replace(element, condition=substitute(element.condition, mark))
        if isinstance(element, Filter)
        else element
        for element in gpm.pattern.elements
    )
    return replace(gpm, pattern=replace(gpm.pattern, elements=tuple(elements)))
