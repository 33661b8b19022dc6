"""Every static check (semantics, section 8): what it refuses, exactly where, and what it lets pass."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from spaseq.errors import QueryMeaningError, SpaseqWarning
from spaseq.language import checked, prepare
from tests.language.marked import HEAD, MARK, asked, assert_points_at, place


def meaning_error(marked: str) -> QueryMeaningError:
    """The error of a marked text, which points at the mark."""
    text, line, column = place(marked)
    with pytest.raises(QueryMeaningError) as caught:
        prepare(text, "q.rq")
    assert_points_at(caught.value, text, line, column)
    return caught.value


def warning(marked: str) -> str:
    """The one warning of a marked text, without its place, which is the mark's."""
    text, line, column = place(marked)
    (found,) = checked(text, "q.rq").warnings
    start = f"q.rq:{line}:{column}: "
    assert found.startswith(start)
    return found.removeprefix(start)


def clean(text: str) -> None:
    assert prepare(text).warnings == ()


def seq(text: str, names: Iterable[str] = "ABCD") -> str:
    """A query with this SEQ; GPM A binds ?a, and so on."""
    gpms = "\n".join(f"  DEFINE GPM {n} ON S {{ ?{n.lower()} :p ?v{n.lower()} }}" for n in names)
    return asked(f"WHERE {{\n  SEQ({text})\n{gpms}\n}}\n")


def gpms(sequence: str, end: str = "", head: str = HEAD, **patterns: str) -> str:
    """A query with these GPMs; ``end`` follows them in WHERE."""
    lines = "\n".join(f"  DEFINE GPM {name} ON S {pattern}" for name, pattern in patterns.items())
    return asked(f"WHERE {{\n  SEQ({sequence})\n{lines}\n  {end}\n}}\n", head)


def select(what: str) -> str:
    return HEAD.replace("SELECT *", what)


# --- declarations


def test_an_undeclared_stream() -> None:
    text = "ASK WITHIN 5 HOURS FROM STREAM Trades <urn:s> { SEQ(A) DEFINE GPM A ON Trades, ‸Trade { } }"
    problem = meaning_error(text)
    assert problem.msg == "no stream is called Trade"
    assert problem.hint == "did you mean Trades?"


def test_an_undeclared_stream_like_no_other() -> None:
    problem = meaning_error(asked("WHERE { SEQ(S2) DEFINE GPM S2 ON ‸S2 { } }"))
    assert problem.msg == "no stream is called S2"


def test_a_second_stream_of_a_name() -> None:
    text = "ASK WITHIN 1 DAY FROM STREAM S <urn:s> FROM STREAM ‸S <urn:t> { SEQ(A) DEFINE GPM A ON S { } }"
    assert meaning_error(text).msg == "a second stream called S"


def test_a_second_gpm_of_a_name() -> None:
    problem = meaning_error(asked("WHERE { SEQ(A) DEFINE GPM A ON S { } DEFINE GPM ‸A ON S { } }"))
    assert problem.msg == "a second GPM called A"


def test_an_unknown_gpm() -> None:
    problem = meaning_error(gpms("Rise ; ‸Fal", Rise="{ ?x :p ?y }", Fall="{ ?x :q ?z }"))
    assert problem.msg == "no GPM is called Fal"
    assert problem.hint == "did you mean Fall?"
    assert meaning_error(seq("A ; ‸Zebra")).hint == "the query defines A, B, C, D"


def test_an_unused_gpm() -> None:
    assert warning(asked("WHERE { SEQ(A) DEFINE GPM A ON S { } DEFINE GPM ‸B ON S { } }")) == (
        "GPM B is never used in SEQ"
    )


def test_a_window_of_nothing() -> None:
    text = "ASK ‸WITHIN 0 SECONDS FROM STREAM S <urn:s> { SEQ(A) DEFINE GPM A ON S { } }"
    assert meaning_error(text).msg == "a window of size 0 holds no match"


