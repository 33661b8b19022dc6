"""The budget of a retrieval: the caller's numbers, checked, for the code that walks and ranks."""

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
    """The budget of a retrieval; None means no bound.

    ``paths``: at most this many paths are looked at, prefixes included. If there are more, each length gets
    half of the rest, spread evenly. Only complete paths are passed to ``embed``. ``tokens``: the most tokens
    of the text; ``count`` returns the number of tokens of a line, by default words and punctuation marks.

    ``latency`` bounds the time of a question from the beginning of its walk, ``memory`` about the bytes of
    its paths. Under either bound, paths of lowest utility for their cost are dropped first. ``policy`` is as
    for an ``Engine``; policies other than ``sharp`` are for comparison. ``clock`` returns the time in
    seconds.
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
        """Whether a latency or a memory makes the retrieval best effort."""
        return self.latency is not None or self.memory is not None


def budget_given(budget: Budget | None) -> Budget | None:
    """Return the budget, if one is given. Raises RetrievalError for another object."""
    if budget is None or isinstance(budget, Budget):
        return budget
    raise RetrievalError(f"budget={budget!r}: give a Budget, as Budget(latency=timedelta(milliseconds=50))")
