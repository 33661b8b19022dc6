"""AFTER MATCH SKIP: row patterns from columns and from bytes, and how time grows with the stream."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Final

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox
from pyoxigraph import Literal

from spaseq.automaton.normal import normalise
from spaseq.events import Clock, EventBatch
from spaseq.language.reading.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.skip.matcher import SkipMatcher
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement, check, side_by_side
from tests.benchmarks.pipelines import matches
from tests.benchmarks.trades import n_quads, rising_and_falling, v_shape

Ids = npt.NDArray[np.int64]

_BATCH: Final = 8_192
_SKIP: Final = "AFTER MATCH SKIP PAST LAST EVENT"
_ROW_PATTERN: Final = "A , B+[,] , C+[,]"


class Letters:
    """A stream of letters with a value each, as columns: an event has a solution for each GPM it names."""

    def __init__(self, gpms: str, letters: npt.NDArray[np.str_], values: Ids) -> None:
        self.dictionary = Dictionary()
        ids = [self.dictionary.intern(Literal(i)) for i in range(int(values.max()) + 1)]
        self._values = np.array(ids, dtype=np.int64)[values]
        self._letters = letters
        self._gpms = gpms

    def batches(self, at_once: int = _BATCH) -> Iterator[tuple[EventBatch, int, dict[str, Solutions]]]:
        """The batches, with where they begin and the GPMs' solutions."""
        none = np.zeros(0, dtype=np.int64)
        for start in range(0, len(self._letters), at_once):
            letters = self._letters[start : start + at_once]
            size = len(letters)
            at, zeros = start + np.arange(size), np.zeros(size, dtype=np.int64)
            offset = np.zeros(size + 1, dtype=np.int64)
            batch = EventBatch(
                self.dictionary, Clock.TICKS, at, zeros, at, at, offset, none, none, none
            )  # fmt: skip
            solutions = {}
            for gpm in self._gpms:
                events = np.flatnonzero(np.char.find(letters, gpm) >= 0)
                column = self._values[start + events]
                solutions[gpm] = Solutions(len(events), events, {f"v{gpm}": column})
            yield batch, start, solutions


def query(seq: str, filters: dict[str, str] | None = None, skip: str = _SKIP, where: str = "") -> str:
    """A query over letters whose GPM ``A`` binds ``?vA``; ``where`` are filters outside of the GPMs."""
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :v ?v{name} . {(filters or {}).get(name, '')} }}"
        for name in "ABC"
        if name in seq
    )
    return (
        "PREFIX : <http://example.org/> SELECT * WITHIN 1 SECONDS FROM STREAM S <http://example.org/s> "
        f"WHERE {{ SEQ({seq}) {gpms} {where} }} {skip}"
    )


def evaluator_of(letters: Letters, text: str, window: StreamWindow) -> SkipMatcher:
    """A matcher of a query over letters."""
    pattern = normalise(parse(text))
    context = Context(pattern, letters.dictionary, lambda *_: False)
    return SkipMatcher(pattern, letters.dictionary, context, window)


def run(letters: Letters, text: str, window: StreamWindow) -> tuple[float, int]:
    """The seconds of a query over columns, its matches taken, and how many they are."""
    matcher = evaluator_of(letters, text, window)
    spent, found = 0.0, 0
    for batch, start, solutions in letters.batches():
        before = time.perf_counter()
        found += sum(map(len, matcher.process(batch, start, solutions)))
        spent += time.perf_counter() - before
    before = time.perf_counter()
    found += sum(1 for _ in matcher.close())
    return spent + time.perf_counter() - before, found


def row_pattern(count: int, seed: int = 5) -> Letters:
    """``A`` and then some ``B`` and ``C``: no event is two of them."""
    rng = np.random.default_rng(seed)
    letters = rng.choice(list("ABBBBCCCCXXXXXXX"), count)
    return Letters("ABC", letters, rng.integers(0, 1_000, count))


#: What a query asks besides its types.
_CASES: Final = {
    "by type": query(_ROW_PATTERN),
    "falling, then rising": query(
        _ROW_PATTERN, {"B": "FILTER(?vB < PREV(?vB))", "C": "FILTER(?vC > PREV(?vC))"}
    ),
    "above the average": query(_ROW_PATTERN, {"B": "FILTER(?vB < ?vA)", "C": "FILTER(?vC > AVG(?vB))"}),
    "FILTERs of WHERE": query(_ROW_PATTERN, where="FILTER(?vA < 900) FILTER(AVG(?vB) < 500)"),
    "WITHIN inside": query("(A , B+[,]) WITHIN 5 SECONDS , C+[,]"),
}


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Row patterns from columns, from bytes, and over streams ten times as long."""
    count, runs = (50_000, 1) if quick else (1_000_000, 3)
    window = StreamWindow(1 << 40, False, False, 0, ticks=True)
    for case, text in _CASES.items():
        long, short = row_pattern(count), row_pattern(count // 10)
        run(short, text, window)
        taken = [(run(long, text, window), run(short, text, window)) for _ in range(runs)]
        seconds = median(spent for (spent, _), _ in taken)
        yield Measurement(
            "skip",
            f"{_ROW_PATTERN}, {case}",
            seconds / median(spent for _, (spent, _) in taken),
            "a stream a tenth as long",
            {"events": count / seconds},
            {"matches": float(taken[0][0][1])},
        )
    yield from _merged(quick)
    yield from _bytes(quick)


def _merged(quick: bool) -> Iterator[Measurement]:
    """``(A | B)+ , C`` where every event is an A and a B."""
    count = 1_000 if quick else 10_000
    text = query("(A | B)+[,] , C")

    window = StreamWindow(1 << 40, False, False, 0)

    def seconds(size: int) -> float:
        letters = np.array(["AB"] * (size - 1) + ["C"])
        spent, found = run(Letters("ABC", letters, np.zeros(size, dtype=np.int64)), text, window)
        check("matches", found, 1)
        return spent

    seconds(100)
    long, short = seconds(count), seconds(count // 10)
    yield Measurement(
        "skip",
        "(A | B)+[,] , C, equal A and B",
        long / short,
        "a stream a tenth as long",
        {"events": count / long},
    )


def _bytes(quick: bool) -> Iterator[Measurement]:
    """V shapes from N-Quads bytes, beside pyoxigraph's parser alone over the same bytes."""
    events = 2_000 if quick else 60_000
    data = n_quads(rising_and_falling(events, companies=100, falls=0.004), 2)
    falls = v_shape(2).replace("A , B+[,] , C", _ROW_PATTERN) + f" {_SKIP}"

    def parse_only() -> None:
        for _ in ox.parse(data, format=ox.RdfFormat.N_QUADS):
            pass

    found = matches(falls, data)
    ours, theirs = side_by_side(1 if quick else 5, lambda: matches(falls, data), parse_only)
    yield Measurement(
        "skip",
        f"{_ROW_PATTERN} from bytes",
        theirs / ours,
        "pyoxigraph.parse iterated",
        {"quads": 3 * events / ours, "events": events / ours},
        {"matches": float(found)},
    )