def test_a_stream_of_rows() -> None:
    text = "‸REGISTER STREAM <urn:o> AS " + asked(
        "{ SEQ(A) DEFINE GPM A ON S { } }", head=HEAD.split("\n", 1)[1]
    )
    problem = meaning_error(text)
    assert problem.msg == "a stream consists of graphs: REGISTER STREAM needs CONSTRUCT"
    clean(text.replace(MARK, "").replace("STREAM <urn:o>", "QUERY <urn:o>"))
    clean(text.replace(MARK, "").replace("SELECT *", "CONSTRUCT { <urn:a> <urn:b> 1 }"))


# --- SEQ

EMPTY = ["‸A*", "‸!A", "‸A?", "‸A* ; !B", "A | ‸B?", "A | (B | ‸!C)", "‸A{0,3}", "(A ; B) | ‸(C? ; !D)"]


@pytest.mark.parametrize("sequence", EMPTY)
def test_a_sequence_that_matches_nothing(sequence: str) -> None:
    problem = meaning_error(seq(sequence.replace("‸(", "(‸")))
    assert problem.msg == "this sequence also matches where no event does"


REFUSED = [
    ("A ; ‸!(!B)", "a negation inside a negation"),
    ("A ; !B! ; C", "a negation inside a negation"),
    ("A ; (B & ‸!C)", "'&' cannot have a negation in it"),
    ("‸A ; B & C", "'&' joins GPMs, not sequences"),
    ("A ; (B & ‸C+)", "'&' joins GPMs that match at the same time"),
    ("A ; (B & (C | ‸D*))", "'&' joins GPMs that match at the same time"),
    ("A ; ‸B{3,2}", "at least 3 and at most 2 times"),
    ("A ; ‸B{0}", "at most 0 times is never"),
    ("A ; ‸B{0,0}", "at most 0 times is never"),
    ("A ; ‸(B?)+", "a repetition of what can match nothing"),
    ("A ; ‸(!B){2}", "a repetition of what can match nothing"),
    ("A ; (‸B? ; C?) ; D", "this group can match nothing"),
    ("A ; (B | ‸C?) ; D", "this group can match nothing"),
    ("A ; (B | ‸!C)? ; D", "this group can match nothing"),
    ("ALL(A, ‸B?)", "an operand of ALL must match an event"),
    ("ALL(A, ‸!B)", "an operand of ALL must match an event"),
]


RELUCTANT = "reluctance without AFTER MATCH SKIP: all matches are found anyway"
REFUSED += [(f"A ; ‸B{sign}", RELUCTANT) for sign in ("+?", "*?", "??", "{2,3}?", "{2}?")]


@pytest.mark.parametrize(("sequence", "message"), REFUSED)
def test_sequences_that_cannot_be(sequence: str, message: str) -> None:
    marked = sequence.replace("‸!(!B)", "!(‸!B)").replace("!B!", "‸!B!")
    assert meaning_error(seq(marked)).msg == message


SOUND = [
    "A ; B? ; C*",
    "A ; !B ; C",
    "A ; (B & (C | D))",
    "A ; !(B | C) ; D",
    "ALL(A ; !B ; C, D+)",
    "(A ; (B , C)+){2,} | D",
    "A ; !B , C",
    "(A?)? ; B",
    "A ; A+",
]


@pytest.mark.parametrize("sequence", SOUND)
def test_sequences_that_can_be(sequence: str) -> None:
    assert all("never used" in text for text in checked(seq(sequence)).warnings)


def test_reluctance_says_something_with_skip() -> None:
    clean(seq("A ; B+?", "AB") + "AFTER MATCH SKIP PAST LAST EVENT")


def test_a_match_skips_to_what_it_takes() -> None:
    problem = meaning_error(seq("Left ; !B", ["Left", "B"]) + "AFTER MATCH SKIP TO FIRST ‸Loft")
    assert (problem.msg, problem.hint) == ("no match skips to Loft: SEQ never takes it", "did you mean Left?")
    problem = meaning_error(seq("A ; !B ; C", "ABC") + "AFTER MATCH SKIP TO ‸B")
    assert problem.hint == "a match chooses A, C"
    clean(seq("A ; !B ; C", "ABC") + "AFTER MATCH SKIP TO LAST C")


