"""What a run may choose next when an event comes, at least: events in hand, and one to come, as a choice.

A match is delivered as soon as no such choice is preferred to its own (semantics, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from spaseq.automaton.pattern import Atom, Both, Either, Node
from spaseq.matching.ordered.skipping import Moment

#: As ``runs.memory.Path``, with moments for events.
Path = tuple[object, ...]


def least(node: Node, old: Callable[[Atom], Moment | None], now: Moment) -> Path:
    """The least path of a GPM, an ``&`` or a ``|`` of them with an event that comes, not before ``now``.

    ``old``: the earliest of the events in hand that a GPM may take along with it; None if there is none.
    """
    return _least(node, old, now)[1]


def _least(node: Node, old: Callable[[Atom], Moment | None], now: Moment) -> tuple[Path | None, Path]:
    """The least path of events in hand, None if there is none, and the least with one that comes."""
    match node:
        case Atom():
            moment = old(node)
            return None if moment is None else (moment,), (now,)
        case Either(operands=operands):
            pairs = [_least(operand, old, now) for operand in operands]
            olds: list[Path] = [
                (node.place(i), *path) for i, (path, _) in enumerate(pairs) if path is not None
            ]
            return _smallest(olds), min((node.place(i), *path) for i, (_, path) in enumerate(pairs))
        case Both(operands=operands):
            pairs = [_least(operand, old, now) for operand in operands]
            ways = product(*([(path, new) for new, path in enumerate(p) if path is not None] for p in pairs))
            found: tuple[list[Path], list[Path]] = ([], [])
            for way in ways:
                found[any(new for _, new in way)].append(tuple(item for path, _ in way for item in path))
            return _smallest(found[0]), min(found[1])
        case _:
            raise TypeError(f"not simultaneous: {node}")


def _smallest(paths: list[Path]) -> Path | None:
    return min(paths) if paths else None


def least_gathered(operands: Sequence[Sequence[tuple[Moment, Path]]], now: Moment) -> Path:
    """The least choice of an ``ALL`` of GPMs with an event that comes, not before ``now``.

    ``operands``: of each GPM what it has found so far, when, and with which choices. Of a choice to come only
    the moment and the operand are known, which is enough: they differ from those of all that is there.
    """
    olds = [min(found, default=None) for found in operands]
    ways = product(*([None] if old is None else [None, old] for old in olds))
    return min(
        tuple(sorted((now, i) if old is None else (old[0], i, old[1]) for i, old in enumerate(way)))
        for way in ways
        if None in way
    )
