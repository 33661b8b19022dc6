"""CONSUME ANY in the runs kernel: a match ends the other runs of its partition."""

from __future__ import annotations

import random

import pytest
from pyoxigraph import Literal

from spaseq.matching.context import Context
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.nfa.tables.compiling import obstacles
from spaseq.matching.obstacles import Obstacle
from spaseq.terms.dictionary import Dictionary
from tests.matching.blocks import singly
from tests.matching.kernel_cases import batches, by_kernel, by_runs, whole
from tests.matching.nfa.test_kernel import stream
from tests.matching.random_sequences import pattern_of, random_query, random_sample


@pytest.mark.parametrize("sequence", ["A ; B", "A , B+[:] , C", "(A & B) ; C", "A ; !B : C", "(A & B)+"])
def test_long_streams(sequence: str) -> None:
    """So long that the memory is swept and grows."""
    rng = random.Random(sequence)
    query = random_query(rng, sequences=[sequence], kernel=True)
    while "CONSUME" not in query.text:
        query = random_query(rng, sequences=[sequence], kernel=True)
    sample = whole(random_sample(rng, query, 400), StreamWindow(6, False, True, 0), 90, 30, 140)
    assert by_kernel(sample) == by_runs(sample)


QUERY = """
    PREFIX : <http://example.org/>
    SELECT * WITHIN 9 SECONDS PARTITION BY ?k FROM STREAM S :s
    WHERE { SEQ(A ; B)
            DEFINE GPM A ON S { [] :v ?a ; :k ?k }
            DEFINE GPM B ON S { [] :v ?b ; :k ?k . FILTER(?b > ?a) } }
    CONSUME ANY
"""


def test_runs_in_a_heap_go() -> None:
    """The run of 9 is not part of the match, and still dropped by it; one of another partition is not."""
    dictionary = Dictionary()
    pattern = pattern_of(QUERY)
    context = Context(pattern, dictionary, lambda *_: False)
    kernel = NfaMatcher(pattern, dictionary, context, StreamWindow(9, False, True, 0))
    events = stream(dictionary, [("A", 1), ("A", 9), ("A", 9), ("B", 5), ("A", 8), ("B", 10)])
    other = dictionary.intern(Literal("other"))
    events[2].solutions["A"][0]["k"] = other  # type: ignore[index]  # it is a dict
    found = [match for part in batches(events, dictionary, []) for _, match in singly(kernel.process(*part))]
    assert [match.span for match in found] == [(0, 3), (4, 5)]


def test_with_matches_that_wait_it_is_beyond_the_tables() -> None:
    (obstacle,) = obstacles(pattern_of(QUERY.replace("A ; B)", "A ; B?)")))
    assert obstacle == Obstacle("no match that waits for its window's end is consumed", "CONSUME ANY")