@pytest.mark.parametrize(
    "sequence",
    [
        "‸!A ; B",
        "A ; ‸!B",
        "A ; C? ; ‸!B",
        "(‸!A ; B) | C",
        "(A ; ‸!B)+",
        "A ; ‸!B WITHIN 2 DAYS",
        "ALL(A ; ‸!B, C)",
    ],
)
def test_a_negation_at_an_end_of_a_tumbling_window(sequence: str) -> None:
    text = seq(sequence, [n for n in "ABC" if n in sequence])
    assert "TUMBLING windows begin and end anywhere" in warning(text)
    clean(text.replace(MARK, "").replace("10 SECONDS", "10 SECONDS SLIDING"))


def test_warnings_are_raised_too() -> None:
    text = seq("!A ; B", "AB")
    with pytest.warns(SpaseqWarning, match=r"^q.rq:6:7: !A looks as far"):
        query = prepare(text, "q.rq")
    assert query.warnings == checked(text, "q.rq").warnings


def test_a_vacuous_negation() -> None:
    assert warning(seq("A , ‸!B , C", "ABC")).startswith("this negation says nothing: between two ','")


def test_a_negated_sequence() -> None:
    """No event is relevant for a sequence as such: semantics, section 4, speaks of one event."""
    assert warning(seq("A ; !(‸B ; C) ; D", "ABCD")).startswith("an event for any one GPM")
    clean(seq("A ; !B+ ; C", "ABC"))


# --- variables that nobody binds

AB = {"A": "{ ?id :p ?price }", "B": "{ ?id2 :p ?price2 }"}

UNBOUND = [
    (
        gpms("A ; B", A=AB["A"], B="{ ?id2 :p ?q FILTER(?id2 = ‸?id1) }"),
        "no GPM binds ?id1",
        "did you mean ?id?",
    ),
    (gpms("A ; B", "FILTER(?price > ‸?prise)", **AB), "no GPM binds ?prise", "did you mean ?price?"),
    (gpms("A ; B", **AB, head=select("SELECT ?id ‸?zzz")), "no GPM binds ?zzz", None),
    (
        gpms("A ; B", **AB, head=select("SELECT (?id + ‸?prices AS ?x)")),
        "no GPM binds ?prices",
        "did you mean ?price?",
    ),
    (
        gpms("A ; B", **AB, head=select("CONSTRUCT { ?id :p ‸?prce }")),
        "no GPM binds ?prce",
        "did you mean ?price?",
    ),
    (gpms("A ; B", **AB) + "ORDER BY ?id DESC(‸?prce)", "no GPM binds ?prce", "did you mean ?price?"),
    (gpms("A ; B", **AB, head=HEAD.replace("FROM", "PARTITION BY ‸?card FROM")), "no GPM binds ?card", None),
    (gpms("A", A="{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z > ‸?w) } }"), "no GPM binds ?w", None),
    (gpms("A", A="{ ?x :p ?y BIND(‸?w + 1 AS ?u) }"), "no GPM binds ?w", None),
    (gpms("A", A="{ ?x :p ?y { SELECT ?x { ?x :p ?z FILTER(‸?w = 1) } } }"), "no GPM binds ?w", None),
    (gpms("A", A="{ ?x :p ?y { SELECT ?x ‸?w { ?x :p ?z } } }"), "this subquery does not bind ?w", None),
    (gpms("A", A="{ ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER(?z > ‸?w) } }"), "no GPM binds ?w", None),
    (gpms("A ; B", A=AB["A"], B="{ ?id2 :p ?q FILTER(?q > PREV(‸?w)) }"), "no GPM binds ?w", None),
    (
        gpms("A", A=AB["A"], B=AB["B"], head=select("SELECT ‸?id2")),
        "?id2 is bound only by B, which SEQ does not use",
        "use B in SEQ",
    ),
]


