"""What text means which tree: tokens that look alike, escapes, blank nodes, defaults, spans."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from spaseq.language import syntax as s
from spaseq.language.reading.parser import parse, parse_group
from tests.language.marked import asked

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
E = "http://example.org/"


def sequence(text: str) -> s.Seq:
    return parse(asked(f"WHERE {{ SEQ({text}) DEFINE GPM A ON S {{ }} }}")).sequence


def triples(text: str) -> list[tuple[object, object, object]]:
    """The triple patterns of a group, without spans."""
    group = parse_group(f"PREFIX : <{E}> {{ {text} }}")
    (found,) = group.elements
    assert isinstance(found, s.Triples)
    return [(t.subject, t.predicate, t.object) for t in found.patterns]


def objects(text: str) -> list[object]:
    return [o for _, _, o in triples(f"?s ?p {text}")]


def condition(text: str) -> s.Expression:
    (found,) = parse_group(f"PREFIX : <{E}> {{ FILTER({text}) }}").elements
    assert isinstance(found, s.Filter)
    return found.condition


def integer(text: str) -> s.Constant:
    return s.Constant(Literal(text, datatype=NamedNode(XSD + "integer")))


# --- SEQ

A, B, C, D = map(s.Ref, "ABCD")
STRICT, NEXT, ANY = s.Strategy

SEQUENCES = [
    ("A", A),
    ("((A))", A),
    ("A , B ; C : D", s.Sequence((A, B, C, D), (STRICT, NEXT, ANY))),
    ("A:B", s.Sequence((A, B), (ANY,))),
    ("A;B&C|D", s.Disjunction((s.Conjunction((s.Sequence((A, B), (NEXT,)), C)), D))),
    ("A | (B | C)", s.Disjunction((A, s.Disjunction((B, C))))),
    ("A ; (B , C)", s.Sequence((A, s.Sequence((B, C), (STRICT,))), (NEXT,))),
    ("A+", s.Repeat(A, 1, None)),
    ("A*[,]", s.Repeat(A, 0, None, STRICT, optional=True)),
    ("A?", s.Repeat(A, 0, 1, optional=True)),
    ("A{0,1}", s.Repeat(A, 0, 1)),
    ("A{0,}", s.Repeat(A, 0, None)),
    ("A+?[,] ; B", s.Sequence((s.Repeat(A, 1, None, STRICT, reluctant=True), B), (NEXT,))),
    ("A*?", s.Repeat(A, 0, None, reluctant=True, optional=True)),
    ("A??", s.Repeat(A, 0, 1, reluctant=True, optional=True)),
    ("A{2,3}?", s.Repeat(A, 2, 3, reluctant=True)),
    ("A WITHIN 5 SECONDS", s.Bounded(A, s.Duration(5, "SECONDS"))),
    (
        "A+ within .25 microsecond",
        s.Bounded(s.Repeat(A, 1, None), s.Duration(Fraction(1, 4), "MICROSECONDS")),
    ),
    (
        "!A WITHIN 1.50 days ; B",
        s.Sequence((s.Bounded(s.Not(A), s.Duration(Fraction(3, 2), "DAYS")), B), (NEXT,)),
    ),
    ("A! WITHIN 1 HOUR", s.Bounded(s.Not(A), s.Duration(1, "HOURS"))),
    ("(A ; B) WITHIN 2 MINUTES", s.Bounded(s.Sequence((A, B), (NEXT,)), s.Duration(2, "MINUTES"))),
    ("(A WITHIN 2 MINUTES)+", s.Repeat(s.Bounded(A, s.Duration(2, "MINUTES")), 1, None)),
    ("ALL(A WITHIN 1 DAY, WITHIN)", s.All((s.Bounded(A, s.Duration(1, "DAYS")), s.Ref("WITHIN")))),
    ("A{3}", s.Repeat(A, 3, 3)),
    ("A{ 3 , }[:]", s.Repeat(A, 3, None, ANY)),
    ("(A ; B){2,3}", s.Repeat(s.Sequence((A, B), (NEXT,)), 2, 3)),
    ("!A ; B", s.Sequence((s.Not(A), B), (NEXT,))),
    ("A! ; B", s.Sequence((s.Not(A), B), (NEXT,))),
    ("!A+", s.Not(s.Repeat(A, 1, None))),
    ("(!A)+", s.Repeat(s.Not(A), 1, None)),
    ("ALL(A, B ; C, D)", s.All((A, s.Sequence((B, C), (NEXT,)), D))),
    ("all (A, (B , C))", s.All((A, s.Sequence((B, C), (STRICT,))))),
    ("ALL ; B", s.Sequence((s.Ref("ALL"), B), (NEXT,))),
    ("a ; on ; SEQ", s.Sequence((s.Ref("a"), s.Ref("on"), s.Ref("SEQ")), (NEXT, NEXT))),
    ("A # not B\n ; C", s.Sequence((A, C), (NEXT,))),
]


@pytest.mark.parametrize(("text", "tree"), SEQUENCES)
def test_sequences(text: str, tree: s.Seq) -> None:
    assert sequence(text) == tree


def _ends(clauses: str) -> s.Query:
    return parse(f"ASK WITHIN 1 DAY FROM STREAM S <urn:s> {{ SEQ(A) DEFINE GPM A ON S {{}} }} {clauses}")


@pytest.mark.parametrize(
    ("clause", "skip"),
    [
        ("AFTER MATCH SKIP PAST LAST EVENT", s.Skip(s.SkipMode.PAST_LAST_EVENT)),
        ("after match skip to next event LIMIT 3", s.Skip(s.SkipMode.TO_NEXT_EVENT)),
        ("AFTER MATCH SKIP TO FIRST A ORDER BY ?x", s.Skip(s.SkipMode.TO_FIRST, "A")),
        ("AFTER MATCH SKIP TO LAST A", s.Skip(s.SkipMode.TO_LAST, "A")),
        ("AFTER MATCH SKIP TO A", s.Skip(s.SkipMode.TO_LAST, "A")),
        ("AFTER MATCH SKIP TO NEXT", s.Skip(s.SkipMode.TO_LAST, "NEXT")),
        ("AFTER MATCH SKIP TO LAST LAST", s.Skip(s.SkipMode.TO_LAST, "LAST")),
        ("AFTER MATCH SKIP TO LAST", s.Skip(s.SkipMode.TO_LAST, "LAST")),
    ],
)
def test_where_to_skip(clause: str, skip: s.Skip) -> None:
    query = _ends(clause)
    assert query.skip == skip
    assert (query.emit, query.consume) == (s.Emit.ALL, s.Consume.NONE)


def test_emit_and_consume_in_any_order() -> None:
    for clauses in ("EMIT MAX CONSUME ANY", "CONSUME ANY EMIT MAX"):
        query = _ends(clauses)
        assert (query.emit, query.consume, query.skip) == (s.Emit.MAX, s.Consume.ANY, None)


def test_decimals_are_exact() -> None:
    text = "ASK WITHIN 0.1 SECONDS FROM STREAM S <urn:s> { SEQ(A) DEFINE GPM A ON S {} }"
    window = parse(text).window
    assert (window.size, window.unit) == (Fraction(1, 10), "SECONDS")
    assert s.Duration(window.size, window.unit).on(ticks=False) == 100_000
    most = text.replace("0.1 SECONDS", "9223372036854.775807 SECONDS")
    assert s.Duration(parse(most).window.size, "SECONDS").on(ticks=False) == 2**63 - 1


def test_steps_back_and_on() -> None:
    assert condition("PREV(?v) = PREV(?v, 3)") == s.Binary(
        "=", s.Prev(s.Var("v")), s.Prev(s.Var("v"), offset=3)
    )
    assert condition("FIRST(?v, 2)") == s.Aggregate("FIRST", s.Var("v"), offset=2)
    assert condition("LAST(?v)") == condition("LAST(?v, 0)") == s.Aggregate("LAST", s.Var("v"))


def test_names_may_look_like_keywords() -> None:
    query = parse(
        """ASK WITHIN 1 DAY FROM STREAM FROM <urn:s> FROM STREAM at <urn:t>
        SEQ(DEFINE ; SEQ ; As) { DEFINE GPM DEFINE ON FROM, at AT ?at AS ?as { }
        DEFINE GPM SEQ ON at { } DEFINE GPM As ON at { } }"""
    )
    first = query.gpm("DEFINE")
    assert (first.streams, first.time, first.graph) == (("FROM", "at"), s.Var("at"), s.Var("as"))
    assert query.stream("at") == NamedNode("urn:t")
    with pytest.raises(KeyError):
        query.gpm("define")
    with pytest.raises(KeyError):
        query.stream("AT")


def test_seq_before_or_inside_the_braces() -> None:
    gpm = "DEFINE GPM A ON S { }"
    texts = [
        f"WHERE SEQ(A) {{ {gpm} }}",
        f"SEQ(A) {{ {gpm} }}",
        f"WHERE {{ SEQ(A) {gpm} }}",
        f"{{ SEQ(A) {gpm} }}",
    ]
    assert len({parse(asked(text)) for text in texts}) == 1


def test_everything_a_query_may_say() -> None:
    query = parse(
        """BASE <http://example.org/> PREFIX : <#>
        REGISTER STREAM <out> AS CONSTRUCT { ?a :p [ :q "x" ] }
        WITHIN 20 EVENTS SLIDING PARTITION BY ?a (?b ?c)
        FROM STREAM S <s> FROM NAMED <kb> FROM NAMED :kb2
        WHERE { SEQ(A) DEFINE GPM A ON S AT ?t AS ?g { } FILTER(?t > 1) . FILTER EXISTS { } }
        EMIT last CONSUME any
        GROUP BY ?a (STR(?b) AS ?d) HAVING (?d > 1) ORDER BY DESC(?a) ?b STR(?c) OFFSET 3 LIMIT 5"""
    )
    assert isinstance(query.form, s.Construct)
    assert query.register == s.Register(s.RegisterKind.STREAM, NamedNode(E + "out"))
    assert query.window == s.Window(20, "EVENTS", s.WindowKind.SLIDING)
    assert query.partition == (s.Var("a"), s.Var("b"), s.Var("c"))
    assert query.knowledge == (NamedNode(E + "kb"), NamedNode(E + "#kb2"))
    assert len(query.filters) == 2
    assert (query.emit, query.consume) == (s.Emit.LAST, s.Consume.ANY)
    assert (query.modifiers.limit, query.modifiers.offset) == (5, 3)
    assert [c.variable for c in query.modifiers.group_by] == [None, s.Var("d")]
    assert [c.descending for c in query.modifiers.order_by] == [True, False, False]
    assert query.prefixes == (("", E + "#"),)


def test_what_a_query_does_not_say() -> None:
    query = parse("SELECT * WITHIN 1 HOUR FROM STREAM S <urn:s> { SEQ(A) DEFINE GPM A ON S { } }", "q.rq")
    assert query.form == s.Select(None)
    assert query.window == s.Window(1, "HOURS", s.WindowKind.TUMBLING)
    assert (query.emit, query.consume) == (s.Emit.ALL, s.Consume.NONE)
    assert query.modifiers == s.Modifiers()
    assert (query.register, query.partition, query.filters) == (None, (), ())
    assert query.filename == "q.rq"


@pytest.mark.parametrize("unit", ["MILLISECOND", "second", "Minutes", "HOUR", "days", "EVENT"])
def test_units_in_both_numbers(unit: str) -> None:
    text = f"ASK WITHIN 2 {unit} FROM STREAM S <urn:s> {{ SEQ(A) DEFINE GPM A ON S {{ }} }}"
    assert parse(text).window.unit == unit.upper().removesuffix("S") + "S"


# --- tokens that look alike


def test_less_than_is_not_an_iri() -> None:
    x, y, z = map(s.Var, "xyz")
    assert condition("?x<?y&&?y>?z") == s.Binary("&&", s.Binary("<", x, y), s.Binary(">", y, z))
    assert condition("?x<5") == s.Binary("<", x, integer("5"))
    assert condition("<urn:a> < <urn:b>") == s.Binary(
        "<", s.Constant(NamedNode("urn:a")), s.Constant(NamedNode("urn:b"))
    )


def test_a_sign_is_an_operator_after_an_operand() -> None:
    x, one, two = s.Var("x"), integer("1"), integer("2")
    assert condition("?x-1") == condition("?x - 1") == condition("?x -1") == s.Binary("-", x, one)
    assert condition("?x+1 -2") == s.Binary("-", s.Binary("+", x, one), two)
    assert condition("?x -1*2") == s.Binary("-", x, s.Binary("*", one, two))
    assert condition("?x - -1") == s.Binary("-", x, integer("-1"))
    assert condition("-1") == integer("-1")
    assert condition("-?x") == s.Unary("-", x)
    assert condition("ABS(?x) -1") == s.Binary("-", s.Call("ABS", (x,)), one)


def test_operators_bind_as_in_sparql() -> None:
    a, b, c, d = map(s.Var, "abcd")
    assert condition("?a || ?b && ?c = ?d") == s.Binary("||", a, s.Binary("&&", b, s.Binary("=", c, d)))
    assert condition("?a - ?b - ?c * ?d") == s.Binary("-", s.Binary("-", a, b), s.Binary("*", c, d))
    assert condition("?a NOT IN (?b, 1) && !?c") == s.Binary(
        "&&", s.In(a, (b, integer("1")), negated=True), s.Unary("!", c)
    )


def test_a_question_mark_after_a_path_is_not_a_variable() -> None:
    p, q = NamedNode(E + "p"), NamedNode(E + "q")
    assert triples("?s :p? ?o")[0][1] == s.PathRepeat(p, 0, 1)
    assert triples("?s :p??o")[0][1] == s.PathRepeat(p, 0, 1)
    assert triples("?s :p?o")[0][1:] == (p, s.Var("o"))
    assert triples("?s :p+ +5")[0][1] == s.PathRepeat(p, 1, None)
    assert triples("?s ^:p/:q*|!(a|^:q) ?o")[0][1] == s.PathAlternative(
        (
            s.PathSequence((s.PathInverse(p), s.PathRepeat(q, 0, None))),
            s.PathNegated((NamedNode(RDF + "type"),), (q,)),
        )
    )
    assert triples("?s !() ?o")[0][1] == s.PathNegated((), ())


def test_a_is_a_predicate_only() -> None:
    assert triples("?s a <urn:C>") == [(s.Var("s"), NamedNode(RDF + "type"), NamedNode("urn:C"))]
    assert parse_group("PREFIX a: <urn:> { ?s a:b a:a }") == parse_group("{ ?s <urn:b> <urn:a> }")


def test_functions_by_their_other_names() -> None:
    assert condition("uri(?x)") == s.Call("IRI", (s.Var("x"),))
    assert condition("isURI(?x)") == s.Call("ISIRI", (s.Var("x"),))


def test_aggregates() -> None:
    x = s.Var("x")
    assert condition("count(*)") == s.Aggregate("COUNT", None)
    assert condition("Count(DISTINCT ?x)") == s.Aggregate("COUNT", x, distinct=True)
    assert condition("GROUP_CONCAT(?x ; separator = '\\t')") == s.Aggregate("GROUP_CONCAT", x, False, "\t")
    assert condition("LAST(?x) > prev(?x)") == s.Binary(">", s.Aggregate("LAST", x), s.Prev(x))
    assert condition("prev(LAST(?x, 2))") == s.Aggregate("LAST", x, offset=2, before=True)


# --- literals, escapes, IRIs


def test_literals() -> None:
    def typed(text: str, kind: str) -> Literal:
        return Literal(text, datatype=NamedNode(XSD + kind))

    assert objects("1, -01, 1.5, +.5, 1e3, -1.E-3, TRUE") == [
        typed("1", "integer"), typed("-01", "integer"), typed("1.5", "decimal"), typed("+.5", "decimal"),
        typed("1e3", "double"), typed("-1.E-3", "double"), typed("true", "boolean"),
    ]  # fmt: skip
    assert objects("""'a', "b'", '''c'd"''', \"\"\"e"f\n\"\"\", '', \"\"\"\"\"\" """) == [
        Literal("a"), Literal("b'"), Literal("c'd\""), Literal('e"f\n'), Literal(""), Literal(""),
    ]  # fmt: skip
    assert objects("'chat'@fr-be, '5'^^<urn:t>, 'x'^^:t") == [
        Literal("chat", language="fr-be"),
        Literal("5", datatype=NamedNode("urn:t")),
        Literal("x", datatype=NamedNode(E + "t")),
    ]


