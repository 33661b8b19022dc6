"""Whether SQLite's write-ahead log of a state is damaged, or only torn at its end by a crash.

SQLite takes the first wrong checksum for the end of the log, in silence. That is right if a crash has torn
the last transaction. A wrong checksum before another transaction is damage: a transaction begins when the
one before it is on disk. https://www.sqlite.org/fileformat2.html#the_write_ahead_log has the format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from spaseq.engine.durable.whole import damaged

#: Bytes of the log's header, and of the header before each page.
_HEADER: Final = 32
_FRAME: Final = 24
#: Sizes of pages: that of 65,536 bytes is written as 1.
_LEAST: Final = 512
_MOST: Final = 65_536

#: Two sums of 32 bits, as SQLite's checksums are.
Sums = tuple[int, int]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A page in the log. ``stored``: its sums over the log up to here; ``words``: what they are made of."""

    commits: bool
    salts: bytes
    stored: Sums
    words: Words

    def sums(self, before: Sums) -> Sums:
        """Return what should be stored, if these are the sums of what is before the frame."""
        return _summed(self.words, before)

    def follows(self, before: Sums) -> bool:
        """Whether the frame is whole, and was written after that."""
        return self.sums(before) == self.stored


def check_log(path: Path) -> None:
    """Raise EngineError if the log of a state file is damaged before its last transaction.

    Must be called while no connection to the file is open: the first one removes what it cannot read.
    """
    log = path.with_name(f"{path.name}-wal")
    if not path.is_file() or not log.is_file():
        return
    with path.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
    with log.open("rb") as file:
        header = file.read(_HEADER)
        frames = [*_frames(file, _MOST if size == 1 else size)]
    if not frames:
        return
    salts, before = header[16:24], struct.unpack_from(">2I", header, 24)
    is_known = _summed(_words(header[:24]), (0, 0)) == before
    at = 0
    while is_known and at < len(frames) and frames[at].salts == salts and frames[at].follows(before):
        before = frames[at].stored
        at += 1
    for frame, following in pairwise(frames[at:]):
        # Frames with other salts are what is left of an older log in the same file.
        if (
            frame.commits
            and (following.salts == salts or not is_known)
            and (following.follows(frame.stored) or following.follows(frame.sums(before)))
        ):
            raise damaged(log, "a transaction before the last one cannot be read")
        before = frame.stored


def _frames(file: IO[bytes], size: int) -> Iterator[_Frame]:
    """The frames of a log, behind its header."""
    if size < _LEAST or size & 7:
        return
    while len(data := file.read(_FRAME + size)) == _FRAME + size:
        _, pages, *stored = struct.unpack_from(">2I8x2I", data)
        yield _Frame(pages > 0, data[8:16], (stored[0], stored[1]), _words(data[:8] + data[_FRAME:]))


def _words(data: bytes) -> Words:
    """Words as the machine that wrote the log has them, which is of the kind that reads it."""
    return np.frombuffer(data, np.uint32).astype(np.uint64)


def _summed(words: Words, before: Sums) -> Sums:
    """SQLite's checksum: for words ``a, b, …`` by two, ``s += a + t; t += b + s``, both modulo 2^32.

    A step is linear: ``(s, t)`` becomes ``M (s, t) + (a, a + b)`` with ``M = ((1, 1), (1, 2))``.
    """
    p, q, r = _powers(len(words) // 2)
    a, b = words[::2], words[::2] + words[1::2]
    s, t = before
    first = int(p[-1]) * s + int(q[-1]) * t + int((p[-2::-1] * a + q[-2::-1] * b).sum())
    second = int(q[-1]) * s + int(r[-1]) * t + int((q[-2::-1] * a + r[-2::-1] * b).sum())
    return first % 2**32, second % 2**32


@cache
def _powers(count: int) -> tuple[Words, Words, Words]:
    """The powers of M from 0 to ``count``, ``((p, q), (q, r))`` each."""
    powers = [(1, 0, 1)]
    for _ in range(count):
        p, q, r = powers[-1]
        powers.append(((p + q) % 2**32, (q + r) % 2**32, (q + 2 * r) % 2**32))
    p, q, r = np.array(powers, dtype=np.uint64).T
    return p, q, r
