"""The first two steps of SPECTRA: a batch's summary, and its vertically partitioned views.

SPECTRA (Gillani, Picard, Laforest) drops the triples that a pattern cannot use, then keeps one
(subject, object) table per predicate. Here a view spans a whole batch, with the event as a column, and
the summary is that only the predicates that patterns ask for ever become views.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from pyoxigraph import NamedNode

from spaseq.events import EventBatch, Ids
from spaseq.gpm.spectra.solutions import Solutions, compatible
from spaseq.language.syntax import Path, PathAlternative, PathInverse, PathSequence
from spaseq.terms.dictionary import Dictionary

#: Event, subject and object of some triples.
View: TypeAlias = tuple[Ids, Ids, Ids]


class Views:
    """The triples of a batch by predicate: each view is made when it is first asked for.

    Triples of predicates that no pattern asks for are only passed over, and all patterns that are
    evaluated on one batch share its views.
    """

    def __init__(self, batch: EventBatch) -> None:
        self._batch = batch
        self._event: Ids | None = None
        self._views: dict[int, View] = {}

    def all(self) -> tuple[Ids, Ids, Ids, Ids]:
        """Event, subject, predicate and object of every triple."""
        batch = self._batch
        if self._event is None:
            self._event = np.repeat(np.arange(len(batch)), batch.offset[1:] - batch.offset[:-1])
        return self._event, batch.s, batch.p, batch.o

    def view(self, predicate: int) -> View:
        """Event, subject and object of the triples of one predicate."""
        found = self._views.get(predicate)
        if found is None:
            event, s, p, o = self.all()
            rows = np.flatnonzero(p == predicate)
            found = self._views[predicate] = event[rows], s[rows], o[rows]
        return found

    def path(self, path: Path, dictionary: Dictionary) -> View:
        """Event, start and end of a path, once for every way to walk it.

        Covers predicates, inverses, sequences and alternatives; ValueError for the others.
        """
        match path:
            case NamedNode():
                return self.view(dictionary.intern(path))
            case PathInverse(inner):
                event, s, o = self.path(inner, dictionary)
                return event, o, s
            case PathAlternative(parts):
                found = [self.path(part, dictionary) for part in parts]
                dictionary.spending.rows(sum(len(ways[0]) for ways in found))
                event, s, o = (np.concatenate(columns) for columns in zip(*found, strict=True))
                return event, s, o
            case PathSequence((first, *rest)):
                event, s, o = self.path(first, dictionary)
                for part in rest:
                    next_event, middle, end = self.path(part, dictionary)
                    i, j = compatible(
                        Solutions(len(event), event, {"middle": o}),
                        Solutions(len(next_event), next_event, {"middle": middle}),
                        spending=dictionary.spending,
                    )
                    event, s, o = event[i], s[i], end[j]
                return event, s, o
        raise ValueError(f"not a path that joins can walk: {path}")
