"""Of queries that begin alike an event that comes alone is taken by their group: nobody can tell."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine.pipelines import stream_set
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.matching.columns import history
from spaseq.why.sample import Sample
from tests.conftest import examples
from tests.engine import test_alone
from tests.engine.test_alone import KINDS, OTHER, STREAM

#: What C asks besides its triple; B, what all have in common.
_LAST = [
    *("", "", "", "FILTER(?c > 2)", "FILTER(?c > ?a)", "FILTER(?c = <urn:x>)", "FILTER(AVG(?a) < ?c)"),
    *("OPTIONAL { ?x <urn:w> ?w }", "FILTER(STR(?x) != 'urn:x')", "GRAPH <urn:kb> { ?x <urn:of> ?w }"),
    *("?x <urn:w> ?w2", "FILTER(STRLEN(STR(?a)) < 8)"),
]
_MIDDLE = ["", "", "FILTER(?b > ?a)", "FILTER(?b != ?a)", "OPTIONAL { ?x <urn:w> ?v }", "FILTER(?b < 4)"]
_WINDOWS = ["SECONDS SLIDING", "SECONDS SLIDING", "EVENTS SLIDING", "SECONDS TUMBLING", "EVENTS TUMBLING"]


def _alike(rng: random.Random) -> list[str]:
    """Queries that begin alike, run by one of the matchers."""
    operator, window, base = rng.choice(";:"), rng.choice(_WINDOWS), rng.randint(3, 9)
    first, second, middle = rng.choice(KINDS), rng.choice(KINDS), rng.choice(_MIDDLE)
    by, is_one = rng.choice(["", "PARTITION BY ?x"]), rng.random() < 0.7
    on = ["S" if is_one else rng.choice("ST") for _ in "ABC"]
    skip = rng.choice(["PAST LAST EVENT", "TO NEXT EVENT"]) if rng.random() < 0.1 else ""
    read = f"FROM STREAM S <{STREAM}>" + ("" if is_one else f" FROM STREAM T <{OTHER}>")
    found = []
    for _ in range(rng.choice([2, 3, 5, 9, 33])):
        size = base if "TUMBLING" in window or rng.random() < 0.5 else rng.randint(3, 9)
        last = rng.choice(["C", "C", "C+" if operator == ";" else "C+[:]", "C : D", "C ; D"])
        sequence = f"A {operator} B {rng.choice([operator, operator, ';', ':'])} {last}"
        gpms = {
            "A": f"A ON {on[0]} {{ ?x <urn:{first}> ?a }}",
            "B": f"B ON {on[1]} {{ ?x <urn:{second}> ?b . {middle} }}",
            "C": f"C ON {on[2]} {{ ?x <urn:{rng.choice(KINDS)}> ?c . {rng.choice(_LAST)} }}",
            "D": f"D ON {on[2]} {{ ?x <urn:{rng.choice(KINDS)}> ?d }}",
        }
        used = " ".join(f"DEFINE GPM {gpm}" for name, gpm in gpms.items() if name in sequence)
        after = f"AFTER MATCH SKIP {skip}" if skip else ""
        limit = f"LIMIT {rng.randint(1, 6)}" if rng.random() < 0.15 else ""
        found.append(
            f"SELECT * WITHIN {size} {window} {by} {read} WHERE {{ SEQ({sequence}) {used} }} {after} {limit}"
        )
    return found


def _script(rng: random.Random) -> Iterator[tuple[Any, ...]]:
    late: list[str] = []
    for text in [text for _ in range(rng.randint(1, 2)) for text in _alike(rng)]:
        if rng.random() < 0.1:
            late.append(text)
        else:
            yield "register", text
    if rng.random() < 0.3:
        yield "register", test_alone._text(rng)
    time = 0
    for _ in range(rng.randint(20, 60)):
        time += rng.choice([0, 1, 1, 2, 3])
        if rng.random() < 0.08:
            events = [
                (test_alone._graph(rng), time + rng.choice([0, 0, 1, 2])) for _ in range(rng.randint(0, 5))
            ]
            yield "push_many", STREAM, sorted(events, key=lambda event: event[1])
            time += 2
        else:
            at = time - 5 if rng.random() < 0.03 else time
            yield "push", rng.choice([STREAM, STREAM, STREAM, OTHER]), test_alone._graph(rng), at
        if late and rng.random() < 0.1:
            yield "register", late.pop()
        if rng.random() < 0.04:
            time += rng.choice([0, 0, 4, 9])
            yield "advance", time
        if rng.random() < 0.05:
            yield "change", "urn:kb", test_alone._triples(rng)
        if rng.random() < 0.05:
            yield "cancel", rng.randrange(40)
        if rng.random() < 0.1:
            yield ("count",)


class _Counted(test_alone._Told):
    """It tells, too, what queries have counted so far."""

    def do(self, what: str, *given: Any) -> None:
        if what == "count":
            for handle in self.handles:
                stats = handle.stats
                gpms = [(name, of.matched, of.rows) for name, of in stats.gpms.items()]
                self.log.append((what, stats.events, stats.relevant, stats.matches, gpms))
        elif what == "cancel":
            for handle in self.handles[given[0] :][:1]:
                handle.cancel()
        else:
            super().do(what, *given)


def _answer(seed: int, **options: Any) -> tuple[object, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_alone, "_script", _script)
        patch.setattr(test_alone, "_Told", _Counted)
        patch.setattr(history, "_WORTH", 5)
        return test_alone._answer(seed, **options)


@settings(max_examples=examples(50))
@given(st.integers(0, 2**64 - 1))
@pytest.mark.slow
def test_nobody_can_tell(seed: int) -> None:
    answer = _answer(seed)
    assert answer == _answer(seed, is_ordered=True)
    assert answer == _answer(seed, by_dicts=True)


@pytest.mark.parametrize("operator", [";", ":"])
@pytest.mark.few(1)
def test_one_call_for_all(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those are visited whose matches an event completes."""
    asked, together = Counter[int](), Dispatcher._see_together

    def counted(jobs: Dispatcher, group: Any, of: Sequence[Any], *given: Any) -> Sequence[Any]:
        asked[len(of)] += 1
        return together(jobs, group, of, *given)

    monkeypatch.setattr(Dispatcher, "_see_together", counted)
    engine, found = spaseq.Engine(), Counter[int]()
    for number in range(8):
        engine.register(
            f"""SELECT * WITHIN 9 SECONDS SLIDING FROM STREAM S <{STREAM}>
            WHERE {{ SEQ(A {operator} B {operator} C)
              DEFINE GPM A ON S {{ ?x <urn:a> ?a }} DEFINE GPM B ON S {{ ?x <urn:b> ?b }}
              DEFINE GPM C ON S {{ ?x <urn:c{number}> ?c }} }}""",
            partial(lambda number, _: found.update([number]), number),
        )
    # While events are kept to say why there is no match, they are more than numbers.
    for time in range(3_000):
        engine.push(STREAM, f"<urn:x> <urn:{'abz'[time % 3]}> 1 .", time)
    for time in range(3_000, 3_009):
        kind = ["a", "b", f"c{time % 8}"][time % 3]
        engine.push(STREAM, f"<urn:x> <urn:{kind}> 1 .", time)
    assert asked[8] > 100
    assert asked[1] == 3
    assert set(found) == {time % 8 for time in (3_002, 3_005, 3_008)}


