"""What runs of the kernel are to ``Context``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from spaseq.automaton.nfa import Action
from spaseq.automaton.pattern import Atom, Both, Node, children, walk
from spaseq.matching.columns.history import History
from spaseq.matching.context import Context, Rows
from spaseq.matching.host import Key
from spaseq.matching.kernel.tables.analysis import Candidate
from spaseq.matching.kernel.tables.compiled import Compiled
from spaseq.matching.model import Found

#: A run: the positions and candidates of its events.
Path = Sequence[tuple[int, int]]


class Replay:
    """Gives runs that the kernel found, or asks about, to ``Context``: exactly, whatever the tables say."""

    def __init__(self, own: Callable[[], Compiled], context: Context, history: History) -> None:
        """``own`` compiles the query: most have no run that has to be looked at."""
        self._own = own
        self._context = context
        self._history = history

    @cached_property
    def _compiled(self) -> Compiled:
        return self._own()

    @property
    def _candidates(self) -> Sequence[Candidate]:
        return self._compiled.candidates

    def match(self, path: Path, accept: int, key: Key) -> Found | None:
        """A run that ended as a match, unless its Ω turns out to be empty."""
        rows = self._context.act(self.rows(path, key), self._compiled.accepts[accept])
        rows = self._context.complete(rows)
        if not rows:
            return None
        gpms = [self._candidates[number].unit.gpm for _, number in path]
        events = (self._history.occurrence(at, key, gpm) for (at, _), gpm in zip(path, gpms, strict=True))
        return Found(tuple(dict.fromkeys(zip(gpms, events, strict=True))), rows)

    def may_go_on(self, path: Path, ends: Sequence[Action], key: Key) -> bool:
        """Whether Ω is not empty after these actions."""
        return bool(self._context.act(self.rows(path, key), ends))

    def may_end(self, path: Path, ends: Sequence[Action], key: Key) -> bool:
        """Whether a run is a match that ends with these actions."""
        return bool(self._context.complete(self._context.act(self.rows(path, key), ends)))

    def rows(self, path: Path, key: Key) -> Rows:
        """Ω of a run right after its last event."""
        rows = self._context.start
        for step in taken(path, self._candidates):
            rows = self._extend(rows, step, key)
        return rows

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Whether an event, or several at one time, are relevant for a candidate of a run."""
        return bool(self._extend(self.rows(path, key), step, key))

    def _extend(self, rows: Rows, step: Path, key: Key) -> Rows:
        candidate = self._candidates[step[0][1]]
        rows = self._context.act(self._context.act(rows, candidate.gate.ends), candidate.begins)
        return gathered(self._context, self._history, rows, step, self._candidates, key)


def taken(path: Path, candidates: Sequence[Candidate]) -> Iterator[Path]:
    """The steps of a run: one event each, or the events that an ``&`` gathers."""
    at = 0
    while at < len(path):
        size = max(1, len(candidates[path[at][1]].parts))
        yield path[at : at + size]
        at += size


def gathered(
    context: Context, history: History, rows: Rows, step: Path, candidates: Sequence[Candidate], key: Key
) -> Rows:
    """Ω with the events of one step."""
    inside = candidates[step[0][1]].inside
    events = {}
    for position, number in step:
        atom = candidates[number].unit
        events[atom.id] = history.occurrence(position, key, atom.gpm)

    def joined(node: Node, rows: Rows) -> Rows:
        match node:
            case Atom():
                return context.extend(rows, node, events[node.id], inside)
            case Both(operands=operands):
                marked = context.mark(rows)
                return context.join([joined(operand, marked) for operand in operands], node, inside)
            case _:
                (chosen,) = (o for o in children(node) if any(n.id in events for n in walk(o)))
                return joined(chosen, rows)

    first = candidates[step[0][1]]
    return joined(first.both or first.unit, rows)
