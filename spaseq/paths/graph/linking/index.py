"""Names as sorted arrays: found by their letters and digits, or by their trigrams if they are misspelled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.paths.graph.saved.file import Array
from spaseq.paths.search._kernel import Ids, Nodes

Bytes = npt.NDArray[np.uint8]

#: Trigrams are of so many bytes of a name, at most.
_LONGEST: Final = 64

_BUCKETS: Final = 1 << 16
_MULTIPLIER: Final = np.uint32(0x9E3779B1)
_GAP: Final = b"\0\0"

#: So many names with the most trigrams in common are compared letter by letter.
_COMPARED: Final = 64

#: Names that are less alike are not alike at all.
_ALIKE: Final = 0.6


def key(name: str) -> str:
    """What names have in common that are the same: letters and digits, whatever their case.

    >>> key("Starred_actors") == key("starredActors")
    True
    """
    folded = name.casefold()
    return folded if folded.isalnum() else "".join(filter(str.isalnum, folded))


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """Names in order: the ``i``-th is ``text[ends[i]:ends[i + 1]]``, of ``numbers[i]`` and ``kinds[i]``.

    ``grams[begins[b]:begins[b + 1]]`` are the names that have a trigram of bucket ``b``, once for each.
    """

    text: Bytes
    ends: Ids
    numbers: Nodes
    kinds: Bytes
    begins: Ids
    grams: Nodes

    @classmethod
    def of(cls, entries: Iterable[tuple[str, int, int]]) -> Index:
        """From keys, what has them, and of which sort they are."""
        entered = sorted({(name.encode(), kind, number) for name, number, kind in entries if name})
        names = [name for name, _, _ in entered]
        owners, buckets = _trigrams(names)
        order = np.argsort(buckets, kind="stable")
        return cls(
            np.frombuffer(b"".join(names), dtype=np.uint8),
            np.cumsum([0, *map(len, names)], dtype=np.int64),
            np.array([number for _, _, number in entered], dtype=np.int32),
            np.array([kind for _, kind, _ in entered], dtype=np.uint8),
            np.cumsum([0, *np.bincount(buckets, minlength=_BUCKETS).tolist()], dtype=np.int64),
            owners[order],
        )

    def arrays(self) -> dict[str, Array]:
        """As ``of_arrays`` takes them."""
        return {
            "text": self.text, "ends": self.ends, "numbers": self.numbers, "kinds": self.kinds,
            "begins": self.begins, "grams": self.grams,
        }  # fmt: skip

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Index:
        """From what ``arrays`` gave."""
        return cls(**arrays)

    def __len__(self) -> int:
        return len(self.numbers)

    def name(self, place: int) -> bytes:
        """The key at a place."""
        return self.text[self.ends[place] : self.ends[place + 1]].tobytes()

    def same(self, name: str) -> range:
        """The places of a name."""
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
        """The places of names that are spelled much like it, the most like first, and how much: 0.6 to 1."""
        wanted = key(name)[:_LONGEST]
        _, buckets = _trigrams([wanted.encode()])
        parts = [self.grams[self.begins[b] : self.begins[b + 1]] for b in np.unique(buckets).tolist()]
        shared = np.concatenate(parts) if parts else self.grams[:0]
        if not wanted or not len(shared):
            return []
        places, counts = np.unique(shared, return_counts=True)
        lengths = np.minimum(np.diff(self.ends)[places], _LONGEST)
        dice = counts / (lengths + len(buckets))
        best = np.argsort(-dice, kind="stable")[:_COMPARED]
        matcher = SequenceMatcher(b=wanted, autojunk=False)
        found = list[tuple[int, float]]()
        for place in places[best].tolist():
            matcher.set_seq1(self.name(place).decode())
            if matcher.real_quick_ratio() >= _ALIKE and (ratio := matcher.ratio()) >= _ALIKE:
                found.append((place, ratio))
        return sorted(found, key=lambda one: -one[1])


def _trigrams(names: list[bytes]) -> tuple[Nodes, npt.NDArray[np.uint16]]:
    """Of each trigram the place of its name, and its bucket; beginnings and ends are letters, too."""
    cut = [name[:_LONGEST] for name in names]
    data = np.frombuffer(_GAP + _GAP.join(cut) + _GAP, dtype=np.uint8).astype(np.uint32)
    words = (data[:-2] << 16 | data[1:-1] << 8 | data[2:]) * _MULTIPLIER
    owners = np.repeat(np.arange(len(cut), dtype=np.int32), [len(name) + len(_GAP) for name in cut])
    return owners, (words[: len(owners)] >> np.uint32(16)).astype(np.uint16)
