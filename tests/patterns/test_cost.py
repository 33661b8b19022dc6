"""What a query costs is bounded while it is spent, and ends that query alone."""

from __future__ import annotations

import resource

import pytest

import spaseq
from spaseq import Limits

OTHER = """
    SELECT ?x WITHIN 10 SECONDS FROM STREAM S <urn:s>
    WHERE { SEQ(A) DEFINE GPM A ON S { ?x <urn:v> ?v } }"""


def query(pattern: str) -> str:
    return f"""
        SELECT * WITHIN 10 SECONDS FROM STREAM S <urn:s>
        WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"""


def ended(pattern: str, event: str, limit: str, *, limits: Limits, many: int = 1) -> str:
    """The error of a query over events, after which another one goes on."""
    with spaseq.Engine(limits=limits) as engine:
        handle, other = engine.register(query(pattern)), engine.register(OTHER)
        if many == 1:
            engine.push("urn:s", event, 1)
        else:
            engine.push_many("urn:s", [(event, time) for time in range(many)])
        with pytest.raises(spaseq.LimitError) as caught:
            list(handle.matches())
        assert caught.value.limit == limit
        engine.push("urn:s", "<urn:a> <urn:v> 1 .", many + 1)
        engine.push("urn:s", "<urn:a> <urn:v> 1 .", many + 100)
        assert len(list(other.matches())) >= 2
    return str(caught.value)


TWENTY = " ".join(f"<urn:n{i}> <urn:p> {i} ." for i in range(20))
STEPS = "/".join(["(<urn:p>|^<urn:p>|3)"] * 20)
TEN = " ".join(f"<urn:n{i}> <urn:p> {i} ." for i in range(10))
DISJOINT = " ".join(f"?s{i} <urn:p> ?v{i} ." for i in range(12))


@pytest.mark.parametrize("many", [1, 20])
@pytest.mark.parametrize(
    "pattern",
    [
        DISJOINT,
        f"{{ SELECT * {{ {DISJOINT} }} }}",
        f"OPTIONAL {{ {DISJOINT} }}",
        " ".join(f"{{ ?s{i} <urn:p> ?v{i} }} UNION {{ ?s{i} <urn:p> ?v{i} }}" for i in range(12)),
        " ".join(f"VALUES ?v{i} {{ {' '.join(map(str, range(20)))} }}" for i in range(12)),
        f"?s <urn:p> ?v . {' '.join(f'?a{i} ?b{i} ?c{i} .' for i in range(12))}",
        f"?s <urn:p> ?v FILTER EXISTS {{ {DISJOINT} }}",
        f"?s <urn:p> ?v MINUS {{ {DISJOINT} }}",
        f"?s <urn:p>* ?v . {DISJOINT}",
        f"?s {STEPS.replace('3', '!<urn:q>')} ?v",
        f"?s {STEPS.replace('3', '<urn:p>')} ?v",
        f"?s {STEPS.replace('3', '<urn:p>')} ?v FILTER (?v > 5 || EXISTS {{ ?v <urn:q> ?x }})",
    ],
)
def test_rows_of_a_pattern_are_counted_before_they_are_made(pattern: str, many: int) -> None:
    error = ended(pattern, TWENTY, "solutions", limits=Limits(solutions=2_000), many=many)
    assert "solutions in one event is over the limit solutions=2000" in error


def test_the_limit_is_that_of_one_event() -> None:
    pairs = "?s <urn:p> ?v . ?t <urn:p> ?w"
    for many in (3, 12):
        with spaseq.Engine(limits=Limits(solutions=100)) as engine:
            handle = engine.register(query(pairs))
            engine.push_many("urn:s", [(TEN, time) for time in range(many)])
            assert sum(len(match.bindings) for match in handle.matches()) == 100 * many


def test_background_graphs_may_be_larger() -> None:
    kb = {"urn:g": "\n".join(f"<urn:n{i}> <urn:q> <urn:m{j}> ." for i in range(20) for j in range(20))}
    pattern = "?s <urn:p> ?v . GRAPH <urn:g> { ?s <urn:q> ?m }"
    with spaseq.Engine(kb, limits=Limits(solutions=50)) as engine:
        handle = engine.register(query(pattern))
        engine.push("urn:s", "<urn:n1> <urn:p> 1 .", 1)
        assert sum(len(match.bindings) for match in handle.matches()) == 20


