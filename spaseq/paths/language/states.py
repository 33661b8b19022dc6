"""Automata of path expressions as numbers, and the smallest ones among equals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from spaseq.paths.language.expression import Symbol


@dataclass(frozen=True, slots=True)
class States:
    """An automaton: state 0 is the initial one; edges are (source, number of a symbol, target)."""

    size: int
    symbols: tuple[Symbol, ...]
    edges: tuple[tuple[int, int, int], ...]
    accepting: frozenset[int]


def merge(states: States) -> States:
    """The same with states merged from which the same words lead to acceptance (Moore's refinement)."""
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(states.size)]
    for source, symbol, target in states.edges:
        leaving[source].append((symbol, target))
    followers = [[target for _, target in some] for some in leaving]
    before = _turned(followers)
    # From equal states the shortest and the longest word are equally long. To begin with that separates the
    # copies of a part with bounds at once, not one a round.
    lengths = zip(_shortest(before, states.accepting), _longest(followers, before), strict=True)
    block, count = _classes(lengths)
    while count < states.size:
        keys = [
            (block[state], frozenset([(symbol, block[target]) for symbol, target in some]))
            for state, some in enumerate(leaving)
        ]
        block, refined = _classes(keys)
        if refined == count:
            break
        count = refined
    edges = dict.fromkeys([(block[source], symbol, block[target]) for source, symbol, target in states.edges])
    return States(
        count, states.symbols, tuple(edges), frozenset([block[state] for state in states.accepting])
    )


def _classes(keys: Iterable[Hashable]) -> tuple[list[int], int]:
    """Equal keys as equal numbers, from 0 on; and how many there are."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys], len(numbers)


def _shortest(before: Sequence[Sequence[int]], accepting: Iterable[int]) -> list[int]:
    """Of each state, how many edges acceptance is away."""
    distance = [-1] * len(before)
    reached = list(accepting)
    for state in reached:
        distance[state] = 0
    for state in reached:  # which grows
        for previous in before[state]:
            if distance[previous] < 0:
                distance[previous] = distance[state] + 1
                reached.append(previous)
    return distance


def _longest(followers: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> list[int]:
    """Of each state, how many edges can follow at most; -1 if there is no end to them."""
    left = [len(some) for some in followers]
    height = [-1] * len(followers)
    done = [state for state, count in enumerate(left) if count == 0]
    length = 0
    while done:
        further = []
        for state in done:
            height[state] = length
            for previous in before[state]:
                left[previous] -= 1
                if left[previous] == 0:
                    further.append(previous)
        done, length = further, length + 1
    return height


def _turned(followers: Sequence[Sequence[int]]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in followers]
    for state, some in enumerate(followers):
        for after in some:
            before[after].append(state)
    return before
