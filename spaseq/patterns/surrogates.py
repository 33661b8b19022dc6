"""Patterns as SPARQL text over surrogates: the text that the general route gives to Oxigraph.

``<u:7>`` stands for the term with id 7, and ``<u:0>`` for an unbound argument. Every expression becomes a
custom function of its variables, ``<f:0>(COALESCE(?a, <u:0>), …)``. An EXISTS in it becomes a further
argument. So does an aggregate: the ids of its argument's values, joined by GROUP_CONCAT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from spaseq.language.rewrite import substitute
from spaseq.language.scope import conjuncts, mentioned, variables, walk
from spaseq.language.syntax import (
    Aggregate,
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
    Unary,
    Union,
    Values,
    Var,
)
from spaseq.patterns.expressions.aggregates import aggregate_ids
from spaseq.patterns.expressions.compiled import (
    SEED,
    ExpressionError,
    Solution,
    compile_filter,
    compile_value,
)
from spaseq.patterns.expressions.functions import new_seed
from spaseq.patterns.expressions.walk import labels, simplified, takes_no_step
from spaseq.terms.dictionary import UNBOUND, Dictionary, Term
from spaseq.terms.values import BOOLEAN_TYPE

Answer = NamedNode | BlankNode | Literal
Function = Callable[..., Answer | Triple | None]

#: The prefix of variables that stand for blank nodes, events and so on.
HIDDEN: Final = "0·"

_TRUE: Final = Literal("true", datatype=BOOLEAN_TYPE)
_FALSE: Final = Literal("false", datatype=BOOLEAN_TYPE)


def surrogate(identifier: int) -> NamedNode:
    """Return the IRI that stands for a term."""
    return NamedNode(f"u:{identifier}")


def identify(term: NamedNode | BlankNode | Literal | Triple | None) -> int:
    """Return the id that a surrogate stands for; ``UNBOUND`` for None."""
    return UNBOUND if term is None else int(term.value[2:])  # type: ignore[union-attr]  # an IRI


class _StoppedError(Exception):
    """The work was abandoned."""


class Writer:
    """Writes patterns, and gathers the functions that their text calls.

    ``context`` replaces variables; ``graphs`` are the names over which ``GRAPH ?g`` ranges.
    """

    def __init__(self, dictionary: Dictionary, context: Solution, graphs: Sequence[int]) -> None:
        self._dictionary = dictionary
        self._context = context
        self._graphs = graphs
        self._blank: dict[BlankNode, str] = {}
        self._names = 0
        # The variable that holds the seed of a group's labelled blank nodes, for all its expressions.
        self._seed: str | None = None
        self._grouped = False
        self._running = Lock()
        #: The exception raised inside a function, or ``stop``: the answer of the query is then of no use.
        self.raised: BaseException | None = None
        self.functions: dict[NamedNode, Function] = {}

    # --- patterns -----------------------------------------------------------------------------

    def group(self, group: Group) -> str:
        """``{ … }``"""
        outside, self._seed = self._seed, None
        parts = []
        for element in group.elements:
            seed, text = self._seed, self._element(element)
            if self._seed is not None and seed is None:
                parts.append(self._bound(self._seed))
            parts.append(text)
        self._seed = outside
        return "{ " + " ".join(parts) + " }"

    def _bound(self, seed: str) -> str:
        """Return a BIND of the seed of a group's solutions."""
        return f"BIND({self._function([], [], lambda _: surrogate(new_seed()))} AS {seed})"

    def _element(self, element: Pattern) -> str:
        match element:
            case Triples(triples):
                return " ".join(map(self._triple, triples))
            case Group():
                return self.group(element)
            case Filter(condition):
                return " ".join(map(self._filter, conjuncts(condition)))
            case Bind(expression, variable):
                return f"BIND({self._call(expression)} AS {variable})"
            case Values():
                return self._values(element)
            case Optional(inner):
                return f"OPTIONAL {self.group(inner)}"
            case Minus(inner):
                return f"MINUS {self.group(inner)}"
            case Union(branches):
                return " UNION ".join(map(self.group, branches))
            case Graph(name, inner):
                return self._graph(name, inner)
            case SubSelect():
                return self._subselect(element)
        raise ValueError(f"{type(element).__name__} reaches beyond the event and the knowledge base")

    def _graph(self, name: NamedNode | Var, inner: Group) -> str:
        if isinstance(name, NamedNode):
            return f"GRAPH {self._term(name)} {self.group(inner)}"
        if (known := self._context.get(name.name)) is not None:
            return (
                f"GRAPH {surrogate(known)} {self.group(inner)}" if known in self._graphs else "VALUES () { }"
            )
        # One branch per graph, as SPARQL 1.1, 18.6 defines it. A variable would also range over events, which
        # are named graphs too, and Oxigraph would let it count in MINUS.
        branches = [
            f"{{ VALUES {name} {{ {graph} }} GRAPH {graph} {self.group(inner)} }}"
            for graph in map(surrogate, self._graphs)
        ]
        return " UNION ".join(branches) or f"VALUES {name} {{ }}"

    def _values(self, values: Values) -> str:
        names = [v.name for v in values.variables]
        kept = [i for i, name in enumerate(names) if name not in self._context]
        rows = [
            [UNBOUND if term is None else self._dictionary.intern(term) for term in row]
            for row in values.rows
        ]
        lines = [
            "(" + " ".join(str(surrogate(row[i])) if row[i] else "UNDEF" for i in kept) + ")"
            for row in rows
            if all(i in kept or row[i] in (UNBOUND, self._context[names[i]]) for i in range(len(names)))
        ]
        return f"VALUES ({' '.join('?' + names[i] for i in kept)}) {{ {' '.join(lines)} }}"

    def _triple(self, triple: TriplePattern) -> str:
        subject, predicate, end = self._term(triple.subject), triple.predicate, self._term(triple.object)
        if isinstance(predicate, Var):
            return f"{subject} {self._term(predicate)} {end} ."
        return self._steps(subject, simplified(predicate), end)

    def _steps(self, start: str, path: Path, end: str) -> str:
        """Return a path between two places, split into joins and unions as SPARQL 1.1, 18.2.2.4 does.

        Oxigraph's own alternative would walk ``p|p`` once.
        """
        match path:
            case NamedNode():
                return f"{start} {self._term(path)} {end} ."
            case PathInverse(inner):
                return self._steps(end, inner, start)
            case PathAlternative(parts):
                return " UNION ".join(f"{{ {self._steps(start, part, end)} }}" for part in parts)
            case PathSequence(parts):
                places = [start, *(self._hidden() for _ in parts[1:]), end]
                return " ".join(map(self._steps, places, parts, places[1:]))
            case PathNegated(forward, inverse) if forward and inverse:
                ways = PathNegated(forward, ()), PathInverse(PathNegated(inverse, ()))
                return self._steps(start, PathAlternative(ways), end)
        if takes_no_step(path) and not (start[0] == end[0] == "?"):
            return self._from_itself(start, path, end)
        return f"{start} {self._path(path)} {end} ."

    def _from_itself(self, start: str, path: Path, end: str) -> str:
        """Write ``p*`` or ``p?`` from or to a term, which matches itself even if the graph lacks it (18.4).

        In that case, Oxigraph would match nothing.
        """
        if start == end:
            return "VALUES () { () }"
        steps = f"{start} {self._path(path)} {end} ."
        if start[0] != "?" and end[0] != "?":
            return steps
        free, term = (end, start) if end[0] == "?" else (start, end)
        return f"{{ SELECT DISTINCT {free} {{ {{ VALUES {free} {{ {term} }} }} UNION {{ {steps} }} }} }}"

    def _hidden(self) -> str:
        """Return a new variable that no query can write."""
        self._names += 1
        return f"?{HIDDEN}{self._names}"

    def _term(self, term: Term | Var) -> str:
        if isinstance(term, Var):
            identifier = self._context.get(term.name)
            return str(term) if identifier is None else str(surrogate(identifier))
        if isinstance(term, BlankNode):
            if term not in self._blank:
                self._blank[term] = self._hidden()
            return self._blank[term]
        return str(surrogate(self._dictionary.intern(term)))

    def _path(self, path: Path) -> str:
        match path:
            case NamedNode():
                return self._term(path)
            case PathInverse(inner):
                return f"(^{self._path(inner)})"
            case PathSequence(parts):
                return "(" + "/".join(map(self._path, parts)) + ")"
            case PathAlternative(parts):
                return "(" + "|".join(map(self._path, parts)) + ")"
            case PathRepeat(inner, minimum, maximum):
                sign = "?" if maximum == 1 else "+" if minimum == 1 else "*"
                return f"({self._path(inner)}{sign})"
            case PathNegated(forward, inverse):
                steps = [self._term(p) for p in forward] + [f"^{self._term(p)}" for p in inverse]
                return "!(" + "|".join(steps) + ")"

    # --- subqueries ---------------------------------------------------------------------------

    def _subselect(self, query: SubSelect) -> str:
        """Write a subquery. It sees nothing of the outer pattern; what it projects must agree with the
        context.
        """
        outside, self._context = (self._context, self._seed, self._grouped), {}
        self._seed, self._grouped = None, _is_grouped(query)
        text = self._select(query)
        self._context, self._seed, self._grouped = outside
        projected = (
            None if query.select.items is None else {item.variable.name for item in query.select.items}
        )
        agreed = [
            f"VALUES ?{name} {{ {surrogate(identifier)} }}"
            for name, identifier in self._context.items()
            if projected is None or name in projected
        ]
        return " ".join([f"{{ {text} }}", *agreed])

    def _select(self, query: SubSelect) -> str:
        modifiers, grouped = query.modifiers, self._grouped
        self._grouped = False
        pattern = self.group(query.pattern)
        self._grouped = grouped
        parts = ["SELECT"]
        if query.select.distinct:
            parts.append("DISTINCT")
        if query.select.items is None:
            parts += [f"?{name}" for name in sorted(variables(query))]  # not *, which has hidden ones too
        for item in query.select.items or ():
            call = item.expression and self._call(item.expression)
            parts.append(str(item.variable) if call is None else f"({call} AS {item.variable})")
        if len(parts) == 1 + query.select.distinct:
            parts.append(f"(0 AS {self._hidden()})")
        at = len(parts)
        if modifiers.group_by:
            parts.append("GROUP BY")
            for condition in modifiers.group_by:
                call = self._of_row(condition.expression)
                parts.append(call if condition.variable is None else f"({call} AS {condition.variable})")
        if modifiers.having:
            parts.append("HAVING")
            parts += [f"({self._test(condition)})" for condition in modifiers.having]
        if modifiers.order_by and (modifiers.limit is not None or modifiers.offset):
            parts.append("ORDER BY")
            for order in modifiers.order_by:
                parts.append(f"{'DESC' if order.descending else 'ASC'}({self._real(order.expression)})")
        if modifiers.limit is not None:
            parts.append(f"LIMIT {modifiers.limit}")
        if modifiers.offset:
            parts.append(f"OFFSET {modifiers.offset}")
        if query.values is not None:
            parts.append(self._values(query.values))
        parts.insert(at, pattern if self._seed is None else f"{{ {pattern} {self._bound(self._seed)} }}")
        return " ".join(parts)

    # --- expressions --------------------------------------------------------------------------

    def _filter(self, condition: Expression) -> str:
        if isinstance(condition, Exists):
            return f"FILTER {self._exists(condition.pattern, condition.negated)}"
        return f"FILTER({self._test(condition)})"

    def _exists(self, pattern: Group, negated: bool = False) -> str:
        return f"{'NOT ' if negated else ''}EXISTS {self.group(pattern)}"

    def _test(self, expression: Expression) -> str:
        """Return a call that is true, false or an error."""
        expression, names, arguments = self._flatten(expression)
        keep = compile_filter(expression, self._dictionary)
        return self._function(names, arguments, lambda solution: _TRUE if keep(solution) else _FALSE)

    def _call(self, expression: Expression) -> str:
        """Return a call that evaluates to a surrogate."""
        if isinstance(expression, Var) and expression.name not in self._context:
            return str(expression)
        expression, names, arguments = self._flatten(expression)
        evaluate = compile_value(expression, self._dictionary)
        return self._function(names, arguments, lambda solution: surrogate(evaluate(solution)))

    def _real(self, expression: Expression) -> str:
        """Return a call that evaluates to the term itself, which ORDER BY needs."""
        expression, names, arguments = self._flatten(expression)
        evaluate = compile_value(expression, self._dictionary)
        return self._function(names, arguments, lambda solution: self._dictionary.term(evaluate(solution)))

    def _flatten(self, expression: Expression) -> tuple[Expression, list[str], list[str]]:
        """Return the expression without EXISTS and aggregates, its variables, and the text of each."""
        names: list[str] = []
        arguments: list[str] = []

        def replacement(part: Expression) -> Expression | None:
            if isinstance(part, Exists):
                arguments.append(self._exists(part.pattern))
                flag = Var(f" {len(names)}")  # no written name has a space
                names.append(flag.name)
                return Unary("!", flag) if part.negated else flag
            if isinstance(part, Aggregate):
                arguments.append(self._aggregate(part))
                value = Var(f" {len(names)}")
                names.append(value.name)
                return value
            return None

        flat = substitute(expression, replacement)
        if labels(flat):
            if self._seed is None:
                self._seed = self._hidden()
            names.append(SEED)
            arguments.append(f"SAMPLE({self._seed})" if self._grouped else self._seed)
        for name in sorted(mentioned(flat) - {*names} - self._context.keys()):
            names.append(name)
            arguments.append(f"COALESCE(?{name}, {surrogate(UNBOUND)})")
        return flat, names, arguments

    def _aggregate(self, node: Aggregate) -> str:
        distinct = "DISTINCT " if node.distinct else ""
        if node.argument is None:
            return f"COUNT({distinct}*)"
        value = f"STR(COALESCE({self._of_row(node.argument)}, {surrogate(UNBOUND)}))"
        name = self._register(lambda joined: self._over(node, joined))
        return f'COALESCE({name}(GROUP_CONCAT({distinct}{value}; SEPARATOR=" ")), {surrogate(UNBOUND)})'

    def _of_row(self, expression: Expression) -> str:
        """Return a call that is computed before rows are grouped."""
        grouped, self._grouped = self._grouped, False
        text = self._call(expression)
        self._grouped = grouped
        return text

    def _over(self, node: Aggregate, joined: Term) -> NamedNode | None:
        ids = [int(text[2:]) for text in joined.value.split()]
        known = [identifier for identifier in ids if identifier != UNBOUND]
        try:
            return surrogate(aggregate_ids(node, known, len(known) == len(ids), self._dictionary))
        except ExpressionError:
            return None

    def _function(
        self, names: Sequence[str], arguments: Sequence[str], compute: Callable[[Solution], Answer]
    ) -> str:
        def function(*terms: Term) -> Answer | None:
            solution = dict(self._context)
            for name, term in zip(names, terms, strict=True):
                solution[name] = self._argument(term)
            try:
                return compute(solution)
            except ExpressionError:
                return None

        return f"{self._register(function)}({', '.join(arguments)})"

    def _argument(self, term: Term) -> int:
        """Return the id of a surrogate, or of the literal that EXISTS or COUNT made."""
        return identify(term) if isinstance(term, NamedNode) else self._dictionary.intern(term)

    def _register(self, function: Function) -> NamedNode:
        def guarded(*terms: Term) -> Term | Triple | None:
            # Oxigraph treats any exception as SPARQL's error.
            with self._running:
                if self.raised is None:
                    try:
                        return function(*terms)
                    except BaseException as error:
                        self.raised = error
            return None

        name = NamedNode(f"f:{len(self.functions)}")
        self.functions[name] = guarded
        return name

    def check(self) -> None:
        """Raise what a function raised, other than SPARQL's errors."""
        if self.raised is not None:
            raise self.raised

    def stop(self) -> None:
        """Let functions compute nothing from now on, as another thread may use their dictionary."""
        with self._running:
            self.raised = _StoppedError()


def _is_grouped(query: SubSelect) -> bool:
    """Return whether the rows of a subquery are groups: its expressions see variables only in aggregates."""
    modifiers = query.modifiers
    projected = (item.expression for item in query.select.items or () if item.expression is not None)
    ordered = (order.expression for order in modifiers.order_by)
    asked = (*projected, *modifiers.having, *ordered)
    return bool(modifiers.group_by) or any(isinstance(part, Aggregate) for e in asked for part in walk(e))
