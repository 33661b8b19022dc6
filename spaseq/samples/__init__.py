"""Sample data: the five use cases of the SPAseq paper (section 2), by a seeded generator.

The same seed and number of events always give the same bytes. Every use case knows all matches of its
queries: patterns are planted among ordinary data that cannot match. ``python -m spaseq.samples`` writes
files. Open ``_model.py`` first.

>>> case = use_case("smart-grid", seed=1, events=300)
>>> [stream.file for stream in case.streams]
['smart-grid-power.trig', 'smart-grid-weather.nq', 'smart-grid-storage.trig']
>>> sorted(case.planted)
['smart-grid', 'smart-grid-advice']

``python -m spaseq.samples`` writes them to files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from spaseq.samples._model import Match, SampleEvent, SampleStream, UseCase
from spaseq.samples._write import stream_text, turtle
from spaseq.samples.card_fraud import card_fraud
from spaseq.samples.smart_grid import smart_grid
from spaseq.samples.stocks import stocks
from spaseq.samples.traffic import traffic
from spaseq.samples.trajectories import trajectories

__all__ = [
    "EVENTS",
    "SEED",
    "USE_CASES",
    "Match",
    "SampleEvent",
    "SampleStream",
    "UseCase",
    "files",
    "use_case",
]

SEED: Final = 1
EVENTS: Final = 1020

_GENERATORS: Final[Mapping[str, Callable[[int, int], UseCase]]] = {
    "card-fraud": card_fraud,
    "smart-grid": smart_grid,
    "stocks": stocks,
    "traffic": traffic,
    "trajectories": trajectories,
}
USE_CASES: Final = tuple(_GENERATORS)


def use_case(name: str, seed: int = SEED, events: int = EVENTS) -> UseCase:
    """Return one of ``USE_CASES``, with about ``events`` events over all its streams. Raises KeyError.

    A use case has at least a few hundred events, to have room for planted patterns.
    """
    return _GENERATORS[name](seed, events)


def files(case: UseCase) -> dict[Path, str]:
    """Return the files of a use case: relative path → text."""
    written = {Path("streams", stream.file): stream_text(stream, case.prefixes) for stream in case.streams}
    written |= {Path("streams", f"{name}.rq"): text for name, text in case.queries.items()}
    written[Path("kb", f"{case.name}.ttl")] = turtle(case.knowledge, case.prefixes)
    return written
