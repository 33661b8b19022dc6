"""Every kind of syntax error: its exact place, what was found and expected, the hint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.errors import QuerySyntaxError, SpaseqError
from spaseq.excerpts import bounded
from spaseq.language import prepare
from spaseq.language.reading.parser import parse, parse_group
from tests.language.marked import HEAD, asked, assert_points_at, place


def syntax_error(marked: str) -> QuerySyntaxError:
    """The error of a marked text, which points at the mark."""
    text, line, column = place(marked)
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text, "q.rq")
    assert_points_at(caught.value, text, line, column)
    return caught.value


def body(text: str) -> str:
    """A query whose only GPM has this pattern."""
    return asked(f"WHERE {{\n  SEQ(A)\n  DEFINE GPM A ON S {{ {text} }}\n}}\n")


def one(sequence: str) -> str:
    """A query with this sequence of a GPM A."""
    return asked(f"WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ }} }}\n")


# --- what was found, what was expected

UNEXPECTED = [
    (body("?x :p ?y ‸FILTR(?y > 3)"), "expected '}' or FILTER, found 'FILTR'", "did you mean FILTER?"),
    (body("‸OPTINAL { ?x :p ?y }"), "expected '}' or OPTIONAL, found 'OPTINAL'", "did you mean OPTIONAL?"),
    (body("?x ‸5 ?y"), "expected a predicate, found '5'", None),
    (body("?x :p ‸."), "expected an object, found '.'", None),
    (body("FILTER ‸?x > 5"), "expected a condition in parentheses, found '?x'", None),
    (body("FILTER(?x > ‸)"), "expected an expression, found ')'", None),
    (body("FILTER(?x ‸?y)"), "expected ')' or an operator, found '?y'", None),
    (body("FILTER(‸STRLN(?x) > 1)"), "expected an expression, found 'STRLN'", "did you mean STRLEN?"),
    (body("FILTER(?x =‸> 5)"), "expected an expression, found '>'", "write >= for =>"),
    (body("FILTER(?x =‸< 5)"), "expected an expression, found '<'", "write <= for =<"),
    (body("FILTER(?x =‸= 5)"), "expected an expression, found '='", "write = for =="),
    (body("FILTER(?x <‸> 5)"), "expected an expression, found '>'", "write != for <>"),
    (body("FILTER(?x ‸& ?y)"), "expected ')' or an operator, found '&'", "write && for &"),
    (body("FILTER(?x ‸| ?y)"), "expected ')' or an operator, found '|'", "write || for |"),
    (body("BIND(?x + 1 ‸?y)"), "expected an operator or AS, found '?y'", None),
    (body("VALUES ?x ‸(1 2)"), "expected '{', found '('", None),
    (body("GRAPH ‸{ ?x :p ?y }"), "expected an IRI or a variable, found '{'", None),
    (
        asked("WHERE { SEQ(A ‸B) DEFINE GPM A ON S {} }"),
        "expected ')' or an operator, found 'B'",
        "say how B follows: A ; B is the next B after A, A , B the event right after it, A : B any later one",
    ),
    (
        asked("WHERE { SEQ(A ‸-> B) DEFINE GPM A ON S {} }"),
        "expected ')' or an operator, found '-'",
        "write ; for ->: A ; B is the next B after A, A , B the event right after it, A : B any later one",
    ),
    (asked("WHERE { SEQ(A;‸) DEFINE GPM A ON S {} }"), "expected '(', '!', ALL or a name, found ')'", None),
    (
        asked("WHERE { SEQ(A‸[,] ; B) DEFINE GPM A ON S {} }"),
        "expected ')' or an operator, found '['",
        "[,] [;] [:] say how a Kleene goes on: they follow +, *, or {n,m}",
    ),
    (asked("WHERE { SEQ(A{‸x}) DEFINE GPM A ON S {} }"), "expected a whole number, found 'x'", None),
    (
        asked("WHERE { SEQ(A) ‸?x :p ?y }"),
        "expected DEFINE, found '?x'",
        "patterns stand in GPMs: DEFINE GPM A ON S { … }",
    ),
    (asked("WHERE { SEQ(A) DEFINE GPM A ‸{ } }"), "expected ON, found '{'", None),
    (asked("WHERE { SEQ(A) DEFINE ‸GMP A ON S { } }"), "expected GPM, found 'GMP'", "did you mean GPM?"),
    (asked("‸WHER { SEQ(A) DEFINE GPM A ON S { } }"), "expected WHERE, found 'WHER'", "did you mean WHERE?"),
    ("‸SELEC * WITHIN 5 SECONDS", "expected SELECT, found 'SELEC'", "did you mean SELECT?"),
    ("PREFIX ‸e <http://e/> ASK", "expected a prefix such as 'ex:', found 'e'", None),
    (
        "SELECT ?x ‸AS ?y WITHIN 5 SECONDS",
        "expected '(', a variable or WITHIN, found 'AS'",
        "an expression and its name stand in parentheses: (?a + ?b AS ?sum)",
    ),
    ("SELECT ‸WITHIN 5 SECONDS", "expected '(', '*', a variable, DISTINCT or REDUCED, found 'WITHIN'", None),
    (
        "SELECT *\n‸FROM STREAM S <urn:s>",
        "expected WITHIN, found 'FROM'",
        "a query says how long a match may take: WITHIN 10 SECONDS, before FROM STREAM",
    ),
    ("ASK WITHIN ‸ten SECONDS", "expected a number, found 'ten'", None),
    (
        "ASK WITHIN 5 ‸FROM STREAM S <urn:s>",
        "expected a unit such as SECONDS, found 'FROM'",
        "the units are MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS and EVENTS",
    ),
    (
        "ASK WITHIN 5 SECONDS\n‸WHERE { }",
        "expected FROM, PARTITION, SLIDING or TUMBLING, found 'WHERE'",
        "a query names its streams: FROM STREAM S <…>, before WHERE",
    ),
]


@pytest.mark.parametrize(("marked", "message", "hint"), UNEXPECTED)
def test_unexpected(marked: str, message: str, hint: str | None) -> None:
    problem = syntax_error(marked)
    assert problem.msg == message
    assert problem.hint == hint


AFTERWARDS = "follows the '}' of WHERE, before GROUP BY, ORDER BY and LIMIT"
NO_MEDIAN = "the aggregates are COUNT, SUM, AVG, MIN, MAX, FIRST, LAST, SAMPLE and GROUP_CONCAT"
IN_PARENTHESES = "an expression and its name stand in parentheses: (SUM(?v) AS ?name)"

#: What those write who know another language, and what it is called here.
HABITS = [
    (one("A ‸AND A"), "A & B match at the same time, ALL(A, B) in any order"),
    (one("A &‸& A"), "A & B match at the same time, ALL(A, B) in any order"),
    (one("A ‸or A"), "write A | B: the one or the other"),
    (one("A |‸| A"), "write A | B: the one or the other"),
    (
        one("PERMUTE‸(A, A)"),
        "write ALL(A, B): one match of each, in any order; (A , B) | (B , A) if nothing may stand between",
    ),
    (one("NOT ‸A"), "write !A: no such event"),
    (one("A ‸WITHN 5 SECONDS"), "did you mean WITHIN?"),
    (one("A{‸,2}"), "write {0,n}: from none to n"),
    (one("A WITHIN 5 ‸MIN"), "write MINUTES"),
    (one("A").replace("10 SECONDS", "10‸s"), "write SECONDS"),
    (
        one("A").replace("10 SECONDS", "10 ‸FORTNIGHTS"),
        "the units are MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS and EVENTS",
    ),
    (
        body("FILTER(?x > ‸NEXT(?x))"),
        "a filter looks back, never ahead: write it in the later GPM, PREV(?v) is the value before",
    ),
    (body("FILTER(?x > ‸MEDIAN(?x))"), NO_MEDIAN),
    (one("A").replace("*", "(‸median(?x) AS ?m)"), NO_MEDIAN),
    (one("A").replace("*", "‸SUM(?x) AS ?s"), IN_PARENTHESES),
    (one("A").replace("*", "?x ‸SUM(?y)"), IN_PARENTHESES),
    (body("FILTER(SUM ‸?x > 3)"), "write SUM(?v)"),
    (body("FILTER(‸A.price > 3)"), "variables stand alone: each GPM binds its own, as in FILTER(?price > 3)"),
    (one("A ‸AFTER MATCH SKIP TO A"), f"AFTER MATCH SKIP {AFTERWARDS}"),
    (asked("‸AFTER MATCH SKIP TO A { SEQ(A) DEFINE GPM A ON S {} }"), f"AFTER MATCH SKIP {AFTERWARDS}"),
    (one("A").replace(" }\n", " ‸AFTER MATCH SKIP TO A }"), f"AFTER MATCH SKIP {AFTERWARDS}"),
    (one("A") + "LIMIT 3 ‸AFTER MATCH SKIP TO A", f"AFTER MATCH SKIP {AFTERWARDS}"),
    (one("A") + "AFTER MATCH SKIP PAST LAST ‸ROW", "write EVENT for ROW"),
    (one("A") + "LIMIT 3 ‸EMIT MAX", f"EMIT {AFTERWARDS}"),
]


@pytest.mark.parametrize(("marked", "hint"), HABITS)
def test_habits_of_others(marked: str, hint: str) -> None:
    assert syntax_error(marked).hint == hint


def test_a_long_list_of_what_was_expected_is_cut() -> None:
    problem = syntax_error(body("?x :p ?y ‸?z"))
    assert problem.msg.endswith(", …, found '?z'")
    assert problem.msg.startswith("expected '}', '.', ';', ','")


# --- the end of the text


def test_the_end_of_the_query_is_after_its_last_character() -> None:
    problem = syntax_error(asked("WHERE { SEQ(A)\n  DEFINE GPM A ON S { ?x :p ?y }‸\n\n"))
    assert problem.msg == "expected '}', DEFINE or FILTER, found the end of the query"
    assert problem.hint == "the '{' at line 5, column 7 is not closed"


def test_the_innermost_open_bracket_is_named() -> None:
    problem = syntax_error(asked("WHERE { SEQ(A) DEFINE GPM A ON S { FILTER(?x > (?y‸"))
    assert problem.msg == "expected ')' or an operator, found the end of the query"
    assert problem.hint == "the '(' at line 5, column 48 is not closed"


def test_nothing_at_all() -> None:
    problem = syntax_error("‸")
    assert (
        problem.msg == "expected ASK, BASE, CONSTRUCT, PREFIX, REGISTER or SELECT, found the end of the query"
    )
    assert problem.hint is None


# --- tokens that begin well

BROKEN = [
    (body("?x :p ‸'a"), "this string is not closed", "a string of several lines stands between three quotes"),
    (
        body('?x :p ‸"a\n b"'),
        "this string is not closed",
        "a string of several lines stands between three quotes",
    ),
    (body('?x :p ‸"""a"'), "this string is not closed", None),
    (body(r"?x :p 'a‸\q'"), r"'\q' is not an escape in a string", r"write '\\' for a backslash"),
    (body("?x ‸<http://a b> ?y"), "this IRI is not closed by '>'", None),
    (body("?x <http://a‸{b}> ?y"), "an IRI cannot have '{' in it", None),
    (body(r"?x :p '‸\uD800'"), r"\uD800 is not a character", None),
    (body(r"?x :p '‸\U00110000'"), r"\U00110000 is not a character", None),
    (
        body("?x ‸<p> ?y"),
        "<p> is relative, and the query has no BASE",
        "write the whole IRI, or say BASE <…> before the query",
    ),
    (
        body("?x ‸xsd:p ?y"),
        "the prefix 'xsd:' is not declared",
        "add PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>",
    ),
    (body("?x ‸nix:p ?y"), "the prefix 'nix:' is not declared", "add PREFIX nix: <…> before the query"),
]


