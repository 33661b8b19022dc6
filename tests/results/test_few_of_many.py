"""Batches of a few matches in a long stretch of events have what the matches have one by one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import spaseq

_ALERT = """SELECT * WITHIN 40 SECONDS SLIDING FROM STREAM S <urn:s> WHERE {{ SEQ(A {operator} B)
    DEFINE GPM A ON S {{ <urn:s{share}> <urn:a> ?x }}
    DEFINE GPM B ON S {{ <urn:s{share}> <urn:b> ?y FILTER(?y < {bound}) }} }}"""


def _source(rng: random.Random, rows: int, values: str) -> spaseq.Source:
    """Rows of nine kinds; each event has a value, or two that make two solutions."""
    table = pa.table(
        {
            "at": sorted(rng.randrange(rows // 2) for _ in range(rows)),
            "s": [rng.randrange(8) for _ in range(rows)],
            "p": [rng.choice("abcdefghi") for _ in range(rows)],
            "v": [rng.randrange(9) for _ in range(rows)],
        }
    )
    template = f"<urn:s{{s}}> <urn:{{p}}> {values} ."
    return spaseq.Source("urn:s", spaseq.table(table, time="at", template=template))


def _columns(handle: spaseq.Handle) -> list[str]:
    found = []
    for batch in handle.batches():
        rows = batch.bindings
        terms = [str(term.value) for term in rows.terms]
        named = {name: [terms[i] for i in column] for name, column in rows.columns.items()}
        for i in range(len(batch)):
            events = [(g, of.n[of.offsets[i] : of.offsets[i + 1]].tolist()) for g, of in batch.events.items()]
            part = range(int(rows.offsets[i]), int(rows.offsets[i + 1]))
            solutions = [[(name, named[name][j]) for name in sorted(named)] for j in part]
            found.append(f"{events} {sorted(solutions)}")
    return found


def _one_by_one(handle: spaseq.Handle) -> list[str]:
    found = []
    for match in handle.matches():
        events = [(g, [event.n for event in of]) for g, of in match.events.items()]
        solutions = [[(name, str(row[name])) for name in sorted(row)] for row in match.bindings]
        found.append(f"{events} {sorted(solutions)}")
    return found


@pytest.mark.parametrize("values", ["?v", "?v, 100"])
@pytest.mark.parametrize(("matcher", "operator"), [(None, ":"), ("nfa", ":"), (None, ";")])
@pytest.mark.few(1, ci=3)
def test_columns_say_what_matches_do(matcher: str | None, operator: str, values: str) -> None:
    texts = [_ALERT.format(operator=operator, share=i // 5, bound=2 + i % 5) for i in range(40)]
    found = []
    for read in (_columns, _one_by_one):
        engine = spaseq.Engine() if matcher is None else spaseq.Engine(matcher=matcher)
        handles = [engine.register(text) for text in texts]
        engine.feed(_source(random.Random(3), 3_000, values))
        engine.close()
        found.append([read(handle) for handle in handles])
    assert [len(of) for of in found[0]] == [len(of) for of in found[1]]
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 100


def test_columns_of_one_are_those_of_many() -> None:
    """A table of constants splits what it finds by query; alone, nothing is split."""
    texts = [_ALERT.format(operator=";", share=i // 5, bound=2 + i % 5) for i in range(40)]
    engine = spaseq.Engine()
    handles = [engine.register(text) for text in texts]
    engine.feed(_source(random.Random(3), 3_000, "?v"))
    engine.close()
    assert handles[0].stats.shared_with == 39
    for text, handle in zip(texts, handles, strict=True):
        alone = spaseq.Engine()
        one = alone.register(text)
        alone.feed(_source(random.Random(3), 3_000, "?v"))
        alone.close()
        assert _columns(handle) == _columns(one)
