"""A query that has a bound, and keeps it together with others that begin alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from spaseq.automaton.pattern import SequencePattern
from spaseq.effort import Effort, Shed
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.matching.context import Context
from spaseq.matching.sharing.member import Member
from spaseq.matching.shedding.bounded import called
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.automata.canonical import Canonical
    from spaseq.matching.sharing.cohort import Cohort


class BoundedMember(Member):
    """A member of those that keep one bound. ``shed`` says what was given up of its own; ``leaves`` is called
    when it is over.
    """

    effort: Effort

    def __init__(
        self,
        cohort: Cohort,
        pattern: SequencePattern,
        evaluator: str,
        asks_first: tuple[int, ...],
        common: Callable[[], Canonical | None],
        gpms: Mapping[str, GpmEvaluator],
        context: Context,
        dictionary: Dictionary,
        effort: Effort,
    ) -> None:
        super().__init__(cohort, pattern, evaluator, asks_first, common, gpms, context, dictionary)
        self.effort = effort
        self.shed = Shed()
        self.leaves: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        """What warnings call it."""
        return called(self.pattern)

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``: the others may go on."""
        self.leaves()
        self.shed.active = False
