"""Queries that differ in constants only, or in nothing, run as one: they answer as if each were alone."""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine.pipelines import stream_set
from spaseq.matching.tecs.reading import TecsReplay
from spaseq.matching.templates.table import TableGpm
from spaseq.terms.dictionary import Dictionary
from spaseq.why.sample import Sample
from tests.conftest import examples
from tests.judge.generate import random_case, random_query
from tests.streams import NS

Answers = list[tuple[str, tuple[str, ...]]]


def _nothing(batch: object) -> None:
    """Whoever follows a query's events gets all of them: the query looks at all, on its own."""


def _alone(text: str, lateness: timedelta) -> tuple[spaseq.Engine, spaseq.Handle]:
    engine = spaseq.Engine(lateness=lateness)
    handle = engine.register(text)
    handle.follow(_nothing)
    return engine, handle


def _answers(handle: spaseq.Handle) -> Answers:
    """What was found since the last time, in order of delivery."""
    return [
        (
            str((match.start, match.end, sorted(match.partition.items())))
            + str([(gpm, [str(e.graph) for e in found]) for gpm, found in sorted(match.events.items())]),
            tuple(sorted(str(sorted(row.items())) for row in match.bindings)),
        )
        for match in handle.matches()
    ]


def _counts(handle: spaseq.Handle) -> dict[str, object]:
    """What is counted, but for what is shared; when one is over, a group counts the rest of a batch, too."""
    left_out = {"shared_with", "shared", "limit"} | ({"relevant", "gpms"} if handle.done else set())
    return {name: value for name, value in asdict(handle.stats).items() if name not in left_out}


_CONSTANT = re.compile(r"(?<=[<>=] )\d+(\.\d+)?(?=\))")


def _family(rng: random.Random) -> tuple[Callable[[], str], Callable[[], Iterator[tuple[str, str, int]]]]:
    """What makes queries of one form, and events for them."""
    while True:
        drawn = random_query(rng)
        if drawn.instants:
            continue
        lines = []
        for line in drawn.text.split("\n"):
            if "DEFINE GPM" in line:
                line = _CONSTANT.sub("§", line)
                if rng.random() < 0.5:
                    line = line.replace(":k ?k", ":k §")
                if rng.random() < 0.3:
                    line = line.replace(":o ?o", ":o §")
                value = re.search(r"\?v[A-Z]", line)
                if rng.random() < 0.5 and value:
                    operator = rng.choice(["<", ">", "<=", ">=", "=", "!="])
                    line = f"{line[:-1]}FILTER({value[0]} {operator} §) }}"
            lines.append(line)
        form = "\n".join(lines)

        def make(form: str = form) -> str:
            text = re.sub("§", lambda _: rng.choice(["0", "1", "1", "2", "1.5"]), form)
            return f"{text} LIMIT {rng.randint(1, 3)}" if rng.random() < 0.15 else text

        try:
            spaseq.prepare(make())
        except spaseq.QueryError:
            continue
        return make, lambda drawn=drawn: iter(random_case(rng, drawn, 10).written)  # type: ignore[misc]


def _steps(rng: random.Random) -> Iterator[tuple[str, object]]:
    """What happens in an engine: queries come and go, events are pushed, time passes."""
    families = [_family(rng) for _ in range(rng.choice([1, 1, 2]))]
    registered = 0

    def some(most: int) -> Iterator[tuple[str, object]]:
        make, _ = rng.choice(families)
        same = make()
        for _ in range(rng.randint(1, most)):
            yield "register", same if rng.random() < 0.3 else make()

    for step in some(8):
        registered += 1
        yield step
    time, late = 0, rng.choice([0, 0, 3])
    for _ in range(rng.randint(5, 25)):
        chance = rng.random()
        if chance < 0.07:
            for step in some(4):
                registered += 1
                yield step
        elif chance < 0.14:
            yield "cancel", rng.randrange(registered)
        elif chance < 0.2:
            yield "advance", (time + rng.randint(-2, 3), rng.choice([None, "s1", "s2"]))
        else:
            events = []
            for _ in range(rng.choice([1, 1, 1, 9])):
                stream, graph, _ = rng.choice(list(rng.choice(families)[1]()))
                time += rng.choice([0, 1, 1, 2])
                events.append((stream.lower(), graph, time - rng.randint(0, late)))
            yield "push", events
    yield "close", None


