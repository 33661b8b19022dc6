"""Parameterized patterns: what the table of edges saves, on words as in the paper, and on event columns.

du Mouza, Rigaux and Scholl, "Parameterized pattern queries" (2007), count comparisons of symbols and
operations on bit arrays, per symbol of a random text (figures 13 and 14). ``PAPER`` quotes those figures.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

import numba
import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Clock, EventBatch
from spaseq.language.reading.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.kmp.matcher import KmpMatcher
from spaseq.matching.kmp.patterns import Pattern, Term, Variable, compile_pattern, search_numbers
from spaseq.matching.kmp.tree import PatternTree
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement, check

Ids = npt.NDArray[np.int64]

#: Operations a symbol by alphabet and length of the pattern: naive and KMP, for 0 % to 50 % of variables.
PAPER: Final = {
    (2, 10): ((2.01, 2.19, 2.38, 2.78, 3.08, 3.64), (1.00, 1.12, 1.30, 1.49, 1.65, 1.85)),
    (4, 10): ((1.33, 1.44, 1.59, 1.84, 2.20, 2.39), (1.00, 1.09, 1.18, 1.37, 1.53, 1.79)),
    (10, 10): ((1.11, 1.22, 1.32, 1.51, 1.82, 2.00), (1.00, 1.10, 1.17, 1.36, 1.51, 1.68)),
    (30, 10): ((1.04, 1.14, 1.22, 1.44, 1.67, 1.78), (1.00, 1.09, 1.18, 1.31, 1.52, 1.73)),
    (2, 5): ((1.97, 2.16, 2.34, 2.58, 2.82, 3.16), (1.00, 1.14, 1.29, 1.48, 1.66, 1.88)),
    (2, 15): ((2.00, 2.16, 2.35, 2.76, 3.06, 3.59), (1.00, 1.11, 1.27, 1.49, 1.62, 1.86)),
    (2, 20): ((2.00, 2.21, 2.44, 2.72, 3.11, 3.68), (1.00, 1.13, 1.33, 1.43, 1.65, 1.88)),
}
#: Comparisons of the tree against those of each pattern alone, by the number of patterns (figure 16).
PAPER_TREE: Final = {10: 0.55, 100: 0.35, 1_000: 0.15, 10_000: 0.05}

_BATCH: Final = 8_192


@dataclass(frozen=True)
class _Costs:
    """Operations a symbol: naive; KMP as the paper counts, with a mask for each bound variable; as it was."""

    naive: float
    kmp: float
    real: float


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Operations on words, patterns in a tree, and events a second."""
    yield from _operations(quick)
    yield from _tree(quick)
    yield from _events(quick)


# --- words ----------------------------------------------------------------------------------------


def _operations(quick: bool) -> Iterator[Measurement]:
    queries, size = (5, 4_000) if quick else (500, 20_000)
    rng = random.Random(13)
    for (alphabet, length), (naive, kmp) in list(PAPER.items())[: 1 if quick else None]:
        text = np.array(rng.choices(range(alphabet), k=size), dtype=np.int64)
        for tenth in range(6):
            drawn = (_pattern(rng, alphabet, length, tenth / 10) for _ in range(queries))
            costs = [_costs(pattern, text) for pattern in drawn]
            mean = _Costs(*(fmean(getattr(c, name) for c in costs) for name in ("naive", "kmp", "real")))
            yield Measurement(
                "kmp",
                f"{alphabet} symbols, length {length}, {10 * tenth} % variables",
                mean.naive / mean.kmp,
                "fewer operations than naive",
                {},
                {
                    "paper": naive[tenth] / kmp[tenth],
                    "naive": mean.naive,
                    "(paper)": naive[tenth],
                    "KMP": mean.kmp,
                    "(paper) ": kmp[tenth],
                    "KMP, all masks that were applied": mean.real,
                },
            )


