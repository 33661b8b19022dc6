"""Inputs modelled on public reports, and what each must give."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import spaseq
from spaseq.errors import SpaseqWarning
from spaseq.sources.proposal import propose

S = "http://example.org/s"
AT = "time=<http://example.org/at>"


@pytest.fixture
def case(shared: Callable[[str], Path]) -> Path:
    return shared("field-cases")


def rows(query: Path, source: str) -> tuple[list[tuple[str, ...]], str]:
    """Return ?a and ?b of each row, and all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = list(spaseq.run(query.read_text(), {S: source}))
    said = "\n".join(str(w.message) for w in caught if issubclass(w.category, SpaseqWarning))
    return [tuple(str(row[v]) for v in ("a", "b")) for match in found for row in match.bindings], said


@pytest.mark.parametrize(("name", "query"), [("rml.nt", "rise.rq"), ("sib.ttl", "rise2.rq")])
def test_records_of_different_sizes(case: Path, name: str, query: str) -> None:
    assert "no triple connects" in rows(case / query, f"{case / name}?triples=3&{AT}")[1]


def test_a_time_in_2057(case: Path) -> None:
    found, said = rows(case / "rise.rq", f"{case / 'fut.nq'}?max_ahead=1 DAYS")
    assert found == [("1", "2"), ("2", "3"), ("3", "4")]
    assert "1 bad and 0 late" in said
    found, said = rows(case / "rise.rq", str(case / "fut.nq"))
    assert found == []
    assert "which event 2 moved with its time 2057-08-08" in said
    assert "max_ahead" in said


def test_activity_streams(case: Path) -> None:
    assert "remote context" in str(propose(case / "as.ndjson").refusal)
