"""Filters on rows: whether a row meets them, with their aggregates and PREVs over its iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spaseq.automaton.pattern import Atom, Both, Kleene, SequencePattern, walk
from spaseq.automaton.scopes import loops, passed
from spaseq.gpm.expressions.aggregates import EarlyError, Iterations, Summary, errs_for_want_of, last_of
from spaseq.gpm.expressions.compiled import ExpressionError, compile_filter
from spaseq.language import scope
from spaseq.language.rewrite import substitute
from spaseq.language.syntax import Aggregate, Expression, Filter, Group, Prev, Var
from spaseq.matching.model import Occurrence, Row, Solution
from spaseq.terms.dictionary import Dictionary

#: Whether a graph pattern, under a solution, has an answer in an event's graph.
Exists = Callable[[str, Occurrence, Group, Solution], bool]


@dataclass(frozen=True, slots=True)
class _Condition:
    """A correlated filter, ready to be asked of a row.

    ``summaries`` are its aggregates and ``previous`` its PREVs, each under the name of the variable
    that stands for it in ``test``; an aggregate comes with the group variable that says what it ranges over.
    ``needs`` are the variables with one value that it mentions, ``summarised`` those group variables.
    ``early``: whether an error comes only from the absence of certain PREVs. ``passed`` are the Kleenes that
    are over where it is asked, or left out.
    """

    test: Callable[[Solution], bool]
    early: Callable[[Solution, frozenset[str]], bool]
    summaries: tuple[tuple[str, Summary, str | None], ...]
    previous: tuple[tuple[str, Prev], ...]
    passed: frozenset[int]
    needs: frozenset[str]
    summarised: frozenset[str]


class Filters:
    """The filters of one query, ready to be asked of rows."""

    def __init__(self, pattern: SequencePattern, dictionary: Dictionary, exists: Exists) -> None:
        self._pattern = pattern
        self._dictionary = dictionary
        self._kleenes = {n.id: n for n in walk(pattern.root) if isinstance(n, Kleene)}
        # Set around each test of a filter, for its EXISTS.
        self._asked: tuple[str, Occurrence] | None = None
        self._exists = exists
        # By node, and whether read loosely.
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
        """Compiles a filter, its aggregates and PREVs taken out and replaced by variables."""
        summaries: list[tuple[str, Summary, str | None]] = []
        previous: list[tuple[str, Prev]] = []

        def take_out(node: Expression) -> Expression | None:
            if isinstance(node, Aggregate):
                name, group = f" {len(summaries)}aggregate", self._group_variable(node)
                summaries.append((name, Summary(node, self._dictionary), group))
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
        return _Condition(
            test=self._compile(plain, item),
            early=self._compile_early(plain, item),
            summaries=tuple(summaries),
            previous=tuple(previous),
            passed=over,
            needs=(scope.mentioned(plain) - names) | single,
            summarised=frozenset(group for _, _, group in summaries if group is not None),
        )

    def _group_variable(self, node: Aggregate) -> str | None:
        """The variable that says what an aggregate ranges over: that of the innermost Kleene."""
        owners = self._pattern.owners
        used = scope.mentioned(node.argument) if node.argument is not None else frozenset()
        return max((v for v in used if v in owners), key=lambda v: (owners[v][-1], v), default=None)

    def _kleene_of(self, name: str, row: Row, inside: tuple[int, ...]) -> int | None:
        """The Kleene whose iterations a group variable means here: one in progress, or one that has ended.

        A variable may belong to several, one in each alternative.
        """
        owners = self._pattern.owners.get(name, ())
        here = [kleene for kleene in owners if kleene in inside]
        return here[-1] if here else next((k for k in owners if k in row.iterations), None)

    def _ask(self, pattern: Group, solution: Solution) -> bool:
        if self._asked is None:
            return False
        gpm, event = self._asked
        return self._exists(gpm, event, pattern, solution)

    def _compile(self, condition: Expression, item: Filter) -> Callable[[Solution], bool]:
        """The test of a filter, whose ``condition`` has neither aggregates nor PREV any more."""
        del item
        return compile_filter(condition, self._dictionary, self._ask)

    def _compile_early(
        self, condition: Expression, item: Filter
    ) -> Callable[[Solution, frozenset[str]], bool]:
        """What says whether that test errs for want of certain PREVs only."""
        del item
        return errs_for_want_of(condition, self._dictionary, self._ask)

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
        """Whether a group variable has no iterations, because the match leaves its Kleene out."""
        return group is not None and not over.isdisjoint(self._pattern.owners[group])

    def _range(self, row: Row, kleene: int | None, inside: tuple[int, ...]) -> Iterations:
        """The solutions an aggregate ranges over: all iterations so far, with the one in progress."""
        if kleene is None:
            return [[row.binding]]
        done = self._done(row, kleene)
        return [*done, [row.binding]] if kleene in inside else done

    def _completed(self, row: Row, kleene: int | None, inside: tuple[int, ...]) -> Iterations:
        """The iterations before the one in progress; none if none is."""
        return self._done(row, kleene) if kleene is not None and kleene in inside else ()

    def _done(self, row: Row, kleene: int) -> Iterations:
        """The completed iterations, each solution with what all iterations share."""
        own = self._kleenes[kleene].own
        shared = {v: t for v, t in row.binding.items() if v not in own}
        return [[{**shared, **s} for s in iteration] for iteration in row.iterations.get(kleene, ())]

    def _filtered(self, rows: tuple[Row, ...], inside: tuple[int, ...]) -> tuple[Row, ...]:
        """Applies each filter of WHERE whose variables are all bound, outside of their Kleenes."""
        if not self._where:
            return rows
        return tuple(
            row
            for row in rows
            if all(not self._due(c, row, inside) or self._holds((c,), row, inside) for c in self._where)
        )

    def _due(self, condition: _Condition, row: Row, inside: tuple[int, ...]) -> bool:
        """Whether all that a filter of WHERE asks for is there."""
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
