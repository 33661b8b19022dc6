"""Read bytes of files, pipes and compressed files, a block at a time, as they arrive.

A block is up to ``BLOCK`` bytes of a file, or what has arrived on a pipe. Readers parse what is complete
after each block, so an event on a slow pipe never waits for others. Bytes that arrive while the reader is
busy are gathered to one block of up to ``GATHERED`` bytes, since small blocks cost more per event.
"""

from __future__ import annotations

import glob
import os
import select
import socket
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from io import FileIO
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import zstandard

from spaseq.errors import SourceError
from spaseq.sources._options import COMPRESSED, EXTENSIONS

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

BLOCK: Final = 1 << 21

#: The most bytes gathered of a pipe or a socket. The pipe's buffer is made as large, if the system allows it.
#: With blocks of 64 KiB an event costs three times as much (measured).
GATHERED: Final = 1 << 20

#: The longest line, statement or message, so that memory stays bounded for any input.
LONGEST: Final = 1 << 26

_PART: Final = 1 << 14
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"

#: The UTF-8 byte order mark, which some editors put before a text.
MARK: Final = b"\xef\xbb\xbf"


class BrokenBytesError(Exception):
    """The bytes are damaged after a valid part: where, and why."""

    def __init__(self, position: str, reason: str) -> None:
        super().__init__(f"{position}: {reason}")
        self.position = position
        self.reason = reason


def check_location(location: str | Path) -> None:
    """Raise SourceError for a missing file now, not at the first event."""
    if str(location) == "-":
        return
    if not Path(location).exists():
        raise SourceError(f"{location}: no such file, folder or pattern (relative to {Path.cwd()})")


def read_blocks(location: str | Path | IO[bytes], idle: timedelta | None = None) -> Iterator[bytes]:
    """Yield the bytes of a source, decompressed; ``-`` is standard input.

    An empty block means that an uncompressed pipe has brought nothing for ``idle``.

    Raises SourceError if the source cannot be opened, and BrokenBytesError if compressed data is damaged.
    """
    if not isinstance(location, (str, Path)):
        yield from _plain(location, str(getattr(location, "name", location)), idle)
    elif str(location) == "-":
        if sys.stdin is None:
            raise SourceError("standard input is closed: there is nothing to read")
        # Unbuffered: a thread that waits inside the buffer holds its lock, and Python then crashes at exit.
        yield from _plain(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), "standard input", idle)
    else:
        try:
            with open(location, "rb") as file:
                yield from _plain(file, str(location), idle)
        except OSError as error:
            raise SourceError(f"{location} cannot be read: {error.strerror or error}") from error


def _plain(file: IO[bytes], name: str, idle: timedelta | None) -> Iterator[bytes]:
    """Yield the blocks of an open file; compression is recognized by the first bytes, then by name."""
    # read1 returns the bytes that are there; read would wait until a block is full.
    read: Callable[[int], bytes | None] = getattr(file, "read1", file.read)
    if _can_be_asked(file):
        read = _gathering(file, read)
    head = b""
    while len(head) < len(_ZSTD) and (block := read(BLOCK)):
        head += block
    blocks = _blocks(head, read)
    if head.startswith(_GZIP):
        return _decompressed(blocks, lambda: zlib.decompressobj(wbits=31), name)
    if head.startswith(_ZSTD):
        return _decompressed(blocks, lambda: zstandard.ZstdDecompressor().decompressobj(), name)
    for suffix in (".gz", ".zst"):
        if name.endswith(suffix) and head:
            raise SourceError(f"{name} is not {suffix[1:]}-compressed, whatever its name says: rename it")
    return blocks if idle is None or not is_pipe(file) else _with_pauses(head, read, file, idle)


def _blocks(head: bytes, read: Callable[[int], bytes | None]) -> Iterator[bytes]:
    block: bytes | None = head
    while block:
        yield block
        block = read(BLOCK)


def _can_be_asked(file: IO[bytes]) -> bool:
    """Return whether the system can tell if a read returns at once: true of pipes, terminals and plain
    sockets.
    """
    raw = getattr(file, "raw", file)
    is_socket = type(raw) is socket.SocketIO and type(getattr(raw, "_sock", None)) is socket.socket
    return hasattr(select, "poll") and (is_socket or isinstance(raw, FileIO)) and is_pipe(file)


