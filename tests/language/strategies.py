"""Hypothesis strategies for syntax trees: terms, expressions, patterns, sequences, whole queries.

A tree is one that the parser could have made (no empty UNION, operators nested as the text would nest
them); ``queries`` keeps to the grammar, not to the static checks.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.language import syntax as s

XSD = "http://www.w3.org/2001/XMLSchema#"

_KEYWORD_LIKE = ["A", "ALL", "ON", "SEQ", "a", "as", "At", "filter", "GPM", "true"]

names = st.sampled_from([*_KEYWORD_LIKE, "B", "C", "S1", "x_1", "été"])
variables = st.builds(s.Var, st.sampled_from(["x", "y", "price", "p2", "été", "_1", "2"]))
iris = st.sampled_from(
    [
        NamedNode("http://example.org/a"),
        NamedNode("http://example.org/a#b"),
        NamedNode("http://example.org/"),
        NamedNode("http://example.org/ns/x.y"),
        NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"),
        NamedNode("urn:é:1"),
    ]
)
blank_nodes = st.builds(BlankNode, st.sampled_from(["b0", "b1", "x.y", "n"]))

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
literals = st.one_of(
    st.builds(Literal, _texts),
    st.builds(lambda value, tag: Literal(value, language=tag), _texts, st.sampled_from(["en", "de-at"])),
    st.builds(lambda value, datatype: Literal(value, datatype=datatype), _texts, iris),
    st.builds(
        lambda value, kind: Literal(value, datatype=NamedNode(XSD + kind)),
        st.sampled_from(["1", "-1", "+01", ".5", "-0.50", "1e6", "-1.E-3", "true", "false", "x", ""]),
        st.sampled_from(["integer", "decimal", "double", "boolean", "float"]),
    ),
)
data = st.one_of(iris, literals)
terms = st.one_of(variables, iris, literals, blank_nodes)
counts = st.integers(0, 2**63 - 1)


def _some(strategy: st.SearchStrategy, least: int, most: int) -> st.SearchStrategy:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


paths = st.recursive(
    st.one_of(
        iris,
        st.builds(s.PathNegated, _some(iris, 0, 2), _some(iris, 0, 2)),
    ),
    lambda inner: st.one_of(
        st.builds(s.PathSequence, _some(inner, 2, 3)),
        st.builds(s.PathAlternative, _some(inner, 2, 3)),
        st.builds(s.PathInverse, inner),
        st.builds(
            lambda path, bounds: s.PathRepeat(path, *bounds),
            inner,
            st.sampled_from([(0, None), (1, None), (0, 1)]),
        ),
    ),
    max_leaves=4,
)

_FUNCTIONS = {"NOW": 0, "STR": 1, "CONTAINS": 2, "IF": 3, "COALESCE": 2, "CONCAT": 0, "IRI": 1, "SUBSTR": 3}


def _call(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.sampled_from(sorted(_FUNCTIONS)).flatmap(
        lambda name: st.builds(s.Call, st.just(name), _some(inner, _FUNCTIONS[name], _FUNCTIONS[name]))
    )


def _inside(inner: st.SearchStrategy) -> st.SearchStrategy:
    aggregates = ["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "FIRST", "LAST"]
    operators = ["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]
    return st.one_of(
        st.builds(s.Unary, st.sampled_from("!+-"), inner),
        st.builds(s.Binary, st.sampled_from(operators), inner, inner),
        st.builds(s.In, inner, _some(inner, 0, 2), st.booleans()),
        _call(inner),
        st.builds(s.FunctionCall, iris, _some(inner, 1, 2), st.booleans()),
        st.builds(s.Aggregate, st.sampled_from(aggregates), inner, st.booleans()),
        st.builds(
            s.Aggregate, st.sampled_from(["FIRST", "LAST"]), inner, st.booleans(), offset=st.integers(0, 2)
        ),
        st.builds(s.Aggregate, st.just("GROUP_CONCAT"), inner, st.booleans(), st.one_of(st.none(), _texts)),
    )


_expression_leaves = st.one_of(
    variables,
    st.builds(s.Constant, data),
    st.builds(s.Prev, variables, st.integers(1, 3)),
    st.builds(s.Call, st.just("BOUND"), st.tuples(variables)),
    st.builds(s.FunctionCall, iris, st.just(())),
    st.builds(s.Aggregate, st.just("COUNT"), st.none(), st.booleans()),
    st.builds(s.Aggregate, st.sampled_from(["SUM", "LAST"]), variables, before=st.just(True)),
    st.builds(s.Exists, st.deferred(lambda: groups), st.booleans()),
)
expressions = st.recursive(_expression_leaves, _inside, max_leaves=5)

triples = st.builds(s.TriplePattern, terms, st.one_of(variables, paths), terms)


@st.composite
def values(draw: st.DrawFn) -> s.Values:
    """VALUES: zero to three columns, with UNDEF."""
    width = draw(st.integers(0, 3))
    columns = draw(st.lists(variables, min_size=width, max_size=width, unique=True))
    cells = st.one_of(st.none(), data)
    return s.Values(tuple(columns), draw(_some(_some(cells, width, width), 0, 3)))


def _pattern(group: st.SearchStrategy) -> st.SearchStrategy:
    places = st.one_of(variables, iris)
    return st.one_of(
        st.builds(s.Optional, group),
        st.builds(s.Minus, group),
        st.builds(s.Union, _some(group, 2, 3)),
        st.builds(s.Graph, places, group),
        st.builds(s.ServicePattern, places, group, st.booleans()),
        group,
    )


def _as_parsed(elements: tuple[s.Pattern, ...]) -> s.Group:
    """A group in which no two ``Triples`` have only FILTERs between them: they would be one."""
    kept: list[s.Pattern] = []
    after_triples = False
    for element in elements:
        if isinstance(element, s.Triples):
            if after_triples:
                continue
            after_triples = True
        elif not isinstance(element, s.Filter):
            after_triples = False
        kept.append(element)
    return s.Group(tuple(kept))


_simple_patterns = st.one_of(
    st.builds(s.Triples, _some(triples, 1, 3)),
    st.builds(s.Triples, _some(triples, 1, 3)),
    values(),
    st.builds(s.Filter, st.deferred(lambda: expressions)),
    st.builds(s.Bind, st.deferred(lambda: expressions), variables),
)


@st.composite
def sub_selects(draw: st.DrawFn, group: st.SearchStrategy) -> s.Group:
    """A group that is a subquery."""
    query = s.SubSelect(draw(selects()), draw(group), draw(modifiers()), draw(st.one_of(st.none(), values())))
    return s.Group((query,))


groups = st.recursive(
    _some(_simple_patterns, 0, 3).map(_as_parsed),
    lambda inner: st.one_of(
        _some(st.one_of(_simple_patterns, _pattern(inner)), 1, 3).map(_as_parsed), sub_selects(inner)
    ),
    max_leaves=4,
)


@st.composite
def selects(draw: st.DrawFn) -> s.Select:
    """SELECT's own part."""
    item = st.builds(s.Projection, variables, st.one_of(st.none(), expressions))
    items = draw(st.one_of(st.none(), _some(item, 1, 3)))
    how = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    return s.Select(items, *how)


