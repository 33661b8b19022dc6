"""What a query says is absent, as far as it ends partial matches for good as soon as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.kernel.records import chains, gates, places
from spaseq.matching.kernel.tables.analysis import Analysis, Chain, Compiled
from spaseq.matching.shedding.compiled import _kernel_absent as k
from spaseq.matching.shedding.learned.comparisons import BINARY

Ints = npt.NDArray[np.int64]

#: What comes to the same, once it comes to something, whatever else is bound.
_LASTING: Final = BINARY | {
    "MINUS",
    "ABS",
    "NOT",
    "FUNCTION",
    "PUSH",
    "CONSTANT",
    "DISTANCE",
    "COMPARE",
    "RELATE",
    "TEST",
    "OR",
    "AND",
    "UNLESS_TRUE",
    "UNLESS_FALSE",
} - {"AVERAGE"}


def tells_the_dead(analysis: Analysis) -> bool:
    """Whether what has come where it must be absent ends a partial match for good, by what is bound of it.

    So what is forbidden must be read in one way only, and nothing to come may make true what is false, or the
    other way round: no condition of it asks what is bound, or of a Kleene that goes on.
    """
    absences = analysis.absences
    checked = [check.atom for absence in absences.all for check in absences.checks(absence)]
    return (
        bool(checked)
        and len(absences.views) == 1
        and all(
            step.op in _LASTING for atom in checked for step in analysis.codes[atom.id, absences.views[0]]
        )
    )


def graves(compiled: Compiled) -> Ints:
    """Where partial matches stand that what comes may end, as ``compiled`` reads it.

    For each chain of rows that are forbidden, and each gate at which partial matches wait meanwhile whose
    key such a row has: those that it does not end are found by their key, like those that go on.
    """
    if not tells_the_dead(compiled.analysis):
        return np.zeros(0, dtype=np.int64)
    rows = dict.fromkeys(_rows(compiled))
    return np.array(list(rows), dtype=np.int64).reshape(-1, k.G_SIZE)


def _rows(compiled: Compiled) -> Iterator[tuple[int, ...]]:
    analysis, t = compiled.analysis, compiled.tables
    first = int(t[t[v.START] + places.GATES])
    for number, gate in enumerate(analysis.gates):
        key = analysis.gate_key(gate)
        for absence in analysis.absences.open_at(gate):
            for check in analysis.absences.checks(absence):
                chain = analysis.chain(check.atom)
                if check.sure and set(key) <= set(chain.key):
                    columns = _columns(compiled, chain.gpm, key)
                    filled = *columns, *[0] * (k.MOST_KEYS - len(columns))
                    yield _at(compiled, chain), first + number * gates.SIZE, len(columns), *filled


def _columns(compiled: Compiled, gpm: str, names: list[str]) -> list[int]:
    number = compiled.gpms.index(gpm)
    return [compiled.columns.index((number, name)) for name in names]


def _at(compiled: Compiled, chain: Chain) -> int:
    """Where a chain stands in the tables."""
    t, gpm = compiled.tables, compiled.gpms.index(chain.gpm)
    key = _columns(compiled, chain.gpm, list(chain.key))
    return next(
        at
        for at in range(t[v.CHAINS], t[v.CHAINS_END], chains.SIZE)
        if t[at + chains.GPM] == gpm and t[t[at + chains.KEYS] : t[at + chains.KEYS_END]].tolist() == key
    )
