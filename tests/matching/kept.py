"""What sheds partial matches under a bound, kept so that tests can look at what it has learned."""

from __future__ import annotations

from typing import Any

from spaseq.matching.shedding.cost_model import CostModel
from spaseq.matching.shedding.matcher import SheddingNfa
from tests.benchmarks import sharp


class Kept(SheddingNfa):
    """The one that was made last."""

    made: SheddingNfa

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        Kept.made = self


def sketch(name: str, stream: sharp.Stream, bound: float) -> CostModel:
    """The sketch of a query, once it has seen a stream."""
    sharp.run(name, stream, bound, evaluated=Kept)
    return Kept.made._observed.model