@pytest.mark.slow
@pytest.mark.parametrize("operator", [";", ":"])
def test_a_group_that_is_followed_by_another(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes later shares when the windows of before are over: nothing is lost, nor counted twice."""

    def told(count: int) -> list[tuple[int, int, list[tuple[int, int]]]]:
        engine, rng = spaseq.Engine(), random.Random(3)
        handles: list[spaseq.Handle] = []
        for time in range(3_000):
            if len(handles) < count and time in (0, 1, 1_200, 1_900):
                handles.append(
                    engine.register(
                        f"""SELECT * WITHIN 300 SECONDS SLIDING FROM STREAM S <{STREAM}>
                        WHERE {{ SEQ(A {operator} B {operator} C)
                          DEFINE GPM A ON S {{ ?x <urn:a> ?a }} DEFINE GPM B ON S {{ ?x <urn:b> ?b }}
                          DEFINE GPM C ON S {{ ?x <urn:c{len(handles)}> ?c }} }}""",
                        lambda _: None,
                    )
                )
            kind = rng.choice(["a", "b", "c0", "c1", "c2", "c3"])
            engine.push(STREAM, f"<urn:x{rng.randrange(40)}> <urn:{kind}> 1 .", time)
        return [
            (h.stats.relevant, h.stats.matches, [(of.matched, of.rows) for of in h.stats.gpms.values()])
            for h in handles
        ]

    # The first of so many events are kept to say why there is no match.
    monkeypatch.setattr(stream_set, "Sample", partial(Sample, 1, 1))
    answer = told(4)
    monkeypatch.setattr(Dispatcher, "_next", lambda *_: None)
    assert answer == told(4)
