"""What a label tells of an event's place in the sequence, where that is one place."""

from __future__ import annotations

from spaseq.automaton.nfa import Again, Enter
from spaseq.automaton.pattern import Atom, Kleene, SequencePattern, walk
from spaseq.matching.columns.blocks.plain import Site, Sites
from spaseq.matching.enumeration.automaton import reachable
from spaseq.matching.kernel.matches import plain_kleenes
from spaseq.matching.runs.program import Place


def sites(pattern: SequencePattern, start: Place) -> Sites | None:
    """The site of each label, by number; None if a match must be replayed to know what its events are in it.

    A label tells where its GPM stands once in the sequence, and always begins an iteration, or never.
    """
    kleenes = {node.id: node for node in walk(pattern.root) if isinstance(node, Kleene)}
    if pattern.where or plain_kleenes(pattern) != kleenes.keys():
        return None
    found: dict[str, tuple[int, Site]] = {}
    gpms = tuple(pattern.gpms)
    steps = [(g, way) for place in reachable(start) for g in place.gates for way in g.ways]
    for gate, way in steps:
        atom = way.unit
        assert isinstance(atom, Atom)  # nothing gathers events here
        kleene = kleenes[way.inside[-1]] if way.inside else None
        site = Site(
            gpms.index(atom.gpm),
            atom.gpm,
            None if kleene is None else kleene.id,
            any(isinstance(action, Enter | Again) for action in (*gate.ends, *way.begins)),
            frozenset() if kleene is None else kleene.own,
        )
        if found.setdefault(atom.gpm, (atom.id, site)) != (atom.id, site):
            return None
    return Sites([found[gpm][1] if gpm in found else Site(g, gpm) for g, gpm in enumerate(gpms)], gpms)
