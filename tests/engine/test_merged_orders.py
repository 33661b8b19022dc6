"""Queries that came at different times to a stream share an order once the same is to come for them.

Until then other events are late for each. What was last, as `,` asks, is what was last for the query.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from tests.conftest import examples

#: A query to be registered, by its sequence; an event, as its predicate and its time; or time that passes.
Step = str | tuple[str, int] | int

_SEQUENCES = ["A , C", "A : C", "A ; B , C", "A , B+[,]", "A , !B : C", "A , B?", "A , B EVENTS"]


def _query(sequence: str) -> str:
    sequence, unit = (sequence[:-7], "EVENTS") if sequence.endswith("EVENTS") else (sequence, "SECONDS")
    gpms = " ".join(
        f"DEFINE GPM {gpm} ON S {{ ?{gpm} <urn:{gpm.lower()}> ?v{gpm} }}" for gpm in "ABC" if gpm in sequence
    )
    return f"SELECT * WITHIN 4 {unit} SLIDING FROM STREAM S <urn:s> WHERE {{ SEQ({sequence}) {gpms} }}"


def _run(steps: Sequence[Step], registered: Collection[int], lateness: int) -> Mapping[int, object]:
    """What those queries find that these steps register, and what they count."""
    engine = spaseq.Engine(lateness=timedelta(seconds=lateness))
    handles: dict[int, spaseq.Handle] = {}
    found: dict[int, list[str]] = {number: [] for number in registered}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        for number, step in enumerate([*steps, None]):
            if step is None:
                engine.close()
            elif isinstance(step, int):
                engine.advance(step)
            elif isinstance(step, tuple):
                engine.push("urn:s", f"<urn:x> <urn:{step[0]}> 1 .", step[1], name=f"urn:e{number}")
            elif number in registered:
                handles[number] = engine.register(_query(step))
            for which, handle in handles.items():
                found[which] += map(_shown, handle.matches())
    counted = {which: handle.stats for which, handle in handles.items()}
    return {
        which: (sorted(found[which]), of.events, of.late, of.relevant, of.gpms)
        for which, of in counted.items()
    }


def _shown(match: spaseq.Match) -> str:
    return str([(gpm, [str(e.graph) for e in found]) for gpm, found in sorted(match.events.items())])


def _check(steps: Sequence[Step], lateness: int) -> None:
    registered = [number for number, step in enumerate(steps) if isinstance(step, str)]
    together = _run(steps, registered, lateness)
    for number in registered:
        assert together[number] == _run(steps, [number], lateness)[number], steps


@pytest.mark.parametrize(
    ("steps", "lateness"),
    [
        # The first query remembers an A from before the second one came,
        (["A , C", ("x", 10), ("a", 17), "A , C", ("x", 5), ("c", 18), ("x", 22), ("x", 30)], 5),
        # or nothing, since it does not ask for what was last;
        (["A : C", ("x", 12), "A , C", ("a", 11), ("x", 12), ("c", 13)], 0),
        # that nothing comes of it now does not mean that it was this query's.
        (["A , C", ("a", 12), "A , C", ("x", 11), ("x", 14), ("c", 14)], 0),
    ],
)
def test_what_was_last_is_what_was_last_for_the_query(steps: list[Step], lateness: int) -> None:
    _check(steps, lateness)


def _steps(rng: random.Random) -> Iterator[Step]:
    """Queries come while time goes on, and sometimes back a little."""
    yield rng.choice(_SEQUENCES)
    time = 0
    for _ in range(rng.randint(4, 16)):
        chance = rng.random()
        if chance < 0.2:
            yield rng.choice(_SEQUENCES)
        elif chance < 0.25:
            yield time + rng.randint(-1, 2)
        else:
            time += rng.choice([0, 0, 1, 1, 2])
            yield rng.choice("aabbcx"), max(0, time - rng.choice([0, 0, 1, 3]))


@settings(max_examples=examples(300), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_queries_come_to_the_same_as_each_alone(seed: int) -> None:
    rng = random.Random(seed)
    _check([*_steps(rng)], rng.choice([0, 0, 1, 3]))
