"""What a retrieval may cost: a caller's numbers come in, checked, and what walks and ranks reads them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from spaseq.bounds import Policy, clock_given, latency_given, policy_given
from spaseq.errors import EngineError, RetrievalError
from spaseq.paths.retrieval.ranking import count_tokens


@dataclass(frozen=True, slots=True)
class Budget:
    """What a retrieval may cost; None is no bound.

    ``paths``: at most this many paths are looked at, prefixes included. If there are more, each length gets
    half of the rest, spread evenly. ``embed`` gets the complete ones. ``tokens``: the most tokens of the
    text; ``count`` counts the tokens of a line, by default words and punctuation marks.

    ``latency``: the time of a question from the beginning of its walk. ``memory``: the bytes of its paths,
    about. Under either, paths that promise least for their cost are left out first, by ``policy`` (as of an
    ``Engine``; others than ``sharp`` are for comparison) and ``clock``.
    """

    paths: int | None = 10_000
    tokens: int | None = None
    count: Callable[[str], int] = count_tokens
    latency: timedelta | None = None
    memory: int | None = None
    policy: str = Policy.SHARP
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("paths", self.paths), ("tokens", self.tokens)):
            if value is not None and value < 0:
                raise RetrievalError(f"a budget of {value:,} {name}: it is a number from 0 on, or None")
        try:
            if self.latency is not None:
                latency_given(self.latency)
            policy = policy_given(self.policy)
            object.__setattr__(self, "clock", clock_given(self.clock))
        except EngineError as error:
            raise RetrievalError(str(error)) from None
        if self.memory is not None and (type(self.memory) is not int or self.memory < 1):
            raise RetrievalError(
                f"memory={self.memory!r}: a bound is a whole number of bytes above 0, as 1 << 20"
            )
        if policy is Policy.RANDOM_INPUT:
            raise RetrievalError(
                "policy='random-input': a retrieval passes over paths, and has no input to draw"
            )

    @property
    def is_bound(self) -> bool:
        """Whether it is best effort."""
        return self.latency is not None or self.memory is not None


def budget_given(budget: Budget | None) -> Budget | None:
    """Return the budget, if one is given. Raises RetrievalError for another object."""
    if budget is None or isinstance(budget, Budget):
        return budget
    raise RetrievalError(f"budget={budget!r}: give a Budget, as Budget(latency=timedelta(milliseconds=50))")
