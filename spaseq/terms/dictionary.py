"""RDF terms as integers, the values of columns; distinct ids of arrays."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.errors import warn_within
from spaseq.limits import UNLIMITED, Limits, Spending
from spaseq.terms.texts import ntriples, term_of, text_of
from spaseq.terms.values import (
    DECIMAL,
    DOUBLE,
    EXACT_ORDER,
    ILL_TYPED,
    IS_DOUBLE,
    NO_NUMBER,
    XSD,
    Value,
    decode,
    double_literals,
)

# Arrays of ids of terms → the distinct ids, and each id's position among them.
#
# Ids are small integers, so a table by id is used, unless the largest id is much larger than the number of
# ids.

Ids = npt.NDArray[np.int64]

#: A table by id is used if it has at most this many entries for each id of the array.
_SPARSE: Final = 16


def distinct(ids: Ids, limit: int) -> Ids:
    """Return the distinct ids, sorted; all are below ``limit``."""
    return in_order(ids) if limit > _SPARSE * len(ids) else distinct_of([ids], limit)


def in_order(ids: Ids) -> Ids:
    """Return the distinct ids, sorted, without a table: three to twenty times as slow as ``distinct``."""
    ordered = np.sort(ids)
    found: Ids = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found


def distinct_of(arrays: Iterable[Ids], limit: int) -> Ids:
    """Return the distinct ids of several arrays, sorted, always by a table."""
    seen = np.zeros(limit, dtype=np.bool_)
    for ids in arrays:
        seen[ids] = True
    return np.flatnonzero(seen)


def numbered(ids: Ids, limit: int) -> tuple[Ids, Ids]:
    """Return the distinct ids and each id's position among them, in the shape of ``ids``, like
    ``np.unique``.
    """
    if limit > _SPARSE * ids.size:
        found, places = np.unique(ids, return_inverse=True)
        return found, places.reshape(ids.shape)
    found = distinct(ids.ravel(), limit)
    place = np.empty(limit, dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, place[ids]


# RDF terms as integers, the values of columns.
#
# An id is a positive ``int64``; ``UNBOUND`` (0) is "no term". Equal terms have equal ids, except that every
# blank node of an event gets an id of its own (``fresh``), since blank nodes are scoped to their event.
#
# Memory stays constant over an endless stream: ``sweep`` forgets terms that are no longer needed, and their
# ids are given again. Pinned terms are needed, and the terms of holders that are still referenced.

Term = NamedNode | BlankNode | Literal

UNBOUND: Final = 0

_NOT_DECODED: Final = -1

#: From this many on, numbers are read by compiled code.
_MANY: Final = 100

#: At most this many terms are processed at a time under the lock.
_AT_ONCE: Final = 10_000

#: Values are cached for this many terms, least recently used last.
_VALUES: Final = 1 << 12

if TYPE_CHECKING:
    from spaseq.terms.table import TermTable


class Holder(Protocol):
    """An object that keeps ids, so that their terms must not be forgotten. Identified by id()."""

    def live_ids(self) -> Iterable[Ids]:
        """Return the ids that it keeps now, in arrays of any shape."""
        ...


class Beside(Protocol):
    """Knowledge about ids, kept beside the dictionary that gave them."""

    def forget_all_but(self, kept: npt.NDArray[np.bool_]) -> None:
        """Forget all ids except those for which ``kept[id]`` is true: the others may get new terms."""
        ...


_Beside = TypeVar("_Beside", bound=Beside)


class Dictionary:
    """Terms ⇄ ids. Ids are small numbers, in the order in which terms were first seen.

    Several threads may use it. A thread that stores a new id where no holder reports it yet must hold
    ``lock`` from interning to storing. Otherwise a sweep in between could forget the id.

    >>> from pyoxigraph import NamedNode
    >>> d = Dictionary()
    >>> d.intern(NamedNode("http://example.org/a")), d.intern(NamedNode("http://example.org/a"))
    (1, 1)
    >>> d.term(1)
    <NamedNode value=http://example.org/a>
    """

    def __init__(self, limits: Limits = UNLIMITED) -> None:
        """Create an empty dictionary. ``limits``: of computed values."""
        self.limits = limits
        #: What the current event has spent of the limits.
        self.spending = Spending(limits)
        self.lock = threading.RLock()
        # The texts of all terms; once there is a table, of the terms that Python has seen. Texts, because the
        # garbage collector does not traverse them, as it would pyoxigraph's terms.
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._limit = 1
        self._free: list[int] = []
        self._table: TermTable | None = None
        self._pinned: set[int] = set()
        # Used like a WeakSet, but half a microsecond faster to add to: each event that is pushed is a holder.
        self._holders: set[ref[Holder]] = set()
        self._beside: dict[object, Any] = {}
        self._swept = 0
        self._number: npt.NDArray[np.float64] = np.empty(0)
        self._rank: npt.NDArray[np.int8] = np.empty(0, dtype=np.int8)
        #: Ids of ill-typed literals that were read since they were last taken from here.
        self.ill_typed: set[int] = set()
        #: The number of failed calls of each user's function, by IRI. ``warn`` is called with the first one.
        self.failed_calls: Counter[str] = Counter()
        self.warn: Callable[[str], None] = warn_within

    @classmethod
    def of(cls, table: TermTable) -> Dictionary:
        """Return a dictionary of the terms of a table."""
        dictionary = cls()
        dictionary._table = table
        return dictionary

    def __len__(self) -> int:
        return len(self._texts) if self._table is None else len(self._table)

    @property
    def limit(self) -> int:
        """All ids are below this number."""
        return self._limit if self._table is None else self._table.limit

    @property
    def unswept(self) -> int:
        """The number of terms added since the last sweep."""
        table = self._table
        return len(self._texts if table is None else table) - self._swept

    def intern(self, term: Term) -> int:
        """Return the id of ``term``, a new one if the term is new."""
        return self.enter(text_of(term))

    def enter(self, text: str) -> int:
        """Return the id of the term with this text, a new one if the term is new."""
        identifier = self._ids.get(text)
        if identifier is None:
            with self.lock:
                identifier = self._ids.get(text)
                if identifier is None:
                    identifier = self._new_id() if self._table is None else self._table.intern(text)
                    self._remember(identifier, text)
        return identifier

    def intern_all(self, terms: Sequence[Term]) -> Ids:
        """Return the ids of many terms. For new terms, no text is kept once there is a table."""
        with self.lock:
            if self._table is None or BlankNode in set(map(type, terms)):
                return np.array(list(map(self.intern, terms)), dtype=np.int64)
            return self._table.enter("\n".join([*map(str, terms), ""]).encode(), len(terms))

    def intern_integers(self, numbers: range) -> Ids:
        """Return the ids of these numbers as ``xsd:integer``."""
        return self._enter_all([f'"{number}"^^<{XSD}integer>' for number in numbers])

    def intern_doubles(self, numbers: npt.NDArray[np.float64]) -> Ids:
        """Return the ids of these numbers as ``xsd:double``."""
        # Compared as integers, since -0.0 is another term than 0.0.
        bits, inverse = np.unique(numbers.view(np.int64), return_inverse=True)
        doubles = bits.view(np.float64)
        ids = self._enter_all(double_literals(doubles.tolist()))
        known, ranks = self.by_id()
        known[ids] = doubles
        ranks[ids] = IS_DOUBLE  # last: after an interrupt it is decoded anew
        found: Ids = ids[inverse]
        return found

    def _enter_all(self, texts: Sequence[str]) -> Ids:
        """Return the ids of many literals by their texts."""
        with self.lock:
            if self._table is None:
                return np.array(list(map(self.enter, texts)), dtype=np.int64)
            return self._table.enter("\n".join([*texts, ""]).encode(), len(texts))

    @property
    def known(self) -> Callable[[str], int | None]:
        """Return a function from a term's text to its id.

        It returns None for a term that Python has not seen. Such a term may have an id in the table.
        """
        return self._ids.get

    def find(self, term: Term) -> int:
        """Return the id of ``term``, or ``UNBOUND`` if it is unknown."""
        text = text_of(term)
        identifier = self._ids.get(text, UNBOUND)
        if identifier == UNBOUND and self._table is not None:
            with self.lock:
                identifier = self._table.find(text)
        return identifier

    def fresh(self) -> int:
        """Return the id of a new blank node, equal to no other."""
        if self._table is None:
            return self.intern(BlankNode())
        with self.lock:
            return int(self._table.fresh(1)[0])

    def term(self, identifier: int) -> Term:
        """Return the term of an id that this dictionary gave."""
        return term_of(self._texts.get(identifier) or self._read(identifier))

    def written(self, identifier: int) -> str:
        """Return the text of an id's term, see ``spaseq.terms.texts``."""
        return self._texts.get(identifier) or self._read(identifier)

    def glance(self, ids: Ids) -> Iterator[Term]:
        """Yield the terms of many ids for callers that use each once: no text is kept."""
        return map(term_of, self.texts(ids))

    def texts(self, ids: Ids) -> Iterator[str]:
        """Return the texts of many ids, see ``spaseq.terms.texts``. None is kept."""
        for begin in range(0, len(ids), _AT_ONCE):
            part = ids[begin : begin + _AT_ONCE]
            with self.lock:
                if self._table is None:
                    known, read = self._texts.get, self._read
                    texts = [known(identifier) or read(identifier) for identifier in part.tolist()]
                else:
                    for identifier in part[self._table.are_fresh(part)].tolist():
                        self.written(identifier)  # which gives it a name
                    texts = self._table.read_all(part)
            yield from texts

    def text(self, identifier: int) -> bytes:
        """Return the N-Triples form of an id's term: the same in every process; empty for ``UNBOUND``."""
        if identifier == UNBOUND:
            return b""
        with self.lock:
            if self._table is None or self._table.is_fresh(identifier):
                return ntriples(self.written(identifier)).encode()
            return self._table.text(identifier)

    def _all_written(self, ids: Ids) -> list[bytes]:
        """Return the N-Triples forms of many ids."""
        with self.lock:
            if self._table is None:
                return list(map(self.text, ids.tolist()))
            for identifier in ids[self._table.are_fresh(ids)].tolist():
                self.written(identifier)  # which gives it a name
            return self._table.texts(ids)

    def ranks(self, ids: Ids) -> Ids:
        """Return each id's rank, from 0, in the order of ``text`` of all ``ids``; in the shape of ``ids``."""
        found, inverse = numbered(ids, self.limit)
        texts = self._all_written(found)
        places = np.empty(len(texts), dtype=np.int64)
        places[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        ranks: Ids = places[inverse]
        return ranks

    def value(self, identifier: int) -> Value:
        """Return the typed value of an id. An ill-typed literal is noted in ``ill_typed``."""
        found = _decoded(self.written(identifier))
        if found.kind == ILL_TYPED:
            self.ill_typed.add(identifier)
        return found

    def table(self) -> TermTable:
        """Return the table of terms as bytes, for readers that look terms up there. Use it under ``lock``."""
        if self._table is None:
            # Imported here, because compiled code takes a while to load.
            from spaseq.terms.table import TermTable

            self._table = TermTable(self._texts, self._free, self._limit)
        return self._table

    def pin(self, term: Term) -> int:
        """Return the id of ``term``, which will never be forgotten."""
        with self.lock:
            identifier = self.intern(term)
            self._pinned.add(identifier)
            return identifier

    def hold(self, holder: Holder) -> None:
        """Forget nothing that ``holder`` keeps, as long as it is referenced."""
        holders = self._holders
        holders.add(ref(holder, holders.discard))

    def beside(self, make: Callable[[Dictionary], _Beside]) -> _Beside:
        """Return the result of ``make(self)``. It is called once, so all callers share one object."""
        found: _Beside | None = self._beside.get(make)
        if found is None:
            with self.lock:
                found = self._beside.setdefault(make, make(self))
        return found

    def sweep(self, live: Iterable[Ids] = ()) -> int:
        """Forget every term except the pinned ones, those of holders, and ``live``; return how many.

        Afterwards the ids of forgotten terms mean nothing, until they are given to other terms.
        """
        with self.lock:
            keep = np.zeros(self.limit, dtype=np.bool_)
            keep[list(self._pinned)] = True
            # Arrays by id(), because many queries hold the same array. Kept here, so that no id() is reused.
            marked: dict[int, Ids] = {}
            holders = [holder for each in list(self._holders) if (holder := each()) is not None]
            for ids in chain(*(holder.live_ids() for holder in holders), live):
                if id(ids) not in marked:
                    marked[id(ids)] = ids
                    keep[ids] = True
            # These forget first: after an interrupt they must not know anything about a forgotten term.
            for known in self._beside.values():
                known.forget_all_but(keep)
            dead = self._forget(keep)
            count = min(len(keep), len(self._rank))
            self._rank[:count][~keep[:count]] = _NOT_DECODED
            self._rank[:1] = NO_NUMBER
            if self._table is not None:
                freed = self._table.sweep(keep)
            else:
                self._free += dead
                freed = len(dead)
            self._swept = len(self)
            return freed

    def _forget(self, keep: npt.NDArray[np.bool_]) -> list[int]:
        """Keep only the texts of terms that are kept; return the ids of the others."""
        seen = np.fromiter(self._texts, dtype=np.int64, count=len(self._texts))
        kept = keep[seen]
        dead: list[int] = seen[~kept].tolist()
        if 2 * len(dead) > len(seen):
            # Fewer are kept than forgotten.
            texts = {identifier: self._texts[identifier] for identifier in seen[kept].tolist()}
            ids = {text: i for i, text in texts.items() if self._ids.get(text) == i}
            # No interrupt can occur between the two assignments: Python raises it at a call or in a loop.
            self._ids, self._texts = ids, texts
            return dead
        for identifier in dead:
            # In this order, so that an interrupt in between leaves no term with a forgotten id.
            text = self._texts[identifier]
            if self._ids.get(text) == identifier:
                del self._ids[text]
            del self._texts[identifier]
        return dead

    def _new_id(self) -> int:
        if self._free:
            return self._free.pop()
        self._limit += 1
        return self._limit - 1

    def _remember(self, identifier: int, text: str) -> None:
        self._texts[identifier] = text
        self._ids[text] = identifier

    def _read(self, identifier: int) -> str:
        """Return the text of a term that Python has not seen."""
        with self.lock:
            kind = 0 if self._table is None else self._table.kind(identifier)
            if self._table is None or not kind:
                raise KeyError(identifier)
            if identifier not in self._texts:
                if self._table.is_fresh(identifier):
                    label = str(BlankNode())
                    self._table.label(identifier, label)
                    self._remember(identifier, label)
                else:
                    self._remember(identifier, self._table.read(identifier))
            return self._texts[identifier]

    def usual(self, ids: Ids, numbers: npt.NDArray[np.float64], ranks: npt.NDArray[np.int8]) -> None:
        """Write the values of numbers to ``numbers`` and ``ranks``, at the index of each id.

        Only numbers of at most 15 digits that the table stores as bytes are read; other ids are left out.
        """
        if self._table is not None and len(ids) >= _MANY:
            with self.lock:
                self._table.read_numbers(ids, numbers, ranks)

    def by_id(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
        """Return the two arrays of ``numbers`` for all ids. An id not read so far has the rank
        ``_NOT_DECODED``.
        """
        if len(self._rank) < self.limit:
            room = 2 * self.limit - len(self._rank)  # doubled, so that growing costs O(1) a term
            self._number = np.concatenate([self._number, np.zeros(room)])
            self._rank = np.concatenate([self._rank, np.full(room, _NOT_DECODED, dtype=np.int8)])
            self._rank[UNBOUND] = NO_NUMBER
        return self._number, self._rank

    def numbers(self, ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
        """Return the double nearest to each id's numeric value, and the rank: how exact that double is.

        The second array holds ``EXACT_ORDER`` for integers and decimals (rounding keeps their order, but may
        make two of them equal), ``IS_DOUBLE`` for doubles, and ``NO_NUMBER`` for everything else, ``UNBOUND``
        and ``xsd:float`` (which promotes differently) included.
        """
        self.by_id()
        ranks = self._rank[ids]
        is_new = ranks == _NOT_DECODED
        if not is_new.any():
            return self._number[ids], ranks
        new = distinct(ids[is_new], self.limit)
        self.usual(new, self._number, self._rank)
        new = new[self._rank[new] == _NOT_DECODED]
        for identifier in new.tolist():
            value = self.value(identifier)
            rank = NO_NUMBER
            if value.kind <= DECIMAL:
                with suppress(OverflowError):  # an integer beyond the doubles
                    self._number[identifier] = float(value.data)
                    rank = EXACT_ORDER
            elif value.kind == DOUBLE:
                self._number[identifier] = value.data
                rank = IS_DOUBLE
            self._rank[identifier] = rank  # last: after an interrupt it is decoded anew
        return self._number[ids], self._rank[ids]


@lru_cache(maxsize=_VALUES)
def _decoded(text: str) -> Value:
    return decode(term_of(text))
