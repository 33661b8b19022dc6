"""Which queries a state can bring back, and what of the past each of them still needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import timedelta
from itertools import chain
from typing import Any, Final

from spaseq.automaton.normal import normalise
from spaseq.engine.durable.journal import Kept, Orders
from spaseq.engine.pipelines.cuts import begins_anew, looks_behind
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.errors import EngineError
from spaseq.events import BEGINNING, Clock
from spaseq.language.syntax import Call, FunctionCall, Query
from spaseq.matching.model import StreamWindow, stream_window
from spaseq.patterns.expressions.walk import is_volatile, matching_calls


def keeps(query: Query, others: Iterable[Query] = ()) -> str | None:
    """Why a query, beside others, needs all that came since it began; None if its window will do."""
    if not begins_anew(query):
        return None
    if query.register is not None:
        made = query.register.iri
        if any(stream.iri == made for other in others for stream in other.streams):
            return "others read what it makes, and what it made before its last match no restart finds again"
    return looks_behind(normalise(query))


def unneeded(dispatcher: Dispatcher, kept: Sequence[Kept], now: Orders, gone: Set[int]) -> int:
    """How many entries, of the first ones, no match to come can need; for queries that ``keeps`` lets go.

    ``now``: what the orders have come to; ``gone``: streams made by queries that are over.
    """
    of = {
        id(i): order for i, order in zip((i for i in dispatcher.stream_sets if i.members), now, strict=True)
    }
    since: dict[tuple[int, Clock], int] = {}
    counted: set[str] = set()
    # Those who read what queries make come first: they say what those need, to make it again.
    for stream_set in sorted(dispatcher.stream_sets, key=lambda stream_set: -stream_set.layer):
        clock = stream_set.order.clock
        if not stream_set.is_live or clock is None:
            continue  # it wants no events, or has none
        windows = [stream_window(q.pipeline.query.window, clock is Clock.TICKS, 0) for q in stream_set.live]
        order = of[id(stream_set)]
        if any(window.counted for window in windows):
            counted.add(str(order["of"]))
        made = {q.output for q in stream_set.live if q.output is not None}
        asked = [since[stream, clock] for stream in made if (stream, clock) in since]
        time = min(_back(kept, order, at, windows) for at in (stream_set.order.watermark, *asked))
        for stream in stream_set.streams:
            since[stream, clock] = min(since.get((stream, clock), time), time)
            if stream in gone and stream_set.order.clocks[stream].newest >= time:
                return 0
    count = 0
    for entry in kept:
        if any(key in since and last >= since[key] for key, last in entry.reach.items()):
            break
        count += 1
    # What is left must say how many events there had been, in the orders that there are.
    if count < len(kept) and _of(counted, kept[count].begun) != _of(counted, now):
        return 0
    return count


def _of(streams: set[str], orders: Orders) -> set[int]:
    """Those of some streams that say how many events they released."""
    return {order["first"] for order in orders if str(order["of"]) in streams and "position" in order}


def _back(kept: Sequence[Kept], now: Mapping[str, Any], at: int, windows: Sequence[StreamWindow]) -> int:
    """From what time on events may count when an order had come to ``at``, or comes to later times.

    A match that waits began a window ago, and what must not be, or be optional, before it, another before.
    """
    sizes = [window.size for window in windows if not window.counted]
    time = at - 2 * (max(sizes) + 1) if sizes else at
    return min(time, _by_count(kept, now, at, windows))


def _by_count(kept: Sequence[Kept], now: Mapping[str, Any], at: int, windows: Iterable[StreamWindow]) -> int:
    """The same of windows of EVENTS: what was released since the beginning of some entry is enough."""
    sizes = [window.size for window in windows if window.counted]
    if not sizes:
        return at
    before = (order for entry in reversed(kept) for order in entry.begun if order["first"] == now["first"])
    released: int | None = None
    for order in chain([now], before):
        if released is None and order["watermark"] <= at:
            released = order.get("position")
            if released is None:
                break
        if released is not None and order.get("position", released) <= released - 2 * (max(sizes) + 1):
            return int(order["watermark"]) - 1
    return BEGINNING


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
    """Raise ``EngineError`` for a query that is not deterministic: a replay would find other matches."""
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
