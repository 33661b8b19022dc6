"""Patterns on words, with variables: ``@x.a.@x`` (du Mouza, Rigaux and Scholl, sections 3 and 5.1).

A variable stands for any one symbol, and for the same one wherever it occurs. Patterns are ordered by
containment; up to the names of variables, two of them have a least upper bound.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from spaseq.errors import PatternError
from spaseq.matching.kmp import _kernel as k
from spaseq.matching.kmp.program import LONGEST, Blocks, KmpProgram, Layout, compile_blocks


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a pattern, without its ``@``."""

    name: str

    def __str__(self) -> str:
        return f"@{self.name}"


#: A symbol of the alphabet (anything hashable), or a variable.
Term = Hashable


@dataclass(frozen=True, slots=True)
class Pattern:
    """A word of symbols and variables; ``unequal`` are pairs of terms that must not be the same symbol.

    Raises ``PatternError`` for a pattern without symbols, and for inequalities of something with itself,
    of two constants, or of a variable that is not in the pattern.

    >>> pattern = Pattern.parse("@x.a.@y", "@x != @y")
    >>> pattern.occurrences("bacab")
    [0, 2]
    >>> str(pattern)
    '@x.a.@y where @x != @y'
    """

    symbols: tuple[Term, ...]
    unequal: frozenset[frozenset[Term]] = frozenset()

    def __post_init__(self) -> None:
        if not self.symbols:
            raise PatternError("a pattern has at least one symbol")
        for pair in self.unequal:
            shown = " != ".join(sorted(map(str, pair)))
            variables = {term for term in pair if isinstance(term, Variable)}
            if len(pair) != 2:
                raise PatternError(f"nothing differs from itself: {shown} != {shown}")
            if not variables:
                raise PatternError(f"an inequality needs a variable: {shown}")
            if not variables <= set(self.symbols):
                raise PatternError(f"a variable of {shown} is not in the pattern")

    def __len__(self) -> int:
        return len(self.symbols)

    def __str__(self) -> str:
        word = ".".join(map(str, self.symbols))
        unequal = [" != ".join(sorted(map(str, pair), key=_variables_first)) for pair in self.unequal]
        return f"{word} where {', '.join(sorted(unequal))}" if unequal else word

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, in the order of their first occurrences."""
        return tuple(dict.fromkeys(term for term in self.symbols if isinstance(term, Variable)))

    @classmethod
    def parse(cls, text: str, *unequal: str) -> Pattern:
        """Parse a pattern: its symbols with dots between them, variables with ``@`` in front.

        ``unequal`` are inequalities: ``"@x != @y"``, ``"@x != a"``. Raises ``PatternError``.
        """
        pairs = []
        for text_of_pair in unequal:
            sides = [side.strip() for side in text_of_pair.split("!=")]
            if len(sides) != 2:
                raise PatternError(f"not an inequality: {text_of_pair!r}; write @x != @y or @x != a")
            pairs.append(frozenset(_term(side, text_of_pair) for side in sides))
        return cls(tuple(_term(part.strip(), text) for part in text.split(".")), frozenset(pairs))

    def occurrences(self, word: Sequence[Hashable]) -> list[int]:
        """Return where in a word the pattern begins, in ascending order: all occurrences, also overlapping
        ones.

        Raises ``PatternError`` for patterns of more than 62 symbols.
        """
        # Imported here, because compiled code takes a while to load.

        return search(self, word).occurrences

    def matches(self, word: Sequence[Hashable]) -> bool:
        """Return whether the pattern begins at the first symbol of a word."""
        if len(word) < len(self):
            return False
        bound: dict[Term, Hashable] = {}
        for term, symbol in zip(self.symbols, word, strict=False):
            if (bound.setdefault(term, symbol) if isinstance(term, Variable) else term) != symbol:
                return False
        return all(len({bound.get(term, term) for term in pair}) == 2 for pair in self.unequal)


def _variables_first(shown: str) -> tuple[bool, str]:
    return (not shown.startswith("@"), shown)


def _term(text: str, whole: str) -> Term:
    if text in ("", "@"):
        raise PatternError(f"a symbol is missing in {whole!r}")
    return Variable(text[1:]) if text.startswith("@") else text


def contains(general: Pattern, special: Pattern) -> bool:
    """Return whether ``general`` occurs wherever ``special`` does, in every word that is long enough.

    The alphabet is assumed infinite: containments that only hold in a small alphabet may be missed.
    """
    images: dict[Term, Term] = {}
    beyond = (Variable(f" {i}") for i in count())
    for i, term in enumerate(general.symbols):
        image = special.symbols[i] if i < len(special) else next(beyond)
        if (images.setdefault(term, image) if isinstance(term, Variable) else term) != image:
            return False
    return all(
        _differ(frozenset(images.get(term, term) for term in pair), special) for pair in general.unequal
    )


def _differ(pair: frozenset[Term], pattern: Pattern) -> bool:
    """Return whether two terms are different symbols in every word that a pattern matches."""
    if len(pair) == 1:
        return False
    return not any(isinstance(term, Variable) for term in pair) or pair in pattern.unequal


def normal_form(pattern: Pattern) -> Pattern:
    """Return the equivalent pattern with variables ``x1``, ``x2``, … and a last symbol that is a condition.

    >>> str(normal_form(Pattern.parse("@y.c.@x.@y.@z")))
    '@x1.c.@x2.@x1'
    """
    used = {term for pair in pattern.unequal for term in pair}
    symbols = list(pattern.symbols)
    # A variable at the end that occurs nowhere else matches any symbol.
    while len(symbols) > 1 and _says_nothing(symbols[-1], symbols[:-1], used):
        symbols.pop()
    numbers = {v: Variable(f"x{i}") for i, v in enumerate(_variables(symbols), 1)}
    return Pattern(
        _renamed(symbols, numbers), frozenset(frozenset(_renamed(p, numbers)) for p in pattern.unequal)
    )


def _says_nothing(last: Term, others: Sequence[Term], used: set[Term]) -> bool:
    return isinstance(last, Variable) and last not in others and last not in used


def _variables(terms: Iterable[Term]) -> list[Variable]:
    return list(dict.fromkeys(term for term in terms if isinstance(term, Variable)))


def _renamed(terms: Iterable[Term], names: Mapping[Variable, Variable]) -> tuple[Term, ...]:
    return tuple(names[term] if isinstance(term, Variable) else term for term in terms)


def least_upper_bound(first: Pattern, second: Pattern) -> Pattern:
    """Return the most special pattern without inequalities that contains both, in normal form.

    >>> str(least_upper_bound(Pattern.parse("b.a.c.a"), Pattern.parse("b.d.c.d")))
    'b.@x1.c.@x1'
    """
    numbers: dict[tuple[Term, Term], Term] = {}
    for a, b in zip(first.symbols, second.symbols, strict=False):
        same = a == b and not isinstance(a, Variable)
        numbers.setdefault((a, b), a if same else Variable(f"{len(numbers)}"))
    pairs = zip(first.symbols, second.symbols, strict=False)
    return normal_form(Pattern(tuple(numbers[pair] for pair in pairs)))


# Searching words for patterns with variables.

#: The most occurrences that the kernel returns at a time.
_ROOM: Final = 4_096


@dataclass(frozen=True, slots=True)
class WordSearch:
    """The occurrences found, and the work.

    Every symbol of the word was compared once (``comparisons``). ``stops[l]`` says how often the search
    stopped before place l of the pattern. Each stop takes at most as many operations on masks as variables
    are bound; ``masks`` is the number of operations.
    """

    occurrences: list[int]
    comparisons: int
    masks: int
    stops: tuple[int, ...]


def search(pattern: Pattern, word: Sequence[Hashable]) -> WordSearch:
    """Return all occurrences of a pattern in a word. Raises ``PatternError`` for a pattern of over 62
    symbols.
    """
    program, codes = compile_pattern(pattern)
    numbers: dict[Hashable, int] = {}
    symbols = np.array([numbers.setdefault(symbol, len(numbers)) for symbol in word], dtype=np.int64)
    of_symbol = np.array([codes.get(symbol, 0) for symbol in numbers], dtype=np.int64)
    return search_numbers(program, np.stack([of_symbol[symbols], symbols]), len(pattern))


def compile_pattern(pattern: Pattern) -> tuple[KmpProgram, dict[Hashable, int]]:
    """Return a pattern for the kernel, and the codes of its constants.

    A word is two tracks: the codes of its symbols (0 for symbols that are not in the pattern), and the
    symbols as numbers.
    """
    if len(pattern) > LONGEST:
        raise PatternError(f"a pattern of {len(pattern)} symbols: at most {LONGEST} can be searched for")
    blocks, codes = as_blocks(pattern)
    return compile_blocks(blocks, Layout(codes=(0,), symbols=(1,))), codes


def as_blocks(pattern: Pattern) -> tuple[Blocks, dict[Hashable, int]]:
    """Return a pattern on words as one of blocks with one track, and the codes of its constants.

    >>> from spaseq.matching.kmp.patterns import Pattern
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


def search_numbers(program: KmpProgram, symbols: k.Ints, size: int) -> WordSearch:
    """Search a word that is given as two tracks; see ``compile_pattern``."""
    count = symbols.shape[1]
    stops = np.zeros(size + 2, dtype=np.int64)
    state = np.zeros((1, k.HEADER + size * (program.tracks + 2)), dtype=np.int64)
    found = np.zeros((_ROOM, size + 2), dtype=np.int64)
    zeros, places = np.zeros(count, dtype=np.int64), np.arange(count, dtype=np.int64)
    word = k.Symbols(symbols, np.zeros(count, dtype=np.bool_), zeros, places, zeros)
    machine = program.machine(state, found, stops)
    occurrences: list[int] = []
    begin = 0
    while begin < count:
        begin, new = k.run(machine, word, begin, 0)
        occurrences += found[:new, 0].tolist()
    *stopped, masks = stops.tolist()
    return WordSearch(occurrences, count, masks, tuple(stopped))


def _shown(pair: frozenset[Hashable]) -> list[str]:
    return sorted(map(str, pair))
