"""A state file is opened for an engine, which becomes what the last one of that file was."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from spaseq.engine.durable.checks import every_given
from spaseq.engine.durable.replay import Settings
from spaseq.engine.durable.state import State

if TYPE_CHECKING:
    from spaseq.engine.parts.core import Core
    from spaseq.engine.parts.registry import Registry


def opened(
    core: Core,
    registry: Registry,
    path: str | Path,
    every: int | timedelta | None,
    lateness: timedelta,
    evaluator: str,
) -> State:
    """The state in a file; ``core`` and ``registry`` have from then on what it says.

    Raises ``EngineError`` for a file that is no state, or in use, and for ``every`` if it says nothing.
    """
    core.turn.used = True  # a file that is open is not for a process that is forked off
    settings = Settings(str(lateness), evaluator)
    state = State(path, every_given(every), settings, core.flow, core.rejects, core.dictionary)
    try:
        with core.turn.deferral, core.turn.lock:
            state.open(
                lambda query, start: registry.add(query, None, None, start, outlives=True),
                core.forget,
                registry.change,
            )
    except BaseException:
        state.close()
        raise
    finally:
        registry.gone.clear()
    registry.named = state.handles
    return state