def test_background_graphs_have_a_limit_too() -> None:
    kb = {"urn:g": "\n".join(f"<urn:n{i}> <urn:q> {i} ." for i in range(20))}
    inner = " ".join(f"?a{i} <urn:q> ?b{i} ." for i in range(12))
    with spaseq.Engine(kb, limits=Limits(query_bytes=1 << 20)) as engine:
        handle = engine.register(query(f"?a0 <urn:p> ?v . GRAPH <urn:g> {{ {inner} }}"))
        engine.push("urn:s", "<urn:n1> <urn:p> 1 .", 1)
        with pytest.raises(spaseq.LimitError, match="query_bytes"):
            list(handle.matches())


def squares(number: str) -> str:
    binds = " ".join(f"BIND(?c{i}*?c{i} AS ?c{i + 1})" for i in range(26))
    return f"?s <urn:p> ?v BIND({number} AS ?c0) {binds}"


DIVISIONS = " ".join(f"BIND(?c{i} / 0.00{'0' * 40}1 AS ?c{i + 1})" for i in range(26))


@pytest.mark.parametrize("many", [1, 20])
@pytest.mark.parametrize(
    "pattern",
    [
        squares("?v + 7"),
        squares("?v + 7.5"),
        squares("?v + 0.0000000000000000000000001"),
        f"{squares('?v + 7')} FILTER (?c26 > 5)",
        f"?s <urn:p> ?v BIND(?v + 7.5 AS ?c0) {DIVISIONS}",
    ],
)
def test_numbers_have_a_length(pattern: str, many: int) -> None:
    error = ended(pattern, "<urn:n> <urn:p> 5 .", "term_bytes", limits=Limits(term_bytes=1_000), many=many)
    assert "computing a number of" in error
    assert len(error) < 400


@pytest.mark.parametrize(
    ("expression", "size"),
    [
        ("REPLACE(?a, 'x', ?a)", 10_000),
        ("REPLACE(REPLACE(?a, 'x', ?a), 'x', ?a)", 10_000),
        ("REPLACE(?a, '(x)', '$1$1$1$1$1$1$1$1$1$1$1')", 1_100),
        ("REPLACE(?a, '', '0123456789')", 1_110),
        ("CONCAT(?a, ?a, ?a, ?a, ?a, ?a, ?a, ?a, ?a, ?a, ?a)", 1_100),
        ("ENCODE_FOR_URI(CONCAT(?b, ?b))", 1_200),
        ("UCASE(CONCAT(?c, ?c, ?c, ?c, ?c, ?c))", 1_200),
        ("STRDT(CONCAT(?a, ?a, ?a, ?a, ?a, ?a, ?a, ?a, ?a), <urn:%s>)" % ("x" * 200), 1_104),
    ],
)
def test_the_length_of_a_text_is_told_before_it_is_made(expression: str, size: int) -> None:
    event = f'<urn:n> <urn:p> "{"x" * 100}" ; <urn:q> "{"ä" * 100}" ; <urn:r> "{"ß" * 100}" .'
    pattern = f"?s <urn:p> ?a ; <urn:q> ?b ; <urn:r> ?c BIND({expression} AS ?t)"
    error = ended(pattern, event, "term_bytes", limits=Limits(term_bytes=1_000))
    assert f"computing a text of {size} characters" in error


@pytest.mark.parametrize(
    ("expression", "size"),
    [
        ("REPLACE(?a, '^.*$', '$0$0')", 200),
        ("REPLACE(?a, '^.*(..)$', '$1$1$1$1$1$1$1$1$1$1$1$1')", 24),
        ("REPLACE(?a, 'y', ?a)", 100),
        ("REPLACE(?a, 'x', 'xxxxxxxxx')", 900),
    ],
)
def test_a_text_that_is_short_enough_is_made(expression: str, size: int) -> None:
    with spaseq.Engine(limits=Limits(term_bytes=1_000)) as engine:
        handle = engine.register(query(f"?s <urn:p> ?a BIND(STRLEN({expression}) AS ?n)"))
        engine.push("urn:s", f'<urn:n> <urn:p> "{"x" * 100}" .', 1)
        (match,) = handle.matches()
    assert [int(row["n"]) for row in match.bindings] == [size]


