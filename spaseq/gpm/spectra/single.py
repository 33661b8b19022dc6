"""Basic graph patterns in an event that came alone: its triples are a few numbers, and so are solutions.

What ``rowwise`` says by dicts of names, tuples say here: the names are the same for all events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from pyoxigraph import BlankNode, NamedNode

from spaseq.gpm.sharing import Values
from spaseq.language.syntax import Group, TriplePattern, Triples, Var
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term

#: Up to so many triples all of them are looked at for each of a pattern's.
MOST_TRIPLES: Final = 16

_NEW: Final = -1
_CONSTANT: Final = -2


class _Step(NamedTuple):
    """A triple of a pattern. A place is a term, or where in a row it was bound before, or binds a new one."""

    predicate: int
    subject: int
    s: int
    object: int
    o: int
    #: Whether subject and object are the same new variable.
    is_loop: bool


def joined(
    pattern: Group, names: Sequence[str], dictionary: Dictionary
) -> Callable[[Sequence[int]], Values] | None:
    """What gives a pattern's solutions in the terms of an event's triples; None if it is more than a join.

    ``names``: its variables, in the order in which they are given.
    """
    triples = [t for e in pattern.elements if isinstance(e, Triples) for t in e.patterns]
    if not all(isinstance(e, Triples) for e in pattern.elements) or not triples:
        return None
    known: dict[str, int] = {}
    steps = []
    for triple in _connected(triples):
        if not isinstance(triple.predicate, NamedNode):
            return None
        s, subject = _place(triple.subject, known, dictionary)
        is_loop = s == _NEW and _name(triple.subject) == _name(triple.object)
        if s == _NEW:
            known[_name(triple.subject)] = len(known)
        o, object_ = (_NEW, UNBOUND) if is_loop else _place(triple.object, known, dictionary)
        if o == _NEW and not is_loop:
            known[_name(triple.object)] = len(known)
        steps.append(_Step(dictionary.pin(triple.predicate), subject, s, object_, o, is_loop))
    if set(names) != {name for name in known if not name.startswith("_:")}:
        return None
    order = [known[name] for name in names]
    return _walk(steps, order, order == list(range(len(known))))


def _walk(
    steps: Sequence[_Step], order: Sequence[int], is_ordered: bool
) -> Callable[[Sequence[int]], Values]:
    pick = itemgetter(*order) if len(order) > 1 else None

    def solutions(terms: Sequence[int]) -> Values:
        rows: list[tuple[int, ...]] = [()]
        for step in steps:
            rows = _extended(rows, terms, step)
            if not rows:
                return ()
        if is_ordered:
            return tuple(rows)
        if pick is not None:
            return tuple(map(pick, rows))
        return tuple([tuple([row[i] for i in order]) for row in rows])

    return solutions


def _extended(rows: list[tuple[int, ...]], terms: Sequence[int], step: _Step) -> list[tuple[int, ...]]:
    """The rows joined with the event's triples of a predicate."""
    predicate, subject, s, object_, o, is_loop = step
    found = []
    for row in rows:
        for at in range(1, len(terms), 3):
            if terms[at] != predicate:
                continue
            first, second = terms[at - 1], terms[at + 1]
            if s != _NEW and first != (subject if s == _CONSTANT else row[s]):
                continue
            if is_loop:
                if first == second:
                    found.append((*row, first))
            elif o == _NEW:
                found.append((*row, second) if s != _NEW else (*row, first, second))
            elif second == (object_ if o == _CONSTANT else row[o]):
                found.append(row if s != _NEW else (*row, first))
    return found


def _connected(triples: Sequence[TriplePattern]) -> list[TriplePattern]:
    """The triples, each beside one that it has a variable in common with, if possible."""
    left, found, known = list(triples), [], set[str]()
    while left:
        at = next((i for i, t in enumerate(left) if known & {_name(t.subject), _name(t.object)} - {""}), 0)
        found.append(left.pop(at))
        known |= {_name(found[-1].subject), _name(found[-1].object)}
    return found


def _place(term: Term | Var, known: dict[str, int], dictionary: Dictionary) -> tuple[int, int]:
    """Where a row has a term, if it has, and the id of a constant."""
    name = _name(term)
    if not name:
        assert not isinstance(term, Var)
        return _CONSTANT, dictionary.pin(term)
    return known.get(name, _NEW), UNBOUND


def _name(term: Term | Var) -> str:
    """That of a variable or blank node; empty for a constant."""
    if isinstance(term, Var):
        return term.name
    return f"_:{term.value}" if isinstance(term, BlankNode) else ""
