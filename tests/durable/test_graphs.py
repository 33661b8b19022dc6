"""Background graphs that change are in a state: each event meets the version that was there when it came."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine.durable import journal, state
from tests.streams import NS, events_of, letters, query

KB = f"{NS}kb"
FIRST = f"<{KB}/x> <{NS}is> 1 ."
_ASKS = f"GRAPH <{KB}> {{ ?x :is ?av }}"


def _triples(*values: int) -> list[ox.Triple]:
    node, of, kind = (
        ox.BlankNode("b"),
        ox.NamedNode(f"{NS}is"),
        ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer"),
    )
    return [ox.Triple(node, of, ox.Literal(str(value), datatype=kind)) for value in values]


def _push(engine: spaseq.Engine, words: str) -> None:
    for letter in letters(words):
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


def _found(engine: spaseq.Engine) -> list[str]:
    return [events_of(match) for match in engine.queries["q"].matches()]


@pytest.mark.parametrize("commits", [True, False])
def test_a_change_is_there_after_a_kill(tmp_path: Path, commits: bool) -> None:
    path = tmp_path / "s"
    engine = spaseq.Engine({KB: FIRST}, state=path, commit_every=None)
    engine.register(query("A ; B", "50 SECONDS SLIDING", {"A": _ASKS}), name="q")
    _push(engine, "a1=1 a2=2")  # the first is one
    engine.commit()
    engine.change(KB, _triples(2, 3))
    _push(engine, "a3=1 a4=2")  # the second is one
    if commits:
        engine.commit()
    engine.abandon()
    with spaseq.Engine({KB: FIRST}, state=path) as again:
        (graph,) = again.kb.graphs.values()
        assert list(graph) == (
            _triples(2, 3) if commits else next(iter(spaseq.KnowledgeBase({KB: FIRST}).graphs.values()))
        )
        _push(again, "b5")
        assert _found(again) == (["a1b5", "a4b5"] if commits else ["a1b5"])


def test_a_graph_that_went(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with spaseq.Engine({KB: FIRST}, state=path) as engine:
        engine.register(query("A ; B", "50 SECONDS SLIDING", {"A": _ASKS}), name="q")
        _push(engine, "a1=1")
        engine.change(KB, None)
        _push(engine, "a2=1")
    with spaseq.Engine({KB: FIRST}, state=path) as engine:
        assert not engine.kb.graphs
        with pytest.raises(spaseq.KnowledgeError, match="not supplied"):
            engine.register(query("A", gpms={"A": _ASKS}), name="other")
        _push(engine, "b3")
        assert _found(engine) == ["a1b3"]


def test_versions_outlive_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "BLOCK", 4)
    monkeypatch.setattr(state, "PER_QUERY", 0)
    path = tmp_path / "s"
    text = query("A ; B", "4 SECONDS SLIDING", {"A": _ASKS})
    whole = spaseq.Engine({KB: FIRST})
    expected = whole.register(text)
    found: list[str] = []
    cuts = 0
    for turn in range(30):
        with spaseq.Engine({KB: FIRST}, state=path, commit_every=None) as engine:
            engine.register(text, name="q")
            for one in (engine, whole):
                if turn % 7 == 1:
                    one.change(KB, None if turn % 14 == 1 else _triples(1, turn % 3))
                _push(one, " ".join(f"{'aab'[t % 3]}{t}={t % 4}" for t in range(5 * turn, 5 * turn + 5)))
            found += _found(engine)
            engine.commit()
            assert engine._core.state is not None
            cuts += bool(engine._core.state.store.graphs())
    assert found == [events_of(match) for match in expected.matches()]
    assert found
    assert cuts > 10
