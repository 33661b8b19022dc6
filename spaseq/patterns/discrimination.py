"""Which graph patterns may have a solution in an event: an index from constants to patterns.

A pattern *needs* the triples of its basic graph patterns without which there is no solution. Triples of
OPTIONAL, MINUS, subqueries and background graphs are not needed: they need not be in the event.

The index has one needed triple of each pattern, the one with most constants, under these constants. An event
without such a triple has no solution of the pattern, so the pattern is not evaluated. (The alpha network of
Forgy's Rete does the same; Hanson's discrimination networks add intervals.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Generic, TypeVar

import numpy as np
from pyoxigraph import BlankNode, NamedNode

from spaseq import _kernel_events as k
from spaseq._fields import address, place, plain
from spaseq.events import EventBatch, Ids
from spaseq.language.scope import conjuncts
from spaseq.language.syntax import (
    Binary,
    Constant,
    Expression,
    Filter,
    Group,
    Path,
    PathAlternative,
    PathInverse,
    PathRepeat,
    PathSequence,
    Triples,
    Union,
    Var,
)
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term, distinct

#: A needed triple: the id of each term, ``UNBOUND`` where any term will do.
Shape = tuple[int, int, int]

#: The alternative sets of triples that a pattern needs. An empty set is in every event.
Needs = tuple[tuple[Shape, ...], ...]

#: Patterns with more alternatives are treated as if they needed nothing.
_MOST_ALTERNATIVES: Final = 16
#: Up to this many predicates of a table are looked up in a batch one by one.
_FEW_PREDICATES: Final = 32
#: If a batch has this many times more events than may concern an item, only the latter are sorted.
_SPARSE: Final = 8
#: The items concerned are remembered for at most this many sets of predicates.
_MOST_KNOWN: Final = 1_024

#: As above, with the names of variables.
_Place = int | str
_Triple = tuple[_Place, _Place, _Place]
_Alternatives = list[list[_Triple]]

_Item = TypeVar("_Item")


def needs(pattern: Group, dictionary: Dictionary) -> Needs:
    """Return the triples that an event must have for a solution of a GPM's pattern."""
    return tuple(
        tuple(_shape(triple) for triple in triples) for triples in _Needs(dictionary).of_group(pattern)
    )


def _shape(triple: _Triple) -> Shape:
    s, p, o = (UNBOUND if isinstance(place, str) else place for place in triple)
    return s, p, o


class _Needs:
    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary

    def of_group(self, group: Group) -> _Alternatives:
        found: _Alternatives = [[]]
        same: dict[str, int] = {}
        for element in group.elements:
            match element:
                case Triples(triples):
                    for triple in triples:
                        predicate = triple.predicate
                        s, o = self._place(triple.subject), self._place(triple.object)
                        found = _both(
                            found,
                            [[(s, predicate.name, o)]]
                            if isinstance(predicate, Var)
                            else self._path(predicate, s, o),
                        )
                case Group():
                    found = _both(found, self.of_group(element))
                case Union(branches):
                    found = _both(found, [way for branch in branches for way in self.of_group(branch)])
                case Filter(condition):
                    same.update(self._equal(condition))
        return [[_replaced(triple, same) for triple in triples] for triples in found]

    def _equal(self, condition: Expression) -> Iterator[tuple[str, int]]:
        """Yield the variables that a filter requires to equal an IRI. (Other terms may equal different
        terms.)
        """
        for part in conjuncts(condition):
            match part:
                case Binary("=", Var(name), Constant(NamedNode() as iri)):
                    yield name, self._dictionary.pin(iri)
                case Binary("=", Constant(NamedNode() as iri), Var(name)):
                    yield name, self._dictionary.pin(iri)

    def _place(self, term: Term | Var) -> _Place:
        if isinstance(term, Var):
            return term.name
        return f"_:{term.value}" if isinstance(term, BlankNode) else self._dictionary.pin(term)

    def _path(self, path: Path, s: _Place, o: _Place) -> _Alternatives:
        """Return the triples of a walk from ``s`` to ``o``."""
        match path:
            case NamedNode():
                return [[(s, self._dictionary.pin(path), o)]]
            case PathInverse(inner):
                return self._path(inner, o, s)
            case PathAlternative(parts):
                return [way for part in parts for way in self._path(part, s, o)]
            case PathSequence(parts):
                found: _Alternatives = [[]]
                for i, part in enumerate(parts):
                    begin, end = s if i == 0 else "", o if i == len(parts) - 1 else ""
                    found = _both(found, self._path(part, begin, end))
                return found
            case PathRepeat(inner, minimum) if minimum > 0:
                return self._path(inner, "", "")
        return [[]]


