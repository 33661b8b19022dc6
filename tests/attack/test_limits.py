"""Queries that want more than there is: each meets its limit, ends and says so; the others go on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import spaseq
from spaseq.cli import app
from spaseq.limits import Limits
from tests.streams import NS, events_of, letters, query

LONG = "10000 SECONDS"


def push(engine: spaseq.Engine, text: str) -> None:
    for letter in letters(text):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


def many(kind: str, count: int, start: int = 1) -> str:
    return " ".join(f"{kind}{i}" for i in range(start, start + count))


DOUBLES = query("A ; B+[:]", LONG), "a1 " + many("b", 30, 2)

PER_VALUE = query("A , B", LONG, {"A": "?a :v ?n", "B": "?b :v ?n"}, partition="?n")

#: Who meets which limit: its name and value, a query, and events of all of which something is kept.
KEPT = {
    "interpreter": ("partial_matches", 1_000, *DOUBLES),
    "nfa": ("partial_matches", 1_000, *DOUBLES),
    "lazy": (
        "partial_matches",
        100,
        query("A : B : C", LONG),
        f"{many('c', 900)} a1000 {many('b', 800, 1001)}",
    ),
    "interpreter, in bytes": ("query_bytes", 10**6, *DOUBLES),
    "nfa, in bytes": ("query_bytes", 10**6, *DOUBLES),
    "lazy, in bytes": ("query_bytes", 10**5, query("A : B", LONG), many("a", 900)),
    "tree, in bytes": ("query_bytes", 10**5, query("A : B", LONG), many("a", 900)),
    "tecs, in bytes": ("query_bytes", 7 * 10**5, query("A : B", LONG), many("a", 7_000)),
    "kmp, in bytes": ("query_bytes", 10**5, PER_VALUE, many("a", 3_000)),
}


@pytest.mark.parametrize("case", KEPT)
@pytest.mark.few(1, ci=4)
def test_what_a_query_keeps(case: str) -> None:
    name, most, text, events = KEPT[case]
    matcher = case.partition(",")[0]
    engine = spaseq.Engine(matcher=matcher, limits=Limits(**{name: most}))
    handle = engine.register(text)
    other = engine.register(query("X , Y" if matcher == "kmp" else "X : Y"))
    push(engine, events)
    assert handle.done
    option = name.replace("_", "-")
    with pytest.raises(spaseq.LimitError, match=rf"query SEQ\(.*{name}={most}.*--limit {option}=") as error:
        list(handle.matches())
    assert error.value.limit == name
    assert repr(handle).startswith(f"<Handle {handle.name}: failed, ")
    push(engine, "x55005 y55006")
    assert [events_of(match) for match in other.matches()] == ["x55005y55006"]


def test_partitions_count_together() -> None:
    engine = spaseq.Engine(matcher="interpreter", limits=Limits(partial_matches=100))
    handle = engine.register(
        query("A ; B", "10 SECONDS SLIDING", {"A": "?a :k ?k", "B": "?b :k ?k"}, partition="?k")
    )
    for i in range(400):  # with at most eleven partitions at a time
        push(engine, f"a{i}/k{i}")
    assert not handle.done
    for i in range(400):
        push(engine, f"a500/k{i}")
        if handle.done:
            break
    with pytest.raises(spaseq.LimitError, match=r"10\d partial matches"):
        list(handle.matches())


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize("matcher", ["nfa", "interpreter"])
def test_kleene_with_prev_that_doubles(matcher: str) -> None:
    """Within the limits that there are if nobody says any."""
    engine = spaseq.Engine(matcher=matcher)
    handle = engine.register(query("A ; B+[:] ; C", LONG, {"B": "FILTER(?bv > PREV(?bv))"}))
    other = engine.register(query("X : Y") if matcher == "interpreter" else query("X ; Y"))
    for i in range(40):
        push(engine, f"{'ab'[i > 0]}{i}")
    with pytest.raises(spaseq.LimitError, match=r"partial_matches=1000000|query_bytes=1073741824"):
        list(handle.matches())
    push(engine, "x100 y101")
    assert len(list(other.matches())) == 1


def test_matches_that_nobody_asks_for() -> None:
    engine = spaseq.Engine(limits=Limits(pending_matches=1_500))
    handle = engine.register(query("A"))
    called: list[spaseq.Match] = []
    engine.register(query("A"), called.append)
    push(engine, many("a", 2_000))
    with pytest.raises(spaseq.LimitError, match="pending_matches=1500"):
        assert len([match.start for match in handle.matches()]) == 1_501
    assert len(called) == 2_000


def test_matches_of_one_event_are_found_when_asked_for_and_need_no_limit() -> None:
    engine = spaseq.Engine(limits=Limits(pending_matches=1_500))
    handle = engine.register(query("A : B+[:] : C", "1000 SECONDS SLIDING"))
    push(engine, "a1 " + many("b", 11, 2) + " c20")
    assert sum(1 for _ in handle.matches()) == 2**11 - 1


def test_events_that_are_held_back() -> None:
    engine = spaseq.Engine(lateness=timedelta(seconds=10_000), limits=Limits(held_events=100))
    handle = engine.register(query("A"))
    other = engine.register(query("B"))
    push(engine, many("a", 101))
    for each in (handle, other):
        with pytest.raises(spaseq.LimitError, match="held-events"):
            list(each.matches())
    assert list(engine.register(query("A")).matches()) == []


@pytest.mark.parametrize(
    "body",
    [
        "BIND('long' AS ?t0) " + " ".join(f"BIND(CONCAT(?t{i}, ?t{i}) AS ?t{i + 1})" for i in range(34)),
        "BIND('long' AS ?t0) " + " ".join(f"BIND(REPLACE(?t{i}, '', ?t{i}) AS ?t{i + 1})" for i in range(34)),
        "?a :k ?t . { SELECT (GROUP_CONCAT(?s; separator='" + "x" * 9_000 + "') AS ?g) { VALUES ?s { "
        + "'long' " * 200 + "} } }",
        "?a :v ?t0 . " + " ".join(f"BIND(?t{i} * ?t{i} AS ?t{i + 1})" for i in range(34)),
    ],
    ids=["concat", "replace", "group_concat", "product"],
)  # fmt: skip
def test_computed_terms(body: str) -> None:
    engine = spaseq.Engine(limits=Limits(term_bytes=100_000))
    handle = engine.register(query("A", gpms={"A": body}))
    other = engine.register(query("A"))
    push(engine, "a9")
    with pytest.raises(spaseq.LimitError, match=r"query SEQ\(A\) is over: computing .*--limit term-bytes"):
        list(handle.matches())
    assert len(list(other.matches())) == 1


def test_an_error_inside_oxigraph_is_no_error_of_sparql(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is raised inside a function that Oxigraph calls would otherwise make a variable unbound."""
    from spaseq.patterns.expressions import functions

    def interrupted(*_: object) -> None:
        raise MemoryError

    body = "?a (:v|:k)+ ?x . BIND(UCASE(STR(?x)) AS ?y)"
    engine = spaseq.Engine()
    monkeypatch.setitem(functions.FUNCTIONS, "UCASE", interrupted)
    handle = engine.register(query("A", gpms={"A": body}))
    push(engine, "a9")
    with pytest.raises(spaseq.LimitError, match="no memory was left"):
        list(handle.matches())


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "5"])
def test_limits_that_are_none(bad: object) -> None:
    with pytest.raises(spaseq.EngineError, match="depth="):
        Limits(depth=bad)  # type: ignore[arg-type]