@pytest.mark.parametrize(("marked", "message", "hint"), UNBOUND)
def test_unbound_variables(marked: str, message: str, hint: str | None) -> None:
    problem = meaning_error(marked)
    assert (problem.msg, problem.hint) == (message, hint)


NEGATED = [
    gpms("A ; !B", **AB, head=select("SELECT ?id ‸?price2")),
    gpms("A ; !B", **AB, head=select("CONSTRUCT { ?id :p ‸?price2 }")),
    gpms("A ; !B", "FILTER(‸?price2 > 1)", **AB),
    gpms("A ; !B ; C", **AB, C="{ ?c :p ?pc FILTER(?pc > ‸?price2) }"),
    gpms("A ; !B", **AB) + "GROUP BY ‸?price2",
]


@pytest.mark.parametrize("marked", NEGATED)
def test_variables_of_a_negation(marked: str) -> None:
    assert meaning_error(marked.replace("SELECT *", "ASK")).msg == (
        "?price2 is bound only inside a negation, by B"
    )


BOUND = [
    gpms("A ; B", A=AB["A"], B="{ ?id2 :p ?q FILTER(?q > ?price) }"),
    gpms("A ; !B ; A", A=AB["A"], B="{ ?id2 :p ?q FILTER(?q > ?price) }"),
    gpms("A", A="{ ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER(?z > ?y) } }"),
    gpms(
        "A ; B",
        A=AB["A"],
        B="AT ?t AS ?g { ?id :p ?q FILTER(?t > 5 && ?g != :g) }",
        head=select("SELECT ?t ?g"),
    ),
    gpms("A", A=AB["A"], head=select("SELECT (?price * 2 AS ?twice) (?twice + 1 AS ?more)"))
    + "ORDER BY ?more",
    gpms("A", A="{ ?x :p ?y { SELECT ?x (COUNT(?z) AS ?n) { ?x :q ?z } GROUP BY ?x HAVING (?n > 1) } }"),
    gpms("A", A="{ ?x :p ?y { SELECT ?x { ?x :q ?z } ORDER BY ?z LIMIT 1 } }"),
    gpms("A", A=AB["A"], head=select("SELECT ?d")) + "GROUP BY (STR(?price) AS ?d)",
    gpms("A", "FILTER EXISTS { GRAPH :kb { ?id :q ?any } }", A=AB["A"]),
    gpms("A", A=AB["A"], head=select("ASK")) + "ORDER BY ?price LIMIT 1",
]


@pytest.mark.parametrize("text", BOUND)
def test_bound_variables(text: str) -> None:
    clean(text)


def test_exists_needs_an_event() -> None:
    problem = meaning_error(gpms("A", "FILTER ‸EXISTS { ?id :q ?any }", A=AB["A"]))
    assert problem.msg == "EXISTS has no event to look into here"


def test_an_inner_filter_does_not_see_other_gpms() -> None:
    marked = gpms("A ; B", A=AB["A"], B="{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z > ‸?price) } }")
    assert warning(marked).startswith("?price is never bound here")


@pytest.mark.parametrize(
    "pattern",
    [
        "{ ‸SERVICE <urn:s> { ?x :p ?y } }",
        "{ { } UNION { ‸SERVICE SILENT ?x { } } }",
        "{ FILTER NOT EXISTS { ‸SERVICE <urn:s> { } } }",
        "{ { SELECT * { ‸SERVICE <urn:s> { } } } }",
    ],
)
def test_service(pattern: str) -> None:
    assert meaning_error(gpms("A", A=pattern)).msg == "SERVICE would reach the network"