@pytest.mark.parametrize(("marked", "message", "hint"), BROKEN)
def test_broken_tokens(marked: str, message: str, hint: str | None) -> None:
    problem = syntax_error(marked)
    assert problem.msg == message
    assert problem.hint == hint


def test_a_misspelt_prefix() -> None:
    problem = syntax_error(
        "PREFIX stock: <urn:s#> ASK WITHIN 1 HOUR FROM STREAM S ‸stok:s { SEQ(A) DEFINE GPM A ON S {} }"
    )
    assert problem.msg == "the prefix 'stok:' is not declared"
    assert problem.hint == "did you mean 'stock:'?"


def test_a_language_tag_that_is_none() -> None:
    assert "is not a language tag" in syntax_error(body("?x :p 'a'‸@en-abcdefghij")).msg


# --- what the grammar lets pass and the tree cannot hold

MISBUILT = [
    (body("FILTER(‸STRLEN(?x, 2) > 3)"), "STRLEN takes one argument, not 2"),
    (body("FILTER(‸NOW(1) > 3)"), "NOW takes no argument, not 1"),
    (body("FILTER(‸if(?x, 2) > 3)"), "IF takes 3 arguments, not 2"),
    (body("FILTER(‸REGEX(?x))"), "REGEX takes 2 to 3 arguments, not 1"),
    (body("FILTER(‸BOUND(3))"), "BOUND takes a variable, nothing else"),
    (body("VALUES (?a ?b) { (1 2) ‸(3) }"), "a row needs a value for each of 2 variables, not 1"),
    (
        HEAD.replace("SELECT *", "CONSTRUCT { ‸?x :p/:q 5 }") + "{ SEQ(A) DEFINE GPM A ON S {} }",
        "a template cannot have a property path: which triples would it build?",
    ),
    (body("FILTER(?x > PREV(?x, ‸0))"), "PREV looks back: at least 1"),
    (body("FILTER(?x > PREV(MAX(?x), ‸2))"), "PREV of an aggregate takes no number"),
    (body("FILTER(?x > SUM(?x, ‸2))"), "SUM takes no number"),
    (body("FILTER(?x > FIRST(?x, ‸9223372036854775808))"), "9223372036854775808 is beyond 64 bits"),
    (one("A{‸99999999999999999999}"), "99999999999999999999 is beyond 64 bits"),
    (one("A{1,‸99999999999999999999}"), "99999999999999999999 is beyond 64 bits"),
    (one(f"A{{‸{'9' * 5000}}}"), f"{'9' * 5000} is beyond 64 bits"),
    (one("A WITHIN ‸9223372036854.775808 SECONDS"), "9223372036854.775808 SECONDS is beyond 64 bits"),
    (one("A WITHIN ‸5 EVENTS"), "WITHIN … EVENTS on an element"),
    (one("A") + "LIMIT ‸9223372036854775808", "9223372036854775808 is beyond 64 bits"),
    (one("A").replace("10", "‸99999999999999999999"), "99999999999999999999 SECONDS is beyond 64 bits"),
    (one("A").replace("10 SECONDS", "‸1.5 EVENTS"), "1.5 EVENTS: events are counted in whole numbers"),
    (one("A") + "EMIT ALL CONSUME ANY ‸EMIT NEXT", "a second EMIT"),
    (one("A") + "AFTER MATCH SKIP TO A ‸AFTER MATCH SKIP TO A", "a second AFTER MATCH SKIP"),
    (
        one("A") + "EMIT ALL ‸AFTER MATCH SKIP PAST LAST EVENT",
        "AFTER MATCH SKIP stands without EMIT and CONSUME",
    ),
    (
        one("A") + "AFTER MATCH SKIP PAST LAST EVENT ‸CONSUME ANY",
        "AFTER MATCH SKIP stands without EMIT and CONSUME",
    ),
    (asked("‸WHERE { DEFINE GPM A ON S { } }"), "this WHERE has no SEQ"),
    (asked("‸{ DEFINE GPM A ON S { } }"), "this WHERE has no SEQ"),
    (asked("WHERE SEQ(A) { ‸SEQ(A) DEFINE GPM A ON S { } }"), "a second SEQ: a query has exactly one"),
]


