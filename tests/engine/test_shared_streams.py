"""Queries over two streams that begin alike: each is as if it were alone, simultaneous events included."""

from __future__ import annotations

import random
import re
import warnings
from datetime import timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from tests.conftest import examples
from tests.engine.test_shared_prefixes import _compare, _Drawn, _Told
from tests.streams import NS


def _over_two(text: str, streams: str) -> str:
    """A query whose GPMs are on streams, each by its place in the sequence."""
    gpms = re.sub(
        r"DEFINE GPM (q\d+G(\d+)) ON S", lambda m: f"DEFINE GPM {m[1]} ON {streams[int(m[2])]}", text
    )
    return gpms.replace(f"FROM STREAM S <{NS}S>", f"FROM STREAM S <{NS}S> FROM STREAM T <{NS}T>")


@pytest.mark.parametrize("matcher", ["nfa", "nfa, skip"])
@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
@pytest.mark.few(1)
def test_as_if_each_were_alone_on_two_streams(matcher: str, seed: int) -> None:
    rng = random.Random(seed)
    drawn = _Drawn(rng, matcher)
    streams = "".join(rng.choice("ST") for _ in range(9))
    texts = [_over_two(text.replace("EVENTS", "SECONDS"), streams) for text in drawn.texts]
    lateness = timedelta(seconds=rng.choice([0, 0, 3]))
    together = spaseq.Engine(lateness=lateness, matcher=matcher.partition(",")[0])
    engines = [spaseq.Engine(lateness=lateness, matcher=matcher.partition(",")[0]) for _ in texts]
    called = rng.random() < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        shared = [_Told(together, text, called) for text in texts]
        alone = [_Told(engine, text, called) for engine, text in zip(engines, texts, strict=True)]
    time = 0
    for number in range(rng.randint(10, 40)):
        time += rng.choice([0, 0, 1, 2])
        graph, name, stream = drawn.event(), f"{NS}e{number}", NS + rng.choice("ST")
        for engine in [together, *engines]:
            engine.push(stream, graph, time, name=name)
        if rng.random() < 0.05:
            gone = rng.randrange(len(shared))
            shared[gone].handle.cancel()
            alone[gone].handle.cancel()
        if rng.random() < 0.3:
            _compare(shared, alone, texts)
    for engine in [together, *engines]:
        engine.close()
    _compare(shared, alone, texts)