def test_no_limit_at_all() -> None:
    engine = spaseq.Engine(limits=Limits(pending_matches=None))
    handle = engine.register(query("A"))
    push(engine, many("a", 1_200))
    assert sum(1 for _ in handle.matches()) == 1_200


# --- the command line ---------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = []
    for letter in letters("a1 " + many("b", 25, 2)):
        name = f"<{NS}{letter.name}>"
        lines += [
            f"<{NS}e> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{letter.type}> {name} .",
            f'<{NS}e> <{NS}v> "1"^^<http://www.w3.org/2001/XMLSchema#integer> {name} .',
            f"{name} <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{letter.time}"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        ]
    Path("s.nq").write_text("\n".join(lines) + "\n")
    Path("q.rq").write_text(query("A ; B+[:] ; C", "10000 SECONDS"))
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_limits_on_the_command_line() -> None:
    run = ["run", "q.rq", "-s", "S=s.nq", "--matcher", "nfa"]
    done = CliRunner().invoke(app, [*run, "--limit", "partial-matches=1k"])
    assert done.exit_code == 1
    assert "is over the limit partial_matches=1000: Limits(partial_matches=…), or --limit" in done.stderr
    assert "Traceback" not in done.stderr
    for wrong, said in (("partial=1", "NAME one of partial-matches"), ("depth=x", "a whole number")):
        done = CliRunner().invoke(app, [*run, "--limit", wrong])
        assert done.exit_code == 2
        assert said in done.stderr
