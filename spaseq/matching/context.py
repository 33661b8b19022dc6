"""Ω: the solutions of a match so far, and how an event, an iteration or a filter changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyoxigraph import NamedNode

from spaseq.automaton.nfa import Action, Again, Enter, Leave
from spaseq.automaton.pattern import AnyOrder, Atom, Both, Kleene, SequencePattern, walk
from spaseq.automaton.scopes import loops, passed
from spaseq.events import Stamp
from spaseq.language import scope
from spaseq.language.rewrite import substitute
from spaseq.language.syntax import Aggregate, Expression, Filter, Group, Prev, Var
from spaseq.limits import UNLIMITED, Budget, Limits
from spaseq.matching.model import Occurrence, Row, Solution
from spaseq.patterns.expressions.aggregates import (
    AggregateSummary,
    EarlyError,
    Iterations,
    errs_for_want_of,
    last_of,
)
from spaseq.patterns.expressions.compiled import ExpressionError, compile_filter
from spaseq.terms.dictionary import Dictionary

# Filters on rows: whether a row passes them, with aggregates and PREVs over its iterations.

#: Whether a graph pattern has a solution in an event's graph that agrees with the given solution.
Exists = Callable[[str, Occurrence, Group, Solution], bool]

#: Whether a solution passes a filter.
Test = Callable[[Solution], bool]

#: Whether a filter's test raises an error only because the PREVs of the given names have no value.
EarlyTest = Callable[[Solution, frozenset[str]], bool]

#: Compiles a filter, given also its condition without aggregates and PREVs, to its two tests.
CompileTests = Callable[
    [Filter, Expression, Dictionary, Callable[[Group, Solution], bool]], tuple[Test, EarlyTest]
]


def compile_tests(
    item: Filter, condition: Expression, dictionary: Dictionary, exists: Callable[[Group, Solution], bool]
) -> tuple[Test, EarlyTest]:
    """Compile the tests of a filter."""
    del item
    return compile_filter(condition, dictionary, exists), errs_for_want_of(condition, dictionary, exists)


@dataclass(frozen=True, slots=True)
class _Condition:
    """A correlated filter, compiled for rows.

    ``summaries`` are its aggregates and ``previous`` its PREVs, each under the name of the variable that
    stands for it in ``test``. An aggregate comes with the group variable that it ranges over. ``needs`` are
    the single-valued variables that it mentions, ``summarised`` the group variables. ``early`` tests whether
    an error is only due to PREVs without a value. ``passed`` are the Kleenes that have ended, or were left
    out, when the filter is evaluated.
    """

    test: Test
    early: EarlyTest
    summaries: tuple[tuple[str, AggregateSummary, str | None], ...]
    previous: tuple[tuple[str, Prev], ...]
    passed: frozenset[int]
    needs: frozenset[str]
    summarised: frozenset[str]


class Filters:
    """The filters of one query, compiled for rows."""

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, exists: Exists, compile_tests: CompileTests
    ) -> None:
        self._pattern = pattern
        self._dictionary = dictionary
        self._compile_tests = compile_tests
        self._kleenes = {n.id: n for n in walk(pattern.root) if isinstance(n, Kleene)}
        # The event of the filter being evaluated, for its EXISTS.
        self._asked: tuple[str, Occurrence] | None = None
        self._exists = exists
        # The conditions of a node, by its id and by whether they are the loose ones (see ``extend``).
        self._conditions: dict[tuple[int, bool], tuple[_Condition, ...]] = {}
        over = dict(passed(pattern.root))
        for node in walk(pattern.root):
            if isinstance(node, Atom | Both):
                strict = node.filters if isinstance(node, Atom) else node.deferred
                self._conditions[node.id, False] = tuple(self._condition(f, over[node.id]) for f in strict)
                self._conditions[node.id, True] = tuple(self._condition(f, over[node.id]) for f in node.loose)
        self._all_loops = loops(pattern.root)
        self._where = tuple(self._condition(f, self._all_loops) for f in pattern.where)

    def _condition(self, item: Filter, over: frozenset[int]) -> _Condition:
        """Compile a filter; a variable replaces each of its aggregates and PREVs."""
        summaries: list[tuple[str, AggregateSummary, str | None]] = []
        previous: list[tuple[str, Prev]] = []

        def take_out(node: Expression) -> Expression | None:
            if isinstance(node, Aggregate):
                name, group = f" {len(summaries)}aggregate", self._group_variable(node)
                summaries.append((name, AggregateSummary(node, self._dictionary), group))
                return Var(name)
            if isinstance(node, Prev):
                name = f" {len(previous)}previous"
                previous.append((name, node))
                return Var(name)
            return None

        plain = substitute(item.condition, take_out)
        names = {name for name, *_ in summaries} | {name for name, _ in previous}
        single = {
            name
            for _, summary, _ in summaries
            for name in scope.mentioned(summary.node) - self._pattern.owners.keys()
        }
        test, early = self._compile_tests(item, plain, self._dictionary, self._ask)
        return _Condition(
            test=test,
            early=early,
            summaries=tuple(summaries),
            previous=tuple(previous),
            passed=over,
            needs=(scope.mentioned(plain) - names) | single,
            summarised=frozenset(group for _, _, group in summaries if group is not None),
        )

    def _group_variable(self, node: Aggregate) -> str | None:
        """Return the variable that an aggregate ranges over: a group variable of the innermost Kleene."""
        owners = self._pattern.owners
        used = scope.mentioned(node.argument) if node.argument is not None else frozenset()
        return max((v for v in used if v in owners), key=lambda v: (owners[v][-1], v), default=None)

    def _kleene_of(self, name: str, row: Row, inside: tuple[int, ...]) -> int | None:
        """Return the Kleene with iterations that bind a group variable in a row: one in progress, else one
        that ended.

        A variable may belong to several Kleenes, one in each alternative.
        """
        owners = self._pattern.owners.get(name, ())
        here = [kleene for kleene in owners if kleene in inside]
        return here[-1] if here else next((k for k in owners if k in row.iterations), None)

    def _ask(self, pattern: Group, solution: Solution) -> bool:
        if self._asked is None:
            return False
        gpm, event = self._asked
        return self._exists(gpm, event, pattern, solution)

    def _holds(
        self,
        conditions: tuple[_Condition, ...],
        row: Row,
        inside: tuple[int, ...],
        gpm: str = "",
        event: Occurrence | None = None,
    ) -> bool:
        if not conditions:
            return True
        self._asked = None if event is None else (gpm, event)
        return all(self._test(c, row, inside) for c in conditions)

    def _test(self, condition: _Condition, row: Row, inside: tuple[int, ...]) -> bool:
        if not condition.summaries and not condition.previous:
            return condition.test(row.binding)
        binding = dict(row.binding)
        early = set()
        for name, node in condition.previous:
            kleene = self._kleene_of(node.variable.name, row, inside)
            completed = self._completed(row, kleene, inside)
            if len(completed) < node.offset:
                early.add(name)
            elif value := last_of(completed[-node.offset], node.variable.name, self._dictionary):
                binding[name] = value
        for name, summary, group in condition.summaries:
            kleene = None if group is None else self._kleene_of(group, row, inside)
            of_loop = kleene is not None or self._is_left_out(group, condition.passed)
            if summary.node.before:
                iterations = self._completed(row, kleene, inside)
                if not iterations:
                    early.add(name)
                    continue
            else:
                iterations = () if of_loop and kleene is None else self._range(row, kleene, inside)
            try:
                binding[name] = summary(iterations, of_loop=of_loop)
            except EarlyError:
                early.add(name)
            except ExpressionError:
                continue  # stays unbound: the filter sees an error
        return condition.test(binding) or (bool(early) and condition.early(binding, frozenset(early)))

    def _is_left_out(self, group: str | None, over: frozenset[int]) -> bool:
        """Return whether a group variable has no iterations, because the match leaves its Kleene out."""
        return group is not None and not over.isdisjoint(self._pattern.owners[group])

    def _range(self, row: Row, kleene: int | None, inside: tuple[int, ...]) -> Iterations:
        """Return the solutions that an aggregate ranges over. They come from all iterations so far, including
        the one in progress.
        """
        if kleene is None:
            return [[row.binding]]
        done = self._done(row, kleene)
        return [*done, [row.binding]] if kleene in inside else done

    def _completed(self, row: Row, kleene: int | None, inside: tuple[int, ...]) -> Iterations:
        """Return the iterations before the one in progress; none if there is no iteration in progress."""
        return self._done(row, kleene) if kleene is not None and kleene in inside else ()

    def _done(self, row: Row, kleene: int) -> Iterations:
        """Return the completed iterations, each solution joined with the variables that all
        iterations share.
        """
        own = self._kleenes[kleene].own
        shared = {v: t for v, t in row.binding.items() if v not in own}
        return [[{**shared, **s} for s in iteration] for iteration in row.iterations.get(kleene, ())]

    def _filtered(self, rows: tuple[Row, ...], inside: tuple[int, ...]) -> tuple[Row, ...]:
        """Apply the filters of WHERE that are due: their variables are bound, and the Kleenes of these have
        ended.
        """
        if not self._where:
            return rows
        return tuple(
            row
            for row in rows
            if all(not self._due(c, row, inside) or self._holds((c,), row, inside) for c in self._where)
        )

    def _due(self, condition: _Condition, row: Row, inside: tuple[int, ...]) -> bool:
        """Return whether all variables of a filter of WHERE are bound, and no Kleene that binds one is in
        progress.
        """
        if not condition.needs <= row.binding.keys():
            return False
        owners = self._pattern.owners
        if any(kleene in inside for v in condition.needs for kleene in owners.get(v, ())):
            return False
        for v in condition.summarised:
            kleene = self._kleene_of(v, row, inside)
            if kleene in inside or (kleene is None and v not in row.binding):
                return False
        return True


# Ω: the solutions of a match so far, and how an event, an iteration or a filter changes them.
#
# This is section 3 of the semantics, and the part of section 4 on Kleene closures, as functions from rows to
# rows: ``X(e, Ω) = F(Ω ⋈ [[P]])``. All matchers share it.

Rows = tuple[Row, ...]

#: The place of an event in the order of all events: simultaneous events are ordered by their streams' IRIs.
Order = tuple[int, int, int]

#: Fewer rows than this are not checked against limits.
_MANY: Final = 64


class Context(Filters):
    """The operations on rows for one query. ``budget`` limits what its matcher may keep."""

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        exists: Exists,
        limits: Limits = UNLIMITED,
        *,
        apart: int = 0,
        compile_tests: CompileTests = compile_tests,
    ) -> None:
        """``apart``: number of leading partition variables that identify the query of a match, 0 or 1."""
        super().__init__(pattern, dictionary, exists, compile_tests)
        self.budget = Budget(limits)
        #: Number of leading key variables that take no part in the order of matches.
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
        """Return the rank of a stream, given by its id, in the order of IRIs."""
        return self._ranks.get(stream, stream)

    def order(self, stamp: Stamp) -> Order:
        """Return the place of an event in the order of all events."""
        return stamp.time, self.rank(stamp.stream), stamp.n

    def texts(self, key: tuple[int, ...]) -> tuple[bytes, ...]:
        """Return the sort key of a partition among those of an event: the terms of its key in N-Triples."""
        return tuple(map(self._dictionary.text, key[self.apart :]))

    def stream_id(self, iri: NamedNode) -> int:
        """Return the id of one of the query's streams."""
        return self._stream_ids[iri]

    @property
    def streams(self) -> tuple[int, ...]:
        """The ids of the query's streams, in the order of their IRIs."""
        return tuple(self._ranks)

    def speaks_of(self, gpm: str) -> frozenset[str]:
        """Return the variables that a GPM binds, and the variables that its filters mention."""
        part = self._pattern.gpms[gpm]
        return part.variables.union(*(scope.mentioned(f.condition) for f in part.correlated))

    @property
    def start(self) -> Rows:
        """Ω before anything has matched: the one empty solution."""
        return (Row({}),)

    def extend(
        self, rows: Rows, atom: Atom, event: Occurrence, inside: tuple[int, ...], loose: bool = False
    ) -> Rows:
        """Return ``X(e, Ω)``: empty iff the event is not relevant in this context.

        ``inside`` are the Kleenes with an iteration in progress, outermost first. ``loose`` leaves out the
        filters that need variables of another operand of an ``ALL``.
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
        """Return the Ω of an ``&`` or ``ALL``: the join of its operands' rows. All of them must be made from
        one Ω that ``mark`` has marked.
        """
        joined = self.compatible(operands)
        conditions = self._conditions[node.id, loose] if isinstance(node, Both) else ()
        kept = (Row(r.binding, r.iterations, r.origin[:-1]) for r in joined)
        return self._filtered(tuple(r for r in kept if self._holds(conditions, r, inside)), inside)

    def compatible(self, operands: Sequence[Rows]) -> Rows:
        """Return the join of rows that were all made from one Ω that ``mark`` has marked; the marks stay."""
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
        """Return the rows that all of these results contain."""
        keys = [{_key(row) for row in rows} for rows in results[1:]]
        return tuple(row for row in results[0] if all(_key(row) in known for known in keys))

    def around(self, before: Rows, after: Rows, ended: Sequence[int], free: frozenset[str]) -> Rows:
        """Join the Ω before a place with the Ω after it, and return the result: the context of a negation
        there.

        ``ended``: the Kleenes with an iteration that was in progress at the place and has ended since; their
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
        """Mark rows by their origin, so that rows made from them can be joined."""
        return tuple(replace(row, origin=(*row.origin, i)) for i, row in enumerate(rows))

    def act(self, rows: Rows, actions: Sequence[Action]) -> Rows:
        """Apply the actions of Kleenes to a run's rows between two events; other actions do not
        change rows.
        """
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
        """Begin the first iteration of a Kleene."""
        return tuple(
            Row(row.binding, _without(row.iterations, kleene), (*row.origin, i)) for i, row in enumerate(rows)
        )

    def again(self, rows: Rows, kleene: int) -> Rows:
        """End an iteration: its own variables move from the bindings to the completed iterations."""
        own = self._kleenes[kleene].own
        inner = self._inside[kleene]
        groups: dict[object, tuple[Row, list[Solution], list[Row]]] = {}
        for row in rows:
            shared = {v: t for v, t in row.binding.items() if v not in own}
            outer = {k: i for k, i in row.iterations.items() if k not in inner}
            # Most matches have one row, which is not compared with others.
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
                # Iterations of the inner Kleenes are kept for aggregates over all their iterations.
                histories = {
                    _frozen({k: m.iterations[k]}): m.iterations[k] for m in members if k in m.iterations
                }
                past = tuple(i for history in histories.values() for i in history)
                iterations[_in_earlier(k)] = (*head.iterations.get(_in_earlier(k), ()), *past)
            out.append(Row(head.binding, iterations, head.origin))
        return tuple(out)

    def leave(self, rows: Rows, kleene: int, inside: tuple[int, ...]) -> Rows:
        """End a Kleene: each row is replaced by one row per solution of its iterations, with that solution's
        values.

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
        """Return the Ω of a complete match: apply the filters of WHERE, also those with unbound variables."""
        return tuple(row for row in rows if self._holds(self._where, row, ()))

    def summary(self, node: Aggregate) -> Callable[[Sequence[Row]], int]:
        """Return a function that computes an aggregate of SELECT over all iterations of its loop, or over the
        match's solutions.

        Iterations do not multiply unrelated values: an argument that has one value in all solutions counts
        once, and solutions that differ otherwise count once each.

        The function takes the match's rows and returns a term id. It raises ``ExpressionError`` if the
        aggregate has no value.
        """
        name = self._group_variable(node)
        summary = AggregateSummary(node, self._dictionary)
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
        """Return the solutions that an aggregate without a group variable ranges over, see ``summary``."""
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
        """Return an iteration's solutions in an order that does not depend on how they were found."""
        if len(solutions) == 1:
            return (solutions[0],)
        term = self._dictionary.term
        return tuple(sorted(solutions, key=lambda s: sorted((v, str(term(t))) for v, t in s.items())))


def _in_earlier(kleene: int) -> int:
    """Return the key for the iterations of a Kleene in past iterations of the one around it."""
    return -1 - kleene


def _without(
    iterations: Mapping[int, tuple[tuple[Solution, ...], ...]], kleene: int
) -> Mapping[int, tuple[tuple[Solution, ...], ...]]:
    return {k: i for k, i in iterations.items() if k != kleene}


def _merge(left: Solution, right: Solution) -> dict[str, int] | None:
    """Return the union of two solutions, or None if they disagree."""
    for variable, term in right.items():
        if left.get(variable, term) != term:
            return None
    return {**left, **right}


def _key(row: Row) -> object:
    return (frozenset(row.binding.items()), _frozen(row.iterations), row.origin)


def _frozen(iterations: Mapping[int, tuple[tuple[Solution, ...], ...]]) -> frozenset[object]:
    """Return a hashable form of completed iterations."""
    return frozenset(
        (k, tuple(tuple(frozenset(s.items()) for s in iteration) for iteration in completed))
        for k, completed in iterations.items()
    )
