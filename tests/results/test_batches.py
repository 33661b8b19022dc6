"""Matches as columns: a batch says what its matches say."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spaseq
from spaseq.terms.interop import from_rdflib
from tests.results.test_lines import FORMS, found

TABLE = pa.table({"at": range(40), "id": range(40), "kind": ["a", "b", "c", "d"] * 10, "n": [3, 7] * 20})
SOURCE = spaseq.table(TABLE, time="at", template="<urn:{id}> <urn:kind> ?kind ; <urn:n> ?n .")
QUERY = (
    "SELECT ?a ?n WITHIN 9 SECONDS FROM STREAM S <urn:s> WHERE { SEQ(A : C) "
    'DEFINE GPM A ON S { ?a <urn:kind> "a" ; <urn:n> ?n } DEFINE GPM C ON S { ?c <urn:kind> "c" } }'
)


@pytest.mark.parametrize("instants", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_columns_say_what_matches_say(form: str, instants: bool) -> None:
    batch = found(form, instants=instants)
    rows = batch.bindings
    for i, match in enumerate(batch):
        for time, shown in ((match.start, batch.start[i]), (match.end, batch.end[i])):
            assert shown.item() == (time if isinstance(time, int) else time.replace(tzinfo=None))
        for name, events in batch.events.items():
            chosen = slice(*events.offsets[i : i + 2])
            assert [event.n for event in match.events[name]] == events.n[chosen].tolist()
            assert [str(e.stream) for e in match.events[name]] == [
                events.streams[s] for s in events.stream[chosen]
            ]
        said = [
            {name: rows.terms[column[row]] for name, column in rows.columns.items() if column[row] >= 0}
            for row in range(*rows.offsets[i : i + 2])
        ]
        assert said == [{name: from_rdflib(t) for name, t in row.items()} for row in match.bindings]


def test_a_part_is_of_the_same_matches() -> None:
    batch = found("rows")
    assert list(batch[1:]) == list(batch)[1:]
    assert batch[-1] == list(batch)[-1]
    assert len(batch[2:2]) == 0
    with pytest.raises(IndexError):
        batch[len(batch)]
    with pytest.raises(ValueError, match="neighbours"):
        batch[::2]


def test_tables_have_a_row_for_each_row() -> None:
    batch = found("rows", instants=True)
    table = batch.to_arrow({"q": "int64"})
    assert table.column_names == ["match", "start", "end", "x", "y", "z", "r", "q"]
    assert table["match"].to_pylist() == [i for i, match in enumerate(batch) for _ in match.bindings]
    values = [row.get("x") for match in batch for row in match.bindings]
    assert table["x"].to_pylist() == [None if x is None else str(from_rdflib(x)) for x in values]
    assert table["end"].to_pylist() == [match.end for match in batch for _ in match.bindings]
    assert pa.types.is_dictionary(table["x"].type)
    assert pa.types.is_int64(table["q"].type)


def test_pandas_and_polars_have_the_same() -> None:
    (batch,) = spaseq.run(QUERY, {"S": SOURCE}).batches()
    frame, other = batch.to_pandas({"n": "double"}), batch.to_polars({"n": "double"})
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert frame["n"].tolist() == other["n"].to_list() == [3.0] * len(batch)
    assert frame["a"].tolist() == other["a"].to_list()
    with pytest.raises(spaseq.EngineError, match=r"no variable \?m"):
        batch.to_arrow({"m": "double"})
    with pytest.raises(spaseq.EngineError, match="cannot be 'decimal'"):
        batch.to_arrow({"n": "decimal"})


def ends(matches: Sequence[spaseq.Match]) -> list[tuple[object, object]]:
    return [(match.start, match.end) for match in matches]


def test_each_match_of_a_run_comes_once_however_it_is_taken() -> None:
    expected = ends(list(spaseq.run(QUERY, {"S": SOURCE})))
    batches = list(spaseq.run(QUERY, {"S": SOURCE}).batches(max_rows=4))
    assert max(map(len, batches)) == 4
    assert ends([match for batch in batches for match in batch]) == expected
    run = spaseq.run(QUERY, {"S": SOURCE})
    first = [next(run), next(run)]
    (batch,) = run.batches()
    assert ends([*first, *batch]) == expected
    with pytest.raises(spaseq.EngineError, match="max_rows=0"):
        next(run.batches(max_rows=0))


def test_a_run_that_is_closed_gives_no_more() -> None:
    run = spaseq.run(QUERY, {"S": SOURCE})
    next(run)
    run.close()
    assert list(run) == []


def push(engine: spaseq.Engine, events: str) -> None:
    for event in events.split():
        kind, time = event[0], int(event[1:])
        engine.push("urn:s", f'<urn:{event}> <urn:kind> "{kind}" ; <urn:n> 1 .', time)


def test_a_handle_gives_what_is_there_as_columns_or_drops_it() -> None:
    engine = spaseq.Engine()
    handle = engine.register(QUERY)
    push(engine, "a1 a2 c3 c4")
    first = next(handle.matches())
    (batch,) = handle.batches()
    assert sorted(ends([first, *batch])) == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert list(handle.batches()) == []
    push(engine, "c5")
    handle.drop()
    push(engine, "c6")
    (batch,) = handle.batches(max_rows=2)
    assert sorted(ends(batch)) == [(1, 6), (2, 6)]
    assert handle.stats.matches == 8


def test_a_batch_says_what_can_be_pickled_of_it() -> None:
    engine = spaseq.Engine()
    handle = engine.register(
        "SELECT ?v WITHIN 9 DAYS FROM STREAM S <urn:s> { SEQ(A) DEFINE GPM A ON S { ?x <urn:v> ?v } }"
    )
    engine.push("urn:s", "<urn:a> <urn:v> 1 .", 1)
    (batch,) = handle.batches()
    with pytest.raises(TypeError, match="pickle what to_arrow\\(\\) gives, or each Match"):
        pickle.dumps(batch)
    assert pickle.loads(pickle.dumps(batch.to_arrow())) == batch.to_arrow()
    assert pickle.loads(pickle.dumps(list(batch))) == list(batch)