@pytest.mark.parametrize(("marked", "message"), MISBUILT)
def test_what_cannot_be_built(marked: str, message: str) -> None:
    assert syntax_error(marked).msg == bounded(message)


def test_a_second_seq_in_the_braces() -> None:
    problem = syntax_error(asked("WHERE { SEQ(A) ‸SEQ(A) DEFINE GPM A ON S { } }"))
    assert problem.hint == "a query has exactly one SEQ, directly before or after the '{' of WHERE"


# --- rules of SPARQL that are no grammar

RULES = [
    (body("?x :p _:b OPTIONAL { ?x :q ‸_:b }"), "_:b stands for another blank node already"),
    (body("?x :p ?y BIND(1 AS ‸?y)"), "?y has a value already before this BIND"),
    (body("{ SELECT (1 AS ‸?y) { ?x :p ?y } }"), "?y is defined already"),
    (body("{ SELECT (1 AS ‸?z) { ?x :p ?y } VALUES ?z { 1 } }"), "?z is defined already"),
    (body("{ SELECT (1 AS ?z) (2 AS ‸?z) { ?x :p ?y } }"), "?z is defined already"),
    (body("{ SELECT ‸?x (COUNT(?y) AS ?n) { ?x :p ?y } }"), "?x is neither grouped nor aggregated"),
    (body("{ SELECT (?x + ‸?y AS ?n) { ?x :p ?y } GROUP BY ?x }"), "?y is neither grouped nor aggregated"),
    (body("{ SELECT ?x ‸?x { ?x :p ?y } }"), "?x is selected twice"),
    (body("{ ‸SELECT * { ?x :p ?y } GROUP BY ?x }"), "SELECT * cannot be grouped"),
    (body("{ SELECT (SUM(‸COUNT(?x)) AS ?n) { ?x :p ?y } }"), "COUNT inside SUM: aggregates do not nest"),
    (body("FILTER(SUM(‸PREV(MAX(?x))) > 1)"), "PREV(MAX(…)) inside SUM: aggregates do not nest"),
    (body("FILTER(PREV(SUM(‸MAX(?x))) > 1)"), "MAX inside SUM: aggregates do not nest"),
    (body("BIND(‸COUNT(?x) AS ?n)"), "COUNT cannot stand here: there are no groups"),
    (body("OPTIONAL { FILTER(‸MAX(?x) > 1) }"), "MAX cannot stand here: there are no groups"),
    (body("FILTER EXISTS { ?x :p ?y BIND(1 AS ‸?y) }"), "?y has a value already before this BIND"),
]


