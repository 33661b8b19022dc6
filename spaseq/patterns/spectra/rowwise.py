"""Evaluate a few events at a time: SPECTRA's patterns by joins of dicts, property paths by steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pyoxigraph import BlankNode, NamedNode

from spaseq.language import scope
from spaseq.language.scope import conjuncts
from spaseq.language.syntax import (
    Bind,
    Exists,
    Expression,
    Filter,
    Graph,
    Group,
    Minus,
    Optional,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Pattern,
    SubSelect,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
)
from spaseq.limits import Spending
from spaseq.patterns.algebra import (
    Pair,
    Row,
    Rows,
    by_first,
    by_reach,
    extend,
    few,
    join,
    merge,
    minus,
    partners,
    without,
)
from spaseq.patterns.expressions.compiled import ExpressionError, Solution, compile_filter, compile_value
from spaseq.patterns.expressions.walk import exists_in, only_joins, patterns, simplified, takes_no_step
from spaseq.patterns.spectra.joins import Knowledge
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary, Term

# Property paths in one event's graph: where each begins and ends, by its few triples.


class Facts:
    """One event's graph: its triples by predicate, each a (subject, object) pair."""

    __slots__ = ("views",)

    def __init__(self, triples: Iterable[tuple[int, int, int]]) -> None:
        self.views: defaultdict[int, list[Pair]] = defaultdict(list)
        for s, p, o in triples:
            self.views[p].append((s, o))

    @property
    def nodes(self) -> set[int]:
        """Its subjects and objects."""
        return {node for pairs in self.views.values() for pair in pairs for node in pair}


#: Returns the begin and the end of a path in an event, once for every way to walk it; for a loop only once.
Walk = Callable[[Facts], Sequence[Pair]]


def walk(path: Path, dictionary: Dictionary, start: int | None = None, end: int | None = None) -> Walk:
    """Return the function that walks a path (SPARQL 1.1, 18.2.2.4 and 18.4).

    ``start`` and ``end``: the ids of the terms at the path's ends, None for variables. A path of length zero
    joins each of these terms, and each node of the graph, with itself.
    """
    match path:
        case NamedNode():
            predicate = dictionary.pin(path)
            return lambda facts: facts.views.get(predicate, ())
        case PathInverse(inner):
            forward = walk(inner, dictionary, end, start)
            return lambda facts: [(o, s) for s, o in forward(facts)]
        case PathAlternative(parts):
            walks = [walk(part, dictionary, start, end) for part in parts]
            return _alternative(walks, dictionary.spending)
        case PathSequence((first, *others, last)):
            middle = [walk(part, dictionary) for part in others]
            steps = [*middle, walk(last, dictionary, None, end)]
            return _sequence(walk(first, dictionary, start), steps, dictionary.spending)
        case PathRepeat(inner, _, maximum):
            ends = [term for term in (start, end) if term is not None]
            step, may_stay = walk(inner, dictionary), takes_no_step(path)
            return _repeated(step, may_stay, maximum == 1, ends, dictionary.spending)
        case PathNegated(forward, inverse):
            return _negated({*map(dictionary.pin, forward)}, {*map(dictionary.pin, inverse)})
    raise ValueError(f"no path: {path}")


def _alternative(walks: Sequence[Walk], spending: Spending) -> Walk:
    def alternative(facts: Facts) -> Sequence[Pair]:
        pairs = [pair for one in walks for pair in one(facts)]
        spending.rows(len(pairs))
        return pairs

    return alternative


def _sequence(begin: Walk, steps: Sequence[Walk], spending: Spending) -> Walk:
    def sequence(facts: Facts) -> Sequence[Pair]:
        pairs = begin(facts)
        for step in steps:
            further = by_first(step(facts))
            spending.rows(sum(len(further.get(middle, ())) for _, middle in pairs))
            pairs = [(s, end) for s, middle in pairs for _, end in further.get(middle, ())]
        return pairs

    return sequence


