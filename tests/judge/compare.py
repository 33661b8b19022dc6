"""Both judges' answers to a case, as comparable values."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import spaseq
from spaseq.language import Query
from tests.judge.generate import Case
from tests.judge.solve import solve

#: A match: its GPMs' events, and its solutions, in an order.
Answer = tuple[tuple[tuple[str, int], ...], tuple[tuple[tuple[str, Decimal], ...], ...]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def by_second_judge(case: Case) -> list[Answer]:
    """What the page says, read by the second judge."""
    shown = {v for gpm in case.query.gpms.values() for v in gpm.binds}
    return sorted(
        (
            tuple(sorted((g, e.i) for g, e in match.events)),
            _ordered(((v, x) for v, x in row.values.items() if v in shown) for row in match.rows),
        )
        for _, match in solve(case.query, case.events)
    )


def by_engine(case: Case, matcher: str = "reference", prepared: Query | None = None) -> list[Answer]:
    """What a matcher of the engine says, through the public API; ``prepared``: its query."""
    engine = spaseq.Engine(matcher=matcher)
    prefix = case.query.prefix
    with warnings.catch_warnings():
        # Random queries have vacuous negations, and filters that never hold.
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handle = engine.register(prepared or case.query.text)
        for i, (stream, text, at) in enumerate(case.written):
            time = _EPOCH + timedelta(microseconds=at) if case.query.instants else at
            engine.push(prefix + stream.lower(), text, time, name=f"{prefix}e{i}")
        engine.close()
    found = []
    for match in handle.matches():
        events = (
            (gpm, int(str(event.graph).removeprefix(prefix + "e")))
            for gpm, chosen in match.events.items()
            for event in chosen
        )
        rows = (((v, Decimal(str(x))) for v, x in row.items()) for row in match.bindings)
        found.append((tuple(sorted(events)), _ordered(rows)))
    return sorted(found)


def _ordered(rows: Iterable[Iterable[tuple[str, object]]]) -> tuple[tuple[tuple[str, Decimal], ...], ...]:
    return tuple(sorted({tuple(sorted((v, Decimal(str(x))) for v, x in row)) for row in rows}))
