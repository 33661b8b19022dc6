"""GeoSPARQL's sfWithin and sfIntersects, by shapely."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

import spaseq
from spaseq.errors import QueryMeaningError
from spaseq.language import functions

EX = "http://example.org/"
ZONE = "POLYGON((4 52, 5 52, 5 53, 4 53, 4 52))"
EPSG = "<http://www.opengis.net/def/crs/EPSG/0/4326>"
CRS84 = "<http://www.opengis.net/def/crs/OGC/1.3/CRS84>"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_own", {})


def query(condition: str) -> str:
    return (
        f"PREFIX : <{EX}> PREFIX geo: <http://www.opengis.net/ont/geosparql#> "
        "PREFIX geof: <http://www.opengis.net/def/function/geosparql/> "
        f"SELECT ?x WITHIN 10 SECONDS SLIDING FROM STREAM S <{EX}s> "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :at ?p . FILTER({condition}) }} }}"
    )


def within(zone: str = ZONE, name: str = "sfWithin") -> str:
    return query(f"geof:{name}(?p, '{zone}'^^geo:wktLiteral)")


def found(text: str, *places: str) -> list[int]:
    """Which of the events have an answer, pushed one by one."""
    engine = spaseq.Engine()
    handle = engine.register(text)
    for tick, place in enumerate(places):
        literal = f"'{place}'^^<http://www.opengis.net/ont/geosparql#wktLiteral>"
        engine.push(EX + "s", f"<urn:x> <{EX}at> {literal} .", tick)
    engine.finish()
    return [int(match.start) for match in handle.matches()]


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("sfWithin", "POINT(4.5 52.5)", True),
        ("sfWithin", "POINT(52.5 4.5)", False),
        ("sfWithin", "POINT(4 52.5)", False),  # on the boundary
        ("sfIntersects", "POINT(4 52.5)", True),
        ("sfWithin", f"{CRS84} POINT(4.5 52.5)", True),
        ("sfWithin", f"{EPSG}POINT(52.5 4.5)", True),
        ("sfWithin", f"{EPSG} POINT(4.5 52.5)", False),
        ("sfWithin", "LINESTRING(4.5 52.5, 6 52.5)", False),
        ("sfIntersects", "LINESTRING(4.5 52.5, 6 52.5)", True),
        ("sfIntersects", "LINESTRING(5.5 52.5, 6 52.5)", False),
    ],
)
def test_relations(name: str, place: str, expected: bool) -> None:
    pytest.importorskip("shapely")
    assert found(within(name=name), place) == [0] * expected


def test_within_is_of_the_first_in_the_second() -> None:
    pytest.importorskip("shapely")
    assert found(
        query(f"geof:sfWithin('{ZONE}'^^geo:wktLiteral, ?p)"), "POLYGON((0 0, 60 0, 60 60, 0 60, 0 0))"
    )


def test_what_is_no_geometry_is_an_error_of_the_expression() -> None:
    pytest.importorskip("shapely")
    utm = "<http://www.opengis.net/def/crs/EPSG/0/32631> POINT(1 2)"
    with pytest.warns(spaseq.SpaseqWarning, match="sfWithin> failed") as told:
        assert found(within(), "POINT(4.5", "POINT(4.5 52.5)", utm) == [1]
    assert len(told) == 1
    with pytest.warns(spaseq.SpaseqWarning, match="EPSG/0/32631> and <.*CRS84>: give both in the same"):
        assert found(within(), utm) == []


def test_a_batch_is_one_call(tmp_path: Path) -> None:
    shapely = pytest.importorskip("shapely")
    sizes: list[int] = []
    contains = shapely.contains
    lines = []
    for i in range(40):
        time = f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        point = f'"POINT({i} 52.5)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>'
        lines.append(f"<urn:g{i}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .")
        lines.append(f"<urn:x> <{EX}at> {point} <urn:g{i}> .")
    (path := tmp_path / "s.nq").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapely, "contains", lambda a, b: (sizes.append(len(a)), contains(a, b))[1])
        matches = list(spaseq.run(within("POLYGON((9.5 52, 19.5 52, 19.5 53, 9.5 53, 9.5 52))"), {"S": path}))
    assert [match.start for match in matches] == [*range(10, 20)]
    assert sizes == [39, 1]  # the last event comes when the file has ended


@pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")  # of its own
def test_in_rdflib() -> None:
    pytest.importorskip("shapely")
    import rdflib

    import spaseq.rdf  # noqa: F401  # makes the processor known

    dataset = rdflib.Dataset()
    for tick, place in enumerate(("POINT(4.5 52.5)", "POINT(3.5 52.5)")):
        literal = f"'{place}'^^<http://www.opengis.net/ont/geosparql#wktLiteral>"
        time = f"<urn:g{tick}> <http://www.w3.org/ns/prov#generatedAtTime> {tick} ."
        dataset.parse(
            data=f"{time} GRAPH <urn:g{tick}> {{ <urn:x{tick}> <{EX}at> {literal} }}", format="trig"
        )
    rows = [str(row.x) for row in dataset.query(within(), processor="spaseq")]
    assert rows == ["urn:x0"]


def test_without_shapely_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)
    monkeypatch.delitem(sys.modules, "spaseq.language.geometries", raising=False)
    with pytest.raises(
        QueryMeaningError, match=r"(?s)geof:sfWithin needs shapely.*pip install 'spaseq\[geo\]'"
    ):
        spaseq.prepare(within())


def test_ones_own_stands_before_shapelys() -> None:
    spaseq.function("http://www.opengis.net/def/function/geosparql/sfWithin", lambda *_: True)
    with warnings.catch_warnings():
        assert found(within(), "POINT(0 0)") == [0]
