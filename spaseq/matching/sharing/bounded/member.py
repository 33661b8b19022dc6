"""A query that has a bound, and keeps it together with others that begin alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from spaseq.automaton.pattern import SequencePattern
from spaseq.effort import Effort, Shed
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.context import Context
from spaseq.matching.sharing.member import Member
from spaseq.matching.shedding.bounded import called
from spaseq.terms.dictionary import Dictionary

if TYPE_CHECKING:
    from spaseq.matching.sharing.automata.canonical import Canonical
    from spaseq.matching.sharing.cohort import Cohort


class BoundedMember(Member):
    """A member of those that keep one bound. ``shed`` says what was given up of its own; ``leaves`` is called
    when it wants no more, which ``is_done`` says then.
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
        self.is_done = False

    @property
    def name(self) -> str:
        """What warnings call it."""
        return called(self.pattern)

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``: the others may go on."""
        self.is_done = True
        self.leaves()
        self.shed.active = False

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()
