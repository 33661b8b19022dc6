"""What the lazy kernel found, as matches in the order of delivery."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.matching.host import Key, select
from spaseq.matching.kernel.matches import Plain, Site, Taken, plain_kleenes
from spaseq.matching.lazy import _kernel_layout as lay
from spaseq.matching.lazy.exact import Exact
from spaseq.matching.lazy.tables import Compiled
from spaseq.matching.model import Found, distinct
from spaseq.matching.past import Past

Ints = npt.NDArray[np.int64]


class Matches:
    """Makes matches of what the kernel found, see ``kernel.matches.Matches``: as they are, or exactly."""

    def __init__(self, pattern: SequencePattern, compiled: Compiled, past: Past, exact: Exact) -> None:
        self._emit = pattern.query.emit
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
        for _, same in groupby(found.tolist(), key=lambda row: row[lay.FOUND_EVENT]):
            by_key: dict[Key, list[list[int]]] = {}
            for row in same:
                by_key.setdefault(tuple(row[lay.FOUND_KEY : lay.FOUND_KEY + self._keys]), []).append(row)
            for key in sorted(by_key):
                for match in self._chosen(key, by_key[key], taken):
                    yield key, match

    def _chosen(self, key: Key, rows: list[list[int]], taken: Taken) -> list[Found]:
        """Those of the matches with one last event that are delivered, in order."""
        matches: list[Found] = []
        unsure: dict[tuple[tuple[int, str], ...], None] = {}
        plain: list[Found] = []
        for row in rows:
            begin, end = row[lay.FOUND_BEGIN], row[lay.FOUND_END]
            one = Plain(taken, begin, end)
            if row[lay.FOUND_UNSURE] or not self._simple:
                unsure[one.path] = None
            else:
                plain.append(one)
        for path in unsure:
            match = self._exact.match(path, key)
            if match is not None:
                matches.append(match)
        matches += [one for one in plain if one.path not in unsure]
        if len(matches) > 1:
            matches = sorted(select(self._emit, distinct(matches)), key=attrgetter("path"))
        return matches
