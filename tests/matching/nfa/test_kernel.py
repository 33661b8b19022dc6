"""The runs kernel: long streams, what it costs, what it is for. (``test_fuzz`` is about what it gives.)"""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyoxigraph import Literal

from spaseq.automaton.normal import normalise
from spaseq.errors import SpaseqWarning
from spaseq.events import Stamp
from spaseq.language.reading.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.matching.nfa.exact import RunReplay
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.nfa.records import header
from spaseq.matching.nfa.tables.compiling import obstacles
from spaseq.matching.obstacles import in_words
from spaseq.matching.planner import choose
from spaseq.terms.dictionary import Dictionary
from tests.matching.kernel_cases import batches, by_kernel, by_runs, whole
from tests.matching.random_sequences import Sample, random_query, random_sample
from tests.matching.test_vectors import run


@pytest.mark.few(3, ci=5)
@pytest.mark.parametrize("seed", range(12))
def test_long_streams(seed: int) -> None:
    """So long that the memory is swept and grows."""
    rng = random.Random(1_000 + seed)
    length = 6
    sample = random_sample(rng, random_query(rng, kernel=True), 700)
    while _busiest(sample, length) > 20:  # A Kleene's matches are as many as there are subsets of a window.
        sample = random_sample(rng, random_query(rng, kernel=True), 700)
    sizes = [rng.randrange(1, 300) for _ in range(5)]
    sample = whole(sample, StreamWindow(length, False, True, 0), *sizes)
    assert by_kernel(sample) == by_runs(sample)


def _busiest(sample: Sample, length: int) -> int:
    """How many events there are in the window of so many ticks that has most."""
    per_tick = Counter(event.time for event in sample.events)
    return max(sum(per_tick[start + tick] for tick in range(length + 1)) for start in per_tick)


def test_vectors(shared: Callable[[str], Path]) -> None:
    vectors = json.loads((shared("seq-vectors") / "vectors-2.json").read_text())["cases"][::4]
    held, wrong = 0, []
    for case in vectors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpaseqWarning)
            pattern = normalise(parse(str(case["query"])))
        if pattern.query.skip is not None or any(obstacles(pattern)):
            continue
        held += 1
        expected = sorted(sorted((gpm, i) for gpm, i in match) for match in case["matches"])
        if run(case, "nfa") != expected:
            wrong.append(case["seed"])
    assert wrong == []
    assert held > 475


# --- what it costs --------------------------------------------------------------------------------

HIGHER = "FILTER(?b > ?a)"


def made(
    seq: str, bodies: dict[str, str], window: StreamWindow, partition: str = ""
) -> tuple[NfaMatcher, Dictionary]:
    """A kernel for GPMs that bind ``?a``, ``?b``, … and ``?k``."""
    gpms = " ".join(
        f"DEFINE GPM {name} ON S {{ [] :v ?{name.lower()} ; :k ?k . {bodies.get(name, '')} }}"
        for name in "ABC"
        if name in seq
    )
    text = (
        "PREFIX : <http://example.org/> SELECT * WITHIN 1 SECONDS "
        f"{partition} FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }}"
    )
    pattern = normalise(parse(text))
    dictionary = Dictionary()
    return NfaMatcher(pattern, dictionary, Context(pattern, dictionary, lambda *_: False), window), dictionary


def stream(
    dictionary: Dictionary, rows: Iterable[tuple[str, int | float]], first: int = 0
) -> list[Occurrence]:
    """An event a tick: the GPMs it is for, and its value."""
    key = dictionary.intern(Literal("k"))
    return [
        Occurrence(
            Stamp(i, 1, i),
            i,
            {gpm: ({gpm.lower(): dictionary.intern(Literal(value)), "k": key},) for gpm in gpms},
        )
        for i, (gpms, value) in enumerate(rows, first)
    ]


def count(kernel: NfaMatcher, dictionary: Dictionary, events: list[Occurrence], *sizes: int) -> int:
    return sum(len(block) for batch in batches(events, dictionary, sizes) for block in kernel.process(*batch))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("seq", "bodies"),
    [
        ("A , B", {}),
        ("A ; B", {"B": HIGHER}),
        ("A , B+[,] , C", {"B": "FILTER(?b < PREV(?b))"}),
        ("A : B ; C", {"B": HIGHER, "C": "FILTER(?c = ?a + 1000)"}),
    ],
)
def test_memory_is_used_again(seq: str, bodies: dict[str, str]) -> None:
    kernel, dictionary = made(seq, bodies, StreamWindow(20, False, True, 0))
    rng = random.Random(1)
    sizes = []
    for start in range(0, 40_000, 4_000):
        rows = [(rng.choice(["A", "B", "AB", "C"]), rng.randrange(50)) for _ in range(4_000)]
        count(kernel, dictionary, stream(dictionary, rows, start), *[500] * 7)
        sizes.append(len(kernel._memory.ints))
    assert sizes[-1] <= 2 * max(sizes[:3])  # it has grown as far as it need by then


