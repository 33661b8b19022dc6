"""Queries that begin alike, in an engine that is killed and started again: each is as if it were alone."""

from __future__ import annotations

import random
import warnings

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from tests.conftest import examples
from tests.engine.test_shared_prefixes import _answers, _Drawn, _sorted
from tests.streams import NS


@pytest.mark.slow
@pytest.mark.parametrize("matcher", ["nfa", "tecs", "lazy", "nfa, skip"])
@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_a_restart_leaves_each_as_if_alone(
    matcher: str, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Those that go on together after a kill give what is not committed again, and the rest."""
    rng = random.Random(seed)
    texts = [text.partition("LIMIT")[0] for text in _Drawn(rng, matcher).texts]
    path, drawn = tmp_path_factory.mktemp("restarts") / "state", _Drawn(rng, matcher)
    events = [(drawn.event(), number // 2, f"{NS}e{number}") for number in range(rng.randint(10, 40))]
    # Then all windows are over: an engine with a state leaves the last ones open.
    events += [("", 1_000 + number, f"{NS}last{number}") for number in range(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        alone = [spaseq.Engine(matcher=matcher.partition(",")[0]) for _ in texts]
        expected = [engine.register(text) for engine, text in zip(alone, texts, strict=True)]
        engine = spaseq.Engine(matcher=matcher.partition(",")[0], state=path, commit_every=None)
        for number, text in enumerate(texts):
            engine.register(text, name=f"q{number}")
        engine.commit()
        found: list[list[spaseq.Match]] = [[] for _ in texts]
        kept, committed, at = [list(mine) for mine in found], 0, 0
        kills = sorted(rng.sample(range(len(events)), 2))
        while at < len(events):
            graph, time, name = events[at]
            engine.push(NS + "S", graph, time, name=name)
            at += 1
            for number, mine in enumerate(found):
                if rng.random() < 0.5:
                    mine += engine.queries[f"q{number}"].matches()
            if rng.random() < 0.3:
                engine.commit()
                kept, committed = [list(mine) for mine in found], at
            if kills and at > kills[0]:
                kills.pop(0)
                engine.abandon()
                found, at = [list(mine) for mine in kept], committed
                engine = spaseq.Engine(matcher=matcher.partition(",")[0], state=path, commit_every=None)
        handles = dict(engine.queries)
        engine.close()
        for other in alone:
            for graph, time, name in events:
                other.push(NS + "S", graph, time, name=name)
            other.close()
    for number, (mine, handle) in enumerate(zip(found, expected, strict=True)):
        mine += handles[f"q{number}"].matches()
        given_, wanted = (_answers(_sorted(of, matcher == "tecs")) for of in (mine, handle.matches()))
        assert given_ == wanted, texts[number]
