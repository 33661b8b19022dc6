"""What the lazy kernel found, as matches in the order of delivery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.language.syntax import Emit
from spaseq.matching.host import InOrder, Key, delivered, may_end_together, select
from spaseq.matching.kernel.matches import Plain, Site, Taken, plain_kleenes
from spaseq.matching.lazy import _kernel_layout as lay
from spaseq.matching.lazy.exact import Exact
from spaseq.matching.lazy.tables import Compiled
from spaseq.matching.model import Found, distinct
from spaseq.matching.past import Past

Ints = npt.NDArray[np.int64]
#: The events of a match, see ``Found.path``.
Path = tuple[tuple[int, str], ...]


class Matches:
    """Makes matches of what the kernel found, see ``kernel.matches.Matches``: as they are, or exactly."""

    def __init__(
        self, pattern: SequencePattern, compiled: Compiled, past: Past, exact: Exact, order: InOrder
    ) -> None:
        self._emit = pattern.query.emit
        self._order = order
        self._several = may_end_together(pattern)
        self._keys = len(pattern.query.partition)
        self._past = past
        self._exact = exact
        plain = plain_kleenes(pattern)
        self._gpms = [item.atom.gpm for item in compiled.sites]
        self._sites = [
            Site(
                compiled.gpms.index(item.atom.gpm),
                item.atom.gpm,
                None if item.kleene is None else item.kleene.id,
                item.kleene is not None,
                frozenset() if item.kleene is None else item.kleene.own,
            )
            for item in compiled.sites
        ]
        self._simple = all(item.kleene is None or item.kleene.id in plain for item in compiled.sites)

    def of(self, found: Ints, choices: Ints) -> Iterator[tuple[Key, Found]]:
        """The matches of what was found: rows as in ``_kernel_layout``, and their choices."""
        taken = Taken(self._sites, self._past, choices)
        rows = found.tolist()
        for _, same in groupby(rows, key=itemgetter(lay.FOUND_EVENT)):
            group = list(same)
            if not self._keys:
                for match in self._chosen((), group, taken):
                    yield (), match
                continue
            by_key: dict[Key, list[list[int]]] = {}
            for row in group:
                by_key.setdefault(tuple(row[lay.FOUND_KEY : lay.FOUND_KEY + self._keys]), []).append(row)
            for key in sorted(by_key):
                for match in self._chosen(key, by_key[key], taken):
                    yield key, match

    def _chosen(self, key: Key, rows: Sequence[Sequence[int]], taken: Taken) -> Iterable[Found]:
        """Those of the matches with one last event that are delivered, in order."""
        matches: dict[Path, Found] = {}
        unsure: list[Path] = []
        again: list[tuple[Path, Found]] = []
        for row in rows:
            begin, end = row[lay.FOUND_BEGIN], row[lay.FOUND_END]
            path = tuple(taken.path[begin:end])  # the kernel has put them in order
            if row[lay.FOUND_UNSURE] or not self._simple:
                unsure.append(path)
            elif path in matches:
                again.append((path, Plain(taken, begin, end)))
            else:
                matches[path] = Plain(taken, begin, end)
        for path in dict.fromkeys(unsure):
            match = self._exact.match(path, key)
            matches.pop(path, None)
            if match is not None:
                matches[path] = match
        for path, match in again:
            if path not in unsure:
                (matches[path],) = distinct([matches[path], match])
        if len(matches) < 2:
            return matches.values()
        if self._several:
            return delivered(self._emit, matches.values(), self._order)
        found = [matches[path] for path in sorted(matches)]
        if self._emit is Emit.ALL:
            return found
        return sorted(select(self._emit, found, self._order), key=attrgetter("path"))
