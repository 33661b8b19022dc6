"""Which queries can be enumerated, and by what their runs are told apart."""

from __future__ import annotations

from collections import Counter

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.nfa import NFA
from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Both,
    Kleene,
    Maybe,
    Node,
    SequencePattern,
    children,
    walk,
)
from spaseq.language.syntax import Consume, Emit, Strategy
from spaseq.matching.enumeration._kernel_layout import KEY_LIMIT

#: Labels are the bits of an integer.
_MOST_GPMS = 62


def fits(pattern: SequencePattern) -> str | None:
    """Why the matches of a query cannot be enumerated, in a few words; None if they can."""
    for node in walk(pattern.root):
        if isinstance(node, Absent | Maybe):
            return "a negation or ? looks at what is between events"
        if isinstance(node, Both | AnyOrder):
            return "& or ALL gathers several events"
        if isinstance(node, Atom) and node.filters:
            return f"{node.gpm} has a filter on other events"
    if pattern.where:
        return "WHERE has filters on several events"
    nfa = compile_pattern(pattern)
    if any(edge.predicate.strategy not in (Strategy.ANY, None) for edge in nfa.edges):
        return "an operator other than ':'"
    if len(pattern.gpms) > _MOST_GPMS:
        return f"there are more than {_MOST_GPMS} GPMs"
    return _keys_fit(pattern, nfa)


def _keys_fit(pattern: SequencePattern, nfa: NFA) -> str | None:
    derived = _derived(pattern)
    query = pattern.query
    if derived - set(nfa.shared):
        name = min(derived - set(nfa.shared))
        return f"?{name} joins some events of a match and not all"
    if derived and (query.emit is not Emit.ALL or query.consume is not Consume.NONE):
        return "EMIT and CONSUME need the matches of all join keys at once"
    if len(query.partition) + len(derived) > KEY_LIMIT:
        return f"more than {KEY_LIMIT} variables tell runs apart"
    return None


def keys(pattern: SequencePattern) -> tuple[str, ...]:
    """The variables whose values tell runs apart: those of PARTITION BY first, then those of joins.

    Where an event may be anything but next to another, all events of a match agreeing in a variable is
    the same as partitioning by it.
    """
    return (*(variable.name for variable in pattern.query.partition), *sorted(_derived(pattern)))


def _derived(pattern: SequencePattern) -> set[str]:
    """The variables that events of a match are joined by, apart from those of PARTITION BY."""
    atoms = [node for node in walk(pattern.root) if isinstance(node, Atom)]
    count = Counter(name for atom in atoms for name in pattern.gpms[atom.gpm].variables)
    kleenes = [node for node in walk(pattern.root) if isinstance(node, Kleene)]
    own = frozenset[str]().union(*(kleene.own for kleene in kleenes))
    inside = {atom.id for kleene in kleenes for atom in _atoms(kleene)}
    repeated = {n for atom in atoms if atom.id in inside for n in pattern.gpms[atom.gpm].variables - own}
    found = {name for name, number in count.items() if number > 1} | repeated
    return found - {variable.name for variable in pattern.query.partition}


def _atoms(node: Node) -> list[Atom]:
    if isinstance(node, Atom):
        return [node]
    return [atom for child in children(node) for atom in _atoms(child)]
