"""The engine: events are pushed or read, ordered and matched, and the matches are delivered.

``engine`` is the public class (open it first); ``core`` runs its calls, one turn after the other. ``inbox``
and ``pushing`` take events, ``reading`` takes sources. ``pipelines`` reorders and matches events,
``delivery`` passes matches on, ``durable`` keeps all of it in a file. The page docs/engine.md is an
introduction.
"""

from __future__ import annotations

from spaseq.engine.asynchronous import AsyncEngine, AsyncHandle
from spaseq.engine.engine import Engine
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.stats import Stats
from spaseq.engine.reading import Source
from spaseq.engine.running import Progress, Run, run

__all__ = ["AsyncEngine", "AsyncHandle", "Engine", "Handle", "Progress", "Run", "Source", "Stats", "run"]
