"""The W3C's SPARQL evaluation tests on both routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyoxigraph import BlankNode, NamedNode

from spaseq.events import BatchBuilder, Clock
from spaseq.patterns.oxigraph import General
from spaseq.patterns.spectra.joins import Spectra, covers
from spaseq.terms.dictionary import Dictionary
from tests.patterns.w3c import Case, Rows, cases, same_rows


def _answers(case: Case, route: type[Spectra] | type[General]) -> Rows:
    dictionary = Dictionary()
    builder = BatchBuilder(dictionary, NamedNode("http://example.org/stream"), Clock.TICKS)
    builder.add(0, 0, case.triples())
    found = route(case.group(), dictionary, None).evaluate(builder.build()).everywhere(np.arange(1))
    return [{name: dictionary.term(i) for name, i in row.items()} for row in found.rows(0)]


def _passes(case: Case, route: type[Spectra] | type[General]) -> bool:
    found, expected = _answers(case, route), case.expected()
    if isinstance(expected, bool):
        return bool(found) == expected
    if case.result.suffix == ".csv":
        return Counter(map(_text, found)) == Counter(map(_text, expected))
    return same_rows(found, expected)


def _text(row: dict[str, object]) -> frozenset[tuple[str, str]]:
    """What CSV can tell of a row: neither types nor which blank node."""
    return frozenset(
        (name, "_:" if isinstance(term, BlankNode) or term.value.startswith("_:") else term.value)
        for name, term in row.items()
    )


@pytest.mark.parametrize(("suite", "on_spectra", "in_all"), [("sparql10", 227, 246), ("sparql11", 64, 210)])
def test_evaluation_suite(suite: str, on_spectra: int, in_all: int, shared: Callable[[str], Path]) -> None:
    tests = list(cases(shared("w3c-rdf-tests") / "sparql" / suite))
    covered = [case for case in tests if covers(case.group()) is None]
    assert (len(covered), len(tests)) == (on_spectra, in_all)
    failed = {case.name for case in tests if not _passes(case, General)}
    failed |= {case.name for case in covered if not _passes(case, Spectra)}
    assert failed == set()
