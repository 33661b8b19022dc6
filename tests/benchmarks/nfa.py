"""The runs kernel alone: from columns of solutions, ready made, to matches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal, NamedNode

from spaseq.automaton.normal import normalise
from spaseq.events import Clock, EventBatch
from spaseq.language.reading.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement

Ids = npt.NDArray[np.int64]

#: Events of a batch.
_BATCH = 8_192
_DECIMAL = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
_WINDOWS = (100, 1_000, 10_000, 100_000)
_COMPANIES = 100
#: Of two events; the last one of strings, which are looked up by their values.
_CONDITIONS = (
    "?p1 > 99",
    "?p1 > 99 || ?p2 > 99.5",
    "COALESCE(?p1 - ?p2, 0) > 97 || IF(?p1 < 1, ?p2, ?p1) > 99.5",
    "<http://www.w3.org/2005/xpath-functions/math#sqrt>(?p1 * ?p1 + ?p2 * ?p2) > 135",
    'STRLEN(STR(?p1)) < STRLEN(STR(?p2)) && REGEX(STR(?p2), "^99.9")',
    'STRSTARTS(STR(?p2), CONCAT(STR(?p1), "0"))',
)


class _Trades:
    """Trades of some companies as columns of ids; prices in cents."""

    def __init__(self, prices: npt.NDArray[np.int64], seed: int = 1) -> None:
        self.dictionary = Dictionary()
        self._random = np.random.default_rng(seed)
        distinct, inverse = np.unique(prices, return_inverse=True)
        literals = [Literal(f"{cents / 100:.2f}", datatype=_DECIMAL) for cents in distinct.tolist()]
        self._prices = self._ids(literals)[inverse]
        companies = [NamedNode(f"http://example.org/company/{i}") for i in range(_COMPANIES)]
        self._companies = self._ids(companies)[self._random.integers(0, _COMPANIES, len(prices))]

    def _ids(self, terms: Sequence[NamedNode | Literal]) -> Ids:
        return np.array([self.dictionary.intern(term) for term in terms], dtype=np.int64)

    def batches(self, names: str) -> Iterator[tuple[EventBatch, int, dict[str, Solutions]]]:
        """The trades in batches; every trade is a solution of each GPM, with its price as ``?p1``, …"""
        none = np.zeros(0, dtype=np.int64)
        for start in range(0, len(self._prices), _BATCH):
            part = slice(start, start + _BATCH)
            prices, companies = self._prices[part], self._companies[part]
            size = len(prices)
            zeros, events = np.zeros(size, dtype=np.int64), np.arange(size)
            at = start + events
            offset = np.zeros(size + 1, dtype=np.int64)
            batch = EventBatch(
                self.dictionary, Clock.TICKS, zeros, zeros, at, at, offset, none, none, none
            )  # fmt: skip
            columns = [{"company": companies, f"p{i}": prices} for i in range(1, len(names) + 1)]
            yield (
                batch,
                start,
                {n: Solutions(size, events, c) for n, c in zip(names, columns, strict=True)},
            )


def _climbing(rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Prices that go up and up, but for one trade in 250 which is far below."""
    prices = 1_000 + np.arange(count) // 100
    prices[rng.random(count) < 0.004] -= 900
    return prices


def _query(seq: str, filters: Sequence[str], partition: bool) -> str:
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :price ?p{i} ; :company ?company . {condition} }}"
        for i, (name, condition) in enumerate(zip("ABC", filters, strict=False), 1)
    )
    by = "PARTITION BY ?company" if partition else ""
    if not partition:
        gpms = gpms.replace(" ; :company ?company", "")
    return (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 1 EVENTS SLIDING {by} "
        f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }}"
    )


def _run(trades: _Trades, query: str, size: int) -> tuple[float, int]:
    """Events a second in a sliding window of so many events, and matches; the first batch warms up."""
    pattern = normalise(parse(query))
    context = Context(pattern, trades.dictionary, lambda *_: False)
    kernel = NfaMatcher(pattern, trades.dictionary, context, StreamWindow(size, True, True, 0))
    names = "".join(pattern.gpms)
    spent = matches = events = 0
    for batch, start, solutions in trades.batches(names):
        before = time.perf_counter_ns()
        found = sum(map(len, kernel.process(batch, start, solutions)))
        if start > 0:
            spent += time.perf_counter_ns() - before
            matches += found
            events += len(batch)
    return events * 1e9 / spent, matches


def _median(runs: int, trades: _Trades, query: str, size: int) -> tuple[float, int]:
    measured = [_run(trades, query, size) for _ in range(runs)]
    return median(rate for rate, _ in measured), measured[0][1]


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Strict V shapes, windows of growing length, Kleene closures, conditions of any kind."""
    rng = np.random.default_rng(7)
    count, runs = (200_000, 1) if quick else (500_000, 3)
    v_shape = ("", "FILTER(?p2 < ?p1)", "FILTER(?p3 > ?p1)")
    for case, prices in (
        ("a match in 250 events", _climbing(rng, count)),
        ("random prices", rng.integers(1, 10_000, count)),
    ):
        trades = _Trades(prices)
        rate, matches = _median(runs, trades, _query("A , B , C", v_shape, True), 10_000)
        yield Measurement(
            "nfa", f"A , B , C: {case}", None, "", {"events": rate}, {"matches": float(matches)}
        )
    for case, prices in (
        ("random prices", rng.integers(1, 10_000, count // 10)),
        ("falling prices", 1_000 + (count - np.arange(count)) // 10),
    ):
        trades, first = _Trades(prices), 0.0
        for size in _WINDOWS:
            rate, matches = _median(runs, trades, _query("A ; B", ("", "FILTER(?p2 > ?p1)"), False), size)
            first = first or rate
            yield Measurement(
                "nfa",
                f"A ; B, {case}, {size} events",
                rate / first,
                f"{_WINDOWS[0]} events",
                {"events": rate},
                {"matches": float(matches)},
            )
    trades = _Trades(_climbing(rng, count))
    rate, matches = _median(runs, trades, _query("A , B+[,] , C", v_shape, True), 10_000)
    yield Measurement("nfa", "A , B+[,] , C", None, "", {"events": rate}, {"matches": float(matches)})
    trades, plain = _Trades(rng.integers(1, 10_000, count)), 0.0
    for condition in _CONDITIONS:
        rate, matches = _median(runs, trades, _query("A , B", ("", f"FILTER({condition})"), True), 10_000)
        plain = plain or rate
        yield Measurement(
            "nfa",
            f"A , B, {condition}",
            rate / plain,
            _CONDITIONS[0],
            {"events": rate},
            {"matches": float(matches)},
        )
