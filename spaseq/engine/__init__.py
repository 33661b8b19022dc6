"""The engine: events are pushed or read, put in order and matched, and the matches are delivered.

``engine`` is the public class, ``core`` what its calls have in common: one turn after the other. ``inbox``
and ``pushing`` take events, ``reading`` sources; ``pipelines`` reorder and match them, ``delivery`` hands on
what is found, ``durable`` keeps all of it in a file. The page docs/engine.md is the place to begin.
"""

from __future__ import annotations

from spaseq.engine.asynchronous import AsyncEngine, AsyncHandle
from spaseq.engine.engine import Engine
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.reading import Source
from spaseq.engine.running import Progress, Run, run

__all__ = ["AsyncEngine", "AsyncHandle", "Engine", "Handle", "Progress", "Run", "Source", "Stats", "run"]