def _both(left: _Alternatives, right: _Alternatives) -> _Alternatives:
    """Return what two patterns need together; only the left side or the right if that has too many
    alternatives.
    """
    if len(left) * len(right) > _MOST_ALTERNATIVES:
        return max(left, right, key=lambda ways: min(map(len, ways), default=1))
    return [[*a, *b] for a in left for b in right]


def _replaced(triple: _Triple, same: dict[str, int]) -> _Triple:
    s, p, o = (same.get(place, place) if isinstance(place, str) else place for place in triple)
    return s, p, o


class Discrimination(Generic[_Item]):
    """An index of items by the triples that they need."""

    def __init__(self) -> None:
        self._any: list[_Item] = []
        self._by_predicate: dict[int, list[_Item]] = {}
        # By the places that are constants; keys have UNBOUND in the other places.
        self._mixed: dict[Shape, dict[Shape, list[_Item]]] = {}
        # The items found for the predicates of an event.
        self._known: dict[tuple[int, ...], list[_Item]] = {}
        self._sets: _Sets[_Item] | None = None

    def add(self, item: _Item, needed: Needs) -> None:
        """Add an item."""
        self._known.clear()
        self._sets = None
        for shapes in needed:
            best = max(shapes, key=self._selects, default=(UNBOUND, UNBOUND, UNBOUND))
            self._bucket(best).append(item)

    def _selects(self, shape: Shape) -> tuple[int, int]:
        """Return how selective a triple is: the number of its constants, then the fewest items that need it
        already.
        """
        constants = 3 - shape.count(UNBOUND)
        return constants, -len(self._find(shape))

    def _find(self, shape: Shape) -> list[_Item]:
        if not any(shape):
            return self._any
        if _mask(shape) == _PREDICATE:
            return self._by_predicate.get(shape[1], [])
        return self._mixed.get(_mask(shape), {}).get(shape, [])

    def _bucket(self, shape: Shape) -> list[_Item]:
        if not any(shape):
            return self._any
        if _mask(shape) == _PREDICATE:
            return self._by_predicate.setdefault(shape[1], [])
        return self._mixed.setdefault(_mask(shape), {}).setdefault(shape, [])

    def of_event(self, triples: Iterable[Shape]) -> list[_Item]:
        """Return the items that may have a solution in an event, some of them perhaps several times."""
        found = list(self._any)
        for s, p, o in triples:
            bucket = self._by_predicate.get(p)
            if bucket is not None:
                found += bucket
            for (with_s, with_p, with_o), table in self._mixed.items():
                bucket = table.get((s * with_s, p * with_p, o * with_o))
                if bucket is not None:
                    found += bucket
        return found

    def of_single(self, terms: Sequence[int]) -> list[_Item]:
        """Return the items that may have a solution in an event, each once. ``terms``: of its triples, in a
        row.
        """
        if self._mixed:
            return list(dict.fromkeys(self.of_event(zip(terms[0::3], terms[1::3], terms[2::3], strict=True))))
        # Most events have the same predicates as an earlier one.
        predicates = tuple(terms[1::3])
        found = self._known.get(predicates)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            asked = (self._by_predicate.get(p, ()) for p in predicates)
            found = list(dict.fromkeys([*self._any, *chain.from_iterable(asked)]))
            self._known[predicates] = found
        return found

    def of_batch(self, batch: EventBatch) -> list[_Item]:
        """Return the items that may have a solution in some event of a batch."""
        found = list(self._any)
        if self._by_predicate and len(batch.p):
            for p in distinct(batch.p, batch.p.max().item() + 1).tolist():
                found += self._by_predicate.get(p, ())
        for mask, table in self._mixed.items():
            for key in {key for _, key in _keyed(batch, mask, table)}:
                found += table.get(key, ())
        return found

    def by_item(self, batch: EventBatch, asks: Callable[[_Item], bool]) -> dict[_Item, Ids | None]:
        """Return the items that may have a solution in a batch, with the positions of the events concerned,
        in order.

        ``asks``: whether an item wants the positions; other items get None.
        """
        found: dict[_Item, list[Ids]] = {item: [np.arange(len(batch))] for item in self._any}
        if self._by_predicate:
            self._sets = self._sets or _Sets(self._by_predicate)
            for items, events in self._sets.concerned(batch):
                for item in items:
                    found.setdefault(item, []).append(events)
        of_triple = np.repeat(np.arange(len(batch)), np.diff(batch.offset)) if self._mixed else batch.p
        for mask, table in self._mixed.items():
            found_rows: dict[Shape, list[int]] = {}
            for row, key in _keyed(batch, mask, table):
                if key in table:
                    found_rows.setdefault(key, []).append(row)
            for key, places in found_rows.items():
                for item in table[key]:
                    found.setdefault(item, []).append(of_triple[places])
        known: dict[tuple[int, ...], Ids] = {}
        each: dict[_Item, Ids | None] = dict.fromkeys(found)
        for item, several in found.items():
            if asks(item):
                arrays = tuple(map(id, several))
                if arrays not in known:
                    known[arrays] = _distinct(several, len(batch))
                each[item] = known[arrays]
        return each


