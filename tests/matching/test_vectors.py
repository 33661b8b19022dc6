"""2,400 random queries with their matches by an independent brute force, through the public API."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spaseq

NS = "http://example.org/"

Chosen = list[list[tuple[str, int]]]


def run(case: dict[str, Any], matcher: str | None) -> Chosen:
    """The matches of a vector, as its file writes them: pairs of GPM and event, both sorted."""
    engine = spaseq.Engine(matcher=matcher)
    with warnings.catch_warnings():
        # Vacuous negations and unread streams are part of the random queries.
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handle = engine.register(str(case["query"]))
        for e in sorted(case["events"], key=lambda e: (e["time"], e["stream"], e["n"])):
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


def differences(path: Path, matcher: str | None, every: int) -> list[int]:
    """The seeds of the vectors that a matcher answers otherwise, of every so many.

    None is the planned one of each query.
    """
    cases = json.loads(path.read_text())["cases"]
    assert len(cases) == 2_400
    if matcher == "interpreter":
        cases = [case for case in cases if "AFTER MATCH SKIP" not in case["query"]]
        assert len(cases) == 2_125
    wrong = []
    for case in cases[::every]:
        if run(case, matcher) != sorted(sorted((gpm, i) for gpm, i in match) for match in case["matches"]):
            wrong.append(case["seed"])
    return wrong


@pytest.mark.parametrize("matcher", [None, "reference", "interpreter"])
def test_some_vectors(shared: Callable[[str], Path], matcher: str | None) -> None:
    assert differences(shared("seq-vectors") / "vectors-2.json", matcher, 8) == []


@pytest.mark.long
@pytest.mark.parametrize("matcher", [None, "reference", "interpreter"])
def test_all_vectors(shared: Callable[[str], Path], matcher: str | None) -> None:
    assert differences(shared("seq-vectors") / "vectors-2.json", matcher, 1) == []
