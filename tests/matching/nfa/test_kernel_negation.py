"""Negations in the runs kernel: what tables decide, what is asked exactly, and what is remembered for it."""

from __future__ import annotations

import random

import pytest

from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.exact import ExactRun
from spaseq.matching.nfa.records import header
from tests.matching.blocks import singly
from tests.matching.kernel_cases import batches, by_kernel, by_runs, whole
from tests.matching.nfa.test_kernel import count, made, stream
from tests.matching.random_sequences import random_query, random_sample

#: Negations in all places, and what they forbid.
SEQUENCES = (
    "A ; !B ; C",
    "A ; !(B | D) : C",
    "A ; !(B ; D) ; C",
    "A : !(B & D) : C",
    "!A ; B ; C",
    "(A ; !B ; C)+ ; D",
    "(!A ; B)+ ; C",
    "A ; !B ; !C : D",
    "!A ; !B : (C ; D)",
    "A ; !B",
    "!A ; B+ ; !(C & D)",
)


@pytest.mark.few(3, ci=8)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_long_streams(sequence: str, seed: int) -> None:
    """So long that the memory is swept and grows."""
    rng = random.Random(f"{sequence} {seed}")
    sample = random_sample(rng, random_query(rng, sequences=[sequence], kernel=True), 400)
    sample = whole(
        sample, StreamWindow(6, False, seed % 3 > 0, 0), *[rng.randrange(1, 150) for _ in range(5)]
    )
    assert by_kernel(sample) == by_runs(sample)


@pytest.mark.parametrize(
    ("seq", "body", "rows", "matches"),
    [
        ("A ; !B ; C", "", [("A", 1), ("C", 1), ("A", 1), ("B", 1), ("C", 1), ("A", 1), ("C", 1)], 2),
        ("A ; !B ; C", "FILTER(?b > ?a)", [("A", 5), ("B", 5), ("C", 1), ("A", 5), ("B", 6), ("C", 1)], 1),
        # A negation may ask what comes after it.
        ("A ; !B ; C", "FILTER(?b > ?c)", [("A", 1), ("B", 5), ("C", 5), ("A", 1), ("B", 5), ("C", 4)], 1),
        ("!B ; A , C", "FILTER(?b > ?a)", [("B", 3), ("A", 3), ("C", 1), ("A", 2), ("C", 1)], 1),
    ],
)
def test_the_tables_decide(
    seq: str, body: str, rows: list[tuple[str, int]], matches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(ExactRun, "stands", never)
    kernel, dictionary = made(seq, {"B": body}, StreamWindow(20, False, True, 0))
    assert count(kernel, dictionary, stream(dictionary, rows)) == matches


def test_what_tables_cannot_tell_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    stands = ExactRun.stands

    def asking(self: ExactRun, path: object, key: object) -> bool:
        asked.append(path)
        return stands(self, path, key)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(ExactRun, "stands", asking)
    rows = [("A", 2**53), ("B", 2**53 + 1), ("C", 1), ("A", 2**53 + 1), ("B", 2**53), ("C", 1)]
    kernel, dictionary = made("A ; !B ; C", {"B": "FILTER(?b > ?a)"}, StreamWindow(2, False, True, 0))
    assert count(kernel, dictionary, stream(dictionary, rows)) == 1
    assert len(asked) == 2


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("sliding", "matches"), [(True, 2), (False, 2)])
def test_what_leads_to_a_match_is_bounded_by_its_window(counted: bool, sliding: bool, matches: int) -> None:
    """B at 3 is in the window of the match at 4 and 5, but (sliding by 2, or from 6 on) of no later one."""
    kernel, dictionary = made("!B ; A , C", {}, StreamWindow(2 if sliding else 6, counted, sliding, 0))
    rows = [("A", 1), ("C", 1), ("", 0), ("B", 1), ("A", 1), ("C", 1), ("A", 1), ("C", 1)]
    assert count(kernel, dictionary, stream(dictionary, rows)) == matches


def test_entries_are_used_again() -> None:
    kernel, dictionary = made("A ; !B ; C", {"B": "FILTER(?b > ?a)"}, StreamWindow(20, False, True, 0))
    rng = random.Random(1)
    size = None
    for start in range(0, 20_000, 4_000):
        rows = [(rng.choice("ABBBC"), rng.randrange(50)) for _ in range(4_000)]
        count(kernel, dictionary, stream(dictionary, rows, start), *[500] * 7)
        size = size or len(kernel._memory.ints)
    assert len(kernel._memory.ints) <= 2 * (size or 0)
    assert kernel._memory.ints[header.LIVE_ENTRIES] < 2_000


# --- matches that wait for the end of their window ------------------------------------------------


def test_a_match_waits_for_the_end_of_its_window() -> None:
    kernel, dictionary = made("A ; !B", {}, StreamWindow(3, False, True, 0))
    first, second = batches(
        stream(dictionary, [("A", 1), ("", 0), ("A", 1), ("", 0), ("B", 1)]), dictionary, [4]
    )
    assert list(kernel.process(*first)) == []
    assert kernel.settled(3) == 0
    # The event at 4 ends the first one's window before it is looked at.
    assert [match.last.time for _, match in singly(kernel.process(*second))] == [0]
    assert kernel.settled(4) == 1
    assert list(kernel.close()) == []


def test_time_alone_ends_windows() -> None:
    kernel, dictionary = made("A ; !B", {}, StreamWindow(3, False, True, 0))
    (only,) = batches(stream(dictionary, [("A", 1), ("A", 1)]), dictionary, [])
    assert list(kernel.process(*only)) == []
    assert list(kernel.advance(3)) == []
    assert [match.last.time for _, match in singly(kernel.advance(4))] == [0]
    assert kernel.settled(4) == 1
    assert [match.last.time for _, match in singly(kernel.close())] == [1]


def test_matches_that_wait_survive_sweeps() -> None:
    """Of the memory, and of terms; what they look back at is remembered as long as they wait."""
    kernel, dictionary = made("A ; !B", {"B": "FILTER(?b = ?a)"}, StreamWindow(50, False, True, 0))
    rows = [("A" if i % 100 == 0 else "B", i) for i in range(3_000)]
    rows[305] = ("B", 300)
    found = 0
    for start in range(0, len(rows), 10):
        found += count(kernel, dictionary, stream(dictionary, rows[start : start + 10], start))
        dictionary.sweep()
    assert found + sum(map(len, kernel.close())) == 29
