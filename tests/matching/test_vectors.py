"""2,000 random queries with their matches by an independent brute force, through the public API."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import spaseq

NS = "http://example.org/"

Chosen = list[list[tuple[str, int]]]


def run(case: dict[str, object], evaluator: str) -> Chosen:
    """The matches of a vector, as its file writes them: pairs of GPM and event, both sorted."""
    engine = spaseq.Engine(evaluator=evaluator)
    with warnings.catch_warnings():
        # Vacuous negations and unread streams are part of the random queries.
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handle = engine.register(str(case["query"]))
        for e in sorted(case["events"], key=lambda e: (e["time"], e["stream"], e["n"])):  # type: ignore[call-overload]
            triples = f"<{NS}e{e['i']}> a <{NS}{e['type']}> ; <{NS}v> {e['v']} ; <{NS}k> {e['k']} ."
            engine.push(NS + e["stream"].lower(), triples, e["time"], name=f"{NS}e{e['i']}")
        engine.close()
    return sorted(
        sorted(
            (gpm, int(str(event.graph).removeprefix(NS + "e")))
            for gpm, events in match.events.items()
            for event in events
        )
        for match in handle.matches()
    )


@pytest.mark.parametrize("evaluator", ["reference", "runs"])
def test_vectors(shared: Callable[[str], Path], evaluator: str) -> None:
    cases = json.loads((shared("seq-vectors") / "vectors.json").read_text())["cases"]
    assert len(cases) == 2_000
    wrong = []
    for case in cases:
        expected = sorted(sorted((gpm, i) for gpm, i in match) for match in case["matches"])
        if run(case, evaluator) != expected:
            wrong.append(case["seed"])
    assert wrong == []
