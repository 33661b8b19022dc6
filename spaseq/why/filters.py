"""Counts of FILTERs: how often each was true, false and an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from spaseq.language.syntax import Filter, Gpm, Group, Optional, Pattern, Union
from spaseq.language.syntax.printing import print_expression, print_group
from spaseq.patterns.evaluator import GpmEvaluator
from spaseq.patterns.expressions.compiled import ExpressionError, Solution, compile_test
from spaseq.patterns.sharing import Sharing
from spaseq.why.diagnosis import ROWS, BranchCount, FilterCount
from spaseq.why.evidence import Evidence


@dataclass(slots=True)
class FilterTally:
    """A filter with its counts."""

    gpm: str | None
    item: Filter
    held: int = 0
    failed: int = 0
    erred: int = 0
    error: str | None = None

    def ask(self, test: Callable[[Solution], bool], solution: Solution) -> bool:
        """Evaluate a filter for a solution; return False for an error."""
        try:
            holds = test(solution)
        except ExpressionError as error:
            self.erred += 1
            self.error = self.error or str(error)
            return False
        if holds:
            self.held += 1
        else:
            self.failed += 1
        return holds

    def excuse(self) -> bool:
        """Count the last error as true, and return True: PREV has no value in a first iteration."""
        self.erred -= 1
        self.held += 1
        if not self.erred:
            self.error = None
        return True

    def count(self) -> FilterCount:
        """Return the counts so far."""
        text = print_expression(self.item.condition)
        return FilterCount(self.gpm, text, self.held, self.failed, self.erred, self.error)


def alone(evidence: Evidence, gpm: Gpm, stateless: Group) -> tuple[FilterCount, ...]:
    """Evaluate each FILTER that one event decides, on the solutions of the GPM without these FILTERs."""
    return _asked(evidence, gpm, stateless)


def inside(evidence: Evidence, gpm: Gpm, stateless: Group) -> tuple[FilterCount, ...]:
    """Evaluate the FILTERs inside OPTIONAL and UNION, but not those in subqueries, MINUS and EXISTS."""
    return tuple(item for branch in branches_of(stateless) for item in _asked(evidence, gpm, branch.asking))


def branches(evidence: Evidence, gpm: Gpm, stateless: Group) -> tuple[BranchCount, ...]:
    """Count the solutions of each OPTIONAL and each side of a UNION, joined with what precedes it."""
    if evidence.sample is None:
        return ()
    counts = []
    for branch in branches_of(stateless):
        found = evaluator_of(evidence, gpm, branch.whole).evaluate(evidence.sample)
        events = len(set(found.events.tolist()))
        counts.append(BranchCount(gpm.name, branch.kind, branch.text, events, len(found)))
    return tuple(counts)


@dataclass(frozen=True, slots=True)
class Branch:
    """An OPTIONAL or a side of a UNION.

    ``whole`` is the branch with what precedes it. ``asking`` is the group of the solutions that its FILTERs
    see: for OPTIONAL it includes what precedes the branch, for UNION it does not.
    """

    kind: str
    text: str
    whole: Group
    asking: Group


def branches_of(group: Group, before: tuple[Pattern, ...] = ()) -> Iterator[Branch]:
    """Yield the branches of a group, nested ones too, in the order written."""
    for number, element in enumerate(group.elements):
        earlier = before + tuple(e for e in group.elements[:number] if not isinstance(e, Filter))
        match element:
            case Optional(side):
                whole = replace(side, elements=(*earlier, *side.elements))
                yield Branch("OPTIONAL", _text(side), whole, whole)
                yield from branches_of(side, earlier)
            case Union(sides):
                for side in sides:
                    whole = replace(side, elements=(*earlier, side))
                    yield Branch("UNION", _text(side), whole, side)
                    yield from branches_of(side)
            case Group():
                yield from branches_of(element)


def _text(group: Group) -> str:
    return " ".join(print_group(group).split())


def _asked(evidence: Evidence, gpm: Gpm, group: Group) -> tuple[FilterCount, ...]:
    """Count the FILTERs of one group."""
    filters = [element for element in group.elements if isinstance(element, Filter)]
    batch, here = evidence.sample, 0
    if not filters or batch is None:
        return ()
    rest = tuple(element for element in group.elements if not isinstance(element, Filter))
    evaluator = evaluator_of(evidence, gpm, replace(group, elements=rest))
    found = evaluator.evaluate(batch)

    def exists(pattern: Group, solution: Solution) -> bool:
        return evaluator.exists(batch, here)(pattern, solution)

    asked = [
        (FilterTally(gpm.name, item), compile_test(item.condition, evidence.dictionary, exists))
        for item in filters
    ]
    for event, solution in islice(zip(found.events.tolist(), found.by_row(), strict=True), ROWS):
        here = event
        for tally, test in asked:
            tally.ask(test, solution)
    return tuple(tally.count() for tally, _ in asked)


def evaluator_of(evidence: Evidence, gpm: Gpm, pattern: Group) -> GpmEvaluator:
    """Return an evaluator of a GPM with another pattern."""
    streams = evidence.streams(gpm.streams)
    return GpmEvaluator(gpm, pattern, evidence.dictionary, evidence.kb, streams, Sharing())
