"""``explain``: what a plan says, in words and as JSON."""

from __future__ import annotations

import json

import pytest

from spaseq.automaton.pattern import normalise
from spaseq.language.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.model import Bounds
from spaseq.matching.plan import explain, maker
from spaseq.terms import Dictionary

QUERY = """
PREFIX : <http://example.org/>
SELECT * WITHIN 5 MINUTES SLIDING
FROM STREAM S1 <http://example.org/s1> FROM STREAM S2 <http://example.org/s2>
WHERE {
  SEQ(A ; !C ; B{2,})
  DEFINE GPM A ON S1 { ?a :k ?k ; :v ?v FILTER(?v > 3) }
  DEFINE GPM B ON S1, S2 { ?b :k ?k ; :w ?w FILTER(?w > ?v) }
  DEFINE GPM C ON S2 { ?c :next+ ?k }
  FILTER(?b != ?a)
}
"""


def test_words() -> None:
    text = str(explain(parse(QUERY)))
    assert "sequence   A ; !C ; B{2,}" in text
    assert "sliding: a match spans at most 5 minutes" in text
    assert "all GPMs bind ?k: PARTITION BY is possible" in text
    assert "GPM A on S1: SPECTRA" in text
    assert "per event  FILTER(?v > 3)" in text
    assert "per run    FILTER(?w > ?v)" in text
    assert "GPM C on S2: general (it has a property path with *, + or ?), only negated" in text
    assert "WHERE FILTER(?b != ?a) when the match ends" in text
    assert "1 → 2  !C ; B   runs found by ?k" in text
    assert "2 ends a match if ≥2×" in text
    assert "evaluator  runs: " in text


def test_partition() -> None:
    text = QUERY.replace("SLIDING", "SLIDING PARTITION BY ?k")
    assert "partition  by ?k\n" in str(explain(parse(text)))


def test_json() -> None:
    value = explain(parse(QUERY)).as_json()
    assert json.loads(json.dumps(value)) == value
    assert value["partition"] == {"by": [], "shared": ["k"]}
    assert [gpm["route"] for gpm in value["gpms"]] == ["SPECTRA", "SPECTRA", "general"]
    assert value["where"] == [{"filter": "?b != ?a", "at": "when the match ends"}]


def test_an_all_shows_the_automata_of_its_operands() -> None:
    lines = str(explain(parse(QUERY.replace("A ; !C ; B{2,}", "ALL(A : B, C)")))).splitlines()
    assert [line.strip() for line in lines if "states," in line] == [
        "automaton  2 states, 1 edge",
        "A : B:   3 states, 2 edges",
        "C:       2 states, 1 edge",
    ]


def test_an_unknown_evaluator() -> None:
    pattern = normalise(parse(QUERY))
    context = Context(pattern, Dictionary(), lambda *_: False)
    with pytest.raises(ValueError, match="no evaluator is called 'magic'"):
        maker("magic", pattern, context, Bounds(1, False, True, 0))
