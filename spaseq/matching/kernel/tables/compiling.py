"""Compiling a query for the runs kernel: a pattern → its tables, or what keeps it from having any."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spaseq.automaton.pattern import SequencePattern, may_trail
from spaseq.language.syntax import All, Consume
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.conditions.derived import split
from spaseq.matching.conditions.postfix import BeyondTables
from spaseq.matching.kernel.tables.analysis import Analysis
from spaseq.matching.kernel.tables.compiled import Compiled
from spaseq.matching.kernel.tables.writer import write
from spaseq.matching.obstacles import Obstacle, in_text, subsequences
from spaseq.terms.dictionary import Term


def obstacles(pattern: SequencePattern) -> Iterator[Obstacle]:
    """What keeps the kernel from running a query: every ALL, or what its tables cannot hold first."""
    alls = [part for part in subsequences(pattern.query.sequence) if isinstance(part, All)]
    for part in alls:
        yield Obstacle("nothing gathers events in any order", print_sequence(part), part.span)
    if not alls:
        try:
            compile_tables(pattern, lambda _: 1)
        except BeyondTables as reason:
            yield in_text(reason.obstacle, pattern.query)


def compile_tables(pattern: SequencePattern, intern: Callable[[Term], int]) -> Compiled:
    """The tables of a query; its ``LIMIT`` is left to whoever knows the window.

    Raises ``BeyondTables``.
    """
    query = pattern.query
    if query.consume is Consume.ANY and may_trail(pattern.root):
        raise BeyondTables("no match that waits for its window's end is consumed", "CONSUME ANY")
    if len(query.streams) > 60:
        raise BeyondTables("there are at most 60 streams", str(len(query.streams)))
    taken = split(pattern)
    return write(Analysis(taken.pattern, taken.derived), taken.derived, intern)
