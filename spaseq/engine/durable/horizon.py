"""Which queries a state can restore, and which past events each of them still needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import timedelta
from itertools import chain
from typing import Any, Final

from spaseq.automaton.normal import normalise
from spaseq.engine.durable.journal import JournalEntry, Orders
from spaseq.engine.pipelines.cuts import begins_anew, looks_behind
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.errors import EngineError
from spaseq.events import BEGINNING, Clock
from spaseq.language.syntax import Call, FunctionCall, Query
from spaseq.matching.model import StreamWindow, stream_window
from spaseq.patterns.expressions.walk import is_volatile, matching_calls


def keeps(query: Query, others: Iterable[Query] = ()) -> str | None:
    """Return the reason why all events since a query began must be kept; None if those of its window suffice.

    ``others``: further queries, which may read the stream that this one makes.
    """
    if not begins_anew(query):
        return None
    if query.register is not None:
        made = query.register.iri
        if any(stream.iri == made for other in others for stream in other.streams):
            return "others read what it makes, and what it made before its last match no restart finds again"
    return looks_behind(normalise(query))


def unneeded(dispatcher: Dispatcher, kept: Sequence[JournalEntry], now: Orders, gone: Set[int]) -> int:
    """Return how many of the first entries no later match can need; for queries where ``keeps`` is None.

    ``now``: the current state of the orders; ``gone``: streams made by queries that are over.
    """
    of = {
        id(i): order for i, order in zip((i for i in dispatcher.stream_sets if i.members), now, strict=True)
    }
    since: dict[tuple[int, Clock], int] = {}
    counted: set[str] = set()
    # Readers of derived streams first: they determine which derived events must be made again.
    for stream_set in sorted(dispatcher.stream_sets, key=lambda stream_set: -stream_set.layer):
        clock = stream_set.order.clock
        if not stream_set.is_live or clock is None:
            continue  # it needs no events, or has none
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
    # The next entry must say how many events each present order had released before.
    if count < len(kept) and _of(counted, kept[count].begun) != _of(counted, now):
        return 0
    return count


def _of(streams: set[str], orders: Orders) -> set[int]:
    """Return the streams among these with counted released events."""
    return {order["first"] for order in orders if str(order["of"]) in streams and "position" in order}


def _back(
    kept: Sequence[JournalEntry], now: Mapping[str, Any], at: int, windows: Sequence[StreamWindow]
) -> int:
    """Return the time from which events may count for an order that was at ``at``, now or at later times.

    A waiting match began up to a window ago. A negation or optional element before it reaches back by another
    one.
    """
    sizes = [window.size for window in windows if not window.counted]
    time = at - 2 * (max(sizes) + 1) if sizes else at
    return min(time, _by_count(kept, now, at, windows))


def _by_count(
    kept: Sequence[JournalEntry], now: Mapping[str, Any], at: int, windows: Iterable[StreamWindow]
) -> int:
    """Do the same for windows of EVENTS: the events released since the beginning of some entry suffice."""
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


#: Functions with results that differ between calls, so that matches may differ.
_UNREPEATABLE: Final = frozenset({"RAND", "UUID", "STRUUID", "NOW"})

_LONGEST_NAME: Final = 4_096

#: Why no query of a state has a bound.
UNREPEATED: Final = (
    "a query under a bound sheds as the clock says, which no restart repeats: leave out the state, or "
    "latency and memory"
)


def name_given(name: str | None) -> str:
    """Return the name of a query. Raises ``EngineError`` for an invalid name."""
    if name is None:
        raise EngineError("with a state a query needs a name, by which it is known after a restart: name=…")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise EngineError(
            f"name={name!r:.80}: a name is a text of 1 to {_LONGEST_NAME} characters that can be printed"
        )
    return name


def every_given(every: int | timedelta | None) -> int | timedelta | None:
    """Return the commit interval. Raises ``EngineError`` for an invalid one."""
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
