"""The embedded host: ordering, pipelines, and the engine that holds them."""

from __future__ import annotations

from spaseq.engine.asynchronous import AsyncEngine, AsyncHandle
from spaseq.engine.engine import Engine
from spaseq.engine.handle import Handle
from spaseq.engine.parts.reading import Source
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.running import Progress, Run, run

__all__ = ["AsyncEngine", "AsyncHandle", "Engine", "Handle", "Progress", "Run", "Source", "Stats", "run"]