def test_escapes_in_strings() -> None:
    assert objects(r"""'\t\n\r\b\f\\\"\''""") == [Literal("\t\n\r\b\f\\\"'")]
    assert objects(r"""'\\u0041', '\u0041\U0001F600', '\\\u0041'""") == [
        Literal("\\u0041"), Literal("A😀"), Literal("\\A"),
    ]  # fmt: skip


def test_codepoint_escapes_anywhere() -> None:
    assert triples(r"?\u0073 <urn:\u00e9> :\u0070") == [(s.Var("s"), NamedNode("urn:é"), NamedNode(E + "p"))]


def test_local_names() -> None:
    assert [o.value for o in objects(r":a.b, :a\~\.b, :%20x, :1:2, :") if isinstance(o, NamedNode)] == [
        E + name for name in ("a.b", "a~.b", "%20x", "1:2", "")
    ]


def test_relative_iris() -> None:
    group = parse_group("BASE <http://a/b/c?q> BASE <d/> PREFIX : <../x#> { :y <?z> <> }")
    (found,) = group.elements
    assert isinstance(found, s.Triples)
    names = [found.patterns[0].subject, found.patterns[0].predicate, found.patterns[0].object]
    assert names == [NamedNode("http://a/b/x#y"), NamedNode("http://a/b/d/?z"), NamedNode("http://a/b/d/")]


