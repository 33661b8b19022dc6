"""Batches in the kernel's form: events as symbols of texts, a text for each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.limits import Budget
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.history import History
from spaseq.matching.columns.ranks import ranks
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.host import Key
from spaseq.matching.kmp import _kernel as k
from spaseq.matching.kmp._kernel import NEWEST, RELEVANT, Ints
from spaseq.matching.kmp.query import KmpQuery
from spaseq.patterns.spectra.solutions import NO_SOLUTIONS, Mask, Solutions, group_codes
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import BLANK, DECIMAL, INTEGER, IRI, LANG, STRING, Value

#: Decimals of up to this many digits differ if their doubles do.
_DIGITS: Final = 15
_LARGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Text:
    """Symbols in the order of delivery: by event and, within an event, by its partitions' keys.

    ``symbols`` are of shape ``(tracks, n)``; ``events`` are positions in the batch; ``keys`` are of shape
    ``(n, variables)``. ``ambiguous`` are symbols that are not exactly one term on some track.
    """

    symbols: Ints
    events: Ints
    keys: Ints
    ambiguous: Mask


class SymbolValues:
    """Terms as numbers that are equal iff ``=`` holds of the terms, for terms where that is simple."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._numbers = np.zeros(0, dtype=np.int64)
        self._state = np.zeros(0, dtype=np.int8)

    def forget(self) -> None:
        """Forget all numbers: ids may have been given to other terms."""
        self._state[:] = 0

    def of(self, ids: Ints) -> tuple[Ints, Mask]:
        """Return the numbers of terms, and which of the terms are not simple to compare."""
        if len(self._state) < self.dictionary.limit:
            room = 2 * self.dictionary.limit - len(self._state)
            self._numbers = np.concatenate([self._numbers, np.zeros(room, dtype=np.int64)])
            self._state = np.concatenate([self._state, np.zeros(room, dtype=np.int8)])
        for identifier in np.unique(ids[self._state[ids] == 0]).tolist():
            number = None if identifier == UNBOUND else _number(identifier, self.dictionary.value(identifier))
            self._numbers[identifier] = number or 0
            self._state[identifier] = 2 if number is None else 1
        return self._numbers[ids], self._state[ids] == 2


def _number(identifier: int, value: Value) -> int | None:
    """Return a number for a term: negative ids and the bits of doubles do not collide."""
    if value.kind in (IRI, BLANK, LANG, STRING):
        return -identifier
    if value.kind not in (INTEGER, DECIMAL):
        return None
    number = Decimal(value.data)
    digits = len(number.as_tuple().digits)
    if number and (digits > _DIGITS or abs(number.adjusted()) > _LARGEST):
        return None
    return int(np.float64(float(number) + 0.0).view(np.int64))


def read(
    compiled: KmpQuery, keys: Sequence[str], size: int, tables: Mapping[str, Solutions], values: SymbolValues
) -> Text:
    """Read a batch of this many events; ``tables`` are the solutions of GPMs, each with its event."""
    asked = [(question, tables[question.gpm]) for question in compiled.questions]
    # Without its filters a GPM only determines the partitions of an event.
    witnesses = [tables[name] for name in compiled.witnesses]
    rows, events, found = _symbols(
        size, keys, [*(table for _, table in asked), *witnesses], values.dictionary
    )
    tracks = np.zeros((compiled.program.tracks, len(events)), dtype=np.int64)
    ambiguous = np.zeros(len(events), dtype=np.bool_)
    for (question, table), at in zip(asked, rows[: len(asked)], strict=True):
        tracks[question.relevance, at] = RELEVANT
        for i, track in enumerate(question.tracks, question.relevance + 1):
            column = table.column(track.variable)
            if track.by_value:
                column, odd = values.of(column)
            else:
                odd = column == UNBOUND
            tracks[i, at] = column
            ambiguous[at[odd | (tracks[i, at] != column)]] = True
    return Text(tracks, events, found, ambiguous)


