"""``&`` in the runs kernel: several events of one time, or one event that serves several GPMs."""

from __future__ import annotations

import random

import pytest

from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.exact import RunReplay
from spaseq.matching.nfa.tables.compiling import obstacles
from spaseq.matching.obstacles import Obstacle
from tests.matching.kernel_cases import by_kernel, by_runs, whole
from tests.matching.nfa.test_kernel import count, made, stream
from tests.matching.random_sequences import pattern_of, random_query, random_sample

SEQUENCES = (
    "(A & B) ; C",
    "A , (B & C)",
    "A : (B & (C | D)) ; E",
    "(A & B)+ ; C",
    "!A ; (B & C)",
    "A ; !B ; (C & D)",
)


@pytest.mark.few(3, ci=6)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_long_streams(sequence: str, seed: int) -> None:
    """So long that the memory is swept and grows."""
    rng = random.Random(f"{sequence} {seed}")
    sample = random_sample(rng, random_query(rng, sequences=[sequence], kernel=True), 300)
    sample = whole(sample, StreamWindow(5, False, seed > 0, 0), *[rng.randrange(1, 150) for _ in range(5)])
    assert by_kernel(sample) == by_runs(sample)


@pytest.mark.parametrize(
    ("seq", "bodies", "rows", "matches"),
    [
        ("A ; (B & C)", {}, [("A", 1), ("B", 1), ("C", 1), ("BC", 1)], 1),
        # After the first event that is both, the run is gone.
        ("A ; (B & C)", {}, [("A", 1), ("BC", 1), ("BC", 1)], 1),
        ("A : (B & C)", {}, [("A", 1), ("BC", 1), ("BC", 1)], 2),
        ("A , (B & C)", {}, [("A", 1), ("B", 1), ("BC", 1), ("A", 1), ("BC", 1)], 1),
        # B's own filter sees no A beside it, since its `|` may bind that itself.
        ("A & (A | B)", {"B": "FILTER(?b < ?a)"}, [("AB", 1)], 1),
        # The filter needs both.
        ("A ; (B & C)", {"B": "FILTER(?b > ?a && ?b >= ?c)"}, [("A", 1), ("BC", 1), ("BC", 2)], 1),
    ],
)
def test_the_tables_decide(
    seq: str,
    bodies: dict[str, str],
    rows: list[tuple[str, int]],
    matches: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(RunReplay, "is_relevant", never)
    kernel, dictionary = made(seq, bodies, StreamWindow(9, False, True, 0))
    assert count(kernel, dictionary, stream(dictionary, rows)) == matches


def test_so_many_gpms_at_a_time_are_too_many() -> None:
    names = "ABCDE"
    gpms = " ".join(f"DEFINE GPM {n} ON S {{ [] :v ?{n.lower()} }}" for n in names)
    text = f"SELECT * WITHIN 1 SECONDS FROM STREAM S :s WHERE {{ SEQ({' & '.join(names)}) {gpms} }}"
    (obstacle,) = obstacles(pattern_of("PREFIX : <http://example.org/> " + text))
    assert obstacle == Obstacle("& gathers at most 4 GPMs", "A & B & C & D & E")