def _repeated(step: Walk, may_stay: bool, is_once: bool, ends: Sequence[int], spending: Spending) -> Walk:
    def repeated(facts: Facts) -> Sequence[Pair]:
        pairs = step(facts)
        found = dict.fromkeys((node, node) for node in {*facts.nodes, *ends}) if may_stay else {}
        if is_once:
            return [*(found | dict.fromkeys(pairs))]
        further = by_first(pairs)
        for begin in further:
            reached, left = set[int](), [begin]
            while left:
                new = {end for _, end in further.get(left.pop(), ())} - reached
                reached |= new
                left += new
            found |= dict.fromkeys((begin, end) for end in reached)
            spending.rows(len(found))
        return [*found]

    return repeated


def _negated(forward: set[int], inverse: set[int]) -> Walk:
    def negated(facts: Facts) -> Sequence[Pair]:
        found: list[Pair] = []
        for predicate, pairs in facts.views.items():
            if predicate not in forward and (forward or not inverse):
                found += pairs
            if predicate not in inverse and inverse:
                found += [(o, s) for s, o in pairs]
        return found

    return negated


# A few events at a time: what SPECTRA covers, by joins of plain dicts.
#
# An array operation costs about a microsecond however small the array, so a batch of one event, which is
# what ``Engine.push`` makes, is faster without arrays. The algebra is that of ``spectra.py``; here a
# solution is a dict without its unbound variables, and joins extend the solutions found so far.

#: Extends solutions found so far. ``ambient`` is what every group starts with: the variables of AT and
#: AS, and inside an EXISTS the substituted variables.
_Step = Callable[["Facts", Row, Rows], Rows]
_Test = Callable[["Facts", Row], bool]


class NotByRows(Exception):  # noqa: N818 # an answer, not an error
    """Raised if rows would write out much of the knowledge base: columns are better then."""


