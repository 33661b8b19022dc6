"""Dictionary-encoded columns of terms: numbers, and a term for each number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from spaseq.events import Ids
from spaseq.terms.dictionary import Dictionary, Term


class TermSequence(Sequence[Term]):
    """The terms of some ids, each read on access. Equal to any sequence of the same terms."""

    __slots__ = ("_dictionary", "_holder", "ids")

    def __init__(self, ids: Ids, dictionary: Dictionary, holder: object) -> None:
        """Create a view; ``holder`` keeps the terms in the dictionary."""
        self.ids = ids
        self._dictionary = dictionary
        self._holder = holder

    def hold_by(self, holder: object) -> None:
        """Replace the holder that keeps the terms."""
        self._holder = holder

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, i: int) -> Term: ...
    @overload
    def __getitem__(self, i: slice) -> TermSequence: ...
    def __getitem__(self, i: int | slice) -> Term | TermSequence:
        if isinstance(i, slice):
            return TermSequence(self.ids[i], self._dictionary, self._holder)
        return self._dictionary.term(int(self.ids[i]))

    def __iter__(self) -> Iterator[Term]:
        return self._dictionary.glance(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]  # as of lists

    def __repr__(self) -> str:
        return f"<Terms: {len(self)}>"


# Not frozen, like ``Events``.
@dataclass(slots=True, eq=False)
class Bindings:
    """The rows of matches: the rows of match i are ``offsets[i]`` to ``offsets[i + 1]``.

    ``columns`` has for each variable the numbers of its values in ``terms``, -1 where it is unbound.
    """

    offsets: Ids
    columns: dict[str, npt.NDArray[np.int32]]
    terms: Sequence[Term]