A_, C_ = "{ ?a :p ?x }", "{ ?c :p ?z }"
NEVER = [
    (gpms("A ; B", A="{ ?a :p ?x FILTER(‸?y > ?x) }", B="{ ?b :p ?y }"), "?y is bound only after A, by B"),
    (gpms("A ; B ; C", A=A_, B="{ ?b :p ?y FILTER(?y - ‸?z > 0) }", C=C_), "?z is bound only after B, by C"),
    (
        gpms("A ; !B ; A ; C", A=A_, B="{ ?b :p ?y FILTER(?y < ‸?z) }", C=C_),
        "?z is bound only after what follows !B",
    ),
    (gpms("(A ; B)+", A="{ ?a :p ?x FILTER(?x > ‸?y) }", B="{ ?b :p ?y }"), "?y is bound only after A, by B"),
]


@pytest.mark.parametrize(("marked", "start"), NEVER)
def test_a_filter_that_never_holds(marked: str, start: str) -> None:
    assert warning(marked).startswith(start)


SOMETIMES = [
    gpms("ALL(A, B)", A="{ ?a :p ?x FILTER(?y > ?x) }", B="{ ?b :p ?y }"),
    gpms("A & B", A="{ ?a :p ?x FILTER(?y > ?x) }", B="{ ?b :p ?y }"),
    gpms("A ; B ; A", A="{ ?a :p ?x FILTER(?y > ?x) }", B="{ ?b :p ?y }"),
    gpms("(A ; B)+ ; C", A="{ ?a :p ?x FILTER(?y > ?x) }", B="{ ?b :p ?y }", C="{ ?c :p ?y }"),
    gpms("A ; !B ; C", A=A_, B="{ ?b :p ?y FILTER(?y < ?z) }", C=C_),
    gpms("A ; B", A="{ ?a :p ?x FILTER(!BOUND(?y) || ?y > ?x) }", B="{ ?b :p ?y }"),
    gpms("A ; B", A="{ ?a :p ?x FILTER(COALESCE(?y, 0) < ?x) }", B="{ ?b :p ?y }"),
    gpms("A ; B", A="{ ?a :p ?x FILTER(?x > 3 || ?y > 3) }", B="{ ?b :p ?y }"),
]


@pytest.mark.parametrize("text", SOMETIMES)
def test_filters_that_may_hold(text: str) -> None:
    clean(text)


# --- PARTITION BY, AT, AS

PARTITIONED = HEAD.replace("FROM", "PARTITION BY ?k FROM")


@pytest.mark.parametrize(
    ("pattern", "how"),
    [
        ("{ ?x :p ?y }", "does not bind"),
        ("{ ?x :p ?y OPTIONAL { ?x :k ?k } }", "does not always bind"),
        ("{ { ?x :k ?k } UNION { ?x :p ?y } }", "does not always bind"),
        ("{ ?x :p ?y BIND(?y + 1 AS ?k) }", "does not always bind"),
        ("{ ?x :p ?y VALUES ?k { 1 UNDEF } }", "does not always bind"),
    ],
)
def test_a_partition_that_an_event_may_not_have(pattern: str, how: str) -> None:
    text = gpms("A ; B?", A="{ ?a :k ?k }", B=pattern, head=PARTITIONED)
    problem = meaning_error(text.replace("GPM B", "GPM ‸B"))
    assert problem.msg == f"GPM B {how} the partition variable ?k"


def test_a_partition_that_every_event_has() -> None:
    clean(
        gpms(
            "A ; !B ; C",
            A="{ ?a :k ?k }",
            B="{ ?b :p ?v }",
            C="{ { ?c :k ?k } UNION { ?k :c ?c } }",
            head=PARTITIONED,
        )
    )


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("AT ‸?t { ?x :p ?t }", "AT ?t, and the pattern binds ?t too"),
        ("AS ‸?g { ?g :p ?t }", "AS ?g, and the pattern binds ?g too"),
        ("AT ?t AS ‸?t { }", "AS ?t, and the pattern binds ?t too"),
    ],
)
def test_a_time_that_is_bound_twice(pattern: str, message: str) -> None:
    assert meaning_error(gpms("A", A=pattern)).msg == message


# --- group variables

