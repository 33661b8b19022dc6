"""Events that come alone, for parameterized patterns: each is one symbol of one text, nearly always."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Stamp
from spaseq.gpm.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.history import History
from spaseq.matching.conditions import batch as heads
from spaseq.matching.conditions.numbers import Numbers
from spaseq.matching.parameterized import _kernel as k
from spaseq.matching.parameterized.query import Compiled
from spaseq.matching.parameterized.text import Text, Values, read
from spaseq.terms.dictionary import Dictionary

#: The only event of such a batch.
_FIRST: Final = np.zeros(1, dtype=np.int64)


class Alone:
    """Reads such events, one by one; ``taking`` knows what is asked of them."""

    def __init__(
        self, pattern: SequencePattern, compiled: Compiled, dictionary: Dictionary, history: History
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

    def take(
        self, at: Stamp, graph: int, terms: Sequence[int], start: int, last: int, oldest: int,
        event: Single | None, values: Values,
    ) -> Text | None:  # fmt: skip
        """Takes an event, which nobody needs once ``oldest`` is behind ``last``; None if it is large.

        What this gives holds until the next event.
        """
        batch = self.taking.take(at, graph, terms, start, last, oldest, event)
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

    def _otherwise(self, batch: k.Ints, values: Values) -> Text:
        """An event of several partitions, or one with a term that is compared in no simple way."""
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
