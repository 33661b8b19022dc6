"""What a query is compiled to for the runs kernel: the tables, and what their numbers stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spaseq.automaton.nfa import Action
from spaseq.language.syntax import Duration
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.conditions.derived import Derived
from spaseq.matching.conditions.postfix import Lookup
from spaseq.matching.kernel.tables.analysis import Analysis, Candidate

if TYPE_CHECKING:
    from spaseq.matching.kernel.matches import Looks


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query's tables, and what their numbers stand for.

    ``columns`` are GPMs and variables; ``width`` and ``sums`` are the integers and floats of a wait. Of the
    rows that negations look back at, ``entry`` are the integers of one, and ``offsets`` says where in it the
    columns stand. ``derived`` are columns that are computed, ``lookups`` the expressions whose values are
    asked for, ``limits`` bounds of time (``LIMITS`` is for what they are on the streams' clock).
    ``ambiguous``: a match that waits may have the events of one that does not. ``analysis`` is what all of it
    was written from. ``looks``: what was said of matches, by whether they are decided; tables that are alike
    have it in common.
    """

    analysis: Analysis
    tables: v.Ints
    gpms: tuple[str, ...]
    columns: tuple[tuple[int, str], ...]
    candidates: tuple[Candidate, ...]
    accepts: tuple[tuple[Action, ...], ...]
    gates: int
    constants: tuple[int, ...]
    width: int
    sums: int
    entry: int
    offsets: tuple[int, ...]
    derived: Mapping[str, Derived]
    lookups: tuple[Lookup, ...]
    limits: tuple[Duration, ...]
    ambiguous: bool
    looks: dict[bool, Looks] = field(default_factory=dict)