# --- blank nodes and collections


def test_blank_nodes_get_labels_that_no_other_has() -> None:
    b1, b2 = BlankNode("b1"), BlankNode("b2")
    assert triples("_:b0 :p [] . [ :q 1 ] :r []")[0] == (BlankNode("b0"), NamedNode(E + "p"), b1)
    assert triples("_:b0 :p [ :q [] ]") == [
        (BlankNode("b0"), NamedNode(E + "p"), b2),
        (b2, NamedNode(E + "q"), b1),
    ]


def test_collections() -> None:
    b0, b1 = BlankNode("b0"), BlankNode("b1")
    first, rest, nil = NamedNode(RDF + "first"), NamedNode(RDF + "rest"), NamedNode(RDF + "nil")
    assert triples("(?x 'y') :p ()") == [
        (b0, first, s.Var("x")),
        (b0, rest, b1),
        (b1, first, Literal("y")),
        (b1, rest, nil),
        (b0, NamedNode(E + "p"), nil),
    ]
    assert len(triples("(1 [ :p (2 3) ])")) == 9


def test_predicate_and_object_lists() -> None:
    assert [(p, o) for _, p, o in triples("?s :p 'a' , 'b' ; :q 'c' ; ; .")] == [
        (NamedNode(E + "p"), Literal("a")),
        (NamedNode(E + "p"), Literal("b")),
        (NamedNode(E + "q"), Literal("c")),
    ]