def _pattern(rng: random.Random, alphabet: int, length: int, share: float) -> Pattern:
    """A random pattern of which so much, on average, are variables."""
    count = int(length * share + rng.random())
    places = set(rng.sample(range(length), count))
    names = [Variable(f"x{i}") for i in range(max(1, count))]
    terms: list[Term] = [rng.choice(names) if p in places else rng.randrange(alphabet) for p in range(length)]
    return Pattern(tuple(terms))


def _costs(pattern: Pattern, text: Ids) -> _Costs:
    program, codes = compile_pattern(pattern)
    of_symbol = np.zeros(int(text.max()) + 1, dtype=np.int64)
    for symbol, code in codes.items():
        if isinstance(symbol, int) and symbol < len(of_symbol):
            of_symbol[symbol] = code
    found = search_numbers(program, np.stack([of_symbol[text], text]), len(pattern))
    variables = {variable: -1 - i for i, variable in enumerate(pattern.variables)}
    coded = [variables[t] if isinstance(t, Variable) else t for t in pattern.symbols]
    compared, matched = _naive(np.array(coded, dtype=np.int64), text)
    check(f"occurrences of {pattern}", len(found.occurrences), matched)
    bound = [
        len({t for t in pattern.symbols[:i] if isinstance(t, Variable)}) for i in range(len(pattern) + 1)
    ]
    masks = sum(stops * b for stops, b in zip(found.stops, bound, strict=True))
    size = len(text)
    return _Costs(
        compared / size, (found.comparisons + masks) / size, (found.comparisons + found.masks) / size
    )


_njit: Any = numba.njit


@_njit
def _naive(pattern: Ids, text: Ids) -> tuple[int, int]:
    """Comparisons and occurrences of a search that tries every place; variables are below 0."""
    compared = matched = 0
    bound = np.zeros(len(pattern) + 1, dtype=np.int64)
    for begin in range(len(text)):
        bound[:] = -1
        matches = begin + len(pattern) <= len(text)
        for i in range(min(len(pattern), len(text) - begin)):
            compared += 1
            symbol, term = text[begin + i], pattern[i]
            if term < 0 and bound[-1 - term] < 0:
                bound[-1 - term] = symbol
            elif symbol != (bound[-1 - term] if term < 0 else term):
                matches = False
                break
        matched += matches
    return compared, matched


def _tree(quick: bool) -> Iterator[Measurement]:
    rng = random.Random(16)
    word = rng.choices(range(12), k=500 if quick else 2_000)
    for count, ratio in PAPER_TREE.items():
        if count > (100 if quick else 1_000):
            continue
        patterns = {_pattern(rng, 12, rng.randrange(5, 11), rng.choice((0, 0.1, 0.2))) for _ in range(count)}
        before = time.perf_counter()
        tree = PatternTree(patterns)
        built = time.perf_counter() - before
        alone = [PatternTree([pattern]).search(word) for pattern in patterns]
        found = tree.search(word)
        check("occurrences", found.occurrences, {p: o for a in alone for p, o in a.occurrences.items()})
        yield Measurement(
            "kmp",
            f"tree of {count} patterns",
            found.comparisons / sum(a.comparisons for a in alone),
            "comparisons of each alone",
            {"insertions": len(patterns) / built},
            {"paper": ratio, "nodes": float(sum(1 for _ in tree.nodes()))},
        )


# --- events ---------------------------------------------------------------------------------------

_QUERIES: Final = {
    "@x.a.@x": ("A , B , C", {"A": "?x", "B": ":0", "C": "?x"}, ""),
    "a.@x.a.@x.b": ("A , X , A , X , B", {"A": ":0", "X": "?x", "B": ":1"}, ""),
    "@x.@y.@z.@x.@y.@z": ("X , Y , Z , X , Y , Z", {"X": "?x", "Y": "?y", "Z": "?z"}, ""),
    "@x.@y.@x, @x != @y": ("A , B , A", {"A": "?x", "B": "?y . FILTER(?x != ?y)"}, ""),
    "@x.a.@x by user": ("A , B , C", {"A": "?x", "B": ":0", "C": "?x"}, "PARTITION BY ?u"),
}