def _symbols(
    size: int, keys: Sequence[str], tables: Sequence[Solutions], dictionary: Dictionary
) -> tuple[list[Ints], Ints, Ints]:
    """Return the symbol that each row of some tables belongs to; the symbols' events; their keys."""
    of_rows = [table.events for table in tables]
    if not keys:
        return of_rows, np.arange(size), np.zeros((size, 0), dtype=np.int64)
    of_events = np.zeros((size, len(keys)), dtype=np.int64)
    columns = [np.stack([table.column(name) for name in keys], axis=1) for table in tables]
    for rows, column in zip(of_rows, columns, strict=True):
        of_events[rows] = column
    if all((of_events[rows] == column).all() for rows, column in zip(of_rows, columns, strict=True)):
        # The usual case: an event is in one partition.
        events = np.flatnonzero(of_events[:, 0])
        number = np.zeros(size, dtype=np.int64)
        number[events] = np.arange(len(events))
        return [number[rows] for rows in of_rows], events, of_events[events]
    every = [np.concatenate(of_rows), *np.concatenate(columns).T]
    order = ranks(every[0], np.stack(every[1:], axis=1), dictionary)
    _, first, inverse = np.unique(group_codes([every[0], order]), return_index=True, return_inverse=True)
    ends = np.cumsum([len(table) for table in tables])[:-1]
    events, *parts = (column[first] for column in every)
    return np.split(inverse, ends), events, np.stack(parts, axis=1)


class Partitions:
    """The texts of partitions by their keys, as rows of the kernel's state."""

    def __init__(self, width: int, partitioned: bool, budget: Budget) -> None:
        self._budget = budget
        self.state = np.zeros((1, width), dtype=np.int64)
        self.keys: list[Key] = [] if partitioned else [()]
        self._numbers: dict[Key, int] = {}
        # The same for keys of one variable, by id: the number of the text plus 1, 0 if there is none.
        self._by_id = np.zeros(0, dtype=np.int64)
        self._room = 1_024

    def of(self, keys: Ints) -> Ints:
        """Return the numbers of keys' texts; new keys begin new texts."""
        if not len(keys) or not keys.shape[1]:
            return np.zeros(len(keys), dtype=np.int64)
        if len(keys) == 1:
            return self._of_distinct(keys)
        if keys.shape[1] > 1:
            _, first, inverse = np.unique(group_codes(list(keys.T)), return_index=True, return_inverse=True)
            return self._of_distinct(keys[first])[inverse]
        (ids,) = keys.T
        largest = int(ids.max())
        if largest >= len(self._by_id):
            more = np.zeros(largest + 1, dtype=np.int64)
            self._by_id = np.concatenate([self._by_id, more])
        new = np.unique(ids[self._by_id[ids] == 0])
        self._by_id[new] = self._of_distinct(new[:, np.newaxis]) + 1
        numbers: Ints = self._by_id[ids] - 1
        return numbers

    def _of_distinct(self, keys: Ints) -> Ints:
        numbers = []
        for key in map(tuple, keys.tolist()):
            number = self._numbers.setdefault(key, len(self.keys))
            if number == len(self.keys):
                self.keys.append(key)
            numbers.append(number)
        missing = len(self.keys) - len(self.state)
        if missing > 0:
            room = max(missing, len(self.state))
            self._budget.takes("partitions", 8 * (len(self.state) + room) * self.state.shape[1])
            self.state = np.concatenate([self.state, np.zeros((room, self.state.shape[1]), dtype=np.int64)])
        return np.array(numbers, dtype=np.int64)

    def drop_idle(self, oldest: int) -> None:
        """Drop texts that end before ``oldest`` on the window's axis, now and then."""
        if len(self._numbers) < self._room:
            return
        kept = np.flatnonzero(self.state[: len(self.keys), NEWEST] >= oldest)
        self.state = self.state[kept] if len(kept) else np.zeros((1, self.state.shape[1]), dtype=np.int64)
        self.keys = [self.keys[i] for i in kept.tolist()]
        self._numbers = {key: i for i, key in enumerate(self.keys)}
        self._by_id = np.zeros(0, dtype=np.int64)
        self._room = max(1_024, 2 * len(self.keys))


