"""Which nodes a path joins: pairs of endpoints, by breadth-first search of the product.

The pairs are distinct, as under SPARQL's DISTINCT, however many paths join them (SPARQL itself returns a bag
for ``/`` and ``|``).

If an expression consists only of parts with ``?``, ``*`` or bounds from 0, a path may have no edge. Such a
path joins each given source or target with itself, even a term that is not a node of the graph. If neither
sources nor targets are given, it joins every node with itself (SPARQL 1.1, section 9.3).

The search begins at the end that is given. If both or none are given, it begins at the end where the first
transitions look at fewer edges. If every path takes one of a few edges in the middle, it begins there. One
pair of nodes is searched from both ends (``length_between``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression
from spaseq.paths.search._kernel import Flags, Ids, Nodes
from spaseq.paths.search.cut import Cut
from spaseq.paths.search.product import Given, Product, length_between
from spaseq.paths.search.rare_labels import EVERYWHERE, Marks, mark
from spaseq.paths.search.reach import Part, Search
from spaseq.paths.search.running import AnswerIterator
from spaseq.paths.search.workspace import Borrowed, Workspace
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm, to_rdflib

__all__ = ["Pairs", "PairsPlan", "Search", "find_pairs", "plan_pairs", "rare_cut"]

#: A search begins in the middle if there are more than this many times fewer edges than at either end.
_RARER: Final = 8

#: A rare step in the middle is looked for only if the first transitions look at this many edges or more.
_WORTH: Final = 1 << 10

#: Pairs are converted to terms this many at a time.
_AT_A_TIME: Final = 1 << 14

_ALL: Final[Flags] = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """Distinct pairs of a source and a target; iterating yields them as rdflib terms.

    The arrays hold numbers of nodes, grouped by the end where the search began. ``begins`` are targets if
    ``backwards`` is True, otherwise sources. ``begins[i]`` is paired with ``others[offsets[i]:offsets[i +
    1]]``. Numbers from ``graph.nodes`` on are ``strangers``: terms given as ends that are not nodes of the
    graph. Shapes: ``begins`` ``(n,)``, ``offsets`` ``(n + 1,)``, ``others`` ``(pairs,)``. ``truncated``:
    there are more pairs than ``limit``.
    """

    graph: Snapshot
    begins: Ids
    offsets: Ids
    others: Nodes
    backwards: bool
    truncated: bool
    strangers: tuple[Term, ...]

    def __len__(self) -> int:
        return len(self.others)

    def __iter__(self) -> Iterator[tuple[RdflibTerm, RdflibTerm]]:
        if len(self.others) <= _AT_A_TIME:
            return self._some(0) if len(self.others) else iter(())
        return chain.from_iterable(map(self._some, range(0, len(self.others), _AT_A_TIME)))

    def _some(self, low: int) -> Iterator[tuple[RdflibTerm, RdflibTerm]]:
        """Return the pairs from index ``low`` on, at most ``_AT_A_TIME``, as terms."""
        begins, bounds, high = self.begins, self.offsets, len(self.others)
        if high > _AT_A_TIME:
            high = min(low + _AT_A_TIME, high)
            first, last = np.searchsorted(bounds, (low + 1, high)).tolist()
            begins, bounds = begins[first - 1 : last], bounds[first - 1 : last + 1].clip(low, high)
        begins = begins.repeat(bounds[1:] - bounds[:-1])
        ones, others = self._terms(begins), self._terms(self.others[low:high])
        return zip(others, ones, strict=True) if self.backwards else zip(ones, others, strict=True)

    def _terms(self, numbers: Ids | Nodes) -> list[RdflibTerm]:
        if self.strangers and numbers[-1] >= self.graph.nodes:  # they stand at the end
            return list(map(self.term, numbers.tolist()))
        return self.graph.terms(numbers)

    def __repr__(self) -> str:
        return f"<Pairs: {len(self):,}{', and there are more' if self.truncated else ''}>"

    @property
    def arrays(self) -> tuple[Nodes, Nodes]:
        """The sources and the targets as numbers of nodes, each of shape ``(len(self),)``."""
        begins = np.repeat(self.begins.astype(np.int32), np.diff(self.offsets))
        return (self.others, begins) if self.backwards else (begins, self.others)

    def term(self, number: int) -> RdflibTerm:
        """Return the term of a number in the arrays."""
        if number >= self.graph.nodes:
            return to_rdflib(self.strangers[number - self.graph.nodes])
        return self.graph.term(number)


class PairsPlan(NamedTuple):
    """How to search: the nodes to begin at, and ``ends``, those wanted at the other end (None: all).

    ``strangers`` are terms that are not nodes of the graph, and are joined with themselves. ``marks`` is not
    None if the search began in the middle.
    """

    product: Product
    begins: Ids
    ends: Ids | None
    backwards: bool
    strangers: tuple[Term, ...]
    marks: Marks | None

    @property
    def wanted(self) -> Flags:
        """A flag for each node, True if it is wanted; of length 0 if all nodes are."""
        if self.ends is None:
            return _ALL
        flags = np.zeros(max(1, self.product.pointers.shape[1] - 1), dtype=np.bool_)
        flags[self.ends] = True
        return flags


def plan_pairs(graph: Snapshot, expression: str | Expression, sources: Any, targets: Any) -> PairsPlan:
    """Return how to find the pairs of an expression; arguments are as for ``find_pairs``."""
    with graph.workspaces.borrow(graph.memory(expression)) as workspace:
        asked = _asked(graph, expression, sources, targets)
        return _plan(graph, expression, asked, workspace)._replace(marks=None)


def find_pairs(
    graph: Snapshot, expression: str | Expression, sources: Any, targets: Any, limit: int | None
) -> Pairs:
    """Return the distinct pairs that a path of the expression joins, at most ``limit`` of them.

    ``sources`` and ``targets`` are terms, one or several, or None for all. Raises QuerySyntaxError and
    QueryMeaningError with the place in the expression.
    """
    asked = _asked(graph, expression, sources, targets)
    with graph.workspaces.borrow(graph.memory(expression)) as workspace:
        if (plan := _one_pair(asked)) is not None:
            found = _joined(graph, expression, plan, workspace)
        else:
            plan = _plan(graph, expression, asked, workspace)
            memory = workspace.memory
            share = None if limit is not None else lambda: graph.workspaces.borrow(memory.share())
            found = _search(plan, workspace, share).run(limit)
    begins, offsets, others = plan.begins, found.offsets, found.found
    if plan.strangers:
        alone = _strangers(graph, plan)
        begins = np.concatenate([begins, alone.begins])
        offsets = np.concatenate([offsets, offsets[-1] + alone.offsets[1:]])
        others = np.concatenate([others, alone.others])
    truncated = limit is not None and len(others) > limit
    if truncated:
        others, offsets = others[:limit], np.minimum(offsets, limit or 0)
    return Pairs(graph, begins, offsets, others, plan.backwards, truncated, plan.strangers)


def find_batches(
    graph: Snapshot, expression: str | Expression, sources: Any, targets: Any
) -> Iterator[Pairs]:
    """Yield the pairs of ``find_pairs`` as they are found; memory holds only some 2^16 at a time."""
    asked = _asked(graph, expression, sources, targets)

    def found() -> Iterator[Pairs]:
        with graph.workspaces.borrow(graph.memory(expression)) as workspace:
            parts: Iterable[Part]
            if (plan := _one_pair(asked)) is not None:
                found = _joined(graph, expression, plan, workspace)
                parts = [found] if len(found.found) else []
            else:
                plan = _plan(graph, expression, asked, workspace)
                parts = _search(plan, workspace).parts()
            for part in parts:
                begins = part.begins.astype(np.int64)
                yield Pairs(graph, begins, part.offsets, part.found, plan.backwards, False, ())
        if plan.strangers:
            yield _strangers(graph, plan)

    return AnswerIterator(found())


def _strangers(graph: Snapshot, plan: PairsPlan) -> Pairs:
    """Return the terms that are not nodes, each paired with itself."""
    count = len(plan.strangers)
    alone = np.arange(graph.nodes, graph.nodes + count, dtype=np.int64)
    offsets = np.arange(count + 1, dtype=np.int64)
    return Pairs(graph, alone, offsets, alone.astype(np.int32), plan.backwards, False, plan.strangers)


def _search(plan: PairsPlan, workspace: Workspace, borrow: Callable[[], Borrowed] | None = None) -> Search:
    wanted = _ALL if plan.ends is None else workspace.want(plan.ends)
    inside = EVERYWHERE if plan.marks is None else plan.marks.inside
    return Search(plan.product.machine, workspace, plan.begins.astype(np.int32), wanted, inside, borrow)


class _Asked(NamedTuple):
    """A query: its product, the given sources and the wanted targets (None: all nodes)."""

    forward: Product
    given: Given | None
    wanted: Given | None


def _asked(graph: Snapshot, expression: str | Expression, sources: Any, targets: Any) -> _Asked:
    forward = graph.product(expression)
    given = None if sources is None else graph.numbers(sources)
    wanted = None if targets is None else graph.numbers(targets)
    return _Asked(forward, given, wanted)


def _one_pair(asked: _Asked) -> PairsPlan | None:
    """Return the plan if exactly one source and one target are nodes of the graph, otherwise None."""
    forward, given, wanted = asked
    if given is None or wanted is None or not len(given[0]) == len(wanted[0]) == 1:
        return None
    strangers = forward.strangers(given, wanted) if forward.anywhere else ()
    return PairsPlan(forward, given[0], wanted[0], False, strangers, None)


def _joined(graph: Snapshot, expression: str | Expression, plan: PairsPlan, workspace: Workspace) -> Part:
    """Return the one pair of the plan if a path joins it, otherwise no pair."""
    assert plan.ends is not None
    forward, source, target = plan.product, int(plan.begins[0]), int(plan.ends[0])
    joined = source == target and bool(len(forward.empty)) and bool(forward.empty[source])
    if not joined:
        backward = graph.product(expression, backwards=True)
        joined = length_between(forward, source, backward, target, workspace) is not None
    others = np.array([target] if joined else [], dtype=np.int32)
    return Part(plan.begins.astype(np.int32), np.array([0, len(others)]), others)


def _plan(graph: Snapshot, expression: str | Expression, asked: _Asked, workspace: Workspace) -> PairsPlan:
    forward, given, wanted = asked
    strangers = forward.strangers(given, wanted) if forward.anywhere else ()
    starts = None if given is None else given[0]
    ends = None if wanted is None else wanted[0]
    cost, backwards = cheaper_end(graph, expression, starts, ends)
    marks = None
    if (cut := rare_cut(forward, cost)) is not None:
        backward = graph.product(expression, backwards=True)
        marks = mark(forward, backward, cut, workspace)
        from_here, from_there = both(starts, marks.sources), both(ends, marks.targets)
        backwards = backward.first_edges(from_there) < forward.first_edges(from_here)
        begins: Ids | None = from_there if backwards else from_here
    else:
        begins = ends if backwards else starts
    product = graph.product(expression, backwards=True) if backwards else forward
    if begins is None:
        begins = product.candidates()
    return PairsPlan(product, begins, starts if backwards else ends, backwards, strangers, marks)


def cheaper_end(
    graph: Snapshot, expression: str | Expression, starts: Ids | None, ends: Ids | None
) -> tuple[int, bool]:
    """Return how many edges the first transitions look at from the better end, and if that is the targets.

    An end that is given is better than one that is not.
    """
    if ends is None or starts is not None:
        ahead = graph.product(expression).first_edges(starts)
        if (starts is None) != (ends is None):
            return ahead, False
    behind = graph.product(expression, backwards=True).first_edges(ends)
    if (starts is None) != (ends is None):
        return behind, True
    return min(ahead, behind), behind < ahead


def rare_cut(product: Product, cost: int) -> Cut | None:
    """Return where to begin in the middle, if that is much cheaper than ``cost``, that of the better end."""
    if cost < _WORTH or len(product.empty):  # where a path may have no edge, all nodes are answers anyway
        return None
    cut = product.cut
    return cut if cut is not None and _RARER * cut.edges < cost else None


def both(given: Ids | None, found: Ids) -> Ids:
    """Return the nodes that are both given and found; ``given`` None means all nodes."""
    return found if given is None else np.intersect1d(given, found, assume_unique=True)
