"""Literals outside their datatype's lexical space, which lose matches: reported with stream and predicate."""

from __future__ import annotations

import numpy as np

from spaseq.events import EventBatch
from spaseq.terms.dictionary import Dictionary

#: A stream and a predicate, as N-Triples terms.
Where = tuple[str, str]


class IllTyped:
    """Finds, for each stream and predicate, the first literal that a filter could not read.

    A filter that reads ``"14,0"^^xsd:decimal`` is an error, as SPARQL says, so the event does not match.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._reported: set[Where] = set()

    def found(self, batch: EventBatch) -> dict[Where, str]:
        """Return a warning for each new place of ill-typed literals that were read since the last call.

        Must be called with the batch whose events were evaluated since then.
        """
        ids, self._dictionary.ill_typed = self._dictionary.ill_typed, set()
        warnings: dict[Where, str] = {}
        term = self._dictionary.term
        for row in np.flatnonzero(np.isin(batch.o, list(ids))).tolist():
            event = int(np.searchsorted(batch.offset, row, side="right")) - 1
            where = str(term(int(batch.stream[event]))), str(term(int(batch.p[row])))
            if where not in self._reported:
                self._reported.add(where)
                warnings[where] = (
                    f"{where[0]}, event {batch.n[event] + 1}: {where[1]} is {term(int(batch.o[row]))}, which "
                    "is ill-typed: a FILTER that reads it is an error, so its event does not match (further "
                    "ones of this predicate are not reported)"
                )
        return warnings
