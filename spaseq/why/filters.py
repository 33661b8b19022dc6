"""How often a FILTER held, failed and erred."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.expressions import ExpressionError, Solution, compile_test
from spaseq.gpm.sharing import Sharing
from spaseq.language.printer import print_expression
from spaseq.language.syntax import Filter, Gpm, Group
from spaseq.why.diagnosis import FilterCount
from spaseq.why.evidence import Evidence

#: Of so many solutions at most.
ROWS = 10_000


@dataclass(slots=True)
class Tally:
    """A filter as it is asked."""

    gpm: str | None
    item: Filter
    held: int = 0
    failed: int = 0
    erred: int = 0
    error: str | None = None

    def ask(self, test: Callable[[Solution], bool], solution: Solution) -> bool:
        """What a filter says of a solution; False for an error."""
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
        """What was just asked erred, but for want of PREV in a first iteration: it holds."""
        self.erred -= 1
        self.held += 1
        if not self.erred:
            self.error = None
        return True

    def count(self) -> FilterCount:
        """The counts so far."""
        text = print_expression(self.item.condition)
        return FilterCount(self.gpm, text, self.held, self.failed, self.erred, self.error)


def alone(evidence: Evidence, gpm: Gpm, stateless: Group) -> tuple[FilterCount, ...]:
    """Each FILTER that an event decides, asked of the solutions that the GPM has without them.

    Those inside OPTIONAL, UNION and the like are left as they are.
    """
    filters = [element for element in stateless.elements if isinstance(element, Filter)]
    if not filters or evidence.sample is None:
        return ()
    evaluator = without_filters(evidence, gpm, stateless)
    found = evaluator.evaluate(evidence.sample)
    batch, here = evidence.sample, 0

    def exists(pattern: Group, solution: Solution) -> bool:
        return evaluator.exists(batch, here)(pattern, solution)

    asked = [
        (Tally(gpm.name, item), compile_test(item.condition, evidence.dictionary, exists)) for item in filters
    ]
    for event, solution in islice(zip(found.events.tolist(), found.by_row(), strict=True), ROWS):
        here = event
        for tally, test in asked:
            tally.ask(test, solution)
    return tuple(tally.count() for tally, _ in asked)


def without_filters(evidence: Evidence, gpm: Gpm, stateless: Group) -> GpmEvaluator:
    """A GPM without the FILTERs of its own group."""
    rest = tuple(element for element in stateless.elements if not isinstance(element, Filter))
    return evaluator_of(evidence, gpm, replace(stateless, elements=rest))


def evaluator_of(evidence: Evidence, gpm: Gpm, pattern: Group) -> GpmEvaluator:
    """A GPM with another pattern."""
    streams = evidence.streams(gpm.streams)
    return GpmEvaluator(gpm, pattern, evidence.dictionary, evidence.kb, streams, Sharing())
