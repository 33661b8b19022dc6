"""Searching words for patterns with variables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from spaseq.errors import PatternError
from spaseq.matching.parameterized import _kernel as k
from spaseq.matching.parameterized.program import Layout, Program, compile_blocks
from spaseq.matching.parameterized.table import LONGEST, Blocks

if TYPE_CHECKING:
    from spaseq.matching.parameterized.patterns import Pattern

#: Occurrences that the kernel hands over at a time.
_ROOM: Final = 4_096


@dataclass(frozen=True, slots=True)
class Search:
    """What was found, and what it took.

    Every symbol of the word was compared once (``comparisons``). ``stops[l]`` says how often the search
    stopped before place l of the pattern; each time it took at most as many operations on masks as variables
    were bound; ``masks`` is how many there really were.
    """

    occurrences: list[int]
    comparisons: int
    masks: int
    stops: tuple[int, ...]


def search(pattern: Pattern, word: Sequence[Hashable]) -> Search:
    """All occurrences of a pattern in a word. Raises ``PatternError`` for a pattern of over 62 symbols."""
    program, codes = compile_pattern(pattern)
    numbers: dict[Hashable, int] = {}
    symbols = np.array([numbers.setdefault(symbol, len(numbers)) for symbol in word], dtype=np.int64)
    of_symbol = np.array([codes.get(symbol, 0) for symbol in numbers], dtype=np.int64)
    return search_numbers(program, np.stack([of_symbol[symbols], symbols]), len(pattern))


def compile_pattern(pattern: Pattern) -> tuple[Program, dict[Hashable, int]]:
    """A pattern for the kernel, and the codes of its constants.

    A word is two tracks: the codes of its symbols (0 for those not in the pattern), and the symbols as
    numbers.
    """
    if len(pattern) > LONGEST:
        raise PatternError(f"a pattern of {len(pattern)} symbols: at most {LONGEST} can be searched for")
    blocks, codes = as_blocks(pattern)
    return compile_blocks(blocks, Layout(codes=(0,), symbols=(1,))), codes


def as_blocks(pattern: Pattern) -> tuple[Blocks, dict[Hashable, int]]:
    """A pattern on words as one of blocks with one track, and the codes of its constants.

    >>> from spaseq.matching.parameterized.patterns import Pattern
    >>> blocks, codes = as_blocks(Pattern.parse("@x.a.@x"))
    >>> blocks.constants, blocks.variables, codes
    (({}, {0: 1}, {}), ({0: 0}, {}, {0: 0}), {'a': 1})
    """
    variables: dict[Hashable, int] = {variable: n for n, variable in enumerate(pattern.variables)}
    terms = [*pattern.symbols, *(term for pair in sorted(pattern.unequal, key=_shown) for term in pair)]
    constants = dict.fromkeys(term for term in terms if term not in variables)
    codes = {term: code for code, term in enumerate(constants, 1)}
    unequal, unlike = [], []
    for pair in pattern.unequal:
        x, *rest = (variables[term] for term in pair if term in variables)
        if rest:
            unequal.append((x, rest[0]))
        else:
            unlike += [(x, codes[term]) for term in pair if term not in variables]
    blocks = Blocks(
        constants=tuple({} if t in variables else {0: codes[t]} for t in pattern.symbols),
        variables=tuple({0: variables[t]} if t in variables else {} for t in pattern.symbols),
        unequal=tuple(sorted(unequal)),
        unlike=tuple(sorted(unlike)),
        codes=len(codes),
    )
    return blocks, codes


def search_numbers(program: Program, symbols: k.Ints, size: int) -> Search:
    """A search in a word that is given as two tracks; see ``compile_pattern``."""
    count = symbols.shape[1]
    stops = np.zeros(size + 2, dtype=np.int64)
    state = np.zeros((1, k.HEADER + size * (program.tracks + 2)), dtype=np.int64)
    found = np.zeros((_ROOM, size + 2), dtype=np.int64)
    zeros, places = np.zeros(count, dtype=np.int64), np.arange(count, dtype=np.int64)
    sure = np.zeros(count, dtype=np.bool_)
    occurrences: list[int] = []
    begin = 0
    while begin < count:
        begin, new = k.run(
            program.rows,
            program.at,
            program.alive,
            program.masks,
            symbols,
            sure,
            zeros,
            places,
            zeros,
            state,
            found,
            stops,
            begin,
            0,
        )
        occurrences += found[:new, 0].tolist()
    *stopped, masks = stops.tolist()
    return Search(occurrences, count, masks, tuple(stopped))


def _shown(pair: frozenset[Hashable]) -> list[str]:
    return sorted(map(str, pair))
