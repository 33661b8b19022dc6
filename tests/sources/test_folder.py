"""A stream in several files is read one file after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import spaseq
from spaseq.results.writers._json import line_of
from tests.streams import NS, query

TEXT = query("A ; B", "20 SECONDS")


def event(kind: str, time: int) -> str:
    graph, node = f"<{NS}g{time}>", f"<{NS}e{time}>"
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    return (
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{time}"{integer} .\n'
        f"{node} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{kind}> {graph} .\n"
        f'{node} <{NS}v> "{time}"{integer} {graph} .\n'
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "2.nq").write_text(event("b", 4) + event("x", 5) + "nonsense .\n")
    (tmp_path / "1.nq").write_text(event("a", 1) + event("x", 2))
    (tmp_path / "10.txt").write_text("no stream at all")
    return tmp_path


@pytest.mark.parametrize("pattern", ["", "*.nq", "[12].*?format=nq", "?order=time"])
def test_files_are_one_stream(folder: Path, pattern: str) -> None:
    letters: list[spaseq.BadEvent] = []
    where = f"{folder}{'' if pattern.startswith('?') else '/'}{pattern}".rstrip("/")
    (match,) = spaseq.run(TEXT, {"S": where}, dead_letters=letters.append)
    chosen = json.loads(line_of(match))["events"]
    assert [(event["time"], event["n"]) for name in "AB" for event in chosen[name]] == [(1, 0), (4, 2)]
    assert letters[0].position == f"{folder}/2.nq, line 7"


def test_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(spaseq.SourceError, match="no such file, folder or pattern"):
        spaseq.run(TEXT, {"S": f"{tmp_path}/nowhere.nq"})
    assert not list(spaseq.run(TEXT, {"S": str(tmp_path)}))
