"""Rows as columns: the same events, and the same verdicts, as by the JSON-LD processor row by row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from spaseq.errors import SourceError, SpaseqWarning
from spaseq.limits import Limits
from spaseq.sources.columns import context as _template
from spaseq.sources.columns import rows as _columns
from spaseq.sources.formats import _lift, rows
from spaseq.sources.formats._lift import load_context
from spaseq.terms.identified import Row
from tests.conftest import examples

from .reading import EX, GENERATED_AT, XSD, Reading, _canonical, _graph, read

_KEYS = ("time", "a", "b", "c", "d", "e", "f g", "ex:p", "@id", "@type")

_PLAIN_TERMS: tuple[object, ...] = (
    "ex:p",
    {"@id": "ex:p"},
    None,
    *(
        {"@id": "ex:p", "@type": f"xsd:{name}"}
        for name in ("decimal", "integer", "double", "dateTime", "string")
    ),
    {"@id": "ex:q", "@type": "xsd:boolean"},
    {"@id": "ex:q", "@type": "@id"},
    {"@id": "ex:q", "@type": "@vocab"},
    {"@type": "@id"},
    {"@id": "ex:q", "@type": "@none"},
    {"@id": "ex:q", "@language": "de-AT"},
    {"@id": "ex:q", "@language": None},
    {"@id": "ex:q", "@type": "@id", "@context": {"@base": "http://other.example/x/"}},
    {"@id": "ex:q", "@type": "@vocab", "@context": {"@vocab": "http://other.example/#", "IBM": "ex:Big"}},
    {"@id": "ex:q", "@container": "@set"},
    "@id",
    "@type",
)
#: What no template may be made of, or only with care.
_ODD_TERMS: tuple[object, ...] = (
    *(f"@{name}" for name in ("graph", "value", "index", "language", "reverse", "nest", "included", "list")),
    {"@reverse": "ex:p"},
    {"@reverse": "ex:p", "@type": "@id"},
    {"@id": "ex:p", "@type": "@json"},
    *(
        {"@id": "ex:p", "@container": f"@{name}"}
        for name in ("list", "index", "language", "graph", "id", "type")
    ),
    {"@id": "ex:IBM", "@context": {"a": "ex:scoped", "b": None, "@vocab": "http://other.example/"}},
    {"@id": "ex:p", "@nest": "a"},
    {"@id": "ex:p", "@direction": "rtl"},
)

_STRINGS = st.sampled_from(
    (
        "IBM", "Dell", "a", "ex:IBM",  "http://e.org/x/../y", "http://e.org/é", "_:b", "../x", "x.",
        "", " ", "two words", 'q"u\\o', "\t", "\n", "\r", "\x00", "\x7f", "\x85", "é\U0001f600", "\ufffe",
        "1", "1.0", "1e5", "NaN", "INF", "-0", "true", "null", "2024-01-01", "2024-01-01T00:00:00Z",
        "@id", "@type", "@foo", ".",
    )
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)  # fmt: skip
_NUMBERS = (
    st.sampled_from(["1.0", "-0", "-0.0", "0.10", "1e5", "1E-7", "2.50", "123456789.12345678", "0.00000001"])
    | st.integers(-(10**20), 10**20).map(str)
    | st.decimals(-1000, 1000, places=3).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
)
_NESTED = st.sampled_from(
    [
        '{"a":1}',
        "[]",
        '["x"]',
        "{}",
        '[{"a":2}]',
        '{"@id":"ex:n"}',
        '{"@value":"v"}',
        '{"@list":[1]}',
        '"\\ud800"',
    ]
)


_COLUMNS = st.lists(st.sampled_from(_KEYS[1:]), max_size=4, unique=True)


@st.composite
def contexts(draw: st.DrawFn) -> dict[str, object]:
    """Mostly flat ones."""
    time = draw(st.sampled_from([{"@type": f"{XSD}integer"}, {"@type": f"{XSD}integer"}, {}]))
    context: dict[str, object] = {
        "ex": EX,
        "xsd": XSD,
        "time": {"@id": GENERATED_AT.value} | time,
        **draw(st.sampled_from([{"@vocab": EX + "v#"}, {"@vocab": EX + "v#", "@language": "en"}, {}])),
        **draw(st.sampled_from([{"@base": EX + "base/x"}, {}])),
    }
    if draw(st.booleans()):
        context["Dell"] = "http://example.org/company/Dell"
    terms = st.sampled_from(_PLAIN_TERMS)
    if draw(st.integers(0, 3)) == 3:
        terms |= st.sampled_from(_ODD_TERMS)
        if draw(st.integers(0, 3)) == 3:
            context["IBM"] = draw(st.sampled_from(_ODD_TERMS))
    for name in draw(st.sets(st.sampled_from(["a", "b", "c", "d", "e", "f g"]))):
        context[name] = draw(terms)
    return context


_TIME = {"@id": GENERATED_AT.value, "@type": f"{XSD}integer"}
_TICKS = st.integers(0, 9).map(str)

#: Values as JSON, by kinds.
_VALUES = {
    "strings": _STRINGS.map(json.dumps) | _STRINGS.map(lambda text: json.dumps(text, ensure_ascii=False)),
    "names": st.sampled_from(["IBM", "Dell", "x-1", "AMAT"]).map(json.dumps),
    "prices": st.sampled_from(["1.5", "27.85", "120", "0", "-3.25", "0.001"]),
    "numbers": _NUMBERS,
    "constants": st.sampled_from(["true", "false", "null"]),
}
_VALUES["any"] = st.one_of(*_VALUES.values(), _NESTED)


@st.composite
def ndjson(draw: st.DrawFn) -> str:
    """Rows of a few sets of keys; each column mostly of one kind of values. Some lines are none."""
    shapes = draw(st.lists(_COLUMNS, min_size=1, max_size=2))
    kinds = {key: draw(st.sampled_from(["strings", "numbers", "names", "prices", "any"])) for key in _KEYS}
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        shape = draw(st.sampled_from(shapes))
        pairs = [(key, draw(_VALUES[kinds[key]])) for key in shape]
        time = draw(_TICKS | _TICKS | st.sampled_from(['"7"', '"2024-01-01"', "null", "1.5"]))
        pairs.insert(draw(st.integers(0, len(pairs))), ("time", time))
        if draw(st.integers(0, 9)) == 9:
            pairs.pop()
        lines.append("{" + ",".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}")
        lines += draw(
            st.sampled_from([[]] * 6 + [["", "{"], ['{"time":NaN}', " [1] "], ['{"time":1},{"time":2}']])
        )
    return "\n".join(lines)


@st.composite
def table(draw: st.DrawFn) -> str:
    """CSV with every way to write cells, and some broken lines."""
    keys = ["time", *draw(_COLUMNS)]
    lines = [",".join(keys)]
    some = st.sampled_from(["IBM", "Dell", "1.5", "27.85"])
    kinds = [draw(st.sampled_from([some, some, _NUMBERS, _STRINGS, _STRINGS | some])) for _ in keys[1:]]
    for _ in range(draw(st.integers(1, 8))):
        cells = [draw(_TICKS | _TICKS | _TICKS | st.sampled_from(["", "x", "2024-01-01"]))]
        cells += [draw(kind) for kind in kinds]
        quoted = draw(st.booleans())
        lines.append(",".join(_cell(cell, quoted) for cell in cells))
        lines += draw(
            st.sampled_from([[]] * 6 + [["", '1,"'], ["1,2,3,4,5,6,7"], ['"a"b,1'], ['a"b,1'], ["\r"]])
        )
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)


def test_cells_are_those_of_the_csv_module(folder: Path) -> None:
    """Lines without quotes, and the same with a quoted one somewhere, which takes another way."""
    context = folder / "cells.jsonld"
    context.write_text(json.dumps({"@context": {"@vocab": EX, "time": _TIME}}))
    plain = "time,a,b\n1,x, y\n2,,z\n3,\u2028,\x1d\n\n4,1,2,3\n5,1\n6,é,\x00\n"
    for end in ("\n", "\r\n"):
        text = plain.replace("\n", end)
        expected = _read(f'{text}7,"q",r{end}', "csv", context, 1)
        found = _read(f"{text}7,q,r{end}", "csv", context, 1)
        assert found.times == expected.times == [1, 2, 3, 6, 7]
        assert [*_events(found)] == [*_events(expected)]
        assert _refused(found) == _refused(expected)
        assert found.positions == ["line 6", "line 7"]
        whole = _read(text.split(f"{end}{end}")[0], "csv", context, 1)
        assert [*_events(whole)] == [*_events(expected)][:3]


def _cell(text: str, quoted: bool) -> str:
    if quoted or any(c in text for c in '",\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contexts")


def _read(text: str, form: str, context: Path, small: int) -> Reading:
    with patch.object(rows, "SMALL", small), patch.object(_columns, "FEW", 1):
        return read(text.encode(errors="surrogatepass"), f"format={form}&context={context}")


def _events(reading: Reading) -> Iterator[object]:
    times = zip(reading.times, reading.numbers, strict=True)
    for event, stamp in enumerate(times):
        lines = _graph(reading, event)
        assert len(lines) == len(set(lines))
        yield stamp, _canonical(lines)


@pytest.mark.filterwarnings("ignore:.*xsd.decimal:spaseq.errors.SpaseqWarning")
@pytest.mark.parametrize("form", ["csv", "ndjson"])
@settings(max_examples=examples(200))
@given(st.data())
def test_as_the_processor_says(form: str, folder: Path, data: st.DataObject) -> None:
    assert _columns.FastRows
    context = folder / f"{form}.jsonld"
    context.write_text(json.dumps({"@context": data.draw(contexts())}))
    text = data.draw(table() if form == "csv" else ndjson())
    try:
        load_context(context, Limits())
    except SourceError:
        reject()
    fast, slow = (_read(text, form, context, small) for small in (1, 1 << 60))
    assert list(_events(fast)) == list(_events(slow))
    assert fast.clocks == slow.clocks
    assert _refused(fast) == _refused(slow)


def test_keys_twice_are_the_processors(folder: Path) -> None:
    context = folder / "twice.jsonld"
    context.write_text(json.dumps({"@context": {"@vocab": EX, "time": _TIME}}))
    text = '{"time": 5, "a": "x", "a": "y"}\n{"time": 6, "a": "x"}'
    reading = _read(text, "ndjson", context, 1)
    assert (reading.times, [len(reading.triples(event)) for event in (0, 1)]) == ([5, 6], [3, 2])
    twice = _read("time,a,a\n5,x,y\n", "csv", context, 1)
    assert len(twice.triples()) == 2


def test_the_processor_is_asked_once_a_value(folder: Path) -> None:
    """Usual numbers and names never, other values once each, nested ones with their rows."""
    context = folder / "once.jsonld"
    by = {"@id": EX + "by", "@type": "@id"}
    context.write_text(json.dumps({"@context": {"@vocab": EX, "@base": EX, "time": _TIME, "by": by}}))

    def asked(count: int, price: str = "{0}.5", name: str = '"b{0}"') -> int:
        """How many rows the processor lifts for so many rows, half of which repeat the other half."""
        line = f'{{{{"time": {{0}}, "price": {price}, "by": {name}}}}}'
        text = "\n".join(line.format(number % (count // 2)) for number in range(count))
        lifted: list[str] = []

        def lift(objects: Sequence[str], context: str) -> Iterator[list[Row] | ValueError]:
            lifted.extend(objects)
            return _lift.lift(objects, context)

        with patch.object(_template, "lift", lift), patch.object(rows, "lift", lift):
            assert len(_read(text, "ndjson", context, 1).times) == count
        return len(lifted)

    probes = asked(2)
    assert asked(2000) == probes
    assert asked(100, name='"urn:b{0}"') == probes + 50
    assert asked(100, price="{0}.5e1") == probes + 50
    assert asked(100, name='{{"@id": "b{0}"}}') == probes + 100


@pytest.mark.parametrize("small", [1, 1 << 60])
def test_numbers_that_are_no_decimals(folder: Path, small: int) -> None:
    context = folder / "decimals.jsonld"
    decimal = {"@id": EX + "price", "@type": f"{XSD}decimal"}
    context.write_text(json.dumps({"@context": {"time": _TIME, "price": decimal}}))
    line = '{{"time": {}, "price": {}}}\n'
    assert _read(line.format(1, '"1.5"') + line.format(2, 2), "ndjson", context, small).bad == []
    with pytest.warns(SpaseqWarning, match="xsd:double, or write the numbers as strings") as warned:
        reading = _read(line.format(1, 1.5) + line.format(2, 2.5), "ndjson", context, small)
    assert len(warned) == 1
    assert any('"1.5E0"' in triple for triple in reading.triples())


def _refused(reading: Reading) -> list[tuple[str, ...]]:
    """What was bad, without the names of blank nodes."""
    unnamed = [
        re.sub(r"_:\w+", "_:b", text) for b in reading.bad for text in (b.position, b.reason, b.payload)
    ]
    return sorted(zip(*[iter(unnamed)] * 3, strict=True))