def _events(quick: bool) -> Iterator[Measurement]:
    count, runs = (40_000, 1) if quick else (400_000, 3)
    for case, (seq, objects, by) in _QUERIES.items():
        pattern = normalise(parse(_query(seq, objects, by)))
        stream = _Stream(count, pages=100, users=1_000)
        taken: dict[str, list[float]] = {"kmp": [], "nfa": []}
        answers: dict[str, int] = {}
        for _ in range(runs):
            for name, seconds in taken.items():
                spent, answers[name] = stream.seconds(name, pattern, objects, bool(by))
                seconds.append(spent)
        check(f"matches of {case}", answers["kmp"], answers["nfa"])
        ours, theirs = (median(taken[name]) for name in ("kmp", "nfa"))
        yield Measurement(
            "kmp",
            f"{case}: events as columns, 100 pages",
            theirs / ours,
            "the runs kernel",
            {"events": count / ours, "events (runs kernel)": count / theirs},
            {"matches": float(answers["nfa"])},
        )


def _query(seq: str, objects: dict[str, str], by: str) -> str:
    user = " ; :user ?u" if by else ""
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :page {o.replace(' . ', f'{user} . ') if ' . ' in o else o + user} }}"
        for name, o in objects.items()
    )
    return (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 1000 EVENTS SLIDING {by} "
        f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }}"
    )


class _Stream:
    """Visits of pages by users, some pages more popular than others."""

    def __init__(self, count: int, pages: int, users: int) -> None:
        rng = np.random.default_rng(5)
        self.dictionary = Dictionary()
        intern = self.dictionary.intern
        self._pages = np.array([intern(NamedNode(f"http://example.org/{i}")) for i in range(pages)])
        ids = np.array([intern(NamedNode(f"http://example.org/user/{i}")) for i in range(users)])
        self._visits = self._pages[np.minimum(rng.geometric(0.05, count) - 1, pages - 1)]
        self._users = ids[rng.integers(0, users, count)]

    def seconds(
        self, name: str, pattern: SequencePattern, objects: dict[str, str], by: bool
    ) -> tuple[float, int]:
        """How long a matcher takes, and how many matches it finds; the first batch warms up."""
        context = Context(pattern, self.dictionary, lambda *_: False)
        make = KmpMatcher if name == "kmp" else NfaMatcher
        matcher = make(pattern, self.dictionary, context, StreamWindow(1_000, True, True, 0))
        spent, found = 0.0, 0
        for start in range(0, len(self._visits), _BATCH):
            batch, solutions = self._batch(start, objects, by)
            before = time.perf_counter()
            new = sum(map(len, matcher.process(batch, start, solutions)))
            if start:
                spent += time.perf_counter() - before
                found += new
        return spent, found

    def _batch(
        self, start: int, objects: dict[str, str], by: bool
    ) -> tuple[EventBatch, dict[str, Solutions]]:
        visits, users = self._visits[start : start + _BATCH], self._users[start : start + _BATCH]
        none, zeros = np.zeros(0, dtype=np.int64), np.zeros(len(visits), dtype=np.int64)
        at = np.arange(start, start + len(visits))
        offset = np.zeros(len(visits) + 1, dtype=np.int64)
        batch = EventBatch(self.dictionary, Clock.TICKS, zeros, zeros, at, at, offset, none, none, none)
        solutions = {}
        for name, o in objects.items():
            page = o.split(" ")[0]
            variable = page.startswith("?")
            events = (
                np.arange(len(visits)) if variable else np.flatnonzero(visits == self._pages[int(page[1:])])
            )
            columns = {page[1:]: visits[events]} if variable else {}
            if by:
                columns["u"] = users[events]
            solutions[name] = Solutions(len(events), events, columns)
        return batch, solutions