def test_runs_wait_in_a_heap_by_their_bound() -> None:
    kernel, dictionary = made("A ; B", {"B": HIGHER}, StreamWindow(10_000, False, True, 0))
    rows = [("A", 1_000 - i) for i in range(500)] + [("B", 700)]
    assert count(kernel, dictionary, stream(dictionary, rows)) == 199
    # 300 of them were not touched: no decision was made on them.
    assert kernel._memory.ints[header.DECIDED] == 199 + 2
    assert kernel._memory.ints[header.LIVE_WAITS] == 301


def test_an_odd_value_is_compared_with_each_run() -> None:
    kernel, dictionary = made("A ; B", {"B": HIGHER}, StreamWindow(10_000, False, True, 0))
    odd = 2**53 + 1
    events = stream(
        dictionary, [("A", 2**53), ("A", odd), ("A", 2**53 + 3), ("A", 5), ("B", odd), ("B", odd)]
    )
    assert count(kernel, dictionary, events) == 2


def test_the_tables_decide_on_usual_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of Python, and no conditions are tested again, where doubles say it all."""

    def never(*_: object) -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(RunReplay, "is_relevant", never)
    monkeypatch.setattr(RunReplay, "rows", never)
    kernel, dictionary = made(
        "A , B ; C", {"B": HIGHER, "C": "FILTER(?c <= ?a)"}, StreamWindow(9, False, True, 0)
    )
    assert count(kernel, dictionary, stream(dictionary, [("A", 5), ("B", 7), ("C", 6), ("C", 5)])) == 1


def test_forgotten_ids_mean_nothing_to_runs() -> None:
    """Terms of expired events go, their ids come back as other numbers, and heaps stay in order."""
    kernel, dictionary = made("A ; B", {"B": HIGHER}, StreamWindow(50, False, True, 0))
    plain, other = made("A ; B", {"B": HIGHER}, StreamWindow(50, False, True, 0))
    rng = random.Random(3)
    rows = [(rng.choice(["A", "A", "B"]), rng.randrange(10**6)) for _ in range(3_000)]
    found, expected = [], []
    for start in range(0, len(rows), 30):
        part = rows[start : start + 30]
        found.append(count(kernel, dictionary, stream(dictionary, part, start)))
        expected.append(count(plain, other, stream(other, part, start)))
        dictionary.sweep()
    assert found == expected
    assert sum(expected) > 500
    assert len(dictionary) < 500


# --- what it is for -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seq", "body", "reason"),
    [
        (
            "A ; B",
            "FILTER(?b = ?a || NOT EXISTS { ?a :v ?b })",
            "no filter between GPMs asks EXISTS; here NOT EXISTS { ?a :v ?b } (1:197)",
        ),
        (
            "A ; B",
            "FILTER(COALESCE(?a, RAND()) < ?b)",
            "no filter between GPMs asks NOW, RAND, UUID, "
            "STRUUID, BNODE or a function that is not deterministic; here RAND() (1:199)",
        ),
        (
            "A ; B+",
            "FILTER(SUM(STRLEN(?b) + STRLEN(?a)) < 9)",
            "aggregates between GPMs are COUNT, SUM, AVG, MIN, MAX, FIRST or LAST, without DISTINCT, "
            "of a variable or of what one GPM surely binds; here SUM(STRLEN(?b) + STRLEN(?a)) (1:187)",
        ),
        (
            "A ; (B+)+",
            "FILTER(?b > PREV(?b))",
            "aggregates and PREV are of Kleenes that are in no other; here ?b",
        ),
    ],
)
def test_a_plan_says_why_not(seq: str, body: str, reason: str) -> None:
    names = [name for name in "ABC" if name in seq]
    gpms = " ".join(
        f"DEFINE GPM {n} ON S {{ [] :v ?{n.lower()} . {body if n == 'B' else ''} }}" for n in names
    )
    text = f"SELECT * WITHIN 1 SECONDS FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        choice = choose(normalise(parse("PREFIX : <http://example.org/> " + text)))
    assert choice.name == "interpreter"
    assert in_words(dict(choice.otherwise)["nfa"]) == [reason]