@settings(max_examples=examples(20), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_as_if_each_were_alone(seed: int) -> None:
    rng = random.Random(seed)
    lateness = timedelta(seconds=rng.choice([0, 0, 1, 3]))
    together = spaseq.Engine(lateness=lateness)
    engines = [together]
    handles: list[tuple[spaseq.Handle, spaseq.Handle]] = []
    said: list[object] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        for number, (what, given_) in enumerate(_steps(rng)):
            said.append((what, given_))
            if what == "register":
                engine, handle = _alone(str(given_), lateness)
                engines.append(engine)
                handles.append((together.register(str(given_)), handle))
                continue
            if what == "cancel":
                assert isinstance(given_, int)
                for handle in handles[given_]:
                    handle.cancel()
            else:
                for engine in engines:
                    _do(engine, number, what, given_)
            for one, other in handles:
                found, expected = _answers(one), _answers(other)
                if lateness:
                    # Matches that wait are decided as the watermark goes on, or by a later event, if that is
                    # seen first: in which order they come is a question of when somebody looks.
                    found, expected = sorted(found), sorted(expected)
                assert found == expected, said
                assert one.done == other.done, said
                assert _counts(one) == _counts(other), said


def _do(engine: spaseq.Engine, number: int, what: str, given_: object) -> None:
    if what == "close":
        engine.close()
    elif what == "advance":
        assert isinstance(given_, tuple)
        time, stream = given_
        engine.advance(time, None if stream is None else NS + stream)
    else:
        assert isinstance(given_, list)
        for i, (stream, graph, time) in enumerate(given_):
            engine.push(NS + stream, graph, time, name=f"{NS}e{number}.{i}")


@pytest.mark.few(0, ci=2)
@pytest.mark.parametrize("skip", ["", "AFTER MATCH SKIP PAST LAST EVENT"])
@pytest.mark.parametrize(
    "sequence", ["A ; B ; A", "A ; !C ; A", "(A & B) ; A", "ALL(A, B) ; A", "A : B : A", "A+ ; B ; A?"]
)
def test_a_gpm_that_stands_twice_has_its_constants_at_both_places(sequence: str, skip: str) -> None:
    def text(constant: int) -> str:
        gpms = [gpm for gpm in "ABC" if gpm in sequence.replace("ALL", "")]
        defined = " ".join(
            f"DEFINE GPM {gpm} ON S {{ ?{gpm} <urn:{gpm}> ?v{gpm} {f'; <urn:k> {constant}' * (gpm == 'A')} }}"
            for gpm in gpms
        )
        head = "SELECT * WITHIN 50 SECONDS SLIDING FROM STREAM S <urn:s>"
        return f"{head} WHERE {{ SEQ({sequence}) {defined} }} {skip}"

    together = spaseq.Engine()
    handles = [together.register(text(constant)) for constant in range(3)]
    judges = [spaseq.Engine(matcher="reference") for _ in range(3)]
    judged = [engine.register(text(constant)) for constant, engine in enumerate(judges)]
    for number in range(42):
        graph = f"<urn:x> <urn:{'AABABAABABAAAC'[number % 14]}> {number % 2} ; <urn:k> {number % 3} ."
        for engine in (together, *judges):
            engine.push("urn:s", graph, number // 2, name=f"urn:e{number}")
    for engine in (together, *judges):
        engine.close()
    assert all(handle.stats.shared_with == 2 for handle in handles)
    found = [sorted(_answers(handle)) for handle in handles]
    assert found == [sorted(_answers(handle)) for handle in judged]
    assert any(found)


_ALERT = """PREFIX : <http://example.org/>
    SELECT * WITHIN 10 SECONDS SLIDING FROM STREAM S <http://example.org/s>
    WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ :{who} :v ?a . FILTER(?a > {bound}) }}
                        DEFINE GPM B ON S {{ :{who} :v ?b . FILTER(?b < ?a) }} }}"""


@pytest.mark.parametrize("window", ["10 EVENTS SLIDING", "9 SECONDS SLIDING"])
@pytest.mark.parametrize("sequence", ["A ; !B WITHIN 3 SECONDS", "A : !B WITHIN 3 SECONDS"])
def test_what_a_short_negation_decides_does_not_wait_for_the_window_of_a_group(
    sequence: str, window: str
) -> None:
    def found(count: int) -> list[int]:
        engine = spaseq.Engine()
        handles = [
            engine.register(
                f"""PREFIX : <{NS}> SELECT * WITHIN {window} FROM STREAM S <urn:s> WHERE {{ SEQ({sequence})
                DEFINE GPM A ON S {{ ?x :v ?a . FILTER(?a > {bound}) }} DEFINE GPM B ON S {{ ?y :w ?b }} }}"""
            )
            for bound in range(count)
        ]
        counts = []
        for time, term in enumerate(["v", "u", "v", "u", "u", "w", "u", "v", "u", "u", "u", "u", "u"]):
            engine.push("urn:s", f"<urn:x> <{NS}{term}> 7 .", time)
            counts.append(sum(1 for handle in handles for _ in handle.matches()))
        return counts

    assert found(3) == [3 * count for count in found(1)]
    assert any(found(1))


def _alert(who: str, bound: int) -> str:
    return _ALERT.format(who=who, bound=bound)


def _tell(engine: spaseq.Engine, who: str, value: int, time: int) -> None:
    engine.push(f"{NS}s", f"<{NS}{who}> <{NS}v> {value} .", time)


def _ends(handle: spaseq.Handle) -> list[object]:
    return [match.end for match in handle.matches()]


def test_what_ends_one_of_a_group_touches_no_other() -> None:
    engine = spaseq.Engine()
    low, high, once, other = (
        engine.register(text)
        for text in (_alert("x", 1), _alert("x", 5), _alert("x", 1) + " LIMIT 1", _alert("y", 1))
    )
    _tell(engine, "x", 4, 1)
    assert [handle.stats.shared_with for handle in (low, high, once, other)] == [3, 3, 3, 3]
    _tell(engine, "x", 3, 2)
    assert (_ends(low), _ends(high), _ends(once), _ends(other)) == ([2], [], [2], [])
    assert once.done
    low.cancel()
    for handle in (high, other):
        assert handle.stats.shared_with == 1
    _tell(engine, "x", 7, 3)
    _tell(engine, "y", 7, 4)
    _tell(engine, "x", 6, 5)
    _tell(engine, "y", 6, 6)
    assert (_ends(low), _ends(high), _ends(once), _ends(other)) == ([], [5], [], [6])
    assert low.stats.events == once.stats.events == 2
    high.cancel()
    other.cancel()
    assert repr(engine) == "<Engine: open, 0 queries, 6 events>"


def test_a_group_that_comes_later_has_what_comes_later() -> None:
    engine = spaseq.Engine()
    early = [engine.register(_alert(who, 1)) for who in "xy"]
    _tell(engine, "x", 9, 1)
    late = [engine.register(_alert(who, 1)) for who in "xy"]
    for time, value in enumerate((8, 7), 2):
        _tell(engine, "x", value, time)
    assert [_ends(handle) for handle in early + late] == [[2, 3], [], [3], []]
    assert [handle.stats.events for handle in early + late] == [3, 3, 2, 2]


@pytest.mark.parametrize(
    "body",
    ["?x :p ?u FILTER(?u = §)", "?x :p §", "?x :p ?u ; :q ?w FILTER(?w = §)"],
    ids=["=", "triple", "two"],
)
@pytest.mark.parametrize("form", [":u{}", "{}"], ids=["iri", "number"])
def test_a_constant_that_no_query_of_a_template_has(body: str, form: str) -> None:
    """Values between the constants of the queries, and beyond them, match none of them."""

    def text(constant: str) -> str:
        return (
            f"PREFIX : <{NS}> SELECT * WITHIN 9 SECONDS SLIDING FROM STREAM S <{NS}S> "
            f"WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ {body.replace('§', constant)} }} "
            "DEFINE GPM B ON S { ?y :b ?b } }"
        )

    rng = random.Random(1)
    values = [form.format(rng.randrange(50)) for _ in range(200)]
    prefix = f"@prefix : <{NS}> . :x"
    events = [(f"{prefix} :p {value} ; :q {value} .", 20 * i) for i, value in enumerate(values)]
    events += [(f"{prefix} :b 1 .", time + 1) for _, time in events]
    constants = [form.format(2 * i) for i in range(20)]
    engine = spaseq.Engine()
    handles = [engine.register(text(constant)) for constant in constants]
    engine.push_many(f"{NS}S", sorted(events, key=lambda event: event[1]))
    assert handles[0].stats.shared_with == len(constants) - 1
    assert [len(list(h.matches())) for h in handles] == [values.count(c) for c in constants]


def test_a_callback_that_raises_costs_no_other_its_matches() -> None:
    engine = spaseq.Engine()
    seen: list[object] = []

    def refuse(_: spaseq.Match) -> None:
        raise RuntimeError("mine")

    engine.register(_alert("x", 1), refuse)
    engine.register(_alert("x", 2), lambda match: seen.append(match.end))
    quiet = engine.register(_alert("x", 1))
    _tell(engine, "x", 9, 1)
    with pytest.raises(RuntimeError, match="mine"):
        _tell(engine, "x", 8, 2)
    assert (seen, _ends(quiet)) == ([2], [2])


def test_one_of_a_group_says_why_it_has_no_match() -> None:
    engine = spaseq.Engine()
    handles = [engine.register(_alert("x", bound)) for bound in (1, 100)]
    _tell(engine, "x", 9, 1)
    _tell(engine, "x", 8, 2)
    assert handles[0].stats.matches == 1
    assert "GPM A matched none" in handles[1].why().cause


def test_many_matches_go_to_each_query_as_columns() -> None:
    events = [
        (f'<urn:e{i}> <urn:of> <urn:{"xy"[i % 2]}> ; <urn:kind> "{"ab"[i // 20]}" .', i) for i in range(40)
    ]
    text = """SELECT ?a ?b WITHIN 90 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ(A : B)
        DEFINE GPM A ON S { ?a <urn:of> <urn:§> ; <urn:kind> "a" }
        DEFINE GPM B ON S { ?b <urn:of> <urn:§> ; <urn:kind> "b" } }"""
    texts = [text.replace("§", name) for name in ("x", "y", "x")]

    def found(*texts: str) -> list[list[spaseq.Match]]:
        engine = spaseq.Engine()
        handles = [engine.register(text) for text in texts]
        engine.push_many("urn:s", events)
        return [[match for batch in handle.batches() for match in batch] for handle in handles]

    together = found(*texts)
    assert [len(matches) for matches in together] == [100, 100, 100]
    for text, matches in zip(texts, together, strict=True):
        (alone,) = found(text)
        assert sorted(map(_shown, matches)) == sorted(map(_shown, alone))
        for match in matches:
            assert [e.n for of in match.events.values() for e in of] == [match.start, match.end]


def _shown(match: spaseq.Match) -> str:
    return str((match.start, match.end, match.bindings, match.partition))


@pytest.mark.slow
def test_columns_of_each_query_are_those_it_has_alone() -> None:
    """Where a call finds so many that they come in several blocks, in windows, and read after two calls."""
    rng = random.Random(5)
    events = [
        (f"<urn:e{i}> <urn:of> <urn:{rng.choice('xyz')}> ; <urn:v> {rng.randrange(100)} .", i)
        for i in range(1_500)
    ]
    text = """SELECT ?a ?v ?w WITHIN 40 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ(A ; B)
        DEFINE GPM A ON S { ?a <urn:of> <urn:§> ; <urn:v> ?v . FILTER(?v > #) }
        DEFINE GPM B ON S { ?b <urn:of> <urn:§> ; <urn:v> ?w . FILTER(?w < ?v - #) } }"""
    texts = [text.replace("§", name).replace("#", str(bound)) for name in "xyz" for bound in (0, 9, 80)]

    def found(*texts: str) -> list[spaseq.MatchBatch]:
        engine = spaseq.Engine()
        handles = [engine.register(text) for text in texts]
        for begin in (0, 1_000):
            engine.push_many("urn:s", events[begin : begin + 1_000])
        return [spaseq.MatchBatch.joined([*handle.batches()]) for handle in handles]

    for text, batch in zip(texts, found(*texts), strict=True):
        (alone,) = found(text)
        assert len(batch) == len(alone)
        assert batch.start.tolist() == alone.start.tolist()
        assert batch.end.tolist() == alone.end.tolist()
        assert {n: of.n.tolist() for n, of in batch.events.items()} == {
            n: of.n.tolist() for n, of in alone.events.items()
        }
        assert batch.to_arrow().to_pylist() == alone.to_arrow().to_pylist()
        assert [*map(_shown, batch)] == [*map(_shown, alone)]
        assert [e.n for match in batch for of in match.events.values() for e in of] == [
            e.n for match in alone for of in match.events.values() for e in of
        ]
        some = slice(len(batch) // 3, len(batch) // 2)
        assert [*map(_shown, batch[some])] == [*map(_shown, batch)][some]


def test_what_is_read_of_equal_queries_is_made_once() -> None:
    events = [(f"<urn:x> <urn:v> {i % 7} .", i) for i in range(3_000)]
    text = """SELECT ?v ?w WITHIN 5 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ(A : B)
        DEFINE GPM A ON S { ?x <urn:v> ?v } DEFINE GPM B ON S { ?x <urn:v> ?w . FILTER(?w > ?v) } }"""

    def found(count: int) -> list[spaseq.MatchBatch]:
        engine = spaseq.Engine()
        handles = [engine.register(text) for _ in range(count)]
        engine.push_many("urn:s", events)
        return [next(handle.batches()) for handle in handles]

    (alone,), together = found(1), found(3)
    assert len(together[0]) > 1_000
    for batch in together:
        assert batch.to_arrow().to_pylist()[: len(alone)] == alone.to_arrow().to_pylist()[: len(batch)]
        assert np.shares_memory(batch.events["B"].n, together[0].events["B"].n)


@pytest.mark.parametrize(
    ("sequence", "partition", "counts"),
    [
        ("A : B", "", [12, 4]),
        ("A : B : C", "", [36, 12]),
        ("A ; B+ : C", "", [36, 12]),
        ("A ; B+ : C", "PARTITION BY ?x", [36, 12]),
        ("A : B : C", "PARTITION BY ?x", [36, 12]),
    ],
)
def test_matches_of_a_template_are_not_made_anew_each(
    sequence: str, partition: str, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event has a solution for each query there: that of a match is chosen by its key."""
    monkeypatch.setattr(TecsReplay, "match", lambda *_: pytest.fail("a match was made anew"))
    engine = spaseq.Engine()
    text = f"""SELECT ?a ?b WITHIN 1 HOURS SLIDING {partition} FROM STREAM S <urn:s>
        WHERE {{{{ SEQ({sequence})
        DEFINE GPM A ON S {{{{ ?x <urn:a> ?a . FILTER(?a > {{}}) }}}}
        DEFINE GPM B ON S {{{{ ?x <urn:b> ?b }}}}
        {"DEFINE GPM C ON S {{ ?x <urn:c> ?c }}" if "C" in sequence else ""} }}}}"""
    handles = [engine.register(text.format(least)) for least in (1, 3)]
    events = [f"<urn:x> <urn:{'abc'[(i >= 5) + (i >= 9)]}> {i} ." for i in range(12)]
    engine.push_many("urn:s", [(event, i) for i, event in enumerate(events)])
    found = [[len(match.events["A"]) for match in handle.matches()] for handle in handles]
    assert found == [[1] * count for count in counts]


@pytest.mark.parametrize(
    ("sequence", "skip", "counts"),
    [
        ("A ; B", "", [2, 1]),
        ("A ; B", "AFTER MATCH SKIP PAST LAST EVENT", [2, 1]),
        ("A : B", "", [3, 2]),
        ("ALL(A, B)", "", [4, 2]),
    ],
)
def test_nobody_asks_for_the_order_of_the_queries_of_a_template(
    sequence: str, skip: str, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that concerns many would have their names written and sorted."""
    monkeypatch.setattr(Dictionary, "ranks", lambda *_: pytest.fail("keys were put in order"))
    engine = spaseq.Engine()
    text = f"""SELECT * WITHIN 1 HOURS SLIDING FROM STREAM S <urn:s>
        WHERE {{{{ SEQ({sequence}) DEFINE GPM A ON S {{{{ ?x <urn:a> ?a . FILTER(?a > {{}}) }}}}
        DEFINE GPM B ON S {{{{ ?x <urn:b> ?b }}}} }}}} {skip}"""
    handles = [engine.register(text.format(least)) for least in (1, 2)]
    engine.push("urn:s", "<urn:x> <urn:a> 5 .", 1)
    engine.push_many("urn:s", [("<urn:x> <urn:b> 1 .", 2), ("<urn:x> <urn:a> 2 .", 3)])
    engine.push("urn:s", "<urn:x> <urn:b> 1 .", 4)
    assert [len(list(handle.matches())) for handle in handles] == counts


@pytest.mark.parametrize(
    ("asked", "concerned"),
    [("?x <urn:a> ?a . FILTER(?a > {})", [0, 1, 2]), ("<urn:x{}> <urn:a> ?a", [3]), ("?x <urn:a> {}", [3])],
)
@pytest.mark.few(1)
def test_an_event_that_comes_alone_takes_no_columns_for_a_template(
    asked: str, concerned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even of a thousand queries, where it concerns few of them."""
    monkeypatch.setattr(stream_set, "Sample", partial(Sample, 1, 1))
    engine, found = spaseq.Engine(), Counter[int]()

    def register(number: int) -> spaseq.Handle:
        gpms = " ".join(f"DEFINE GPM {name} ON S {{ {asked.format(number)} }}" for name in "AB")
        text = f"SELECT * WITHIN 1 HOURS SLIDING FROM STREAM S <urn:s> WHERE {{ SEQ(A ; B) {gpms} }}"
        return engine.register(text, lambda _: found.update([number]))

    handles = [register(number) for number in range(1_000)]
    engine.push("urn:s", "<urn:x> <urn:a> -1 .", 1)
    monkeypatch.setattr(TableGpm, "evaluate", lambda *_: pytest.fail("columns were made"))
    for time in range(2, 6):
        engine.push("urn:s", "<urn:x3> <urn:a> 3 .", time)
    assert found == dict.fromkeys(concerned, 3)
    for number in (0, 2, 3, 4):
        stats = handles[number].stats
        assert (stats.relevant, stats.gpms["B"].rows) == ((4, 4) if number in concerned else (0, 0))


@pytest.mark.parametrize("sequence", ["A : B", "A : B : C", "A : B+ : C", "A : B : (C | D)"])
@pytest.mark.parametrize("partition", ["", "PARTITION BY ?k", "PARTITION BY ?k ?j"])
@pytest.mark.parametrize("seed", range(4))
def test_the_solution_of_a_match_is_that_of_its_key(sequence: str, partition: str, seed: int) -> None:
    """Events have several solutions, of one key or of several."""
    rng = random.Random(f"{sequence} {partition} {seed}")

    def event() -> str:
        name = rng.choice("abcd")
        subjects = rng.choices(range(3), k=rng.choice([1, 1, 2, 4]))
        lines = [f"<urn:s{x}> <urn:{name}> {rng.randrange(4)}" for x in subjects]
        lines += [f"<urn:s{x}> <urn:k> <urn:k{rng.randrange(2)}>" for x in subjects if rng.random() < 0.9]
        lines += [f"<urn:s{x}> <urn:j> <urn:j{rng.randrange(2)}>" for x in subjects if rng.random() < 0.7]
        return " .\n".join(lines) + " ."

    def gpm(name: str) -> str:
        subject, own = f"?s{name}", f"?s{name} <urn:{name.lower()}> ?v{name} ."
        own += f" {subject} <urn:k> ?k ." if "?k" in partition else ""
        own += f" {subject} <urn:j> ?j ." if "?j" in partition else ""
        own += " FILTER(?vA >= {})" if name == "A" else ""
        return f"DEFINE GPM {name} ON S {{{{ {own} }}}}"

    gpms = " ".join(gpm(name) for name in "ABCD" if name in sequence)
    text = f"""SELECT * WITHIN 6 SECONDS SLIDING {partition} FROM STREAM S <urn:s>
        WHERE {{{{ SEQ({sequence}) {gpms} }}}}"""
    texts = [text.format(least) for least in (0, 1, 2, 9)]
    events = [(event(), i) for i in range(24)]
    together, judge = spaseq.Engine(), spaseq.Engine(matcher="reference")
    handles, judged = ([engine.register(text) for text in texts] for engine in (together, judge))
    begin = rng.randrange(24)
    for engine in (together, judge):
        engine.push_many("urn:s", events[:begin])
        engine.push_many("urn:s", events[begin:])
    for handle, other in zip(handles, judged, strict=True):
        assert sorted(_answers(handle)) == sorted(_answers(other))
