"""EMIT MAX where all matches have as many events: none is a part of another, so all are kept, as columns."""

from __future__ import annotations

import random

import pytest

import spaseq
from spaseq.automaton.normal import normalise
from spaseq.language import prepare
from spaseq.language.syntax import Emit
from spaseq.matching.host import emitted

_TEXT = """SELECT * WITHIN 9 SECONDS FROM STREAM S <urn:s> WHERE {{ SEQ({sequence})
    DEFINE GPM A ON S {{ ?x <urn:a> ?a }} DEFINE GPM B ON S {{ ?x <urn:b> ?b }}
    DEFINE GPM C ON S {{ ?x <urn:c> ?c }} }} EMIT MAX"""
_ALIKE = ("A : B : C", "A : B{2}[:] : C", "(A : B) | (A : C)", "A ; C ; B", "A : A : B")
_OTHERS = ("A : B+[:] : C", "(A : B) | (A : B : C)", "A : B? : C", "A & B", "ALL(A, B)", "A : B{1,2}[:] : C")


@pytest.mark.filterwarnings("ignore::spaseq.SpaseqWarning")
@pytest.mark.parametrize("sequence", _ALIKE + _OTHERS)
@pytest.mark.parametrize("matcher", ["tecs", "lazy", "nfa"])
def test_the_reference_keeps_the_same(sequence: str, matcher: str) -> None:
    text = _TEXT.format(sequence=sequence)
    assert (emitted(normalise(prepare(text))) is Emit.ALL) is (sequence in _ALIKE)
    rng = random.Random(sequence)
    events = [
        (
            " ".join(
                f"<urn:{rng.choice('xy')}> <urn:{rng.choice('abc')}> {rng.randrange(2)} ." for _ in range(2)
            ),
            i // 2,
        )
        for i in range(24)
    ]
    found = []
    for name in (matcher, "reference"):
        engine = spaseq.Engine(matcher=name)
        try:
            handle = engine.register(text)
        except spaseq.EngineError:
            pytest.skip(f"{matcher} cannot run {sequence}")
        engine.push_many("urn:s", events)
        found.append(
            [
                (str([(gpm, [e.n for e in of]) for gpm, of in m.events.items()]), m.bindings)
                for m in handle.matches()
            ]
        )
    ours, theirs = ([(path, sorted(map(str, rows))) for path, rows in each] for each in found)
    assert ours == theirs
    assert ours