A = "{ ?x :p ?p1 }"
B = "{ ?y :p ?p2 }"

GROUP_ERRORS = [
    (gpms("A ; B+", A="{ ?x :p ?p1 FILTER(?p1 > PREV(‸?p1)) }", B=B), "?p1 is not a group variable"),
    (gpms("A ; B?", A=A, B="{ ?y :p ?p2 FILTER(?p2 > PREV(‸?p2)) }"), "?p2 is not a group variable"),
    (
        gpms("A ; B+", A="{ ?x :p ?p2 }", B="{ ?y :p ?p2 FILTER(PREV(‸?p2) > 1) }"),
        "?p2 is not a group variable",
    ),
    (gpms("B+ ; A", A="{ ?x :p ?p1 FILTER(?p1 > ‸PREV(?p2)) }", B=B), "PREV outside of B+"),
    (gpms("A ; B+", "FILTER(‸PREV(?p2) > 1)", A=A, B=B), "PREV cannot stand here"),
    (gpms("A ; B+", A=A, B=B, head=select("SELECT (‸PREV(?p2) AS ?v)")), "PREV cannot stand here"),
    (gpms("A ; B+", A=A, B="{ ?y :p ?p2 OPTIONAL { FILTER(‸PREV(?p2) > 1) } }"), "PREV cannot stand here"),
    (gpms("A ; B+", A=A, B="{ ?y :p ?p2 BIND(‸PREV(?p2) AS ?v) }"), "PREV cannot stand here"),
    (gpms("A ; B+", A=A, B="{ ?y :p ?p2 FILTER(‸COUNT(*) < 9) }"), "COUNT is not of a group variable"),
    (gpms("A", A="{ { SELECT (‸LAST(?p1) AS ?l) { ?x :p ?p1 } } }"), "LAST in a subquery"),
    (gpms("A ; B+", A=A, B="{ ?y :p ?p2 FILTER(MAX(?p2 - PREV(‸?p1)) > 1) }"), "?p1 is not a group variable"),
    (gpms("A ; B+", A=A, B="{ ?y :p ?p2 FILTER(‸PREV(MAX(?p1)) > 1) }"), "MAX is not of a group variable"),
    (gpms("B+ ; A", A="{ ?x :p ?p1 FILTER(‸PREV(MAX(?p2)) > 1) }", B=B), "PREV outside of B+"),
    (gpms("A ; B+", "FILTER(‸PREV(MAX(?p2)) > 1)", A=A, B=B), "PREV cannot stand here"),
    (gpms("A ; B+", A=A, B=B, head=select("SELECT (‸PREV(MAX(?p2)) AS ?v)")), "PREV cannot stand here"),
    (
        gpms("B+", B="{ ?y :p ?p2 { SELECT (‸PREV(MAX(?p3)) AS ?m) { ?y :q ?p3 } } }"),
        "PREV cannot stand here",
    ),
    (
        gpms("A+ ; B+", A=A, B="{ ?y :p ?p2 FILTER(‸SUM(?p1 * ?p2) > 1) }"),
        "?p1 and ?p2 are bound by different loops, in one SUM",
    ),
    (
        gpms("(A ; B+)+", A=A, B=B, head=select("SELECT (‸SUM(?p2 - PREV(?p1)) AS ?v)")),
        "?p1 and ?p2 are bound by different loops, in one SUM",
    ),
    (
        gpms("A ; B+", A=A, B="{ ?y :p ?p2 FILTER(COUNT(‸EXISTS { ?y :q ?p2 }) > 1) }"),
        "EXISTS inside COUNT",
    ),
    (
        gpms(
            "A ; B+",
            A=A,
            B=B,
            head=select("SELECT (SUM(IF(‸EXISTS { GRAPH :g { ?y :q ?p2 } }, 1, 0)) AS ?n)"),
        ),
        "EXISTS inside SUM",
    ),
    (
        gpms("A ; B+", A=A, B=B, head=select("SELECT ?p1 ‸?p2 (COUNT(?y) AS ?n)")),
        "?p2 has one value per iteration, and the match is one row",
    ),
]


