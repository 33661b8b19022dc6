"""A query with a bound, which it keeps together with others of a common prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from spaseq.bounds import Bound, Shed
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.sharing.member import Member
from spaseq.matching.shedding.query import called


class BoundedMember(Member):
    """A member of a group that keeps one bound.

    ``leaves`` is called when the member is done (``is_done``), ``asks`` when its shedding report is read.
    """

    bound: Bound
    leaves: Callable[[], None] | None = None
    asks: Callable[[], None] | None = None
    is_done = False

    @cached_property
    def shed(self) -> Shed:
        """What was shed of its own partial matches."""
        return Shed()

    @property
    def name(self) -> str:
        """Its name in warnings."""
        return called(self.pattern)

    def update(self) -> None:
        """See ``Shedder.update``."""
        if self.asks is not None:
            self.asks()

    def end_shedding(self) -> None:
        """See ``Shedder.end_shedding``. The other members may continue to shed."""
        self.is_done = True
        if self.leaves is not None:
            self.leaves()
        self.shed.active = False

    def leave(self, position: int) -> None:
        """See ``Member.leave``: shedding ends, whether or not the member has seen an event."""
        super().leave(position)
        self.end_shedding()

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()
