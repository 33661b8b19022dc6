"""Search many patterns at once: in a tree, each pattern contains the patterns below it, and so filters them.

After du Mouza, Rigaux and Scholl, sections 5.2 to 5.4: a new pattern goes down to the most selective nodes
that contain it. Its least upper bound with a node there becomes a node above both. A node is tested only
where the node above was found, and compares only what the node above left open.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from spaseq.matching.kmp.patterns import (
    Pattern,
    Term,
    Variable,
    contains,
    least_upper_bound,
    normal_form,
)

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Node:
    """A pattern in normal form, the registered ones that it is equivalent to, and the nodes below it."""

    pattern: Pattern
    registered: list[Pattern] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Filtered:
    """Where each registered pattern begins, in ascending order, and how many symbols were compared."""

    occurrences: dict[Pattern, list[int]]
    comparisons: int


class PatternTree:
    """Registered patterns, searched for together.

    >>> tree = PatternTree(map(Pattern.parse, ["g.c.d", "g.b.d", "a.@x"]))
    >>> str(tree.root.children[0].pattern)
    'g.@x1.d'
    >>> {str(pattern): found for pattern, found in tree.search("gcdgbda").occurrences.items()}
    {'g.c.d': [0], 'g.b.d': [3], 'a.@x': []}
    """

    def __init__(self, patterns: Iterable[Pattern] = ()) -> None:
        # It contains every pattern.
        self.root = Node(Pattern.parse("@x1"))
        self._patterns: dict[Pattern, None] = {}
        for pattern in patterns:
            self.insert(pattern)

    def __len__(self) -> int:
        return len(self._patterns)

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes, each before those below it."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def insert(self, pattern: Pattern) -> None:
        """Register a pattern, unless it is registered already."""
        if pattern in self._patterns:
            return
        self._patterns[pattern] = None
        new = Node(normal_form(pattern), [pattern])
        parent = self.root
        while parent.pattern != new.pattern:
            above = [child for child in parent.children if contains(child.pattern, new.pattern)]
            if not above:
                _place(parent, new)
                return
            parent = max(above, key=lambda child: _selectivity(child.pattern))
        parent.registered.append(pattern)

    def search(self, word: Sequence[Hashable]) -> Filtered:
        """Return all occurrences of all registered patterns in a word."""
        numbers: dict[Hashable, int] = {}
        text = np.array([numbers.setdefault(symbol, len(numbers)) for symbol in word], dtype=np.int64)
        found: dict[Pattern, list[int]] = {pattern: [] for pattern in self._patterns}
        comparisons = 0
        waiting: list[tuple[Node, Pattern | None, Ints]] = [(self.root, None, np.arange(len(text)))]
        while waiting:
            node, above, places = waiting.pop()
            places = places[places <= len(text) - len(node.pattern)]
            for offset, other, same in _tests(node.pattern, above):
                comparisons += len(places)
                expected = text[places + other] if isinstance(other, int) else numbers.get(other[0], -1)
                places = places[(text[places + offset] == expected) == same]
            for pattern in node.registered:
                found[pattern] = places[places <= len(text) - len(pattern)].tolist()
            if len(places):
                waiting += [(child, node.pattern, places) for child in node.children]
        return Filtered(found, comparisons)


def _place(parent: Node, new: Node) -> None:
    """Put a node below a parent; no child of the parent contains it."""
    best: tuple[tuple[int, ...], int, Pattern] | None = None
    for i, child in enumerate(parent.children):
        common = least_upper_bound(new.pattern, child.pattern)
        if contains(parent.pattern, common) and not contains(common, parent.pattern):
            selectivity = _selectivity(common)
            if best is None or selectivity > best[0]:
                best = (selectivity, i, common)
    if best is None:
        parent.children.append(new)
        return
    _, i, common = best
    beside = parent.children[i]
    if contains(new.pattern, beside.pattern):
        new.children.append(beside)
        parent.children[i] = new
    else:
        parent.children[i] = Node(common, [], [beside, new])


def _selectivity(pattern: Pattern) -> tuple[int, ...]:
    """Return a sort key: the number of fixed symbols, then that of each prefix, since early failures cost
    little.
    """
    seen: set[Term] = set()
    fixed = []
    for term in pattern.symbols:
        fixed.append(int(not isinstance(term, Variable) or term in seen))
        seen.add(term)
    return (sum(fixed), *accumulate(fixed), len(pattern.unequal))


def _tests(pattern: Pattern, above: Pattern | None) -> Iterator[tuple[int, int | tuple[Term], bool]]:
    """Yield the comparisons needed where ``above``, which contains the pattern, was found.

    Each has a symbol's offset, another offset or a constant (as a tuple), and whether the two must be equal.
    """
    first: dict[Term, int] = {}
    images: dict[Term, Term] = {}
    for offset, term in enumerate(pattern.symbols):
        if above is not None and offset < len(above):
            general = above.symbols[offset]
            if general in images or not isinstance(general, Variable):
                continue  # compared already, with the same symbol or the same constant
            images[general] = term
        if not isinstance(term, Variable):
            yield offset, (term,), True
        elif term in first:
            yield offset, first[term], True
        else:
            first[term] = offset
    known = above.unequal if above is not None else frozenset()
    for pair in pattern.unequal - {frozenset(images.get(term, term) for term in pair) for pair in known}:
        one, other = sorted(pair, key=lambda term: not isinstance(term, Variable))
        yield first[one], first[other] if isinstance(other, Variable) else (other,), False
