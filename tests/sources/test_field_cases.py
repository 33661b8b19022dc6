"""Inputs modelled on public reports, and what each must give."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

import spaseq
from spaseq.errors import SourceError, SpaseqWarning
from spaseq.sources import BadEvent, open_source, parse_source
from spaseq.sources.proposal import propose
from spaseq.terms.dictionary import Dictionary

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
    said = rows(case / query, f"{case / name}?triples=3&{AT}")[1]
    assert "no triple connects" in said
    assert "by=subject" in said
    expected = [("5", "7"), ("7", "9")] if name == "rml.nt" else [("1", "6")]
    assert rows(case / query, f"{case / name}?by=subject&{AT}") == (expected, "")


def test_a_page_of_a_linked_data_event_stream(case: Path) -> None:
    found = times(f"{case / 'ldes.ttl'}?by=https://w3id.org/tree%23member")
    assert found == [f"2025-03-31 09:{minute}:00+00:00" for minute in ("00", "10", "20")]


def test_a_nanopublication(case: Path, tmp_path: Path) -> None:
    (tmp_path / "np.trig").write_text('VERSION "1.2-messages"\n' + (case / "np.trig").read_text())
    query = spaseq.prepare((case / "np.rq").read_text())
    for source in (f"{tmp_path}/np.trig?by=message", f"{case / 'np.trig'}?format=messages&by=message"):
        (match,) = spaseq.run(query, {S: f"{source}&time=dct:created"})
        (row,) = match.bindings
        assert [str(row[name]) for name in ("g", "d", "who")] == [
            f"http://example.org/{name}" for name in ("gene1", "disease1", "ann")
        ]


def test_a_time_in_2057(case: Path) -> None:
    found, said = rows(case / "rise.rq", f"{case / 'fut.nq'}?max_ahead=1 DAYS")
    assert found == [("1", "2"), ("2", "3"), ("3", "4")]
    assert "1 bad and 0 late" in said
    found, said = rows(case / "rise.rq", str(case / "fut.nq"))
    assert found == []
    assert "which event 2 moved with its time 2057-08-08" in said
    assert "max_ahead" in said


def times(source: str) -> list[str]:
    """Return the times of a source's events, in order of arrival; none is malformed."""
    location, options = parse_source(source)
    bad: list[BadEvent] = []
    batches = [*open_source(location, NamedNode(S), Dictionary(), options, on_bad=bad.append)]
    assert bad == []
    return [str(batch.clock.show(time)) for batch in batches for time in batch.time.tolist()]


def test_ships(case: Path, tmp_path: Path) -> None:
    context = tmp_path / "ais.jsonld"
    context.write_text('{"@context": {"@vocab": "http://example.org/"}}')
    text = (case / "ais.csv").read_text()
    (tmp_path / "ais.csv").write_text(text)
    options = f"context={context}&time=Timestamp"
    expected = [f"2024-03-01 00:00:{second}+00:00" for second in ("00", "05", "10")]
    assert times(f"{tmp_path}/ais.csv?{options}&time_format=%d/%m/%Y %H:%M:%S") == expected
    for second, epoch in zip(("00", "05", "10"), (1709251200, 1709251205, 1709251210), strict=True):
        text = text.replace(f"01/03/2024 00:00:{second}", f"{epoch}")
    for end in ("", ".00", "000", "000000"):
        (tmp_path / "other.csv").write_text(re.sub(r"(?m)^(17\d{8})", rf"\g<1>{end}", text))
        assert times(f"{tmp_path}/other.csv?{options}") == expected
    (tmp_path / "iso.csv").write_text((case / "ais.csv").read_text().replace("01/03/2024", "2024-03-01"))
    assert times(f"{tmp_path}/iso.csv?{options}") == expected


def test_fhir(case: Path) -> None:
    path = "time=<http://hl7.org/fhir/effective>/<http://hl7.org/fhir/v>"
    assert rows(case / "hr.rq", f"{case / 'fhir.trig'}?{path}&order=time")[0] == [("121", "131")]
    found, said = rows(case / "hr.rq", f"{case / 'fhir.trig'}?{path}")
    assert found == [("121", "131")]
    assert "late" in said