class _Sets(Generic[_Item]):
    """Items by the sets of predicates that they need. All items of a set are concerned by the same events."""

    def __init__(self, by_predicate: Mapping[int, Sequence[_Item]]) -> None:
        of_item: dict[_Item, dict[int, None]] = {}
        for p, items in by_predicate.items():
            for item in items:
                of_item.setdefault(item, {})[p] = None
        sets: dict[tuple[int, ...], list[_Item]] = {}
        for item, own in of_item.items():
            sets.setdefault((*own,), []).append(item)
        self._items = [*sets.values()]
        self._last = np.full(len(sets), -1)
        with_p: dict[int, list[int]] = {p: [] for p in by_predicate}
        for each, predicates in enumerate(sets):
            for p in predicates:
                with_p[p].append(each)
        # The sets that each predicate is in, by the predicate's number; 0 stands for all other predicates.
        self._sets = np.array([each for several in with_p.values() for each in several])
        self._begins = np.cumsum([0, 0, *map(len, with_p.values())])
        self._numbers = np.zeros(max(with_p) + 1, dtype=np.int32)
        self._numbers[[*with_p]] = np.arange(1, len(with_p) + 1)

    def concerned(self, batch: EventBatch) -> Iterator[tuple[Sequence[_Item], Ids]]:
        """Yield the items that may have a solution in some events of a batch, and the positions of these, in
        order.
        """
        bounds = np.zeros(len(self._items) + 1, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.int64)
        self._concern(batch, bounds[1:], nothing)
        np.cumsum(bounds, out=bounds)
        events = np.empty(bounds[-1], dtype=np.int64)
        self._concern(batch, bounds[:-1].copy(), events)
        for each in np.flatnonzero(bounds[1:] > bounds[:-1]).tolist():
            yield self._items[each], events[bounds[each] : bounds[each + 1]]

    def _concern(self, batch: EventBatch, ends: Ids, events: Ids) -> None:
        predicates, offset = plain(batch.p), plain(batch.offset)
        p, at = (place(column, address(ends)) for column in (predicates, offset))
        index = self._numbers, self._begins, self._sets
        k.concern(ends, p, at, len(batch), *index, self._last.copy(), events)


def _distinct(events: Sequence[Ids], size: int) -> Ids:
    """Return the distinct numbers below ``size`` in any of some arrays, in order."""
    if len(events) == 1 and (events[0][1:] > events[0][:-1]).all():
        return events[0]
    if _SPARSE * sum(map(len, events)) < size:
        ordered = np.sort(np.concatenate(events))
        each: Ids = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        return each
    seen = np.zeros(size, dtype=np.bool_)
    for some in events:
        seen[some] = True
    return np.flatnonzero(seen)