@st.composite
def modifiers(draw: st.DrawFn) -> s.Modifiers:
    """GROUP BY … OFFSET, mostly absent."""
    return s.Modifiers(
        draw(_some(st.builds(s.GroupCondition, expressions, st.one_of(st.none(), variables)), 0, 2)),
        draw(_some(expressions, 0, 1)),
        draw(_some(st.builds(s.OrderCondition, expressions, st.booleans()), 0, 2)),
        draw(st.one_of(st.none(), counts)),
        draw(st.one_of(st.just(0), counts)),
    )


_times = st.sampled_from([unit for unit, length in s.UNITS.items() if length is not None])
_sizes = st.one_of(st.integers(0, 10**6), st.decimals(0, 10**6, places=4).map(Fraction))
_durations = st.builds(s.Duration, _sizes, _times)
_windows = st.one_of(
    st.builds(s.Window, _sizes, _times, st.sampled_from(list(s.WindowKind))),
    st.builds(s.Window, counts, st.just("EVENTS"), st.sampled_from(list(s.WindowKind))),
)
_skips = st.one_of(
    st.sampled_from([s.Skip(s.SkipMode.PAST_LAST_EVENT), s.Skip(s.SkipMode.TO_NEXT_EVENT)]),
    st.builds(s.Skip, st.sampled_from([s.SkipMode.TO_FIRST, s.SkipMode.TO_LAST]), names),
)
_clauses = st.one_of(
    st.tuples(st.sampled_from(list(s.Emit)), st.sampled_from(list(s.Consume)), st.none()),
    st.tuples(st.just(s.Emit.ALL), st.just(s.Consume.NONE), _skips),
)


def _bounds() -> st.SearchStrategy:
    return st.one_of(
        st.sampled_from([(0, None, True), (0, 1, True), (0, None, False), (0, 1, False)]),
        st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(0, 20)), st.just(False)),
    )


@st.composite
def _chains(draw: st.DrawFn, inner: st.SearchStrategy) -> s.Sequence:
    elements = draw(_some(inner, 2, 4))
    steps = _some(st.sampled_from(list(s.Strategy)), len(elements) - 1, len(elements) - 1)
    return s.Sequence(elements, draw(steps))


sequences = st.recursive(
    st.builds(s.Ref, names),
    lambda inner: st.one_of(
        _chains(inner),
        st.builds(s.Conjunction, _some(inner, 2, 3)),
        st.builds(s.Disjunction, _some(inner, 2, 3)),
        st.builds(s.All, _some(inner, 2, 3)),
        st.builds(s.Not, inner),
        st.builds(
            lambda element, bounds, strategy, reluctant: s.Repeat(
                element, *bounds[:2], strategy, reluctant, bounds[2]
            ),
            inner,
            _bounds(),
            st.sampled_from(list(s.Strategy)),
            st.booleans(),
        ),
        st.builds(s.Bounded, inner, _durations),
    ),
    max_leaves=8,
)

gpms = st.builds(
    s.Gpm, names, _some(names, 1, 2), groups, st.one_of(st.none(), variables), st.one_of(st.none(), variables)
)

prefixes = st.sampled_from(
    [
        (),
        (("ex", "http://example.org/"),),
        (("", "http://example.org/ns/"), ("ex.1", "http://example.org/"), ("xsd", XSD)),
    ]
)

_templates = st.builds(s.TriplePattern, terms, st.one_of(variables, iris), terms)

_queries = st.builds(
    s.Query,
    form=st.one_of(selects(), st.just(s.Ask()), st.builds(s.Construct, _some(_templates, 0, 3))),
    window=_windows,
    streams=_some(st.builds(s.StreamDeclaration, names, iris), 1, 2),
    sequence=sequences,
    gpms=_some(gpms, 1, 2),
    partition=_some(variables, 0, 2),
    knowledge=_some(iris, 0, 2),
    filters=_some(st.builds(s.Filter, expressions), 0, 1),
    modifiers=modifiers(),
    register=st.one_of(st.none(), st.builds(s.Register, st.sampled_from(list(s.RegisterKind)), iris)),
    prefixes=prefixes,
)
queries = st.builds(
    lambda query, clauses: replace(query, emit=clauses[0], consume=clauses[1], skip=clauses[2]),
    _queries,
    _clauses,
)