# Single events for parameterized patterns: each is one symbol of one text, nearly always.

#: The position of a single event in its batch.
_FIRST: Final = np.zeros(1, dtype=np.int64)


class SingleSymbols:
    """Reads single events; ``taking`` evaluates the GPMs on them."""

    def __init__(
        self, pattern: SequencePattern, compiled: KmpQuery, dictionary: Dictionary, history: History
    ) -> None:
        self._compiled = compiled
        self._keys = tuple(variable.name for variable in pattern.query.partition)
        self._gpms = tuple(pattern.gpms)
        seen = [*(question.gpm for question in compiled.questions), *compiled.witnesses]
        tracks = [(q.gpm, track) for q in compiled.questions for track in q.tracks]
        self._read = [(self._gpms.index(gpm), name) for gpm in seen for name in self._keys]
        begin = len(self._read)
        self._read += [(self._gpms.index(gpm), track.variable) for gpm, track in tracks]
        asked = [len(seen), len(compiled.questions), len(self._keys)]
        for question in compiled.questions:
            asked += [self._gpms.index(question.gpm), question.relevance, len(question.tracks), begin]
            begin += len(question.tracks)
        for gpm in compiled.witnesses:
            asked += [self._gpms.index(gpm), 0, 0, begin]
        self._asked = np.array([*asked, *(track.by_value for _, track in tracks)], dtype=np.int64)
        self.taking = Taking(
            dictionary, {dictionary.pin(pattern.streams[0]): 0}, self._read, history, is_one=True
        )
        self._numbers = Numbers.of(dictionary)
        self._tracks = np.zeros((compiled.program.tracks, 1), dtype=np.int64)
        self._is_ambiguous = np.zeros(1, dtype=np.bool_)
        self._key = np.zeros((1, len(self._keys)), dtype=np.int64)
        self._text = Text(self._tracks, _FIRST, self._key, self._is_ambiguous)
        self._nothing = Text(self._tracks[:, :0], _FIRST[:0], self._key[:0], self._is_ambiguous[:0])

    def take(self, event: Single, start: int, last: int, oldest: int, values: SymbolValues) -> Text | None:
        """Read an event at place ``last``, needed until ``oldest`` has passed it; None if it is large.

        The result is valid until the next event.
        """
        batch = self.taking.take(event, start, last, oldest)
        if batch is None:
            return None
        numbers = self._numbers
        found = k.symbol(
            batch, self._asked, numbers.numbers.view(np.int64), numbers.codes,
            self._tracks, self._is_ambiguous, self._key[0],
        )  # fmt: skip
        if found == k.ONE:
            return self._text
        return self._nothing if found == k.NONE else self._otherwise(batch, values)

    def _otherwise(self, batch: k.Ints, values: SymbolValues) -> Text:
        """Read an event of several partitions, or one with a term that is not simple to compare."""
        begin, end = batch[batch[heads.SHARES] :][:2].tolist()
        row = {batch.item(at): batch.item(at + 1) for at in range(begin, end, heads.SHARE)}
        columns: dict[int, dict[str, k.Ints]] = {g: {} for g in row}
        for column, (g, name) in enumerate(self._read):
            if g in row:
                place = batch.item(batch.item(heads.COLUMNS) + column) + row[g]
                columns[g][name] = batch[place : place + 1].copy()
        tables = dict.fromkeys(self._gpms, NO_SOLUTIONS)
        tables |= {self._gpms[g]: Solutions(1, _FIRST, of) for g, of in columns.items()}
        return read(self._compiled, self._keys, 1, tables, values)