def ring(size: int) -> str:
    return " ".join(f"<urn:n{i}> <urn:p> <urn:n{(i + 1) % size}> ." for i in range(size))


@pytest.mark.parametrize("many", [1, 20])
@pytest.mark.parametrize(
    "path",
    ["(p*)*", "(p+)+", "(p?)*", "((p*)+)*", "(p*/p*)*", "(p|p*)*", "(p?/p?)+", "(((p*)*)?)+", "(^(^p)*)*"],
)
@pytest.mark.few(1, ci=4)
def test_closures_of_closures_are_one(path: str, many: int) -> None:
    with spaseq.Engine() as engine:
        handle = engine.register(query(f"?s {path.replace('p', '<urn:p>')} ?v"))
        engine.push_many("urn:s", [(ring(12), time) for time in range(many)])
        assert [len(match.bindings) for match in handle.matches()] == [144] * many


@pytest.mark.slow
def test_closures_of_closures_cost_what_one_costs() -> None:
    with spaseq.Engine() as engine:
        handle = engine.register(query("?s (((<urn:p>*)*)*)* ?v"))
        engine.push("urn:s", ring(200), 1)  # hours, if each closure is asked of every node
        assert [len(match.bindings) for match in handle.matches()] == [40_000]


@pytest.mark.few(1)
@pytest.mark.parametrize("many", [1, 2])
def test_what_oxigraph_has_begun_is_abandoned(many: int) -> None:
    node = " ".join(f"<urn:n{i}> <urn:p> <urn:n{j}> ." for i in range(16) for j in range(16) if i != j)
    # A few seconds of Oxigraph's: its thread cannot be ended, and would take a core from later tests.
    closures = "?s (<urn:p>/((<urn:p>/<urn:p>*)/<urn:p>+)*)* ?v ; <urn:p>*/<urn:p>*/<urn:p>* ?w"
    pattern = f"{closures} FILTER(CONCAT(STR(?v), STR(?w)) = 1)"
    error = ended(pattern, node, "event_seconds", limits=Limits(event_seconds=1, solutions=None), many=many)
    assert "an event that takes more than 1 s is over the limit event_seconds=1" in error


def test_the_text_of_a_query_has_a_limit() -> None:
    text = query(f'?s <urn:p> "{"x" * 3_000_000}"')
    for register in (spaseq.prepare, spaseq.Engine().register):
        with pytest.raises(spaseq.LimitError, match="characters is over the limit query_characters=1048576"):
            register(text)
    with pytest.raises(spaseq.LimitError, match="query_characters=100:"):
        spaseq.Engine(limits=Limits(query_characters=100)).register(query("?s ?p ?o") + " " * 100)


def test_a_long_literal_takes_memory_for_itself_only() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spaseq.prepare(query('?s <urn:p> """' + 'a"b\\n' * 200_000 + '"""'))  # once 600 bytes a character
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.slow
def test_long_numbers_are_read_and_written() -> None:
    with spaseq.Engine() as engine:
        text = query("?s <urn:p> ?v BIND(STRLEN(STR(?v + 1)) AS ?n)")
        handle = engine.register(text.replace("*", "?n", 1))
        engine.push("urn:s", f"<urn:n> <urn:p> {'7' * 1_000_000} .", 1)  # once a minute
        (match,) = handle.matches()
    assert [int(row["n"]) for row in match.bindings] == [1_000_000]


@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize(
    "pattern", ["?s <urn:p> ?v . ?t <urn:p> ?w", "?s <urn:p> ?v . ?t <urn:p> ?w FILTER(?v <= ?w)"]
)
def test_a_small_limit_ends_the_query_and_never_drops_solutions(pattern: str, many: int) -> None:
    """Below 64 solutions the limit cut a pattern's solutions without an error."""
    error = ended(pattern, TEN, "solutions", limits=Limits(solutions=12), many=many)
    assert "is over the limit solutions=12" in error
