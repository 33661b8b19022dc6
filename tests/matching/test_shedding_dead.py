"""Under a bound: what is negated has come, so that nothing comes of a partial match."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np
import pytest

from spaseq import Engine
from spaseq.bounds import WorkClock
from spaseq.matching.shedding import _kernel_known as cells
from spaseq.matching.shedding import matcher
from spaseq.matching.shedding.matcher import SheddingNfa
from tests.benchmarks import sharp

S: Final = "http://example.org/s"
T: Final = "http://example.org/t"

#: What is negated is joined with what comes before the gap, or behind it, or compared with that.
BY_KEY: Final = "?c :c ?k"
BY_LATER: Final = "?c :c ?k ; :v ?z"
BY_VALUE: Final = "?c :c ?k ; :v ?y . FILTER(?y > ?x)"
BY_LATER_VALUE: Final = "?c :c ?k ; :v ?y . FILTER(?y > ?z)"
UNLESS_BOUND: Final = "?c :c ?k ; :v ?y . FILTER(!BOUND(?z))"


def run(
    monkeypatch: pytest.MonkeyPatch,
    negated: str,
    events: list[tuple[str, str]],
    sequence: str = "A : !C : D",
    seldom: float = 0.0,
    partition: str = "",
) -> tuple[int, float]:
    """How many matches there are; how many partial matches were seen to be dead before the last event.

    ``seldom``: see ``_SELDOM``. If it is 0, all is looked at after each event.
    """
    made: list[SheddingNfa] = []
    monkeypatch.setattr(matcher, "_SELDOM", seldom)
    load = SheddingNfa._load_passes

    def noted(self: SheddingNfa) -> None:
        made.append(self)
        load(self)

    monkeypatch.setattr(SheddingNfa, "_load_passes", noted)
    other = "T" if any(stream == T for stream, _ in events) else "S"
    streams = f"FROM STREAM S <{S}>" + (f" FROM STREAM T <{T}>" if other == "T" else "")
    text = f"""PREFIX : <http://example.org/> SELECT ?a WITHIN 1000 SECONDS SLIDING {partition} {streams}
        WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ ?a :a ?k ; :v ?x }}
        DEFINE GPM C ON {other} {{ {negated} }} DEFINE GPM D ON S {{ ?d :d ?k ; :v ?z }} }}"""
    engine = Engine(latency=timedelta(days=1), clock=WorkClock(1e-6))
    handle = engine.register(text)
    found, died = 0, 0.0
    for i, (stream, event) in enumerate(events):
        for shedding in made:
            died = float(shedding._observed.model.counts.reshape(-1, cells.COUNTS)[:, cells.DIED].sum())
        # Events of two streams have the same time.
        engine.push(
            stream, f"PREFIX : <http://example.org/> <urn:{i}> {event} .", i if other == "S" else i // 2
        )
        found += len(list(handle.matches()))
    engine.close()
    return found + len(list(handle.matches())), died


A: Final = (S, ":a 1 ; :v 5")
D: Final = (S, ":d 1 ; :v 7")
#: Comes to nothing.
OTHER: Final = (S, ":a 9 ; :v 0")


@pytest.mark.parametrize(
    ("negated", "event", "found", "dead"),
    [
        (BY_KEY, ":c 1", 0, True),
        (BY_KEY, ":c 2", 1, False),
        (BY_VALUE, ":c 1 ; :v 6", 0, True),
        (BY_VALUE, ":c 1 ; :v 4", 1, False),
        (BY_LATER, ":c 1 ; :v 7", 0, False),
        (BY_LATER, ":c 1 ; :v 6", 1, False),
        (BY_LATER_VALUE, ":c 1 ; :v 6", 1, False),
        (BY_LATER_VALUE, ":c 1 ; :v 8", 0, False),
        (UNLESS_BOUND, ":c 1 ; :v 8", 1, False),
    ],
)
def test_it_is_dead_when_nothing_to_come_can_part_it_from_what_is_negated(
    monkeypatch: pytest.MonkeyPatch, negated: str, event: str, found: int, dead: bool
) -> None:
    matches, died = run(monkeypatch, negated, [A, OTHER, (S, event), OTHER, OTHER, D])
    assert matches == found
    assert (died > 0) == dead


def test_of_two_streams_what_has_the_same_time_does_not_come_before(monkeypatch: pytest.MonkeyPatch) -> None:
    matches, died = run(monkeypatch, BY_KEY, [A, OTHER, (T, ":c 1"), D])
    assert (matches, died) == (1, 0.0)
    matches, died = run(monkeypatch, BY_KEY, [A, OTHER, (T, ":c 1"), OTHER, OTHER, OTHER, D])
    assert matches == 0
    assert died > 0


def test_what_is_negated_at_the_beginning_of_a_match_kills_none_that_come_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = [OTHER, A, OTHER, (S, ":c 1"), OTHER, D]
    assert run(monkeypatch, BY_KEY, events, "!C : A : D") == (1, 0.0)


@pytest.mark.parametrize("partition", ["", "PARTITION BY ?k"])
@pytest.mark.parametrize(
    ("negated", "event", "sequence", "dead"),
    [
        (BY_KEY, ":c 1", "A : !C : D", 1.0),
        (BY_KEY, ":c 2", "A : !C : D", 0.0),
        (BY_KEY, ":c 1", "A ; !C ; D", 1.0),
        (BY_VALUE, ":c 1 ; :v 6", "A : !C : D", 1.0),
        (BY_VALUE, ":c 1 ; :v 4", "A : !C : D", 0.0),
        (BY_LATER, ":c 1 ; :v 7", "A : !C : D", 0.0),
        ("?c :c ?n", ":c 3", "A : !C : D", 0.0),  # has no key by which they are found
        (BY_KEY, ":c 1", "!C : A : D", 0.0),
    ],
)
def test_who_is_ended_by_what_is_negated_is_let_go_of_before_the_next_look(
    monkeypatch: pytest.MonkeyPatch, negated: str, event: str, sequence: str, dead: float, partition: str
) -> None:
    if partition and "?k" not in negated:
        pytest.skip("what is negated has the key, too")
    events = [OTHER, A, OTHER, (S, event), OTHER, D]
    _, died = run(monkeypatch, negated, events, sequence, 1e9, partition)
    assert died == dead


@pytest.mark.few(5, ci=9)
@pytest.mark.filterwarnings("ignore:.*TUMBLING:spaseq.errors.SpaseqWarning")
@pytest.mark.parametrize("seed", range(40))
def test_to_let_go_of_the_dead_takes_no_match(seed: int) -> None:
    """While a bound is far, all is found that is found without one."""
    rng = np.random.default_rng(seed)
    pick = rng.choice
    sequence = pick(
        [
            "A : !C : D",
            "A : !C : B : D",
            "A ; !C ; D",
            "!C : A : D",
            "A : !C : B : !C : D",
            "A : B+[:] : !C : D",
        ]
    )
    negated = pick([BY_KEY, BY_VALUE, BY_LATER, "?c :c ?n", "?c :c ?k ; :v ?x"])
    streams, other = (
        (f"FROM STREAM S <{S}> FROM STREAM T <{T}>", "T") if seed % 2 else (f"FROM STREAM S <{S}>", "S")
    )
    window = pick(["20 SECONDS SLIDING", "15 EVENTS SLIDING", "20 SECONDS TUMBLING"])
    partition = pick(["", "PARTITION BY ?k"]) if "?k" in negated else ""
    text = f"""PREFIX : <http://example.org/> SELECT * WITHIN {window} {partition} {streams}
        WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ ?a :a ?k ; :v ?x }}
        {"DEFINE GPM B ON S { ?b :b ?k ; :v ?w }" if "B" in sequence else ""}
        DEFINE GPM C ON {other} {{ {negated} }} DEFINE GPM D ON S {{ ?d :d ?k ; :v ?z }} }}"""
    bounded = Engine(matcher="nfa", latency=timedelta(days=1), clock=WorkClock(1e-6))
    engines = bounded, Engine(matcher="nfa")
    handles = [engine.register(text) for engine in engines]
    found: list[set[str]] = [set(), set()]
    for i in range(120):
        kind = pick(["a", "b", "c", "d"])
        stream = T if kind == "c" and other == "T" else S
        event = f"PREFIX : <http://example.org/> <urn:{i}> :{kind} {rng.integers(2)} ; :v {rng.integers(4)} ."
        for engine, handle, names in zip(engines, handles, found, strict=True):
            engine.push(stream, event, i // 2)
            names |= {str(match) for match in handle.matches()}
    for engine, handle, names in zip(engines, handles, found, strict=True):
        engine.close()
        names |= {str(match) for match in handle.matches()}
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")
def test_the_dead_are_let_go_of_before_what_may_go_on() -> None:
    """Of Q5 most partial matches are dead: half of the work found 45 % of the matches with them."""
    stream = sharp.Stream(300, 2.5, seed=23)
    whole = sharp.run("Q5", stream, None)
    bound = 0.5 * float(whole.latency.mean())
    some = sharp.run("Q5", stream, bound)
    assert some.matches <= whole.matches
    assert len(some.matches) > 0.6 * len(whole.matches)
    assert np.quantile(some.latency, 0.99) <= 1.1 * bound
