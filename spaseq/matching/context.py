"""Ω: the solutions of a match so far, and how an event, an iteration or a filter changes them.

This is section 3 of the semantics, and the part of section 4 on Kleene closures, as functions from
rows to rows: ``X(e, Ω) = F(Ω ⋈ [[P]])``. All evaluators share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyoxigraph import NamedNode

from spaseq.automaton.nfa import Action, Again, Enter, Leave
from spaseq.automaton.pattern import AnyOrder, Atom, Both, Kleene, SequencePattern, walk
from spaseq.events import Stamp
from spaseq.gpm.expressions.aggregates import Iterations, Summary
from spaseq.language import scope
from spaseq.language.syntax import Aggregate
from spaseq.limits import UNLIMITED, Budget, Limits
from spaseq.matching.filters import Exists, Filters
from spaseq.matching.model import Occurrence, Row, Solution
from spaseq.terms.dictionary import Dictionary

Rows = tuple[Row, ...]

#: The place of an event among all: simultaneous ones stand in the order of their streams' IRIs.
Order = tuple[int, int, int]

#: So many rows are not worth counting.
_MANY: Final = 64


class Context(Filters):
    """The operations on rows for one query. ``budget`` is what its evaluator may keep."""

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        exists: Exists,
        limits: Limits = UNLIMITED,
        *,
        apart: int = 0,
    ) -> None:
        """``apart``: so many of the first variables of its partitions say whose a match is, none or one."""
        super().__init__(pattern, dictionary, exists)
        self.budget = Budget(limits)
        #: So many of a key's first variables are in no order that anybody asks for.
        self.apart = apart
        # The ids of the Kleenes inside each Kleene.
        self._inside = {
            identity: tuple(n.id for n in walk(node.element) if isinstance(n, Kleene))
            for identity, node in self._kleenes.items()
        }
        streams = sorted(set(pattern.streams), key=lambda iri: iri.value)
        self._stream_ids = {iri: dictionary.pin(iri) for iri in streams}
        self._ranks = {self._stream_ids[iri]: rank for rank, iri in enumerate(streams)}

    def rank(self, stream: int) -> int:
        """The place of a stream of the query, given by its id, in the order of their IRIs."""
        return self._ranks.get(stream, stream)

    def order(self, stamp: Stamp) -> Order:
        """The place of an event among all."""
        return stamp.time, self.rank(stamp.stream), stamp.n

    def texts(self, key: tuple[int, ...]) -> tuple[bytes, ...]:
        """The place of a partition among those of an event: the terms of its key in N-Triples."""
        return tuple(map(self._dictionary.text, key[self.apart :]))

    def stream_id(self, iri: NamedNode) -> int:
        """The id of one of the query's streams."""
        return self._stream_ids[iri]

    @property
    def streams(self) -> tuple[int, ...]:
        """The ids of the query's streams, in the order of their IRIs."""
        return tuple(self._ranks)

    def speaks_of(self, gpm: str) -> frozenset[str]:
        """The variables that a GPM binds, and those of its filters."""
        part = self._pattern.gpms[gpm]
        return part.variables.union(*(scope.mentioned(f.condition) for f in part.correlated))

    @property
    def start(self) -> Rows:
        """Ω before anything has matched: the one empty solution."""
        return (Row({}),)

    def extend(
        self, rows: Rows, atom: Atom, event: Occurrence, inside: tuple[int, ...], loose: bool = False
    ) -> Rows:
        """``X(e, Ω)``: empty iff the event is not relevant in this context.

        ``inside`` are the Kleenes whose iteration is in progress, outermost first. ``loose`` leaves out
        the filters that need what another operand of an ``ALL`` binds.
        """
        solutions = event.solutions.get(atom.gpm, ())
        if not solutions:
            return ()
        conditions = self._conditions[atom.id, loose]
        spending = self._dictionary.spending
        out: list[Row] = []
        for row in rows:
            if len(out) > _MANY:
                spending.rows(len(out))
            for solution in solutions:
                binding = _merge(row.binding, solution)
                if binding is None:
                    continue
                joined = Row(binding, row.iterations, row.origin)
                if self._holds(conditions, joined, inside, atom.gpm, event):
                    out.append(joined)
        return self._filtered(tuple(out), inside)

    def join(
        self, operands: Sequence[Rows], node: Both | AnyOrder, inside: tuple[int, ...], loose: bool = False
    ) -> Rows:
        """Ω of an ``&`` or ``ALL``: its operands' rows, all made from one ``mark``ed Ω, joined."""
        joined = self.compatible(operands)
        conditions = self._conditions[node.id, loose] if isinstance(node, Both) else ()
        kept = (Row(r.binding, r.iterations, r.origin[:-1]) for r in joined)
        return self._filtered(tuple(r for r in kept if self._holds(conditions, r, inside)), inside)

    def compatible(self, operands: Sequence[Rows]) -> Rows:
        """The join of rows that were all made from one ``mark``ed Ω; the marks stay."""
        joined = operands[0]
        for rows in operands[1:]:
            pairs: list[Row] = []
            for left in joined:
                if len(pairs) > _MANY:
                    self._dictionary.spending.rows(len(pairs))
                for right in rows:
                    if left.origin != right.origin:
                        continue
                    binding = _merge(left.binding, right.binding)
                    if binding is not None:
                        pairs.append(Row(binding, {**left.iterations, **right.iterations}, left.origin))
            joined = tuple(pairs)
        return joined

    def common(self, results: Sequence[Rows]) -> Rows:
        """The rows that are in every one of these results."""
        keys = [{_key(row) for row in rows} for rows in results[1:]]
        return tuple(row for row in results[0] if all(_key(row) in known for known in keys))

    def around(self, before: Rows, after: Rows, ended: Sequence[int], free: frozenset[str]) -> Rows:
        """Ω of what stands before a place and after it: the context of a negation there.

        ``ended``: the Kleenes of which an iteration that was in progress at the place has ended since: their
        variables mean that iteration. ``free`` are variables that the negation does not share.
        """
        gone = {inner for kleene in ended for inner in (kleene, *self._inside[kleene])}
        own = frozenset().union(*(self._kleenes[kleene].own for kleene in ended))
        stale = gone | {_in_earlier(kleene) for kleene in gone}
        out = []
        for row in before:
            for later in after:
                if any(a != b for a, b in zip(row.origin, later.origin, strict=False)):
                    continue
                others = {v: t for v, t in later.binding.items() if v not in own}
                binding = _merge(row.binding, others)
                if binding is None:
                    continue
                joined = {v: t for v, t in binding.items() if v not in free}
                history = {k: i for k, i in later.iterations.items() if k not in stale}
                out.append(Row(joined, {**history, **row.iterations}, row.origin))
        return tuple(out)

    def mark(self, rows: Rows) -> Rows:
        """Tells rows apart by their origin, so that what is made from them can be put together."""
        return tuple(replace(row, origin=(*row.origin, i)) for i, row in enumerate(rows))

    def act(self, rows: Rows, actions: Sequence[Action]) -> Rows:
        """What Kleenes do to a run's rows between two events; other actions do nothing to them."""
        for action in actions:
            match action:
                case Enter(kleene):
                    rows = self.enter(rows, kleene)
                case Again(kleene):
                    rows = self.again(rows, kleene)
                case Leave(kleene, _, inside):
                    rows = self.leave(rows, kleene, inside)
        return rows

    def enter(self, rows: Rows, kleene: int) -> Rows:
        """Begins the first iteration of a Kleene."""
        return tuple(
            Row(row.binding, _without(row.iterations, kleene), (*row.origin, i)) for i, row in enumerate(rows)
        )

    def again(self, rows: Rows, kleene: int) -> Rows:
        """Ends an iteration: its own variables move from the bindings to the completed iterations."""
        own = self._kleenes[kleene].own
        inner = self._inside[kleene]
        groups: dict[object, tuple[Row, list[Solution], list[Row]]] = {}
        for row in rows:
            shared = {v: t for v, t in row.binding.items() if v not in own}
            outer = {k: i for k, i in row.iterations.items() if k not in inner}
            # Most matches have one row, which needs no comparison with others.
            key = (frozenset(shared.items()), _frozen(outer), row.origin) if len(rows) > 1 else None
            if key not in groups:
                groups[key] = (Row(shared, outer, row.origin), [], [])
            groups[key][1].append({v: t for v, t in row.binding.items() if v in own})
            groups[key][2].append(row)
        out = []
        for head, local, members in groups.values():
            completed = (*head.iterations.get(kleene, ()), self._canonical(local))
            iterations = {**head.iterations, kleene: completed}
            for k in inner:
                # What the Kleenes inside did is kept for aggregates over all their iterations.
                histories = {
                    _frozen({k: m.iterations[k]}): m.iterations[k] for m in members if k in m.iterations
                }
                past = tuple(i for history in histories.values() for i in history)
                iterations[_in_earlier(k)] = (*head.iterations.get(_in_earlier(k), ()), *past)
            out.append(Row(head.binding, iterations, head.origin))
        return tuple(out)

    def leave(self, rows: Rows, kleene: int, inside: tuple[int, ...]) -> Rows:
        """Ends a Kleene: from here a row speaks of one of its iterations (their union).

        ``inside`` are the Kleenes still in progress around it.
        """
        inner = self._inside[kleene]
        out = []
        for row in self.again(rows, kleene):
            iterations = dict(row.iterations)
            for k in inner:
                iterations[k] = iterations.pop(_in_earlier(k), ())
            for solution in (s for iteration in iterations[kleene] for s in iteration):
                out.append(Row({**row.binding, **solution}, iterations, row.origin[:-1]))
        return self._filtered(tuple(out), inside)

    def complete(self, rows: Rows) -> Rows:
        """Ω of a complete match: the filters of WHERE, also those with unbound variables."""
        return tuple(row for row in rows if self._holds(self._where, row, ()))

    def summary(self, node: Aggregate) -> Callable[[Sequence[Row]], int]:
        """An aggregate of SELECT: over all iterations of its loop, or over the match's solutions.

        Iterations do not multiply what they have nothing to do with: what has one value in all solutions is
        that one value, and other solutions count once for each of their own.

        The function returns a term id; it raises ``ExpressionError`` where the aggregate has no value.
        """
        name = self._group_variable(node)
        summary = Summary(node, self._dictionary)
        is_left_out = self._is_left_out(name, self._all_loops)

        def over(rows: Sequence[Row]) -> int:
            kleenes = [None if name is None else self._kleene_of(name, row, ()) for row in rows]
            if all(kleene is None for kleene in kleenes):
                return summary(of_loop=True) if is_left_out else summary([self._unmultiplied(node, rows)])
            histories: dict[object, Iterations] = {}
            for row, kleene in zip(rows, kleenes, strict=True):
                history = () if kleene is None else _frozen({kleene: row.iterations.get(kleene, ())})
                histories.setdefault(history, self._range(row, kleene, ()))
            return summary(*histories.values(), of_loop=True)

        return over

    def _unmultiplied(self, node: Aggregate, rows: Sequence[Row]) -> Sequence[Solution]:
        """What an aggregate ranges over that asks for no group variable."""
        solutions = [row.binding for row in rows]
        if node.argument is None:
            return solutions
        used = sorted(scope.mentioned(node.argument))
        if len({tuple(map(solution.get, used)) for solution in solutions}) == 1:
            return solutions[:1]
        if not any(row.iterations for row in rows):
            return solutions
        owners = self._pattern.owners
        own = {frozenset(item for item in s.items() if item[0] not in owners): s for s in solutions}
        return list(own.values())

    def _canonical(self, solutions: list[Solution]) -> tuple[Solution, ...]:
        """An iteration's solutions in an order that does not depend on how they were found."""
        if len(solutions) == 1:
            return (solutions[0],)
        term = self._dictionary.term
        return tuple(sorted(solutions, key=lambda s: sorted((v, str(term(t))) for v, t in s.items())))


def _in_earlier(kleene: int) -> int:
    """The key under which iterations of a Kleene in past iterations of the one around it are kept."""
    return -1 - kleene


def _without(
    iterations: Mapping[int, tuple[tuple[Solution, ...], ...]], kleene: int
) -> Mapping[int, tuple[tuple[Solution, ...], ...]]:
    return {k: i for k, i in iterations.items() if k != kleene}


def _merge(left: Solution, right: Solution) -> dict[str, int] | None:
    """The union of two solutions, or None if they disagree."""
    for variable, term in right.items():
        if left.get(variable, term) != term:
            return None
    return {**left, **right}


def _key(row: Row) -> object:
    return (frozenset(row.binding.items()), _frozen(row.iterations), row.origin)


def _frozen(iterations: Mapping[int, tuple[tuple[Solution, ...], ...]]) -> frozenset[object]:
    """A hashable form of completed iterations."""
    return frozenset(
        (k, tuple(tuple(frozenset(s.items()) for s in iteration) for iteration in completed))
        for k, completed in iterations.items()
    )
