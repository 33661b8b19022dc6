"""``ALL``: gathers the matches of its operands, in whatever order they occur.

They are first found loosely, each by itself. When all are there, each must be a match in the context
of all the others, since the filters of one may need what another one binds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING

from spaseq.automaton.pattern import AnyOrder
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Rows
from spaseq.matching.runs.program import Way
from spaseq.matching.runs.state import Gap, Part, Parts, Run, Wait
from spaseq.matching.search import Join

if TYPE_CHECKING:
    from spaseq.matching.runs.machine import Machine


class Gathering:
    """One ``ALL`` behind one waiting run, whose rows are ``marked``.

    Kept by the runs of its operands, and by nothing else.
    """

    def __init__(self, wait: Wait, way: Way, run: Run, marked: Rows) -> None:
        if not isinstance(way.unit, AnyOrder):
            raise TypeError(f"not an ALL: {way.unit}")
        self._node = way.unit
        self._wait = wait
        self._way = way
        self._run = run
        self._marked = marked
        #: Of each operand the matches so far, by number.
        self.found: list[dict[int, Part]] = [{} for _ in way.operands]

    @property
    def wait(self) -> Wait:
        """The run in front of the ``ALL``."""
        return self._wait

    @property
    def way(self) -> Way:
        """The edge of the ``ALL``."""
        return self._way

    @property
    def _fresh(self) -> Run:
        """A run that has nothing of the ``ALL`` yet."""
        run = self._run
        return Run(first=run.first, frontier=run.frontier, before=(*run.before, *run.choices))

    def start(self, machine: Machine) -> None:
        """Lets every operand begin, right after the run."""
        for i, operand in enumerate(self._way.operands):
            begun = replace(self._fresh, home=(self, i))
            machine.arrive(operand.start, begun, self._marked)

    def offer(self, machine: Machine, operand: int, run: Run, rows: Rows) -> None:
        """Takes a match of an operand, and joins it with those of the others that are there."""
        part = (replace(run, home=None), rows)
        options = [list(parts.values()) for parts in self.found]
        options[operand] = [part]
        for parts in product(*options):
            self._join(machine, parts)
        number = machine.number()
        self.found[operand][number] = part
        machine.remember(number, run, Parts(self.found[operand], self))

    def _join(self, machine: Machine, parts: tuple[Part, ...]) -> None:
        added = tuple(chain.from_iterable(run.choices for run, _ in parts))
        stamps = [event.stamp for _, event in added]
        if not stamps or len(set(stamps)) < len(stamps) or self._wait.bars(stamps):
            return
        gate = self._wait.gate
        began = frozenset[int]().union(*(run.began for run, _ in parts))
        if gate.strategy is Strategy.NEXT and not began <= {rival.unit.id for rival in gate.rivals}:
            return  # another gate waits for these
        took = machine.gathered(self._wait.gate, self._run, added, [run for run, _ in parts])
        last = max((event for _, event in added), key=lambda event: event.position)
        if took.first is None or not machine.bounds.together(took.first, last):
            return
        context, node, inside = machine.context, self._node, self._way.inside
        # Inside another ALL, its operands are found loosely, too.
        if self._run.home is not None or self._way.independent:
            rows = context.join([rows for _, rows in parts], node, inside, self._run.home is not None)
            self._arrive(machine, took, parts, rows)
            return
        for given in self._in_context(machine, parts):
            common = context.common([rows for _, rows in given])
            self._arrive(machine, took, given, context.join([common], node, inside))

    def _arrive(self, machine: Machine, took: Run, parts: tuple[Part, ...], rows: Rows) -> None:
        """All operands are there: the run goes on, with what they leave undecided."""
        if rows:
            gaps = list(took.gaps)
            for i, (run, _) in enumerate(parts):
                rest = tuple(c for j, (other, _) in enumerate(parts) if j != i for c in other.choices)
                gaps += [_joined(gap, Join(rest, rows)) for gap in run.gaps]
            leading = tuple(chain(took.leading, *(run.leading for run, _ in parts)))
            began = frozenset[int]().union(*(run.began for run, _ in parts))
            run = replace(took, gaps=tuple(gaps), leading=leading).beginning(began)
            machine.arrive(self._way.target, run, rows)

    def _in_context(self, machine: Machine, parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
        """The ways in which each operand matches the same events, given the others."""
        found = []
        for i, (operand, (run, _)) in enumerate(zip(self._way.operands, parts, strict=True)):
            others = machine.context.compatible([rows for j, (_, rows) in enumerate(parts) if j != i])
            found.append(machine.reread(operand.strict, self._fresh, others, run.choices))
        return product(*found)


def _joined(gap: Gap, join: Join) -> Gap:
    """A gap at the end of an operand, with what the others have chosen."""
    return gap._replace(mark=replace(gap.mark, steps=(*gap.mark.steps, join)))
