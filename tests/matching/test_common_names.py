"""What queries that begin alike call what they have in common: the same, whoever was named before."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

import spaseq
from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.matching.sharing.canonical import AskedBeginning, Canonical, OutlineNumbers, canonical
from spaseq.patterns.sharing import question

#: Equal numbers of other types, and what is no number; a blank node; names that only a GPM's inside has.
_FILTERS = (
    "", "", "FILTER(?v{n} > ?v0)", "FILTER(?v{n} > 1)", "FILTER(?v{n} > ?v0 + 1)",
    "FILTER(?v{n} > ?v0 + 1.0)",
    'FILTER(?v{n} > ?v0 + "1"^^<http://www.w3.org/2001/XMLSchema#byte>)', 'FILTER(?v{n} > "1")',
    "FILTER(?v{n} > ?v0 && EXISTS {{ ?v{n} :p ?inner }})", "FILTER(?v{n} > ?v0 || ?inner{n} > 2)",
    "[] :p ?v{n}", "?v{n} :p _:b . _:b :q ?v0", "OPTIONAL {{ ?k :p ?inner{n} }}",
)  # fmt: skip


def _element(rng: random.Random, n: int) -> tuple[str, list[str]]:
    """An element, and its GPMs."""
    unit = f"G{n}{rng.choice(['', '', '', '+[:]', '{1,2}[:]', '+[;]'])}"
    gpms = []
    if rng.random() < 0.2:
        unit = f"({unit} | H{n})"
        gpms.append(f"DEFINE GPM H{n} ON S {{ ?k :{rng.choice('xy')} ?v{n} }}")
    more = rng.choice(_FILTERS).format(n=n) if n else ""
    key = rng.choice(["?k", "?k", f"?k{n}"])
    gpms.append(f"DEFINE GPM G{n} ON S {{ {key} :{rng.choice('abc')} ?v{n} . {more} }}")
    return unit, gpms


def _texts(rng: random.Random) -> Iterator[str]:
    """Queries that begin alike, most of them under the same names, some under others."""
    common = [_element(rng, n) for n in range(4)]
    by = rng.choice(["", "", "PARTITION BY ?k"])
    operators = rng.choices(";:", k=3)
    for _ in range(rng.randint(2, 12)):
        some = [one if rng.random() < 0.7 else _element(rng, n) for n, one in enumerate(common)]
        some = some[: rng.randint(2, 4)]
        sequence = some[0][0]
        for operator, (unit, _) in zip(operators, some[1:], strict=False):
            sequence += f" {operator} {unit}"
        gpms = " ".join(gpm for _, of in some for gpm in of)
        head = f"PREFIX : <urn:> SELECT * WITHIN {rng.choice([3, 5])} SECONDS {by} FROM STREAM S <urn:s>"
        q = rng.choice(["v", "v", "v", "other"])
        yield f"{head} WHERE {{ SEQ({sequence}) {gpms} }}".replace("?v", f"?{q}")


def _asked(pattern: SequencePattern, questions: OutlineNumbers) -> dict[str, AskedBeginning]:
    asked = {}
    for name, part in pattern.gpms.items():
        found = question(part.gpm, part.stateless)
        asked[name] = AskedBeginning(questions.of(found.key), found.names)
    return asked


def _named(patterns: list[SequencePattern], forgets: bool) -> list[Canonical | None]:
    questions, numbers = OutlineNumbers(), OutlineNumbers()
    found = []
    for pattern in patterns:
        found.append(canonical(pattern, _asked(pattern, questions), numbers))
        if forgets:
            numbers.elements.clear()
    return found


@given(st.integers(0, 2**64 - 1))
def test_elements_that_are_known_are_called_what_they_would_be_anew(seed: int) -> None:
    """Whatever the queries differ in: constants, their types, repetitions, filters, names."""
    patterns = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)  # of values of some iteration
        for text in _texts(random.Random(seed)):
            with suppress(spaseq.SpaseqError):  # of names that stand where they may not
                patterns.append(normalise(spaseq.prepare(text)))
    assert _named(patterns, forgets=False) == _named(patterns, forgets=True)
