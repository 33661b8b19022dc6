"""Files, pipes, standard input, compression."""

from __future__ import annotations

import gzip
import io
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from spaseq.errors import SourceError
from spaseq.sources import SourceOptions, open_source
from spaseq.sources._bytes import GATHERED
from spaseq.terms.dictionary import Dictionary

from .reading import STREAM, Trickle, pieces, read

LINE = "<s:s> <p:p> <o:{0}> <g:{0}> .\n"
TEXT = "".join(LINE.format(n) for n in range(2000)).encode()
LARGE = "".join(LINE.format(n * 7919) for n in range(60_000)).encode()
ARRIVAL = "time=arrival&format=nq"


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".zst", zst)])
@pytest.mark.parametrize("size", [1, 1000, 1 << 18])
def test_compressed(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes], size: int) -> None:
    data = pack(TEXT)
    assert read(Trickle(pieces(data, size)), ARRIVAL).times == list(range(2000))
    path = tmp_path / f"events.nq{suffix}"
    path.write_bytes(data)
    reading = read(path, "time=arrival")
    assert (reading.times, reading.bad) == (list(range(2000)), [])


@pytest.mark.parametrize("pack", [gzip.compress, zst])
def test_concatenated(pack: Callable[[bytes], bytes]) -> None:
    half = len(TEXT) // 2
    for size in (1, 1 << 18):
        data = pack(TEXT[:half]) + pack(b"") + pack(TEXT[half:])
        assert len(read(Trickle(pieces(data, size)), ARRIVAL).times) == 2000


@pytest.mark.parametrize("pack", [gzip.compress, zst])
@pytest.mark.slow
def test_cut_short(pack: Callable[[bytes], bytes]) -> None:
    """What came before the damage counts; the damage is reported."""
    data = pack(LARGE)
    reading = read(Trickle(pieces(data[: len(data) * 3 // 4], 1000)), ARRIVAL)
    assert 0 < len(reading.times) < 60_000
    assert any(bad.position.startswith("byte ") and "truncated" in bad.reason for bad in reading.bad)


def test_damaged_gzip() -> None:
    data = bytearray(gzip.compress(LARGE))
    data[-8] ^= 0xFF  # the checksum
    reading = read(bytes(data), ARRIVAL)
    assert len(reading.times) > 1000
    assert "damaged" in reading.reasons[0]


@pytest.mark.parametrize("pack", [gzip.compress, zst])
def test_what_is_behind_the_compressed_data_is_told_with_its_place(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(TEXT)
    reading = read(packed + b"more", ARRIVAL)
    assert reading.times == list(range(2000))
    assert reading.positions == [f"byte {len(packed)}"]


def test_not_compressed_at_all(tmp_path: Path) -> None:
    for suffix in ("gz", "zst"):
        path = tmp_path / f"events.nq.{suffix}"
        path.write_bytes(TEXT)
        with pytest.raises(SourceError, match=f"not {suffix}-compressed"):
            read(path)
        path.write_bytes((b"\x1f\x8b" if suffix == "gz" else b"\x28\xb5\x2f\xfd") + b"nonsense " * 10)
        with pytest.raises(SourceError, match="cannot be decompressed"):
            read(path)


def test_empty() -> None:
    assert read(b"", "format=nq").bad == []


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    options = SourceOptions(format="nq", time="arrival")
    batches = list(open_source("-", STREAM, Dictionary(), options, on_bad=print))
    assert sum(map(len, batches)) == 2000


def test_a_slow_pipe_delivers_at_once() -> None:
    """Over a real pipe: each event comes before the writer writes the one after the next."""
    ends = os.pipe()
    seen = threading.Semaphore(0)
    failed = []

    def write() -> None:
        with open(ends[1], "wb", buffering=0) as out:
            out.write(LINE.format(0).encode())
            for n in range(1, 5):
                out.write(LINE.format(n).encode())
                if not seen.acquire(timeout=20):
                    failed.append(n)
                    return

    writer = threading.Thread(target=write)
    writer.start()
    times = []
    options = SourceOptions(format="nq", time="arrival")
    with open(ends[0], "rb") as pipe:
        for batch in open_source(pipe, STREAM, Dictionary(), options, on_bad=print):
            times += batch.time.tolist()
            seen.release()
    writer.join()
    assert failed == []
    assert times == [0, 1, 2, 3, 4]


def test_what_arrives_while_the_reader_is_busy_is_one_batch() -> None:
    """On a pipe that holds more, up to a megabyte: small batches cost more an event."""
    fcntl = pytest.importorskip("fcntl")
    ends = os.pipe()
    options = SourceOptions(format="nq", time="arrival")
    with open(ends[0], "rb") as pipe, open(ends[1], "wb", buffering=0) as out:
        batches = open_source(pipe, STREAM, Dictionary(), options, on_bad=print)
        out.write((LINE.format("a") + LINE.format("b")).encode())
        next(batches)
        if not hasattr(fcntl, "F_GETPIPE_SZ") or fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) < GATHERED:
            pytest.skip("the system's pipes hold no more")
        half = LARGE[: LARGE.index(b"\n", 500_000) + 1]
        for part in pieces(half, 10_000):
            out.write(part)
        assert len(next(batches)) == half.count(b"\n")


def test_what_arrives_on_a_socket_is_gathered() -> None:
    ends = socket.socketpair()
    options = SourceOptions(format="nq", time="arrival")
    with ends[0], ends[1], ends[0].makefile("rb", buffering=0) as file:
        batches = open_source(file, STREAM, Dictionary(), options, on_bad=print)
        for n in range(100):
            ends[1].send(LINE.format(n).encode())
        assert len(next(batches)) == 99


@pytest.mark.parametrize("pack", [gzip.compress, zst])
def test_compressed_data_comes_in_large_batches(pack: Callable[[bytes], bytes]) -> None:
    reading = read(pack(LARGE), ARRIVAL)
    assert len(reading.times) == 60_000
    assert len(reading.batches) <= 2 + len(LARGE) // GATHERED


def test_a_large_file_comes_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "events.nq"
    path.write_bytes(LARGE)
    reading = read(path, "time=arrival")
    assert len(reading.batches) > 1
    assert max(map(len, reading.batches)) < 59_000, "of 60,000"


def test_the_file_is_closed_when_reading_stops_early(tmp_path: Path) -> None:
    path = tmp_path / "events.nq"
    path.write_bytes(LARGE)
    bad: list[object] = []
    batches = open_source(path, STREAM, Dictionary(), SourceOptions(time="arrival"), on_bad=bad.append)
    next(batches)
    del batches  # an open file would be a ResourceWarning, an error in these tests
    assert bad == [], "what was not read is not bad"
