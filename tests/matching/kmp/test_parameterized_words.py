"""Parameterized patterns on words: brute force agrees about occurrences, order and bounds of patterns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import PatternError
from spaseq.matching.kmp.patterns import (
    Pattern,
    Term,
    Variable,
    as_blocks,
    contains,
    least_upper_bound,
    normal_form,
    search,
)
from spaseq.matching.kmp.program import (
    Cell,
    ConditionKind,
    EdgeCondition,
    KmpEdge,
    PatternConstant,
    edges,
)
from spaseq.matching.kmp.tree import PatternTree
from tests.conftest import examples

parse = Pattern.parse
VARIABLES = [Variable(name) for name in "xyz"]


@st.composite
def patterns(draw: st.DrawFn, symbols: str = "abc", longest: int = 7, unequal: bool = True) -> Pattern:
    terms = st.one_of(st.sampled_from(symbols), st.sampled_from(VARIABLES))
    word = tuple(draw(st.lists(terms, min_size=1, max_size=longest)))
    variables = sorted({term for term in word if isinstance(term, Variable)}, key=str)
    pairs: set[frozenset[Term]] = set()
    if variables and unequal:
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            one = draw(st.sampled_from(variables))
            other: Term = draw(st.sampled_from([*variables, *symbols]))
            if other != one:
                pairs.add(frozenset((one, other)))
    return Pattern(word, frozenset(pairs))


def words(symbols: str = "abcd", longest: int = 40) -> st.SearchStrategy[str]:
    return st.integers(1, len(symbols)).flatmap(lambda n: st.text(symbols[:n], max_size=longest))


def by_hand(pattern: Pattern, word: str) -> list[int]:
    found = []
    for i in range(len(word) - len(pattern) + 1):
        part = word[i : i + len(pattern)]
        for values in product(sorted(set(word) | {"!"}), repeat=len(pattern.variables)):
            valuation = dict(zip(pattern.variables, values, strict=True))
            image: Callable[[Term], Term] = lambda term, v=valuation: v.get(term, term)  # noqa: E731
            if tuple(map(image, pattern.symbols)) == tuple(part) and all(
                len(set(map(image, pair))) == 2 for pair in pattern.unequal
            ):
                found.append(i)
                break
    return found


# --- occurrences ----------------------------------------------------------------------------------


@settings(max_examples=examples(400))
@given(patterns(), words())
def test_occurrences(pattern: Pattern, word: str) -> None:
    expected = by_hand(pattern, word)
    assert pattern.occurrences(word) == expected
    assert [i for i in range(len(word)) if pattern.matches(word[i:])] == expected


@settings(max_examples=examples(500))
@given(patterns("ab", 14), words("ab", 120))
def test_occurrences_of_long_patterns_in_small_alphabets(pattern: Pattern, word: str) -> None:
    expected = [i for i in range(len(word)) if pattern.matches(word[i:])]
    found = search(pattern, word)
    assert found.occurrences == expected
    assert found.comparisons == len(word)
    # Each stop takes at most a mask for each variable bound there, the current symbol, and each pair of them.
    bound = [
        len({t for t in pattern.symbols[:i] if isinstance(t, Variable)}) for i in range(1 + len(pattern))
    ]
    most = sum(n * (1 + b + (b + 1) * b // 2) for n, b in zip(found.stops, bound, strict=True))
    assert found.masks <= most


def test_without_variables_it_is_kmp() -> None:
    """One comparison a symbol, and a mask only where the current symbol is asked about."""
    found = search(parse("a.b.a.c"), "abab" * 500)
    assert found.occurrences == []
    assert found.masks <= sum(found.stops)
    assert found.stops[3] > 900


def test_occurrences_overlap() -> None:
    assert parse("@x.@y.@x").occurrences("ababa") == [0, 1, 2]
    assert parse("@x.@x").occurrences("aaaa") == [0, 1, 2]
    assert parse("@x.@y.@x", "@x != @y").occurrences("aabab") == [1, 2]
    assert parse("@x", "@x != b").occurrences("abc") == [0, 2]


def test_symbols_are_anything_hashable() -> None:
    pattern = Pattern((Variable("page"), 7, Variable("page")))
    assert pattern.occurrences([("a",), 7, ("a",), 7, None]) == [0]
    assert Pattern(("a",)).occurrences([]) == []


def test_more_occurrences_than_are_handed_over_at_a_time() -> None:
    assert parse("@x.a").occurrences("a" * 10_000) == list(range(9_999))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pattern(()), "at least one symbol"),
        (lambda: parse("a..b"), "a symbol is missing in 'a..b'"),
        (lambda: parse("a.@"), "a symbol is missing"),
        (lambda: parse("@x.a", "@x = a"), "not an inequality: '@x = a'; write @x != @y"),
        (lambda: parse("@x.a", "@x != @x"), "nothing differs from itself: @x != @x"),
        (lambda: parse("@x.a", "a != b"), "an inequality needs a variable: a != b"),
        (lambda: parse("@x.a", "@y != @x"), "a variable of @x != @y is not in the pattern"),
        (lambda: parse(".".join("a" * 63)).occurrences("a"), "63 symbols: at most 62"),
    ],
)
def test_errors(make: Callable[[], object], message: str) -> None:
    with pytest.raises(PatternError, match=message.replace(".", r"\.")):
        make()


def test_the_longest_pattern() -> None:
    pattern = parse(".".join(["@x", "a"] * 31))
    assert pattern.occurrences("ba" * 40) == list(range(0, 20, 2))


# --- the table of edges ---------------------------------------------------------------------------


def _edges(text: str, stop: int) -> list[KmpEdge]:
    return list(edges(as_blocks(parse(text))[0], stop))


def test_edges() -> None:
    """a.b.@x.a.b.a, stopped at place 5: three symbols fit if the current one may be @x; it may."""
    blocks, codes = as_blocks(parse("a.b.@x.a.b.a"))
    shortest, one, longest = edges(blocks, 5)
    assert (shortest.length, shortest.conditions) == (0, ())
    assert one.length == 1
    assert one.conditions == (EdgeCondition(ConditionKind.IS, Cell(5, 0), PatternConstant(codes["a"])),)
    assert (longest.length, longest.conditions) == (3, ())
    assert longest.substitution == {0: Cell(5, 0)}


def test_an_edge_asks_about_variables() -> None:
    """Moved by 3, the first two symbols of @x.b.@y.@z.@z must be equal to @z and b."""
    found = {edge.length: edge for edge in _edges("@x.b.@y.@z.@z", 5)}
    assert found[2].conditions == (EdgeCondition(ConditionKind.IS, Cell(3, 0), PatternConstant(1)),)
    assert found[2].substitution == {0: Cell(3, 0)}
    same = {edge.length: edge for edge in _edges("@x.@x.@y.@z", 4)}
    assert same[2].conditions == (EdgeCondition(ConditionKind.SAME, Cell(3, 0), Cell(2, 0)),)


def test_no_edge_where_constants_differ() -> None:
    assert [edge.length for edge in _edges("a.b.c.a.b.c.b", 6)] == [0, 1, 4]
    assert [edge.length for edge in _edges("a.b.c.a.b.c.b", 7)] == [0]


@settings(max_examples=examples(300))
@given(patterns("ab", 7), words("ab", 30))
def test_edges_are_what_brute_force_finds(pattern: Pattern, word: str) -> None:
    """Where an attempt stops, an edge applies iff the last symbols match so much of the pattern."""
    blocks, codes = as_blocks(pattern)
    size = len(pattern)
    for begin in range(len(word)):
        stop = max(n for n in range(size + 1) if _prefix_matches(pattern, word[begin:], n))
        read = word[begin : begin + stop + (stop < size)]
        if len(read) < stop + (stop < size):
            continue
        holding = {edge.length for edge in edges(blocks, stop) if _applies(edge, read, codes)}
        ends = {n for n in range(len(read)) if _prefix_matches(pattern, read[len(read) - n :], n)}
        assert holding == ends


def _prefix_matches(pattern: Pattern, word: str, length: int) -> bool:
    part = pattern.symbols[:length]
    pairs = {p for p in pattern.unequal if all(t in part for t in p if isinstance(t, Variable))}
    return length == 0 or Pattern(part, frozenset(pairs)).matches(word)


def _applies(edge: KmpEdge, read: str, codes: dict[Term, int]) -> bool:
    def holds(condition: EdgeCondition) -> bool:
        symbol, other = read[condition.cell.offset], condition.other
        if isinstance(other, PatternConstant):
            same = codes.get(symbol) == other.code
        else:
            same = symbol == read[other.offset]
        return same == (condition.kind in (ConditionKind.IS, ConditionKind.SAME))

    return all(map(holds, edge.conditions))


# --- containment ----------------------------------------------------------------------------------

#: More symbols than two small patterns can tell apart.
ALPHABET = "abcdefgh"


@settings(max_examples=examples(250), deadline=None)
@given(patterns("ab", 3), patterns("ab", 4))
@pytest.mark.slow
def test_containment_is_that_of_all_words(general: Pattern, special: Pattern) -> None:
    longest = max(len(general), len(special))
    counterexample = any(
        special.matches(word) and not general.matches(word) for word in product(ALPHABET, repeat=longest)
    )
    assert contains(general, special) == (not counterexample)


@given(patterns())
def test_normal_form_is_equivalent(pattern: Pattern) -> None:
    normal = normal_form(pattern)
    assert contains(normal, pattern)
    assert contains(pattern, normal)
    assert normal_form(normal) == normal


@settings(max_examples=examples(500))
@given(patterns("ab", 3), patterns("ab", 3))
def test_equivalent_patterns_have_one_normal_form(first: Pattern, second: Pattern) -> None:
    equivalent = contains(first, second) and contains(second, first)
    assert (normal_form(first) == normal_form(second)) == equivalent


@settings(max_examples=examples(500))
@given(patterns("ab", 4, unequal=False), patterns("ab", 4, unequal=False), patterns("ab", 4, unequal=False))
def test_least_upper_bound(first: Pattern, second: Pattern, other: Pattern) -> None:
    bound = least_upper_bound(first, second)
    assert contains(bound, first)
    assert contains(bound, second)
    if contains(other, first) and contains(other, second):
        assert contains(other, bound)


def test_containment_by_example() -> None:
    assert contains(parse("a.@x.b"), parse("a.c.b"))
    assert not contains(parse("a.c.b"), parse("a.@x.b"))
    assert contains(parse("a.@x.b.@y"), parse("a.@x.b.@x"))
    assert not contains(parse("a.@x.b.@x"), parse("a.@x.b.@y"))
    assert contains(parse("a.@x"), parse("a"))
    assert contains(parse("@x.@y", "@x != @y"), parse("a.b.c"))
    assert not contains(parse("@x.@y", "@x != @y"), parse("@x.@y"))
    assert str(least_upper_bound(parse("b.a.d"), parse("b.a.a"))) == "b.a"
    assert str(least_upper_bound(parse("b.a.d"), parse("d.a.d"))) == "@x1.a.d"


# --- the tree -------------------------------------------------------------------------------------


@settings(max_examples=examples(300))
@given(st.lists(patterns("ab", 5), max_size=12), words("abc", 60))
def test_the_tree_finds_what_each_pattern_finds(some: list[Pattern], word: str) -> None:
    tree = PatternTree(some)
    found = tree.search(word)
    assert found.occurrences == {pattern: by_matching(pattern, word) for pattern in some}
    for node in tree.nodes():
        for child in node.children:
            assert contains(node.pattern, child.pattern)
            assert not contains(child.pattern, node.pattern)
    assert sum(len(node.registered) for node in tree.nodes()) == len(tree) == len(set(some))


def by_matching(pattern: Pattern, word: str) -> list[int]:
    return [i for i in range(len(word)) if pattern.matches(word[i:])]


def test_the_tree_compares_what_patterns_share_once() -> None:
    some = [parse(f"g.{a}.d.{b}") for a in "abcdef" for b in "abcdef"]
    word = "gadagbdcgcddgg" * 20
    alone = sum(PatternTree([pattern]).search(word).comparisons for pattern in some)
    tree = PatternTree(some)
    assert str(tree.root.children[0].pattern).startswith("g.@x1.d")
    assert tree.search(word).comparisons < alone / 5
