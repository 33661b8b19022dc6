"""``lazy``: chain and tree NFA against the eager kernel, from ready-made columns.

Kolchinsky and Schuster report gains of up to two orders of magnitude where the events of a pattern are of
very different frequency, and 5 to 100 times fewer partial matches. Here: over the ratio of the rarest events
to the commonest, and the window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Clock, EventBatch
from spaseq.language.reading.parser import parse
from spaseq.matching.columns.matcher import ByColumns
from spaseq.matching.context import Context
from spaseq.matching.host import Matcher
from spaseq.matching.lazy.matcher import LazyMatcher
from spaseq.matching.lazy.records import counter
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.nfa.records import header
from spaseq.matching.planner import by_events
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement, check
from tests.conftest import SHARED

Ids = npt.NDArray[np.int64]
Batch = tuple[EventBatch, int, dict[str, Solutions]]

_BATCH: Final = 4_096
_PRICES: Final = 1_000
#: Each price a little above the one before.
_CLOSE: Final = {"B": "?b > ?a && ?b < ?a + 20", "C": "?c > ?b && ?c < ?b + 20"}
#: One in 500 pairs of prices.
_NARROW: Final = {"B": "?b > ?a && ?b < ?a + 3", "C": "?c > ?b && ?c < ?b + 3"}
_ANY_ORDER: Final = {"B": "?b > ?a && ?b < ?a + 20", "C": "?c > ?a && ?c < ?a + 20"}
#: Shares of A, B and C.
_SHARES: Final = {
    "all alike": (1, 1, 1),
    "1:10, the last is rare": (10, 10, 1),
    "1:100, the last is rare": (100, 100, 1),
    "1:1000, the last is rare": (1000, 1000, 1),
    "1:100, the one between is rare": (100, 1, 100),
    "1:100, the first is rare": (1, 100, 100),
}


def _pattern(seq: str, filters: dict[str, str]) -> SequencePattern:
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :v{name} ?{name.lower()} . "
        f"{f'FILTER({filters[name]})' if name in filters else ''} }}"
        for name in "ABC"
        if name in seq.replace("ALL", "")
    )
    return normalise(
        parse(
            "PREFIX : <http://example.org/> SELECT * WITHIN 1 EVENTS SLIDING "
            f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }}"
        )
    )


def _batches(dictionary: Dictionary, kinds: Ids, values: Ids) -> list[Batch]:
    """Events of kinds 0, 1 and 2, which A, B and C look for, and others; ``values`` are ids."""
    none, found = np.zeros(0, dtype=np.int64), []
    for start in range(0, len(kinds), _BATCH):
        kind, value = kinds[start : start + _BATCH], values[start : start + _BATCH]
        zeros, at = np.zeros(len(kind), dtype=np.int64), np.arange(start, start + len(kind))
        offset = np.zeros(len(kind) + 1, dtype=np.int64)
        batch = EventBatch(dictionary, Clock.TICKS, zeros, zeros, at, at, offset, none, none, none)
        solutions = {}
        for number, name in enumerate("ABC"):
            events = np.flatnonzero(kind == number)
            solutions[name] = Solutions(len(events), events, {name.lower(): value[events]})
        found.append((batch, start, solutions))
    return found


@dataclass
class _Run:
    """How a matcher did: processor seconds, matches, and the most partial matches after a batch."""

    seconds: float
    matches: int
    partial: int

    @classmethod
    def of(cls, matcher: ByColumns, live: Callable[[], int], batches: Sequence[Batch]) -> _Run:
        matches = most = 0
        begin = time.process_time()
        for batch in batches:
            matches += sum(map(len, matcher.process(*batch)))
            most = max(most, live())
        return cls(time.process_time() - begin, matches, most)


def _eager(
    pattern: SequencePattern, dictionary: Dictionary, window: StreamWindow, batches: Sequence[Batch]
) -> _Run:
    kernel = NfaMatcher(pattern, dictionary, Context(pattern, dictionary, lambda *_: False), window)
    return _Run.of(kernel, lambda: int(kernel._memory.ints[header.LIVE_WAITS]), batches)


def _lazy(
    pattern: SequencePattern,
    dictionary: Dictionary,
    window: StreamWindow,
    batches: Sequence[Batch],
    *,
    tree: bool,
) -> _Run:
    context = Context(pattern, dictionary, lambda *_: False)
    lazy = LazyMatcher(pattern, dictionary, context, window, tree=tree)
    return _Run.of(lazy, lambda: int(lazy.memory.counters[counter.PEAK]), batches)


def _runs(
    pattern: SequencePattern, dictionary: Dictionary, window: StreamWindow, batches: Sequence[Batch]
) -> _Run:
    """Event by event; how many partial matches there are is not asked."""
    context = Context(pattern, dictionary, lambda *_: False)
    matcher = Matcher(pattern, window, by_events("interpreter", pattern, context, window))
    matches = 0
    begin = time.process_time()
    for batch, start, solutions in batches:
        rows = {name: table.by_event() for name, table in solutions.items()}
        for index in range(len(batch)):
            seen = {name: found[index] for name, found in rows.items() if index in found}
            event = Occurrence(batch.stamp(index), start + index, seen, batch, index)
            matches += sum(1 for _ in matcher.push(event))
    return _Run(time.process_time() - begin, matches, 0)


_CHAIN: Final = partial(_lazy, tree=False)
_TREE: Final = partial(_lazy, tree=True)


def _compared(
    case: str, against: str, seq: str, filters: dict[str, str], size: int, kinds: Ids, prices: Ids
) -> Iterator[Measurement]:
    """Chain and tree against the kernel, or where it cannot, against ``interpreter``."""
    pattern, window = _pattern(seq, filters), StreamWindow(size, True, True, 0)
    dictionary = Dictionary()
    ids = np.array([dictionary.pin(Literal(price)) for price in range(int(prices.max()) + 1)])
    batches = _batches(dictionary, kinds, ids[prices])

    def best(run: Callable[..., _Run]) -> _Run:
        # What is compiled on the way is compiled in the first run.
        return min((run(pattern, dictionary, window, batches) for _ in range(2)), key=lambda one: one.seconds)

    eager = _runs(pattern, dictionary, window, batches) if against == "interpreter" else best(_eager)
    for name, run in (("chain", _CHAIN), ("tree", _TREE)):
        lazy = best(run)
        check(f"matches of {case}", lazy.matches, eager.matches)
        yield Measurement(
            "lazy",
            f"{name}, {case}",
            eager.seconds / lazy.seconds,
            against,
            {"events": len(kinds) / lazy.seconds},
            {"matches": lazy.matches, "partial": lazy.partial, f"partial of {against}": eager.partial},
        )


def _ticks(folder: Path, count: int, tickers: Sequence[str]) -> tuple[Ids, Ids]:
    """The first trades of a day: which of the tickers they are of, or 3, and their changes of price.

    A change is against the trade before of the same ticker, in hundredths of a percent; 500 is none. Of RIMM,
    only leaps are taken: changes of 0.1 % and more.
    """
    rows = []
    for path in sorted(folder.glob("TimeAndSales_*.txt")):
        for line in path.read_text(encoding="ascii").splitlines():
            ticker, sequence, _, price, _, _ = line.split()
            rows.append((int(sequence), ticker, float(price)))
    rows.sort()
    number = {ticker: i for i, ticker in enumerate(tickers)}
    last: dict[str, float] = {}
    kinds, changes = [], []
    for _, ticker, price in rows[:count]:
        change = round(10_000 * (price / last.get(ticker, price) - 1))
        kinds.append(3 if ticker == "RIMM" and abs(change) < 10 else number.get(ticker, 3))
        changes.append(change)
        last[ticker] = price
    return np.array(kinds), np.clip(np.array(changes) + 500, 0, 999)


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Three elements over ratios and windows, any order, and real trades."""
    windows, count = ((50,), 3_000) if quick else ((100, 1_000), 30_000)
    rng = np.random.default_rng(7)
    for _ in _compared("warm", "nfa", "A : B : C", _CLOSE, 10, rng.integers(0, 3, 300), np.arange(300)):
        pass  # loads compiled code
    for window in windows:
        for case, shares in _SHARES.items():
            weights = np.array(shares) / sum(shares)
            kinds, prices = rng.choice(3, count, p=weights), rng.integers(0, _PRICES, count)
            name = f"{window} events, {case}"
            yield from _compared(name, "nfa", "A : B : C", _CLOSE, window, kinds, prices)
    for window in windows if quick else (*windows, 10_000):
        for case in ("all alike", "1:100, the last is rare", "1:100, the first is rare"):
            weights = np.array(_SHARES[case]) / sum(_SHARES[case])
            kinds, prices = rng.choice(3, count, p=weights), rng.integers(0, _PRICES, count)
            name = f"{window} events, filters of 1:500, {case}"
            yield from _compared(name, "nfa", "A : B : C", _NARROW, window, kinds, prices)
    kinds, prices = rng.integers(0, 10, count // 10), rng.integers(0, _PRICES, count // 10)
    yield from _compared("ALL(A, B, C)", "interpreter", "ALL(A, B, C)", _ANY_ORDER, 100, kinds, prices)
    ticks = SHARED / "stock-inet-ticks"
    if not ticks.exists():
        yield Measurement("lazy", "real trades", None, "reference data is not beside this checkout")
        return
    rising = {"B": "?b > ?a", "C": "?c > ?b"}
    for leap, tickers in (("last", ("INTC", "MSFT", "RIMM")), ("first", ("RIMM", "INTC", "MSFT"))):
        kinds, changes = _ticks(ticks, count, tickers)
        for window in windows:
            case = f"real trades, {window} events, leaps (1:60) are {leap}"
            yield from _compared(case, "nfa", "A : B : C", rising, window, kinds, changes)
