"""The first two steps of SPECTRA: a batch's summary, and its vertically partitioned views.

SPECTRA (Gillani, Picard, Laforest) drops the triples that a pattern cannot use, then keeps one
(subject, object) table per predicate. Here a view spans a whole batch, with the event as a column.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pyoxigraph import NamedNode

from spaseq.events import EventBatch, Ids
from spaseq.gpm.solutions import Solutions, compatible
from spaseq.gpm.walk import exists_in
from spaseq.language.syntax import (
    Bind,
    Filter,
    Group,
    Minus,
    Optional,
    Path,
    PathAlternative,
    PathInverse,
    PathSequence,
    Pattern,
    SubSelect,
    Triples,
    Union,
    Var,
)
from spaseq.terms import Dictionary


class Views:
    """The triples of a batch by predicate.

    ``predicates`` is the summary: triples of other predicates are dropped; None keeps all of them.
    """

    def __init__(self, batch: EventBatch, predicates: frozenset[int] | None) -> None:
        events = np.repeat(np.arange(len(batch)), batch.offset[1:] - batch.offset[:-1])
        event, s, p, o = events, batch.s, batch.p, batch.o
        if predicates is not None:
            keep = np.flatnonzero(np.isin(p, np.array(sorted(predicates), dtype=np.int64)))
            event, s, p, o = event[keep], s[keep], p[keep], o[keep]
        order = np.argsort(p, kind="stable")
        self._event, self._s, self._p, self._o = event[order], s[order], p[order], o[order]
        found, start = np.unique(self._p, return_index=True)
        bounds = [*start.tolist(), len(self._p)]
        self._slices = {
            predicate: slice(bounds[i], bounds[i + 1]) for i, predicate in enumerate(found.tolist())
        }

    def all(self) -> tuple[Ids, Ids, Ids, Ids]:
        """Event, subject, predicate and object of every triple."""
        return self._event, self._s, self._p, self._o

    def view(self, predicate: int) -> tuple[Ids, Ids, Ids]:
        """Event, subject and object of the triples of one predicate."""
        rows = self._slices.get(predicate, slice(0, 0))
        return self._event[rows], self._s[rows], self._o[rows]

    def path(self, path: Path, dictionary: Dictionary) -> tuple[Ids, Ids, Ids]:
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
                event, s, o = (np.concatenate(columns) for columns in zip(*found, strict=True))
                return event, s, o
            case PathSequence((first, *rest)):
                event, s, o = self.path(first, dictionary)
                for part in rest:
                    next_event, middle, end = self.path(part, dictionary)
                    i, j = compatible(
                        Solutions(len(event), event, {"middle": o}),
                        Solutions(len(next_event), next_event, {"middle": middle}),
                    )
                    event, s, o = event[i], s[i], end[j]
                return event, s, o
        raise ValueError(f"not a path that joins can walk: {path}")


def summary(group: Group, dictionary: Dictionary) -> frozenset[int] | None:
    """The predicates that a pattern asks of the event's graph; None if it may ask for any."""
    found: set[int] = set()
    for predicate in _predicates(group):
        if not isinstance(predicate, NamedNode):
            return None
        found.add(dictionary.intern(predicate))
    return frozenset(found)


def _predicates(pattern: Pattern) -> Iterator[Path | Var]:
    match pattern:
        case Triples(patterns):
            for triple in patterns:
                yield from _steps(triple.predicate)
        case Group(parts) | Union(parts):
            for part in parts:
                yield from _predicates(part)
        case Optional(inner) | Minus(inner):
            yield from _predicates(inner)
        case SubSelect():
            yield from _predicates(pattern.pattern)
        case Filter(expression) | Bind(expression):
            for exists in exists_in(expression):
                yield from _predicates(exists.pattern)


def _steps(path: Path | Var) -> Iterator[Path | Var]:
    match path:
        case PathInverse(inner):
            yield from _steps(inner)
        case PathAlternative(parts) | PathSequence(parts):
            for part in parts:
                yield from _steps(part)
        case _:
            yield path
