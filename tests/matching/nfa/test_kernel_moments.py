"""dateTimes between GPMs in the runs kernel: numbers where that is exact, and asked where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from pyoxigraph import Literal, NamedNode

from spaseq.events import Stamp
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.matching.nfa.exact import RunReplay
from spaseq.terms.dictionary import Dictionary
from tests.matching.nfa.test_kernel import count, made


def moment(text: str) -> Literal:
    return Literal(text, datatype=NamedNode("http://www.w3.org/2001/XMLSchema#dateTime"))


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [
        ("1970-01-01T01:00:00.000001+01:00", v.MOMENT, 1),
        ("1969-12-31T23:59:59Z", v.MOMENT, -1_000_000),
        ("1970-01-01T00:00:00", v.BEYOND, 0),
        ("1970-01-01T00:00:00.0000001Z", v.BEYOND, 0),
        ("9999-01-01T00:00:00Z", v.BEYOND, 0),
    ],
)
def test_numbers(text: str, code: int, number: int) -> None:
    dictionary = Dictionary()
    identifier = dictionary.intern(moment(text))
    numbers = Numbers(dictionary)
    numbers.cover(np.array([identifier]))
    assert (numbers.codes[identifier], numbers.numbers[identifier]) == (code, number)


@pytest.mark.parametrize(("operator", "matches"), [(">", 0), ("=", 1), ("<", 1), ("!=", 1), ("<=", 2)])
def test_the_tables_decide(operator: str, matches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(RunReplay, "is_relevant", never)
    kernel, dictionary = made("A : B", {"B": f"FILTER(?b {operator} ?a)"}, StreamWindow(9, False, True, 0))
    times = ["02:00:00+02:00", "01:00:00+01:00", "03:00:00+02:00"]
    key = dictionary.intern(Literal("k"))
    ids = [dictionary.intern(moment(f"2026-11-20T{time}")) for time in times]
    events = [
        Occurrence(Stamp(i, 1, i), i, {gpm: ({gpm.lower(): ids[value], "k": key},)})
        for i, (gpm, value) in enumerate([("A", 0), ("A", 2), ("B", 1)])
    ]
    # A at 0 and at 1 o'clock, B at 0 o'clock.
    assert count(kernel, dictionary, events) == matches
