"""Events pushed one by one to queries of a template with ``:``: each is a few numbers for all of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.events import EventBatch
from spaseq.matching.tecs.update import Update
from tests.conftest import examples

_S, _T = "urn:s", "urn:t"
_SEQUENCES = ["A : B", "A : B : C", "A : B+", "A : (B | C)", "A : (B & C)", "A : B : A", "ALL(A, B)"]
_WINDOWS = ["20 SECONDS", "10 SECONDS SLIDING", "8 EVENTS", "8 EVENTS SLIDING"]
_AFTER = ["", "", "", "EMIT MAX", "EMIT NEXT", "CONSUME ANY"]


def _text(sequence: str, window: str, least: int, *, second: str = _S, after: str = "") -> str:
    gpms = {
        "A": f"A ON S {{ ?m <urn:a> ?a FILTER(?a > {least}) }}",
        "B": "B ON S { ?m <urn:b> ?b }",
        "C": f"C ON {'S' if second == _S else 'T'} {{ ?m <urn:c> {least % 2} }}",
    }
    used = " ".join(f"DEFINE GPM {gpm}" for name, gpm in gpms.items() if name in sequence)
    other = "FROM STREAM T <urn:t>" if second == _T else ""
    head = f"SELECT * WITHIN {window} FROM STREAM S <urn:s> {other}"
    return f"{head} WHERE {{ SEQ({sequence}) {used} }} {after}"


def _shown(match: spaseq.Match) -> str:
    events = [(gpm, [event.n for event in some]) for gpm, some in sorted(match.events.items())]
    return str((match.start, match.end, match.partition, events, sorted(map(str, match.bindings))))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_many_are_told_what_each_alone_is_told(seed: int) -> None:
    rng = random.Random(seed)
    sequence, window, after = rng.choice(_SEQUENCES), rng.choice(_WINDOWS), rng.choice(_AFTER)
    window += rng.choice(["", "", " PARTITION BY ?m"]) if "C" not in sequence else ""
    second = rng.choice([_S, _T]) if "C" in sequence else _S
    # More solutions of one event than compiled code has room for, now and then.
    count = rng.choice([2, 3, 8, 40])
    texts = [_text(sequence, window, i % 5, second=second, after=after) for i in range(count)]
    together, judge = spaseq.Engine(), spaseq.Engine(matcher="reference")
    found: list[list[spaseq.Match]] = [[] for _ in texts]
    handles = [together.register(text, of.append) for text, of in zip(texts, found, strict=True)]
    judges = [judge.register(text) for text in dict.fromkeys(texts)]
    time = 0
    for _ in range(rng.randint(5, 25)):
        time += rng.choice([0, 1, 1, 2, 3])
        triples = [
            f"<urn:m{rng.randrange(3)}> <urn:{rng.choice('abc')}> {rng.randrange(5)} ."
            for _ in range(rng.choice([1, 1, 2, 3]))
        ]
        stream = second if rng.random() < 0.3 else _S
        for engine in (together, judge):
            engine.push(stream, " ".join(triples), time)
        expected = [sorted(map(_shown, handle.matches())) for handle in judges]
        for number, of in enumerate(found):
            assert sorted(map(_shown, of)) == expected[number % len(judges)], (seed, texts[number])
            of.clear()
    for number, handle in enumerate(handles):
        one, other = handle.stats, judges[number % len(judges)].stats
        assert (one.matches, one.rows, one.relevant) == (other.matches, other.rows, other.relevant), seed
        assert one.gpms == other.gpms, seed


def test_none_is_taken_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight queries have eight solutions of an event, one each."""
    taken: list[int] = []
    whole = Update.take

    def noted(self: Update, batch: EventBatch, *rest: object) -> None:
        taken.append(len(batch))
        whole(self, batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Update, "take", noted)
    engine, found = spaseq.Engine(), 0

    def count(_: spaseq.Match) -> None:
        nonlocal found
        found += 1

    for least in range(8):
        engine.register(_text("A : B", "20 SECONDS", least), count)
    for time in range(60):
        engine.push(_S, f"<urn:m> <urn:{'ab'[time % 2]}> {10 + time} .", time)
    assert found == 8 * sum((time % 20 + 1) // 2 for time in range(1, 60, 2))
    assert taken == [1]  # the first, with which the queries begin
