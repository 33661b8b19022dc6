"""What an engine with a state asks of its queries, sources and bounds."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from spaseq.errors import EngineError
from spaseq.gpm.expressions.walk import is_volatile, matching_calls
from spaseq.language.syntax import Call, FunctionCall, Query

#: What gives something else when it is asked again, on which it may hang whether something matches.
_UNREPEATABLE: Final = frozenset({"RAND", "UUID", "STRUUID", "NOW"})

_LONGEST_NAME: Final = 4_096

#: Why no query of a state has a bound.
UNREPEATED: Final = (
    "a query under a bound sheds as the clock says, which no restart repeats: leave out the state, or "
    "latency and memory"
)


def name_given(name: str | None) -> str:
    """The name of a query. Raises ``EngineError`` if it is none."""
    if name is None:
        raise EngineError("with a state a query needs a name, by which it is known after a restart: name=…")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise EngineError(
            f"name={name!r:.80}: a name is a text of 1 to {_LONGEST_NAME} characters that can be printed"
        )
    return name


def every_given(every: int | timedelta | None) -> int | timedelta | None:
    """How often is committed. Raises ``EngineError`` for what says nothing of that."""
    is_count = isinstance(every, int) and not isinstance(every, bool) and every > 0
    if every is None or is_count or (isinstance(every, timedelta) and every >= timedelta(0)):
        return every
    raise EngineError(f"commit_every={every!r}: give a number of events above 0, a timedelta, or None")


def repeatable(query: Query) -> None:
    """Raises ``EngineError`` for a query whose matches would be others if its events came again."""
    for call in matching_calls(query):
        if isinstance(call, Call) and call.name in _UNREPEATABLE:
            name = call.name
        elif isinstance(call, FunctionCall) and is_volatile(call):
            name = f"<{call.function.value}>"
        else:
            continue
        raise EngineError(
            f"{name}() gives something else each time, and a restart asks again: a query with a "
            "state cannot have it in a pattern or FILTER"
        )