def test_hints_for_a_time_that_is_missing(case: Path) -> None:
    def letters(source: str) -> tuple[list[BadEvent], int]:
        location, options = parse_source(source)
        bad: list[BadEvent] = []
        return bad, sum(
            map(len, open_source(location, NamedNode(S), Dictionary(), options, on_bad=bad.append))
        )

    bad, _ = letters(str(case / "two.trig"))
    first, *others = [letter.reason for letter in bad]
    (hint,) = re.findall(r"time=[^\s)]+", first)
    assert hint == "time=dct:created"
    assert letters(f"{case / 'two.trig'}?{hint}")[1] == 1
    said = ["<http://example.org/from> has several values", "<http://example.org/v> has several values"]
    said.append("<http://example.org/v> also has a value that is not a time")
    for reason, what in zip(others, said, strict=True):
        assert what in reason
        assert "time=arrival" in reason
    assert letters(f"{case / 'two.trig'}?time=arrival")[1] == 4
    bad, _ = letters(str(case / "fhir.trig"))
    (hint,) = {hint for letter in bad for hint in re.findall(r"time=[^\s)]+", letter.reason)}
    assert hint == "time=<http://hl7.org/fhir/effective>/<http://hl7.org/fhir/v>"
    assert letters(f"{case / 'fhir.trig'}?{hint}") == ([], 3)


def test_written_forms_of_a_time(case: Path) -> None:
    """24 of 31 are dead letters, each with the form that was expected, or why there is no such time."""
    bad: list[BadEvent] = []
    location, options = parse_source(f"{case / 'dt.nq'}?order=time")
    dictionary = Dictionary()
    (batch,) = open_source(location, NamedNode(S), dictionary, options, on_bad=bad.append)
    found = [str(dictionary.term(int(term))).strip('"') for term in batch.o.tolist()]
    assert found == ["4", "7", "22", "19", "5", "30", "6"]
    assert len(bad) == 24
    outside = [letter.reason for letter in bad if "outside the years 1 to 9999" in letter.reason]
    assert len(outside) == 3
    others = [letter.reason for letter in bad if "outside" not in letter.reason]
    assert all("2008-02-01T09:13:00Z" in reason for reason in others), others


def test_a_feed_of_transit(case: Path) -> None:
    source = f"{case / 'gtfs.ndjson'}?context={case / 'gtfs.jsonld'}&items=entity"
    query = spaseq.prepare((case / "gtfs.rq").read_text())
    assert len(list(spaseq.run(query, {S: f"{source}&order=time"}))) == 2
    with pytest.warns(SpaseqWarning, match="late"):
        assert len(list(spaseq.run(query, {S: source}))) == 1
    assert times(source) == ["1649999990", "1649999930"]


def test_activity_streams(case: Path, tmp_path: Path) -> None:
    found = propose(case / "as.ndjson")
    assert found.remote == ("https://www.w3.org/ns/activitystreams",)
    assert dict(found.options) == {"contexts": "FOLDER", "time": "published"}
    context = {"@vocab": "https://www.w3.org/ns/activitystreams#", "id": "@id", "type": "@type"}
    (tmp_path / "as.jsonld").write_text(json.dumps({"@context": context}))
    (tmp_path / "map.json").write_text(json.dumps({"https://www.w3.org/ns/activitystreams": "as.jsonld"}))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "activitystreams.jsonld").write_text(json.dumps({"@context": context}))
    expected = ["2024-01-05 10:00:00+00:00", "2024-01-05 10:00:05+00:00"]
    for contexts in ("map.json", "folder"):
        assert times(f"{case / 'as.ndjson'}?contexts={tmp_path / contexts}&time=published") == expected
    with pytest.raises(SourceError, match="contexts="):
        times(f"{case / 'as.ndjson'}?time=published")
