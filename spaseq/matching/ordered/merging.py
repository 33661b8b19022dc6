"""Which runs have the same future: those that agree in all that the rest of a sequence may read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from spaseq.automaton.pattern import Atom, Both, Kleene, SequencePattern, walk
from spaseq.language import scope
from spaseq.language.syntax import Aggregate, Exists, Filter, Prev
from spaseq.matching.runs.state import Wait


class Merging:
    """Tells for runs of one first event what they agree in.

    What filters read, and what joins, must be plain variables: values of past iterations are not compared.
    """

    def __init__(self, pattern: SequencePattern) -> None:
        nodes = list(walk(pattern.root))
        kleenes = {node.id: node for node in nodes if isinstance(node, Kleene)}
        # From how many iterations on it is all the same.
        self._limits = {k: n.minimum if n.maximum is None else n.maximum for k, n in kleenes.items()}
        self._single = len(set(pattern.streams)) == 1
        conditions = [item.condition for item in _filters(pattern)]
        uses = Counter(
            name for node in nodes if isinstance(node, Atom) for name in pattern.gpms[node.gpm].variables
        )
        own = frozenset[str]().union(*(node.own for node in kleenes.values()))
        repeated = {
            name
            for kleene in kleenes.values()
            for node in walk(kleene)
            if isinstance(node, Atom)
            for name in pattern.gpms[node.gpm].variables - own
        }
        joined = {name for name, count in uses.items() if count > 1} | repeated
        self._read = joined.union(*map(scope.mentioned, conditions))
        reads_past = any(
            isinstance(part, Aggregate | Prev | Exists)
            for condition in conditions
            for part in scope.walk(condition)
        )
        self._possible = not reads_past and not self._read & own

    def key(self, wait: Wait) -> object:
        """What other runs must be equal in, to have the same future; None if nothing says so."""
        run = wait.run
        if not self._possible or run.home or run.gaps or run.leading or wait.blockers:
            return None
        counts = tuple(sorted((k, min(n, self._limits[k])) for k, n in run.counts.items()))
        # Of one stream, whatever comes is later than all that was taken.
        frontier = None if self._single and wait.gate.plain else run.frontier
        rows = frozenset(
            (frozenset((v, t) for v, t in row.binding.items() if v in self._read), row.origin)
            for row in wait.rows
        )
        return id(wait.gate), counts, frontier, rows, frozenset(run.since.items())


def _filters(pattern: SequencePattern) -> Iterator[Filter]:
    """The filters that are asked of a match in progress."""
    yield from pattern.where
    for node in walk(pattern.root):
        if isinstance(node, Atom):
            yield from node.filters
        elif isinstance(node, Both):
            yield from node.deferred