#: Only the predicate is a constant.
_PREDICATE: Final[Shape] = (0, 1, 0)


def _mask(shape: Shape) -> Shape:
    s, p, o = (int(place != UNBOUND) for place in shape)
    return s, p, o


def _keyed(batch: EventBatch, mask: Shape, table: dict[Shape, list[_Item]]) -> Iterator[tuple[int, Shape]]:
    """Yield the numbers and keys of a batch's triples that may be in a table."""
    rows = np.arange(len(batch.p))
    if mask[1]:
        predicates = {key[1] for key in table}
        if len(predicates) <= _FEW_PREDICATES:
            rows = np.flatnonzero(np.isin(batch.p, np.fromiter(predicates, dtype=np.int64)))
    columns = (batch.s[rows], batch.p[rows], batch.o[rows])
    wanted = [column if asked else np.zeros_like(column) for column, asked in zip(columns, mask, strict=True)]
    keys = zip(*(column.tolist() for column in wanted), strict=True)
    yield from zip(rows.tolist(), keys, strict=True)


# Which items events of several streams may concern: an index of ``discrimination`` for each stream.
#
# An item is in the indexes of the streams that its graph patterns read: an equal triple in another stream
# does not concern it.

#: Batches of up to this many events are looked at event by event.
_FEW: Final = 256


class ByStream(Generic[_Item]):
    """Items by the streams that they read and the triples that they need of an event."""

    def __init__(self, streams: Iterable[int]) -> None:
        self._of: dict[int, Discrimination[_Item]] = {stream: Discrimination() for stream in streams}

    def add(self, item: _Item, streams: Iterable[int] | None, needed: Needs) -> None:
        """Add an item that needs this of an event of these streams; None: of any stream."""
        for stream in self._of if streams is None else streams:
            self._of[stream].add(item, needed)

    def of_single(self, stream: int, terms: Sequence[int]) -> list[_Item]:
        """Return the items that an event may concern. ``terms``: of its triples, in a row."""
        return self._of[stream].of_single(terms)

    def of_batch(self, batch: EventBatch) -> list[_Item]:
        """Return the items that some event of a batch may concern, perhaps more than once."""
        if len(batch) == 1:
            return self._of[int(batch.stream[0])].of_event(batch.triples(0))
        if len(self._of) == 1:
            (index,) = self._of.values()
            return index.of_batch(batch)
        found = []
        for stream, index in self._of.items():
            events = np.flatnonzero(batch.stream == stream)
            if len(events):
                found += index.of_batch(batch.take(events))
        return found

    def by_item(self, batch: EventBatch, asks: Callable[[_Item], bool]) -> dict[_Item, Ids | None]:
        """Return the items that events of a batch may concern, with the positions of these events, in order.

        ``asks``: whether an item wants the positions; other items get None.
        """
        if len(batch) <= _FEW:
            return {**self._one_by_one(batch)}
        if len(self._of) == 1:
            (index,) = self._of.values()
            return index.by_item(batch, asks)
        found: dict[_Item, list[Ids]] = {}
        for stream, index in self._of.items():
            events = np.flatnonzero(batch.stream == stream)
            if len(events):
                for item, numbers in index.by_item(batch.take(events), asks).items():
                    found.setdefault(item, []).append(events if numbers is None else events[numbers])
        return {
            item: np.sort(np.concatenate(numbers)) if asks(item) else None for item, numbers in found.items()
        }

    def _one_by_one(self, batch: EventBatch) -> dict[_Item, Ids]:
        found: dict[_Item, list[int]] = {}
        for event, stream in enumerate(batch.stream.tolist()):
            for item in self._of[stream].of_event(batch.triples(event)):
                numbers = found.setdefault(item, [])
                if not numbers or numbers[-1] != event:
                    numbers.append(event)
        return {item: np.array(numbers) for item, numbers in found.items()}
