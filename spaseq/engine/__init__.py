"""The embedded host: ordering, pipelines, and the engine that holds them."""

from __future__ import annotations

from spaseq.engine.engine import Engine, Source
from spaseq.engine.handle import Handle
from spaseq.engine.pipeline import Stats
from spaseq.engine.running import Progress, Run, run

__all__ = ["Engine", "Handle", "Progress", "Run", "Source", "Stats", "run"]
