"""Bounds of time inside a sequence (``X WITHIN d``): which of them a run is in, wherever it waits."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.automaton.nfa import Action, Since, Until
from spaseq.matching.runs.program import Gate


def open_bounds(gates: Sequence[Gate]) -> dict[Gate, tuple[Until, ...]]:
    """The bounds of time that runs in front of each gate are in: those that end before they begin again."""
    found: dict[Gate, dict[int, Until]] = {gate: {} for gate in gates}

    def before(actions: Sequence[Action], after: dict[int, Until]) -> dict[int, Until]:
        opened = dict(after)
        for action in reversed(actions):
            if isinstance(action, Until):
                opened[action.within] = action
            elif isinstance(action, Since):
                opened.pop(action.within, None)
        return opened

    changed = True
    while changed:
        changed = False
        for gate in gates:
            opened = dict(found[gate])
            for way in gate.ways:
                after: dict[int, Until] = {}
                for ends in way.target.accepts:
                    after |= before(ends, {})
                for onward in way.target.gates:
                    after |= before(onward.ends, found[onward])
                opened |= before(way.begins, after)
            if opened != found[gate]:
                found[gate], changed = opened, True
    return {gate: tuple(opened.values()) for gate, opened in found.items()}
