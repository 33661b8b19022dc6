"""A sample has the first events, however they came, and no more than it may."""

from __future__ import annotations

import pytest
from pyoxigraph import NamedNode

from spaseq.alone import Single, gathered
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.terms.dictionary import Dictionary
from spaseq.why.sample import Sample


def _event(dictionary: Dictionary, number: int, triples: int = 2) -> Single:
    s, p = (dictionary.pin(NamedNode(f"urn:{name}")) for name in "sp")
    terms = [t for i in range(triples) for t in (s, p, dictionary.pin(NamedNode(f"urn:{i}")))]
    return Single(dictionary, Clock.TICKS, Stamp(number, s, number), 0, terms)


@pytest.mark.parametrize("together", [(), (70,), (0, 63, 64, 129)])
def test_alone_and_together(together: tuple[int, ...]) -> None:
    dictionary = Dictionary()
    sample = Sample(events=150, triples=280)
    number = 0
    for _ in range(200):
        batch: EventBatch = _event(dictionary, number)
        if number in together:
            batch = gathered([_event(dictionary, number), _event(dictionary, number + 1)])
        if sample.open:
            sample.add(batch)
        number += len(batch)
    found = sample.batch()
    assert found is not None
    assert found.n.tolist() == list(range(140))
    assert not sample.open
    copied = sample.copy().batch()
    assert copied is not None
    assert len(copied) == 140


def test_the_first_event_however_large() -> None:
    sample = Sample(events=5, triples=3)
    sample.add(_event(Dictionary(), 0, triples=9))
    found = sample.batch()
    assert found is not None
    assert len(found.s) == 9
