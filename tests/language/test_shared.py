"""What queries of one template have in common: leaves of their trees, each at its own place."""

from __future__ import annotations

import tracemalloc

import pytest

import spaseq
from spaseq.language.reading import shared
from tests.streams import query


def _text(number: int) -> str:
    return query("A ; B", gpms={"B": f"FILTER(?bv > {number})"})


def test_two_queries_share_leaves_and_differ_in_their_constants() -> None:
    one, other = spaseq.prepare(_text(1_234)), spaseq.prepare(_text(5_678))
    assert one != other
    assert one.text != other.text
    assert one.sequence == other.sequence
    pairs = zip(one.gpms, other.gpms, strict=True)
    assert [a.pattern == b.pattern for a, b in pairs] == [True, False]
    assert one.prefixes is other.prefixes
    assert one.streams[0] is other.streams[0]


@pytest.mark.parametrize("before", ["", "  ", "\n\n"])
def test_equal_leaves_at_other_places_keep_theirs(before: str) -> None:
    """A place is no part of what makes two nodes equal, and yet of what is shared."""
    (declared,) = spaseq.prepare(before + _text(1)).streams
    assert declared.span is not None
    place = len(before) + _text(1).index("FROM STREAM")
    assert (declared.span.start, declared.span.line) == (place, (before + _text(1))[:place].count("\n") + 1)
    wrong = before + _text(1).replace("?bv > 1", "?bv > ?none")
    with pytest.raises(spaseq.QueryError) as error:
        spaseq.prepare(wrong)
    said = error.value
    at = wrong.index("?none")
    assert said.lineno == wrong[:at].count("\n") + 1
    assert said.offset == at - wrong.rfind("\n", 0, at)


def test_what_is_long_is_not_kept() -> None:
    """Who may send queries must not fill the memory with long literals."""
    shared._literal.cache_clear()
    spaseq.prepare(_text(1).replace("?bv > 1", f'?bv > "{"x" * 5_000}"^^<urn:t>'))
    assert shared._literal.cache_info().currsize <= 1
    assert shared.literal("x" * 5_000, shared.named_node("urn:t")).value == "x" * 5_000


def _bytes_of_further_queries() -> float:
    """What each of 500 queries of a template takes, behind 300 others in a new engine."""
    engine = spaseq.Engine()
    texts = [_text(1_000 + number) for number in range(800)]
    kept = [engine.register(text) for text in texts[:300]]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept += [engine.register(text) for text in texts[300:]]
        return (tracemalloc.get_traced_memory()[0] - before) / 500
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_further_query_of_a_template_takes_little_memory() -> None:
    """With its tree, its handle and its place among the others: 2.5 kB, after 7.1 kB.

    The first time, what a process remembers of texts grows, too, by as much as its tables happen to.
    """
    assert min(_bytes_of_further_queries() for _ in range(2)) < 3_000