@pytest.mark.parametrize(("marked", "message"), RULES)
def test_rules(marked: str, message: str) -> None:
    text, line, column = place(marked)
    parse(text)
    with pytest.raises(QuerySyntaxError) as caught:
        prepare(text)
    assert caught.value.msg == message
    assert_points_at(caught.value, text, line, column)


ALLOWED = [
    body("?x :p _:b FILTER(?x != 1) _:b :q ?y"),
    body("FILTER(?y > 1) BIND(1 AS ?y)"),
    body("{ SELECT ?x (COUNT(?y) AS ?n) (?n + 1 AS ?m) { ?x :p ?y } GROUP BY ?x }"),
    body("{ SELECT (MAX(?x) AS ?n) { ?x :p ?y } GROUP BY (STR(?y) AS ?z) HAVING (COUNT(*) > 1) }"),
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_the_rules_allow(text: str) -> None:
    assert prepare(text).warnings == ()


# --- the error itself


def test_it_is_pythons_syntax_error_too() -> None:
    problem = syntax_error(body("?x :p ?y ‸FILTR(?y > 3)"))
    assert isinstance(problem, SyntaxError)
    assert isinstance(problem, SpaseqError)
    assert (problem.filename, problem.lineno, problem.offset) == ("q.rq", 7, 32)
    assert problem.text == "  DEFINE GPM A ON S { ?x :p ?y FILTR(?y > 3) }"
    assert str(problem) == (
        "q.rq:7:32: expected '}' or FILTER, found 'FILTR'\n"
        "      DEFINE GPM A ON S { ?x :p ?y FILTR(?y > 3) }\n"
        "                                   ^\n"
        "hint: did you mean FILTER?"
    )


def test_places_count_characters_of_the_text_as_written() -> None:
    """Codepoint escapes, tabs, and letters beyond ASCII before the place do not move it."""
    syntax_error(body("\t?\\u0078 :p '\\U0001F600é' ‸FILTR(?y > 3)"))
    syntax_error(asked("WHERE {\r\n  SEQ(A ‸B)\r\n DEFINE GPM A ON S {} }"))


def test_groups_say_where_too() -> None:
    with pytest.raises(QuerySyntaxError, match="expected a predicate") as caught:
        parse_group("{ ?x\n  5 ?y }")
    assert (caught.value.lineno, caught.value.offset) == (2, 3)


@pytest.mark.parametrize("inner", ["{" * 2000 + "}" * 2000, "FILTER(" + " || ".join(["?x"] * 5000) + ")"])
def test_nesting_has_an_end(inner: str) -> None:
    with pytest.raises(QuerySyntaxError, match=r"nested (too|more than 100)") as caught:
        prepare(body(inner))
    assert len(str(caught.value)) < 500, "only the part of a long line that the caret stands in"


def test_long_queries_are_not_deep() -> None:
    """A hundred alternatives, a thousand triples, a long list: all well within it."""
    filters = " || ".join(f"?x = {i}" for i in range(100))
    many = " . ".join(f"?x :p {i}" for i in range(1000))
    assert prepare(body(f"{many} FILTER({filters}) FILTER(?x IN ({', '.join('1' * 1000)}))")).warnings == ()


@pytest.mark.parametrize(
    "ask", [spaseq.explain, lambda q: spaseq.Engine().register(q), lambda q: spaseq.run(q, {})]
)
def test_what_is_no_query(ask: Callable[[Any], object]) -> None:
    for query in [None, Path("trades.rq"), b"SELECT"]:
        with pytest.raises(TypeError, match=f"not {type(query).__name__}$"):
            ask(query)
    with pytest.raises(spaseq.QuerySyntaxError, match="did you mean SELECT"):
        ask("SELEC")
