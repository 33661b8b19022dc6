"""Tables in memory as sources: the same events as Turtle text with the same terms would make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spaseq
from spaseq import Engine, Limits, Source
from spaseq.errors import SourceError
from spaseq.events import Clock, LateBatch, concatenate
from spaseq.sources import open_source
from spaseq.sources.columns.holes import Iri
from spaseq.sources.columns.table import Table, TableLifter
from spaseq.terms.dictionary import Dictionary

from .reading import EX, STREAM, Reading

TEMPLATE = f"<{EX}{{id}}> <{EX}price> ?price ; a <{EX}Trade> ."
FALLS = f"""SELECT ?c ?p ?q WITHIN 100 SECONDS FROM STREAM S <{EX}stream> WHERE {{ SEQ(A , B)
    DEFINE GPM A ON S {{ ?c <{EX}price> ?p }}
    DEFINE GPM B ON S {{ ?c <{EX}price> ?q FILTER(?q < ?p) }} }}"""


def read(source: Table, limits: Limits | None = None) -> Reading:
    reading = Reading()
    batches = open_source(source, STREAM, Dictionary(), on_bad=reading.bad.append, limits=limits)
    reading.batches.extend(batches)
    return reading


def table(
    template: str = TEMPLATE, time: str | None = "at", graph: str | None = None, **columns: Any
) -> Table:
    return spaseq.table(pa.table(columns), time=time, template=template, graph=graph)


def test_rows_are_events() -> None:
    found = read(table(at=[5, 6], id=["a", "b"], price=[1, 2], graph=f"{EX}g{{at}}"))
    assert (found.bad, found.times, found.graphs, found.clocks) == ([], [5, 6], ["g5", "g6"], {Clock.TICKS})
    assert found.triples(1) == {
        f'<{EX}b> <{EX}price> "2"^^<http://www.w3.org/2001/XMLSchema#integer>',
        f"<{EX}b> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}Trade>",
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb", "arrow", "reader", "batch"])
def test_run_and_feed_take_tables(kind: str) -> None:
    rows = pa.table({"at": [1, 2, 3], "id": ["a", "a", "a"], "price": [3.5, 2.0, 2.5]})
    data = {
        "pandas": rows.to_pandas,
        "polars": lambda: polars.from_arrow(rows),
        "duckdb": lambda: duckdb.from_arrow(rows).filter("price > 0"),
        "arrow": lambda: rows,
        "reader": rows.to_reader,
        "batch": lambda: rows.to_batches()[0],
    }[kind]
    (match,) = spaseq.run(FALLS, {"S": spaseq.table(data(), time="at", template=TEMPLATE)})
    assert (match.start, match.end, str(match.bindings[0]["q"])) == (1, 2, "2")
    engine = Engine()
    handle = engine.register(FALLS)
    engine.feed(Source(f"{EX}stream", spaseq.table(data(), time="at", template=TEMPLATE)))
    assert [(match.start, match.end) for match in handle.matches()] == [(1, 2)]


INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MICROSECONDS = 1_767_323_045_678_901


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([INSTANT]), MICROSECONDS),
        (pa.array([INSTANT.replace(tzinfo=None)]), MICROSECONDS),
        (pa.array([INSTANT], pa.timestamp("us", "Europe/Berlin")), MICROSECONDS),
        (pa.array([MICROSECONDS * 1000 + 999], pa.timestamp("ns")), MICROSECONDS),
        (pa.array([-1], pa.timestamp("ns")), -1),
        (pa.array([MICROSECONDS // 1000], pa.timestamp("ms")), MICROSECONDS // 1000 * 1000),
        (pa.array([MICROSECONDS // 10**6], pa.timestamp("s")), MICROSECONDS // 10**6 * 10**6),
        (pa.array([date(2026, 1, 2)]), 1_767_312_000_000_000),
        (pa.array([date(2026, 1, 2)], pa.date64()), 1_767_312_000_000_000),
    ],
)
def test_instants(values: pa.Array, expected: int) -> None:
    found = read(table(at=values, id=["a"], price=[1]))
    assert (found.bad, found.times, found.clocks) == ([], [expected], {Clock.INSTANTS})


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint8(), pa.uint64()])
def test_ticks(kind: pa.DataType) -> None:
    assert read(table(at=pa.array([7], kind), id=["a"], price=[1])).times == [7]


def test_the_types_of_polars() -> None:
    """Views of strings and categories, and times in its own units."""
    frame = polars.DataFrame(
        {"at": [INSTANT], "id": ['a"b'], "kind": ["x"]}, schema_overrides={"kind": polars.Categorical}
    )
    found = read(spaseq.table(frame, time="at", template="<urn:{kind}> <urn:p> ?id ; <urn:q> ?kind ."))
    assert (found.bad, found.times) == ([], [MICROSECONDS])
    assert found.triples() == {'<urn:x> <urn:p> "a\\"b"', '<urn:x> <urn:q> "x"'}


def test_without_a_time_rows_are_counted() -> None:
    assert read(table(id=["a", "b"], price=[1, 2], time=None)).times == [0, 1]


def test_what_a_row_lacks_makes_it_bad() -> None:
    found = read(
        table(
            f"<{EX}{{id}}> <{EX}price> ?price .",
            at=pa.array([1, None, 3, 4, 2**64 - 1, 6], pa.uint64()),
            id=["a", "b", None, "d", "e", "f"],
            price=[1, 2, 3, None, 5, 6],
        )
    )
    assert found.times == [1, 6]
    assert found.positions == ["row 2", "row 3", "row 4", "row 5"]
    assert [reason.partition(":")[0] for reason in found.reasons] == [
        "no time",
        "no triple",
        "no triple",
        "no time",
    ]
    assert json.loads(found.bad[0].payload) == {"at": None, "id": "b", "price": 2}


def test_a_null_leaves_its_triple_out() -> None:
    found = read(table(at=[1, 2], id=["a", "b"], price=[None, 5]))
    assert (found.bad, len(found.triples(0)), len(found.triples(1))) == ([], 1, 2)


def test_repeated_triples_count_once() -> None:
    template = f"<{EX}{{id}}> <{EX}p> ?v , ?w , 1 ."
    found = read(table(template, at=[1, 2], id=["a", "a"], v=[1, 2], w=[1, 3]))
    assert [len(found.triples(n)) for n in (0, 1)] == [1, 3]


def test_blank_nodes_are_each_rows_own() -> None:
    found = read(table(f"_:x <{EX}p> ?v . _:x <{EX}q> _:y .", at=[1, 2], v=[1, 1]))
    (batch,) = found.batches
    assert len({*batch.s.tolist()}) == 2
    assert len({*batch.s.tolist(), *batch.o[1::2].tolist()}) == 4


def test_iris_that_are_none_and_terms_that_are_long() -> None:
    found = read(
        table("<{iri}> <urn:p> ?v .", at=[1, 2, 3], iri=["urn:a", "no iri", "rel"], v=["x", "y", "z"])
    )
    assert (found.times, found.positions) == ([1], ["row 2", "row 3"])
    assert set(found.reasons) == {"no IRI comes of iri"}
    long = read(table("<urn:a> <urn:p> ?v .", at=[1, 2], v=["x" * 50, "y"]), Limits(term_bytes=40))
    assert (long.times, long.positions) == ([2], ["row 1"])
    assert "term_bytes=40" in long.reasons[0]


def test_text_in_iris_is_escaped() -> None:
    found = read(table(f"<{EX}{{id}}> <{EX}p> 1 .", at=[1], id=["a <b>\n{é}"]))
    (triple,) = found.triples(0)
    assert triple.startswith(f"<{EX}a%20%3Cb%3E%0A%7Bé%7D> ")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"template": "no turtle"}, "the template is not Turtle"),
        ({"template": "# nothing"}, "the template has no triple"),
        ({"template": f"<{EX}{{id}}> <{EX}p> ?prize ."}, "'prize': there are at, id, price"),
        ({"template": f"<{EX}{{ids}}> <{EX}p> ?price ."}, "'ids'"),
        ({"template": f"?id <{EX}p> ?price ."}, "?id is a literal"),
        ({"graph": f"{EX}{{x}}"}, "'x'"),
        ({"time": "when"}, "time= names a column 'when'"),
        ({"time": "id"}, "time= is a column of string: give timestamps, dates or integers"),
        ({"id": [["a"]]}, "?id is a column of list"),
    ],
)
def test_mistakes_are_told_when_the_source_is_opened(change: dict[str, Any], reason: str) -> None:
    given: dict[str, Any] = {
        "at": [1],
        "id": ["a"],
        "price": [1],
        "template": "<urn:a> <urn:p> ?id .",
    } | change
    with pytest.raises(SourceError) as caught:
        spaseq.run(FALLS, {"S": table(**given)})
    assert reason in str(caught.value)


def test_what_is_no_table() -> None:
    with pytest.raises(SourceError, match="not a list"):
        spaseq.run(FALLS, {"S": spaseq.table([1], template=TEMPLATE)})
    lazy = polars.DataFrame({"price": [1]}).lazy()
    with pytest.raises(SourceError, match=r"not a LazyFrame: collect\(\) it"):
        spaseq.run(FALLS, {"S": spaseq.table(lazy, template=TEMPLATE)})


def test_a_reader_is_read_once() -> None:
    rows = pa.table({"at": [1, 2], "id": ["a", "a"], "price": [2, 1]})
    source = spaseq.table(rows.to_reader(), time="at", template=TEMPLATE)
    assert len(list(spaseq.run(FALLS, {"S": source}))) == 1
    with pytest.raises(SourceError, match=r"these were read: give its read_all\(\)"):
        spaseq.run(FALLS, {"S": source})
    source = spaseq.table(rows, time="at", template=TEMPLATE)
    assert [len(list(spaseq.run(FALLS, {"S": source}))) for _ in range(2)] == [1, 1]


def test_a_column_that_arrow_has_no_type_for() -> None:
    data = pandas.DataFrame({"at": [1, 2], "price": [1, object()]})
    source = spaseq.table(data, time="at", template="<urn:x> <urn:price> ?price .")
    with pytest.raises(SourceError, match=r"cannot be read: Could not convert .*; .* column price"):
        spaseq.run(FALLS, {"S": source})


def test_many_rows_come_in_batches() -> None:
    count = 200_000
    found = read(table(at=range(count), id=["a"] * count, price=range(count)))
    assert len(found.batches) > 1
    assert found.times == [*range(count)]
    assert found.triples(150_000) == {
        f'<{EX}a> <{EX}price> "150000"^^<http://www.w3.org/2001/XMLSchema#integer>',
        f"<{EX}a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}Trade>",
    }


VALUES = st.one_of(
    st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6), min_size=1),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.none() | st.floats(allow_nan=True), min_size=1),
    st.lists(st.none() | st.booleans(), min_size=1),
    st.lists(st.none() | st.dates(), min_size=1),
    st.lists(st.none() | st.datetimes(timezones=st.just(UTC)), min_size=1),
    st.lists(st.none() | st.decimals(-999, 999, allow_nan=False, places=2), min_size=1),
)


def _expected(value: Any) -> str:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    match value:
        case datetime():
            text = value.isoformat().replace("+00:00", "Z")
            return str(ox.Literal(text, datatype=ox.NamedNode(f"{xsd}dateTime")))
        case date():
            return str(ox.Literal(value.isoformat(), datatype=ox.NamedNode(f"{xsd}date")))
        case Decimal():
            return str(ox.Literal(f"{value:f}", datatype=ox.NamedNode(f"{xsd}decimal")))
    return str(ox.Literal(value))


@given(VALUES, st.booleans())
def test_literals_are_those_of_single_values(values: list[Any], categorical: bool) -> None:
    """Made by columns or one by one: the same terms, in all the types of a table."""
    column = pa.array(values)
    if categorical and not pa.types.is_null(column.type):
        column = column.dictionary_encode()
    found = read(table("<urn:a> <urn:p> ?v ; <urn:q> 1 .", at=range(len(values)), v=column))
    assert found.bad == []
    for number, value in enumerate(column.to_pylist()):
        terms = {text.split(" ", 2)[2] for text in found.triples(number) if "urn:p" in text}
        assert terms == (set() if value is None else {_expected(value)})


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("time", [2**62, -(2**62)])
def test_a_time_that_python_does_not_have_is_a_bad_event(unit: str, time: int) -> None:
    rows = pa.table({"at": pa.array([time, 1], type=pa.timestamp(unit)), "id": ["a", "b"], "price": [1, 2]})
    reading = read(spaseq.table(rows, time="at", template=TEMPLATE))
    assert reading.positions == ["row 1"]
    assert json.loads(reading.bad[0].payload) == {"at": time, "id": "a", "price": 1}
    assert len(reading.times) == 1


def test_cells_that_python_cannot_show_are_told() -> None:
    kinds = [pa.timestamp("us", tz="No/Where"), pa.timestamp("s"), pa.time64("us")]
    rows = pa.table({"at": pa.array([None, 1], pa.int64()), "id": ["a", "b"], "price": [1, 2]})
    for number, kind in enumerate(kinds):
        rows = rows.append_column(f"more{number}", pa.array([2**40, 2**40], pa.int64()).cast(kind))
    reading = read(spaseq.table(rows, time="at", template=TEMPLATE))
    assert reading.positions == ["row 1"]
    assert json.loads(reading.bad[0].payload)["more1"] == 2**40


def test_what_cannot_be_arrow_says_why() -> None:
    surrogate = pandas.DataFrame({"id": ["a"], "price": ["\ud800"]})
    with pytest.raises(SourceError, match="cannot be read: 'utf-8' codec can't encode character"):
        read(spaseq.table(surrogate, template=TEMPLATE))
    large = pandas.DataFrame({"id": ["a"], "price": [2**70]})
    with pytest.raises(SourceError, match=r"cannot be read: .*too large"):
        read(spaseq.table(large, template=TEMPLATE))
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array([1]), pa.array([2])], ["id", "price", "price"])
    with pytest.raises(SourceError, match="two columns 'price'"):
        read(spaseq.table(twice, template=TEMPLATE))


@pytest.mark.parametrize("error", [ValueError("boom"), pa.ArrowInvalid("boom"), OSError("boom")])
def test_a_reader_that_breaks_off(error: Exception) -> None:
    first = pa.record_batch({"id": ["a", "b"], "price": [1, 2]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield first
        raise error

    engine = Engine()
    handle = engine.register(FALLS)
    reader = pa.RecordBatchReader.from_batches(first.schema, batches())
    with pytest.raises(SourceError, match=r"cannot be read, after row 2: .*boom"):
        engine.feed(Source(STREAM, spaseq.table(reader, template=TEMPLATE)))
    assert handle.stats.events == 2


# Subjects become terms when a query reads them: of most events none does.

ALERTS = f"""SELECT ?u ?from WITHIN 40 SECONDS FROM STREAM S <{EX}stream> WHERE {{ SEQ(A SEPARATOR B)
    DEFINE GPM A ON S AT ?from AS ?g {{ ?u <{EX}does> "fail" }}
    DEFINE GPM B ON S {{ ?v <{EX}does> "fail" }} }}"""
DOES = f"<{EX}{{id}}> <{EX}does> ?what ."


def _deeds(rows: int) -> dict[str, list[Any]]:
    """Return a table in which every seventeenth event matters, and now and then two in a row do."""
    what = ["fail" if i % 17 == 0 or i % 170 == 1 else "view" for i in range(rows)]
    return {"at": [*range(rows)], "id": [f"u{i}" for i in range(rows)], "what": what}


@pytest.mark.parametrize("separator", [";", ",", ":"])
@pytest.mark.parametrize("window", ["40 SECONDS", "3 EVENTS"])
def test_events_that_no_pattern_matches_still_count(separator: str, window: str) -> None:
    """A table gives the matches, counts and reasons that pushed events give."""
    query = ALERTS.replace("SEPARATOR", separator).replace("40 SECONDS", window)
    none = query.replace('?v <http://example.org/does> "fail"', '?v <http://example.org/does> "nothing"')
    assert none != query
    rows, found = _deeds(400), []
    for is_table in (True, False):
        with Engine() as engine:
            handles = [engine.register(each) for each in (query, none)]
            if is_table:
                engine.feed(Source(f"{EX}stream", table(DOES, **rows)))
            else:
                for at, identity, what in zip(rows["at"], rows["id"], rows["what"], strict=True):
                    engine.push(f"{EX}stream", f'<{EX}{identity}> <{EX}does> "{what}" .', at)
            matches = [
                (match.start, match.end, match.bindings, match.events) for match in handles[0].matches()
            ]
            why = str(handles[1].why())
            counts = [(each.stats.events, each.stats.gpms) for each in handles]
        found.append((matches, why, counts))
    assert found[0] == found[1]
    assert found[0][0]


def test_a_subject_that_no_query_reads_becomes_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()
    column = TableLifter._column

    def count(lifter: TableLifter, slot: Any, batch: pa.RecordBatch, reasons: Any) -> Any:
        if isinstance(slot, Iri):
            made.append(len(batch))
        return column(lifter, slot, batch, reasons)

    monkeypatch.setattr(TableLifter, "_column", count)
    rows = _deeds(20_000)
    matches = spaseq.run(ALERTS.replace("SEPARATOR", ","), {"S": table(DOES, **rows)})
    assert len({str(match.bindings[0]["u"]) for match in matches}) == 118
    assert sum(made) < 4_000


@pytest.mark.parametrize(("different", "is_late"), [(2_000, True), (400, False)])
def test_subjects_that_repeat_become_terms_at_once(different: int, is_late: bool) -> None:
    columns = {
        "at": [*range(2_000)],
        "id": [f"u{i % different}" for i in range(2_000)],
        "what": ["x"] * 2_000,
    }
    (batch,) = open_source(table(DOES, **columns), STREAM, Dictionary(), on_bad=print)
    assert isinstance(batch, LateBatch) is is_late


def _few(rows: int) -> pa.RecordBatchReader:
    """Return a table in which a few events matter, and each has new terms: most are forgotten soon."""
    what = ["fail" if i % 9_000 == 5 else "view" for i in range(rows)]
    columns = {"at": [*range(rows)], "id": [f"u{i}" for i in range(rows)], "what": what}
    return pa.table(columns).to_reader(max_chunksize=4_000)


FEW = f"""SELECT ?u ?v WITHIN 90000 SECONDS SLIDING FROM STREAM S <{EX}stream> WHERE {{ SEQ(A ; B)
    DEFINE GPM A ON S {{ ?u <{EX}does> "fail" }}
    DEFINE GPM B ON S {{ ?v <{EX}does> "fail" }} }}"""
NOTED = f"<{EX}{{id}}> <{EX}does> ?what ; <{EX}at> ?at ."


def _pairs(matches: Iterable[spaseq.Match]) -> list[tuple[str, str]]:
    return sorted((str(row["u"]), str(row["v"])) for match in matches for row in match.bindings)


def _following(rows: int) -> list[tuple[str, str]]:
    return sorted((f"{EX}u{i}", f"{EX}u{j}") for i, j in pairwise(range(5, rows, 9_000)))


@pytest.mark.parametrize("matcher", [None, "interpreter"])
def test_subjects_of_partial_matches_are_kept(matcher: str | None) -> None:
    with Engine(matcher=matcher) as engine:
        handle = engine.register(FEW)
        for _ in engine.pull(Source(f"{EX}stream", spaseq.table(_few(40_000), time="at", template=NOTED))):
            pass
        assert _pairs(handle.matches()) == _following(40_000)


@pytest.mark.parametrize("matcher", [None, "interpreter"])
def test_a_restart_in_the_middle_of_a_table(tmp_path: Path, matcher: str | None) -> None:
    found, steps = list[spaseq.Match](), 0
    while True:
        with Engine(state=tmp_path / "state", commit_every=None, matcher=matcher) as engine:
            handle = engine.register(FEW, name="q")
            source = spaseq.table(_few(40_000).read_all(), time="at", template=NOTED)
            for _ in engine.pull(Source(f"{EX}stream", source)):
                found += handle.matches()
                engine.commit()
                steps += 1
                if steps == 1:
                    engine.abandon()
                    break
            else:
                break
    assert _pairs(found) == _following(40_000)


def test_other_threads_read_the_events_of_matches() -> None:
    """Subjects that no query has read become terms in another thread, while more events come."""
    seen, unread = set[str](), SimpleQueue[spaseq.Match | None]()

    def read() -> None:
        while (match := unread.get()) is not None:
            for events in match.events.values():
                seen.update(str(subject) for event in events for subject in event.triples().subjects())

    reader = Thread(target=read)
    with Engine() as engine:
        engine.register(
            f"""SELECT ?what WITHIN 1 SECONDS FROM STREAM S <{EX}stream> WHERE {{ SEQ(A)
            DEFINE GPM A ON S {{ ?u <{EX}does> ?what FILTER(?what = "fail") }} }}""",
            unread.put,
        )
        reader.start()
        for _ in engine.pull(Source(f"{EX}stream", spaseq.table(_few(40_000), time="at", template=NOTED))):
            pass
    unread.put(None)
    reader.join()
    assert seen == {f"{EX}u{i}" for i in range(5, 40_000, 9_000)}


@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 9), max_size=6))
def test_late_events_are_taken_as_others(rows: list[int], events: list[int]) -> None:
    """Taken, divided, numbered anew and concatenated, they have the same terms."""
    columns = {"at": [*range(10)], "id": [f"u{i % 6}" for i in range(10)], "what": ["x"] * 10}
    template = f"{DOES} <{EX}{{id}}> <{EX}at> ?at ."
    dictionary = Dictionary()
    (late,) = open_source(table(template, **columns), STREAM, dictionary, on_bad=print)
    (other,) = open_source(table(template, **columns), STREAM, dictionary, on_bad=print)
    assert isinstance(late, LateBatch)
    some = np.array(sorted({*rows}), dtype=np.int64), np.array(sorted({*events}), dtype=np.int64)
    assert len(other.s) == 20  # its terms are there, so the rest is done as for any batch
    for mine, theirs in (
        (late.take(some[0]), other.take(some[0])),
        (late.renumber(7), other.renumber(7)),
        *zip(late.parts(some), other.parts(some), strict=True),
        (concatenate([late.take(each) for each in some]), concatenate([other.take(each) for each in some])),
        (replace(late, time=late.time + 1), replace(other, time=other.time + 1)),
    ):
        for name in ("time", "n", "offset", "p", "o", "s"):
            assert getattr(mine, name).tolist() == getattr(theirs, name).tolist()