# --- groups


def test_a_filter_does_not_end_a_basic_graph_pattern() -> None:
    kinds = [type(e) for e in parse_group("{ ?a ?b ?c FILTER(?a) ?d ?e ?f BIND(1 AS ?x) ?g ?h ?i }").elements]
    assert kinds == [s.Triples, s.Filter, s.Bind, s.Triples]


def test_groups_and_unions() -> None:
    empty = s.Group(())
    assert parse_group("{ { } }") == s.Group((empty,))
    assert parse_group("{ { } UNION { } UNION { } . OPTIONAL { } . MINUS { } }") == s.Group(
        (s.Union((empty, empty, empty)), s.Optional(empty), s.Minus(empty))
    )
    assert parse_group("{ GRAPH ?g { } SERVICE SILENT <urn:s> { } }") == s.Group(
        (s.Graph(s.Var("g"), empty), s.ServicePattern(NamedNode("urn:s"), empty, silent=True))
    )


def test_values() -> None:
    x, y = s.Var("x"), s.Var("y")
    a = NamedNode("urn:a")
    assert parse_group("{ VALUES ?x { <urn:a> UNDEF } }") == s.Group((s.Values((x,), ((a,), (None,))),))
    assert parse_group("{ VALUES (?x ?y) { (<urn:a> 'b') } }") == s.Group(
        (s.Values((x, y), ((a, Literal("b")),)),)
    )
    assert parse_group("{ VALUES () { () () } }") == s.Group((s.Values((), ((), ())),))