class Rowwise:
    """A pattern that SPECTRA covers, ready to be evaluated event by event.

    ``bound``: variables that the ``ambient`` row always has. Raises ``NotByRows``.
    """

    def __init__(
        self,
        pattern: Group,
        dictionary: Dictionary,
        kb: Knowledge | None,
        bound: frozenset[str] = frozenset(),
    ) -> None:
        self._dictionary = dictionary
        self._spending = dictionary.spending
        self._kb = kb
        self._steps, self._tests = self._elements(pattern, bound)

    def rows(self, facts: Facts, ambient: Row) -> Rows:
        """Return the pattern's solutions in an event, joined with the ambient row."""
        return self._passing(self._tests, facts, _run(self._steps, facts, ambient, [ambient]))

    # --- groups -------------------------------------------------------------------------------

    def _elements(self, group: Group, bound: frozenset[str]) -> tuple[list[_Step], list[_Test]]:
        """Return the steps of a group, and its filters. ``bound``: the variables that all solutions before it
        bind.
        """
        steps: list[_Step] = []
        filters: list[Expression] = []
        triples: list[TriplePattern] = []
        graphs: list[Graph] = []

        def flush() -> None:
            nonlocal bound
            if triples:
                steps.append(self._triples(triples, bound))
                bound |= scope.certain(Triples(tuple(triples)))
                triples.clear()
            for graph in graphs:
                steps.append(self._graph(graph, bound))
                bound |= scope.certain(graph)
            graphs.clear()

        for element in group.elements:
            match element:
                case Triples(found):
                    triples += found
                case Filter(condition):
                    filters += conjuncts(condition)
                case Graph():
                    graphs.append(element)  # after the triples beside it: joins can change places
                case _:
                    flush()
                    steps.append(self._element(element, bound))
                    bound |= scope.certain(element)
        flush()
        return steps, [self._test(condition, bound) for condition in filters]

    def _element(self, element: Pattern, bound: frozenset[str]) -> _Step:
        match element:
            case Bind(expression, variable):
                return self._bind(expression, variable.name, bound)
            case Values():
                rows = self._values(element)
                return lambda _, __, left: join(left, rows, self._spending)
            case Optional(inner):
                return self._optional(inner, bound)
            case Union(branches):
                return self._union([self._nested(branch, bound) for branch in branches])
            case Minus(inner):
                right = Rowwise(inner, self._dictionary, self._kb)
                return lambda facts, ambient, left: minus(left, without(right.rows(facts, ambient), ambient))
            case SubSelect():
                return self._subselect(element)
            case Group():
                return self._nested(element, bound)
        raise ValueError(f"not covered: {type(element).__name__}")

    def _union(self, steps: Sequence[_Step]) -> _Step:
        def union(facts: Facts, ambient: Row, left: Rows) -> Rows:
            out: Rows = []
            for step in steps:
                out = few(out + step(facts, ambient, left), self._spending)
            return out

        return union

    def _nested(self, group: Group, bound: frozenset[str]) -> _Step:
        if _extends(group):
            steps, _ = self._elements(group, bound)
            return lambda facts, ambient, left: _run(steps, facts, ambient, left)
        inner = Rowwise(group, self._dictionary, self._kb)
        return lambda facts, ambient, left: join(
            left, without(inner.rows(facts, ambient), ambient), self._spending
        )

    def _optional(self, group: Group, bound: frozenset[str]) -> _Step:
        pattern = Group(tuple(e for e in group.elements if not isinstance(e, Filter)))
        filters = [c for e in group.elements if isinstance(e, Filter) for c in conjuncts(e.condition)]
        tests = [self._test(condition, bound | scope.certain(group)) for condition in filters]
        if _extends(pattern):
            inner = self._nested(pattern, bound)

            def extend(facts: Facts, ambient: Row, left: Rows) -> Rows:
                out: Rows = []
                for row in left:
                    out += self._passing(tests, facts, inner(facts, ambient, [row])) or [row]
                    few(out, self._spending)
                return out

            return extend
        right = Rowwise(pattern, self._dictionary, self._kb)

        def left_join(facts: Facts, ambient: Row, left: Rows) -> Rows:
            candidates = partners(left, without(right.rows(facts, ambient), ambient))
            out: Rows = []
            for row in left:
                joined = [both for other in candidates(row) if (both := merge(row, other)) is not None]
                out += self._passing(tests, facts, joined) or [row]
                few(out, self._spending)
            return out

        return left_join

    def _subselect(self, query: SubSelect) -> _Step:
        inner = Rowwise(query.pattern, self._dictionary, self._kb)
        values = None if query.values is None else self._values(query.values)
        items = query.select.items
        names = None if items is None else [item.variable.name for item in items]

        def join_with(facts: Facts, _: Row, left: Rows) -> Rows:
            found = inner.rows(facts, {})
            if values is not None:
                found = join(found, values, self._spending)
            if names is not None:
                found = [{name: row[name] for name in names if name in row} for row in found]
            if query.select.distinct:
                found = list({frozenset(row.items()): row for row in found}.values())
            return join(left, found, self._spending)

        return join_with

    def _values(self, values: Values) -> Rows:
        pin = self._dictionary.pin
        names = [variable.name for variable in values.variables]
        return [
            {name: pin(term) for name, term in zip(names, row, strict=True) if term is not None}
            for row in values.rows
        ]

    def _graph(self, graph: Graph, bound: frozenset[str]) -> _Step:
        """Return the join with background knowledge, looked up by the variables that both sides always
        bind.
        """
        keys = tuple(sorted(bound & scope.certain(graph)))
        if not keys or self._kb is None:
            raise NotByRows
        kb, dictionary = self._kb, self._dictionary
        table: Solutions | None = None
        version = 0

        def join_with(_: Facts, __: Row, left: Rows) -> Rows:
            nonlocal table, version
            if table is None or version != kb.version:
                table, version = kb.solutions(graph, dictionary, {}), kb.version
            out: Rows = []
            lookup, most = table.lookup(keys), self._spending.most
            for row in left:
                if len(out) > most:
                    break
                for position in lookup.rows([row[key] for key in keys]):
                    found = {name: column.item(position) for name, column in table.columns.items()}
                    both = merge(row, {name: value for name, value in found.items() if value})
                    if both is not None:
                        out.append(both)
            return few(out, self._spending)

        return join_with

    # --- expressions --------------------------------------------------------------------------

    def _bind(self, expression: Expression, name: str, bound: frozenset[str]) -> _Step:
        now: list[Facts] = []
        evaluate = compile_value(expression, self._dictionary, self._exists(expression, bound, now))

        def bind(facts: Facts, _: Row, left: Rows) -> Rows:
            now[:] = [facts]
            out: Rows = []
            for row in left:
                self._spending.check()
                try:
                    value = evaluate(row)
                except ExpressionError:
                    out.append(row)
                else:
                    if row.get(name, value) == value:  # bound already only where it is ambient
                        out.append({**row, name: value})
            return out

        return bind

    def _test(self, condition: Expression, bound: frozenset[str]) -> _Test:
        if not exists_in(condition):
            plain = compile_filter(condition, self._dictionary)
            return lambda _, row: plain(row)
        now: list[Facts] = []
        test = compile_filter(condition, self._dictionary, self._exists(condition, bound, now))

        def ask(facts: Facts, row: Row) -> bool:
            now[:] = [facts]
            return test(row)

        return ask

    def _passing(self, tests: Sequence[_Test], facts: Facts, rows: Rows) -> Rows:
        if not tests:
            return rows
        out: Rows = []
        for row in rows:
            self._spending.check()
            if all(test(facts, row) for test in tests):
                out.append(row)
        return out

    def _exists(
        self, expression: Expression, bound: frozenset[str], now: Sequence[Facts]
    ) -> Callable[[Group, Solution], bool] | None:
        """What decides the EXISTS of an expression in the event that is in ``now``."""
        inner: dict[Group, tuple[Rowwise, frozenset[str]]] = {}
        for exists in exists_in(expression):
            inner[exists.pattern] = self._inside(exists, bound)
        if not inner:
            return None

        def decide(pattern: Group, solution: Solution) -> bool:
            rowwise, names = inner[pattern]
            return bool(rowwise.rows(now[0], {n: solution[n] for n in names & solution.keys()}))

        return decide

    def _inside(self, exists: Exists, bound: frozenset[str]) -> tuple[Rowwise, frozenset[str]]:
        for pattern in patterns(exists.pattern):
            if isinstance(pattern, Graph) and not only_joins(pattern.pattern):
                raise NotByRows  # replacing variables in it is more than a join
        names = scope.occurring(exists.pattern)
        return Rowwise(exists.pattern, self._dictionary, self._kb, bound & names), names

    # --- triples ------------------------------------------------------------------------------

    def _triples(self, triples: Sequence[TriplePattern], bound: frozenset[str]) -> _Step:
        """Return the step of a basic graph pattern: each triple follows one that it is connected with, if
        possible.
        """
        order = by_reach([_names(triple) for triple in triples], bound)
        steps = [self._triple(triples[place]) for place in order]
        hidden = {name for triple in triples for name in _names(triple) if name.startswith("_:")}
        if len(steps) == 1 and not hidden:
            return steps[0]

        def join_all(facts: Facts, ambient: Row, left: Rows) -> Rows:
            rows = _run(steps, facts, ambient, left)
            return without(rows, hidden)

        return join_all

    def _triple(self, triple: TriplePattern) -> _Step:
        subject, object_ = self._place(triple.subject), self._place(triple.object)
        predicate, spending = triple.predicate, self._spending
        if isinstance(predicate, Var):
            name = predicate.name

            def any_predicate(facts: Facts, _: Row, left: Rows) -> Rows:
                out: Rows = []
                for identifier, pairs in facts.views.items():
                    rows = [
                        {**row, name: identifier} for row in left if row.get(name, identifier) == identifier
                    ]
                    out += extend(rows, pairs, subject, object_, spending)
                    few(out, spending)
                return out

            return any_predicate
        way = walk(simplified(predicate), self._dictionary, subject[1], object_[1])
        return lambda facts, _, left: extend(left, way(facts), subject, object_, spending)

    def _place(self, term: Term | Var) -> tuple[str, int | None]:
        """Return the name of a variable or blank node, or a constant's id."""
        if isinstance(term, Var):
            return term.name, None
        if isinstance(term, BlankNode):
            return f"_:{term.value}", None
        return "", self._dictionary.pin(term)


def _extends(group: Group) -> bool:
    """Return whether a group only joins, so that it can extend each solution from outside of it."""
    return all(
        isinstance(element, Triples | Graph | Values) or (isinstance(element, Group) and _extends(element))
        for element in group.elements
    )


def _names(triple: TriplePattern) -> set[str]:
    names = {t.name for t in (triple.subject, triple.predicate, triple.object) if isinstance(t, Var)}
    return names | {f"_:{t.value}" for t in (triple.subject, triple.object) if isinstance(t, BlankNode)}


def _run(steps: Sequence[_Step], facts: Facts, ambient: Row, rows: Rows) -> Rows:
    for step in steps:
        if not rows:
            break
        rows = step(facts, ambient, rows)
    return rows
