"""``time=``: columns of rows, how their cells are written, and paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import spaseq
from spaseq.errors import SourceError
from spaseq.events import Clock
from spaseq.sources.formats import rows as _rows

from .reading import Reading, read

EIGHT = 1_780_560_000_000_000  # 2026-06-04T08:00:00Z
SECOND = 1_000_000


@pytest.fixture
def context(tmp_path: Path) -> Path:
    path = tmp_path / "context.jsonld"
    path.write_text(json.dumps({"@context": {"@vocab": "http://example.org/"}}))
    return path


def times(context: Path, cells: Sequence[str], options: str = "") -> Reading:
    """The reading of rows with these cells in the column ``At``, as CSV; the same as NDJSON."""
    csv = "At,v\n" + "".join(f"{cell},1\n" for cell in cells)
    reading = read(csv, f"format=csv&context={context}&time=At{options}")
    lines = "".join(json.dumps({"At": cell, "v": 1}) + "\n" for cell in cells)
    other = read(lines, f"format=ndjson&context={context}&time=At{options}")
    assert (other.times, other.clocks) == (reading.times, reading.clocks)
    return reading


@pytest.mark.parametrize(
    ("first", "second", "options"),
    [
        ("2026-06-04 08:00:00", "2026-06-04 08:00:01", ""),
        ("2026-06-04T08:00:00Z", "2026-06-04 10:00:01+0200", ""),
        ("2026-06-04 08:00", "2026-06-04 08:00:01.000", ""),
        ("1780560000", "1780560001", ""),
        ("1780560000.0", "1780560001.000000", ""),
        ("1780560000000", "1780560001000", ""),
        ("1780560000000000", "1780560001000000", ""),
        ("1780560000000000000", "1780560001000000999", ""),
        ("29676000", "29676000.0166666667", "&unit=seconds"),
        ("04/06/2026 08:00:00", "04/06/2026 08:00:01", "&time_format=%d/%m/%Y %H:%M:%S"),
        ("04.06.2026 10:00:00 +0200", "04.06.2026 08:00:01 +0000", "&time_format=%d.%m.%Y %H:%M:%S %z"),
    ],
)
def test_instants(context: Path, first: str, second: str, options: str) -> None:
    reading = times(context, [first, second], options)
    assert reading.bad == []
    assert reading.clocks == {Clock.INSTANTS}
    if "unit=seconds" in options:
        assert reading.times == [29_676_000 * SECOND, 29_676_000 * SECOND + 16_666]
    else:
        assert reading.times == [EIGHT, EIGHT + SECOND]


def test_ticks(context: Path) -> None:
    assert times(context, ["1", "2"]).clocks == {Clock.TICKS}
    found = times(context, ["1780560000000", "1780560001000"], "&unit=ticks")
    assert (found.clocks, found.times) == ({Clock.TICKS}, [1_780_560_000_000, 1_780_560_001_000])


def test_the_first_number_decides_for_all(context: Path) -> None:
    found = times(context, ["1780560000000", "5"])
    assert found.times == [EIGHT, 5_000]


@pytest.mark.parametrize(
    ("cell", "options", "says"),
    [
        ("", "", "'At' is empty"),
        ("soon", "", "time_format= says how"),
        ("04/06/2026", "", "written like 2008-02-01 09:13:00"),
        ("2026-02-30 00:00:00", "", "its time cannot be read"),
        ("2026-06-04", "&unit=seconds", "is not a number of seconds"),
        ("2026-06-04", "&time_format=%d/%m/%Y", "does not match time_format=%d/%m/%Y"),
        ("1e18", "&unit=seconds", "outside the years 1 to 9999"),
        ("1.5", "&unit=ticks", "not an integer of 64 bits"),
    ],
)
def test_malformed(context: Path, cell: str, options: str, says: str) -> None:
    reading = times(context, [cell], options)
    assert reading.times == []
    assert says in reading.reasons[0]


def test_a_column_that_is_not_there(context: Path) -> None:
    with pytest.raises(SourceError, match=r"did you mean 'At'\? there are 'At', 'v'"):
        read("At,v\n1,2\n", f"format=csv&context={context}&time=at")
    with pytest.raises(SourceError, match="there are 'a', 'b'"):
        read("1,2\n", f"format=csv&context={context}&time=at&header=a,b")
    reading = read('{"At":1,"v":2}\n', f"format=ndjson&context={context}&time=at")
    assert "did you mean 'At'? there are 'At', 'v'" in reading.reasons[0]


def test_a_header_line_that_is_a_comment(context: Path) -> None:
    for text in ("# At,v\n1,2\n", '# At,"v"\n1,2\n'):
        reading = read(text, f"format=csv&context={context}&time=At")
        assert reading.times == [1]
        assert '<http://example.org/At> "1"' in "".join(reading.triples())


def test_fast_and_slow_agree(context: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [f"2026-06-04 08:{n // 60:02}:{n % 60:02}" for n in range(200)] + ["", "7", "x"]
    texts = {
        "csv": "At,v\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate(cells)),
        "ndjson": "".join(json.dumps({"At": cell, "v": n}) + "\n" for n, cell in enumerate(cells)),
    }
    for form, text in texts.items():
        monkeypatch.setattr(_rows, "WARM_UP", 1)
        fast = read(text, f"format={form}&context={context}&time=At")
        monkeypatch.setattr(_rows, "SMALL", 1 << 30)
        slow = read(text, f"format={form}&context={context}&time=At")
        monkeypatch.undo()
        assert fast.times == slow.times == [EIGHT + n * SECOND for n in range(200)]
        assert (fast.positions, fast.reasons) == (slow.positions, slow.reasons)


def test_a_csv_message_without_the_column_is_a_dead_letter(context: Path) -> None:
    from pyoxigraph import NamedNode

    from spaseq.connect.messages import Decoder, Message
    from spaseq.limits import Limits
    from spaseq.sources import BadEvent, parse_source
    from spaseq.terms.dictionary import Dictionary

    bad: list[BadEvent] = []
    options = parse_source(f"x?format=csv&context={context}&time=At")[1]
    stream = NamedNode("urn:s")
    decoder = Decoder("x", stream, Dictionary(), options, on_bad=bad.append, limits=Limits())
    batch = decoder.read([Message(b"a\n1\n", "m1", 0), Message(b"At,v\n7,1\n", "m2", 0)])
    assert batch is not None
    assert batch.time.tolist() == [7]
    assert [letter.position for letter in bad] == ["m1"]


PATHS = """PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
:g1 { :o :effective [ :v 5 ] ; :value [ :v 120 ] }
:g2 { :o :effective [ :v 6 ] , [ :v 6 ] ; :value [ :v 130 ] }
:g3 { :o :effective [ :v 7 ] , [ :v 8 ] ; :value [ :v 140 ] }
:g4 { :o :value [ :v 150 ] }
"""


def test_a_path_to_the_time() -> None:
    path = "time=<http://example.org/effective>/<http://example.org/v>"
    for form in ("trig", "nq"):
        text = PATHS
        if form == "nq":
            import pyoxigraph as ox

            quads = ox.parse(PATHS, format=ox.RdfFormat.TRIG)
            text = (ox.serialize(quads, format=ox.RdfFormat.N_QUADS) or b"").decode()
        reading = read(text, f"format={form}&{path}")
        assert reading.times == [5, 6]
        assert "two different times: 7 and 8" in reading.reasons[0]
        assert "nothing says <http://example.org/effective>/<http://example.org/v>" in reading.reasons[1]


def test_a_path_on_the_fast_path() -> None:
    """In a large text some events have one time, some none, some two; the fast path leaves those out."""
    import spaseq.sources.scan.fast  # noqa: F401

    def text(broken: bool) -> str:
        lines = []
        for n in range(2_000):
            graph = f"<urn:g{n}> ."
            lines.append(f"<urn:s> <urn:a> _:b{n} {graph}")
            if not broken or n != 1_500:
                lines.append(f'_:b{n} <urn:v> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph}')
            if broken and n == 500:
                lines.append(f'_:b{n} <urn:v> "-1"^^<http://www.w3.org/2001/XMLSchema#integer> {graph}')
            lines.append(f'_:c <urn:v> "7" {graph}')
        return "\n".join(lines) + "\n"

    whole = read(text(broken=False), "format=nq&time=<urn:a>/<urn:v>")
    assert (whole.times, whole.bad) == ([*range(2_000)], [])
    reading = read(text(broken=True), "format=nq&time=<urn:a>/<urn:v>")
    assert reading.times == [n for n in range(2_000) if n not in (500, 1_500)]
    assert len(reading.bad) == 2


def test_a_path_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "p.trig").write_text(PATHS)
    query = """PREFIX : <http://example.org/> SELECT ?v WITHIN 9 SECONDS FROM STREAM S <urn:s>
        WHERE { SEQ(A) DEFINE GPM A ON S { ?o :value/:v ?v } }"""
    source = f"{tmp_path}/p.trig?time=<http://example.org/effective>/<http://example.org/v>"
    with pytest.warns(spaseq.errors.SpaseqWarning):
        assert [m.end for m in spaseq.run(query, {"S": source})] == [5, 6]