def test_a_subquery_with_everything() -> None:
    (query,) = parse_group(
        "{ SELECT DISTINCT ?x (COUNT(*) AS ?n) WHERE { ?x ?p ?y } GROUP BY ?x LIMIT 2 VALUES ?x { 1 } }"
    ).elements
    assert isinstance(query, s.SubSelect)
    assert query.select.distinct
    assert query.modifiers.limit == 2
    assert query.values is not None


# --- spans


def spans(node: object) -> list[tuple[object, s.Span]]:
    """Every node below ``node`` that has a span."""
    found: list[tuple[object, s.Span]] = []
    if isinstance(node, tuple):
        for item in node:
            found += spans(item)
    elif is_dataclass(node) and not isinstance(node, s.Span):
        span = getattr(node, "span", None)
        if span is not None:
            found.append((node, span))
        for field in fields(node):
            found += spans(getattr(node, field.name))
    return found


def test_every_span_is_the_text_of_its_node() -> None:
    text = r"""PREFIX : <http://example.org/>
SELECT ?x (?y + 1 AS ?z) WITHIN 5 SECONDS FROM STREAM S :s
WHERE { SEQ(A+ ; !(B | C))
  DEFINE GPM A ON S { ?x :\u0070 ?y ; :q [ :r 1 ] OPTIONAL { } FILTER(?y > PREV(?y) && BOUND(?x)) }
}"""
    query = parse(text)
    lines = text.split("\n")
    found = spans(query)
    assert len(found) > 25
    for node, span in found:
        written = text[span.start : span.end]
        assert lines[span.line - 1][span.column - 1 :].startswith(written.split("\n")[0])
        if isinstance(node, s.Var):
            assert written == f"?{node.name}"
        elif isinstance(node, s.Ref):
            assert written == node.name
        elif isinstance(node, s.Repeat):
            assert written == "A+"
        elif isinstance(node, s.Not):
            assert written == "!(B | C)"
        elif isinstance(node, s.Filter):
            assert written == "FILTER(?y > PREV(?y) && BOUND(?x))"
        elif isinstance(node, s.TriplePattern) and isinstance(node.object, s.Var):
            assert written == r"?x :\u0070 ?y"
        elif isinstance(node, s.Gpm):
            assert written.startswith("DEFINE GPM A")
            assert written.endswith("}")


def test_spans_do_not_count_in_comparison() -> None:
    assert parse_group("{?x ?p 1}") == parse_group("{  ?x\n ?p   1 . }")


# --- the compiled grammar


def test_it_works_without_a_place_for_its_cache(tmp_path: Path) -> None:
    """Where neither the package nor the home directory can be written: a file stands in the way."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = "from spaseq.language.reading.parser import parse_group as p; print(len(p('{?s ?p ?o}').elements))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"XDG_CACHE_HOME": str(blocked), "PYTHONPATH": os.environ["PYTHONPATH"], "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"


@pytest.mark.slow
def test_the_cache_is_used(tmp_path: Path) -> None:
    code = "from spaseq.language.reading.parser import parse_group; parse_group('{ }')"
    for _ in range(2):
        env = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": os.environ["PYTHONPATH"], "PYTHONSAFEPATH": "1"}
        subprocess.run([sys.executable, "-c", code], env=env, check=True)
    (cached,) = (tmp_path / "spaseq").iterdir()
    assert cached.stat().st_size > 10_000
