"""A whole query: its alternatives and partitions, EMIT, CONSUME and AFTER MATCH SKIP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.judge.matcher import Matcher
from tests.judge.pattern import Event, Query
from tests.judge.scope import alternatives
from tests.judge.state import Match, Values, Window


def solve(query: Query, events: Sequence[Event]) -> list[tuple[tuple[object, ...], Match]]:
    """The matches of a query among events, with their partitions; EMIT, CONSUME and SKIP applied."""
    everything = sorted(events, key=lambda e: e.order)
    window = Window(query, everything)
    out = []
    for key in _keys(query, everything):
        part = everything if not query.partition else [p for e in everything if (p := _part(query, e, key))]
        found: dict[object, Match] = {}
        for root in alternatives(query.root):
            for m in Matcher(query, root, part, window).matches():
                same = found.get(m.events)
                if same is None:
                    found[m.events] = m
                elif query.skip is not None:
                    found[m.events] = min(m, same, key=lambda m: m.key)
                else:
                    found[m.events] = replace(m, rows=same.rows + m.rows)
        kept = _skipped(query, list(found.values())) if query.skip else _emitted(query, list(found.values()))
        out += [(key, m) for m in kept]
    return out


def _keys(query: Query, events: Sequence[Event]) -> list[tuple[object, ...]]:
    if not query.partition:
        return [()]
    found = {
        tuple(s[v] for v in query.partition)
        for e in events
        for solutions in e.unfiltered.values()
        for s in solutions
        if all(v in s for v in query.partition)
    }
    return sorted(found)  # type: ignore[type-var]


def _part(query: Query, e: Event, key: tuple[object, ...]) -> Event | None:
    """An event as a partition sees it; None if it is not of it."""
    wanted = dict(zip(query.partition, key, strict=True))

    def of(solutions: list[Values]) -> list[Values]:
        return [s for s in solutions if all(s.get(v, x) == x for v, x in wanted.items())]

    if not any(all(s.get(v) == x for v, x in wanted.items()) for ss in e.unfiltered.values() for s in ss):
        return None
    return replace(e, solutions={g: kept for g, ss in e.solutions.items() if (kept := of(ss))})


def _emitted(query: Query, found: list[Match]) -> list[Match]:
    out: list[Match] = []
    dropped: Event | None = None
    for last in sorted({m.last for m in found}, key=lambda e: e.order):
        here = [m for m in found if m.last == last]
        if query.consume and dropped is not None:
            here = [m for m in here if m.first.order > dropped.order]
        sets = [frozenset(e for _, e in m.events) for m in here]
        if query.emit == "MAX":
            here = [m for m, own in zip(here, sets, strict=True) if not any(own < o for o in sets)]
        elif query.emit in ("NEXT", "LAST"):
            here = [m for m, own in zip(here, sets, strict=True) if not _beaten(query.emit, own, sets)]
        out += here
        if here:
            dropped = last
    return out


def _beaten(emit: str, own: frozenset[Event], sets: Sequence[frozenset[Event]]) -> bool:
    pick = min if emit == "NEXT" else max
    return any(pick(own ^ other, key=lambda e: e.order) in other for other in sets if other != own)


def _skipped(query: Query, found: list[Match]) -> list[Match]:
    assert query.skip is not None
    out: list[Match] = []
    resume = None
    for first in sorted({m.first for m in found}, key=lambda e: e.order):
        if resume is not None and (first.order < resume[0] or resume == (first.order, True)):
            continue
        best = min((m for m in found if m.first == first), key=lambda m: m.key)
        out.append(best)
        # The place from which on matches may begin, and whether after it.
        mode = query.skip.mode
        if mode == "PAST":
            resume = (best.last.order, True)
        else:
            at = [e for g, e in best.events if g == query.skip.gpm] if mode in ("FIRST", "LAST") else []
            where = (min if mode == "FIRST" else max)(at, key=lambda e: e.order) if at else first
            resume = (where.order, where == first)
    return out
