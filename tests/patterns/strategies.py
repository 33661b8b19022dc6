"""Random small events, background graphs and patterns, dense enough to match often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import count
from typing import Any

from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from spaseq.events import BatchBuilder, Clock, EventBatch
from spaseq.language.syntax import (
    Aggregate,
    Binary,
    Bind,
    Call,
    Constant,
    Exists,
    Expression,
    Filter,
    Graph,
    Group,
    GroupCondition,
    In,
    Minus,
    Modifiers,
    Optional,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Pattern,
    Projection,
    Select,
    SubSelect,
    TriplePattern,
    Triples,
    Unary,
    Union,
    Values,
    Var,
)
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.values import XSD

E = "http://e.org/"
NODES = [NamedNode(E + name) for name in "abc"]
PREDICATES = [NamedNode(E + name) for name in "pq"]
# In canonical form, since one of the references, Oxigraph's store, changes all others.
LITERALS = [
    Literal(1),
    Literal(2),
    Literal("1.5", datatype=NamedNode(XSD + "decimal")),
    Literal("x"),
    Literal("x", language="en"),
]
BLANK = [BlankNode("n1"), BlankNode("n2")]
GRAPHS = [NamedNode(E + "kb1"), NamedNode(E + "kb2")]

triples = st.builds(
    Triple,
    st.sampled_from([*NODES, *BLANK]),
    st.sampled_from(PREDICATES),
    st.sampled_from([*NODES, *LITERALS, *BLANK]),
)
graphs = st.lists(triples, max_size=6, unique=True)
names = st.sampled_from("xyz")
variables = st.builds(Var, names)


def batch(events: list[list[Triple]], dictionary: Dictionary) -> EventBatch:
    """These graphs as the events of one stream."""
    builder = BatchBuilder(dictionary, NamedNode(E + "stream"), Clock.TICKS)
    for n, event in enumerate(events):
        builder.add(n, n, event)
    return builder.build()


# --- paths ------------------------------------------------------------------------------------

joined_paths: st.SearchStrategy[Path] = st.recursive(
    st.sampled_from(PREDICATES),
    lambda inner: st.one_of(
        st.builds(PathInverse, inner),
        st.lists(inner, min_size=2, max_size=2).map(tuple).map(PathSequence),
        st.lists(inner, min_size=2, max_size=2).map(tuple).map(PathAlternative),
    ),
    max_leaves=3,
)
general_paths: st.SearchStrategy[Path] = st.recursive(
    st.one_of(
        st.sampled_from(PREDICATES),
        st.just(PathNegated((PREDICATES[0],), ())),
        st.just(PathNegated((PREDICATES[0],), (PREDICATES[1],))),
    ),
    lambda inner: st.one_of(
        st.builds(PathInverse, inner),
        st.lists(inner, min_size=2, max_size=2).map(tuple).map(PathSequence),
        st.lists(inner, min_size=2, max_size=2).map(tuple).map(PathAlternative),
        st.builds(PathRepeat, inner, st.just(0), st.sampled_from([None, 1])),
        st.builds(PathRepeat, inner, st.just(1), st.none()),
    ),
    max_leaves=3,
)

# --- expressions ------------------------------------------------------------------------------

_operands = st.one_of(variables, st.sampled_from([*NODES, *LITERALS]).map(Constant))


_equalities = st.builds(Binary, st.sampled_from(["=", "!="]), _operands, _operands)
# Against numbers only: Oxigraph orders every term with itself, where SPARQL has an error.
_orders = st.builds(
    Binary, st.sampled_from(["<", ">="]), variables, st.sampled_from(LITERALS[:3]).map(Constant)
)


def _conditions(
    comparisons: st.SearchStrategy[Expression], patterns: st.SearchStrategy[Group] | None
) -> st.SearchStrategy[Expression]:
    leaves = [
        comparisons,
        st.builds(lambda v: Call("BOUND", (v,)), variables),
        st.builds(lambda v: Call("ISIRI", (v,)), variables),
        st.builds(In, variables, st.tuples(_operands, _operands), st.booleans()),
    ]
    if patterns is not None:
        leaves.append(st.builds(Exists, patterns, st.booleans()))
    leaf = st.one_of(leaves)
    return st.one_of(
        leaf,
        leaf,
        st.builds(Binary, st.sampled_from(["&&", "||"]), leaf, leaf),
        st.builds(Unary, st.just("!"), leaf),
    )


_computed = st.one_of(
    _operands,
    st.builds(Binary, st.sampled_from("+*"), variables, st.just(Constant(Literal(1)))),
    st.builds(lambda v: Call("STR", (v,)), variables),
    st.builds(lambda a, b: Call("COALESCE", (a, b)), variables, variables),
)

# --- patterns ---------------------------------------------------------------------------------


BASIC = ("triples", "triples", "filter")
NESTED = ("optional", "union")
SPECTRA = ("bind", "values", "minus", "group", "select", "exists")


def groups(depth: int = 2, kinds: tuple[str, ...] = SPECTRA) -> st.SearchStrategy[Group]:
    """A group of triples, filters, OPTIONAL, UNION and these other kinds of elements.

    ``computing`` (a subquery with an aggregate) and ``paths`` (all of them) need the general route;
    ``predicates`` are no paths at all.
    """
    return _groups(depth, kinds).map(lambda group: _relabel(group, count()))


def _relabel(node: Any, numbers: Iterator[int]) -> Any:
    """The tree with other blank nodes in each basic graph pattern: their labels belong to one."""
    if isinstance(node, Triples):
        label = BlankNode(f"blank{next(numbers)}")
        return Triples(
            tuple(replace(t, subject=label) if isinstance(t.subject, BlankNode) else t for t in node.patterns)
        )
    if isinstance(node, tuple):
        return tuple(_relabel(part, numbers) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: _relabel(getattr(node, f.name), numbers) for f in fields(node)})
    return node


@st.composite
def _groups(draw: st.DrawFn, depth: int, kinds: tuple[str, ...]) -> Group:
    paths = general_paths if "paths" in kinds else joined_paths
    if "predicates" in kinds:
        paths = st.sampled_from(PREDICATES)
    subjects = st.one_of(variables, variables, st.sampled_from(NODES), st.just(BlankNode("blank")))
    objects = st.one_of(variables, variables, st.sampled_from([*NODES, *LITERALS]))
    predicates = st.one_of(st.sampled_from(PREDICATES), st.sampled_from(PREDICATES), paths, variables)
    triple_patterns = st.builds(TriplePattern, subjects, predicates, objects)
    if "paths" in kinds:
        plain = st.builds(TriplePattern, subjects, st.sampled_from(PREDICATES), objects)
        triple_patterns = st.one_of(plain, st.builds(TriplePattern, variables, paths, variables))

    def inner() -> st.SearchStrategy[Group]:
        return _groups(depth - 1, kinds)

    elements: list[Pattern] = []
    bound = 0
    for _ in range(draw(st.integers(1, 3))):
        possible = BASIC + tuple(k for k in kinds if k in ("bind", "values"))
        if depth:
            possible += NESTED + tuple(k for k in kinds if k not in ("exists", "paths", "predicates"))
        match draw(st.sampled_from(possible)):
            case "triples":
                elements.append(Triples(tuple(draw(st.lists(triple_patterns, min_size=1, max_size=2)))))
            case "filter":
                # What MINUS means in EXISTS, where variables are replaced, SPARQL 1.1 leaves open.
                inside = tuple(kind for kind in kinds if kind != "minus")
                with_exists = _groups(depth - 1, inside) if depth and "exists" in kinds else None
                comparisons = _equalities if "equality" in kinds else st.one_of(_equalities, _orders)
                elements.append(Filter(draw(_conditions(comparisons, with_exists))))
            case "bind":
                bound += 1
                elements.append(Bind(draw(_computed), Var(f"b{depth}{bound}{len(elements)}")))
            case "values":
                rows = st.tuples(
                    st.sampled_from([*NODES, Literal(1), None]), st.sampled_from([*NODES, Literal(1), None])
                )
                columns = draw(st.permutations("xyz"))[:2]
                found = draw(st.lists(rows, max_size=2))
                elements.append(Values(tuple(map(Var, columns)), tuple(found)))
            case "optional":
                elements.append(Optional(draw(inner())))
            case "union":
                elements.append(Union((draw(inner()), draw(inner()))))
            case "minus":
                elements.append(Minus(draw(inner())))
            case "group":
                elements.append(draw(inner()))
            case "select":
                items = draw(st.sampled_from([None, "x", "xy"]))
                projected = None if items is None else tuple(Projection(Var(name)) for name in items)
                select = Select(projected, distinct=draw(st.booleans()))
                elements.append(Group((SubSelect(select, draw(inner()), Modifiers()),)))
            case "computing":
                elements.append(Group((draw(_computing(inner())),)))
            case "graph":
                elements.append(Graph(draw(st.one_of(st.sampled_from(GRAPHS), variables)), draw(inner())))
    return Group(tuple(elements))


@st.composite
def plain_groups(draw: st.DrawFn) -> Group:
    """A group that rdflib evaluates as SPARQL has it.

    Filters are not in nested groups (it would show them what is outside) and compare for equality only
    (it has an order between numbers and strings); one UNION (it joins two as sets).
    """
    found = draw(_groups(0, ("predicates", "equality")))
    nested: st.SearchStrategy[Pattern] = st.one_of(
        st.builds(Optional, _only_triples),
        st.builds(lambda a, b: Union((a, b)), _only_triples, _only_triples),
    )
    return _relabel(Group(found.elements + tuple(draw(st.lists(nested, max_size=1)))), count())


_only_triples: st.SearchStrategy[Group] = st.builds(
    lambda triple: Group((Triples((triple,)),)),
    st.builds(TriplePattern, variables, st.sampled_from(PREDICATES), variables),
)


@st.composite
def _computing(draw: st.DrawFn, patterns: st.SearchStrategy[Group]) -> SubSelect:
    """A subquery with an aggregate."""
    name = draw(st.sampled_from(["COUNT", "MIN", "MAX", "SUM"]))
    node = Aggregate(name, Var("y"), distinct=draw(st.booleans()))
    items = (Projection(Var("x")), Projection(Var("z"), node))
    return SubSelect(Select(items), draw(patterns), Modifiers(group_by=(GroupCondition(Var("x")),)))