@pytest.mark.parametrize(("marked", "message"), GROUP_ERRORS)
def test_group_variables_misused(marked: str, message: str) -> None:
    assert meaning_error(marked).msg == message


GROUP_USES = [
    gpms("A ; B", A=A, B="{ ?y :p ?p2 FILTER(?p2 > MAX(?p1)) }"),
    gpms("A ; B", "FILTER(SUM(?p1) > 3)", A=A, B=B),
    gpms(
        "(A ; B)+",
        A="{ ?x :k ?k ; :p ?p1 FILTER(?p1 > PREV(?p1, 2)) }",
        B="{ ?y :k ?k FILTER(?k > PREV(?k)) }",
    ),
    gpms("A ; B+", A=A, B="{ ?y :p ?p2 FILTER(?p2 > PREV(MAX(?p2)) && SUM(?p2 - PREV(?p2)) < 9) }"),
    gpms(
        "B+ ; A",
        "FILTER(MAX(?p2 - PREV(?p2)) > 1)",
        A="{ ?x :p ?p1 FILTER(SUM(?p2 - PREV(?p2)) > ?p1) }",
        B=B,
    ),
    gpms("A ; B+", A=A, B=B, head=select("SELECT (SUM(?p2 - PREV(?p2, 2)) AS ?far)")),
    gpms("(A+ , C) | (B+ , C)", A=A, B="{ ?y :p ?p1 }", C="{ ?z :p ?p3 FILTER(SUM(?p1) > ?p3) }"),
    gpms("(A ; B+) | B", A=A, B="{ ?y :p ?p2 FILTER(?p2 > PREV(?p2)) }"),
    gpms("A ; B+", A=A, B="{ ?y :p ?p2 FILTER(?p2 > PREV(?p2) && ?p2 < ?p1) }"),
    gpms("A ; B+", A=A, B="{ ?y :p ?p2 FILTER(?p2 <= AVG(?p2)) FILTER(COUNT(?p2) < 9) }"),
    gpms("B{2,} ; A", A="{ ?x :p ?p1 FILTER(?p1 > MAX(?p2)) }", B=B),
    gpms("A ; B*", "FILTER(LAST(?p2) > ?p1)", A=A, B=B),
    gpms("A ; (B ; C)+", A=A, B=B, C="{ ?z :p ?p3 FILTER(?p3 > ?p2) FILTER(?p3 > PREV(?p2)) }"),
    gpms("A ; (B | C)+", A=A, B=B, C="{ ?z :p ?p3 FILTER(?p3 > PREV(?p2)) }"),
    gpms("A ; (B ; C+)+", A=A, B=B, C="{ ?z :p ?p3 FILTER(?p3 > PREV(?p3)) FILTER(?p3 > SUM(?p3 * ?p1)) }"),
    gpms("A ; B+", A=A, B=B, head=select("SELECT ?p1 (COUNT(?y) AS ?n) (MAX(?p2) AS ?top)")),
    gpms("A ; B+", A=A, B=B, head=select("SELECT ?p1 ?p2 (COUNT(?y) AS ?n)")) + "GROUP BY ?p1 ?p2",
    gpms("A ; B+", A=A, B=B, head=select("SELECT ?p1 ?p2")),
]


@pytest.mark.parametrize("text", GROUP_USES)
def test_group_variables_well_used(text: str) -> None:
    clean(text)


@pytest.mark.parametrize(
    "marked",
    [
        gpms("B+ ; A", A="{ ?x :p ?p1 FILTER(?p1 > ‸?p2) }", B=B),
        gpms("B+ ; A", "FILTER(?p1 > ‸?p2)", A=A, B=B),
    ],
)
def test_some_iteration(marked: str) -> None:
    assert warning(marked) == (
        "?p2 has a value per iteration of B+: this asks for some iteration; "
        "say LAST(?p2), MIN(?p2) or MAX(?p2) for one"
    )
