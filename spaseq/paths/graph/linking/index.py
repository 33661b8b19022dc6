"""An index of names: finds equal and similar names, and the other ways in which people write a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.paths.graph.linking._kernel_index import Entries, Keys, gather, sort_entries, trigrams
from spaseq.paths.graph.saved.file import Array
from spaseq.paths.search._kernel import Ids, Nodes

Bytes = npt.NDArray[np.uint8]

#: Trigrams are taken from at most this many bytes of a name.
_LONGEST: Final = 64

_BUCKETS: Final = 1 << 16
_MULTIPLIER: Final = np.uint32(0x9E3779B1)
_GAP: Final = b"\0\0"

#: This many names with the most trigrams in common are compared letter by letter.
_COMPARED: Final = 64

#: At most this many lists of names with a trigram are intersected.
_INTERSECTED: Final = 4

#: Names with a lower similarity are ignored.
_ALIKE: Final = 0.6


def key(name: str) -> str:
    """Return the key of a name, its letters and digits in lower case; names with the same key are equal.

    >>> key("Starred_actors") == key("starredActors")
    True
    """
    folded = name.casefold()
    return folded if folded.isalnum() else "".join(filter(str.isalnum, folded))


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """Names in order: the ``i``-th is ``text[ends[i]:ends[i + 1]]``, a name of kind ``kinds[i]``.

    ``numbers[i]`` is the node or predicate with this name. ``grams[begins[b]:begins[b + 1]]`` are the names
    with trigrams in bucket ``b``; a name is listed once for each of these trigrams.
    """

    text: Bytes
    ends: Ids
    numbers: Nodes
    kinds: Bytes
    begins: Ids
    grams: Nodes

    @classmethod
    def of(cls, entries: Iterable[tuple[str, int, int]]) -> Index:
        """Make an index of entries: key, number, kind."""
        given = [(name.encode(), number, kind) for name, number, kind in entries]
        lengths = np.array([len(name) for name, _, _ in given], dtype=np.int64)
        keys = Keys(
            np.frombuffer(b"".join(name for name, _, _ in given) or b" ", dtype=np.uint8).copy(),
            np.cumsum(lengths) - lengths,
            lengths,
            np.zeros(0, dtype=np.uint8),
        )
        numbers = np.array([number for _, number, _ in given], dtype=np.int32)
        kinds = np.array([kind for _, _, kind in given], dtype=np.uint8)
        return cls.of_columns(keys, np.arange(len(given), dtype=np.int32), numbers, kinds)

    @classmethod
    def of_columns(cls, keys: Keys, places: Nodes, numbers: Nodes, kinds: Bytes) -> Index:
        """Make an index of keys and entries; each entry has the place of its key, a number and a kind."""
        there = np.flatnonzero(keys.lengths[places]).astype(np.int32)
        entries = Entries(keys.text, keys.begins, keys.lengths, places, kinds, numbers)
        words = np.empty((2, len(there)), dtype=np.uint64)
        order = there[: sort_entries(entries, there, np.empty_like(there), words)]
        ends = np.concatenate([[0], np.cumsum(keys.lengths[places[order]])])
        text = np.empty(ends[-1], dtype=np.uint8)
        gather(entries, order, ends, text)
        counts = np.zeros(_BUCKETS, dtype=np.int64)
        trigrams(text, ends, _LONGEST, counts, np.zeros(0, dtype=np.int32))
        begins = np.concatenate([[0], np.cumsum(counts)])
        grams = np.empty(begins[-1], dtype=np.int32)
        if len(grams):
            trigrams(text, ends, _LONGEST, begins[:-1].copy(), grams)
        return cls(text, ends, numbers[order], kinds[order], begins, grams)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that ``of_arrays`` takes."""
        return {
            "text": self.text, "ends": self.ends, "numbers": self.numbers, "kinds": self.kinds,
            "begins": self.begins, "grams": self.grams,
        }  # fmt: skip

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Index:
        """Make an index from the result of ``arrays``."""
        return cls(**arrays)

    def __len__(self) -> int:
        return len(self.numbers)

    def name(self, place: int) -> bytes:
        """Return the key at a place."""
        return self.text[self.ends[place] : self.ends[place + 1]].tobytes()

    def same(self, name: str) -> range:
        """Return the places of names that are equal to a name."""
        wanted = key(name).encode()
        begin = self._place(wanted)
        end = begin
        while end < len(self) and self.name(end) == wanted:
            end += 1
        return range(begin, end) if wanted else range(0)

    def _place(self, wanted: bytes) -> int:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.name(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def alike(self, name: str) -> list[tuple[int, float]]:
        """Return the places of names with a similar spelling and the similarity (0.6 to 1), best first."""
        wanted = key(name)[:_LONGEST]
        buckets = _trigrams(wanted.encode())
        parts = [self.grams[self.begins[b] : self.begins[b + 1]] for b in np.unique(buckets).tolist()]
        shared = np.concatenate(parts) if parts else self.grams[:0]
        if not wanted or not len(shared):
            return []
        counts = np.bincount(shared, minlength=len(self))
        places = np.flatnonzero(counts)
        lengths = np.minimum(self.ends[places + 1] - self.ends[places], _LONGEST)
        dice = counts[places] / (lengths + len(buckets))
        if len(dice) > _COMPARED:  # the best, and all that are equal to the last of them
            last = np.partition(dice, len(dice) - _COMPARED)[len(dice) - _COMPARED]
            places, dice = places[dice >= last], dice[dice >= last]
        best = np.argsort(-dice, kind="stable")[:_COMPARED]
        matcher = SequenceMatcher(b=wanted, autojunk=False)
        found = list[tuple[int, float]]()
        for place in places[best].tolist():
            matcher.set_seq1(self.name(place).decode())
            if matcher.real_quick_ratio() >= _ALIKE and (ratio := matcher.ratio()) >= _ALIKE:
                found.append((place, ratio))
        return sorted(found, key=lambda one: -one[1])

    def holding(self, begin: str, end: str) -> Ids:
        """Return the places of names that begin and end with these letters, and have more between."""
        first, last = begin.encode(), end.encode()
        rarest = sorted(
            (self.grams[self.begins[b] : self.begins[b + 1]] for b in set(_trigrams(last)[2:].tolist())),
            key=len,
        )
        places = np.unique(rarest[0]).astype(np.int64) if rarest else np.zeros(0, dtype=np.int64)
        for others in rarest[1:_INTERSECTED]:
            at = np.searchsorted(others, places)
            places = places[others[np.minimum(at, len(others) - 1)] == places]
        places = places[self.ends[places + 1] - self.ends[places] > len(first) + len(last)]
        for letters, is_end in ((last, True), (first, False)):
            at = self.ends[places + 1] - len(letters) if is_end else self.ends[places]
            there = self.text[at[:, None] + np.arange(len(letters))] == np.frombuffer(letters, dtype=np.uint8)
            places = places[there.all(axis=1)]
        return places


def _trigrams(name: bytes) -> npt.NDArray[np.int64]:
    """Return the buckets of the trigrams of a name; its beginning and end count as letters."""
    data = np.frombuffer(_GAP + name[:_LONGEST] + _GAP, dtype=np.uint8).astype(np.uint32)
    words = (data[:-2] << 16 | data[1:-1] << 8 | data[2:]) * _MULTIPLIER
    return (words >> np.uint32(16)).astype(np.int64)


_WORD: Final = re.compile(r"[^\W_]+")

#: At most this many words: of a name to try in other orders, and of a phrase to look for names in.
_MOST_TURNED: Final = 6
_MOST_WORDS: Final = 40

#: The most words of a name inside a phrase.
_LONGEST_SPAN: Final = 8

#: The fewest letters of a name inside a phrase.
_LEAST_LETTERS: Final = 3


def words(name: str) -> list[str]:
    """Return the words of a name, without punctuation."""
    return _WORD.findall(name)


def orders(name: str) -> list[str]:
    """Return other orders of a name: its last words first, or the part after a comma first.

    >>> orders("Lovelace, Ada")
    ['Ada Lovelace']
    """
    parts = [part for part in name.split(",") if part.strip()]
    if len(parts) == 1:
        parts = words(name)
    if not 1 < len(parts) <= _MOST_TURNED:
        return []
    turned = [" ".join(part.strip() for part in (*parts[i:], *parts[:i])) for i in range(1, len(parts))]
    return list(dict.fromkeys(turned))


def shortened(name: str) -> tuple[str, str] | None:
    """Return the letters that the full name begins and ends with, if the name has initials or is one word.

    >>> shortened("A. Lovelace"), shortened("Lovelace"), shortened("Ada Lovelace")
    (('a', 'lovelace'), ('', 'lovelace'), None)
    """
    given = words(name)
    initials = [word for word in given[:-1] if len(word) == 1]
    if not given or len(initials) < len(given) - 1 or len(key(given[-1])) < _LEAST_LETTERS:
        return None
    return key(initials[0]) if initials else "", key(given[-1])


def spans(phrase: str) -> Iterator[tuple[str, float]]:
    """Yield the keys of the word sequences in a phrase, longest first, with their share of the letters."""
    given = [key(word) for word in words(phrase)[:_MOST_WORDS]]
    letters = sum(map(len, given))
    found = {
        "".join(given[i:j])
        for i in range(len(given))
        for j in range(i + 1, min(i + _LONGEST_SPAN, len(given)) + 1)
        if j - i < len(given)
    }
    for text in sorted(found, key=lambda text: (-len(text), text)):
        if len(text) >= _LEAST_LETTERS:
            yield text, len(text) / letters