def _gathering(file: IO[bytes], read: Callable[[int], bytes | None]) -> Callable[[int], bytes | None]:
    """Return a read that waits for the first byte only, and then takes up to ``GATHERED`` available bytes."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # not a pipe, or the user's quota for pipes is used up
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, GATHERED)
    is_over = False

    def gathered(size: int) -> bytes | None:
        nonlocal is_over
        parts: list[bytes] = []
        held = 0
        while not is_over and (not held or (held < GATHERED and poll.poll(0))):
            part = read(size)
            is_over = not part  # a terminal would continue after its end
            if part:
                parts.append(part)
                held += len(part)
        return b"".join(parts)

    return gathered


def is_pipe(location: str | Path | IO[bytes]) -> bool:
    """Return whether a source is a pipe, a socket or a terminal; ``-`` is standard input."""
    try:
        if isinstance(location, Path) or (isinstance(location, str) and location != "-"):
            mode = os.stat(location).st_mode
        else:
            mode = os.fstat(sys.stdin.fileno() if isinstance(location, str) else location.fileno()).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    except (OSError, AttributeError, ValueError):  # not a file of the system
        return False


def _with_pauses(
    head: bytes, read: Callable[[int], bytes | None], pipe: IO[bytes], idle: timedelta
) -> Iterator[bytes]:
    for block in _blocks(head, read):
        yield block
        if not select.select([pipe], [], [], idle.total_seconds())[0]:
            yield b""


def _decompressed(blocks: Iterator[bytes], start: Callable[[], Any], name: str) -> Iterator[bytes]:
    """Yield the contents of each block, in parts of about ``GATHERED`` bytes, up to the first damage."""
    parts: list[bytes] = []
    held = 0
    try:
        for part in _unpacked(blocks, start, name):
            parts.append(part)
            held += len(part)
            if held >= GATHERED or (not part and held):
                yield b"".join(parts)
                parts, held = [], 0
    except BrokenBytesError:
        if held:
            yield b"".join(parts)
        raise
    if held:
        yield b"".join(parts)


def _unpacked(blocks: Iterator[bytes], start: Callable[[], Any], name: str) -> Iterator[bytes]:
    """Decompress concatenated members (gzip) or frames (zstd) across blocks; yield b"" after each block."""
    member = start()
    at = 0
    found = False
    for block in blocks:
        # Small parts: a damaged part is lost whole, and the size of the output must be bounded.
        for begin in range(0, len(block), _PART):
            rest = block[begin : begin + _PART]
            end = at + begin + len(rest)
            while rest:
                if member.eof:
                    member = start()
                try:
                    data = member.decompress(rest)
                except (zlib.error, zstandard.ZstdError) as error:
                    if not found:
                        raise SourceError(f"{name} cannot be decompressed: {error}") from error
                    where = f"byte {end - len(rest)}"
                    raise BrokenBytesError(where, f"damaged compression: {error}") from error
                if data:
                    found = True
                    yield data
                rest = member.unused_data
        at += len(block)
        yield b""
    if not member.eof:
        raise BrokenBytesError(f"byte {at}", "the compressed data ends too early: the file was truncated")


def unmarked(blocks: Iterator[bytes]) -> Iterator[bytes]:
    r"""Yield the blocks of a text without a byte order mark at its beginning.

    >>> list(unmarked(iter([b"\xef", b"\xbb\xbfa", b"b"])))
    [b'a', b'b']
    """
    head = b""
    for block in blocks:
        head += block
        if len(head) >= len(MARK) or not block:
            break
    if head:
        yield head.removeprefix(MARK)
    yield from blocks


def count_lines(text: bytes) -> int:
    """Return the number of line feeds. ``bytes.count`` takes ten times as long for short lines."""
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")))


def whole_lines(
    blocks: Iterator[bytes],
    too_long: Callable[[str, str], None],
    count: Callable[[bytes], int] = count_lines,
) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, complete lines) for each block, and the last line at the end.

    An empty block is passed on between lines. A line of more than ``LONGEST`` bytes is left out, and
    ``too_long`` gets its position and the reason. ``count`` returns the number of line feeds in the text
    yielded last: pass a function if the reader of the lines counts them anyway.

    >>> list(whole_lines(iter([b"a\\nb", b"c\\nd"]), print))
    [(1, b'a\\n'), (2, b'bc\\n'), (3, b'd')]
    """
    line = 1
    parts: list[bytes] = []
    held = 0
    for block in blocks:
        if not block:
            if not any(parts):
                yield line, b""
            continue
        cut = block.rfind(b"\n") + 1
        if cut and held > LONGEST:  # the rest of a line that is too long
            start = block.index(b"\n") + 1
            line += 1
        else:
            start = 0
        if cut:
            lines = b"".join([*parts, memoryview(block)[start:cut]])
            yield line, lines
            line += count(lines)
            parts, held, block = [], 0, block[cut:]
        if held <= LONGEST:
            parts.append(block)
            held += len(block)
            if held > LONGEST:
                too_long(f"line {line}", f"a line of more than {LONGEST} bytes")
                parts = []
    if any(parts):
        yield line, b"".join(parts)


def files_of(location: str | Path) -> list[Path] | None:
    """Return the files of a folder that have a format's extension, or of a pattern; None if it is neither."""
    path = Path(location)
    if path.is_dir():
        known = [*EXTENSIONS, *COMPRESSED]
        return sorted(p.resolve() for p in path.iterdir() if p.suffix.lower() in known and p.is_file())
    if not path.exists() and glob.has_magic(str(location)):
        found = glob.glob(str(location), recursive=True)
        return sorted(Path(p).resolve() for p in found if Path(p).is_file())
    return None
