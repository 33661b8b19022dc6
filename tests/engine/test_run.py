"""``run``: sources read side by side, in time order, from files, pipes and memory."""

from __future__ import annotations

import io
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

import spaseq
from tests.streams import NS, Letter, events_of, found, letters, query


def nquads(events: Iterable[Letter]) -> str:
    """The events as N-Quads, each followed by its time."""
    lines = []
    for e in events:
        graph = f"<{NS}{e.name}>"
        for p, o in [
            ("v", f'"{e.value}"^^<http://www.w3.org/2001/XMLSchema#integer>'),
            ("k", f"<{NS}{e.key}>"),
        ]:
            lines.append(f"<{NS}e/{e.name}> <{NS}{p}> {o} {graph} .")
        lines.append(
            f"<{NS}e/{e.name}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{e.type}> {graph} ."
        )
        lines.append(
            f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{e.time}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        )
    return "\n".join(lines) + "\n"


TEXT = query("A ; B", streams=["S", "T"])
EVENTS = letters("S.a1 T.b2 S.x3 S.a4 T.b5 S.a6 S.a7 T.b8")


def of_stream(name: str) -> list[Letter]:
    return [e for e in EVENTS if e.stream == name]


def files(folder: Path) -> dict[str, str]:
    for name in "ST":
        (folder / f"{name}.nq").write_text(nquads(of_stream(name)))
    return {name: str(folder / f"{name}.nq") for name in "ST"}


def test_files_are_merged_by_time(tmp_path: Path) -> None:
    result = [events_of(match) for match in spaseq.run(TEXT, files(tmp_path))]
    assert result == found(TEXT, EVENTS)
    assert result == ["a1T.b2", "a4T.b5", "a6T.b8", "a7T.b8"]


def test_streams_by_iri_path_file_and_source(tmp_path: Path) -> None:
    paths = files(tmp_path)
    streams = {
        NS + "S": Path(paths["S"]),
        "T": spaseq.Source(NS + "T", io.BytesIO(nquads(of_stream("T")).encode()), spaseq.SourceOptions("nq")),
    }
    assert [events_of(match) for match in spaseq.run(TEXT, streams)] == found(TEXT, EVENTS)


def test_what_is_wrong_with_the_streams_is_said_at_once(tmp_path: Path) -> None:
    paths = files(tmp_path)
    with pytest.raises(spaseq.SourceError, match=r"no source for T <http://example\.org/T>"):
        spaseq.run(TEXT, {"S": paths["S"]})
    with pytest.raises(spaseq.SourceError, match=r"no stream U: it reads S <"):
        spaseq.run(TEXT, {**paths, "U": paths["S"]})
    with pytest.raises(spaseq.SourceError, match=r"missing\.nq"):
        spaseq.run(TEXT, {**paths, "T": str(tmp_path / "missing.nq")})
    with pytest.raises(spaseq.SourceError, match="two sources"):
        spaseq.run(TEXT, {**paths, NS + "S": paths["S"]})


def test_progress(tmp_path: Path) -> None:
    seen: list[spaseq.Progress] = []
    list(spaseq.run(TEXT, files(tmp_path), progress=seen.append))
    assert (seen[-1].events, seen[-1].matches, seen[-1].watermark) == (8, 4, 8)


def test_matches_come_before_the_end_of_the_stream() -> None:
    """The first match is there while the writer of the pipe still has events to write."""
    read, write = os.pipe()
    writer = os.fdopen(write, "w")
    text = query("A ; B")
    with os.fdopen(read, "rb") as pipe:
        source = spaseq.Source(NS + "S", pipe, spaseq.SourceOptions("nq"))
        found_ = spaseq.run(text, {"S": source})
        # The time of an event stands after it, and the next event shows that it is complete.
        writer.write(nquads(letters("a1 b2 x3")))
        writer.flush()
        assert events_of(next(found_)) == "a1b2"
        writer.close()
        assert list(found_) == []


def test_an_idle_stream_does_not_hold_the_others_back() -> None:
    (read_s, write_s), (read_t, write_t) = os.pipe(), os.pipe()
    text = query("A ; B", streams=["S", "T"])
    options = spaseq.SourceOptions("nq")
    with os.fdopen(read_s, "rb") as s, os.fdopen(read_t, "rb") as t:
        streams = {"S": spaseq.Source(NS + "S", s, options), "T": spaseq.Source(NS + "T", t, options)}
        found_ = spaseq.run(text, streams, idle=timedelta(seconds=0.3))
        with os.fdopen(write_s, "w") as feed:
            feed.write(nquads(letters("S.a1 S.b2 S.x3")))
            feed.flush()
            began = time.monotonic()
            assert events_of(next(found_)) == "a1b2"
            assert time.monotonic() - began >= 0.2
            # It comes back in time for what follows.
            with os.fdopen(write_t, "w") as other:
                threading.Timer(
                    0.1, lambda: (other.write(nquads(letters("T.b9 T.x10"))), other.flush())
                ).start()
                feed.write(nquads(letters("S.a7 S.x8")))
                feed.flush()
                assert events_of(next(found_)) == "a7T.b9"


def test_closing_a_run_early_reads_no_further(tmp_path: Path) -> None:
    result = spaseq.run(TEXT, files(tmp_path))
    next(result)
    result.close()
    assert list(result) == []


def test_limit_stops_reading(tmp_path: Path) -> None:
    assert len(list(spaseq.run(TEXT + " LIMIT 2", files(tmp_path)))) == 2


@pytest.mark.slow
def test_of_very_many_matches_some_can_be_taken(tmp_path: Path) -> None:
    """One event completes 2^60 matches."""
    text = query("A+[:] : B", "1000 SECONDS SLIDING")
    stream = [*(f"a{i}" for i in range(60)), "b60", "b61"]
    path = tmp_path / "stream.nq"
    path.write_text(nquads(letters(" ".join(stream))))
    found = list(islice(spaseq.run(text, {"S": path}), 2_500))
    assert len({events_of(match) for match in found}) == 2_500
    assert {match.end for match in found} == {60}


def test_more_matches_than_are_made_at_once() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A : B", "10000 SECONDS SLIDING"))
    for letter in letters(" ".join(f"a{i}" for i in range(1_500))):
        engine.push(NS + "S", letter.turtle, letter.time)
    for letter in letters("b1500 b1501"):
        engine.push(NS + "S", letter.turtle, letter.time)
    assert Counter(match.end for match in handle.matches()) == {1_500: 1_500, 1_501: 1_500}
    assert list(handle.matches()) == []
